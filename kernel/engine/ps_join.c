// SPDX-License-Identifier: GPL-2.0
/*
 * Joining, leaving, and how a run begins (Documentation/protocol.rst, Joining).
 *
 * The network may keep a copy of a JOIN for as long as it likes, and it must
 * not be taken for a restarted worker.  So a JOIN is taken only if it repeats
 * what the PS has said to it: the epoch, and the rank's ticket, which is
 * another one once a JOIN was taken or refused.  Whoever does not know them is
 * told.
 */
#include "ps_internal.h"

static void begin(struct atp_ps *ps, u64 now, struct atp_ps_out *out)
{
	u32 i;

	for (i = 0; i < ps->params.workers; i++) {
		struct atp_ps_member *m = &ps->members[i];

		m->nonce = m->pending_nonce;
		m->heard = now;
		m->joined = true;
		m->pending = false;
		m->switched = false;
	}
	for (i = 0; i < 2 * ps->params.window; i++)
		ps->cells[i].state = ATP_CELL_EMPTY;
	atp_ps_server_begin(ps);
	ps->raw_used = 0;
	ps->frontier = 0;
	ps->salt = 0;
	ps->reason = ATP_REASON_NONE;
	ps->blame = 0;
	ps->aborts = 0;
	ps->epoch++;
	ps->running = true;
	ps->stats.runs++;
	atp_ps_ask(out, ps, ATP_TYPE_WELCOME, atp_ps_joined(ps), 0);
	out->events |= ATP_PS_EV_RUN;
}

void atp_ps_begin_if_all_wait(struct atp_ps *ps, u64 now,
			      struct atp_ps_out *out)
{
	if (ps->running || atp_ps_pending(ps) != atp_all_ranks(&ps->params))
		return;
	if (!ps->params.server || ps->server.pending)
		begin(ps, now, out);
}

/* It is told when it asks again.  Who asks anew waits, as it may be mended, but
 * see refuse_latecomers().
 */
static void refuse_one(struct atp_ps_member *m, u32 reason, u32 blame)
{
	m->pending = false;
	m->refusal = reason;
	m->refused = blame;
}

/* Those who wait for ranks that do not come would wait in vain. */
static void refuse_waiting(struct atp_ps *ps, u32 reason, u32 blame)
{
	u32 i;

	for (i = 0; i < ps->params.workers; i++) {
		if (ps->members[i].pending)
			refuse_one(&ps->members[i], reason, blame);
	}
}

/* A rank that is configured otherwise has not come again: who has begun to wait
 * since then has given it time enough.
 */
static void refuse_latecomers(struct atp_ps *ps, u64 now)
{
	u32 odd = 0;
	u32 i;

	for (i = 0; i < ps->params.workers; i++) {
		if (ps->members[i].odd)
			odd |= 1U << i;
	}
	if (!odd)
		return;
	for (i = 0; i < ps->params.workers; i++) {
		struct atp_ps_member *m = &ps->members[i];

		if (m->pending && now >= m->since + ps->params.timeout)
			refuse_one(m, ATP_REASON_MISMATCH, odd);
	}
}

/* A worker that waits repeats its JOIN; one that does not is dead, or is told
 * once more what to repeat.  @here are not silent, whatever they say.
 */
void atp_ps_forget_silent(struct atp_ps *ps, u64 now, u32 here)
{
	u32 silent = 0;
	u32 rank;

	for (rank = 0; rank < ps->params.workers; rank++) {
		struct atp_ps_member *m = &ps->members[rank];

		if (!m->pending || here & (1U << rank) ||
		    !atp_ps_silent(ps, rank, now))
			continue;
		m->pending = false;
		m->pending_nonce = 0;
		silent |= 1U << rank;
	}
	if (silent)
		refuse_waiting(ps, ATP_REASON_SILENT, silent);
}

/* Of the JOIN that was taken last: it waits, or is to be told not to */
static bool is_last(const struct atp_ps_member *m, u32 nonce)
{
	return (m->pending || m->refused) && nonce == m->pending_nonce;
}

/* A copy of a JOIN or LEAVE whose turn is over.  Of those before nothing is
 * known, nor need it be.
 */
static bool is_over(const struct atp_ps_member *m, u32 nonce)
{
	return nonce == m->nonce ||
	       (nonce == m->pending_nonce && !is_last(m, nonce));
}

static bool matches(const struct atp_params *params,
		    const struct atp_ctl_host *ctl)
{
	return ctl->workers == params->workers &&
	       ctl->fragment == params->fragment &&
	       ctl->window == params->window && ctl->scale == params->scale &&
	       ctl->server == params->server;
}

