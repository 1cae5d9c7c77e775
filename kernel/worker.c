// SPDX-License-Identifier: GPL-2.0
/*
 * A worker socket between its engine and Linux: packets in, bursts out, timer.
 *
 * All of it runs under the socket lock: in softirq (packets, timer, tasklet)
 * when no user owns the socket, else from the backlog and release_cb when the
 * user lets go of it.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include "atp.h"
#include "trace.h"

#define ATP_RETRY_NS		(NSEC_PER_MSEC)

/* Carry over to the counters what the engine has counted since. */
static void atp_sk_fold(struct atp_sock *as)
{
	const u64 *now = (const u64 *)&as->worker.stats;
	u64 *then = (u64 *)&as->folded;
	int i;

	sock_owned_by_me(&as->sk);

	BUILD_BUG_ON(sizeof(as->folded) / sizeof(u64) !=
		     ATP_MIB_SWITCH_FRAGS - ATP_MIB_SENT);
	for (i = 0; i < sizeof(as->folded) / sizeof(u64); i++) {
		if (now[i] == then[i])
			continue;
		atp_count(sock_net(&as->sk), as->job, ATP_MIB_SENT + i,
			  now[i] - then[i]);
		then[i] = now[i];
	}
}

/* A packet of the socket: its route, rules of the host and queues of the device
 * go by that.
 */
static void atp_sk_mark(struct atp_sock *as, struct sk_buff *skb)
{
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

/* JOIN, PING */
static void atp_sk_send_ctl(struct atp_sock *as, u8 type)
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

/* Its fragments do not fit the path.  Context: socket lock. */
static void atp_sk_too_big(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	/* ICMP found a worker; its owner may have made it the server since */
	if (as->dead || as->server || as->session.state != ATP_SESSION_JOINED)
		return;
	/* they never will: tell the others, too */
	atp_leave(as);
	atp_sk_fail(sk, ATP_REASON_MTU, BIT(as->rank));
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

/* One burst: fragments of one length, the last may be shorter. */
static bool atp_sk_burst(struct atp_sock *as, u64 now)
{
	struct atp_worker *w = &as->worker;
	struct atp_sk_burst b = { .now = now };
	u32 seq;

	sock_owned_by_me(&as->sk);

	if (!atp_worker_next(w, &seq))
		return false;
	b.len = atp_worker_len(w, seq);
	b.most = min_t(u32, UDP_MAX_SEGMENTS, ATP_BURST_BYTES / b.len);
	if (atp_worker_gathers(w, b.most))
		return false;
	if (atp_sk_held(as)) {
		as->retry = now + ATP_RETRY_NS;
		atp_count(sock_net(&as->sk), as->job, ATP_MIB_OUT_HELD, 1);
		return false;
	}
	b.most = min(b.most, atp_sk_due(w));
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
	u64 now;

	sock_owned_by_me(sk);

	if (!as->running || as->dead ||
	    as->session.state != ATP_SESSION_JOINED)
		return;
	now = ktime_get_ns();
	as->retry = 0;
	while (atp_sk_burst(as, now))
		;
	atp_sk_fold(as);
	atp_sk_arm(sk);
}

/* Let the timer run out when the engine wants it, or earlier: that is harmless
 * and saves moving it with every packet.  Context: socket lock.
 */
void atp_sk_arm(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	u64 when;

	sock_owned_by_me(sk);

	if (as->dead || as->server)
		return;
	when = atp_session_deadline(&as->session);
	if (as->running && as->session.state == ATP_SESSION_JOINED) {
		when = min(when, atp_worker_deadline(&as->worker));
		if (as->retry)
			when = min(when, as->retry);
	}
	if (when == U64_MAX || (as->armed && as->armed <= when))
		return;
	as->armed = when;
	hrtimer_start(&as->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_SOFT);
}

static void atp_sk_timeout(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	u64 now = ktime_get_ns();
	u8 type;

	sock_owned_by_me(sk);

	as->armed = 0;
	/* its owner may have made a worker the server since it was armed */
	if (as->dead || as->server)
		return;
	type = atp_session_tick(&as->session, now);
	if (type)
		atp_sk_send_ctl(as, type);
	if (as->session.state == ATP_SESSION_FAILED) {
		atp_sk_fail(sk, as->session.reason, as->session.ranks);
		return;
	}
	if (as->running && as->session.state == ATP_SESSION_JOINED) {
		atp_worker_timeout(&as->worker, now);
		atp_sk_push(sk);
	}
	atp_sk_arm(sk);
}

static enum hrtimer_restart atp_sk_timer(struct hrtimer *timer)
{
	struct atp_sock *as = container_of(timer, struct atp_sock, timer);
	struct sock *sk = &as->sk;

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk))
		set_bit(ATP_DEFER_TIMER, &as->deferred);
	else
		atp_sk_timeout(sk);
	bh_unlock_sock(sk);
	return HRTIMER_NORESTART;
}

