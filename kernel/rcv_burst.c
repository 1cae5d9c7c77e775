// SPDX-License-Identifier: GPL-2.0
/*
 * Bursts that come in as one buffer: from a device of this host, or merged by
 * GRO.
 *
 * For a socket like ours UDP cuts such a buffer into packets, each in a buffer
 * of its own; that costs more than all that is done with them here.  So a burst
 * is taken before UDP sees it, where netfilter hands over what is for this host
 * and behind all rules.  It is taken if it is plain: fragments of one job that
 * go one way, for somebody here, from whom they may come.  All else goes on to
 * UDP, which cuts it (udp_unexpected_gso(); for such sockets since 6.9, and in
 * the stable kernels before), and comes back packet by packet (udp.c): what is
 * refused is refused there.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/udp.h>
#include <net/netfilter/nf_conntrack.h>
#include <net/udp.h>
#include <net/xfrm.h>
#include "atp.h"
#include "trace.h"

/* Bytes of what @rcv looks at: a head (the first) or a page. */
static u32 atp_rcv_size(const struct atp_rcv *rcv)
{
	if (rcv->frag < 0)
		return skb_headlen(rcv->part);
	return skb_frag_size(&skb_shinfo(rcv->part)->frags[rcv->frag]);
}

/* Where they are, or NULL if they have no address. */
static const void *atp_rcv_base(const struct atp_rcv *rcv)
{
	const skb_frag_t *frag;
	struct page *page;

	if (rcv->frag < 0)
		return rcv->part->data;
	frag = &skb_shinfo(rcv->part)->frags[rcv->frag];
	page = skb_frag_page(frag);
	if (!page || PageHighMem(page))
		return NULL;
	return page_address(page) + skb_frag_off(frag);
}

/* On to the next head or page.  Return: false if there is none. */
static bool atp_rcv_advance(struct atp_rcv *rcv)
{
	const struct sk_buff *next;

	if (rcv->frag + 1 < skb_shinfo(rcv->part)->nr_frags) {
		rcv->start += atp_rcv_size(rcv);
		rcv->frag++;
		return true;
	}
	next = rcv->part == rcv->skb ? skb_shinfo(rcv->skb)->frag_list :
				       rcv->part->next;
	if (!next)
		return false;
	rcv->start += atp_rcv_size(rcv);
	rcv->part = next;
	rcv->frag = -1;
	return true;
}

/* Length of the packet that begins at this offset, 0 at the end */
static u32 atp_rcv_len(const struct atp_rcv *rcv, u32 off)
{
	u32 left = rcv->skb->len - off;

	return min_t(u32, skb_shinfo(rcv->skb)->gso_size ?: left, left);
}

/**
 * atp_rcv_begin() - look at the packets of a buffer, one after the other
 * @rcv: (out) before the first
 * @skb: ATP packets from skb->data on
 */
void atp_rcv_begin(struct atp_rcv *rcv, const struct sk_buff *skb)
{
	*rcv = (struct atp_rcv){ .skb = skb, .part = skb, .frag = -1 };
}

/* Where the next packet is; NULL if it is not in one piece, or at the end, when
 * @len is zero.
 */
static const void *atp_rcv_data(struct atp_rcv *rcv, u32 *len)
{
	u32 off = rcv->next;
	const void *base;

	*len = atp_rcv_len(rcv, off);
	rcv->next += *len;
	if (!*len)
		return NULL;
	while (off - rcv->start >= atp_rcv_size(rcv))
		if (!atp_rcv_advance(rcv))
			return NULL;
	if (off - rcv->start + *len > atp_rcv_size(rcv))
		return NULL;
	base = atp_rcv_base(rcv);
	return base ? base + (off - rcv->start) : NULL;
}

/**
 * atp_rcv_next() - the next packet
 * @rcv: from atp_rcv_begin()
 * @pkt: (out) what it says
 * @reason: (out) why it is nonsense, or ATP_OK
 *
 * Return: false at the end.
 */
bool atp_rcv_next(struct atp_rcv *rcv, struct atp_pkt *pkt,
		  enum atp_drop *reason)
{
	const void *data;
	u32 len;

	/* whoever took it has looked at the first, and where all are */
	*reason = ATP_OK;
	if (!rcv->next) {
		*pkt = *atp_skb_pkt(rcv->skb);
		rcv->next = atp_rcv_len(rcv, 0);
		return true;
	}
	data = atp_rcv_data(rcv, &len);
	if (!data) {
		WARN_ON_ONCE(len);
		return false;
	}
	*reason = atp_pkt_parse(pkt, data, len);
	/* none are merged that have not the same marks */
	pkt->ce = atp_skb_pkt(rcv->skb)->ce;
	return true;
}

