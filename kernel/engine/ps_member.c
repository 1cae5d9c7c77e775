// SPDX-License-Identifier: GPL-2.0
/*
 * Who takes part: joining, leaving, silence, and how a run ends
 * (Documentation/protocol.rst, Joining).
 *
 * A rank is, as far as the PS knows,
 *
 *	joined	pending
 *	-	-	away: never seen, or has left
 *	-	yes	waiting for the next run, whether one goes on or not
 *	yes	-	in the run, or in the one that failed: to be told
 *
 * The network may keep a copy of a JOIN for as long as it likes, and it must
 * not be taken for a restarted worker.  So a JOIN is taken only if it repeats
 * what the PS has said to it: the epoch, and the rank's ticket, which is
 * another one once a JOIN was taken or refused.  Whoever does not know them is
 * told.
 */
#include "ps_internal.h"

/* Ranks that take part, or did in the run that failed, and have not left */
u32 atp_ps_joined(const struct atp_ps *ps)
{
	u32 ranks = 0;
	u32 rank;

	for (rank = 0; rank < ps->params.workers; rank++)
		if (ps->members[rank].joined)
			ranks |= 1U << rank;
	return ranks;
}

u32 atp_ps_pending(const struct atp_ps *ps)
{
	u32 ranks = 0;
	u32 rank;

	for (rank = 0; rank < ps->params.workers; rank++)
		if (ps->members[rank].pending)
			ranks |= 1U << rank;
	return ranks;
}

static bool is_silent(const struct atp_ps *ps, u32 rank, u64 now)
{
	return now >= ps->members[rank].heard + ps->params.timeout;
}

/* All copies of an ABORT go out within half of the time in which a worker would
 * give up by itself.
 */
static u64 abort_interval(const struct atp_ps *ps)
{
	return div_u64(ps->params.timeout, 2 * ATP_PS_ABORTS);
}

static void ask_abort(struct atp_ps_out *out, const struct atp_ps *ps,
		      u32 ranks, u32 reason, u32 blame)
{
	atp_ps_ask(out, ps, ATP_TYPE_ABORT, ranks, 0);
	out->mcast = false;
	out->reason = reason;
	out->blame = blame;
}

void atp_ps_end(struct atp_ps *ps, u64 now, u32 reason, u32 blame,
		struct atp_ps_out *out)
{
	u32 joined = atp_ps_joined(ps);

	if (ps->running) {
		/* whoever is told besides the ranks, if there are any */
		out->events |= ATP_PS_EV_ENDED;
		out->ended_epoch = ps->epoch;
		out->ended_seq = ps->frontier;
		out->reason = reason;
		out->blame = blame;
		if (reason != ATP_REASON_NONE)
			ps->stats.aborts++;
	}
	ps->running = false;
	ps->server.joined = false;
	ps->dispute.open = false;
	ps->reason = reason;
	ps->blame = blame;
	ps->aborts = 0;
	if (!joined)
		return;
	ask_abort(out, ps, joined, reason, blame);
	ps->aborts = ATP_PS_ABORTS - 1;
	ps->next_abort = now + abort_interval(ps);
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

void atp_ps_fail(struct atp_ps *ps, u64 now, u32 reason, u32 blame,
		 struct atp_ps_out *out)
{
	memset(out, 0, sizeof(*out));
	if (ps->running)
		atp_ps_end(ps, now, reason, blame, out);
}

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
	u32 rank;

	if (ps->running || atp_ps_pending(ps) != atp_all_ranks(&ps->params))
		return;
	if (ps->params.server && !ps->server.pending)
		return;
	/* A worker that waits repeats its JOIN; one that does not is gone, or
	 * is told once more what to repeat.
	 */
	for (rank = 0; rank < ps->params.workers; rank++) {
		if (!is_silent(ps, rank, now))
			continue;
		ps->members[rank].pending = false;
		ps->members[rank].pending_nonce = 0;
	}
	if (atp_ps_pending(ps) == atp_all_ranks(&ps->params))
		begin(ps, now, out);
}

/* A fragment of one that is still there cannot complete any more, because it
 * lacks one that has left, or the application has: the run ends.
 */
bool atp_ps_needs_left(struct atp_ps *ps, const struct atp_cell *cell, u64 now,
		       struct atp_ps_out *out)
{
	u32 joined = atp_ps_joined(ps);
	u32 gone = atp_all_ranks(&ps->params) & ~joined & ~cell->bitmap;
	bool unserved = ps->params.server && !ps->server.joined;
	u32 again = gone & atp_ps_pending(ps);

