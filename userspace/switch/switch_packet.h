/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames: telling ATP packets from others, checking them, checksums, and the
 * rewriting of headers.  Compiles for BPF and for user space.  The functions
 * take the first byte of a frame and the one after its last, and look at no
 * byte before they have compared with the latter, which is what the kernel's
 * verifier wants to see.
 */
#ifndef _ATP_SWITCH_PACKET_H
#define _ATP_SWITCH_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include "switch_types.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "lanes are added as they lie in memory: little-endian machines only"
#endif

#ifndef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#endif

/*
 * Words of a packet, which are looked at as other types elsewhere and have any
 * alignment.  The machines that run BPF with a JIT load them anyway, and the
 * compiler must not think otherwise.
 */
#ifdef __bpf__
#define SW_WORD			__attribute__((may_alias))
#else
#define SW_WORD			__attribute__((may_alias, aligned(1)))
#endif
typedef __u64 SW_WORD sw_word;
typedef __u32 SW_WORD sw_half;

#define sw_swap16(x)		__builtin_bswap16(x)
#define sw_swap32(x)		__builtin_bswap32(x)

#define SW_L4_IPV4		(ETH_HLEN + sizeof(struct iphdr))
#define SW_L4_IPV6		(ETH_HLEN + sizeof(struct ipv6hdr))
#define SW_UDP_ATP		(sizeof(struct udphdr) + ATP_HDR_LEN)

#define SW_TAG_LEN		4	/* of a VLAN */
#define SW_TAGS			4	/* so many are looked behind */

/* What sw_parse() and sw_check() say of a frame */
enum sw_class {
	SW_CLASS_ATP,		/* (parse) data packet, (check) a good one */
	SW_CLASS_CONTROL,	/* left to the kernel, from the right port */
	SW_CLASS_VLAN,		/* so is this, in a VLAN */
	SW_CLASS_OTHER,		/* other traffic */
	SW_CLASS_VERSION,	/* the kinds below are left to the kernel */
	SW_CLASS_TRUNCATED,
	SW_CLASS_OPTIONS,	/* the kinds below are dropped */
	SW_CLASS_TAGGED,
	SW_CLASS_HEADER,
	SW_CLASS_LENGTH,
	SW_CLASS_BITMAP,
	SW_CLASS_CSUM,
	SW_CLASS_CSUM_NONE,
	SW_CLASS_CSUM_PARTIAL,
	SW_CLASS_STRANGER,
	SW_CLASS_PORT,
	SW_CLASS_MISMATCH,	/* and these are left to the kernel, counted */
	SW_CLASS_TTL,
};

/**
 * struct sw_pkt - what is known of a packet, in host order
 * @l4: where its UDP header is
 * @v6: IPv6
 * @ce: the network has marked it
 * @sport: UDP source port
 * @flags: ATP_F_*
 * @elements: lanes that count
 * @cap: cwndCap
 * @dtype: enum atp_data_type
 * @fanin: fanInDegree0
 * @job: jobID
 * @epoch: run
 * @seq: sequenceNumber
 * @bitmap: bitmap0
 * @index: aggregatorIndex
 * @type: enum atp_type
 * @head: folded sum of UDP and ATP header, and of the pseudo header
 * @sum: folded sum of the payload
 * @src: source address, IPv4 mapped
 * @dst: destination address, IPv4 mapped
 */
struct sw_pkt {
	__u32	l4;
	__u8	v6;
	__u8	ce;
	__u8	dtype;
	__u8	fanin;
	__u16	sport;
	__u16	flags;
	__u16	elements;
	__u16	cap;
	__u32	job;
	__u32	epoch;
	__u32	seq;
	__u32	bitmap;
	__u32	index;
	__u32	type;
	__u32	head;
	__u32	sum;
	__u32	src[4];
	__u32	dst[4];
};

/* One decision, not four: the verifier follows each */
static __always_inline bool sw_same_addr(const __u32 *a, const __u32 *b)
{
	return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) |
		 (a[3] ^ b[3]));
}

