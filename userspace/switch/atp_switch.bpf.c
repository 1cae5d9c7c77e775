// SPDX-License-Identifier: GPL-2.0
/*
 * The switch: XDP programs.
 *
 * atp_ingress runs on every port.  What is not ATP, and not of a job that it
 * knows, it leaves to the kernel.  What it sends on leaves by a redirect, at
 * whose end atp_egress runs.
 *
 * The functions that touch lanes are global: the verifier looks at each of them
 * once, whatever leads to it.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "switch_logic.h"
#include "switch_maps.h"

/* How often to try for the lock of an aggregator */
#define SW_TRIES		512

/* So many aggregators are looked at when a job's quota is used up */
#define SW_SEARCH		4

/* Set by the loader before the program is loaded, and known to the verifier */
#ifndef SW_CONST
#define SW_CONST	const volatile
#endif
SW_CONST struct sw_settings sw_set = { .aggregators = 1, .payload = 8 };

#define sw_blocks	((int)SW_BLOCKS(sw_set.payload))

static __always_inline void *sw_start(struct xdp_md *ctx)
{
	return (void *)(long)ctx->data;
}

static __always_inline void *sw_end(struct xdp_md *ctx)
{
	return (void *)(long)ctx->data_end;
}

static __always_inline struct sw_agg *sw_agg_at(__u32 index)
{
	return bpf_map_lookup_elem(&aggregators, &index);
}

static __always_inline struct sw_job *sw_job_in(__u32 slot, __u32 id)
{
	void *room = bpf_map_lookup_elem(&job_rooms, &slot);
	struct sw_job *job;
	__u32 zero = 0;

	job = room ? bpf_map_lookup_elem(room, &zero) : NULL;
	return job && job->id == id ? job : NULL;
}

/*
 * A job by its number.  The kernel makes a look-up in an array a few
 * instructions, one in a hash map takes a call and 20 ns.  However the slot is
 * found the job comes from the same map, else the verifier would look at all
 * that follows twice.
 */
static __always_inline struct sw_job *sw_job_find(__u32 id)
{
	__u32 slot = id % SW_SLOTS;
	struct sw_job *job, *known;

	job = sw_job_in(slot, id);
	if (job)
		return job;
	known = bpf_map_lookup_elem(&jobs, &id);
	return known ? sw_job_in(known->slot, id) : NULL;
}

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

/* The rank of a worker's address, or ATP_MAX_WORKERS */
__noinline int sw_do_find(const struct sw_job *job, const struct sw_addr *addr)
{
	int i;

	if (!job || !addr)
		return ATP_MAX_WORKERS;
	for (i = 0; i < ATP_MAX_WORKERS; i++) {
		/* ends the loop: the verifier would go on in two ways */
		if (i >= (int)job->workers)
			break;
		if (sw_same_addr(addr->word, job->rank[i].addr))
			return i;
	}
	return ATP_MAX_WORKERS;
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
	if (plan & SW_EVICT)
		c->timeouts++;
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
	if (sw_is_over(state, p->epoch)) {
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
	plan = sw_decide(a, p, job->full, sw_is_old(a, now, sw_set.ticks));
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
	if (plan & SW_EVICT)
		sw_empty(a);
	if (plan & SW_TAKE) {
		if (sw_allow(state, job, c)) {
			sw_take(a, p, slot, now);
			sw_take_lanes(ctx, l4, index, a);
		} else {
			c->collision_quota++;
			plan = (plan & SW_EVICT) | SW_COLLIDE | SW_FORWARD;
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

/*
 * Addresses of the next hop.  In the same subnet the frame goes on as it is, as
 * a bridge would forward it, but for a copy's destination.  Into another it is
 * routed; a time to live that is over was left to the kernel.
 */
static __always_inline void sw_route(void *data, const void *end,
				     const struct sw_host *to)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct ipv6hdr *ip6 = data + sizeof(*eth);

	__builtin_memcpy(eth->h_dest, to->mac, ETH_ALEN);
	__builtin_memcpy(eth->h_source, to->src, ETH_ALEN);
	if (*sw_proto(eth) == sw_swap16(ETH_P_IP)) {
		if ((const void *)(ip + 1) > end)
			return;
		ip->ttl--;
		sw_sum_ipv4(ip);
	} else {
		if ((const void *)(ip6 + 1) > end)
			return;
		ip6->hop_limit--;
	}
}

static __always_inline bool sw_last_hop(void *data, const void *end)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct ipv6hdr *ip6 = data + sizeof(*eth);

	if (*sw_proto(eth) == sw_swap16(ETH_P_IP))
		return (const void *)(ip + 1) <= end && ip->ttl <= 1;
	return (const void *)(ip6 + 1) <= end && ip6->hop_limit <= 1;
}

static __always_inline bool sw_same_mac(const __u8 *a, const __u8 *b)
{
	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) |
		 (a[3] ^ b[3]) | (a[4] ^ b[4]) | (a[5] ^ b[5]));
}