/* After a batch of parameter packets: one burst instead of one packet each.  Or
 * the PS has news for its application.  Context: socket lock.
 */
static void atp_sk_work(struct sock *sk)
{
	sock_owned_by_me(sk);

	if (atp_sk(sk)->server)
		atp_server_news(sk);
	else
		atp_sk_push(sk);
}

static void atp_sk_tasklet(struct tasklet_struct *t)
{
	struct atp_sock *as = from_tasklet(as, t, tasklet);
	struct sock *sk = &as->sk;

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk))
		set_bit(ATP_DEFER_PUSH, &as->deferred);
	else
		atp_sk_work(sk);
	bh_unlock_sock(sk);
}

/* If the job was removed, its run is over.  Context: socket lock. */
static void atp_sk_removed(struct sock *sk)
{
	const struct atp_job *job = atp_sk(sk)->job;

	sock_owned_by_me(sk);

	/* who owned the socket may have left that job for another */
	if (job && READ_ONCE(job->dead))
		atp_sk_fail(sk, ATP_REASON_REMOVED, 0);
}

/**
 * atp_sk_remove() - the job of a socket was removed
 * @sk: socket
 *
 * Does not wait for a user who owns the socket, who may do so for ever: the
 * run ends when he lets go of it.
 *
 * Context: process, takes the socket's spinlock; the job is dead.
 */
void atp_sk_remove(struct sock *sk)
{
	local_bh_disable();
	bh_lock_sock(sk);
	if (sock_owned_by_user(sk))
		set_bit(ATP_DEFER_REMOVED, &atp_sk(sk)->deferred);
	else
		atp_sk_removed(sk);
	bh_unlock_sock(sk);
	local_bh_enable();
}

/* Context: the owner is about to release the socket, bottom halves off. */
void atp_sk_release_cb(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	/* first: nothing is sent for a job that is gone */
	if (test_and_clear_bit(ATP_DEFER_REMOVED, &as->deferred))
		atp_sk_removed(sk);
	if (test_and_clear_bit(ATP_DEFER_MTU, &as->deferred))
		atp_sk_too_big(sk);
	if (test_and_clear_bit(ATP_DEFER_TIMER, &as->deferred))
		atp_sk_timeout(sk);
	if (test_and_clear_bit(ATP_DEFER_PUSH, &as->deferred))
		atp_sk_work(sk);
}

/* The run is over for this socket.  Context: socket lock. */
void atp_sk_fail(struct sock *sk, u32 reason, u32 ranks)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	if (as->dead || sk->sk_state == TCP_CLOSE)
		return;
	if (as->running)
		atp_sk_fold(as);
	WRITE_ONCE(as->failed, true);
	/* nobody gets what the application would make of a sum */
	if (as->server)
		WRITE_ONCE(as->ready, 0);
	as->session.state = ATP_SESSION_FAILED;
	as->session.reason = reason;
	as->session.ranks = ranks;
	WRITE_ONCE(sk->sk_state, TCP_CLOSE);
	WRITE_ONCE(sk->sk_err, -atp_reason_errno(reason));
	atp_errqueue_add(sk);
	sk_error_report(sk);
	sk->sk_state_change(sk);
	atp_event(sock_net(sk), ATP_EVENT_FAILED, as->job->params.job,
		  as->session.epoch, reason, ranks,
		  as->running ? as->worker.una : 0, as->rank, GFP_ATOMIC);
}

