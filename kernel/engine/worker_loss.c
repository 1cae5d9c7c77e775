// SPDX-License-Identifier: GPL-2.0
/*
 * Which of a worker's fragments are lost, and which are only waited for
 * (Documentation/protocol.rst, Loss; paper 3.7).
 *
 * A fragment that was sent is in one of three places:
 *
 *	in flight  in the list from oldest to newest, by transmission number
 *	lost       ATP_FRAG_LOST, to be sent again
 *	acked      ATP_FRAG_ACKED, its result is there
 *
 * una's timer moves all in flight to lost.  What shows that it was early moves
 * all lost ones back.
 */
#include "worker_priv.h"

/* The fragment is on its way: the newest transmission */
void atp_flight_add(struct atp_worker *w, u32 seq)
{
	struct atp_frag *f = atp_frag(w, seq);
	u32 slot = atp_slot(w, seq);

	f->txno = w->txno++;
	f->prev = w->newest;
	f->next = ATP_NO_SLOT;
	if (w->newest == ATP_NO_SLOT)
		w->oldest = slot;
	else
		w->frags[w->newest].next = slot;
	w->newest = slot;
	w->inflight++;
}

void atp_flight_del(struct atp_worker *w, u32 seq)
{
	const struct atp_frag *f = atp_frag(w, seq);

	if (f->prev == ATP_NO_SLOT)
		w->oldest = f->next;
	else
		w->frags[f->prev].next = f->next;
	if (f->next == ATP_NO_SLOT)
		w->newest = f->prev;
	else
		w->frags[f->next].prev = f->prev;
	w->inflight--;
}

/* From in flight to lost */
void atp_mark_lost(struct atp_worker *w, u32 seq)
{
	atp_flight_del(w, seq);
	atp_frag(w, seq)->state |= ATP_FRAG_LOST;
	if (!w->lost || atp_before(seq, w->rtx))
		w->rtx = seq;
	w->lost++;
}

/* Remember the three highest transmission numbers that were answered: all that
 * is in flight from before the third is lost, and nothing else.
 */
static void answer(struct atp_worker *w, u32 txno)
{
	int i;

	for (i = 0; i < ATP_DUP_THRESH; i++)
		if (atp_before(w->answered[i], txno))
			swap(w->answered[i], txno);
}

/* Fragment f, no longer in flight, was answered: which ones are lost by that?
 * Each transmission is judged once, since it leaves the list.
 */
void atp_loss_detect(struct atp_worker *w, const struct atp_frag *f, u64 now)
{
	u32 third, seq;

	/* An answer that came faster than any before is one to an earlier
	 * transmission, or peers brought it about; the number of the last says
	 * nothing then.
	 */
	if (f->state & ATP_FRAG_RESENT && now - f->sent < w->rtt.best)
		return;
	answer(w, f->txno);
	third = w->answered[ATP_DUP_THRESH - 1];

	while (w->oldest != ATP_NO_SLOT &&
	       atp_before(w->frags[w->oldest].txno, third)) {
		seq = atp_slot_seq(w, w->oldest);
		atp_mark_lost(w, seq);
		w->stats.fast_retransmits++;
		/* What the PS has and waits with for others is due again if a
		 * switch holds the others' (3.6, stalled aggregation), but it
		 * is no sign of congestion.
		 */
		if (seq != w->una || !atp_waits(w))
			atp_cong_reduce(&w->cong, seq, w->nxt);
	}
}

/* The timeout was early: what counts as lost since is on its way.  With new
 * transmission numbers, since the order of the old ones was lost; so answers to
 * later ones may still show a true loss.  Values that the PS has asked for are
 * due anyway.  The window is what it was, if nothing at all was lost.
 */
void atp_loss_undo(struct atp_worker *w)
{
	struct atp_frag *f;
	u32 seq;

	for (seq = w->rtx; w->lost && seq != w->nxt; seq++) {
		f = atp_frag(w, seq);
		if ((f->state & (ATP_FRAG_LOST | ATP_FRAG_RAW)) !=
		    ATP_FRAG_LOST)
			continue;
		f->state &= ~ATP_FRAG_LOST;
		w->lost--;
		atp_flight_add(w, seq);
	}
	w->loss = false;
	if (w->holes) {
		atp_cong_ease(&w->cong);
		return;
	}
	atp_cong_undo(&w->cong);
	w->stats.spurious++;
}

/* How long to wait for an answer.  As long as the path carries anything at all,
 * what is lost is no reason to wait much longer; that peers are late is one, as
 * far as the PS says so.
 */
u64 atp_worker_rto(const struct atp_worker *w, u64 now)
{
	bool alive = w->heard && now - w->heard < ATP_RTO_MAX;

	return atp_rtt_timeout(&w->rtt, alive && !w->told);
}

void atp_timer_restart(struct atp_worker *w, u64 now)
{
	w->timer = w->una == w->nxt ? 0 : now + atp_worker_rto(w, now);
}

u64 atp_worker_deadline(const struct atp_worker *w)
{
	return w->timer ?: U64_MAX;
}

