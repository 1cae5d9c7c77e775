// SPDX-License-Identifier: GPL-2.0
/*
 * Workers that leave.  Nobody answers a LEAVE, and one that is lost makes the
 * rank silent to all others; so it is said several times, as an ABORT is.  The
 * socket is closed meanwhile, perhaps with its process: the job says it.
 */
#include "atp.h"

/* The next LEAVE that is due, or the timer is armed for it.  Context: any. */
static bool atp_leave_next(struct atp_job *job, struct atp_leaver *due)
{
	struct atp_leaver *l = job->leaving;
	u64 now = ktime_get_ns();
	u64 when = U64_MAX;
	bool found = false;

	spin_lock_bh(&job->lock);
	for (; l < job->leaving + job->params.workers && !job->dead; l++) {
		if (atp_session_tick(&l->session, now)) {
			*due = *l;
			found = true;
			break;
		}
		when = min(when, atp_session_deadline(&l->session));
	}
	if (!found && when != U64_MAX)
		hrtimer_start(&job->leave_timer, ns_to_ktime(when),
			      HRTIMER_MODE_ABS_SOFT);
	spin_unlock_bh(&job->lock);
	return found;
}

/* Context: bottom halves off; takes job->lock. */
static void atp_leave_send(struct atp_job *job)
{
	struct atp_leaver l;
	struct sk_buff *skb;
	void *data;

	lockdep_assert_in_softirq();

	while (atp_leave_next(job, &l)) {
		skb = atp_alloc_ctl(&data, GFP_ATOMIC);
		if (!skb) {
			atp_count(job->net, job, ATP_MIB_OUT_NOMEM, 1);
			continue;
		}
		atp_session_build(&l.session, ATP_TYPE_LEAVE, data);
		skb->mark = l.mark;
		skb->priority = l.priority;
		atp_xmit(job, skb, 0, &job->addr[l.session.rank], &job->ps_addr,
			 NULL);
	}
}

static enum hrtimer_restart atp_leave_timer(struct hrtimer *timer)
{
	atp_leave_send(container_of(timer, struct atp_job, leave_timer));
	return HRTIMER_NORESTART;
}

void atp_leave_init(struct atp_job *job)
{
	hrtimer_init(&job->leave_timer, CLOCK_MONOTONIC,
		     HRTIMER_MODE_ABS_SOFT);
	job->leave_timer.function = atp_leave_timer;
}

/**
 * atp_leave() - tell the PS that a worker has left
 * @as: socket that joins or has joined, which may be freed afterwards
 *
 * Context: socket lock.
 */
void atp_leave(const struct atp_sock *as)
{
	struct atp_job *job = as->job;
	struct atp_leaver l = {
		.session = as->session,
		.mark = READ_ONCE(as->sk.sk_mark),
		.priority = READ_ONCE(as->sk.sk_priority),
	};

	sock_owned_by_me(&as->sk);

	atp_session_leave(&l.session, ktime_get_ns());
	local_bh_disable();
	spin_lock(&job->lock);
	job->leaving[as->rank] = l;
	spin_unlock(&job->lock);
	atp_leave_send(job);
	local_bh_enable();
}

/* The rank joins again: that is a LEAVE, too.  Context: any. */
void atp_leave_cancel(struct atp_job *job, u32 rank)
{
	spin_lock_bh(&job->lock);
	job->leaving[rank].session.state = ATP_SESSION_IDLE;
	spin_unlock_bh(&job->lock);
}

/* Context: process; the job is dead. */
void atp_leave_stop(struct atp_job *job)
{
	hrtimer_cancel(&job->leave_timer);
}