/* Nobody wants the results: they go as they come, in order. */
static void atp_sk_discard(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_chunk *chunk;

	sock_owned_by_me(sk);

	if (!as->running)
		return;
	while ((chunk = atp_worker_pop(&as->worker)))
		atp_chunk_put(sk, chunk);
	sk->sk_write_space(sk);
}

/* Nothing is pushed any more, and nobody needs a fragment of what was. */
static void atp_sk_leave(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	atp_leave(as);
	atp_sk_fold(as);
	as->session.state = ATP_SESSION_IDLE;
	WRITE_ONCE(sk->sk_state, TCP_CLOSE);
	sk->sk_state_change(sk);
}

/* Keep what is read without the lock: chunks were pushed, completed, pulled or
 * purged, or the socket was shut down.  Who waits for a result is woken by the
 * caller.  Context: socket lock.
 */
void atp_sk_update(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	bool idle, eof;
	u32 ready = 0;

	sock_owned_by_me(sk);

	if (sk->sk_shutdown & RCV_SHUTDOWN)
		atp_sk_discard(sk);
	if (as->running && atp_worker_readable(&as->worker))
		ready = as->worker.head->elements * 4;
	idle = as->running && !as->worker.pending;
	eof = sk->sk_shutdown & RCV_SHUTDOWN ||
	      (sk->sk_shutdown & SEND_SHUTDOWN &&
	       !(as->running && as->worker.head));
	WRITE_ONCE(as->ready, ready);
	if (idle != as->idle || eof != as->eof) {
		WRITE_ONCE(as->idle, idle);
		WRITE_ONCE(as->eof, eof);
		/* who pulls gets the end, who pushes may sleep in vain */
		if (eof || (idle && READ_ONCE(as->nospace)))
			sk->sk_state_change(sk);
	}
	if (idle && sk->sk_shutdown & SEND_SHUTDOWN &&
	    as->session.state == ATP_SESSION_JOINED)
		atp_sk_leave(sk);
}

/* Context: socket lock, joined. */
void atp_sk_shutdown(struct sock *sk, u8 how)
{
	sock_owned_by_me(sk);

	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | how);
	atp_sk_update(sk);
	/* who sleeps in a push or a pull, who polls */
	sk->sk_state_change(sk);
}

/* All workers are there.  Context: socket lock. */
static void atp_sk_joined(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	atp_worker_init(&as->worker, &as->session.params, as->rank,
			as->session.epoch, as->frags);
	memset(&as->folded, 0, sizeof(as->folded));
	as->running = true;
	WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	sk->sk_state_change(sk);
}

static enum atp_drop atp_sk_data(struct sock *sk, const struct atp_pkt *pkt,
				 u64 now)
{
	struct atp_sock *as = atp_sk(sk);
	enum atp_drop reason;
	u64 chunks, marks;

	sock_owned_by_me(sk);

	if (!as->running || as->session.state != ATP_SESSION_JOINED)
		return ATP_DROP_STATE;
	chunks = as->worker.stats.chunks;
	marks = as->worker.stats.ecn;
	reason = atp_worker_rx(&as->worker, now, pkt);
	if (as->worker.stats.ecn != marks)
		trace_atp_ecn(sock_net(sk), pkt->job, pkt->epoch, pkt->seq);
	if (as->worker.stats.chunks != chunks) {
		atp_sk_update(sk);
		/* an edge for every chunk, even if there are unpulled ones */
		if (as->ready)
			sk->sk_data_ready(sk);
	}
	/* from the backlog, the end of which is release_cb, or in a batch */
	if (sock_owned_by_user(sk))
		set_bit(ATP_DEFER_PUSH, &as->deferred);
	else
		tasklet_schedule(&as->tasklet);
	return reason;
}

