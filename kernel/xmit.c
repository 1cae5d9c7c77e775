// SPDX-License-Identifier: GPL-2.0
/*
 * From a buffer of ATP packets to the device: UDP and IP headers, route,
 * checksum, segmentation.
 *
 * Packets carry ECT(0) and must not be fragmented: a switch aggregates whole
 * packets only.  The checksum of a single packet is complete when it leaves
 * here, since an XDP program behind a veth sees it as it is.  That of a burst
 * is left to the segmentation, in the device or in software.
 */
#include <net/addrconf.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include <net/udp.h>
#include "atp.h"

#define ATP_HEADROOM (LL_MAX_HEADER + sizeof(struct ipv6hdr) + \
		      sizeof(struct udphdr))
#define ATP_TTL		64

/* Most that netdev_alloc_frag() gives in one piece */
#define ATP_ROOM_MAX	PAGE_FRAG_CACHE_MAX_SIZE

/**
 * atp_alloc_ctl() - skb for one packet of headers and struct atp_ctl
 * @data: (out) where to write the packet
 * @gfp: allocation flags
 *
 * Return: skb of the right length, or NULL.
 */
struct sk_buff *atp_alloc_ctl(void **data, gfp_t gfp)
{
	u32 len = ATP_HDR_LEN + ATP_CTL_LEN;
	struct sk_buff *skb;

	skb = alloc_skb(ATP_HEADROOM + len, gfp);
	if (!skb)
		return NULL;
	skb_reserve(skb, ATP_HEADROOM);
	*data = skb_put(skb, len);
	return skb;
}

/**
 * atp_alloc_burst() - skb without data yet, for packets in a row
 * @gfp: allocation flags
 *
 * Return: skb for atp_burst_room() or atp_burst_attach(), or NULL.
 */
struct sk_buff *atp_alloc_burst(gfp_t gfp)
{
	struct sk_buff *skb;

	skb = alloc_skb(ATP_HEADROOM, gfp);
	if (skb)
		skb_reserve(skb, ATP_HEADROOM);
	return skb;
}

/**
 * atp_burst_room() - contiguous room for more packets in a burst
 * @skb: from atp_alloc_burst()
 * @len: length of each packet
 * @room: (in) packets wanted, (out) packets that fit, at least one
 *
 * What is written there is added by atp_burst_add(), all of it before more is
 * asked for.
 *
 * Return: where to write, or NULL if there is no memory or no place left.
 */
void *atp_burst_room(struct sk_buff *skb, u32 len, u32 *room)
{
	u32 n = min_t(u32, *room, ATP_ROOM_MAX / len);
	struct page *page;
	void *data;
	int frag;

	frag = skb_shinfo(skb)->nr_frags;
	if (frag == MAX_SKB_FRAGS)
		return NULL;
	data = netdev_alloc_frag(n * len);
	if (!data) {
		/* perhaps there are single pages still */
		n = max_t(u32, PAGE_SIZE / len, 1);
		n = min(n, *room);
		data = netdev_alloc_frag(n * len);
	}
	if (!data)
		return NULL;
	page = virt_to_head_page(data);
	skb_fill_page_desc(skb, frag, page, data - page_address(page), 0);
	skb->truesize += n * len;
	*room = n;
	return data;
}

/* The last piece has packets of this many more bytes. */
void atp_burst_add(struct sk_buff *skb, u32 bytes)
{
	int frag = skb_shinfo(skb)->nr_frags - 1;

	skb_frag_size_add(&skb_shinfo(skb)->frags[frag], bytes);
	skb->len += bytes;
	skb->data_len += bytes;
}

/**
 * atp_burst_attach() - add a packet that other bursts have, too
 * @skb: from atp_alloc_burst()
 * @page: where it is; nothing of it may change any more
 * @off: from there, on behind the last one if that is possible
 * @len: its length
 *
 * Return: false if there is no place left.
 */
bool atp_burst_attach(struct sk_buff *skb, struct page *page, u32 off, u32 len)
{
	int frag = skb_shinfo(skb)->nr_frags;

	if (!skb_can_coalesce(skb, frag, page, off)) {
		if (frag == MAX_SKB_FRAGS)
			return false;
		get_page(page);
		skb_fill_page_desc(skb, frag, page, off, 0);
	}
	skb->truesize += len;
	atp_burst_add(skb, len);
	return true;
}

