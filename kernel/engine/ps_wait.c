// SPDX-License-Identifier: GPL-2.0
/*
 * Whom others wait for, and for how long (Documentation/protocol.rst, Waiting
 * has an end).
 *
 * A rank that lives but has not sent its part of the oldest fragment may be
 * slow, or stopped, or have pushed fewer chunks than the others: then it never
 * comes.  Nobody can tell these apart, so there is a limit, the job's patience.
 * It begins anew with every fragment that is completed, since those who come
 * late find fragments that are as old as their delay.
 */
#include "ps_internal.h"

bool atp_ps_waiting(const struct atp_ps *ps, struct atp_ps_wait *wait)
{
	const struct atp_cell *cell = atp_ps_cell(ps, ps->frontier);

	memset(wait, 0, sizeof(*wait));
	if (!ps->running || !atp_ps_holds(cell, ps->frontier))
		return false;
	wait->since = cell->first;
	wait->server = cell->state == ATP_CELL_SUMMED;
	wait->ranks = atp_all_ranks(&ps->params) & ~cell->bitmap;
	return true;
}

u64 atp_ps_wait_deadline(const struct atp_ps *ps)
{
	struct atp_ps_wait wait;

	/* a dispute has an end of its own, and names others */
	if (!ps->params.patience || ps->dispute.open ||
	    !atp_ps_waiting(ps, &wait))
		return U64_MAX;
	return max(wait.since, ps->progress) + ps->params.patience;
}

void atp_ps_wait_timeout(struct atp_ps *ps, u64 now, struct atp_ps_out *out)
{
	struct atp_ps_wait wait;

	if (now < atp_ps_wait_deadline(ps))
		return;
	atp_ps_waiting(ps, &wait);
	atp_ps_end(ps, now, ATP_REASON_LATE, wait.ranks, out);
}