/* An IPv4 address; one decision, too */
static __always_inline bool sw_is_mapped(const __u32 *a)
{
	return !(a[0] | a[1] | (a[2] ^ sw_swap32(0xffff)));
}

/* EtherType; struct ethhdr is packed and would be read byte by byte */
static __always_inline const __be16 *sw_proto(const void *eth)
{
	return eth + 2 * ETH_ALEN;
}

/* Sum of 16-bit words, of any width so far, folded into 16 bits */
static __always_inline __u32 sw_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u32)sum;
}

/* Payload bytes of a data packet */
static __always_inline __u32 sw_payload_len(const struct sw_pkt *p)
{
	return ATP_PAYLOAD_LEN((__u32)p->elements);
}

static __always_inline bool sw_dont_look(__be16 fragment)
{
	/* more fragments, or not the first */
	return fragment & sw_swap16(0x3fff);
}

/*
 * Does a UDP header say that this is ATP?  Nobody sends ATP with options or in
 * fragments, and hosts drop it; but what they drop it for, the kernel of this
 * machine may take away, if it follows connections.  Without its first fragment
 * no packet is made whole again.
 */
static __always_inline bool sw_is_atp_port(const void *l4, const void *end)
{
	const struct udphdr *udp = l4;

	if (l4 + sizeof(*udp) > end)
		return false;
	return udp->dest == sw_swap16(ATP_PORT);
}

static __always_inline enum sw_class
sw_parse_ipv4(const void *data, const void *end, struct sw_pkt *p)
{
	const struct iphdr *ip = data + ETH_HLEN;

	if ((const void *)(ip + 1) > end)
		return SW_CLASS_OTHER;
	if (ip->version != 4 || ip->protocol != IPPROTO_UDP)
		return SW_CLASS_OTHER;
	if (ip->ihl != 5 || sw_dont_look(ip->frag_off)) {
		if (ip->ihl < 5 || (ip->frag_off & sw_swap16(0x1fff)))
			return SW_CLASS_OTHER;
		return sw_is_atp_port((const void *)ip + 4 * ip->ihl, end) ?
		       SW_CLASS_OPTIONS : SW_CLASS_OTHER;
	}
	if (!sw_is_atp_port(ip + 1, end))
		return SW_CLASS_OTHER;

	p->l4 = SW_L4_IPV4;
	p->v6 = 0;
	p->ce = (ip->tos & 3) == 3;
	p->src[0] = 0;
	p->src[1] = 0;
	p->src[2] = sw_swap32(0xffff);
	p->src[3] = ip->saddr;
	p->dst[0] = 0;
	p->dst[1] = 0;
	p->dst[2] = sw_swap32(0xffff);
	p->dst[3] = ip->daddr;
	return SW_CLASS_ATP;
}

/* RFC 8200, 4.5 */
struct sw_frag_hdr {
	__u8	nexthdr;
	__u8	reserved;
	__be16	offset;		/* in its upper 13 bits */
	__be32	id;
};

static __always_inline enum sw_class
sw_parse_fragment(const void *data, const void *end)
{
	const struct sw_frag_hdr *frag = data;

	if ((const void *)(frag + 1) > end)
		return SW_CLASS_OTHER;
	/* nobody sends that, and it hides what two machines can take out */
	if (frag->nexthdr == IPPROTO_FRAGMENT)
		return SW_CLASS_OPTIONS;
	if (frag->nexthdr != IPPROTO_UDP || frag->offset & sw_swap16(0xfff8))
		return SW_CLASS_OTHER;
	return sw_is_atp_port(frag + 1, end) ? SW_CLASS_OPTIONS :
					       SW_CLASS_OTHER;
}

