// SPDX-License-Identifier: GPL-2.0
/* Command lines: the part of iproute2's that the objects use. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "utils.h"

/* What ip(8) exits with */
#define STATUS_USAGE	255

int preferred_family;
int show_stats;
int json;
int pretty;
int timestamp;
int timestamp_short;

void incomplete_command(void)
{
	fprintf(stderr, "Something is missing at the end; try \"help\".\n");
	exit(STATUS_USAGE);
}

void missarg(const char *key)
{
	fprintf(stderr, "Error: \"%s\" is required.\n", key);
	exit(STATUS_USAGE);
}

void invarg(const char *msg, const char *arg)
{
	fprintf(stderr, "Error: \"%s\": %s\n", arg, msg);
	exit(STATUS_USAGE);
}

void duparg(const char *key, const char *arg)
{
	fprintf(stderr, "Error: \"%s\" is given twice, the second is \"%s\".\n",
		key, arg);
	exit(STATUS_USAGE);
}

bool matches(const char *prefix, const char *string)
{
	return !*prefix || strncmp(prefix, string, strlen(prefix));
}

int get_u32(__u32 *val, const char *arg, int base)
{
	unsigned long long v;
	char *end;

	if (!arg || !*arg || *arg == '-')
		return -1;
	errno = 0;
	v = strtoull(arg, &end, base);
	if (errno || *end || v > UINT32_MAX)
		return -1;
	*val = v;
	return 0;
}
