// SPDX-License-Identifier: GPL-2.0
/* The packets that everybody refuses (../vectors/packets), at a PS. */
#include "../vectors/vectors.h"
#include "ps_fixture.h"

#define FILE_NAME	"../vectors/packets"

static const char *reason_name(enum atp_drop drop)
{
	static const char *const names[] = {
		"ok",
#define X(name, string, help) string,
		ATP_DROP_REASONS(X)
#undef X
	};

	return names[drop];
}

/* The epoch and the sequence number are relative. */
static void add_to(u8 *at, u32 n)
{
	put_unaligned_be32(get_unaligned_be32(at) + n, at);
}

TEST(each_for_its_reason)
{
	bool met[ATP_DROP_MAX] = { false };
	FILE *f = fopen(FILE_NAME, "r");
	struct vector v;
	u32 n = 0, reasons = 0, i;
	enum atp_drop drop;
	u8 *data;

	ASSERT_TRUE(f);
	while (vector_read(f, &v)) {
		make_ps(2, 350, 256);
		params.job = 7;
		ps.params.job = 7;
		/* both workers have one address, as the VM's do */
		address[1] = 0;
		start_run();
		/* at the exact length, for the sanitizer */
		data = malloc(v.len + 1);
		memcpy(data + 1, v.data, v.len);
		if (v.len >= ATP_HDR_LEN) {
			add_to(data + 1 + 8, ps.epoch);
			add_to(data + 1 + 12, ps.frontier);
		}
		drop = deliver(data + 1, v.len, false, ranks_at(0));
		if (strcmp(reason_name(drop), v.host))
			tap_fail(__FILE__, __LINE__, "%s: %s, not %s", v.name,
				 reason_name(drop), v.host);
		EXPECT_TRUE(ps.running);
		EXPECT_EQ(ps.frontier, 0);
		EXPECT_EQ(ps.cells[0].state, ATP_CELL_EMPTY);
		met[drop] = true;
		free(data);
		n++;
	}
	fclose(f);
	for (i = ATP_DROP_SHORT; i <= ATP_DROP_ELEMENTS; i++)
		reasons += met[i] || i == ATP_DROP_CHECKSUM ||
			   i == ATP_DROP_FRAGMENT || i == ATP_DROP_OPTIONS;
	/* every reason that the parser has; IP and UDP are not its business */
	EXPECT_EQ(reasons, ATP_DROP_ELEMENTS);
	EXPECT_GT(n, 50);
	printf("# %u packets\n", n);
}

TAP_MAIN()
