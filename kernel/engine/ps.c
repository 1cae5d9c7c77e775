// SPDX-License-Identifier: GPL-2.0
/*
 * The PS's cells: gradients in, parameter packets out (paper 3.5, 3.6;
 * Documentation/protocol.rst, PS).
 */
#include "lanes.h"
#include "ps_internal.h"

size_t atp_ps_mem(const struct atp_params *params)
{
	size_t cells = 2 * (size_t)params->window;
	size_t raw = ATP_PS_RAW_SLOTS * (size_t)params->workers;

	return cells * sizeof(struct atp_cell) +
	       (cells + raw) * params->fragment;
}

void atp_ps_init(struct atp_ps *ps, const struct atp_params *params, u32 epoch,
		 void *mem)
{
	u32 cells = 2 * params->window;
	u32 lanes = atp_lanes(params);
	s32 *values;
	u32 i;

	memset(ps, 0, sizeof(*ps));
	ps->params = *params;
	ps->timeout = params->timeout;
	ps->epoch = epoch;
	for (i = 0; i < params->workers; i++)
		ps->members[i].ticket = 1;
	ps->cells = mem;
	values = (s32 *)(ps->cells + cells);
	for (i = 0; i < cells; i++)
		ps->cells[i].value = values + (size_t)i * lanes;
	ps->raw = values + (size_t)cells * lanes;
}

/* One packet to each of ranks */
void atp_ps_ask(struct atp_ps_out *out, const struct atp_ps *ps, u8 type,
		u32 ranks, u32 seq)
{
	out->type = type;
	out->epoch = ps->epoch;
	out->ranks = ranks;
	out->seq = seq;
}

/* The fragment's packet to everybody: one copy for all who are behind a switch,
 * which multiplies it, and one for each of the others.
 */
void atp_ps_ask_all(struct atp_ps_out *out, const struct atp_ps *ps, u32 seq)
{
	u32 joined = atp_ps_joined(ps);
	u32 behind = 0;
	u32 rank;

	for (rank = 0; rank < ps->params.workers; rank++)
		if (ps->members[rank].switched)
			behind |= joined & (1U << rank);

	atp_ps_ask(out, ps, ATP_TYPE_DATA, joined & ~behind, seq);
	if (behind) {
		out->mcast = true;
		out->mcast_rank = __ffs(behind);
	}
}

/*
 * The cell's value is the answer.  From here on nothing of it changes: each
 * worker has to get the same bits and the same new index, however late it asks.
 */
void atp_ps_complete(struct atp_ps *ps, struct atp_cell *cell,
		     struct atp_ps_out *out)
{
	struct atp_cell *next;

	/* Figure 8: a fragment a window later that would meet the same
	 * neighbour in the switch tries its luck elsewhere.  With a salt of
	 * zero the first slot began.
	 */
	if (cell->flags & ATP_F_COLLISION)
		cell->next_index = atp_index_hash(ps->params.job, ps->epoch,
						  ++ps->salt);
	cell->state = ATP_CELL_COMPLETE;

	for (;;) {
		next = atp_ps_cell(ps, ps->frontier);
		if (!atp_ps_holds(next, ps->frontier) ||
		    next->state != ATP_CELL_COMPLETE)
			break;
		ps->frontier++;
	}

	ps->stats.completed++;
	ps->stats.ps_frags += cell->packets - 1;
	ps->stats.switch_frags += ps->params.workers - cell->packets;
	atp_ps_ask_all(out, ps, cell->seq);
	out->events |= ATP_PS_EV_COMPLETE;
}

static void cell_begin(struct atp_cell *cell, const struct atp_pkt *pkt,
		       u64 now)
{
	cell->first = now;
	cell->seq = pkt->seq;
	cell->bitmap = 0;
	cell->seen = 0;
	cell->index = pkt->index;
	cell->next_index = 0;
	cell->elements = pkt->elements;
	cell->flags = pkt->flags & ATP_F_LAST;
	cell->cap = ATP_NO_CAP;
	cell->dtype = pkt->dtype;
	cell->state = ATP_CELL_SUMMING;
	cell->packets = 0;
}

static bool same_shape(const struct atp_cell *cell, const struct atp_pkt *pkt)
{
	return cell->elements == pkt->elements && cell->dtype == pkt->dtype &&
	       !((cell->flags ^ pkt->flags) & ATP_F_LAST);
}

/* A complete fragment's sender has lost the answer. */
static enum atp_drop rx_complete(struct atp_ps *ps, const struct atp_pkt *pkt,
				 u32 from, struct atp_ps_out *out)
{
	if (!(pkt->flags & ATP_F_RESEND))
		return ATP_DROP_DUPLICATE;
	ps->stats.cached++;
	atp_ps_ask(out, ps, ATP_TYPE_DATA, from, pkt->seq);
	return ATP_OK;
}

