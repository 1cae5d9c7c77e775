// SPDX-License-Identifier: GPL-2.0
/*
 * The UDP port of a namespace: open while there are jobs; what comes in goes
 * to the PS or to the worker sockets of its job.
 */
#include <net/inet_ecn.h>
#include <net/ipv6.h>
#include <net/udp_tunnel.h>
#include "atp.h"
#include "trace.h"

/* Count and trace packets that are of no use. */
void atp_drop_packets(struct net *net, struct atp_job *job, u32 packets,
		      enum atp_drop reason)
{
	atp_count(net, job, atp_mib_drop(reason), packets);
	if (!trace_atp_drop_enabled())
		return;
	while (packets--)
		trace_atp_drop(net, job ? job->params.job : 0, reason);
}

/* And free what they came in. */
void atp_drop(struct net *net, struct atp_job *job, struct sk_buff *skb,
	      enum atp_drop reason)
{
	atp_drop_packets(net, job, atp_skb_packets(skb), reason);
	kfree_skb(skb);
}

/* Of the network header, IPv4 as v4-mapped; @ce: has it a congestion mark? */
void atp_addresses(const struct sk_buff *skb, struct in6_addr *src,
		   struct in6_addr *dst, bool *ce)
{
	if (skb->protocol == htons(ETH_P_IP)) {
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, src);
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, dst);
		*ce = INET_ECN_is_ce(ip_hdr(skb)->tos);
	} else {
		*src = ipv6_hdr(skb)->saddr;
		*dst = ipv6_hdr(skb)->daddr;
		*ce = INET_ECN_is_ce(ipv6_get_dsfield(ipv6_hdr(skb)));
	}
}

/* All parties let IP do the least, so what comes otherwise is none of theirs. A
 * wrong checksum is not seen here: UDP itself drops and counts that.
 */
static enum atp_drop atp_check_below(const struct sk_buff *skb)
{
	u32 ip_len = sizeof(struct ipv6hdr);

	if (skb->protocol == htons(ETH_P_IP)) {
		if (IPCB(skb)->frag_max_size)
			return ATP_DROP_FRAGMENT;
		ip_len = sizeof(struct iphdr);
	} else if (IP6CB(skb)->flags & IP6SKB_FRAGMENTED) {
		return ATP_DROP_FRAGMENT;
	}
	if (skb_network_header_len(skb) != ip_len)
		return ATP_DROP_OPTIONS;
	return udp_hdr(skb)->check ? ATP_OK : ATP_DROP_CHECKSUM;
}

/* Does the PS send this type, rather than a worker? */
static bool atp_from_ps(const struct atp_pkt *pkt)
{
	switch (pkt->type) {
	case ATP_TYPE_DATA:
		return pkt->flags & ATP_F_ACK;
	case ATP_TYPE_WELCOME:
	case ATP_TYPE_ABORT:
	case ATP_TYPE_STATUS:
	case ATP_TYPE_PONG:
		return true;
	default:
		return false;
	}
}

/* Data and STATUS concern all ranks that have the address they were sent to,
 * since a switch and the PS give one copy to each address; an answer to a
 * control packet names its rank.
 */
static u32 atp_for_ranks(const struct atp_pkt *pkt, u32 at_dst)
{
	if (pkt->type == ATP_TYPE_DATA || pkt->type == ATP_TYPE_STATUS)
		return at_dst;
	return pkt->bitmap0 & at_dst;
}

static void atp_to_workers(struct atp_job *job, struct sk_buff *skb, u32 at_dst)
{
	u32 ranks = atp_for_ranks(atp_skb_pkt(skb), at_dst);
	struct sock *last = NULL;
	struct sk_buff *copy;
	struct sock *sk;
	u32 rank;

	for (rank = 0; rank < job->params.workers; rank++) {
		sk = rcu_dereference(job->socks[rank]);
		if (!sk || !(ranks & BIT(rank)))
			continue;
		if (last) {
			copy = skb_clone(skb, GFP_ATOMIC);
			if (copy)
				atp_sk_rcv(last, copy);
			else
				atp_drop_packets(job->net, job,
						 atp_skb_packets(skb),
						 ATP_DROP_NOMEM);
		}
		last = sk;
	}
	if (last)
		atp_sk_rcv(last, skb);
	else
		atp_drop(job->net, job, skb, ATP_DROP_STATE);
}

/* Whose packet it is: @ranks that have the source address, if it is for the PS,
 * else those that it was sent to.
 */
enum atp_drop atp_way(const struct atp_job *job, const struct atp_pkt *pkt,
		      const struct in6_addr *src, const struct in6_addr *dst,
		      u32 *ranks)
{
	if (!atp_from_ps(pkt)) {
		*ranks = atp_job_ranks_of(job, src);
		if (!job->ps || !ipv6_addr_equal(dst, &job->ps_addr))
			return ATP_DROP_STATE;
		return *ranks ? ATP_OK : ATP_DROP_STRANGER;
	}
	*ranks = atp_job_ranks_of(job, dst);
	return *ranks && ipv6_addr_equal(src, &job->ps_addr) ?
	       ATP_OK : ATP_DROP_STRANGER;
}

/* Context: softirq under RCU; atp_way() has found nothing wrong. */
void atp_deliver(struct atp_job *job, struct sk_buff *skb, u32 ranks)
{
	lockdep_assert_in_softirq();

	if (atp_from_ps(atp_skb_pkt(skb)))
		atp_to_workers(job, skb, ranks);
	else
		atp_ps_receive(job, skb, ranks);
}