void atp_worker_timeout(struct atp_worker *w, u64 now)
{
	const struct atp_frag *f = atp_frag(w, w->una);

	if (!w->timer || now < w->timer)
		return;
	/* It is due already, the caller could not send it yet. */
	if (f->state & ATP_FRAG_LOST) {
		atp_timer_restart(w, now);
		return;
	}

	if (atp_waits(w)) {
		/* Peers are late, or the PS's application.  Ask for news with
		 * the oldest alone.
		 */
		atp_mark_lost(w, w->una);
	} else {
		w->stats.timeouts++;
		/* The window falls once for all timeouts in a row. */
		if (!w->rtt.backoff || !w->loss)
			atp_cong_timeout(&w->cong, w->nxt);
		/* Whoever has sent what was answered behind una has sent una
		 * before, so nobody is late, and it was lost.
		 */
		w->holes = w->inflight + w->lost != w->nxt - w->una;
		w->loss = true;
		w->loss_end = w->nxt;
		/* what all workers need to recover is no round trip */
		w->fresh = now;
		while (w->oldest != ATP_NO_SLOT)
			atp_mark_lost(w, atp_slot_seq(w, w->oldest));
	}
	/* An asking that got no answer says nothing of the peers. */
	if (!atp_waits(w) || w->told)
		w->rtt.backoff++;
	w->asked = false;
	w->told = false;
	atp_timer_restart(w, now);
}

/*
 * Control packets may pass where fragments do not: on a path with a hop of a
 * smaller MTU that says nothing, or a filter.  PONG says that the PS lives, but
 * nothing would ever come of the run, and nobody at the PS may wait for
 * anything.
 *
 * A PS that gets una again always answers: with the result, with STATUS that
 * has me in it, or with a request for raw values, since una is its oldest
 * fragment, or an older one.  STATUS that has not is no answer, as others'
 * questions bring it about.  If one packet of three is lost on each of four
 * legs (30 %), three of four tries fail, and 64 in a row with a probability of
 * 2 in 10^8; most often there are more, as tries are at most a second apart,
 * and for the first second since the PS was heard of much less, and must take
 * the job's timeout, too.  So it takes that long or a minute, whichever is
 * longer.  A host that was suspended has to try as often.
 */
bool atp_worker_unanswered(const struct atp_worker *w, u64 now)
{
	/* the last one may still be answered */
	return w->tries > ATP_TRIES && now - w->trying >= w->params.timeout;
}

/* Peers wait for me at a fragment later than una: all before it are complete,
 * so the answers to what I have in flight of those are lost.
 */
static void behind(struct atp_worker *w, u64 now, u32 seq)
{
	const struct atp_frag *f;

	atp_waits_no_more(w);
	while (seq-- != w->una) {
		f = atp_frag(w, seq);
		/* the answer to what was sent again may be on its way */
		if (f->state & (ATP_FRAG_LOST | ATP_FRAG_ACKED) ||
		    now - f->sent < (w->rtt.best ?: w->rtt.rto))
			continue;
		atp_mark_lost(w, seq);
		w->stats.fast_retransmits++;
		atp_cong_reduce(&w->cong, seq, w->nxt);
	}
}

/* The PS has nothing of mine for una: it was lost, or it was in a sum that the
 * PS could not use.  This may be the answer to an earlier transmission, so not
 * within a round trip of the last one, and once per expiry: the PS may have
 * reasons.
 */
static void without_me(struct atp_worker *w, u64 now)
{
	const struct atp_frag *f = atp_frag(w, w->una);

	atp_waits_no_more(w);
	if (f->state & ATP_FRAG_LOST || w->asked ||
	    now - f->sent < (w->rtt.best ?: w->rtt.rto))
		return;
	w->asked = true;
	atp_mark_lost(w, w->una);
}

/* The PS has mine for una and waits for peers or, if it has all, for its
 * application.
 */
static void waits(struct atp_worker *w, u64 now, u32 missing)
{
	const struct atp_frag *f = atp_frag(w, w->una);

	w->tries = 0;
	/* A round trip in which no peer had a part.  Of the last transmission:
	 * only that one asked, or it is within the timer.  Who has not asked is
	 * told as well if a rank at the same address has.
	 */
	if (f->state & ATP_FRAG_RESENT &&
	    (w->rtt.backoff == 1 || now - f->sent < w->rtt.rto))
		atp_rtt_path(&w->rtt, now - f->sent);
	/* As long as they are coming, ask as often as at first. */
	if (w->waiting & ~missing)
		w->rtt.backoff = 0;
	w->waiting = missing;
	w->server = !missing;
	w->told = true;
	if (w->loss)
		atp_loss_undo(w);
	atp_timer_restart(w, now);
}

/* The PS holds a fragment that is not complete.  I have sent it again, or it is
 * what I hold up, and a peer has.
 */
enum atp_drop atp_worker_status(struct atp_worker *w, u64 now,
				const struct atp_pkt *pkt)
{
	u32 missing = atp_all_ranks(&w->params) & ~pkt->bitmap0;
	bool sent = pkt->seq - w->una < w->nxt - w->una;
	bool mine = pkt->bitmap0 & (1U << w->rank);
	u8 state = sent ? atp_frag(w, pkt->seq)->state : 0;

	if (pkt->bitmap0 & ~atp_all_ranks(&w->params))
		return ATP_DROP_BITMAP;
	if (atp_before(pkt->seq, w->una))
		return ATP_DROP_OLD;
	/* what I have not sent holds all up */
	if (!sent && (mine || pkt->seq != w->nxt))
		return ATP_DROP_UNSENT;
	if (state & ATP_FRAG_ACKED)
		return ATP_DROP_DUPLICATE;

	/* Only una's matters, since the timer and the window wait for it. */
	if (sent && pkt->seq == w->una) {
		if (mine)
			waits(w, now, missing);
		else
			without_me(w, now);
	} else if (!mine && !(state & ATP_FRAG_RESENT)) {
		/* no answer to me: I did not ask */
		behind(w, now, pkt->seq);
	}
	return ATP_OK;
}