	if (!(gone || unserved) || !(cell->seen & joined))
		return false;
	if (unserved)
		atp_ps_end(ps, now, ATP_REASON_SERVER, 0, out);
	else if (again)
		atp_ps_end(ps, now, ATP_REASON_REJOIN, again, out);
	else
		atp_ps_end(ps, now, ATP_REASON_LEFT, gone, out);
	return true;
}

/* A packet of a run that is not going on: its sender has to know. */
enum atp_drop atp_ps_other_run(const struct atp_ps *ps,
			       const struct atp_pkt *pkt, u32 from,
			       struct atp_ps_out *out)
{
	if (pkt->epoch == ps->epoch && ps->reason != ATP_REASON_NONE)
		ask_abort(out, ps, from, ps->reason, ps->blame);
	else
		ask_abort(out, ps, from, ATP_REASON_EPOCH, 0);
	out->epoch = pkt->epoch;
	return ATP_DROP_EPOCH;
}

/* One has left: nobody may be there any more, or somebody needs it. */
void atp_ps_left(struct atp_ps *ps, u64 now, struct atp_ps_out *out)
{
	const struct atp_cell *cell;
	u32 i, seq;

	if (!atp_ps_joined(ps)) {
		atp_ps_end(ps, now, ATP_REASON_NONE, 0, out);
		return;
	}
	for (i = 0; i < ps->params.window; i++) {
		seq = ps->frontier + i;
		cell = atp_ps_cell(ps, seq);
		if (atp_ps_holds(cell, seq) &&
		    cell->state != ATP_CELL_COMPLETE &&
		    atp_ps_needs_left(ps, cell, now, out))
			return;
	}
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
static enum atp_drop refuse(const struct atp_ps *ps, u32 rank, u32 blame,
			    struct atp_ps_out *out)
{
	ask_abort(out, ps, 1U << rank, ATP_REASON_MISMATCH, blame);
	out->epoch = 0;
	return ATP_DROP_MISMATCH;
}

/* A rank is configured otherwise.  Those who wait for it would wait in vain:
 * they are told when they ask again.  Who asks anew waits: it may be mended.
 */
static void refuse_waiting(struct atp_ps *ps, u32 rank)
{
	u32 i;

	for (i = 0; i < ps->params.workers; i++) {
		if (!ps->members[i].pending || ps->running)
			continue;
		ps->members[i].pending = false;
		ps->members[i].refused = 1U << rank;
	}
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
static void take_join(struct atp_ps_member *m, u32 nonce)
{
	if (!is_last(m, nonce))
		next_ticket(m);
	m->pending_nonce = nonce;
	m->pending = true;
	m->refused = 0;
	m->joined = false;
}

static enum atp_drop rx_join(struct atp_ps *ps, u64 now, u32 rank,
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
			ask_abort(out, ps, 1U << rank, ps->reason, ps->blame);
			return ATP_OK;
		}
		m->heard = now;
		atp_ps_ask(out, ps, ATP_TYPE_WELCOME, 1U << rank, 0);
		return ATP_OK;
	}
	if (is_over(m, ctl->nonce))
		return ATP_DROP_NONCE;
	if (!is_last(m, ctl->nonce) &&
	    (pkt->epoch != ps->epoch || pkt->seq != m->ticket))
		return tell_ticket(ps, rank, pkt, out);
	if (!matches(&ps->params, ctl)) {
		next_ticket(m);
		refuse_waiting(ps, rank);
		return refuse(ps, rank, 1U << rank, out);
	}
	if (m->refused && ctl->nonce == m->pending_nonce)
		return refuse(ps, rank, m->refused, out);

	take_join(m, ctl->nonce);
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

static enum atp_drop rx_leave(struct atp_ps *ps, u64 now, u32 rank,
			      const struct atp_ctl_host *ctl,
			      struct atp_ps_out *out)
{
	struct atp_ps_member *m = &ps->members[rank];

	if (m->pending && ctl->nonce == m->pending_nonce) {
		m->pending = false;
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

static enum atp_drop rx_ping(struct atp_ps *ps, u64 now, u32 rank,
			     const struct atp_pkt *pkt,
			     const struct atp_ctl_host *ctl,
			     struct atp_ps_out *out)
{
	struct atp_ps_member *m = &ps->members[rank];

	out->nonce = ctl->nonce;
	if (!ps->running || pkt->epoch != ps->epoch)
		return atp_ps_other_run(ps, pkt, 1U << rank, out);
	if (!m->joined)
		return ATP_DROP_STATE;
	if (ctl->nonce != m->nonce)
		return ATP_DROP_NONCE;
	m->heard = now;
	atp_ps_ask(out, ps, ATP_TYPE_PONG, 1U << rank, 0);
	return ATP_OK;
}

enum atp_drop atp_ps_rx_ctl(struct atp_ps *ps, u64 now,
			    const struct atp_pkt *pkt, u32 sender,
			    struct atp_ps_out *out)
{
	struct atp_ctl_host ctl;
	u32 rank;

	if (pkt->type != ATP_TYPE_JOIN && pkt->type != ATP_TYPE_LEAVE &&
	    pkt->type != ATP_TYPE_PING)
		return ATP_DROP_TYPE;
	if (!pkt->bitmap0 || (pkt->bitmap0 & (pkt->bitmap0 - 1)) ||
	    (pkt->bitmap0 & ~atp_all_ranks(&ps->params)))
		return ATP_DROP_BITMAP;
	if (!(pkt->bitmap0 & sender))
		return ATP_DROP_STRANGER;

	rank = __ffs(pkt->bitmap0);
	atp_ctl_read(&ctl, pkt->payload);
	switch (pkt->type) {
	case ATP_TYPE_JOIN:
		return rx_join(ps, now, rank, pkt, &ctl, out);
	case ATP_TYPE_LEAVE:
		return rx_leave(ps, now, rank, &ctl, out);
	default:
		return rx_ping(ps, now, rank, pkt, &ctl, out);
	}
}

u64 atp_ps_deadline(const struct atp_ps *ps)
{
	u64 first = U64_MAX;
	u32 rank;

	if (!ps->running)
		return ps->aborts ? ps->next_abort : U64_MAX;
	for (rank = 0; rank < ps->params.workers; rank++)
		if (ps->members[rank].joined)
			first = min(first, ps->members[rank].heard);
	first = min(first + ps->params.timeout, atp_ps_dispute_deadline(ps));
	return min(first, atp_ps_wait_deadline(ps));
}

void atp_ps_timeout(struct atp_ps *ps, u64 now, struct atp_ps_out *out)
{
	u32 joined = atp_ps_joined(ps);
	u32 silent = 0;
	u32 rank;

	memset(out, 0, sizeof(*out));
	if (ps->running) {
		for (rank = 0; rank < ps->params.workers; rank++)
			if ((joined & (1U << rank)) && is_silent(ps, rank, now))
				silent |= 1U << rank;
		if (silent)
			atp_ps_end(ps, now, ATP_REASON_SILENT, silent, out);
		else
			atp_ps_dispute_timeout(ps, now, out);
		if (ps->running)
			atp_ps_wait_timeout(ps, now, out);
		return;
	}
	if (!ps->aborts || now < ps->next_abort)
		return;
	ps->aborts--;
	ps->next_abort = now + abort_interval(ps);
	if (joined)
		ask_abort(out, ps, joined, ps->reason, ps->blame);
}

void atp_ps_stop(struct atp_ps *ps, struct atp_ps_out *out)
{
	u32 rank;

	memset(out, 0, sizeof(*out));
	/* who waits for the next run has waited for the one that ends here */
	for (rank = 0; rank < ps->params.workers; rank++) {
		struct atp_ps_member *m = &ps->members[rank];

		if (!m->pending)
			continue;
		m->nonce = m->pending_nonce;
		m->pending = false;
		m->joined = true;
	}
	atp_ps_end(ps, 0, ATP_REASON_REMOVED, 0, out);
}

/*
 * Which nonce?  The one of the packet that is answered.  Without that, the one
 * of the run that the packet is about; an answer to a fragment of another run
 * has none, so that a worker that is joining does not take it for its own.
 */
static u32 nonce_for(const struct atp_ps *ps, const struct atp_ps_out *out,
		     const struct atp_ps_member *m)
{
	if (out->nonce)
		return out->nonce;
	return m->joined && out->epoch == ps->epoch ? m->nonce : 0;
}

u32 atp_ps_build_ctl(const struct atp_ps *ps, const struct atp_ps_out *out,
		     u32 rank, void *buf)
{
	struct atp_ctl_host ctl = {
		.nonce = nonce_for(ps, out, &ps->members[rank]),
		.workers = ps->params.workers,
		.fragment = ps->params.fragment,
		.window = ps->params.window,
		.scale = ps->params.scale,
		.ranks = ps->running ? atp_ps_joined(ps) : atp_ps_pending(ps),
	};
	struct atp_pkt pkt = {
		.type = out->type,
		.fanin0 = ps->params.workers,
		.cap = ATP_NO_CAP,
		.job = ps->params.job,
		.epoch = out->epoch,
		.seq = out->seq,
		.bitmap0 = 1U << rank,
	};

	if (out->type == ATP_TYPE_ABORT) {
		ctl.reason = out->reason;
		ctl.ranks = out->blame;
	} else if (out->type == ATP_TYPE_STATUS) {
		pkt.bitmap0 = atp_ps_cell(ps, out->seq)->bitmap;
	}
	return atp_ctl_write(buf, &pkt, &ctl);
}
