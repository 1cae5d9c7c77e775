/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the PS share. */
#ifndef _ATP_ENGINE_PS_INTERNAL_H
#define _ATP_ENGINE_PS_INTERNAL_H

#include "ps.h"

/* The cell of a fragment; it may hold an older one or nothing. */
static inline struct atp_cell *atp_ps_cell(const struct atp_ps *ps, u32 seq)
{
	return &ps->cells[seq & (2 * ps->params.window - 1)];
}

static inline bool atp_ps_holds(const struct atp_cell *cell, u32 seq)
{
	return cell->state != ATP_CELL_EMPTY && cell->seq == seq;
}

/* ps.c */
void atp_ps_ask(struct atp_ps_out *out, const struct atp_ps *ps, u8 type,
		u32 ranks, u32 seq);
void atp_ps_ask_all(struct atp_ps_out *out, const struct atp_ps *ps, u32 seq);
void atp_ps_complete(struct atp_ps *ps, struct atp_cell *cell,
		     struct atp_ps_out *out);

/* ps_member.c: who takes part, and how a run ends */
u32 atp_ps_joined(const struct atp_ps *ps);
bool atp_ps_silent(const struct atp_ps *ps, u32 rank, u64 now);
void atp_ps_take_timeout(struct atp_ps *ps);
void atp_ps_ask_abort(struct atp_ps_out *out, const struct atp_ps *ps,
		      u32 ranks, u32 reason, u32 blame);
void atp_ps_end(struct atp_ps *ps, u64 now, u32 reason, u32 blame,
		struct atp_ps_out *out);
void atp_ps_left(struct atp_ps *ps, u64 now, struct atp_ps_out *out);
bool atp_ps_needs_left(struct atp_ps *ps, const struct atp_cell *cell, u64 now,
		       struct atp_ps_out *out);
enum atp_drop atp_ps_other_run(const struct atp_ps *ps,
			       const struct atp_pkt *pkt, u32 from,
			       struct atp_ps_out *out);
enum atp_drop atp_ps_rx_ctl(struct atp_ps *ps, u64 now,
			    const struct atp_pkt *pkt, u32 sender,
			    struct atp_ps_out *out);
u32 atp_ps_build_ctl(const struct atp_ps *ps, const struct atp_ps_out *out,
		     u32 rank, void *buf);

/* ps_join.c: joining, leaving, and how a run begins */
void atp_ps_begin_if_all_wait(struct atp_ps *ps, u64 now,
			      struct atp_ps_out *out);
void atp_ps_forget_silent(struct atp_ps *ps, u64 now, u32 here);
enum atp_drop atp_ps_rx_join(struct atp_ps *ps, u64 now, u32 rank,
			     const struct atp_pkt *pkt,
			     const struct atp_ctl_host *ctl,
			     struct atp_ps_out *out);
enum atp_drop atp_ps_rx_leave(struct atp_ps *ps, u64 now, u32 rank,
			      const struct atp_ctl_host *ctl,
			      struct atp_ps_out *out);

/* ps_server.c: the application that makes the results */
void atp_ps_summed(struct atp_ps *ps, u64 now, struct atp_cell *cell,
		   struct atp_ps_out *out);
void atp_ps_server_begin(struct atp_ps *ps);

/* ps_dispute.c: ranks that push different chunks */
enum atp_drop atp_ps_dispute(struct atp_ps *ps, u64 now,
			     const struct atp_cell *cell,
			     const struct atp_pkt *pkt,
			     struct atp_ps_out *out);
bool atp_ps_dispute_vote(struct atp_ps *ps, u64 now,
			 const struct atp_cell *cell, u32 ranks,
			 struct atp_ps_out *out);
void atp_ps_dispute_forget(struct atp_ps *ps, u32 seq);
u64 atp_ps_dispute_deadline(const struct atp_ps *ps);
void atp_ps_dispute_timeout(struct atp_ps *ps, u64 now, struct atp_ps_out *out);

/* ps_wait.c: ranks that others wait for */
u64 atp_ps_wait_deadline(const struct atp_ps *ps);
void atp_ps_wait_timeout(struct atp_ps *ps, u64 now, struct atp_ps_out *out);

/* ps_raw.c: the overflow path */
bool atp_ps_raw_start(struct atp_ps *ps, struct atp_cell *cell,
		      struct atp_ps_out *out);
enum atp_drop atp_ps_raw_rx(struct atp_ps *ps, struct atp_cell *cell,
			    const struct atp_pkt *pkt, u32 from, u64 now,
			    struct atp_ps_out *out);

#endif /* _ATP_ENGINE_PS_INTERNAL_H */