/* There is no way out: a port was detached, or a group is not there yet */
static __always_inline int sw_no_way(struct sw_counters *c)
{
	c->drop_out++;
	return XDP_ABORTED;
}

/* Out by a port; as long as it is one, one of its two entries is there */
static __always_inline bool sw_leave_by(__u32 port)
{
	return bpf_redirect_map(&ports, port, XDP_DROP) == XDP_REDIRECT ||
	       bpf_redirect_map(&ports, port | SW_SPARE, XDP_DROP) ==
	       XDP_REDIRECT;
}

static __always_inline int sw_unicast(struct xdp_md *ctx, struct sw_pkt *p,
				      struct sw_counters *c,
				      const struct sw_host *to, bool routed)
{
	void *data = sw_start(ctx), *end = sw_end(ctx);

	if (data + sizeof(struct ethhdr) > end || !sw_write(data, end, p))
		return sw_no_way(c);
	if (routed)
		sw_route(data, end, to);
	if (!sw_leave_by(to->ifindex))
		return sw_no_way(c);
	return XDP_REDIRECT;
}

/*
 * A packet of a job that goes no further, or not by us.  XDP_ABORTED drops as
 * XDP_DROP does, which is for what is in an aggregator now, but the trace point
 * xdp:xdp_exception sees it.
 */
static __always_inline int sw_refuse(struct sw_counters *c,
				     enum sw_class class)
{
	if (class == SW_CLASS_MISMATCH) {
		c->mismatch++;
		return XDP_PASS;
	}
	if (class == SW_CLASS_TTL) {
		c->ttl++;
		return XDP_PASS;
	}
	if (class == SW_CLASS_HEADER)
		c->drop_header++;
	else if (class == SW_CLASS_LENGTH)
		c->drop_length++;
	else if (class == SW_CLASS_BITMAP)
		c->drop_bitmap++;
	else if (class == SW_CLASS_CSUM)
		c->drop_csum++;
	else if (class == SW_CLASS_CSUM_NONE)
		c->drop_csum_none++;
	else if (class == SW_CLASS_CSUM_PARTIAL)
		c->drop_csum_partial++;
	else if (class == SW_CLASS_STRANGER)
		c->drop_stranger++;
	else
		c->drop_port++;
	return XDP_ABORTED;
}

/**
 * struct sw_way - where a packet comes from and goes to
 * @from: who it says has sent it
 * @to: who gets it, if it is not multicast
 * @routed: by the box itself
 */
struct sw_way {
	const struct sw_host *from;
	const struct sw_host *to;
	bool routed;
};

/* Gradients come from their rank and go to the PS */
static __always_inline enum sw_class
sw_way_up(const struct sw_pkt *p, const struct sw_job *job,
	  struct sw_way *way)
{
	if (sw_bad_bitmap(p, job->full))
		return SW_CLASS_BITMAP;
	way->from = &job->rank[sw_rank(p->bitmap) & (ATP_MAX_WORKERS - 1)];
	way->to = &job->ps;
	if (!sw_same_addr(p->src, way->from->addr) ||
	    !sw_same_addr(p->dst, way->to->addr))
		return SW_CLASS_STRANGER;
	return SW_CLASS_ATP;
}

/* Parameter packets come from the PS and go to a worker */
static __always_inline enum sw_class
sw_way_down(const struct sw_pkt *p, const struct sw_job *job,
	    struct sw_way *way)
{
	struct sw_addr dst;
	int rank;

	way->from = &job->ps;
	if (!sw_same_addr(p->src, way->from->addr))
		return SW_CLASS_STRANGER;
	__builtin_memcpy(&dst, p->dst, sizeof(dst));
	rank = sw_do_find(job, &dst);
	if (rank < 0 || rank >= ATP_MAX_WORKERS)
		return SW_CLASS_STRANGER;
	way->to = &job->rank[rank];
	return SW_CLASS_ATP;
}

