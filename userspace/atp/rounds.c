// SPDX-License-Identifier: GPL-2.0
/* Rounds of all-reduce: tensors, clocks, sums. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "rounds.h"

#define NS_PER_S	1000000000ULL
#define PERIOD		3

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* What all CPUs have worked so far: the kernel's part of a transport is done by
 * whichever it happens to interrupt.
 */
static uint64_t machine_ns(void)
{
	/* user nice system idle iowait irq softirq steal */
	uint64_t t[8] = { 0 }, ticks;
	FILE *f = fopen("/proc/stat", "r");

	if (!f)
		return 0;
	if (fscanf(f, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 " %" SCNu64, &t[0], &t[1], &t[2],
		   &t[3], &t[4], &t[5], &t[6]) != 7)
		memset(t, 0, sizeof(t));
	fclose(f);
	ticks = t[0] + t[1] + t[2] + t[5] + t[6];
	return ticks * (NS_PER_S / sysconf(_SC_CLK_TCK));
}

/*
 * Whole numbers from -1 to 1, whose sums are exact in every system and at every
 * scale.
 */
static float value(unsigned int rank, unsigned int round, size_t lane)
{
	return (float)((rank + round + lane) % PERIOD) - 1;
}

static void fill(const struct rounds *r, unsigned int round, float *tensor)
{
	size_t i;

	for (i = 0; i < r->bytes / sizeof(*tensor); i++)
		tensor[i] = value(r->rank, round, i);
}

static int compare(const struct rounds *r, unsigned int round,
		   const float *tensor)
{
	float sum[PERIOD] = { 0 };
	unsigned int rank;
	size_t i;

	for (rank = 0; rank < r->workers; rank++)
		for (i = 0; i < PERIOD; i++)
			sum[i] += value(rank, round, i);
	for (i = 0; i < r->bytes / sizeof(*tensor); i++) {
		if (tensor[i] == sum[i % PERIOD])
			continue;
		fprintf(stderr,
			"Error: %s, round %u: value %zu is %g, not %g.\n",
			r->name, round, i, tensor[i], sum[i % PERIOD]);
		return -1;
	}
	return 0;
}

/**
 * struct progress - what standard error says once per second
 * @since: time at which it said something
 * @rounds: done since
 */
struct progress {
	uint64_t	since;
	unsigned int	rounds;
};

static void tell(const struct rounds *r, unsigned int round,
		 struct progress *p)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), passed = now - p->since;

	p->rounds++;
	if (passed < NS_PER_S && round < r->count)
		return;
	fprintf(stderr, "%s: round %u of %u, %.1f MB/s\n", r->name, round,
		r->count, 1e3 * r->bytes * p->rounds / passed);
	p->since = now;
	p->rounds = 0;
}

static int one_round(struct rounds *r, unsigned int round, float *tensor)
{
	uint64_t wall, host, own;

	fill(r, round, tensor);
	host = machine_ns();
	own = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	wall = now_ns(CLOCK_MONOTONIC);
	if (r->allreduce(r->arg, tensor, r->bytes / sizeof(*tensor)))
		return -1;
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	/* the first finds peers, memory and windows as they are at a start */
	if (round) {
		r->ns[round - 1] = wall ? wall : 1;
		r->own_ns += now_ns(CLOCK_PROCESS_CPUTIME_ID) - own;
		r->host_ns += machine_ns() - host;
	}
	return compare(r, round, tensor);
}

int rounds_run(struct rounds *r)
{
	struct progress progress = { .since = now_ns(CLOCK_MONOTONIC) };
	float *tensor = malloc(r->bytes);
	unsigned int round;
	int err = 0;

	r->ns = calloc(r->count, sizeof(*r->ns));
	r->own_ns = 0;
	r->host_ns = 0;
	if (!tensor || !r->ns) {
		fprintf(stderr, "Error: no memory for %zu bytes.\n", r->bytes);
		free(tensor);
		return -1;
	}
	for (round = 0; round <= r->count && !err; round++) {
		err = one_round(r, round, tensor);
		if (!err && round)
			tell(r, round, &progress);
	}
	free(tensor);
	return err;
}

void rounds_free(struct rounds *r)
{
	free(r->ns);
	r->ns = NULL;
}

int rounds_write(const struct rounds *r)
{
	unsigned int i;

	for (i = 0; i < r->count; i++)
		printf("%" PRIu64 "\n", r->ns[i]);
	printf("%" PRIu64 " %" PRIu64 "\n", r->host_ns, r->own_ns);
	return fflush(stdout) ? -1 : 0;
}

int rounds_read(struct rounds *r, int fd)
{
	FILE *f = fdopen(fd, "r");
	unsigned int i;
	int err = 0;

	r->ns = calloc(r->count, sizeof(*r->ns));
	if (!f || !r->ns)
		err = -1;
	for (i = 0; i < r->count && !err; i++)
		err = fscanf(f, "%" SCNu64, &r->ns[i]) == 1 && r->ns[i] ? 0 :
									  -1;
	if (!err && fscanf(f, "%" SCNu64 " %" SCNu64, &r->host_ns,
			   &r->own_ns) != 2)
		err = -1;
	if (f)
		fclose(f);
	return err;
}
