/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Aggregators: a gradient is added, a sum goes out, a parameter packet empties.
 *
 * The functions that touch lanes are global: the verifier looks at each of them
 * once, whatever leads to it.
 */
#ifndef _ATP_SWITCH_AGGREGATE_H
#define _ATP_SWITCH_AGGREGATE_H

#include "switch_logic.h"
#include "switch_lookup.h"

/* How often to try for the lock of an aggregator */
#define SW_TRIES		512

/* So many aggregators are looked at when a job's quota is used up */
#define SW_SEARCH		4

/* Where the payload begins; zero if that is nowhere.  A limit, as the verifier
 * would follow two values apart.
 */
static __always_inline void *sw_lanes_at(struct xdp_md *ctx, __u32 l4)
{
	if (l4 > SW_L4_IPV6)
		return NULL;
	return sw_start(ctx) + l4 + SW_UDP_ATP;
}

__noinline int sw_do_sum(struct xdp_md *ctx, __u32 l4)
{
	void *p = sw_lanes_at(ctx, l4);

	/* no aggregator is looked at */
	return p ? sw_lanes(p, sw_end(ctx), p, SW_MAX_BLOCKS, sw_step_sum) : 0;
}

__noinline int sw_do_take(struct xdp_md *ctx, __u32 l4, __u32 index)
{
	struct sw_agg *a = sw_agg_at(index);
	void *p = sw_lanes_at(ctx, l4);

	if (!a || !p)
		return 0;
	return sw_lanes(p, sw_end(ctx), a->lanes, sw_blocks, sw_step_take);
}

__noinline int sw_do_copy(struct xdp_md *ctx, __u32 l4, __u32 index)
{
	struct sw_agg *a = sw_agg_at(index);
	void *p = sw_lanes_at(ctx, l4);

	if (!a || !p)
		return 0;
	return sw_lanes(p, sw_end(ctx), a->lanes, sw_blocks, sw_step_copy);
}

__noinline int sw_do_add(struct xdp_md *ctx, __u32 l4, __u32 index)
{
	struct sw_agg *a = sw_agg_at(index);
	void *p = sw_lanes_at(ctx, l4);

	if (!a || !p)
		return 0;
	return sw_lanes(p, sw_end(ctx), a->lanes, sw_blocks, sw_step_add);
}

__noinline int sw_do_undo(struct xdp_md *ctx, __u32 l4, __u32 index)
{
	struct sw_agg *a = sw_agg_at(index);
	void *p = sw_lanes_at(ctx, l4);

	if (!a || !p)
		return 0;
	return sw_lanes(p, sw_end(ctx), a->lanes, sw_blocks, sw_step_undo);
}

__noinline int sw_do_widen(struct xdp_md *ctx, __u32 l4, __u32 index)
{
	struct sw_agg *a = sw_agg_at(index);
	void *p = sw_lanes_at(ctx, l4);

	if (!a || !p)
		return 0;
	return sw_lanes(p, sw_end(ctx), a->lanes, sw_blocks, sw_step_widen);
}

__noinline int sw_do_saturate(struct xdp_md *ctx, __u32 l4, __u32 index)
{
	struct sw_agg *a = sw_agg_at(index);
	void *p = sw_lanes_at(ctx, l4);

	if (!a || !p)
		return 0;
	return sw_lanes_saturate(p, sw_end(ctx), a->lanes,
				 sw_blocks * SW_BLOCK);
}

__noinline int sw_do_out(struct xdp_md *ctx, __u32 l4, __u32 index)
{
	struct sw_agg *a = sw_agg_at(index);
	void *p = sw_lanes_at(ctx, l4);

	if (!a || !p)
		return 0;
	if (a->wide)
		return sw_lanes(p, sw_end(ctx), a->lanes, sw_blocks,
				sw_step_out_wide);
	return sw_lanes(p, sw_end(ctx), a->lanes, sw_blocks, sw_step_out);
}

