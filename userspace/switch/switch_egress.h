/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a redirect: congestion marks, and the addresses of a multicast's
 * copies.
 *
 * One program does it all and tells from the packet what it is.  The kernel
 * collects what goes out of a port and runs one program over the whole batch,
 * that of the first packet, whatever the map's entries say; so entries with
 * programs of their own would get each other's packets.
 *
 * A redirected packet passes no queueing discipline, so each port has a phantom
 * queue: how long the link would still be busy if it were no faster than its
 * rate.  One number says it, the time at which it will be idle.
 *
 * Reading the clock takes 30 ns, longer than all else of it.  The queue is no
 * longer than it was when the clock was read last, and what came since: if that
 * is a small part of the mark, nothing is to be marked, and it is not read.  A
 * queue whose first packets met no clock counts for as much less.
 */
#ifndef _ATP_SWITCH_EGRESS_H
#define _ATP_SWITCH_EGRESS_H

/* Try so often to be the one who moves the phantom queue's end */
#define SW_TRIES_QUEUE		8

/* That part of the mark: one sixteenth */
#define SW_UNSEEN_SHIFT		4

/* Account for a packet; is the queue before it longer than the mark? */
static __always_inline bool sw_queue(struct sw_port *port, __u64 bytes)
{
	__u64 now, seen, start, cost;
	int i;

	if (!port->cost)
		return false;
	cost = (bytes * port->cost) >> SW_COST_SHIFT;
	/* unsigned: also if the rate was told, and the queue forgotten */
	if (port->clear - port->seen <= port->mark >> SW_UNSEEN_SHIFT) {
		__sync_fetch_and_add(&port->clear, cost);
		return false;
	}
	now = bpf_ktime_get_ns();
	port->seen = now;
	for (i = 0; i < SW_TRIES_QUEUE; i++) {
		seen = port->clear;
		start = (__s64)(seen - now) > 0 ? seen : now;
		if (__sync_val_compare_and_swap(&port->clear, seen,
						start + cost) == seen)
			break;
	}
	return start - now > port->mark;
}

/* Congestion Experienced, if the sender understands it */
static __always_inline bool sw_mark_ce(void *data, const void *end)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct ipv6hdr *ip6 = data + sizeof(*eth);

	if (*sw_proto(eth) == sw_swap16(ETH_P_IP)) {
		if ((const void *)(ip + 1) > end || !(ip->tos & 3))
			return false;
		ip->tos |= 3;
		sw_sum_ipv4(ip);
	} else {
		if ((const void *)(ip6 + 1) > end ||
		    !(ip6->flow_lbl[0] & 0x30))
			return false;
		ip6->flow_lbl[0] |= 0x30;
	}
	return true;
}

/* As sw_job_find() */
static __always_inline struct sw_port *sw_port_at(__u32 ifindex)
{
	__u32 place = ifindex % SW_PORTS;
	struct sw_port *port;
	__u32 *known;

	port = bpf_map_lookup_elem(&port_places, &place);
	if (port && port->ifindex == ifindex)
		return port;
	known = bpf_map_lookup_elem(&port_info, &ifindex);
	if (!known)
		return NULL;
	place = *known;
	port = bpf_map_lookup_elem(&port_places, &place);
	return port && port->ifindex == ifindex ? port : NULL;
}

/* Ethernet header is there */
static __always_inline void sw_leave_port(struct xdp_md *ctx, void *data,
					  const void *end)
{
	struct sw_port *port = sw_port_at(ctx->egress_ifindex);

	if (!port)
		return;
	__sync_fetch_and_add(&port->sent, 1);
	if (sw_queue(port, end - data) && sw_mark_ce(data, end))
		__sync_fetch_and_add(&port->marked, 1);
}

/* Ones' complement sum of what leaves a checksum (~from) and what comes (to) */
static __always_inline __u64 sw_delta(const __u32 *from, const __u32 *to,
				      int n)
{
	__u64 sum = 0;
	int i;

#pragma GCC unroll 4
	for (i = 0; i < n; i++)
		sum += (__u64)(__u32)~from[i] + to[i];
	return sum;
}

/*
 * The rank that a copy is for: the one at this port; if there are several, the
 * lowest that has not got its copy of this packet yet.  The copies pass on one
 * CPU, and those for a port pass one packet after the other; so it is enough to
 * remember the last packet, at each port.  What is for another port comes in
 * between: the kernel sends a port's queue when it has 16 packets, wherever in
 * the copies of one that is.  A rank that is left out all the same asks again.
 */