/**
 * atp_rcv_end() - free what was looked at
 * @skb: buffer
 * @good: a packet in it was of use
 */
void atp_rcv_end(struct sk_buff *skb, bool good)
{
	if (good)
		consume_skb(skb);
	else
		kfree_skb(skb);
}

/**
 * atp_rcv_one() - look at a buffer with one packet
 * @skb: ATP packet from skb->data on
 *
 * Return: what is nonsense in it, or ATP_OK: atp_skb_pkt() is the packet.
 */
enum atp_drop atp_rcv_one(struct sk_buff *skb)
{
	struct atp_pkt pkt = {};
	enum atp_drop reason;
	struct atp_rcv rcv;
	const void *data;
	u32 len;

	/* somebody called it a tunnel's, so that UDP left it as it was */
	if (skb_is_gso(skb))
		return ATP_DROP_LENGTH;
	atp_rcv_begin(&rcv, skb);
	data = atp_rcv_data(&rcv, &len);
	/* what user space has lent may change while it is added */
	if (!data || skb_has_shared_frag(skb)) {
		if (skb_linearize(skb))
			return ATP_DROP_NOMEM;
		data = skb->data;
	}
	reason = atp_pkt_parse(&pkt, data, skb->len);
	*atp_skb_pkt(skb) = pkt;
	return reason;
}

#ifdef CONFIG_NETFILTER
/* Begins it with a fragment?  Then that is @pkt. */
static bool atp_burst_first(const struct sk_buff *skb, struct atp_pkt *pkt)
{
	struct atp_rcv rcv;
	const void *data;
	u32 len;

	atp_rcv_begin(&rcv, skb);
	data = atp_rcv_data(&rcv, &len);
	return data && !atp_pkt_parse(pkt, data, len) &&
	       pkt->type == ATP_TYPE_DATA;
}

/* Are all packets fragments of one job that go one way, each in one piece?
 * Nothing else of them is looked at yet.
 */
static bool atp_burst_plain(const struct sk_buff *skb,
			    const struct atp_pkt *first)
{
	struct atp_hdr hdr;
	struct atp_rcv rcv;
	const void *data;
	u32 len;

	atp_rcv_begin(&rcv, skb);
	while ((data = atp_rcv_data(&rcv, &len))) {
		if (len < ATP_HDR_LEN)
			return false;
		memcpy(&hdr, data, sizeof(hdr));
		if (hdr.type != first->type ||
		    ntohl(hdr.jobID) != first->job ||
		    (ntohs(hdr.flags) ^ first->flags) & ATP_F_ACK)
			return false;
	}
	return !len;
}

/* IPsec looks at each packet, where it has anything to say. */
static bool atp_no_policy(struct net *net, struct sk_buff *skb)
{
#ifdef CONFIG_XFRM
	return __xfrm_check_nopolicy(net, skb, XFRM_POLICY_IN);
#else
	return true;
#endif
}

/* Who tracks connections keeps a new one when its first packet goes on. */
static bool atp_no_new_flow(const struct sk_buff *skb)
{
	enum ip_conntrack_info info;
	const struct nf_conn *ct = nf_ct_get(skb, &info);

	return !ct || nf_ct_is_confirmed(ct);
}

/* Would UDP look for a socket, and find ours?  It does not find it for what has
 * come to a device of a VRF, and does not look where somebody has named one.
 */
static bool atp_burst_our_socket(const struct sk_buff *skb)
{
	return !skb->sk && !netif_is_l3_master(skb->dev);
}

/* A burst from our port to ours, with nobody to look at it any more?  Those of
 * GRO and those of a sender here have their checksum to be completed.
 */
static bool atp_burst_ours(struct net *net, struct sk_buff *skb, u32 ip_len)
{
	const struct udphdr *uh;

	if (skb_shinfo(skb)->gso_type != SKB_GSO_UDP_L4 ||
	    skb_has_shared_frag(skb) || skb_network_offset(skb) ||
	    skb_headlen(skb) < ip_len + sizeof(*uh) ||
	    skb->ip_summed != CHECKSUM_PARTIAL ||
	    skb_checksum_start_offset(skb) != ip_len)
		return false;
	uh = (const struct udphdr *)(skb->data + ip_len);
	return uh->source == htons(ATP_PORT) && uh->dest == htons(ATP_PORT) &&
	       ntohs(uh->len) == skb->len - ip_len &&
	       atp_burst_our_socket(skb) && atp_no_new_flow(skb) &&
	       atp_no_policy(net, skb);
}

/* One event per packet, for who listens */
static void atp_burst_trace(struct net *net, const struct sk_buff *skb)
{
	enum atp_drop reason;
	struct atp_rcv rcv;
	struct atp_pkt pkt;

	if (!trace_atp_receive_enabled())
		return;
	atp_rcv_begin(&rcv, skb);
	while (atp_rcv_next(&rcv, &pkt, &reason))
		if (!reason)
			trace_atp_receive(net, &pkt);
}

