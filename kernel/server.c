// SPDX-License-Identifier: GPL-2.0
/*
 * The socket of an application that makes a job's results, on the PS host: it
 * pulls sums and pushes what the workers get.
 *
 * What goes on is in the PS's engine, under atp_ps_host.lock.  When there is
 * news the PS runs the socket's tasklet, which looks at the engine with both
 * locks.  The job, which the socket holds, keeps the PS; once that was stopped
 * the application takes part in no run, and no fragment is looked at.
 */
#include "atp.h"

/* Fragments that are copied, or packets that are added to bursts, at once with
 * bottom halves off
 */
#define ATP_SERVER_BATCH	32

/* Does it wait for a run, or take part in one, as far as it knows?  Context:
 * socket lock.
 */
static bool atp_server_active(const struct atp_sock *as)
{
	sock_owned_by_me(&as->sk);

	return as->attached && (as->session.state == ATP_SESSION_JOINING ||
				as->session.state == ATP_SESSION_JOINED);
}

/* Bytes that the next pull gives if it has room for them.  Context: also the
 * socket lock.
 */
static u32 atp_server_ready(const struct atp_sock *as)
	__must_hold(&as->job->ps->lock)
{
	const struct atp_ps_server *server = &as->job->ps->engine.server;

	sock_owned_by_me(&as->sk);
	lockdep_assert_held(&as->job->ps->lock);

	if (!server->joined)
		return 0;
	return (as->sums ? as->sums->elements : server->ready) * 4;
}

/* Nothing comes any more, and nobody wants anything.  Context: socket lock. */
static void atp_server_over(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	as->session.state = ATP_SESSION_IDLE;
	WRITE_ONCE(as->ready, 0);
	WRITE_ONCE(as->eof, true);
	WRITE_ONCE(sk->sk_state, TCP_CLOSE);
	sk->sk_state_change(sk);
	sk_wake_async(sk, SOCK_WAKE_WAITD, POLL_HUP);
}

static void atp_server_joined(struct sock *sk, u32 epoch)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	as->session.state = ATP_SESSION_JOINED;
	as->session.epoch = epoch;
	WRITE_ONCE(sk->sk_state, TCP_ESTABLISHED);
	sk->sk_state_change(sk);
	sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
}

/* Keep what is read without the lock, and follow the run.  Context: socket
 * lock.
 */
static void atp_server_update(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	bool joined, pending, owes;
	u32 epoch, reason, ranks;
	struct atp_ps_host *ps;

	sock_owned_by_me(sk);

	if (!atp_server_active(as))
		return;
	ps = as->job->ps;
	spin_lock_bh(&ps->lock);
	joined = ps->engine.server.joined;
	pending = ps->engine.server.pending;
	epoch = ps->engine.epoch;
	reason = ps->engine.reason;
	ranks = ps->engine.blame;
	WRITE_ONCE(as->pulled, as->sums ? as->sums->first :
					  ps->engine.server.taken);
	owes = as->pulled != ps->engine.frontier;
	WRITE_ONCE(as->ready, atp_server_ready(as));
	spin_unlock_bh(&ps->lock);

	if (pending)
		return;
	if (as->session.state == ATP_SESSION_JOINING)
		atp_server_joined(sk, epoch);
	if (!joined && reason)
		atp_sk_fail(sk, reason, ranks);
	else if (!joined)
		atp_server_over(sk);
	if (!owes || !as->unasked)
		return;
	WRITE_ONCE(as->unasked, false);
	sk->sk_write_space(sk);
}

/* The PS has news.  Context: socket lock. */
void atp_server_news(struct sock *sk)
{
	sock_owned_by_me(sk);

	atp_server_update(sk);
	if (atp_sk(sk)->ready)
		sk->sk_data_ready(sk);
}

/* Wait for the next run.  Context: socket lock, process. */
int atp_server_start(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_ps_host *ps = as->job->ps;
	struct atp_ps_out out;
	int err = -ENOENT;

	sock_owned_by_me(sk);

	atp_sk_reset(sk);
	memset(&as->session, 0, sizeof(as->session));
	as->session.state = ATP_SESSION_JOINING;
	WRITE_ONCE(as->unasked, false);
	spin_lock_bh(&ps->lock);
	if (!ps->stopped) {
		ps->server = sk;
		atp_ps_server_join(&ps->engine, ktime_get_ns(), &out);
		atp_ps_act(as->job, &out);
		err = 0;
	}
	spin_unlock_bh(&ps->lock);
	if (err)
		atp_server_over(sk);
	else
		atp_server_update(sk);
	return err;
}

