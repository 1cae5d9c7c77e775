// SPDX-License-Identifier: GPL-2.0
/*
 * The application on the PS host that makes the results
 * (Documentation/protocol.rst, An application at the PS).
 *
 * A fragment whose sum is complete waits, as ATP_CELL_SUMMED, until the
 * application has answered it; for the workers it is incomplete meanwhile.  In
 * the order of sequence numbers:
 *
 *	frontier <= taken <= summed
 *
 * of which it has the sums up to taken and owes the results, and can have those
 * up to summed.
 */
#include "ps_internal.h"

void atp_ps_server_begin(struct atp_ps *ps)
{
	ps->server = (struct atp_ps_server){ .joined = ps->server.pending };
}

/* From here on the values are as applications have them, and so is the result:
 * it need not be a multiple of a step of the scale.
 */
static void unscale(const struct atp_ps *ps, struct atp_cell *cell)
{
	u32 i;

	if (cell->dtype != ATP_FLOAT32 || cell->flags & ATP_F_RAW)
		return;
	/* in the bytes' order of the wire; nothing where that is the host's */
	for (i = 0; i < cell->elements; i++)
		put_unaligned_le32(cell->value[i], &cell->value[i]);
	atp_dequantise_lanes((u32 *)cell->value, cell->value, cell->elements,
			     ps->params.scale);
	cell->flags |= ATP_F_RAW;
}

static bool is_summed(const struct atp_ps *ps, u32 seq)
{
	const struct atp_cell *cell = atp_ps_cell(ps, seq);

	return atp_ps_holds(cell, seq) && cell->state == ATP_CELL_SUMMED;
}

/* A sum more that the application may take, if it is of the same chunk. */
static void count_ready(struct atp_ps *ps, u32 seq)
{
	const struct atp_cell *cell = atp_ps_cell(ps, seq);

	if (ps->server.whole)
		return;
	ps->server.ready += cell->elements;
	ps->server.whole = cell->flags & ATP_F_LAST;
}

/* All ranks are in the cell's value: answer, or let the application do it. */
void atp_ps_summed(struct atp_ps *ps, u64 now, struct atp_cell *cell,
		   struct atp_ps_out *out)
{
	ps->progress = now;
	if (!ps->params.server) {
		atp_ps_complete(ps, cell, out);
		return;
	}
	unscale(ps, cell);
	cell->state = ATP_CELL_SUMMED;
	while (is_summed(ps, ps->server.summed)) {
		count_ready(ps, ps->server.summed++);
		out->events |= ATP_PS_EV_SUM;
	}
}

void atp_ps_server_join(struct atp_ps *ps, u64 now, struct atp_ps_out *out)
{
	memset(out, 0, sizeof(*out));
	ps->server.pending = true;
	atp_ps_forget_silent(ps, now, 0);
	atp_ps_begin_if_all_wait(ps, now, out);
}

void atp_ps_server_leave(struct atp_ps *ps, u64 now, struct atp_ps_out *out)
{
	memset(out, 0, sizeof(*out));
	ps->server.pending = false;
	ps->server.joined = false;
	if (ps->running)
		atp_ps_left(ps, now, out);
}

bool atp_ps_sum(const struct atp_ps *ps, u32 elements, struct atp_ps_sum *sum)
{
	const struct atp_ps_server *server = &ps->server;
	const struct atp_cell *cell;
	u32 seq = server->taken;

	memset(sum, 0, sizeof(*sum));
	sum->first = seq;
	while (server->joined && seq != server->summed && !sum->last) {
		cell = atp_ps_cell(ps, seq++);
		if (sum->frags && sum->elements + cell->elements > elements)
			break;
		sum->frags++;
		sum->elements += cell->elements;
		sum->dtype = cell->dtype;
		sum->last = cell->flags & ATP_F_LAST;
	}
	return sum->frags;
}

void atp_ps_sum_take(struct atp_ps *ps, const struct atp_ps_sum *sum)
{
	u32 seq = sum->first + sum->frags;

	ps->server.taken = seq;
	ps->server.ready -= sum->elements;
	if (!sum->last)
		return;
	ps->server.whole = false;
	while (seq != ps->server.summed && !ps->server.whole)
		count_ready(ps, seq++);
}

u32 atp_ps_sum_read(const struct atp_ps *ps, u32 seq, u32 *lanes)
{
	const struct atp_cell *cell = atp_ps_cell(ps, seq);

	memcpy(lanes, cell->value, cell->elements * sizeof(*lanes));
	return cell->elements;
}

u32 atp_ps_due(const struct atp_ps *ps, u32 end, u32 elements)
{
	u32 seq = ps->frontier;
	u32 lanes = 0;

	if (!ps->server.joined)
		return 0;
	while (atp_before(seq, end) && lanes < elements)
		lanes += atp_ps_cell(ps, seq++)->elements;
	return lanes == elements ? seq - ps->frontier : 0;
}

u32 atp_ps_answer(struct atp_ps *ps, u64 now, const u32 *lanes,
		  struct atp_ps_out *out)
{
	struct atp_cell *cell = atp_ps_cell(ps, ps->frontier);

	memset(out, 0, sizeof(*out));
	memcpy(cell->value, lanes, cell->elements * sizeof(*lanes));
	ps->progress = now;
	atp_ps_complete(ps, cell, out);
	return cell->elements;
}
