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
	UNKNOWN,
	CONTROL,
	BEGIN,
	REFUSED,
	STRANGER,
	RAW,			/* sent on as it is */
	SINGLE,
	STALE,
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
	COPY,
	LEAVE,
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
 */
struct kind {
	const char *name;
	uint32_t before;
	uint32_t verdict;
	size_t	counted;
};

extern const struct kind kinds[ACTIONS];

void actions_open(void);
uint32_t action_prepare(enum action action, int bytes, uint8_t *frame,
			struct again *again);
uint64_t action_count(enum action action);
void die(const char *what);

#endif /* _BENCH_ACTIONS_H */
