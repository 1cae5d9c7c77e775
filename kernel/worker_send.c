// SPDX-License-Identifier: GPL-2.0
/*
 * What a worker socket sends: fragments in bursts, JOIN and PING.
 *
 * All of it runs under the socket lock, in softirq or process (worker.c).
 */
#include <linux/skbuff.h>
#include <linux/udp.h>
#include "atp.h"
#include "trace.h"

#define ATP_RETRY_NS		(NSEC_PER_MSEC)

/* A packet of the socket: its route, rules of the host and queues of the device
 * go by that.  Context: socket lock.
 */
static void atp_sk_mark(struct atp_sock *as, struct sk_buff *skb)
{
	sock_owned_by_me(&as->sk);

	skb->priority = READ_ONCE(as->sk.sk_priority);
	skb->mark = READ_ONCE(as->sk.sk_mark);
	if (skb->mark == as->mark)
		return;
	as->mark = skb->mark;
	dst_cache_reset(&as->dst);
}

/* The socket is charged until the device, or whoever takes the packet on, lets
 * go of it (sk_wmem_alloc).
 */
static int atp_sk_send(struct atp_sock *as, struct sk_buff *skb, u32 gso_size)
{
	struct atp_job *job = as->job;
	int err;

	sock_owned_by_me(&as->sk);

	skb_set_owner_w(skb, &as->sk);
	atp_sk_mark(as, skb);
	local_bh_disable();
	err = atp_xmit(job, skb, gso_size, &job->addr[as->rank],
		       &job->ps_addr, &as->dst);
	local_bh_enable();
	return err;
}

/* JOIN, PING.  Context: socket lock. */
void atp_sk_send_ctl(struct atp_sock *as, u8 type)
{
	struct sk_buff *skb;
	void *data;

	sock_owned_by_me(&as->sk);

	skb = atp_alloc_ctl(&data, GFP_ATOMIC);
	if (!skb) {
		atp_count(sock_net(&as->sk), as->job, ATP_MIB_OUT_NOMEM, 1);
		return;
	}
	atp_session_build(&as->session, type, data);
	atp_sk_send(as, skb, 0);
}

/* At most this many fragments can be due now; at least one is. */
static u32 atp_sk_due(const struct atp_worker *w)
{
	u32 window = atp_cong_window(&w->cong);
	u32 room = window > w->inflight ? window - w->inflight : 1;

	return min(room, w->end - w->nxt + w->lost);
}

/* Is the send buffer full of packets that have not left the host?  Then more of
 * them would only wait in the queue of the same device.  They leave without the
 * lock, so it is a hint.
 */
static bool atp_sk_held(const struct atp_sock *as)
{
	return sk_wmem_alloc_get(&as->sk) >= READ_ONCE(as->sk.sk_sndbuf);
}

/* Its fragments, or what is to come of them, will never pass the path: tell the
 * others, too.  Context: socket lock, in a run.
 */
void atp_sk_give_up(struct sock *sk, u32 reason)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	atp_leave(as);
	atp_sk_fail(sk, reason, BIT(as->rank));
}

/* Its fragments do not fit the path.  Context: socket lock. */
void atp_sk_too_big(struct sock *sk)
{
	const struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	/* ICMP found a worker; its owner may have made it the server since */
	if (as->dead || as->server || as->session.state != ATP_SESSION_JOINED)
		return;
	atp_sk_give_up(sk, ATP_REASON_MTU);
}

/**
 * struct atp_sk_burst - a burst that is being built
 * @skb: its packets
 * @now: when it leaves
 * @len: length of its packets, the last may be shorter
 * @most: so many may be in it
 * @n: so many are
 */
struct atp_sk_burst {
	struct sk_buff	*skb;
	u64		now;
	u32		len;
	u32		most;
	u32		n;
};

/* Is there a fragment to be sent that fits into the burst? */
static bool atp_sk_next(const struct atp_worker *w,
			const struct atp_sk_burst *b, u32 *seq)
{
	return b->n < b->most && atp_worker_next(w, seq) &&
	       atp_worker_len(w, *seq) <= b->len;
}

/* Fill one piece of memory.  Return: false if the burst is complete. */
static bool atp_sk_fill(struct atp_sock *as, struct atp_sk_burst *b)
{
	struct atp_worker *w = &as->worker;
	struct net *net = sock_net(&as->sk);
	u32 room = b->most - b->n;
	u32 seq, len, bytes = 0;
	void *data;

	sock_owned_by_me(&as->sk);

	if (!atp_sk_next(w, b, &seq))
		return false;
	data = atp_burst_room(b->skb, b->len, &room);
	if (!data)
		return false;
	do {
		len = atp_worker_len(w, seq);
		if (atp_before(seq, w->nxt))
			trace_atp_retransmit(net, w->params.job, as->rank, seq,
					     len);
		else
			trace_atp_send(net, w->params.job, as->rank, seq, len);
		bytes += atp_worker_build(w, seq, b->now, data + bytes);
		b->n++;
	} while (len == b->len && --room && atp_sk_next(w, b, &seq));
	atp_burst_add(b->skb, bytes);
	return len == b->len;
}

/* So many packets of that length are a burst at most. */
static u32 atp_sk_most(u32 len)
{
	return min_t(u32, UDP_MAX_SEGMENTS, ATP_BURST_BYTES / len);
}

/* One burst: fragments of one length, the last may be shorter. */
static bool atp_sk_burst(struct atp_sock *as, u64 now)
{
	struct atp_worker *w = &as->worker;
	struct atp_sk_burst b = { .now = now };
	u32 seq;

	sock_owned_by_me(&as->sk);

	if (!atp_worker_next(w, &seq))
		return false;
	if (atp_sk_held(as)) {
		as->retry = now + ATP_RETRY_NS;
		atp_count(sock_net(&as->sk), as->job, ATP_MIB_OUT_HELD, 1);
		return false;
	}
	b.len = atp_worker_len(w, seq);
	b.most = min(atp_sk_most(b.len), atp_sk_due(w));
	b.skb = atp_alloc_burst(GFP_ATOMIC);
	while (b.skb && atp_sk_fill(as, &b))
		;
	if (!b.n) {
		kfree_skb(b.skb);
		as->retry = now + ATP_RETRY_NS;
		atp_count(sock_net(&as->sk), as->job, ATP_MIB_OUT_NOMEM, 1);
		return false;
	}
	if (atp_sk_send(as, b.skb, b.n > 1 ? b.len : 0) == -EMSGSIZE) {
		atp_sk_too_big(&as->sk);
		return false;
	}
	return true;
}

/* Send what the window allows.  Context: socket lock. */
void atp_sk_push(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	u32 most;
	u64 now;

	sock_owned_by_me(sk);

	if (!as->running || as->dead ||
	    as->session.state != ATP_SESSION_JOINED)
		return;
	now = ktime_get_ns();
	as->retry = 0;
	/* once: what ends a burst early, as a chunk's last fragment does, must
	 * not keep the rest of the window from being used
	 */
	most = atp_sk_most(ATP_HDR_LEN + as->worker.params.fragment);
	if (!atp_worker_gathers(&as->worker, most)) {
		while (atp_sk_burst(as, now))
			;
	}
	atp_sk_fold(as);
	atp_sk_arm(sk);
}