/* Loops with many turns are looked at apart, too */
__noinline int sw_do_lock(__u32 index)
{
	struct sw_agg *a = sw_agg_at(index);

	return a ? sw_lock(a, SW_TRIES) : 0;
}

/* The job that occupied an aggregator has it no more */
static __always_inline void sw_empty(struct sw_agg *a)
{
	__u32 slot = a->slot;
	struct sw_state *state;

	a->bitmap = 0;
	state = bpf_map_lookup_elem(&states, &slot);
	if (state)
		sw_quota_give(state);
}

/* It was abandoned, which counts for the job that did so */
static __always_inline void sw_evict(struct sw_agg *a)
{
	__u32 slot = a->slot;
	struct sw_counters *c;

	c = bpf_map_lookup_elem(&counters, &slot);
	if (c)
		c->timeouts++;
	sw_empty(a);
}

/*
 * The quota is used up.  What a run that has ended left behind, or a late copy,
 * counts until a packet meets it, which may be never: look for it, at other
 * aggregators each time.  The caller holds the lock of one, so this one waits
 * for none.  Return: how many were emptied.
 */
__noinline int sw_do_search(__u32 slot)
{
	struct sw_state *state = bpf_map_lookup_elem(&states, &slot);
	__u64 hand, now = bpf_jiffies64();
	int i, found = 0;

	if (!state)
		return 0;
	hand = __sync_fetch_and_add(&state->hand, SW_SEARCH);
	for (i = 0; i < SW_SEARCH; i++) {
		struct sw_agg *a = sw_agg_at((hand + i) % sw_set.aggregators);

		/* without the lock this is a hint, and saves it mostly */
		if (!a || !a->bitmap || a->slot != slot ||
		    !sw_is_old(a, now, sw_set.ticks) || !sw_lock(a, 1))
			continue;
		if (a->bitmap && a->slot == slot &&
		    sw_is_old(a, now, sw_set.ticks)) {
			sw_empty(a);
			found++;
		}
		sw_unlock(a);
	}
	return found;
}

/* One more aggregator for the job, if its quota allows */
static __always_inline bool sw_allow(struct sw_state *state,
				     const struct sw_job *job,
				     struct sw_counters *c)
{
	int found;

	if (sw_quota_take(state, job->quota))
		return true;
	found = sw_do_search(job->slot);
	c->timeouts += found;
	return found && sw_quota_take(state, job->quota);
}

/* Count what an aggregator did with a resent or special gradient, and why */
static __always_inline void sw_count(struct sw_counters *c, __u32 plan,
				     const struct sw_pkt *p)
{
	if (plan & SW_TAKE)
		c->allocated++;
	if (plan & SW_ADD) {
		c->aggregated++;
		if (plan & SW_EMPTY)
			c->resend_added++;
		else if (plan & SW_OUT)
			c->completed++;
	} else if (plan & SW_OUT) {
		c->resend_flushed++;
	} else if (plan & SW_MARK) {
		c->duplicate++;
	} else if (plan & SW_FORWARD && !(plan & SW_COLLIDE)) {
		if (p->flags & (ATP_F_RAW | ATP_F_OVERFLOW))
			c->raw++;
		else if (p->flags & ATP_F_RESEND)
			c->resend_passed++;
		else
			c->disagree++;
	}
}

/* Is all of the packet as it was sent? */
static __always_inline bool sw_verify(struct xdp_md *ctx, struct sw_pkt *p)
{
	p->sum = sw_do_sum(ctx, p->l4);
	return sw_is_right(p);
}

/* The packet's values become the sum */
static __always_inline void sw_take_lanes(struct xdp_md *ctx, __u32 l4,
					  __u32 index, struct sw_agg *a)
{
	a->wide = 0;
	if (sw_do_take(ctx, l4, index) & SW_LANES_LEFT) {
		sw_do_copy(ctx, l4, index);
		a->wide = 1;
	}
}

