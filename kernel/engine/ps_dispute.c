// SPDX-License-Identifier: GPL-2.0
/*
 * Ranks that push different chunks: who is wrong?  (Documentation/protocol.rst,
 * Disagreement.)
 *
 * The packets of a fragment must have the same length, type and last-of-chunk
 * flag: its shape.  When the first differs from what the cell holds, a dispute
 * is open, and each packet of that fragment is a vote of its ranks:
 *
 *	cell->seen	ranks with the shape that the cell has
 *	other		ranks with the shape of the packet that differed first
 *	odd		ranks with any further shape
 *
 * It is over when more than half of all workers have the same shape, when all
 * have voted, or after a quarter of the job's timeout: who has sent nothing
 * may never do.
 */
#include "ps_internal.h"

static bool same_shape(const struct atp_ps_dispute *d,
		       const struct atp_pkt *pkt)
{
	return d->elements == pkt->elements && d->dtype == pkt->dtype &&
	       d->last == !!(pkt->flags & ATP_F_LAST);
}

/* More than half of those who have voted are right; if there is no such half,
 * nobody can tell, and all are named.
 */
static u32 wrong(u32 first, u32 other, u32 odd)
{
	u32 all = first | other | odd;

	if (2 * hweight32(first) > hweight32(all))
		return all & ~first;
	if (2 * hweight32(other) > hweight32(all))
		return all & ~other;
	return all;
}

static bool settle(struct atp_ps *ps, u64 now, const struct atp_cell *cell,
		   struct atp_ps_out *out)
{
	const struct atp_ps_dispute *d = &ps->dispute;
	u32 first = cell->seen & ~(d->other | d->odd);
	u32 most = max(hweight32(first), hweight32(d->other));
	u32 voted = first | d->other | d->odd;

	if (2 * most <= ps->params.workers && atp_ps_joined(ps) & ~voted &&
	    now < d->until)
		return false;
	atp_ps_end(ps, now, ATP_REASON_DISAGREE,
		   wrong(first, d->other, d->odd), out);
	return true;
}

/* Who says two things is wrong, whatever the others say. */
static bool says_two_things(struct atp_ps *ps, u64 now, u32 twice,
			    struct atp_ps_out *out)
{
	if (!twice)
		return false;
	atp_ps_end(ps, now, ATP_REASON_DISAGREE, twice, out);
	return true;
}

/* A packet whose shape is not the cell's */
enum atp_drop atp_ps_dispute(struct atp_ps *ps, u64 now,
			     const struct atp_cell *cell,
			     const struct atp_pkt *pkt, struct atp_ps_out *out)
{
	struct atp_ps_dispute *d = &ps->dispute;
	u32 others = cell->seen;

	if (d->open && d->seq == pkt->seq)
		others |= same_shape(d, pkt) ? d->odd : d->other;
	if (says_two_things(ps, now, pkt->bitmap0 & others, out))
		return ATP_DROP_DISAGREE;
	if (!d->open) {
		d->open = true;
		d->seq = pkt->seq;
		d->until = now + div_u64(ps->params.timeout, 4);
		d->elements = pkt->elements;
		d->dtype = pkt->dtype;
		d->last = pkt->flags & ATP_F_LAST;
		d->other = 0;
		d->odd = 0;
	}
	/* one is enough: a later fragment differs for the same reason */
	if (d->seq != pkt->seq)
		return ATP_DROP_DISAGREE;

	if (same_shape(d, pkt))
		d->other |= pkt->bitmap0;
	else
		d->odd |= pkt->bitmap0;
	settle(ps, now, cell, out);
	return ATP_DROP_DISAGREE;
}

/* A packet of @ranks with the cell's shape has come.  Return: whether the run
 * has ended by that.
 */
bool atp_ps_dispute_vote(struct atp_ps *ps, u64 now,
			 const struct atp_cell *cell, u32 ranks,
			 struct atp_ps_out *out)
{
	const struct atp_ps_dispute *d = &ps->dispute;

	if (!d->open || d->seq != cell->seq)
		return false;
	return says_two_things(ps, now, ranks & (d->other | d->odd), out) ||
	       settle(ps, now, cell, out);
}

/* The cell of fragment @seq begins anew: what ranks have said was of another
 * shape than its next one, and each says it again with what it resends.
 */
void atp_ps_dispute_forget(struct atp_ps *ps, u32 seq)
{
	if (ps->dispute.seq == seq)
		ps->dispute.open = false;
}

u64 atp_ps_dispute_deadline(const struct atp_ps *ps)
{
	return ps->dispute.open ? ps->dispute.until : U64_MAX;
}

void atp_ps_dispute_timeout(struct atp_ps *ps, u64 now, struct atp_ps_out *out)
{
	if (now >= atp_ps_dispute_deadline(ps))
		settle(ps, now, atp_ps_cell(ps, ps->dispute.seq), out);
}