/* Context: socket lock. */
static enum atp_drop atp_sk_packet(struct sock *sk, const struct atp_pkt *pkt,
				   u64 now)
{
	struct atp_sock *as = atp_sk(sk);
	enum atp_session_state before;
	enum atp_drop reason;

	sock_owned_by_me(sk);

	before = as->session.state;
	reason = atp_session_rx(&as->session, now, pkt);
	if (!reason && before != as->session.state) {
		if (as->session.state == ATP_SESSION_JOINED)
			atp_sk_joined(sk);
		else if (as->session.state == ATP_SESSION_FAILED)
			atp_sk_fail(sk, as->session.reason, as->session.ranks);
	} else if (!reason && (pkt->type == ATP_TYPE_DATA ||
			       pkt->type == ATP_TYPE_STATUS)) {
		reason = atp_sk_data(sk, pkt, now);
	}
	return reason;
}

/* A packet or a burst for this socket, from the PS.  Context: socket lock,
 * softirq or backlog.
 */
static int atp_sk_backlog_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct atp_sock *as = atp_sk(sk);
	u64 now = ktime_get_ns();
	enum atp_drop reason;
	struct atp_rcv rcv;
	struct atp_pkt pkt;
	bool good = false;

	sock_owned_by_me(sk);

	/* its owner may have made a worker the server since it was queued */
	if (as->dead || as->server) {
		atp_drop(sock_net(sk), as->job, skb, ATP_DROP_STATE);
		return 0;
	}
	atp_rcv_begin(&rcv, skb);
	while (atp_rcv_next(&rcv, &pkt, &reason)) {
		if (!reason)
			reason = atp_sk_packet(sk, &pkt, now);
		if (reason)
			atp_drop_packets(sock_net(sk), as->job, 1, reason);
		else
			good = true;
	}
	if (good)
		atp_sk_arm(sk);
	atp_rcv_end(skb, good);
	return 0;
}

/* Context: softirq under RCU, which keeps the job that the packet has found the
 * socket by; whoever owns the socket may let go of that job just now.
 */
int atp_sk_rcv(struct sock *sk, struct sk_buff *skb)
{
	u32 limit = READ_ONCE(sk->sk_rcvbuf) + READ_ONCE(sk->sk_sndbuf);

	lockdep_assert_in_softirq();

	bh_lock_sock(sk);
	if (!sock_owned_by_user(sk))
		atp_sk_backlog_rcv(sk, skb);
	else if (sk_add_backlog(sk, skb, limit))
		atp_drop(sock_net(sk), READ_ONCE(atp_sk(sk)->job), skb,
			 ATP_DROP_BACKLOG);
	bh_unlock_sock(sk);
	return 0;
}

/* ICMP quotes a fragment that may be of this socket.  Is it of this run?  Then
 * @too_big, that it does not fit, is true.  Context: softirq under RCU.
 */
bool atp_sk_icmp(struct sock *sk, u32 epoch, bool too_big)
{
	struct atp_sock *as = atp_sk(sk);
	bool known;

	lockdep_assert_in_softirq();

	bh_lock_sock(sk);
	known = READ_ONCE(as->session.state) == ATP_SESSION_JOINED &&
		READ_ONCE(as->session.epoch) == epoch;
	if (known && too_big) {
		if (sock_owned_by_user(sk))
			set_bit(ATP_DEFER_MTU, &as->deferred);
		else
			atp_sk_too_big(sk);
	}
	bh_unlock_sock(sk);
	return known;
}

/* What IPv6 wants to know of who owns a packet: we look at the MTU ourselves */
static struct ipv6_pinfo atp_pinfo = {
	.pmtudisc = IPV6_PMTUDISC_PROBE,
};

