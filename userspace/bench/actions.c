// SPDX-License-Identifier: GPL-2.0
/* What can happen to a packet at the switch, and how one sees that it has. */
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include <bpf/bpf.h>
#include "actions.h"

/* Counters; the first place is nobody's */
struct seen {
	uint64_t nowhere;
	struct sw_counters job;
	struct sw_others others;
	struct sw_port port;
};

#define JOB(counter)	offsetof(struct seen, job.counter)
#define OTHERS(counter)	offsetof(struct seen, others.counter)
#define MARKS		offsetof(struct seen, port.marked)

/* Ports: of all workers, of the PS, and one whose link is always busy */
#define WORKER_PORT	0
#define BUSY		1
#define PS_PORT		2

const struct kind kinds[ACTIONS] = {
	[EMPTY]		= { "empty", 0, XDP_PASS },
	[OTHER]		= { "other", 0, XDP_PASS },
	[VLAN]		= { "vlan", 0, XDP_PASS },
	[UNKNOWN]	= { "unknown", 0, XDP_PASS, OTHERS(unknown) },
	[TRUNCATED]	= { "truncated", 0, XDP_PASS, OTHERS(truncated) },
	[VERSION]	= { "version", 0, XDP_PASS, OTHERS(control) },
	[CONTROL]	= { "control", 0, XDP_PASS, OTHERS(control) },
	[BEGIN]		= { "begin", 0, XDP_PASS, OTHERS(control), PS_PORT },
	[OPTIONS]	= { "options", 0, XDP_ABORTED, OTHERS(options) },
	[TAGGED]	= { "tagged", 0, XDP_ABORTED, OTHERS(tagged) },
	[LENGTH]	= { "length", 0, XDP_ABORTED, JOB(drop_length) },
	[NO_SUM]	= { "no sum", 0, XDP_ABORTED, JOB(drop_csum_none) },
	[PARTIAL]	= { "partial", 1, XDP_ABORTED, JOB(drop_csum_partial) },
	[REFUSED]	= { "refused", 1, XDP_ABORTED, JOB(drop_csum) },
	[HEADER]	= { "header", 0, XDP_ABORTED, JOB(drop_header) },
	[BITMAP]	= { "bitmap", 0, XDP_ABORTED, JOB(drop_bitmap) },
	[STRANGER]	= { "stranger", 0, XDP_ABORTED, JOB(drop_stranger) },
	[PORT]		= { "port", 0, XDP_ABORTED, JOB(drop_port), BUSY },
	[MISMATCH]	= { "mismatch", 0, XDP_PASS, JOB(mismatch) },
	[NO_TTL]	= { "ttl", 0, XDP_PASS, JOB(ttl) },
	[RAW]		= { "raw", 0, XDP_REDIRECT, JOB(raw) },
	[ROUTED]	= { "routed", 0, XDP_REDIRECT, JOB(raw) },
	[SINGLE]	= { "single", 0, XDP_REDIRECT, JOB(single) },
	[STALE]		= { "stale", 0, XDP_REDIRECT, JOB(stale) },
	[PASSED]	= { "passed", 0, XDP_REDIRECT, JOB(resend_passed) },
	[DISAGREE]	= { "disagree", 1, XDP_REDIRECT, JOB(disagree) },
	[LOCKED]	= { "locked", 0, XDP_REDIRECT, JOB(collision_locked) },
	[COLLISION]	= { "collision", 1, XDP_REDIRECT, JOB(collision_busy) },
	[QUOTA]		= { "quota", 0, XDP_REDIRECT, JOB(collision_quota) },
	[DUPLICATE]	= { "duplicate", 1, XDP_DROP, JOB(duplicate) },
	[ALLOCATE]	= { "allocate", 0, XDP_DROP, JOB(allocated) },
	[EVICT]		= { "evict", 1, XDP_DROP, JOB(timeouts) },
	[AGGREGATE]	= { "aggregate", 1, XDP_DROP, JOB(aggregated) },
	[SATURATE]	= { "saturate", 2, XDP_DROP, JOB(overflow) },
	[COMPLETE]	= { "complete", 3, XDP_REDIRECT, JOB(completed) },
	[RESENT]	= { "resent", 1, XDP_REDIRECT, JOB(resend_added) },
	[FLUSH]		= { "flush", 1, XDP_REDIRECT, JOB(resend_flushed) },
	[UNICAST]	= { "unicast", 3, XDP_REDIRECT, JOB(parameters),
			    PS_PORT },
	[PARAMETER]	= { "parameter", 3, XDP_REDIRECT, JOB(multicast),
			    PS_PORT },
	[KEPT]		= { "kept", 3, XDP_REDIRECT, JOB(kept), PS_PORT },
	[COPY]		= { "copy", 0, XDP_PASS, JOB(copies) },
	[NO_HOP]	= { "no hop", 0, XDP_ABORTED, JOB(drop_out) },
	[GONE]		= { "gone", 0, XDP_ABORTED, OTHERS(gone) },
	[LEAVE]		= { "leave", 0, XDP_PASS },
	[MARKED]	= { "marked", 0, XDP_PASS, MARKS, BUSY },
	[PACKED]	= { "C, packed", 0, 0 },
	[VECTOR]	= { "C, vector", 0, 0 },
};