/* Both ports are ours: the kernel holds this one on every host with a job, so a
 * packet from it is not from some user's socket.
 */
static void atp_udp_header(struct sk_buff *skb)
{
	struct udphdr *uh;

	uh = __skb_push(skb, sizeof(*uh));
	skb_reset_transport_header(skb);
	uh->source = htons(ATP_PORT);
	uh->dest = htons(ATP_PORT);
	uh->len = htons(skb->len);
	uh->check = 0;
}

/* For a burst: what each segment's checksum starts from. */
static void atp_gso(struct sk_buff *skb, u32 gso_size)
{
	u32 payload = skb->len - sizeof(struct udphdr);

	skb_shinfo(skb)->gso_size = gso_size;
	skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
	skb_shinfo(skb)->gso_segs = DIV_ROUND_UP(payload, gso_size);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
}

static struct rtable *atp_route4(struct net *net, __be32 src, __be32 dst,
				 u32 mark, struct dst_cache *cache)
{
	struct flowi4 fl4 = {
		.flowi4_mark	= mark,
		.saddr		= src,
		.daddr		= dst,
		.flowi4_proto	= IPPROTO_UDP,
		.fl4_sport	= htons(ATP_PORT),
		.fl4_dport	= htons(ATP_PORT),
	};
	struct rtable *rt;
	__be32 saddr;

	rt = cache ? dst_cache_get_ip4(cache, &saddr) : NULL;
	if (rt)
		return rt;
	rt = ip_route_output_key(net, &fl4);
	if (!IS_ERR(rt) && cache)
		dst_cache_set_ip4(cache, &rt->dst, src);
	return rt;
}

static struct dst_entry *atp_route6(struct net *net,
				    const struct socket *sock6,
				    const struct in6_addr *src,
				    const struct in6_addr *dst, u32 mark,
				    struct dst_cache *cache)
{
	struct flowi6 fl6 = {
		.flowi6_mark	= mark,
		.saddr		= *src,
		.daddr		= *dst,
		.flowi6_proto	= IPPROTO_UDP,
		.fl6_sport	= htons(ATP_PORT),
		.fl6_dport	= htons(ATP_PORT),
	};
	struct in6_addr saddr;
	struct dst_entry *de;

	if (!sock6)
		return ERR_PTR(-EAFNOSUPPORT);
	de = cache ? dst_cache_get_ip6(cache, &saddr) : NULL;
	if (de)
		return de;
	de = ipv6_stub->ipv6_dst_lookup_flow(net, sock6->sk, &fl6, NULL);
	if (!IS_ERR(de) && cache)
		dst_cache_set_ip6(cache, de, src);
	return de;
}

/* Device of a route, NULL if the route ended just now: what IP puts into its
 * place has the least MTU that there is, and takes nothing.  Who has the route
 * does not keep the device.
 *
 * Context: RCU.
 */
static const struct net_device *atp_route_dev(const struct dst_entry *de)
{
	const struct net_device *dev = READ_ONCE(de->dev);

	RCU_LOCKDEP_WARN(!rcu_read_lock_any_held(), "nothing keeps the device");

	return dev == blackhole_netdev ? NULL : dev;
}

/* MTU of device and route, or -ENETUNREACH.  What IP has heard of the path
 * since is no better than whoever said so (icmp.c), so an exception to the
 * route does not count.  That there is one is said by a bit field, which cannot
 * be read once.
 */
static int atp_mtu4(const struct rtable *rt)
{
	const struct dst_entry *de = &rt->dst;
	const struct net_device *dev = atp_route_dev(de);

	if (!dev)
		return -ENETUNREACH;
	/* it counts for the next packet */
	if (data_race(!rt->rt_pmtu))
		return dst_mtu(de);
	return dst_metric_raw(de, RTAX_MTU) ?: READ_ONCE(dev->mtu);
}

/* An exception's metric hides the route's: then the device's it is. */
static int atp_mtu6(const struct dst_entry *de)
{
	const struct rt6_info *rt = (const struct rt6_info *)de;
	const struct net_device *dev = atp_route_dev(de);

	if (!dev)
		return -ENETUNREACH;
	if (!(READ_ONCE(rt->rt6i_flags) & RTF_CACHE))
		return dst_mtu(de);
	return READ_ONCE(dev->mtu);
}

