// SPDX-License-Identifier: GPL-2.0
/*
 * A worker socket between its engine and Linux: packets in, timer, what the run
 * has come to.  Bursts out are in worker_send.c, a run's beginning and end in
 * worker_run.c.
 *
 * All of it runs under the socket lock: in softirq (packets, timer, tasklet)
 * when no user owns the socket, else from the backlog and release_cb when the
 * user lets go of it.
 */
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include "atp.h"
#include "trace.h"

/* Carry over to the counters what the engine has counted since.
 * Context: socket lock.
 */
void atp_sk_fold(struct atp_sock *as)
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
		if (atp_worker_unanswered(&as->worker, now)) {
			atp_sk_give_up(sk, ATP_REASON_UNANSWERED);
			return;
		}
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
	WRITE_ONCE(as->alone, false);
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
	bool idle, eof, alone, over;
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
	alone = as->running && !as->worker.head && !eof &&
		as->session.state == ATP_SESSION_JOINED && as->session.over;
	over = (eof && !as->eof) || (alone && !as->alone);
	WRITE_ONCE(as->ready, ready);
	if (alone != as->alone) {
		WRITE_ONCE(as->alone, alone);
		if (alone)
			sk->sk_state_change(sk);
	}
	if (idle != as->idle || eof != as->eof) {
		WRITE_ONCE(as->idle, idle);
		WRITE_ONCE(as->eof, eof);
		/* who pulls gets the end, who pushes may sleep in vain */
		if (eof || (idle && READ_ONCE(as->nospace)))
			sk->sk_state_change(sk);
	}
	if (over)
		sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_IN);
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
	WRITE_ONCE(as->running, true);
	WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	sk->sk_state_change(sk);
	sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
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
	} else if (!reason) {
		/* who has left */
		atp_sk_update(sk);
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

#if IS_ENABLED(CONFIG_IPV6)
static struct ipv6_pinfo atp_pinfo = {
	.pmtudisc = IPV6_PMTUDISC_PROBE,
};
#endif

/* What IP wants to know of who owns a packet: we look at the MTU ourselves */
static void atp_sk_init_inet(struct inet_sock *inet)
{
	inet->pmtudisc = IP_PMTUDISC_PROBE;
#if IS_ENABLED(CONFIG_IPV6)
	inet->pinet6 = &atp_pinfo;
#endif
}

void atp_sk_init(struct atp_sock *as)
{
	atp_sk_init_inet(&as->inet);
	hrtimer_init(&as->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	as->timer.function = atp_sk_timer;
	tasklet_setup(&as->tasklet, atp_sk_tasklet);
	as->sk.sk_backlog_rcv = atp_sk_backlog_rcv;
}
