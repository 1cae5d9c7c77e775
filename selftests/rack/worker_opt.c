// SPDX-License-Identifier: GPL-2.0
/* The options of worker.c. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/atp.h>

#include "worker.h"

struct options opt = {
	.job = 7,
	.workers = 2,
	.last = UINT32_MAX,
	.chunks = 8,
	.runs = 1,
	.lanes = 8192,
	.depth = 4,
	.scale = 100000000,
	.limit = 60,
	.seed = 1,
	.dtype = "float32",
	.netns = "atp-w",
	.expect_ranks = ANY_RANKS,
};

static void __attribute__((noreturn)) usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: worker [OPTION]...\n"
		"  --job ID\n"
		"  --workers W       ranks of the job\n"
		"  --ranks A-B       those that run here (default: all)\n"
		"  --netns PREFIX    rank R runs in PREFIX followed by R\n"
		"  --chunks N        per run\n"
		"  --runs N          join so many times\n"
		"  --lanes N         per chunk; with --tails, at most\n"
		"  --tails           chunks of all lengths\n"
		"  --depth N         chunks in flight\n"
		"  --dtype T         float32, int32, mixed\n"
		"  --values V        plain, edge, wild\n"
		"  --scale N, --seed N\n"
		"  --blocking        instead of poll()\n"
		"  --join-option     instead of connect()\n"
		"  --at CHUNK:CMD    when the first rank has pulled CHUNK\n"
		"                    chunks it waits until the shell ran CMD\n"
		"  --die RANK:CHUNK  that rank exits then\n"
		"  --expect ERROR[:RANKS]  how the run ends, and who is to\n"
		"                    blame (a mask); ERROR is a number\n"
		"  --limit SECONDS   of silence\n");
	exit(status);
}

static uint64_t number(const char *text, char end, char **rest)
{
	char *stop;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &stop, 0);
	if (stop == text || errno || (*stop && *stop != end)) {
		fprintf(stderr, "worker: not a number: %s\n", text);
		exit(2);
	}
	if (rest)
		*rest = *stop ? stop + 1 : NULL;
	return value;
}

static void word(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (!strcmp(text, *words))
			return;
	fprintf(stderr, "worker: what is %s?\n", text);
	exit(2);
}

static void parse_values(const char *text)
{
	static const char * const kinds[] = { "plain", "edge", "wild", NULL };
	enum values v;

	word(text, kinds);
	for (v = VALUES_PLAIN; strcmp(text, kinds[v]); v++)
		;
	opt.values = v;
}

static void parse_at(const char *text)
{
	struct trigger *t = &opt.at[opt.triggers++];
	char *rest;

	if (opt.triggers > MAX_AT)
		usage(2);
	t->chunk = number(text, ':', &rest);
	t->command = rest;
	if (!rest)
		usage(2);
}

void parse(int argc, char **argv)
{
	static const char * const dtypes[] = {
		"float32", "int32", "mixed", NULL
	};
	static const struct option longs[] = {
		{ "job", required_argument, NULL, 'j' },
		{ "workers", required_argument, NULL, 'w' },
		{ "ranks", required_argument, NULL, 'r' },
		{ "netns", required_argument, NULL, 'n' },
		{ "chunks", required_argument, NULL, 'c' },
		{ "runs", required_argument, NULL, 'R' },
		{ "lanes", required_argument, NULL, 'l' },
		{ "tails", no_argument, NULL, 't' },
		{ "depth", required_argument, NULL, 'd' },
		{ "dtype", required_argument, NULL, 'D' },
		{ "values", required_argument, NULL, 'v' },
		{ "scale", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'S' },
		{ "blocking", no_argument, NULL, 'b' },
		{ "join-option", no_argument, NULL, 'o' },
		{ "at", required_argument, NULL, 'a' },
		{ "die", required_argument, NULL, 'x' },
		{ "expect", required_argument, NULL, 'e' },
		{ "limit", required_argument, NULL, 'L' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	char *rest;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'j':
			opt.job = number(optarg, 0, NULL);
			break;
		case 'w':
			opt.workers = number(optarg, 0, NULL);
			break;
		case 'r':
			opt.first = number(optarg, '-', &rest);
			opt.last = rest ? number(rest, 0, NULL) : opt.first;
			break;
		case 'n':
			opt.netns = optarg;
			break;
		case 'c':
			opt.chunks = number(optarg, 0, NULL);
			break;
		case 'R':
			opt.runs = number(optarg, 0, NULL);
			break;
		case 'l':
			opt.lanes = number(optarg, 0, NULL);
			break;
		case 't':
			opt.tails = true;
			break;
		case 'd':
			opt.depth = number(optarg, 0, NULL);
			break;
		case 'D':
			word(optarg, dtypes);
			opt.dtype = optarg;
			break;
		case 'v':
			parse_values(optarg);
			break;
		case 's':
			opt.scale = number(optarg, 0, NULL);
			break;
		case 'S':
			opt.seed = number(optarg, 0, NULL);
			break;
		case 'b':
			opt.blocking = true;
			break;
		case 'o':
			opt.join_option = true;
			break;
		case 'a':
			parse_at(optarg);
			break;
		case 'x':
			opt.die_rank = number(optarg, ':', &rest);
			if (!rest)
				usage(2);
			opt.die_chunk = number(rest, 0, NULL);
			opt.dies = true;
			break;
		case 'e':
			opt.expect_errno = number(optarg, ':', &rest);
			if (rest)
				opt.expect_ranks = number(rest, 0, NULL);
			break;
		case 'L':
			opt.limit = number(optarg, 0, NULL);
			break;
		case 'h':
			usage(0);
		default:
			usage(2);
		}
	}
	if (opt.last == UINT32_MAX)
		opt.last = opt.workers - 1;
	if (optind < argc || !opt.workers || opt.workers > ATP_MAX_WORKERS ||
	    opt.last < opt.first || opt.last >= ATP_MAX_WORKERS ||
	    !opt.lanes || !opt.scale || !opt.depth)
		usage(2);
}