static __always_inline enum sw_class
sw_parse_ipv6(const void *data, const void *end, struct sw_pkt *p)
{
	const struct ipv6hdr *ip = data + ETH_HLEN;

	if ((const void *)(ip + 1) > end)
		return SW_CLASS_OTHER;
	if (ip->version == 6 && ip->nexthdr == IPPROTO_FRAGMENT)
		return sw_parse_fragment(ip + 1, end);
	if (ip->version != 6 || ip->nexthdr != IPPROTO_UDP)
		return SW_CLASS_OTHER;
	if (!sw_is_atp_port(ip + 1, end))
		return SW_CLASS_OTHER;

	p->l4 = SW_L4_IPV6;
	p->v6 = 1;
	p->ce = (ip->flow_lbl[0] & 0x30) == 0x30;
	p->src[0] = ip->saddr.s6_addr32[0];
	p->src[1] = ip->saddr.s6_addr32[1];
	p->src[2] = ip->saddr.s6_addr32[2];
	p->src[3] = ip->saddr.s6_addr32[3];
	p->dst[0] = ip->daddr.s6_addr32[0];
	p->dst[1] = ip->daddr.s6_addr32[1];
	p->dst[2] = ip->daddr.s6_addr32[2];
	p->dst[3] = ip->daddr.s6_addr32[3];
	return SW_CLASS_ATP;
}

static __always_inline enum sw_class
sw_parse_ip(const void *data, const void *end, struct sw_pkt *p)
{
	if (*sw_proto(data) == sw_swap16(ETH_P_IP))
		return sw_parse_ipv4(data, end, p);
	if (*sw_proto(data) == sw_swap16(ETH_P_IPV6))
		return sw_parse_ipv6(data, end, p);
	return SW_CLASS_OTHER;
}

static __always_inline bool sw_is_tagged(const void *data)
{
	return *sw_proto(data) == sw_swap16(ETH_P_8021Q) ||
	       *sw_proto(data) == sw_swap16(ETH_P_8021AD);
}

/* Is there a header of ATP?  Finds the job only. */
static __always_inline bool
sw_parse_job(const void *data, const void *end, struct sw_pkt *p)
{
	const struct atp_hdr *hdr = data + p->l4 + sizeof(struct udphdr);

	if ((const void *)(hdr + 1) > end)
		return false;
	p->job = sw_swap32(hdr->jobID);
	return true;
}

/*
 * A tag of VLAN 0 has a priority only.  The kernel takes off any number of
 * these, so what is behind them gets to the sockets of a host, past all that is
 * checked here.  Nobody sends that, nor as many tags as are not looked behind.
 * Other tags are taken off by a host that has a device for the VLAN; what is
 * behind them may be for any of its addresses.
 */
static __always_inline enum sw_class
sw_parse_tagged(const void *data, const void *end, struct sw_pkt *p)
{
	enum sw_class class;
	bool vlan = false;
	const __be16 *tci;
	int i;

	for (i = 0; i < SW_TAGS && sw_is_tagged(data); i++) {
		tci = data + ETH_HLEN;
		data += SW_TAG_LEN;
		if (data + ETH_HLEN > end)
			return SW_CLASS_OTHER;
		if (*tci & sw_swap16(0x0fff))
			vlan = true;
	}
	if (sw_is_tagged(data))
		return SW_CLASS_TAGGED;
	class = sw_parse_ip(data, end, p);
	if (class != SW_CLASS_OTHER && !vlan)
		return SW_CLASS_TAGGED;
	if (class != SW_CLASS_ATP)
		return class;
	return sw_parse_job(data, end, p) ? SW_CLASS_VLAN : SW_CLASS_OTHER;
}

/**
 * sw_parse() - tell what a frame is
 * @data: its first byte
 * @end: the byte after its last
 * @p: filled in, if it is a data or control packet of ATP, apart from @head
 *     and @sum
 *
 * Nothing is checked yet: the packet may belong to a job that this switch does
 * not know and that is none of its business.
 *
 * Return: %SW_CLASS_ATP, %SW_CLASS_CONTROL, %SW_CLASS_VLAN with no more than
 *         the job and the addresses in @p, or what else it is
 */
