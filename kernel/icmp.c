// SPDX-License-Identifier: GPL-2.0
/*
 * Whom to believe that a packet of ours did not arrive.
 *
 * An ICMP error may come from anybody: no router is known.  It quotes the
 * packet that it is about, and only who is on the way has seen the epoch.  So
 * the routes' memory of path MTUs, into which IP writes what it hears of any
 * protocol, is not asked when we send (xmit.c); an error that quotes a fragment
 * of the run is what ends it.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include "atp.h"

/**
 * struct atp_quote - what an ICMP error quotes behind the IP header
 * @udp: both ports are ours
 * @hdr: Linux routers quote 576 bytes and 1,232; too short a quote is refused
 */
struct atp_quote {
	struct udphdr	udp;
	struct atp_hdr	hdr;
};

/* What fits the path according to it; U32_MAX if it does not speak of that.
 * The ICMP header, eight bytes in both versions, ends where the quote begins.
 */
static u32 atp_icmp_mtu(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IP)) {
		const struct icmphdr *icmp =
			(const struct icmphdr *)skb_network_header(skb) - 1;

		if (icmp->type == ICMP_DEST_UNREACH &&
		    icmp->code == ICMP_FRAG_NEEDED)
			return ntohs(icmp->un.frag.mtu);
	} else {
		const struct icmp6hdr *icmp =
			(const struct icmp6hdr *)skb_network_header(skb) - 1;

		if (icmp->icmp6_type == ICMPV6_PKT_TOOBIG)
			return ntohl(icmp->icmp6_mtu);
	}
	return U32_MAX;
}

/* Did one of these ranks, all on this host, send in this run? */
static bool atp_icmp_workers(struct atp_job *job, u32 ranks, u32 epoch,
			     bool too_big)
{
	bool known = false;
	struct sock *sk;
	u32 rank;

	for (rank = 0; rank < job->params.workers; rank++) {
		sk = rcu_dereference(job->socks[rank]);
		if (sk && ranks & BIT(rank))
			known |= atp_sk_icmp(sk, epoch, too_big);
	}
	return known;
}

static bool atp_icmp_run(struct atp_job *job, const struct sk_buff *skb,
			 const struct atp_hdr *hdr)
{
	u32 epoch = ntohl(hdr->epoch), ip_len = sizeof(struct ipv6hdr);
	struct in6_addr src, dst;
	bool too_big, ce;
	u32 ranks;

	if (skb->protocol == htons(ETH_P_IP))
		ip_len = sizeof(struct iphdr);
	too_big = atp_icmp_mtu(skb) < job->params.fragment + ATP_HDR_LEN +
				      sizeof(struct udphdr) + ip_len;
	atp_addresses(skb, &src, &dst, &ce);
	if (hdr->flags & htons(ATP_F_ACK)) {
		ranks = atp_job_ranks_of(job, &dst);
		return job->ps && ranks &&
		       ipv6_addr_equal(&src, &job->ps_addr) &&
		       atp_ps_icmp(job, ranks, epoch, too_big);
	}
	ranks = atp_job_ranks_of(job, &src);
	return ipv6_addr_equal(&dst, &job->ps_addr) &&
	       atp_icmp_workers(job, ranks, epoch, too_big);
}

/**
 * atp_icmp_lookup() - encap_err_lookup of the UDP sockets
 * @usk: UDP socket
 * @skb: ICMP error; data and network header are at the quoted IP header,
 *	transport header at the quoted UDP header
 *
 * Nothing is pulled: the caller goes on with pointers into the head.
 *
 * Context: softirq under RCU.
 * Return: zero if the quoted fragment is one of a run, else IP ignores @skb.
 */
int atp_icmp_lookup(struct sock *usk, struct sk_buff *skb)
{
	struct net *net = sock_net(usk);
	const struct atp_quote *quote;
	struct atp_job *job = NULL;
	struct atp_quote buf;

	lockdep_assert_in_softirq();

	quote = skb_header_pointer(skb, skb_transport_offset(skb), sizeof(buf),
				   &buf);
	if (quote && quote->udp.source == htons(ATP_PORT) &&
	    quote->udp.dest == htons(ATP_PORT) &&
	    quote->hdr.version == ATP_VERSION &&
	    quote->hdr.type == ATP_TYPE_DATA)
		job = atp_job_find(atp_pernet(net), ntohl(quote->hdr.jobID));
	if (job && atp_icmp_run(job, skb, &quote->hdr))
		return 0;
	atp_drop_packets(net, job, 1, ATP_DROP_ICMP);
	return -ENOENT;
}
