/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What an aggregator does with a packet.  Compiles for BPF and for user space;
 * no maps, no time, no I/O in here.
 *
 * sw_decide() is the table of Documentation/protocol.rst and changes nothing.
 * Whoever calls it holds the aggregator's lock, has checked the packet, does
 * what it says with the functions below it, in the order of the SW_* bits, and
 * gives the lock back.
 */
#ifndef _ATP_SWITCH_LOGIC_H
#define _ATP_SWITCH_LOGIC_H

#include "switch_lanes.h"

/* What is to be done with a gradient, in this order */
#define SW_EVICT	0x01	/* another fragment, abandoned: out */
#define SW_TAKE		0x02	/* it becomes the sum, if quota allows */
#define SW_ADD		0x04	/* the packet is added to the sum */
#define SW_MARK		0x08	/* the packet's mark is merged, nothing else */
#define SW_OUT		0x10	/* the packet gets the sum */
#define SW_EMPTY	0x20	/* the aggregator is emptied */
#define SW_COLLIDE	0x40	/* the packet gets ATP_F_COLLISION */
#define SW_FORWARD	0x80	/* it goes to the PS, else it ends here */
#define SW_WRONG	0x100	/* its checksum is wrong: nothing was done */

/* Flags that an aggregator keeps of what was merged */
#define SW_MERGED	(ATP_F_ECN | ATP_F_COLLISION | ATP_F_OVERFLOW)

static __always_inline bool sw_is(const struct sw_agg *a,
				  const struct sw_pkt *p)
{
	return a->bitmap && a->seq == p->seq && a->job == p->job &&
	       a->epoch == p->epoch;
}

/**
 * sw_decide() - what to do with a gradient
 * @a: its aggregator, locked
 * @p: the packet, checked
 * @pass: bitmap of the ranks of its job that pass here
 * @old: nothing was added to the aggregator for the time-out
 *
 * A fragment with a single worker never gets here: there is nothing to add.
 *
 * Return: SW_* bits
 */
static __always_inline __u32 sw_decide(const struct sw_agg *a,
				       const struct sw_pkt *p, __u32 pass,
				       bool old)
{
	__u32 plan = 0;

	if (!sw_is(a, p)) {
		bool takes = !(p->flags & (ATP_F_RESEND | ATP_F_RAW |
					   ATP_F_OVERFLOW));

		if (a->bitmap) {
			/* another job's only against quota: taken */
			if (!old || !(takes || a->job == p->job))
				return SW_COLLIDE | SW_FORWARD;
			plan = SW_EVICT;
		}
		return plan | (takes ? SW_TAKE : SW_FORWARD);
	}
	if (p->flags & ATP_F_RAW)
		return SW_EMPTY | SW_FORWARD;
	if (a->elements != p->elements || a->dtype != p->dtype ||
	    (a->flags ^ p->flags) & ATP_F_LAST)
		return SW_FORWARD;
	if (a->bitmap & p->bitmap) {
		plan = SW_MARK;
		if (p->flags & ATP_F_RESEND)
			plan |= SW_OUT | SW_EMPTY | SW_FORWARD;
		return plan;
	}
	plan = SW_ADD;
	if (!(pass & ~(a->bitmap | p->bitmap)))
		plan |= SW_OUT | SW_FORWARD;
	if (p->flags & ATP_F_RESEND)
		plan |= SW_OUT | SW_EMPTY | SW_FORWARD;
	return plan;
}

/* Does a parameter packet empty an aggregator? */
static __always_inline bool sw_frees(const struct sw_agg *a,
				     const struct sw_pkt *p, bool old)
{
	return a->bitmap && ((old && a->job == p->job) || sw_is(a, p));
}

/* @now in ticks, too */
static __always_inline bool sw_is_old(const struct sw_agg *a, __u64 now,
				      __u64 ticks)
{
	return (__s64)(now - a->stamp) > (__s64)ticks;
}

/* Congestion on the way of this packet, as a flag */
static __always_inline __u16 sw_mark(const struct sw_pkt *p)
{
	return (p->flags & ATP_F_ECN) | (p->ce ? ATP_F_ECN : 0);
}

/* SW_TAKE, all but the lanes */
static __always_inline void sw_take(struct sw_agg *a, const struct sw_pkt *p,
				    __u32 slot, __u64 now)
{
	a->slot = slot;
	a->job = p->job;
	a->epoch = p->epoch;
	a->seq = p->seq;
	a->bitmap = p->bitmap;
	a->flags = (p->flags & (SW_MERGED | ATP_F_LAST)) | sw_mark(p);
	a->elements = p->elements;
	a->cap = p->cap;
	a->dtype = p->dtype;
	a->stamp = now;
}

