/* SPDX-License-Identifier: GPL-2.0 */
/* What is true of a worker and of a PS between any two calls. */
#ifndef _FUZZ_INVARIANTS_H
#define _FUZZ_INVARIANTS_H

#include "check.h"
#include "ps.h"
#include "worker.h"

/* A fragment that was sent is in flight, lost or answered, and the list and
 * both counts say the same.
 */
static void check_worker(const struct atp_worker *w)
{
	u32 mask = w->params.window - 1;
	u32 seq, slot, inflight = 0, lost = 0, n = 0, prev = ATP_NO_SLOT;

	CHECK(w->nxt - w->una <= w->params.window);
	CHECK((s32)(w->end - w->nxt) >= 0);
	CHECK(!w->unsent == (w->nxt == w->end));
	for (seq = w->una; seq != w->nxt; seq++) {
		const struct atp_frag *f = &w->frags[seq & mask];

		CHECK(f->state & ATP_FRAG_SENT);
		CHECK(f->chunk);
		CHECK(seq - f->chunk->first < f->chunk->frags);
		CHECK(f->chunk->done <= f->chunk->frags);
		lost += !!(f->state & ATP_FRAG_LOST);
		inflight += !(f->state & (ATP_FRAG_LOST | ATP_FRAG_ACKED));
		CHECK(!(f->state & ATP_FRAG_LOST) ||
		      !(f->state & ATP_FRAG_ACKED));
	}
	CHECK(w->una == w->nxt ||
	      !(w->frags[w->una & mask].state & ATP_FRAG_ACKED));
	CHECK(w->inflight == inflight);
	CHECK(w->lost == lost);
	for (slot = w->oldest; slot != ATP_NO_SLOT;
	     slot = w->frags[slot].next) {
		CHECK(slot <= mask && n++ < inflight);
		CHECK(w->frags[slot].prev == prev);
		CHECK(prev == ATP_NO_SLOT ||
		      atp_before(w->frags[prev].txno, w->frags[slot].txno));
		prev = slot;
	}
	CHECK(n == inflight && w->newest == prev);
	/* who has something under way will hear of time */
	CHECK(w->una == w->nxt || w->timer);
	/* and asks for nothing else */
	CHECK(w->una != w->nxt || !w->tries);
	CHECK(atp_cong_window(&w->cong) >= 1);
}

/* The application has taken what is summed, in order, and what it may take next
 * is all that there is of a chunk.
 */
static void check_server(const struct atp_ps *ps)
{
	const struct atp_ps_server *server = &ps->server;
	u32 mask = 2 * ps->params.window - 1, seq;
	struct atp_ps_sum sum;

	CHECK(server->taken - ps->frontier <= server->summed - ps->frontier);
	CHECK(server->summed - ps->frontier <= ps->params.window);
	for (seq = ps->frontier; seq != server->summed; seq++) {
		CHECK(ps->cells[seq & mask].seq == seq);
		CHECK(ps->cells[seq & mask].state == ATP_CELL_SUMMED);
	}
	if (!server->joined)
		return;
	atp_ps_sum(ps, U32_MAX, &sum);
	CHECK(server->ready == sum.elements);
	CHECK(server->whole == sum.last);
}

/* Cells are where they belong, raw slots have one owner, nothing complete is
 * waited for.
 */
static void check_ps(const struct atp_ps *ps)
{
	u32 all = atp_all_ranks(&ps->params), mask = 2 * ps->params.window - 1;
	u32 i, slots = 0;

	if (!ps->running)
		return;
	if (ps->params.server)
		check_server(ps);
	for (i = 0; i <= mask; i++) {
		const struct atp_cell *cell = &ps->cells[i];

		if (cell->state == ATP_CELL_EMPTY)
			continue;
		CHECK((cell->seq & mask) == i);
		CHECK(!(cell->bitmap & ~all));
		CHECK(cell->elements);
		CHECK(cell->elements <= atp_lanes(&ps->params));
		CHECK(cell->state != ATP_CELL_SUMMED || ps->params.server);
		CHECK((cell->bitmap == all) ==
		      (cell->state >= ATP_CELL_SUMMED));
		if (cell->state != ATP_CELL_RAW)
			continue;
		CHECK(cell->slot < ATP_PS_RAW_SLOTS);
		CHECK(!(slots & 1U << cell->slot));
		CHECK(ps->raw_seq[cell->slot] == cell->seq);
		slots |= 1U << cell->slot;
	}
	CHECK(ps->raw_used == slots);
	CHECK(ps->cells[ps->frontier & mask].state != ATP_CELL_COMPLETE ||
	      ps->cells[ps->frontier & mask].seq != ps->frontier);
}

#endif /* _FUZZ_INVARIANTS_H */