/**
 * sw_admit() - may a packet pass the switch, if its checksum is right?
 * @ctx: its frame
 * @p: the packet, from sw_check()
 * @job: its job
 * @way: filled in
 *
 * Return: %SW_CLASS_ATP or the class of what is wrong
 */
static __always_inline enum sw_class
sw_admit(struct xdp_md *ctx, const struct sw_pkt *p, const struct sw_job *job,
	 struct sw_way *way)
{
	void *data = sw_start(ctx), *end = sw_end(ctx);
	struct ethhdr *eth = data;
	enum sw_class class;

	if (data + sizeof(*eth) > end || sw_bad_header(data, end, p))
		return SW_CLASS_HEADER;
	/* Every host that knows a job holds this port for its kernel: what
	 * comes from another one is some user's.
	 */
	if (p->sport != ATP_PORT)
		return SW_CLASS_STRANGER;
	if (p->fanin != job->workers)
		return SW_CLASS_MISMATCH;
	class = p->flags & ATP_F_ACK ? sw_way_down(p, job, way) :
				       sw_way_up(p, job, way);
	if (class != SW_CLASS_ATP)
		return class;
	if (ctx->ingress_ifindex != way->from->ifindex)
		return SW_CLASS_PORT;
	/* What is sent to the port's own address is to be routed */
	way->routed = sw_same_mac(eth->h_dest, way->from->src) ||
		      way->from->l3 != way->to->l3;
	if (way->routed && sw_last_hop(data, end))
		return SW_CLASS_TTL;
	return SW_CLASS_ATP;
}

/* Is it a gradient that an aggregator might have room for? */
static __always_inline bool sw_adds(const struct sw_pkt *p,
				    const struct sw_job *job)
{
	return !(p->flags & ATP_F_ACK) && job->workers > 1 &&
	       sw_payload_len(p) <= sw_set.payload;
}

static __always_inline int sw_gradient(struct xdp_md *ctx, struct sw_pkt *p,
				       const struct sw_job *job,
				       struct sw_counters *c,
				       const struct sw_way *way)
{
	__u64 bytes = sw_end(ctx) - sw_start(ctx);
	__u32 plan = SW_FORWARD;

	if (sw_adds(p, job))
		plan = sw_aggregate(ctx, p, job, c);
	else if (job->workers == 1)
		c->single++;
	else
		c->oversize++;
	if (plan & SW_WRONG)
		return sw_refuse(c, sw_wrong(sw_start(ctx), sw_end(ctx), p));
	c->bytes_in += bytes;
	/* without an aggregator to look at there is no plan */
	if (!(plan & SW_FORWARD))
		return plan ? XDP_DROP : XDP_ABORTED;

	if (plan & SW_COLLIDE)
		p->flags |= ATP_F_COLLISION;
	sw_pass_on(p, job->cap);
	if (sw_unicast(ctx, p, c, way->to, way->routed) != XDP_REDIRECT)
		return XDP_ABORTED;
	c->forwarded++;
	c->bytes_out += bytes;
	return XDP_REDIRECT;
}

static __always_inline int sw_multicast(struct xdp_md *ctx, struct sw_pkt *p,
					const struct sw_job *job,
					struct sw_counters *c,
					const struct sw_way *way)
{
	void *data = sw_start(ctx), *end = sw_end(ctx);
	struct ethhdr *eth = data;
	__u32 slot = job->slot;
	void *group;

	if (data + sizeof(*eth) > end || !sw_write(data, end, p))
		return sw_no_way(c);
	group = bpf_map_lookup_elem(&groups, &slot);
	if (!group)
		return sw_no_way(c);
	/* Tells the copies that all of them are to be routed */
	if (sw_same_mac(eth->h_dest, way->from->src))
		__builtin_memset(eth->h_dest, 0, ETH_ALEN);
	c->multicast++;
	return bpf_redirect_map(group, 0, BPF_F_BROADCAST);
}

static __always_inline int sw_parameter(struct xdp_md *ctx, struct sw_pkt *p,
					const struct sw_job *job,
					struct sw_counters *c,
					const struct sw_way *way)
{
	c->parameters++;
	sw_deallocate(p, c);
	sw_pass_on(p, job->cap);
	if (p->flags & ATP_F_MCAST)
		return sw_multicast(ctx, p, job, c, way);
	return sw_unicast(ctx, p, c, way->to, way->routed);
}

