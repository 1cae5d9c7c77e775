// SPDX-License-Identifier: GPL-2.0
/* What several objects print. */
#include <linux/atp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "addr.h"
#include "print.h"
#include "reply.h"
#include "units.h"
#include "utils.h"

static const char * const reasons[] = {
	[ATP_REASON_NONE] = "none",
	[ATP_REASON_LEFT] = "left",
	[ATP_REASON_SILENT] = "silent",
	[ATP_REASON_REJOIN] = "rejoin",
	[ATP_REASON_DISAGREE] = "disagree",
	[ATP_REASON_EPOCH] = "epoch",
	[ATP_REASON_MISMATCH] = "mismatch",
	[ATP_REASON_REMOVED] = "removed",
	[ATP_REASON_MTU] = "mtu",
	[ATP_REASON_LATE] = "late",
	[ATP_REASON_SERVER] = "server",
	[ATP_REASON_PS_SILENT] = "ps-silent",
	[ATP_REASON_UNANSWERED] = "unanswered",
};

static const char * const states[] = {
	[ATP_UNBOUND] = "unbound",
	[ATP_BOUND] = "bound",
	[ATP_JOINING] = "joining",
	[ATP_JOINED] = "joined",
	[ATP_FAILED] = "failed",
};

const char *sock_state_text(unsigned int state)
{
	return state < ARRAY_SIZE(states) ? states[state] : "unknown";
}

void print_text(const char *text)
{
	print_string(PRINT_FP, NULL, "%s", text);
}

static void print_name(const char *name)
{
	print_string(PRINT_FP, NULL, " %s ", name);
}

void print_field(const char *name, unsigned int value)
{
	print_name(name);
	print_uint(PRINT_ANY, name, "%u", value);
}

void print_field64(const char *name, uint64_t value)
{
	print_name(name);
	print_u64(PRINT_ANY, name, "%" PRIu64, value);
}

void print_word(const char *name, const char *value)
{
	print_name(name);
	print_string(PRINT_ANY, name, "%s", value);
}

void print_addr(const char *name, const struct in6_addr *addr)
{
	char buf[INET6_ADDRSTRLEN];

	print_word(name, addr_text(addr, buf));
}

void print_host(const struct in6_addr *addr)
{
	char buf[INET6_ADDRSTRLEN];

	print_string(PRINT_ANY, "addr", " %s", addr_text(addr, buf));
}

void print_us(const char *key, const char *name, unsigned int us)
{
	char buf[DURATION_LEN];

	print_name(name);
	print_string(PRINT_FP, NULL, "%s", duration_text(us, buf));
	print_uint(PRINT_JSON, key, NULL, us);
}

void print_ms(const char *key, const char *name, unsigned int ms)
{
	char buf[DURATION_LEN];

	print_name(name);
	print_string(PRINT_FP, NULL, "%s",
		     duration_text((uint64_t)ms * 1000, buf));
	print_uint(PRINT_JSON, key, NULL, ms);
}

static void print_ranks_json(const char *name, uint32_t ranks)
{
	unsigned int rank;

	open_json_array(PRINT_JSON, name);
	for (rank = 0; rank < ATP_MAX_WORKERS; rank++)
		if (ranks >> rank & 1)
			print_uint(PRINT_JSON, NULL, NULL, rank);
	close_json_array(PRINT_JSON, NULL);
}

const char *ranks_text(uint32_t ranks, char buf[RANKS_LEN])
{
	unsigned int first, last;
	const char *comma = "";
	int at = 0;

	for (first = 0; first < ATP_MAX_WORKERS; first = last + 1) {
		last = first;
		if (!(ranks >> first & 1))
			continue;
		while (last + 1 < ATP_MAX_WORKERS && ranks >> (last + 1) & 1)
			last++;
		at += sprintf(buf + at, "%s%u", comma, first);
		if (last > first)
			at += sprintf(buf + at, "-%u", last);
		comma = ",";
	}
	if (!at)
		strcpy(buf, "none");
	return buf;
}

void print_ranks(const char *name, uint32_t ranks)
{
	char buf[RANKS_LEN];

	if (is_json_context())
		print_ranks_json(name, ranks);
	else
		printf(" %s %s", name, ranks_text(ranks, buf));
}

void print_counter(const char *name, uint64_t value, int indent)
{
	print_u64(PRINT_JSON, name, NULL, value);
	if (!is_json_context())
		printf("%*s%s %" PRIu64 "\n", indent, "", name, value);
}

static void print_one_counter(const char *name, uint64_t value, void *arg)
{
	print_counter(name, value, *(int *)arg);
}

void print_counters(const struct nlattr *counters, int indent)
{
	open_json_object("counters");
	counters_walk(counters, print_one_counter, &indent);
	close_json_object();
}

void print_reason(unsigned int reason)
{
	if (reason < ARRAY_SIZE(reasons))
		print_word("reason", reasons[reason]);
	else
		print_field("reason", reason);
}
