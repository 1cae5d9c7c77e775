/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Benchmarks on real hosts.
 */
#ifndef _ATP_PERF_H
#define _ATP_PERF_H

#include <stddef.h>
#include <stdint.h>
#include "reply.h"
#include "rounds.h"

/**
 * struct perf - what was asked for
 * @job: its hosts
 * @rank: own rank
 * @bytes: of a tensor
 * @rounds: number of rounds
 */
struct perf {
	const struct job_reply *job;
	unsigned int	rank;
	size_t		bytes;
	unsigned int	rounds;
};

/*
 * One system does all rounds: ATP, or a program of another's.  Each returns 0,
 * or -1 after it was told why not.
 */
int perf_atp(const struct perf *p, struct rounds *r);
int perf_gloo(const struct perf *p, struct rounds *r);
int perf_mpi(const struct perf *p, struct rounds *r);

#endif /* _ATP_PERF_H */
