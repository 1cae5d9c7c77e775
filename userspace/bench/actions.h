/* SPDX-License-Identifier: GPL-2.0 */
/* What can happen to a packet at the switch, and packets that it happens to. */
#ifndef _BENCH_ACTIONS_H
#define _BENCH_ACTIONS_H

#include "../../selftests/switch/check.h"
#include "../../selftests/switch/target_bpf.h"
#include "again.h"

#define WORKERS		4

enum action {
	EMPTY,			/* the harness alone */
	OTHER,			/* left to the kernel */
	VLAN,
	UNKNOWN,
	TRUNCATED,
	VERSION,
	CONTROL,
	BEGIN,
	OPTIONS,		/* dropped */
	TAGGED,
	LENGTH,
	NO_SUM,
	PARTIAL,
	REFUSED,
	HEADER,
	BITMAP,
	STRANGER,
	PORT,
	MISMATCH,		/* left to the kernel, of a job */
	NO_TTL,			/* and to be routed */
	RAW,			/* sent on as it is */
	ROUTED,
	SINGLE,
	STALE,
	PASSED,
	DISAGREE,
	LOCKED,
	COLLISION,
	QUOTA,
	DUPLICATE,
	ALLOCATE,
	EVICT,
	AGGREGATE,
	SATURATE,
	COMPLETE,
	RESENT,
	FLUSH,
	UNICAST,
	PARAMETER,
	KEPT,
	COPY,			/* where packets leave */
	NO_HOP,			/* for a copy */
	GONE,
	LEAVE,
	MARKED,
	PROGRAMS,
	PACKED = PROGRAMS,	/* and the loops in C */
	VECTOR,
	ACTIONS,
};

/**
 * struct kind - what happens to the packet that is measured
 * @name: as it is shown
 * @before: ranks, from one on, whose values the aggregator holds already
 * @verdict: what the program then says
 * @counted: where in struct seen it is counted; zero if nowhere
 * @port: at which it comes in, or leaves
 */
struct kind {
	const char *name;
	uint32_t before;
	uint32_t verdict;
	size_t	counted;
	int	port;
};

extern const struct kind kinds[ACTIONS];
extern const struct t_job bench_job, bench_job_of_one;

uint32_t packet_of(enum action action, uint32_t rank, int bytes,
		   uint8_t *frame);
uint32_t packet_last(enum action action, int bytes, uint8_t *frame);
void actions_open(void);
uint32_t action_prepare(enum action action, int bytes, uint8_t *frame,
			struct again *again);
uint64_t action_count(enum action action);
void die(const char *what);

#endif /* _BENCH_ACTIONS_H */