/* Context: softirq under RCU, from the UDP socket's encap_rcv. */
static int atp_udp_rcv(struct sock *usk, struct sk_buff *skb)
{
	struct net *net = sock_net(usk);
	struct in6_addr src, dst;
	enum atp_drop reason;
	struct atp_pkt *pkt;
	struct atp_job *job;
	u32 ranks;
	bool ce;

	lockdep_assert_in_softirq();

	__skb_pull(skb, sizeof(struct udphdr));
	atp_count(net, NULL, ATP_MIB_IN_PACKETS, atp_skb_packets(skb));
	reason = atp_check_below(skb);
	if (!reason) {
		atp_addresses(skb, &src, &dst, &ce);
		reason = atp_rcv_one(skb);
	}
	if (reason) {
		atp_drop(net, NULL, skb, reason);
		return 0;
	}
	pkt = atp_skb_pkt(skb);
	pkt->ce = ce;
	skb_dst_drop(skb);

	job = atp_job_find(atp_pernet(net), pkt->job);
	if (!job) {
		atp_drop(net, NULL, skb, ATP_DROP_JOB);
		return 0;
	}
	this_cpu_inc(job->mib->item[ATP_MIB_IN_PACKETS]);
	trace_atp_receive(net, pkt);

	/* some user's socket; the kernel's own has this port */
	if (udp_hdr(skb)->source != htons(ATP_PORT))
		reason = ATP_DROP_STRANGER;
	else
		reason = atp_way(job, pkt, &src, &dst, &ranks);
	if (reason)
		atp_drop(net, job, skb, reason);
	else
		atp_deliver(job, skb, ranks);
	return 0;
}

static int atp_udp_open_one(struct net *net, u8 family, struct socket **sock)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.encap_type	= 1,
		.encap_rcv	= atp_udp_rcv,
		.encap_err_lookup = atp_icmp_lookup,
	};
	struct udp_port_cfg port = {
		.family			= family,
		.local_udp_port		= htons(ATP_PORT),
		.use_udp_checksums	= true,
		.use_udp6_tx_checksums	= true,
		.use_udp6_rx_checksums	= true,
		.ipv6_v6only		= true,
	};
	int gro = 1;
	int err;

	err = udp_sock_create(net, &port, sock);
	if (err)
		return err;
	/* what fits is decided in xmit.c */
	if (family == AF_INET)
		ip_sock_set_mtu_discover((*sock)->sk, IP_PMTUDISC_PROBE);
	else
		inet6_sk((*sock)->sk)->pmtudisc = IPV6_PMTUDISC_PROBE;
	setup_udp_tunnel_sock(net, *sock, &tunnel);
	/* merged packets come in as one burst (rcv_burst.c) */
	err = (*sock)->ops->setsockopt(*sock, SOL_UDP, UDP_GRO,
				       KERNEL_SOCKPTR(&gro), sizeof(gro));
	if (err)
		udp_tunnel_sock_release(*sock);
	return err;
}

/*
 * The socket that is charged for what a PS sends: neither bound nor connected.
 * It is not the one that IP sends by, else IP would ask the control group of
 * whoever added the job what may leave.
 *
 * Context: process; the job is in no table yet.
 */
int atp_payer_open(struct atp_job *job)
{
	bool v6 = !ipv6_addr_v4mapped(&job->ps_addr);
	struct socket *sock;
	int err;

	err = sock_create_kern(job->net, v6 ? AF_INET6 : AF_INET, SOCK_DGRAM,
			       IPPROTO_UDP, &sock);
	/* without IPv6 its packets are refused one by one */
	if (v6 && (err == -EAFNOSUPPORT || err == -EPFNOSUPPORT))
		return 0;
	if (err)
		return err;
	/* IPv6 asks the packet's owner whether exceptions to a route count */
	if (v6)
		inet6_sk(sock->sk)->pmtudisc = IPV6_PMTUDISC_PROBE;
	sock_set_flag(sock->sk, SOCK_RCU_FREE);
	WRITE_ONCE(job->payer, sock->sk);
	return 0;
}

/* Context: process; who has found it just before finds that nobody holds it. */
void atp_payer_close(struct atp_job *job)
{
	struct sock *payer = job->payer;

	if (!payer)
		return;
	WRITE_ONCE(job->payer, NULL);
	sock_release(payer->sk_socket);
}

/* Context: atp_net.lock held; there is no job yet, nobody sends. */
int atp_udp_open(struct net *net)
	__must_hold(&atp_pernet(net)->lock)
{
	struct atp_net *an = atp_pernet(net);
	struct socket *sock4, *sock6 = NULL;
	int err;

	lockdep_assert_held(&an->lock);

	err = atp_udp_open_one(net, AF_INET, &sock4);
	if (err)
		return err;
	/* a host may have IPv6 switched off */
	err = atp_udp_open_one(net, AF_INET6, &sock6);
	if (err && err != -EAFNOSUPPORT && err != -EPFNOSUPPORT) {
		udp_tunnel_sock_release(sock4);
		return err;
	}
	rcu_assign_pointer(an->sock4, sock4);
	rcu_assign_pointer(an->sock6, sock6);
	return 0;
}

/* A socket of a job that was removed may send still, if a user owns it: it uses
 * under RCU what it finds here, and the release waits for that.
 *
 * Context: atp_net.lock held; no job is left.
 */
void atp_udp_close(struct net *net)
	__must_hold(&atp_pernet(net)->lock)
{
	struct atp_net *an = atp_pernet(net);
	struct socket *sock4, *sock6;

	lockdep_assert_held(&an->lock);

	sock4 = rcu_replace_pointer(an->sock4, NULL,
				    lockdep_is_held(&an->lock));
	sock6 = rcu_replace_pointer(an->sock6, NULL,
				    lockdep_is_held(&an->lock));
	if (sock6)
		udp_tunnel_sock_release(sock6);
	udp_tunnel_sock_release(sock4);
	/* a packet may have found the socket just before */
	synchronize_rcu();
}