/*
 * The bitmap rules: no worker's value is added twice, and none is lost without
 * the worker's bit being absent.
 */
static enum atp_drop rx_sum(struct atp_ps *ps, struct atp_cell *cell,
			    const struct atp_pkt *pkt, u64 now,
			    struct atp_ps_out *out)
{
	if (!(pkt->bitmap0 & ~cell->bitmap))
		return ATP_DROP_DUPLICATE;

	if (pkt->flags & ATP_F_OVERFLOW)
		goto overflow;

	if (!(cell->bitmap & ~pkt->bitmap0)) {
		/* nothing was there, or less of the same */
		atp_lanes_get((u32 *)cell->value, pkt->payload,
			      cell->elements);
		cell->packets = 1;
	} else if (!(cell->bitmap & pkt->bitmap0)) {
		if (!atp_lanes_add(cell->value, pkt->payload, cell->elements))
			goto overflow;
		cell->packets++;
	} else {
		return ATP_DROP_OVERLAP;
	}

	cell->bitmap |= pkt->bitmap0;
	if (cell->bitmap == atp_all_ranks(&ps->params))
		atp_ps_summed(ps, now, cell, out);
	return ATP_OK;

overflow:
	return atp_ps_raw_start(ps, cell, out) ? ATP_OK : ATP_DROP_RAWFULL;
}

static void note_marks(struct atp_ps *ps, struct atp_cell *cell,
		       const struct atp_pkt *pkt)
{
	if (pkt->flags & ATP_F_COLLISION)
		ps->stats.collisions++;
	if ((pkt->flags & ATP_F_ECN) || pkt->ce)
		ps->stats.ecn++;
	if (pkt->flags & ATP_F_RESEND)
		ps->stats.resends++;

	if (cell->state == ATP_CELL_COMPLETE)
		return;
	/* also from packets whose values are known or overlap: what they met
	 * on their way is as true
	 */
	cell->seen |= pkt->bitmap0;
	cell->flags |= pkt->flags & (ATP_F_COLLISION | ATP_F_ECN);
	if (pkt->ce)
		cell->flags |= ATP_F_ECN;
	cell->cap = min(cell->cap, pkt->cap);
}

/* What a gradient that is within the windows says about its senders: that they
 * live, and their path.  An aggregate has come through the switch for all who
 * are in it.
 */
static void note_senders(struct atp_ps *ps, u64 now, const struct atp_pkt *pkt,
			 u32 from)
{
	bool switched = pkt->flags & ATP_F_SWITCHED;
	u32 rank;

	for (rank = 0; rank < ps->params.workers; rank++) {
		if (from & (1U << rank))
			ps->members[rank].heard = now;
		if (pkt->bitmap0 & (1U << rank))
			ps->members[rank].switched = switched;
	}
}

static enum atp_drop check_job(const struct atp_ps *ps,
			       const struct atp_pkt *pkt)
{
	const struct atp_params *params = &ps->params;

	if (pkt->flags & ATP_F_ACK)
		return ATP_DROP_TYPE;
	if (pkt->fanin0 != params->workers)
		return ATP_DROP_FANIN;
	if (!pkt->bitmap0 || (pkt->bitmap0 & ~atp_all_ranks(params)))
		return ATP_DROP_BITMAP;
	/* only the last fragment of a chunk may be short */
	if (pkt->elements > atp_lanes(params) ||
	    (pkt->elements < atp_lanes(params) && !(pkt->flags & ATP_F_LAST)))
		return ATP_DROP_ELEMENTS;
	return ATP_OK;
}

/* F - window <= seq < F + window; see protocol.rst for why */
static enum atp_drop check_window(const struct atp_ps *ps, u32 seq)
{
	const struct atp_cell *cell = atp_ps_cell(ps, seq);
	s32 ahead = seq - ps->frontier;

	if (ahead >= (s32)ps->params.window)
		return ATP_DROP_FUTURE;
	if (ahead < -(s32)ps->params.window)
		return ATP_DROP_OLD;
	/* before the first fragment of the run there was none */
	if (ahead < 0 && !atp_ps_holds(cell, seq))
		return ATP_DROP_OLD;
	return ATP_OK;
}

static enum atp_drop rx_gradient(struct atp_ps *ps, u64 now,
				 const struct atp_pkt *pkt, u32 sender,
				 struct atp_ps_out *out)
{
	u32 from = pkt->bitmap0 & sender;
	struct atp_cell *cell;
	enum atp_drop drop;