/* By its nonce it is for who asked, not for one in the run. */
static enum atp_drop refuse(const struct atp_ps *ps, u32 rank, u32 reason,
			    u32 blame, struct atp_ps_out *out)
{
	atp_ps_ask_abort(out, ps, 1U << rank, reason, blame);
	out->epoch = 0;
	return reason == ATP_REASON_MISMATCH ? ATP_DROP_MISMATCH : ATP_OK;
}

/* Its sender has not heard what it must repeat, or that was long ago. */
static enum atp_drop tell_ticket(const struct atp_ps *ps, u32 rank,
				 const struct atp_pkt *pkt,
				 struct atp_ps_out *out)
{
	atp_ps_ask(out, ps, ATP_TYPE_PONG, 1U << rank,
		   ps->members[rank].ticket);
	return pkt->seq ? ATP_DROP_NONCE : ATP_OK;
}

/* It is of no use once more. */
static void next_ticket(struct atp_ps_member *m)
{
	m->ticket = m->ticket + 1 ?: 1;
}

/* The JOIN waits for the next run. */
static void take_join(struct atp_ps_member *m, u64 now, u32 nonce)
{
	if (!is_last(m, nonce)) {
		next_ticket(m);
		m->since = now;
	}
	m->pending_nonce = nonce;
	m->pending = true;
	m->refused = 0;
	m->joined = false;
}

enum atp_drop atp_ps_rx_join(struct atp_ps *ps, u64 now, u32 rank,
			     const struct atp_pkt *pkt,
			     const struct atp_ctl_host *ctl,
			     struct atp_ps_out *out)
{
	struct atp_ps_member *m = &ps->members[rank];
	bool was_joined = m->joined;

	if (!ctl->nonce)
		return ATP_DROP_NONCE;
	out->nonce = ctl->nonce;
	if (m->joined && ctl->nonce == m->nonce) {
		/* WELCOME was lost, or ABORT */
		if (!ps->running) {
			atp_ps_ask_abort(out, ps, 1U << rank, ps->reason,
					 ps->blame);
			return ATP_OK;
		}
		m->heard = now;
		atp_ps_ask(out, ps, ATP_TYPE_WELCOME, 1U << rank, 0);
		return ATP_OK;
	}
	if (is_over(m, ctl->nonce))
		return ATP_DROP_NONCE;
	/* mended, whatever else it must do to be taken */
	m->odd = m->odd && !matches(&ps->params, ctl);
	atp_ps_forget_silent(ps, now, 1U << rank);
	refuse_latecomers(ps, now);
	atp_ps_take_timeout(ps);
	if (!is_last(m, ctl->nonce) &&
	    (pkt->epoch != ps->epoch || pkt->seq != m->ticket))
		return tell_ticket(ps, rank, pkt, out);
	if (!matches(&ps->params, ctl)) {
		next_ticket(m);
		m->odd = true;
		if (!ps->running)
			refuse_waiting(ps, ATP_REASON_MISMATCH, 1U << rank);
		return refuse(ps, rank, ATP_REASON_MISMATCH, 1U << rank, out);
	}
	if (m->refused && ctl->nonce == m->pending_nonce)
		return refuse(ps, rank, m->refusal, m->refused, out);

	take_join(m, now, ctl->nonce);
	m->heard = now;
	/* It started again, or its LEAVE was lost or overtaken: the same to the
	 * others, who may need no more than their last results.
	 */
	if (was_joined && ps->running)
		atp_ps_left(ps, now, out);
	atp_ps_begin_if_all_wait(ps, now, out);
	/* to all of a run, each with its own */
	if (out->type)
		out->nonce = 0;
	else
		atp_ps_ask(out, ps, ATP_TYPE_PONG, 1U << rank, 0);
	return ATP_OK;
}

enum atp_drop atp_ps_rx_leave(struct atp_ps *ps, u64 now, u32 rank,
			      const struct atp_ctl_host *ctl,
			      struct atp_ps_out *out)
{
	struct atp_ps_member *m = &ps->members[rank];

	if (is_last(m, ctl->nonce)) {
		m->pending = false;
		m->refused = 0;
		return ATP_OK;
	}
	if (!m->joined || ctl->nonce != m->nonce) {
		/* it says so several times, until it joins again */
		if (!m->joined && !m->pending && ctl->nonce &&
		    is_over(m, ctl->nonce))
			return ATP_OK;
		return ATP_DROP_NONCE;
	}
	m->joined = false;
	if (ps->running)
		atp_ps_left(ps, now, out);
	return ATP_OK;
}
