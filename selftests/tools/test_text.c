// SPDX-License-Identifier: GPL-2.0
/* What the user types and reads: units, addresses, text and JSON. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <tap.h>
#include "addr.h"
#include "print.h"
#include "units.h"
#include "utils.h"

#define EXPECT_TEXT(a, b) \
	TAP_CHECK(!strcmp(a, b), a, (void)0)

TEST(duration__parse)
{
	static const struct {
		const char *text;
		uint32_t ms;
	} good[] = {
		{ "1500", 1500 }, { "1500ms", 1500 }, { "1.5s", 1500 },
		{ "2min", 120000 }, { "30s", 30000 }, { "0", 0 },
		{ "0.0001s", 0 }, { "4294967295", UINT32_MAX },
	};
	static const char * const bad[] = {
		"", "s", "-1", "+1", "1x", "1 s", " 1", "1e99", "nan", "inf",
		"0x10", "4294967296", "1..5", "1s2",
	};
	uint32_t ms;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		EXPECT_EQ(duration_parse(good[i].text, &ms), 0);
		EXPECT_EQ(ms, good[i].ms);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		TAP_CHECK(duration_parse(bad[i], &ms), bad[i], (void)0);
}

TEST(duration__text)
{
	char buf[DURATION_LEN];

	EXPECT_TEXT(duration_text(0, buf), "0us");
	EXPECT_TEXT(duration_text(999, buf), "999us");
	EXPECT_TEXT(duration_text(1500, buf), "1.5ms");
	EXPECT_TEXT(duration_text(120000, buf), "120ms");
	EXPECT_TEXT(duration_text(30000000, buf), "30s");
	EXPECT_TEXT(duration_text(1050000, buf), "1.05s");
	EXPECT_TEXT(duration_text(120000000, buf), "2min");
	EXPECT_TEXT(duration_text(125000000, buf), "2min 5s");
	EXPECT_TRUE(duration_text(UINT64_MAX, buf)[0]);
}

TEST(scale__parse)
{
	uint32_t scale;

	EXPECT_EQ(scale_parse("100000000", &scale), 0);
	EXPECT_EQ(scale, 100000000);
	EXPECT_EQ(scale_parse("1e8", &scale), 0);
	EXPECT_EQ(scale, 100000000);
	EXPECT_TRUE(scale_parse("0", &scale));
	EXPECT_TRUE(scale_parse("1.5", &scale));
	EXPECT_TRUE(scale_parse("1e10", &scale));
	EXPECT_TRUE(scale_parse("-1", &scale));
}

TEST(addr__both_families)
{
	char buf[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	EXPECT_FALSE(addr_parse("10.0.0.1", AF_UNSPEC, &addr));
	EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&addr));
	EXPECT_TEXT(addr_text(&addr, buf), "10.0.0.1");
	EXPECT_FALSE(addr_parse("2001:db8::1", AF_UNSPEC, &addr));
	EXPECT_TEXT(addr_text(&addr, buf), "2001:db8::1");
	EXPECT_TRUE(addr_parse("2001:db8::1", AF_INET, &addr));
	EXPECT_TRUE(addr_parse("fe80::1", AF_UNSPEC, &addr));
	EXPECT_TRUE(addr_parse("1.2.3.4.5", AF_INET6, &addr));
}

TEST(number__u32)
{
	__u32 v;

	EXPECT_EQ(get_u32(&v, "4294967295", 0), 0);
	EXPECT_EQ(v, UINT32_MAX);
	EXPECT_EQ(get_u32(&v, "0x10", 0), 0);
	EXPECT_EQ(v, 16);
	EXPECT_TRUE(get_u32(&v, "4294967296", 0));
	EXPECT_TRUE(get_u32(&v, "-1", 0));
	EXPECT_TRUE(get_u32(&v, "", 0));
	EXPECT_TRUE(get_u32(&v, "1 ", 0));
}

/* Everything that @fn prints, until the next call. */
static const char *printed(void (*fn)(void))
{
	static char buf[1024];
	FILE *real = stdout;

	memset(buf, 0, sizeof(buf));
	stdout = fmemopen(buf, sizeof(buf), "w");
	fn();
	fclose(stdout);
	stdout = real;
	return buf;
}

static void print_sample(void)
{
	new_json_obj(json);
	open_json_object(NULL);
	print_uint(PRINT_ANY, "id", "job %u", 7);
	print_word("name", "a\"\\\n\x01");
	print_ms("timeout_ms", "timeout", 1500);
	print_ranks("ranks", 0xf0000007 | 1 << 9);
	print_ranks("none", 0);
	open_json_object("empty");
	close_json_object();
	print_bool(PRINT_JSON, "yes", NULL, true);
	print_text("\n");
	close_json_object();
	delete_json_obj();
}

TEST(print__text)
{
	json = 0;
	EXPECT_TEXT(printed(print_sample),
		    "job 7 name a\"\\\n\x01 timeout 1.5s ranks 0-2,9,28-31 none none\n");
}

TEST(print__json)
{
	json = 1;
	EXPECT_TEXT(printed(print_sample),
		    "[{\"id\":7,\"name\":\"a\\\"\\\\\\u000a\\u0001\",\"timeout_ms\":1500,\"ranks\":[0,1,2,9,28,29,30,31],\"none\":[],\"empty\":{},\"yes\":true}]\n");
}

static void print_nothing(void)
{
	new_json_obj(json);
	delete_json_obj();
}

TEST(print__empty)
{
	json = 1;
	EXPECT_TEXT(printed(print_nothing), "[]\n");
	json = 0;
	EXPECT_TEXT(printed(print_nothing), "");
}

TAP_MAIN()