/* The PS forgets the socket, and workers that still need it are told.
 * Context: socket lock, process.
 */
void atp_server_leave(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_ps_host *ps;
	struct atp_ps_out out;

	sock_owned_by_me(sk);

	if (!as->attached)
		return;
	ps = as->job->ps;
	spin_lock_bh(&ps->lock);
	if (ps->server == sk) {
		ps->server = NULL;
		atp_ps_server_leave(&ps->engine, ktime_get_ns(), &out);
		atp_ps_act(as->job, &out);
	}
	spin_unlock_bh(&ps->lock);
}

/* Its application knows of the run: connect() need not tell of it any more.
 * Context: socket lock.
 */
void atp_server_seen(struct sock *sk)
{
	sock_owned_by_me(sk);

	if (atp_sk(sk)->session.state != ATP_SESSION_JOINING &&
	    sk->sk_socket->state == SS_CONNECTING)
		sk->sk_socket->state = SS_CONNECTED;
}

/* Half a server is none: who cannot pull has nothing to push, and the workers
 * wait for what is not pushed.  Context: socket lock, joined or shut down.
 */
void atp_server_shutdown(struct sock *sk)
{
	sock_owned_by_me(sk);

	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	atp_server_seen(sk);
	atp_server_leave(sk);
	atp_server_over(sk);
}

/* Take sums from the PS.  No run begins without this socket, whose lock is
 * held, so it is the same run after a break.  Return: false if that has ended.
 * Context: process.
 */
static bool atp_server_copy(struct atp_ps_host *ps,
			    const struct atp_ps_sum *sum, u32 *lanes)
{
	bool joined;
	u32 n = 0;

	spin_lock_bh(&ps->lock);
	while (n < sum->frags && ps->engine.server.joined) {
		lanes += atp_ps_sum_read(&ps->engine, sum->first + n, lanes);
		if (++n % ATP_SERVER_BATCH)
			continue;
		/* packets for the PS wait */
		spin_unlock_bh(&ps->lock);
		cond_resched();
		spin_lock_bh(&ps->lock);
	}
	joined = ps->engine.server.joined;
	if (joined)
		atp_ps_sum_take(&ps->engine, sum);
	spin_unlock_bh(&ps->lock);
	return joined;
}

/* Lanes of a pull, so that a result of as many fits the send buffer beside what
 * was pulled.
 */
static u32 atp_server_lanes(const struct sock *sk)
{
	int half = READ_ONCE(sk->sk_sndbuf) / 2 - (int)sizeof(struct atp_push);

	return max(half, 0) / 4;
}

/* Get what the PS has, as far as it fits into @elements lanes, into @sums.
 * Return: 0, also if there is nothing, or a negative errno.  Context: socket
 * lock, process.
 */
static int atp_server_fetch(struct sock *sk, u32 elements)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_ps_host *ps = as->job->ps;
	struct atp_ps_sum sum;
	struct atp_push *push;
	bool some;

	sock_owned_by_me(sk);

	spin_lock_bh(&ps->lock);
	some = atp_ps_sum(&ps->engine, min(elements, atp_server_lanes(sk)),
			  &sum);
	spin_unlock_bh(&ps->lock);
	if (!some)
		return 0;
	push = atp_push_new(sk, sum.elements * 4);
	if (!push)
		return -ENOBUFS;
	push->chunk.first = sum.first;
	push->chunk.dtype = sum.dtype;
	push->part = !sum.last;
	if (atp_server_copy(ps, &sum, push->chunk.data))
		as->sums = &push->chunk;
	else
		atp_chunk_put(sk, &push->chunk);
	return 0;
}

/* The oldest sum that was not pulled; to be pulled or, with @peek, looked at.
 * Return: chunk, or NULL with @err, 0 if there is none, as the run has ended.
 * Context: socket lock, process.
 */
struct atp_chunk *atp_server_pull(struct sock *sk, u32 elements, bool peek,
				  int *err)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_chunk *chunk;

	sock_owned_by_me(sk);

	if (atp_server_active(as) && !as->sums)
		*err = atp_server_fetch(sk, elements);
	chunk = as->sums;
	if (chunk && peek) {
		container_of(chunk, struct atp_push, chunk)->users++;
	} else if (chunk) {
		as->sums = chunk->next;
		as->dtype = chunk->dtype;
	}
	/* also how a run has ended of which there was no news yet */
	atp_server_update(sk);
	return chunk;
}

/* Has a sum that was pulled got a result already, or will get none?  Context:
 * socket lock.
 */