__noinline int sw_do_pick(const struct sw_job *job, __u32 ifindex, __u32 epoch,
			  __u32 seq)
{
	struct sw_fan *fan;
	__u32 note, left;
	int i;

	if (!job)
		return ATP_MAX_WORKERS;
	for (i = 0; i < ATP_MAX_WORKERS; i++) {
		if (job->rank[i].ifindex == ifindex)
			break;
	}
	if (i == ATP_MAX_WORKERS)
		return ATP_MAX_WORKERS;
	note = job->slot * ATP_MAX_WORKERS + i;
	fan = bpf_map_lookup_elem(&fans, &note);
	if (!fan)
		return ATP_MAX_WORKERS;
	if (fan->epoch != epoch || fan->seq != seq) {
		fan->epoch = epoch;
		fan->seq = seq;
		fan->done = 0;
	}
	left = job->rank[i].mates & ~fan->done;
	/* the same packet once more */
	if (!left) {
		fan->done = 0;
		left = job->rank[i].mates;
	}
	left &= -left;
	fan->done |= left;
	return sw_rank(left);
}

/* A parameter packet on its way to every worker?  All others are finished. */
static __always_inline struct udphdr *sw_is_copy(void *data, const void *end)
{
	struct atp_hdr *hdr;
	struct udphdr *udp;

	udp = data + (*sw_proto(data) == sw_swap16(ETH_P_IP) ? SW_L4_IPV4 :
							       SW_L4_IPV6);
	hdr = (void *)(udp + 1);
	if ((void *)(hdr + 1) > end)
		return NULL;
	if (~hdr->flags & sw_swap16(ATP_F_ACK | ATP_F_MCAST))
		return NULL;
	return udp;
}

/* The job was deleted while a copy was on its way: nothing counts for it */
static __always_inline int sw_gone(void)
{
	struct sw_others *others;
	__u32 zero = 0;

	others = bpf_map_lookup_elem(&others_count, &zero);
	if (others)
		others->gone++;
	return XDP_ABORTED;
}

/*
 * A copy gets the addresses of its rank, and is no longer to be multiplied.
 * What came in was verified and has a complete checksum, so a difference will
 * do.
 */
static __always_inline int sw_copy(struct xdp_md *ctx, void *data,
				   const void *end, struct udphdr *udp)
{
	struct atp_hdr *hdr = (void *)(udp + 1);
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);
	struct ipv6hdr *ip6 = data + sizeof(*eth);
	const struct sw_host *to;
	const struct sw_job *job;
	struct sw_counters *c;
	bool routed;
	__u32 rank;
	__u32 slot;
	__u64 sum;

	job = sw_job_find(sw_swap32(hdr->jobID));
	if (!job)
		return sw_gone();
	slot = job->slot;
	c = bpf_map_lookup_elem(&counters, &slot);
	if (!c)
		return XDP_ABORTED;
	rank = sw_do_pick(job, ctx->egress_ifindex, hdr->epoch,
			  hdr->sequenceNumber);
	if (rank >= ATP_MAX_WORKERS)
		return sw_no_way(c);
	to = &job->rank[rank];

	sum = (__u16)~udp->check;
	sum += (__u16)~hdr->flags;
	hdr->flags &= sw_swap16((__u16)~ATP_F_MCAST);
	sum += hdr->flags;
	if (*sw_proto(eth) == sw_swap16(ETH_P_IP)) {
		if ((void *)(ip + 1) > end)
			return sw_no_way(c);
		sum += sw_delta(&ip->daddr, &to->addr[3], 1);
		ip->daddr = to->addr[3];
		sw_sum_ipv4(ip);
	} else {
		if ((void *)(ip6 + 1) > end)
			return sw_no_way(c);
		sum += sw_delta(ip6->daddr.s6_addr32, to->addr, 4);
		__builtin_memcpy(&ip6->daddr, to->addr, 16);
	}
	sum = sw_fold(sum) ^ 0xffff;
	udp->check = sum ? (__u16)sum : 0xffff;

	routed = to->flags & SW_HOST_ROUTED ||
		 !(eth->h_dest[0] | eth->h_dest[1] | eth->h_dest[2] |
		   eth->h_dest[3] | eth->h_dest[4] | eth->h_dest[5]);
	if (routed) {
		if (sw_last_hop(data, end))
			return sw_no_way(c);
		sw_route(data, end, to);
	} else {
		__builtin_memcpy(eth->h_dest, to->mac, ETH_ALEN);
	}

	c->copies++;
	return XDP_PASS;
}

SEC("xdp/devmap")
int atp_egress(struct xdp_md *ctx)
{
	void *data = sw_start(ctx), *end = sw_end(ctx);
	struct udphdr *udp;

	if (data + sizeof(struct ethhdr) > end)
		return XDP_ABORTED;
	udp = sw_is_copy(data, end);
	if (udp && sw_copy(ctx, data, end, udp) != XDP_PASS)
		return XDP_ABORTED;
	sw_leave_port(ctx, data, end);
	return XDP_PASS;
}

#endif /* _ATP_SWITCH_EGRESS_H */