void atp_sk_init(struct atp_sock *as)
{
	as->pinet6 = &atp_pinfo;
	hrtimer_init(&as->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	as->timer.function = atp_sk_timer;
	tasklet_setup(&as->tasklet, atp_sk_tasklet);
	as->sk.sk_backlog_rcv = atp_sk_backlog_rcv;
}

static u32 atp_sk_frags_size(const struct atp_sock *as)
{
	return as->job->params.window * sizeof(*as->frags);
}

/* Window slots, charged to the socket.  Context: socket lock, process. */
static int atp_sk_alloc_frags(struct atp_sock *as)
{
	u32 size = atp_sk_frags_size(as);

	sock_owned_by_me(&as->sk);

	if (as->frags)
		return 0;
	if (!sk_wmem_schedule(&as->sk, size))
		return -ENOBUFS;
	as->frags = kvmalloc(size, GFP_KERNEL | __GFP_NOWARN);
	if (!as->frags)
		return -ENOMEM;
	sk_mem_charge(&as->sk, size);
	return 0;
}

/* The engine does not run any more.  Context: socket lock. */
void atp_sk_free_frags(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	if (!as->frags)
		return;
	kvfree(as->frags);
	as->frags = NULL;
	sk_mem_uncharge(sk, atp_sk_frags_size(as));
}

/* Nothing of an earlier run is left: the next may begin.  Context: socket lock,
 * process.
 */
void atp_sk_reset(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	atp_sk_purge(sk);
	as->run++;
	WRITE_ONCE(as->wanted, 0);
	WRITE_ONCE(as->failed, false);
	WRITE_ONCE(sk->sk_err, 0);
	skb_queue_purge(&sk->sk_error_queue);
	WRITE_ONCE(sk->sk_shutdown, 0);
	atp_sk_update(sk);
	WRITE_ONCE(sk->sk_state, TCP_SYN_SENT);
}

/* Begin to join.  Context: socket lock, process. */
int atp_sk_start(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_job *job = as->job;
	struct atp_params params;
	u32 overhead;
	int err, mtu;

	sock_owned_by_me(sk);

	overhead = ATP_HDR_LEN + sizeof(struct udphdr) +
		   (ipv6_addr_v4mapped(&job->ps_addr) ?
		    sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	mtu = atp_path_mtu(sock_net(sk), &job->addr[as->rank], &job->ps_addr,
			   READ_ONCE(sk->sk_mark));
	/* a job that was removed just now may have no UDP socket any more */
	if (mtu < 0)
		return READ_ONCE(job->dead) ? -ENOENT : mtu;
	if (mtu < job->params.fragment + overhead)
		return -EMSGSIZE;

	err = atp_sk_alloc_frags(as);
	if (err)
		return err;
	atp_sk_reset(sk);
	atp_leave_cancel(job, as->rank);
	atp_job_params(job, &params);
	atp_session_init(&as->session, &params, as->rank);
	atp_session_join(&as->session, ktime_get_ns(), get_random_u32());
	atp_sk_arm(sk);
	return 0;
}

/* Free all chunks.  Context: socket lock. */
void atp_sk_purge(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_chunk *chunk;

	sock_owned_by_me(sk);

	while ((chunk = as->sums)) {
		as->sums = chunk->next;
		atp_chunk_put(sk, chunk);
	}
	if (!as->running)
		return;
	while ((chunk = as->worker.head)) {
		as->worker.head = chunk->next;
		atp_chunk_put(sk, chunk);
	}
	as->worker.tail = NULL;
	as->running = false;
	atp_sk_update(sk);
}

/* The last use of the socket is over.  Context: process, no lock. */
void atp_sk_stop(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	lock_sock(sk);
	if (as->server)
		atp_server_leave(sk);
	else if (as->job && (as->session.state == ATP_SESSION_JOINING ||
			     as->session.state == ATP_SESSION_JOINED))
		atp_leave(as);
	if (as->running)
		atp_sk_fold(as);
	as->dead = true;
	WRITE_ONCE(sk->sk_state, TCP_CLOSE);
	if (as->attached)
		atp_job_detach(as->job, sk, as->rank);
	as->attached = false;
	atp_sk_purge(sk);
	atp_sk_free_frags(sk);
	release_sock(sk);

	/* dead: none of these starts anything any more */
	hrtimer_cancel(&as->timer);
	tasklet_kill(&as->tasklet);
	dst_cache_destroy(&as->dst);
}

/* Error of a socket that has no run (any more), or 0.  One that was shut down
 * for pushing has left its run in peace.  Context: socket lock.
 */
int atp_sk_errno(const struct sock *sk)
{
	const struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	switch (as->session.state) {
	case ATP_SESSION_FAILED:
		return atp_reason_errno(as->session.reason);
	case ATP_SESSION_JOINED:
		return 0;
	default:
		return sk->sk_shutdown & SEND_SHUTDOWN ? -EPIPE : -ENOTCONN;
	}
}

static u32 atp_sk_state(const struct atp_sock *as)
{
	sock_owned_by_me(&as->sk);

	switch (READ_ONCE(as->session.state)) {
	case ATP_SESSION_JOINING:
		return ATP_JOINING;
	case ATP_SESSION_JOINED:
		return ATP_JOINED;
	case ATP_SESSION_FAILED:
		return ATP_FAILED;
	default:
		return as->job ? ATP_BOUND : ATP_UNBOUND;
	}
}

/**
 * atp_sk_info() - what a socket knows
 * @sk: socket
 * @info: (out) filled in
 *
 * Who has only the spinlock of a socket that a user owns gets numbers of
 * different moments: they are read one by one, and no pointer is followed that
 * changes.
 *
 * Context: socket lock, or its spinlock while a user owns it.
 */
void atp_sk_info(const struct sock *sk, struct atp_info *info)
{
	const struct atp_sock *as = atp_sk(sk);
	const struct atp_job *job = READ_ONCE(as->job);
	const struct atp_worker *w = &as->worker;
	const struct atp_worker_stats *stats = &w->stats;
	u64 now = ktime_get_ns();

	sock_owned_by_me(sk);

	memset(info, 0, sizeof(*info));
	info->state = atp_sk_state(as);
	if (!job)
		return;
	info->job = job->params.job;
	info->rank = as->rank;
	info->workers = job->params.workers;
	info->fragment = job->params.fragment;
	info->window = job->params.window;
	info->scale = job->params.scale;
	info->epoch = READ_ONCE(as->session.epoch);
	info->reason = READ_ONCE(as->session.reason);
	info->ranks = READ_ONCE(as->session.ranks);
	if (as->server)
		atp_server_info(as, info);
	if (!READ_ONCE(as->running))
		return;
	if (info->state == ATP_JOINED)
		info->ranks = READ_ONCE(w->waiting);
	if (info->state == ATP_JOINED && READ_ONCE(w->server))
		info->flags |= ATP_INFO_SERVER;
	info->una = READ_ONCE(w->una);
	info->nxt = READ_ONCE(w->nxt);
	info->end = READ_ONCE(w->end);
	/* the engine knows nothing of who reads */
	info->cwnd = data_race(atp_cong_window(&w->cong));
	info->ssthresh = READ_ONCE(w->cong.ssthresh);
	info->srtt_us = div_u64(READ_ONCE(w->rtt.srtt), NSEC_PER_USEC);
	/* likewise */
	info->rto_us = div_u64(data_race(atp_worker_rto(w, now)),
			       NSEC_PER_USEC);
	info->sent = READ_ONCE(stats->sent);
	info->resent = READ_ONCE(stats->resent);
	info->fast_retransmits = READ_ONCE(stats->fast_retransmits);
	info->timeouts = READ_ONCE(stats->timeouts);
	info->ecn = READ_ONCE(stats->ecn);
	info->raw = READ_ONCE(stats->raw);
	info->duplicates = READ_ONCE(stats->duplicates);
	info->chunks = READ_ONCE(stats->chunks);
}
