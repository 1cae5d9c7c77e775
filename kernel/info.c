// SPDX-License-Identifier: GPL-2.0
/*
 * What a socket tells of itself: getsockopt(ATP_INFO) and netlink.
 */
#include "atp.h"

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
 * atp_sk_silence() - for how long a socket has heard nothing of the PS
 * @sk: socket
 *
 * Context: as for atp_sk_info().
 * Return: milliseconds; zero if it takes no part in a run, or is the
 *	application at the PS.
 */
u32 atp_sk_silence(const struct sock *sk)
{
	const struct atp_sock *as = atp_sk(sk);
	u64 heard = READ_ONCE(as->session.heard);
	u64 now = ktime_get_ns();
	u32 state;

	sock_owned_by_me(sk);

	state = atp_sk_state(as);
	if (as->server || (state != ATP_JOINING && state != ATP_JOINED))
		return 0;
	return now > heard ? div_u64(now - heard, NSEC_PER_MSEC) : 0;
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
