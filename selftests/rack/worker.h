/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ATP_SELFTESTS_WORKER_H
#define _ATP_SELFTESTS_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "oracle.h"

#define MAX_AT		8
#define ANY_RANKS	(~0ULL)

/**
 * struct trigger - a command at a moment of the run
 * @chunk: after the first local rank has pulled so many chunks
 * @command: for the shell
 */
struct trigger {
	uint32_t chunk;
	const char *command;
};

/**
 * struct options - what the ranks are to do, see usage()
 *
 * The parent fills it in before there are other processes.
 */
struct options {
	uint32_t job;
	uint32_t workers;
	uint32_t first;
	uint32_t last;
	uint32_t chunks;
	uint32_t runs;
	uint32_t lanes;
	uint32_t depth;
	uint32_t scale;
	uint32_t limit;
	uint32_t die_rank;
	uint32_t die_chunk;
	uint64_t seed;
	enum values values;
	const char *dtype;
	const char *netns;
	bool tails;
	bool blocking;
	bool join_option;
	bool dies;
	int expect_errno;
	uint64_t expect_ranks;
	unsigned int triggers;
	struct trigger at[MAX_AT];
};

extern struct options opt;

/* Fill it in, or say what is wrong and exit. */
void parse(int argc, char **argv);

#endif /* _ATP_SELFTESTS_WORKER_H */