/* Does each packet fit?  Return: 0, -EMSGSIZE, or why there is no @mtu */
static int atp_fits(int mtu, const struct sk_buff *skb, u32 gso_size,
		    u32 ip_len)
{
	u32 len = gso_size ?: skb->len;

	if (mtu < 0)
		return mtu;
	return len + sizeof(struct udphdr) + ip_len <= mtu ? 0 : -EMSGSIZE;
}

/* What leaves for no worker's socket, which would be charged, is charged to the
 * job's.  That may be on its way out, but stays as long as packets do.
 * Return: 0, -ENOBUFS if too much of the job waits already, -ENOTCONN if the
 * job was removed.
 */
static int atp_charge(const struct atp_job *job, struct sk_buff *skb)
{
	struct sock *payer;

	if (skb->sk)
		return 0;
	payer = READ_ONCE(job->payer);
	if (!payer)
		return -ENOTCONN;
	if (sk_wmem_alloc_get(payer) > ATP_QUEUED_MAX)
		return -ENOBUFS;
	if (!refcount_add_not_zero(skb->truesize, &payer->sk_wmem_alloc))
		return -ENOTCONN;
	skb->sk = payer;
	skb->destructor = sock_wfree;
	return 0;
}

/* Return: 0; 1 if IP or its queue has dropped @skb; if it is the caller's still
 * -EMSGSIZE, -ENOTCONN if the last job was removed, or as routing says.
 */
static int atp_xmit4(struct net *net, struct sk_buff *skb, u32 gso_size,
		     __be32 src, __be32 dst, struct dst_cache *cache)
{
	struct socket *sock4 = rcu_dereference_bh(atp_pernet(net)->sock4);
	struct udphdr *uh;
	struct iphdr *ip;
	struct rtable *rt;
	__wsum csum;
	int err;

	if (!sock4)
		return -ENOTCONN;
	rt = atp_route4(net, src, dst, skb->mark, cache);
	if (IS_ERR(rt))
		return PTR_ERR(rt);
	err = atp_fits(atp_mtu4(rt), skb, gso_size, sizeof(struct iphdr));
	if (err) {
		ip_rt_put(rt);
		return err;
	}

	atp_udp_header(skb);
	uh = udp_hdr(skb);
	if (gso_size) {
		atp_gso(skb, gso_size);
		uh->check = ~udp_v4_check(skb->len, src, dst, 0);
	} else {
		csum = skb_checksum(skb, 0, skb->len, 0);
		uh->check = udp_v4_check(skb->len, src, dst, csum) ? :
			    CSUM_MANGLED_0;
	}

	skb_dst_set(skb, &rt->dst);
	ip = __skb_push(skb, sizeof(*ip));
	skb_reset_network_header(skb);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = INET_ECN_ECT_0;
	ip->frag_off = htons(IP_DF);
	ip->ttl = ATP_TTL;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = src;
	ip->daddr = dst;
	__ip_select_ident(net, ip, skb_shinfo(skb)->gso_segs ?: 1);
	memset(skb->cb, 0, sizeof(struct inet_skb_parm));
	err = ip_local_out(net, sock4->sk, skb);
	return !!net_xmit_eval(err);
}

/* Return: as atp_xmit4(), or -EAFNOSUPPORT without IPv6 or a job */
static int atp_xmit6(struct net *net, struct sk_buff *skb, u32 gso_size,
		     const struct in6_addr *src, const struct in6_addr *dst,
		     struct dst_cache *cache)
{
	struct socket *sock6 = rcu_dereference_bh(atp_pernet(net)->sock6);
	struct dst_entry *de;
	struct ipv6hdr *ip6;
	struct udphdr *uh;
	__wsum csum;
	int err;

	if (!sock6)
		return -EAFNOSUPPORT;
	de = atp_route6(net, sock6, src, dst, skb->mark, cache);
	if (IS_ERR(de))
		return PTR_ERR(de);
	err = atp_fits(atp_mtu6(de), skb, gso_size, sizeof(struct ipv6hdr));
	if (err) {
		dst_release(de);
		return err;
	}

	atp_udp_header(skb);
	uh = udp_hdr(skb);
	if (gso_size) {
		atp_gso(skb, gso_size);
		uh->check = ~udp_v6_check(skb->len, src, dst, 0);
	} else {
		csum = skb_checksum(skb, 0, skb->len, 0);
		uh->check = udp_v6_check(skb->len, src, dst, csum) ? :
			    CSUM_MANGLED_0;
	}

