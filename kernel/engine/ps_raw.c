// SPDX-License-Identifier: GPL-2.0
/*
 * The overflow path (paper 3.8; Documentation/protocol.rst, Numbers): when a
 * sum did not fit somewhere, the values as they were pushed are collected, and
 * the result is computed from all of them at once.
 */
#include "lanes.h"
#include "ps_internal.h"

static s32 *raw_values(const struct atp_ps *ps, u32 slot, u32 rank)
{
	size_t row = (size_t)slot * ps->params.workers + rank;

	return ps->raw + row * atp_lanes(&ps->params);
}

/*
 * Progress: a slot is held until all workers have sent raw values.  They would
 * not, if an older fragment had to wait for the slot: workers keep to the
 * oldest while it does not get through, perhaps with a window of one.  So an
 * older fragment takes the slot of the newest, which begins anew when its
 * workers resend; the oldest fragment of all never waits, and when it is
 * complete, the next one is the oldest.
 */
static int slot_get(struct atp_ps *ps, u32 seq)
{
	u32 slot, newest = 0;

	for (slot = 0; slot < ATP_PS_RAW_SLOTS; slot++) {
		if (!(ps->raw_used & (1U << slot)))
			return slot;
		if (atp_before(ps->raw_seq[newest], ps->raw_seq[slot]))
			newest = slot;
	}
	if (!atp_before(seq, ps->raw_seq[newest]))
		return -1;
	/* forgotten whole: none of its bits are set, nothing is added twice */
	atp_ps_cell(ps, ps->raw_seq[newest])->state = ATP_CELL_EMPTY;
	atp_ps_dispute_forget(ps, ps->raw_seq[newest]);
	return newest;
}

/*
 * Forget the sum and ask for raw values.  Return: false if there is no room;
 * nothing has changed then.
 */
bool atp_ps_raw_start(struct atp_ps *ps, struct atp_cell *cell,
		      struct atp_ps_out *out)
{
	int slot = slot_get(ps, cell->seq);

	if (slot < 0)
		return false;
	ps->raw_used |= 1U << slot;
	ps->raw_seq[slot] = cell->seq;
	cell->slot = slot;
	cell->state = ATP_CELL_RAW;
	cell->bitmap = 0;
	cell->packets = 0;
	atp_ps_ask_all(out, ps, cell->seq);
	out->events |= ATP_PS_EV_RAW;
	return true;
}

static bool fits_s32(s64 sum)
{
	return sum == (s32)sum;
}

/* What is left of an int32 sum that does not fit: nobody gets it, but it should
 * not depend on anything either.
 */
static s32 saturate(s64 sum)
{
	return clamp_t(s64, sum, S32_MIN, S32_MAX);
}

static s64 int_sum(const struct atp_ps *ps, u32 slot, u32 lane)
{
	s64 sum = 0;
	u32 rank;

	for (rank = 0; rank < ps->params.workers; rank++)
		sum += raw_values(ps, slot, rank)[lane];
	return sum;
}

/* Return: false if a value or the sum of the scaled values does not fit. */
static bool scaled_sum(const struct atp_ps *ps, u32 slot, u32 lane, s32 *sum)
{
	s64 wide = 0;
	u32 rank;
	s32 v;

	for (rank = 0; rank < ps->params.workers; rank++) {
		if (!atp_quantise(raw_values(ps, slot, rank)[lane],
				  ps->params.scale, &v))
			return false;
		wide += v;
	}
	*sum = wide;
	return fits_s32(wide);
}

static u32 float_sum(const struct atp_ps *ps, u32 slot, u32 lane)
{
	u32 bits[ATP_MAX_WORKERS];
	u32 rank;

	BUILD_BUG_ON(ATP_MAX_WORKERS > ATP_RAW_MAX);
	for (rank = 0; rank < ps->params.workers; rank++)
		bits[rank] = raw_values(ps, slot, rank)[lane];
	return atp_fsum(bits, ps->params.workers);
}

static void complete_int(struct atp_ps *ps, struct atp_cell *cell)
{
	u32 lane;
	s64 sum;

	for (lane = 0; lane < cell->elements; lane++) {
		sum = int_sum(ps, cell->slot, lane);
		if (!fits_s32(sum))
			cell->flags |= ATP_F_OVERFLOW;
		cell->value[lane] = saturate(sum);
	}
}

static void complete_float(struct atp_ps *ps, struct atp_cell *cell)
{
	u32 lane;
	s32 sum;

	for (lane = 0; lane < cell->elements; lane++) {
		if (!scaled_sum(ps, cell->slot, lane, &sum)) {
			cell->flags |= ATP_F_RAW;
			break;
		}
		cell->value[lane] = sum;
	}
	if (!(cell->flags & ATP_F_RAW))
		return;

	/* one lane cannot be scaled, so none is on the wire; those that could
	 * are what the workers would have made of them
	 */
	for (lane = 0; lane < cell->elements; lane++) {
		if (scaled_sum(ps, cell->slot, lane, &sum))
			cell->value[lane] = atp_dequantise(sum,
							   ps->params.scale);
		else
			cell->value[lane] = float_sum(ps, cell->slot, lane);
	}
}

/* A fragment of a cell that is, or has to be, on the overflow path */
enum atp_drop atp_ps_raw_rx(struct atp_ps *ps, struct atp_cell *cell,
			    const struct atp_pkt *pkt, u32 from, u64 now,
			    struct atp_ps_out *out)
{
	u32 rank;

	if (!(pkt->flags & ATP_F_RAW)) {
		/* sent before the request came, or the request was lost */
		if (!(from & ~cell->bitmap))
			return ATP_DROP_DUPLICATE;
		atp_ps_ask(out, ps, ATP_TYPE_DATA, from & ~cell->bitmap,
			   cell->seq);
		return ATP_OK;
	}

	/* one worker's own, or it is nobody's */
	if (pkt->bitmap0 & (pkt->bitmap0 - 1))
		return ATP_DROP_BITMAP;
	if (cell->state != ATP_CELL_RAW && !atp_ps_raw_start(ps, cell, out))
		return ATP_DROP_RAWFULL;
	if (pkt->bitmap0 & cell->bitmap)
		return ATP_DROP_DUPLICATE;

	rank = __ffs(pkt->bitmap0);
	atp_lanes_get((u32 *)raw_values(ps, cell->slot, rank), pkt->payload,
		      cell->elements);
	cell->bitmap |= pkt->bitmap0;
	cell->packets++;
	/* who has just sent them is not asked for them */
	out->ranks &= ~pkt->bitmap0;

	if (cell->bitmap != atp_all_ranks(&ps->params))
		return ATP_OK;
	if (cell->dtype == ATP_INT32)
		complete_int(ps, cell);
	else
		complete_float(ps, cell);
	ps->raw_used &= ~(1U << cell->slot);
	ps->stats.raw++;
	atp_ps_summed(ps, now, cell, out);
	return ATP_OK;
}
