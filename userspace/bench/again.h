/* SPDX-License-Identifier: GPL-2.0 */
/* What the switch's benchmark and its program share. */
#ifndef _BENCH_AGAIN_H
#define _BENCH_AGAIN_H

#include "switch_types.h"

/* 64-bit words of a frame that hold all headers over IPv4 */
#define AGAIN_HEAD	10
/* 64-bit words of an aggregator before its lanes */
#define AGAIN_AGG	((int)sizeof(struct sw_agg) / 8)
/* What a tail call leads to */
#define AGAIN_SWITCH	0
#define AGAIN_NOTHING	1
#define AGAIN_COPY	2
#define AGAIN_PROGS	3
/* A verdict that the switch does not have */
#define AGAIN_FAILED	(-1)
/* Slot of the first job of a switch */
#define AGAIN_SLOT	1

/**
 * struct again - what every run begins with
 * @head: first bytes of the frame
 * @agg: the aggregator, but for its lanes
 * @occupied: aggregators that the job has
 */
struct again {
	__u64	head[AGAIN_HEAD];
	__u64	agg[AGAIN_AGG];
	__u64	occupied;
};

#endif /* _BENCH_AGAIN_H */