static bool atp_server_settled(const struct atp_sock *as,
			       const struct atp_chunk *chunk)
{
	struct atp_ps_host *ps;
	bool answered;

	sock_owned_by_me(&as->sk);

	if (!atp_server_active(as))
		return true;
	ps = as->job->ps;
	spin_lock_bh(&ps->lock);
	answered = atp_before(chunk->first, ps->engine.frontier);
	spin_unlock_bh(&ps->lock);
	return answered;
}

/* It was not pulled after all; others may have been, and another thread may
 * have given a result without knowing the sum.  Context: socket lock.
 */
void atp_server_put_back(struct sock *sk, struct atp_chunk *chunk)
{
	struct atp_chunk **link = &atp_sk(sk)->sums;

	sock_owned_by_me(sk);

	if (atp_server_settled(atp_sk(sk), chunk)) {
		atp_chunk_put(sk, chunk);
		sk->sk_write_space(sk);
		return;
	}
	while (*link && atp_before((*link)->first, chunk->first))
		link = &(*link)->next;
	chunk->next = *link;
	*link = chunk;
	atp_server_news(sk);
}

/* Which fragments is a result of so many lanes for?  Return: number or a
 * negative errno.  Context: also the socket lock.
 */
static int atp_server_due(const struct atp_sock *as, u32 elements)
	__must_hold(&as->job->ps->lock)
{
	const struct atp_ps *engine = &as->job->ps->engine;

	sock_owned_by_me(&as->sk);
	lockdep_assert_held(&as->job->ps->lock);

	if (as->pulled == engine->frontier)
		return -EAGAIN;
	return atp_ps_due(engine, as->pulled, elements) ?: -EINVAL;
}

/* The results of the oldest fragments that were pulled.  Return: 0, -EAGAIN if
 * none was, -EINVAL if they are not as long.  Context: socket lock, process.
 */
int atp_server_answer(struct sock *sk, const struct atp_chunk *chunk)
{
	struct atp_sock *as = atp_sk(sk);
	const u32 *lanes = chunk->data;
	struct atp_ps_host *ps;
	struct atp_ps_out out;
	bool joined;
	u32 n = 0;
	int left;

	sock_owned_by_me(sk);

	atp_server_update(sk);
	if (!atp_server_active(as))
		return atp_sk_errno(sk) ?: -EIDRM;
	ps = as->job->ps;
	spin_lock_bh(&ps->lock);
	left = atp_server_due(as, chunk->elements);
	/* until something is pulled */
	if (left == -EAGAIN) {
		WRITE_ONCE(as->unasked, true);
		atp_sk_refused(sk);
	}
	for (; left > 0 && ps->engine.server.joined; left--) {
		lanes += atp_ps_answer(&ps->engine, ktime_get_ns(), lanes,
				       &out);
		atp_ps_act(as->job, &out);
		n += as->job->params.workers;
		if (n < ATP_SERVER_BATCH)
			continue;
		n = 0;
		/* what was built leaves now */
		spin_unlock_bh(&ps->lock);
		cond_resched();
		spin_lock_bh(&ps->lock);
	}
	joined = ps->engine.server.joined;
	spin_unlock_bh(&ps->lock);
	atp_server_update(sk);
	if (left && !joined)
		return atp_sk_errno(sk) ?: -EIDRM;
	return left;
}

/* Was a sum pulled that has no result?  Context: socket lock. */
bool atp_server_owes(const struct atp_sock *as)
{
	struct atp_ps_host *ps;
	bool owes;

	sock_owned_by_me(&as->sk);

	if (!atp_server_active(as))
		return false;
	ps = as->job->ps;
	spin_lock_bh(&ps->lock);
	owes = as->pulled != ps->engine.frontier;
	spin_unlock_bh(&ps->lock);
	return owes;
}

/* Add what the PS knows to a state that is filled in.  Context: socket lock, or
 * its spinlock while a user owns it (atp_sk_info()).
 */
void atp_server_info(const struct atp_sock *as, struct atp_info *info)
{
	struct atp_ps_host *ps = as->job->ps;
	struct atp_ps_wait wait;

	sock_owned_by_me(&as->sk);

	if (info->state != ATP_JOINING && info->state != ATP_JOINED)
		return;
	spin_lock_bh(&ps->lock);
	if (ps->engine.server.joined) {
		atp_ps_waiting(&ps->engine, &wait);
		info->ranks = wait.ranks;
		info->flags = wait.server ? ATP_INFO_SERVER : 0;
		info->una = ps->engine.frontier;
		info->nxt = READ_ONCE(as->pulled);
		info->end = ps->engine.server.summed;
	} else {
		info->ranks = atp_ps_pending(&ps->engine);
	}
	spin_unlock_bh(&ps->lock);
}
