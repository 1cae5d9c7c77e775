/* SPDX-License-Identifier: GPL-2.0 */
/* How a packet's way ends: out by a port, to the kernel, or dropped */
#ifndef _ATP_SWITCH_FORWARD_H
#define _ATP_SWITCH_FORWARD_H

#include "switch_way.h"

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

/* What no job is asked about, counted because it looks like ATP: left to the
 * kernel, or dropped where the kernel could make a good packet of it
 */
static __always_inline int sw_leave(enum sw_class class)
{
	struct sw_others *others;
	__u32 zero = 0;

	if (class == SW_CLASS_OTHER || class == SW_CLASS_VLAN)
		return XDP_PASS;
	others = bpf_map_lookup_elem(&others_count, &zero);
	if (!others)
		return XDP_ABORTED;
	if (class == SW_CLASS_OPTIONS) {
		others->options++;
		return XDP_ABORTED;
	}
	if (class == SW_CLASS_TAGGED) {
		others->tagged++;
		return XDP_ABORTED;
	}
	if (class == SW_CLASS_CONTROL || class == SW_CLASS_VERSION)
		others->control++;
	else if (class == SW_CLASS_TRUNCATED)
		others->truncated++;
	else
		others->unknown++;
	return XDP_PASS;
}

#endif /* _ATP_SWITCH_FORWARD_H */