static __always_inline enum sw_class
sw_parse(const void *data, const void *end, struct sw_pkt *p)
{
	const struct ethhdr *eth = data;
	const struct atp_hdr *hdr;
	const struct udphdr *udp;
	enum sw_class class;

	if ((const void *)(eth + 1) > end)
		return SW_CLASS_OTHER;
	class = sw_parse_ip(data, end, p);
	if (class == SW_CLASS_OTHER && sw_is_tagged(data))
		return sw_parse_tagged(data, end, p);
	if (class != SW_CLASS_ATP)
		return class;

	udp = data + p->l4;
	hdr = (const void *)(udp + 1);
	if ((const void *)(hdr + 1) > end)
		return SW_CLASS_TRUNCATED;
	if (hdr->version != ATP_VERSION)
		return SW_CLASS_VERSION;

	p->sport = sw_swap16(udp->source);
	p->flags = sw_swap16(hdr->flags);
	p->elements = sw_swap16(hdr->elements);
	p->cap = sw_swap16(hdr->cwndCap);
	p->dtype = hdr->dataType;
	p->fanin = hdr->fanInDegree0;
	p->job = sw_swap32(hdr->jobID);
	p->epoch = sw_swap32(hdr->epoch);
	p->seq = sw_swap32(hdr->sequenceNumber);
	p->bitmap = sw_swap32(hdr->bitmap0);
	p->index = sw_swap32(hdr->aggregatorIndex);
	p->type = hdr->type;
	return p->type == ATP_TYPE_DATA ? SW_CLASS_ATP : SW_CLASS_CONTROL;
}

/* Flags that contradict each other or the rest of a parameter packet: it is no
 * answer that is sent again; values that were never scaled are float32, a sum
 * that fits no lane is int32; see Numbers in protocol.rst
 */
static __always_inline bool sw_bad_parameter(const struct sw_pkt *p)
{
	if (p->flags & ATP_F_RESEND)
		return true;
	if (p->flags & ATP_F_RAW)
		return !p->elements || p->dtype != ATP_FLOAT32;
	if (p->flags & ATP_F_OVERFLOW) /* without elements: a raw request */
		return p->elements && p->dtype != ATP_INT32;
	return !p->elements;
}

/* Values of the header that no party sends */
static __always_inline bool sw_bad_header(const void *data, const void *end,
					  const struct sw_pkt *p)
{
	const struct atp_hdr *hdr = data + p->l4 + sizeof(struct udphdr);
	const __u16 both = ATP_F_RAW | ATP_F_OVERFLOW;

	if ((const void *)(hdr + 1) > end)
		return true;
	if (p->flags & ~ATP_F_ALL || p->flags & ATP_F_EDGE)
		return true;
	if ((p->flags & both) == both)
		return true;
	if (hdr->bitmap1 || hdr->fanInDegree1 || hdr->treeID)
		return true;
	if (p->dtype != ATP_INT32 && p->dtype != ATP_FLOAT32)
		return true;
	if (p->elements > ATP_FRAGMENT_MAX / 4)
		return true;
	if (p->flags & ATP_F_ACK)
		return sw_bad_parameter(p);
	return !p->elements || p->flags & ATP_F_MCAST;
}

/* Are all lengths what the number of elements says, and the padding zero? */
static __always_inline bool sw_bad_length(const void *data, const void *end,
					  const struct sw_pkt *p)
{
	__u32 len = SW_UDP_ATP + sw_payload_len(p);
	const struct udphdr *udp = data + p->l4;

	if ((__u32)(end - data) != p->l4 + len)
		return true;
	if ((const void *)(udp + 1) > end || sw_swap16(udp->len) != len)
		return true;
	if (p->v6) {
		const struct ipv6hdr *ip = data + ETH_HLEN;

		return (const void *)(ip + 1) > end ||
		       sw_swap16(ip->payload_len) != len;
	} else {
		const struct iphdr *ip = data + ETH_HLEN;

		return (const void *)(ip + 1) > end ||
		       sw_swap16(ip->tot_len) != len + sizeof(*ip);
	}
}

/* With an odd number of lanes, the one behind the last is zero */
static __always_inline bool sw_bad_padding(const void *data, const void *end,
					   const struct sw_pkt *p)
{
	const sw_half *lane = data + p->l4 + SW_UDP_ATP;

	if (!(p->elements & 1))
		return false;
	lane += p->elements & 0x7ff;
	return (const void *)(lane + 1) > end || *lane;
}