/* A packet that is left to the kernel, and counted because it looks like ATP */
static __always_inline int sw_leave(enum sw_class class)
{
	struct sw_others *others;
	__u32 zero = 0;

	if (class == SW_CLASS_OTHER)
		return XDP_PASS;
	others = bpf_map_lookup_elem(&others_count, &zero);
	if (!others)
		return XDP_PASS;
	if (class == SW_CLASS_CONTROL || class == SW_CLASS_VERSION)
		others->control++;
	else if (class == SW_CLASS_OPTIONS)
		others->options++;
	else if (class == SW_CLASS_TRUNCATED)
		others->truncated++;
	else
		others->unknown++;
	return XDP_PASS;
}

/* The packet with which a run begins, if it is in order; returns whether */
__noinline int sw_do_begin(struct xdp_md *ctx, __u32 slot)
{
	struct sw_state *state = bpf_map_lookup_elem(&states, &slot);
	void *data = sw_start(ctx), *end = sw_end(ctx);
	struct sw_pkt p = {};

	if (!state || sw_parse(data, end, &p) != SW_CLASS_CONTROL)
		return 0;
	p.elements = ATP_CTL_LEN / 4;
	if (sw_check(data, end, &p) != SW_CLASS_ATP || !sw_verify(ctx, &p))
		return 0;
	sw_begin(state, p.epoch);
	return 1;
}

/*
 * A control packet is the kernel's to forward.  But who has the address of one
 * of the job's hosts is behind the port of that host, or is another.  Addresses
 * that are nobody's are for PS and workers to refuse.
 */
static __always_inline int sw_control(struct xdp_md *ctx,
				      const struct sw_pkt *p,
				      const struct sw_job *job,
				      struct sw_counters *c)
{
	const struct sw_host *from = &job->ps;
	struct sw_addr src;
	int rank;

	if (!sw_same_addr(p->src, job->ps.addr)) {
		__builtin_memcpy(&src, p->src, sizeof(src));
		rank = sw_do_find(job, &src);
		if (rank < 0 || rank >= ATP_MAX_WORKERS)
			return sw_leave(SW_CLASS_CONTROL);
		from = &job->rank[rank];
	}
	if (ctx->ingress_ifindex != from->ifindex)
		return sw_refuse(c, SW_CLASS_PORT);
	if (from == &job->ps && p->type == ATP_TYPE_WELCOME &&
	    p->sport == ATP_PORT)
		sw_do_begin(ctx, job->slot);
	return sw_leave(SW_CLASS_CONTROL);
}

SEC("xdp")
int atp_ingress(struct xdp_md *ctx)
{
	void *data = sw_start(ctx), *end = sw_end(ctx);
	struct sw_counters *c;
	struct sw_pkt p = {};
	struct sw_way way = {};
	struct sw_job *job;
	enum sw_class class;
	__u32 slot;

	class = sw_parse(data, end, &p);
	if (class != SW_CLASS_ATP && class != SW_CLASS_CONTROL)
		return sw_leave(class);
	job = sw_job_find(p.job);
	if (!job)
		return sw_leave(class);
	slot = job->slot;
	c = bpf_map_lookup_elem(&counters, &slot);
	if (!c)
		return XDP_PASS;
	if (class == SW_CLASS_CONTROL)
		return sw_control(ctx, &p, job, c);

	class = sw_check(data, end, &p);
	if (class != SW_CLASS_ATP)
		return sw_refuse(c, class);
	class = sw_admit(ctx, &p, job, &way);
	/* Whatever is done with a packet, its checksum is verified first; only
	 * sw_aggregate() has a faster way to do it.
	 */
	if ((class != SW_CLASS_ATP || !sw_adds(&p, job)) &&
	    !sw_verify(ctx, &p))
		class = sw_wrong(data, end, &p);
	if (class != SW_CLASS_ATP)
		return sw_refuse(c, class);
	if (p.flags & ATP_F_ACK)
		return sw_parameter(ctx, &p, job, c, &way);
	return sw_gradient(ctx, &p, job, c, &way);
}

#include "switch_egress.h"

char _license[] SEC("license") = "GPL";