	skb_dst_set(skb, de);
	ip6 = __skb_push(skb, sizeof(*ip6));
	skb_reset_network_header(skb);
	ip6_flow_hdr(ip6, INET_ECN_ECT_0, 0);
	ip6->payload_len = htons(skb->len - sizeof(*ip6));
	ip6->nexthdr = IPPROTO_UDP;
	ip6->hop_limit = ATP_TTL;
	ip6->saddr = *src;
	ip6->daddr = *dst;
	/* not as a tunnel does: below tunnels IPv6 does not ask the owner */
	memset(skb->cb, 0, sizeof(struct inet6_skb_parm));
	err = ip6_local_out(net, sock6->sk, skb);
	return !!net_xmit_eval(err);
}

/**
 * atp_xmit() - send one packet or a burst
 * @job: whose
 * @skb: ATP packets from skb->data on, with mark and priority; consumed
 * @gso_size: length of each packet of a burst but the last, 0 for one packet
 * @src: own address
 * @dst: where to
 * @cache: route to there with this mark, or NULL
 *
 * What cannot be sent is counted and freed: to the protocol it was lost.
 *
 * Context: bottom halves off.
 * Return: 0, if IP dropped it, too; -EMSGSIZE if it does not fit the path;
 * -ENOBUFS if too much of the job waits already; -ENOTCONN if that was removed;
 * -EAFNOSUPPORT without IPv6; else as routing says.
 */
int atp_xmit(struct atp_job *job, struct sk_buff *skb, u32 gso_size,
	     const struct in6_addr *src, const struct in6_addr *dst,
	     struct dst_cache *cache)
{
	struct net *net = job->net;
	u32 packets = 1;
	int err;

	lockdep_assert_in_softirq();
	lockdep_assert_not_held(&job->lock);
	if (job->ps)
		lockdep_assert_not_held(&job->ps->lock);

	if (gso_size)
		packets = DIV_ROUND_UP(skb->len, gso_size);
	err = atp_charge(job, skb);
	if (err)
		goto drop;
	if (ipv6_addr_v4mapped(dst))
		err = atp_xmit4(net, skb, gso_size, src->s6_addr32[3],
				dst->s6_addr32[3], cache);
	else
		err = atp_xmit6(net, skb, gso_size, src, dst, cache);
	if (err < 0)
		goto drop;
	atp_count(net, job, err ? ATP_MIB_OUT_ERRORS : ATP_MIB_OUT_PACKETS,
		  packets);
	if (gso_size && !err)
		atp_count(net, job, ATP_MIB_OUT_BURSTS, 1);
	return 0;

drop:
	kfree_skb(skb);
	atp_count(net, job, err == -ENOBUFS ? ATP_MIB_OUT_NOMEM :
		  ATP_MIB_OUT_ERRORS, packets);
	return err;
}

static int atp_path_mtu4(struct net *net, __be32 src, __be32 dst, u32 mark)
{
	struct rtable *rt = atp_route4(net, src, dst, mark, NULL);
	int mtu;

	if (IS_ERR(rt))
		return PTR_ERR(rt);
	mtu = atp_mtu4(rt);
	ip_rt_put(rt);
	return mtu;
}

static int atp_path_mtu6(struct net *net, const struct in6_addr *src,
			 const struct in6_addr *dst, u32 mark)
{
	struct dst_entry *de;
	int mtu;

	de = atp_route6(net, rcu_dereference(atp_pernet(net)->sock6), src, dst,
			mark, NULL);
	if (IS_ERR(de))
		return PTR_ERR(de);
	mtu = atp_mtu6(de);
	dst_release(de);
	return mtu;
}

/* MTU of the first hop to @dst and of the route, or a negative errno. */
int atp_path_mtu(struct net *net, const struct in6_addr *src,
		 const struct in6_addr *dst, u32 mark)
{
	int mtu;

	/* the job, with it the UDP socket, and the device may go just now */
	rcu_read_lock();
	if (ipv6_addr_v4mapped(dst))
		mtu = atp_path_mtu4(net, src->s6_addr32[3], dst->s6_addr32[3],
				    mark);
	else
		mtu = atp_path_mtu6(net, src, dst, mark);
	rcu_read_unlock();
	return mtu;
}
