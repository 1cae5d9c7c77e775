// SPDX-License-Identifier: GPL-2.0
/*
 * Who takes part in a run, silence, and how a run ends
 * (Documentation/protocol.rst, Joining).
 *
 * A rank is, as far as the PS knows,
 *
 *	joined	pending
 *	-	-	away: never seen, or has left
 *	-	yes	waiting for the next run, whether one goes on or not
 *	yes	-	in the run, or in the one that failed: to be told
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

/* Has it been silent for the job's timeout? */
bool atp_ps_silent(const struct atp_ps *ps, u32 rank, u64 now)
{
	return now >= ps->members[rank].heard + ps->params.timeout;
}

/* Whoever is here asks as often as his timeout wants it, which may be the last
 * one: a shorter one has to wait.
 */
void atp_ps_take_timeout(struct atp_ps *ps)
{
	if (ps->timeout > ps->params.timeout ||
	    !(ps->running || atp_ps_pending(ps)))
		ps->params.timeout = ps->timeout;
}

void atp_ps_set_times(struct atp_ps *ps, u64 timeout, u64 patience)
{
	ps->timeout = timeout;
	ps->params.patience = patience;
	atp_ps_take_timeout(ps);
}

/* All copies of an ABORT go out within half of the time in which a worker would
 * give up by itself.
 */
static u64 abort_interval(const struct atp_ps *ps)
{
	return div_u64(ps->params.timeout, 2 * ATP_PS_ABORTS);
}

void atp_ps_ask_abort(struct atp_ps_out *out, const struct atp_ps *ps,
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
	atp_ps_ask_abort(out, ps, joined, reason, blame);
	ps->aborts = ATP_PS_ABORTS - 1;
	ps->next_abort = now + abort_interval(ps);
}

void atp_ps_fail(struct atp_ps *ps, u64 now, u32 reason, u32 blame,
		 struct atp_ps_out *out)
{
	memset(out, 0, sizeof(*out));
	if (ps->running)
		atp_ps_end(ps, now, reason, blame, out);
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
		atp_ps_ask_abort(out, ps, from, ps->reason, ps->blame);
	else
		atp_ps_ask_abort(out, ps, from, ATP_REASON_EPOCH, 0);
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
		return atp_ps_rx_join(ps, now, rank, pkt, &ctl, out);
	case ATP_TYPE_LEAVE:
		return atp_ps_rx_leave(ps, now, rank, &ctl, out);
	default:
		return rx_ping(ps, now, rank, pkt, &ctl, out);
	}
}

u64 atp_ps_deadline(const struct atp_ps *ps)
{
	u64 first = U64_MAX;
	u32 rank;

	for (rank = 0; rank < ps->params.workers; rank++)
		if (ps->members[rank].pending ||
		    (ps->running && ps->members[rank].joined))
			first = min(first, ps->members[rank].heard);
	if (first != U64_MAX)
		first += ps->params.timeout;
	if (!ps->running)
		return ps->aborts ? min(first, ps->next_abort) : first;
	first = min(first, atp_ps_dispute_deadline(ps));
	return min(first, atp_ps_wait_deadline(ps));
}

static void run_timeout(struct atp_ps *ps, u64 now, struct atp_ps_out *out)
{
	u32 silent = 0;
	u32 rank;

	for (rank = 0; rank < ps->params.workers; rank++)
		if (ps->members[rank].joined && atp_ps_silent(ps, rank, now))
			silent |= 1U << rank;
	if (silent)
		atp_ps_end(ps, now, ATP_REASON_SILENT, silent, out);
	else
		atp_ps_dispute_timeout(ps, now, out);
	if (ps->running)
		atp_ps_wait_timeout(ps, now, out);
}

void atp_ps_timeout(struct atp_ps *ps, u64 now, struct atp_ps_out *out)
{
	u32 joined = atp_ps_joined(ps);

	memset(out, 0, sizeof(*out));
	atp_ps_forget_silent(ps, now, 0);
	if (ps->running) {
		run_timeout(ps, now, out);
		return;
	}
	if (!ps->aborts || now < ps->next_abort)
		return;
	ps->aborts--;
	ps->next_abort = now + abort_interval(ps);
	if (joined)
		atp_ps_ask_abort(out, ps, joined, ps->reason, ps->blame);
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

/* Ranks that take part, or did in what is not complete: that may still be.  A
 * worker that hears that somebody is missing need not begin anything new.
 */
static u32 takes_part(const struct atp_ps *ps)
{
	u32 ranks = atp_ps_joined(ps);
	const struct atp_cell *cell;
	u32 i, seq;

	for (i = 0; ranks != atp_all_ranks(&ps->params) &&
	     i < ps->params.window; i++) {
		seq = ps->frontier + i;
		cell = atp_ps_cell(ps, seq);
		if (atp_ps_holds(cell, seq) && cell->state != ATP_CELL_COMPLETE)
			ranks |= cell->bitmap;
	}
	return ranks;
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
	} else if (out->type == ATP_TYPE_PONG && ps->running) {
		ctl.ranks = takes_part(ps);
		ctl.server = ps->server.joined;
	} else if (out->type == ATP_TYPE_STATUS) {
		pkt.bitmap0 = atp_ps_cell(ps, out->seq)->bitmap;
	}
	return atp_ctl_write(buf, &pkt, &ctl);
}