/*
 * Do what an aggregator has to do with a gradient; return what was done.
 *
 * The packet's checksum has not been verified.  When its lanes are added they
 * are summed on the way, so that they are loaded once; if the checksum turns
 * out to be wrong they are taken back before the lock is, and nothing was done.
 * All else comes after.
 */
static __always_inline __u32 sw_aggregate(struct xdp_md *ctx, struct sw_pkt *p,
					  const struct sw_job *job,
					  struct sw_counters *c)
{
	__u32 index = p->index % sw_set.aggregators;
	struct sw_agg *a = sw_agg_at(index);
	struct sw_state *state;
	__u32 slot = job->slot;
	__u32 l4 = p->l4;
	bool left = false;
	__u32 plan;
	__u64 now;

	state = bpf_map_lookup_elem(&states, &slot);
	if (!a || !state)
		return 0;
	if (!sw_is_current(state, p->epoch)) {
		if (!sw_verify(ctx, p))
			return SW_WRONG;
		c->stale++;
		return SW_FORWARD;
	}
	if (!sw_lock(a, 1) && !sw_do_lock(index)) {
		if (!sw_verify(ctx, p))
			return SW_WRONG;
		c->collision_locked++;
		return SW_COLLIDE | SW_FORWARD;
	}
	/* The verifier makes this a load; any clock costs a call */
	now = bpf_jiffies64();
	plan = sw_decide(a, p, job->pass, sw_is_old(a, now, sw_set.ticks));
	if (plan & SW_ADD && !a->wide) {
		__u32 sum = sw_do_add(ctx, l4, index);

		left = sum & SW_LANES_LEFT;
		p->sum = sum & 0xffff;
		if (!sw_is_right(p)) {
			sw_do_undo(ctx, l4, index);
			plan = SW_WRONG;
		}
	} else if (!sw_verify(ctx, p)) {
		plan = SW_WRONG;
	}
	if (plan & SW_COLLIDE)
		c->collision_busy++;
	/* the job's own counts against its quota no more */
	if (plan & SW_EVICT && a->slot == slot)
		sw_evict(a);
	if (plan & SW_TAKE) {
		if (sw_allow(state, job, c)) {
			if (a->bitmap)
				sw_evict(a);
			sw_take(a, p, slot, now);
			sw_take_lanes(ctx, l4, index, a);
		} else {
			c->collision_quota++;
			plan = SW_COLLIDE | SW_FORWARD;
		}
	}
	if (plan & SW_ADD) {
		bool over = false;

		if (left && !a->wide) {
			sw_do_widen(ctx, l4, index);
			a->wide = 1;
		}
		if (a->wide) {
			over = sw_do_saturate(ctx, l4, index);
			c->overflow += over;
		}
		sw_add(a, p, over, now);
	}
	if (plan & SW_MARK)
		a->flags |= sw_mark(p);
	if (plan & SW_OUT) {
		sw_out(a, p);
		p->sum = sw_do_out(ctx, l4, index) & 0xffff;
	}
	if (plan & SW_EMPTY)
		sw_empty(a);
	sw_unlock(a);
	sw_count(c, plan, p);
	return plan;
}

/* A parameter packet empties the aggregator that it names */
static __always_inline void sw_deallocate(const struct sw_pkt *p,
					  struct sw_counters *c)
{
	__u32 index = p->index % sw_set.aggregators;
	struct sw_agg *a = sw_agg_at(index);
	bool old;

	if (!a)
		return;
	/* Looked at without the lock: an empty one needs none.  If it is being
	 * taken just now, then not by the fragment of this packet.
	 */
	if (!a->bitmap)
		return;
	if (!sw_lock(a, 1) && !sw_do_lock(index)) {
		c->kept++;
		return;
	}
	old = sw_is_old(a, bpf_jiffies64(), sw_set.ticks);
	if (sw_frees(a, p, old)) {
		if (sw_is(a, p))
			c->deallocated++;
		else
			c->timeouts++;
		sw_empty(a);
	}
	sw_unlock(a);
}

#endif /* _ATP_SWITCH_AGGREGATE_H */
