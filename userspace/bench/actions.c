// SPDX-License-Identifier: GPL-2.0
/* What can happen to a packet at the switch, and packets that it happens to. */
#include <linux/bpf.h>
#include <stddef.h>
#include <string.h>
#include "actions.h"

/* Counters; the first place is nobody's */
struct seen {
	uint64_t nowhere;
	struct sw_counters job;
	struct sw_others others;
};

#define JOB(counter)	offsetof(struct seen, job.counter)
#define OTHERS(counter)	offsetof(struct seen, others.counter)

const struct kind kinds[ACTIONS] = {
	[EMPTY]		= { "empty", 0, XDP_PASS },
	[OTHER]		= { "other", 0, XDP_PASS },
	[UNKNOWN]	= { "unknown", 0, XDP_PASS, OTHERS(unknown) },
	[CONTROL]	= { "control", 0, XDP_PASS, OTHERS(control) },
	[BEGIN]		= { "begin", 0, XDP_PASS, OTHERS(control) },
	[REFUSED]	= { "refused", 1, XDP_ABORTED, JOB(drop_csum) },
	[STRANGER]	= { "stranger", 0, XDP_ABORTED, JOB(drop_stranger) },
	[RAW]		= { "raw", 0, XDP_REDIRECT, JOB(raw) },
	[SINGLE]	= { "single", 0, XDP_REDIRECT, JOB(single) },
	[STALE]		= { "stale", 0, XDP_REDIRECT, JOB(stale) },
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
	[UNICAST]	= { "unicast", 3, XDP_REDIRECT, JOB(parameters) },
	[PARAMETER]	= { "parameter", 3, XDP_REDIRECT, JOB(multicast) },
	[COPY]		= { "copy", 0, XDP_PASS, JOB(copies) },
	[LEAVE]		= { "leave", 0, XDP_PASS },
	[PACKED]	= { "C, packed", 0, 0 },
	[VECTOR]	= { "C, vector", 0, 0 },
};

static struct t_job job = { .id = 1, .workers = WORKERS, .quota = 1 };
static struct t_job of_one = { .id = 2, .workers = 1, .quota = 1 };

void actions_open(void)
{
	c_open(1, ATP_FRAGMENT_MAX);
	c_add_job(&job);
	c_add_job(&of_one);
}

/* Is the sum the packet's payload in the end? */
static bool sends_sum(enum action action)
{
	return action == COMPLETE || action == RESENT || action == FLUSH;
}

/*
 * The packet of a rank.  The values are small enough for REPEAT additions.
 * What gets the sum as its payload must fit the checksum that is put back into
 * it: so everything is zero there.  No instruction's time depends on values.
 */
static uint32_t make(enum action action, uint32_t rank, int bytes,
		     uint8_t *frame)
{
	static struct f_pkt p;
	int i;

	c_gradient(&p, &job, rank, 0);
	p.elements = bytes / 4;
	for (i = 0; i < p.elements; i++)
		p.lane[i] = sends_sum(action) ? 0 : i * (i & 1 ? -1 : 1);
	if (action == SATURATE)
		p.lane[1] = INT32_MAX;
	return f_make(&p, frame);
}

/* Of a control packet of a worker the switch looks at the addresses only */
static uint32_t make_control(enum action action, uint8_t *frame)
{
	static struct f_pkt p;
	uint32_t len;

	if (action == BEGIN)
		return c_welcome(&job, 1, frame);
	c_gradient(&p, &job, 0, 0);
	p.elements = ATP_CTL_LEN / 4;
	len = f_make(&p, frame);
	frame[f_udp(false) + 8 + 1] = ATP_TYPE_PING;
	return len;
}

/* What differs from the packet that make() makes */
static void change(struct f_pkt *p, enum action action)
{
	uint16_t elements = p->elements;

	if (action == UNKNOWN)
		p->job = of_one.id + 1;
	if (action == STRANGER)
		t_addr(false, of_one.id, 0, p->src);
	if (action == SINGLE)
		c_gradient(p, &of_one, 0, 0);
	if (action == COLLISION || action == EVICT)
		p->seq = 1;
	if (action == RAW)
		p->flags |= ATP_F_RAW;
	if (action == DISAGREE)
		p->flags ^= ATP_F_LAST;
	if (action == RESENT || action == FLUSH)
		p->flags |= ATP_F_RESEND;
	if (action == DUPLICATE || action == FLUSH) {
		p->bitmap = 2;
		t_addr(false, job.id, 1, p->src);
	}
	if (action == UNICAST || action == PARAMETER || action == COPY)
		c_parameter(p, &job, 0, 0);
	if (action == PARAMETER || action == COPY)
		p->flags |= ATP_F_MCAST;
	p->elements = elements;
	p->index = 0;
}

/* The packet that is measured, of rank zero or the PS */
static uint32_t make_last(enum action action, int bytes, uint8_t *frame)
{
	static struct f_pkt p;
	uint32_t len;

	if (action == CONTROL || action == BEGIN)
		return make_control(action, frame);
	len = make(action, 0, bytes, frame);
	if (action == REFUSED) {
		frame[len / 2] ^= 0x10;
		return len;
	}
	if (!f_read(&p, frame, len))
		die("cannot read a packet");
	change(&p, action);
	len = f_make(&p, frame);
	if (action == OTHER)	/* to another port */
		frame[f_udp(false) + 2] ^= 0x10;
	return len;
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
		len = make(action, rank, bytes, frame);
		if (t_run(0, frame, len) != XDP_DROP)
			die("a packet before was not added");
	}
	/* an age that no boot has reached, and an aggregator somewhere else */
	if (action == EVICT)
		a->stamp = 0;
	if (action == LOCKED)
		a->lock = SW_LOCK_USER;
	if (action == QUOTA)
		state->occupied = job.quota;
	if (action == STALE)
		state->run = SW_RUN | 2;
	len = make_last(action, bytes, frame);
	memcpy(again->head, frame, sizeof(again->head));
	memcpy(again->agg, a, sizeof(again->agg));
	again->occupied = state->occupied;
	return len;
}

/* How often it has happened, as the switch counts it */
uint64_t action_count(enum action action)
{
	uint32_t slot = action == SINGLE ? of_one.id : AGAIN_SLOT;
	struct seen seen = {};

	if (sw_counters_get(&t_switch, slot, &seen.job) ||
	    sw_others_get(&t_switch, &seen.others))
		die(sw_error());
	return *(uint64_t *)((char *)&seen + kinds[action].counted);
}
