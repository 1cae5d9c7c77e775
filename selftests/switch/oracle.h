/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a switch has to do, written a second time, from the protocol's text and
 * without looking at the first: sums are 64-bit numbers, clamped, per lane.
 */
#ifndef _SWITCH_ORACLE_H
#define _SWITCH_ORACLE_H

#include "frame.h"
#include "target.h"

enum o_fate {
	O_REFUSED,
	O_TAKEN,
	O_TO_PS,
	O_TO_WORKER,
	O_TO_ALL,
	O_TO_KERNEL,
};

/**
 * struct o_cell - an aggregator
 * @used: it holds something
 * @old: abandoned
 * @job: whose
 * @epoch: run
 * @seq: fragment
 * @in: ranks that are in
 * @flags: ECN, COLLISION, OVERFLOW, LAST
 * @elements: lanes
 * @dtype: type
 * @cap: least cap
 * @sum: lanes
 */
struct o_cell {
	bool	used;
	bool	old;
	uint32_t job;
	uint32_t epoch;
	uint32_t seq;
	uint32_t in;
	uint16_t flags;
	uint16_t elements;
	uint8_t	dtype;
	uint16_t cap;
	int64_t	sum[F_MAX_LANES];
};

void o_open(uint32_t aggregators, uint32_t payload);
void o_add_job(const struct t_job *job);
enum o_fate o_run(int port, struct f_pkt *p);
void o_control(int port, const uint8_t *frame, uint32_t len);
struct o_cell *o_cell(uint32_t index);
uint32_t o_occupied(uint32_t id);
const struct t_job *o_job(uint32_t id);

#endif /* _SWITCH_ORACLE_H */