/* Sum of @n 32-bit words; @n is known to the compiler */
static __always_inline __u64 sw_sum32(const void *from, int n)
{
	const sw_half *word = from;
	__u64 sum = 0;
	int i;

#pragma GCC unroll 16
	for (i = 0; i < n; i++)
		sum += word[i];
	return sum;
}

/* Pseudo header of the UDP checksum */
static __always_inline __u64 sw_sum_pseudo(const struct sw_pkt *p,
					   __be16 udp_len)
{
	__u64 sum = sw_swap16(IPPROTO_UDP) + (__u64)udp_len;

	sum += (__u64)p->src[3] + p->dst[3];
	if (p->v6) {
		sum += (__u64)p->src[0] + p->src[1] + p->src[2];
		sum += (__u64)p->dst[0] + p->dst[1] + p->dst[2];
	}
	return sum;
}

/**
 * sw_check() - is a data packet in order, apart from its payload?
 * @data: first byte of the frame
 * @end: the byte after its last
 * @p: from sw_parse(); gets its @head
 *
 * What its header says is not to be believed before the checksum was found
 * right, too.
 *
 * Return: %SW_CLASS_ATP or the class of what is wrong
 */
static __always_inline enum sw_class
sw_check(const void *data, const void *end, struct sw_pkt *p)
{
	const struct udphdr *udp = data + p->l4;
	const struct atp_hdr *hdr = (const void *)(udp + 1);

	if ((const void *)(hdr + 1) > end)
		return SW_CLASS_LENGTH;
	if (sw_bad_length(data, end, p) || sw_bad_padding(data, end, p))
		return SW_CLASS_LENGTH;
	if (!p->v6 && sw_fold(sw_sum32(data + ETH_HLEN, 5)) != 0xffff)
		return SW_CLASS_CSUM;
	if (!udp->check)
		return SW_CLASS_CSUM_NONE;
	p->head = sw_fold(sw_sum_pseudo(p, udp->len) +
			  sw_sum32(udp, SW_UDP_ATP / 4));
	return SW_CLASS_ATP;
}

/* Is the checksum right?  The payload's sum is known now. */
static __always_inline bool sw_is_right(const struct sw_pkt *p)
{
	return sw_fold((__u64)p->head + p->sum) == 0xffff;
}

/* In which way is it wrong? */
static __always_inline enum sw_class
sw_wrong(const void *data, const void *end, const struct sw_pkt *p)
{
	const struct udphdr *udp = data + p->l4;

	if ((const void *)(udp + 1) > end)
		return SW_CLASS_LENGTH;
	/* What a local stack leaves for the device to complete */
	if (udp->check == sw_fold(sw_sum_pseudo(p, udp->len)))
		return SW_CLASS_CSUM_PARTIAL;
	return SW_CLASS_CSUM;
}

/**
 * sw_write() - put what may have changed back into the packet
 * @data: first byte of the frame
 * @end: the byte after its last
 * @p: the packet; its sum is the one of the payload that is in the frame now
 *
 * The checksum is made anew, not adjusted: it has been verified.
 *
 * Return: false if the frame is too short, which cannot be
 */
static __always_inline bool sw_write(void *data, const void *end,
				     const struct sw_pkt *p)
{
	struct udphdr *udp = data + p->l4;
	struct atp_hdr *hdr = (void *)(udp + 1);
	__u64 sum;

	if ((const void *)(hdr + 1) > end)
		return false;
	hdr->flags = sw_swap16(p->flags);
	hdr->bitmap0 = sw_swap32(p->bitmap);
	hdr->cwndCap = sw_swap16(p->cap);
	udp->check = 0;
	sum = sw_sum_pseudo(p, udp->len) + p->sum;
	sum = sw_fold(sum + sw_sum32(udp, SW_UDP_ATP / 4)) ^ 0xffff;
	udp->check = sum ? (__u16)sum : 0xffff;
	return true;
}

/* The checksum of an IPv4 header, after a change */
static __always_inline void sw_sum_ipv4(struct iphdr *ip)
{
	ip->check = 0;
	ip->check = (__u16)~sw_fold(sw_sum32(ip, 5));
}

#endif /* _ATP_SWITCH_PACKET_H */