	drop = check_job(ps, pkt);
	if (drop)
		return drop;
	if (!from)
		return ATP_DROP_STRANGER;
	/* One answer: there may be no more of it than was sent, and others at
	 * that address say themselves that they are there.
	 */
	if (!ps->running || pkt->epoch != ps->epoch)
		return atp_ps_other_run(ps, pkt, from & -from, out);
	drop = check_window(ps, pkt->seq);
	if (drop)
		return drop;

	note_senders(ps, now, pkt, from);
	cell = atp_ps_cell(ps, pkt->seq);
	if (!atp_ps_holds(cell, pkt->seq))
		cell_begin(cell, pkt, now);
	else if (!same_shape(cell, pkt))
		return atp_ps_dispute(ps, now, cell, pkt, out);
	note_marks(ps, cell, pkt);
	if (atp_ps_dispute_vote(ps, now, cell, pkt->bitmap0, out))
		return ATP_DROP_DISAGREE;

	if (cell->state == ATP_CELL_COMPLETE)
		return rx_complete(ps, pkt, from, out);

	if (cell->state == ATP_CELL_SUMMED)
		drop = ATP_DROP_DUPLICATE;
	else if (cell->state == ATP_CELL_RAW || (pkt->flags & ATP_F_RAW))
		drop = atp_ps_raw_rx(ps, cell, pkt, from, now, out);
	else
		drop = rx_sum(ps, cell, pkt, now, out);

	if (cell->state == ATP_CELL_COMPLETE || !ps->running)
		return drop;
	if (atp_ps_needs_left(ps, cell, now, out))
		return drop;

	/* Who asks is told who is missing, unless it got an order already. */
	if ((pkt->flags & ATP_F_RESEND) && !out->type) {
		atp_ps_ask(out, ps, ATP_TYPE_STATUS, from, pkt->seq);
		if (drop != ATP_DROP_DUPLICATE)
			return drop;
		drop = ATP_OK;
		/* It asks again.  Those that hold it up may not know: what they
		 * sent is lost, or an answer to them was, so that they have not
		 * come here yet.
		 */
		if (pkt->seq == ps->frontier)
			out->ranks |= atp_ps_joined(ps) & ~cell->bitmap;
	}
	return drop;
}

enum atp_drop atp_ps_rx(struct atp_ps *ps, u64 now, const struct atp_pkt *pkt,
			u32 sender, struct atp_ps_out *out)
{
	memset(out, 0, sizeof(*out));
	if (pkt->job != ps->params.job)
		return ATP_DROP_JOB;
	if (pkt->type == ATP_TYPE_DATA)
		return rx_gradient(ps, now, pkt, sender, out);
	return atp_ps_rx_ctl(ps, now, pkt, sender, out);
}

static u32 build_data(const struct atp_ps *ps, const struct atp_ps_out *out,
		      bool mcast, void *buf)
{
	const struct atp_cell *cell = atp_ps_cell(ps, out->seq);
	struct atp_pkt pkt = {
		.type = ATP_TYPE_DATA,
		.dtype = cell->dtype,
		.fanin0 = ps->params.workers,
		.flags = ATP_F_ACK | (mcast ? ATP_F_MCAST : 0),
		.cap = cell->cap,
		.job = ps->params.job,
		.epoch = out->epoch,
		.seq = out->seq,
		.index = cell->index,
	};
	u8 *lanes;

	if (cell->state != ATP_CELL_COMPLETE) {
		pkt.flags |= ATP_F_OVERFLOW;
		return atp_pkt_write_hdr(buf, &pkt);
	}

	pkt.flags |= cell->flags;
	pkt.elements = cell->elements;
	pkt.bitmap0 = cell->flags & ATP_F_COLLISION ? cell->next_index :
						      cell->bitmap;
	lanes = (u8 *)buf + atp_pkt_write_hdr(buf, &pkt);
	atp_lanes_put(lanes, (const u32 *)cell->value, cell->elements);
	if (cell->elements & 1)
		put_unaligned_le32(0, lanes + 4 * cell->elements);
	return ATP_HDR_LEN + ATP_PAYLOAD_LEN(cell->elements);
}

u32 atp_ps_len(const struct atp_ps *ps, const struct atp_ps_out *out)
{
	const struct atp_cell *cell = atp_ps_cell(ps, out->seq);

	if (out->type != ATP_TYPE_DATA)
		return ATP_HDR_LEN + ATP_CTL_LEN;
	if (cell->state != ATP_CELL_COMPLETE)
		return ATP_HDR_LEN;
	return ATP_HDR_LEN + ATP_PAYLOAD_LEN(cell->elements);
}

u32 atp_ps_build(const struct atp_ps *ps, const struct atp_ps_out *out,
		 u32 rank, bool mcast, void *buf)
{
	if (out->type == ATP_TYPE_DATA)
		return build_data(ps, out, mcast, buf);
	return atp_ps_build_ctl(ps, out, rank, buf);
}
