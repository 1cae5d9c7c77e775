/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the worker share and nobody else needs. */
#ifndef _ATP_ENGINE_WORKER_PRIV_H
#define _ATP_ENGINE_WORKER_PRIV_H

#include "worker.h"

static inline u32 atp_slot(const struct atp_worker *w, u32 seq)
{
	return seq & (w->params.window - 1);
}

static inline struct atp_frag *atp_frag(const struct atp_worker *w, u32 seq)
{
	return &w->frags[atp_slot(w, seq)];
}

/* The fragment between una and nxt that has a slot */
static inline u32 atp_slot_seq(const struct atp_worker *w, u32 slot)
{
	return w->una + atp_slot(w, slot - w->una);
}

/* First lane of a fragment in its chunk */
static inline u32 atp_frag_offset(const struct atp_worker *w,
				  const struct atp_chunk *chunk, u32 seq)
{
	return (seq - chunk->first) * atp_lanes(&w->params);
}

/* Lanes of a fragment; the last one of a chunk may be shorter */
static inline u32 atp_frag_lanes(const struct atp_worker *w,
				 const struct atp_chunk *chunk, u32 seq)
{
	return min(chunk->elements - atp_frag_offset(w, chunk, seq),
		   atp_lanes(&w->params));
}

/* The PS has mine for una and waits for somebody else. */
static inline bool atp_waits(const struct atp_worker *w)
{
	return w->waiting || w->server;
}

static inline void atp_waits_no_more(struct atp_worker *w)
{
	w->waiting = 0;
	w->server = false;
	w->told = false;
}

/* worker_loss.c */
void atp_flight_add(struct atp_worker *w, u32 seq);
void atp_flight_del(struct atp_worker *w, u32 seq);
void atp_mark_lost(struct atp_worker *w, u32 seq);
void atp_loss_detect(struct atp_worker *w, const struct atp_frag *f, u64 now);
void atp_loss_undo(struct atp_worker *w);
void atp_timer_restart(struct atp_worker *w, u64 now);
enum atp_drop atp_worker_status(struct atp_worker *w, u64 now,
				const struct atp_pkt *pkt);

#endif /* _ATP_ENGINE_WORKER_PRIV_H */
