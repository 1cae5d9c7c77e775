/* SPDX-License-Identifier: GPL-2.0 */
/* Where a packet comes from and goes to, and whether it may */
#ifndef _ATP_SWITCH_WAY_H
#define _ATP_SWITCH_WAY_H

#include "switch_lookup.h"

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
	 * comes from another one is some user's.  IPv6 has no sender with an
	 * address of IPv4.
	 */
	if (p->sport != ATP_PORT || (p->v6 && sw_is_mapped(p->src)))
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

#endif /* _ATP_SWITCH_WAY_H */