const struct t_job bench_job = { .id = 1, .workers = WORKERS, .quota = 1,
				 .ps_port = PS_PORT };
const struct t_job bench_job_of_one = { .id = 2, .workers = 1, .quota = 1,
					.ps_port = PS_PORT };

void actions_open(void)
{
	c_open(1, ATP_FRAGMENT_MAX);
	c_add_job(&bench_job);
	c_add_job(&bench_job_of_one);
	/* a port that is never busy marks nothing */
	if (sw_port_rate(&t_switch, t_ifindex[WORKER_PORT], 1000000, 0) ||
	    sw_port_rate(&t_switch, t_ifindex[PS_PORT], 1000000, 0))
		die(sw_error());
}

/* No packet of a run finds the phantom queue empty */
static void keep_busy(void)
{
	struct sw_port port;
	uint32_t place;

	if (sw_port_rate(&t_switch, t_ifindex[BUSY], 1, 1) ||
	    sw_port_find(&t_switch, t_ifindex[BUSY], &port) ||
	    bpf_map_lookup_elem(t_switch.map[SW_MAP_PORT_INFO],
				&t_ifindex[BUSY], &place))
		die(sw_error());
	/* for longer than any machine has run, or will */
	port.clear = INT64_MAX / 2;
	if (bpf_map_update_elem(t_switch.map[SW_MAP_PORT_PLACES], &place,
				&port, BPF_ANY))
		die("port");
}

/**
 * action_prepare() - bring aggregator and packet to where the run begins
 * @action: what is to happen
 * @bytes: of payload; control packets have a length of their own
 * @frame: filled in
 * @again: filled in, for again.bpf.c
 *
 * Return: the frame's length
 */
uint32_t action_prepare(enum action action, int bytes, uint8_t *frame,
			struct again *again)
{
	struct sw_state *state = sw_state_get(&t_switch, AGAIN_SLOT);
	struct sw_agg *a = t_agg(0);
	uint32_t rank, len;

	memset(a, 0, sizeof(*a) + bytes);
	memset(state, 0, sizeof(*state));
	for (rank = 1; rank <= kinds[action].before; rank++) {
		len = packet_of(action, rank, bytes, frame);
		if (t_run(0, frame, len) != XDP_DROP)
			die("a packet before was not added");
	}
	/* an age that no boot has reached, and an aggregator somewhere else */
	if (action == EVICT)
		a->stamp = 0;
	if (action == LOCKED || action == KEPT)
		a->lock = SW_LOCK_USER;
	if (action == QUOTA)
		state->occupied = bench_job.quota;
	if (action == STALE)
		state->run = SW_RUN | 2;
	if (action == MARKED)
		keep_busy();
	len = packet_last(action, bytes, frame);
	memcpy(again->head, frame, sizeof(again->head));
	memcpy(again->agg, a, sizeof(again->agg));
	again->occupied = state->occupied;
	return len;
}

/* How often it has happened, as the switch counts it */
uint64_t action_count(enum action action)
{
	uint32_t slot = action == SINGLE ? bench_job_of_one.id : AGAIN_SLOT;
	struct seen seen = {};

	if (sw_counters_get(&t_switch, slot, &seen.job) ||
	    sw_others_get(&t_switch, &seen.others) ||
	    sw_port_find(&t_switch, t_ifindex[BUSY], &seen.port))
		die(sw_error());
	return *(uint64_t *)((char *)&seen + kinds[action].counted);
}