/* What is taken is UDP's no less, and is in its statistics. */
static void atp_burst_count(struct net *net, struct atp_job *job,
			    const struct sk_buff *skb)
{
	u32 n = atp_skb_packets(skb);

	atp_count(net, job, ATP_MIB_IN_PACKETS, n);
	atp_count(net, job, ATP_MIB_IN_BURSTS, 1);
	if (skb->protocol == htons(ETH_P_IP))
		SNMP_ADD_STATS(net->mib.udp_statistics, UDP_MIB_INDATAGRAMS, n);
#if IS_ENABLED(CONFIG_IPV6)
	else
		SNMP_ADD_STATS(net->mib.udp_stats_in6, UDP_MIB_INDATAGRAMS, n);
#endif
}

/* Give it to whoever it is for.  Return: false if it is left alone.  Context:
 * softirq under RCU.
 */
static bool atp_burst_take(struct net *net, struct sk_buff *skb, u32 headers)
{
	struct in6_addr src, dst;
	struct atp_pkt pkt = {};
	struct atp_job *job;
	u32 ranks;
	bool ce;

	lockdep_assert_in_softirq();

	__skb_pull(skb, headers);
	if (!atp_burst_first(skb, &pkt))
		goto leave;
	atp_addresses(skb, &src, &dst, &ce);
	job = atp_job_find(atp_pernet(net), pkt.job);
	if (!job || atp_way(job, &pkt, &src, &dst, &ranks) ||
	    !atp_burst_plain(skb, &pkt))
		goto leave;

	pkt.ce = ce;
	*atp_skb_pkt(skb) = pkt;
	skb_set_transport_header(skb, -(int)sizeof(struct udphdr));
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	atp_burst_count(net, job, skb);
	atp_burst_trace(net, skb);
	atp_deliver(job, skb, ranks);
	return true;
leave:
	__skb_push(skb, headers);
	return false;
}

/* Length of the IP header, or 0 if there is more than that before UDP's, or
 * something else behind it.
 */
static u32 atp_burst_ip_len(const struct sk_buff *skb)
{
	if (skb->protocol == htons(ETH_P_IPV6))
		return ipv6_hdr(skb)->nexthdr == IPPROTO_UDP ?
		       sizeof(struct ipv6hdr) : 0;
	if (ip_hdr(skb)->protocol != IPPROTO_UDP)
		return 0;
	return ip_hdrlen(skb) == sizeof(struct iphdr) ? ip_hdrlen(skb) : 0;
}

/* Context: under RCU; softirq, or a process that has had a look at the burst
 * (NFQUEUE).
 */
static unsigned int atp_burst_hook(void *priv, struct sk_buff *skb,
				   const struct nf_hook_state *state)
{
	bool taken;
	u32 ip_len;

	if (!skb_is_gso(skb))
		return NF_ACCEPT;
	ip_len = atp_burst_ip_len(skb);
	if (!ip_len || !atp_burst_ours(state->net, skb, ip_len))
		return NF_ACCEPT;
	local_bh_disable();
	taken = atp_burst_take(state->net, skb, ip_len + sizeof(struct udphdr));
	local_bh_enable();
	return taken ? NF_STOLEN : NF_ACCEPT;
}

/* Behind all rules; who tracks connections has the same number, and whichever
 * comes later is asked first (atp_no_new_flow()).
 */
static const struct nf_hook_ops atp_burst_ops[] = {
	{
		.hook		= atp_burst_hook,
		.pf		= NFPROTO_IPV4,
		.hooknum	= NF_INET_LOCAL_IN,
		.priority	= NF_IP_PRI_LAST,
	},
	{
		.hook		= atp_burst_hook,
		.pf		= NFPROTO_IPV6,
		.hooknum	= NF_INET_LOCAL_IN,
		.priority	= NF_IP6_PRI_LAST,
	},
};

/* As long as the namespace is there, with jobs or without: the first hook of
 * all namespaces and the last change the kernel's text.
 */
int atp_rcv_open(struct net *net)
{
	return nf_register_net_hooks(net, atp_burst_ops,
				     ARRAY_SIZE(atp_burst_ops));
}

/* A burst may be on its way still, until a grace period is over. */
void atp_rcv_close(struct net *net)
{
	nf_unregister_net_hooks(net, atp_burst_ops, ARRAY_SIZE(atp_burst_ops));
}
#else
int atp_rcv_open(struct net *net)
{
	return 0;
}

void atp_rcv_close(struct net *net)
{
}
#endif /* CONFIG_NETFILTER */