/* SW_ADD, all but the lanes */
static __always_inline void sw_add(struct sw_agg *a, const struct sw_pkt *p,
				   bool overflow, __u64 now)
{
	a->bitmap |= p->bitmap;
	a->flags |= (p->flags & SW_MERGED) | sw_mark(p) |
		    (overflow ? ATP_F_OVERFLOW : 0);
	if (a->cap > p->cap)
		a->cap = p->cap;
	a->stamp = now;
}

/* SW_OUT, all but the lanes */
static __always_inline void sw_out(const struct sw_agg *a, struct sw_pkt *p)
{
	p->bitmap = a->bitmap;
	p->flags |= a->flags & SW_MERGED;
	if (p->cap > a->cap)
		p->cap = a->cap;
}

/* What is true of everything that goes on */
static __always_inline void sw_pass_on(struct sw_pkt *p, __u32 cap)
{
	p->flags |= ATP_F_SWITCHED;
	if (p->cap > cap)
		p->cap = (__u16)cap;
}

/* The rank in a bitmap of one rank: how many bits are below it.  Arithmetic, as
 * each branch would have the verifier look at all that follows twice.
 */
static __always_inline __u32 sw_rank(__u32 bitmap)
{
	__u32 below = bitmap - 1;

	below -= below >> 1 & 0x55555555;
	below = (below & 0x33333333) + (below >> 2 & 0x33333333);
	below = (below + (below >> 4)) & 0x0f0f0f0f;
	return below * 0x01010101 >> 24;
}

/* A gradient is of exactly one worker of the job */
static __always_inline bool sw_bad_bitmap(const struct sw_pkt *p, __u32 full)
{
	return !p->bitmap || p->bitmap & (p->bitmap - 1) || p->bitmap & ~full;
}

/* So many runs before one are known to be over */
#define SW_RUNS			0x100

static __always_inline bool sw_is_before(__u64 run, __u32 epoch)
{
	return run && (__u32)run - epoch - 1 < SW_RUNS;
}

/*
 * Is an epoch one of an earlier run?  A PS counts its runs, from anywhere if
 * the job was added anew.
 */
static __always_inline bool sw_is_over(const struct sw_state *state,
				       __u32 epoch)
{
	return sw_is_before(state->run, epoch) ||
	       sw_is_before(state->left, epoch);
}

/**
 * sw_is_current() - may an epoch be that of the run that goes on?
 * @state: of its job
 * @epoch: of a gradient
 *
 * As long as the PS has said nothing, each may.  The last one before a leap
 * may, too, as who leaps need not be the PS.
 */
static __always_inline bool sw_is_current(const struct sw_state *state,
					  __u32 epoch)
{
	return !state->run || state->run == (SW_RUN | epoch) ||
	       state->left == (SW_RUN | epoch);
}

/* The PS speaks of a run; of an earlier one, in what comes late, or again. */
static __always_inline void sw_begin(struct sw_state *state, __u32 epoch)
{
	__u32 last = (__u32)state->run;

	/* mostly; nothing is written then that all CPUs share */
	if (state->run == (SW_RUN | epoch) || sw_is_over(state, epoch))
		return;
	if (state->run && epoch - last >= SW_RUNS)
		state->left = SW_RUN | last;
	state->run = SW_RUN | epoch;
}

/*
 * One more aggregator for the job?  All CPUs count in one place, so that the
 * quota is never exceeded.
 */
static __always_inline bool sw_quota_take(struct sw_state *state, __u32 quota)
{
	__u64 before = __sync_fetch_and_add(&state->occupied, 1);

	if (before >= quota) {
		__sync_fetch_and_add(&state->occupied, -1);
		return false;
	}
	if (before >= state->most)
		state->most = before + 1;
	return true;
}

static __always_inline void sw_quota_give(struct sw_state *state)
{
	__sync_fetch_and_add(&state->occupied, -1);
}

/**
 * sw_lock() - try to lock an aggregator
 * @a: the aggregator
 * @tries: how often
 *
 * The owner needs less than a microsecond, and for one that is sent on because
 * of a lock all workers send again: so it is worth some patience.
 */
static __always_inline bool sw_lock(struct sw_agg *a, int tries)
{
	int i;

#ifdef SW_PLANT_NO_LOCK		/* a test that must find out */
	return a->lock != SW_LOCK_USER;
#endif
	for (i = 0; i < tries; i++) {
		if (!__sync_val_compare_and_swap(&a->lock, SW_LOCK_FREE,
						 SW_LOCK_XDP))
			return true;
	}
	return false;
}

/* An exchange, since a plain store would let earlier ones be seen later */
static __always_inline void sw_unlock(struct sw_agg *a)
{
#ifdef __bpf__
	__sync_lock_test_and_set(&a->lock, SW_LOCK_FREE);
#else
	__atomic_store_n(&a->lock, SW_LOCK_FREE, __ATOMIC_RELEASE);
#endif
}

#endif /* _ATP_SWITCH_LOGIC_H */
