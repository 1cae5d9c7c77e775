// SPDX-License-Identifier: GPL-2.0
/*
 * A worker's queue of chunks, what it sends and what a parameter packet does
 * (Documentation/protocol.rst, Worker; paper 3.6).  What is lost and when is
 * in worker_loss.c.
 */
#include "lanes.h"
#include "quantise.h"
#include "worker_priv.h"

void atp_worker_init(struct atp_worker *w, const struct atp_params *params,
		     u32 rank, u32 epoch, struct atp_frag *frags)
{
	u32 i, index = atp_index_hash(params->job, epoch, 0);

	memset(w, 0, sizeof(*w));
	w->params = *params;
	w->rank = rank;
	w->epoch = epoch;
	w->frags = frags;
	w->oldest = ATP_NO_SLOT;
	w->newest = ATP_NO_SLOT;
	/* so that no transmission is before those that were answered */
	w->txno = 1;
	atp_cong_init(&w->cong, params->fragment, params->window);
	atp_rtt_init(&w->rtt);

	/* in a row, so that slots of one job do not meet in the switch */
	memset(frags, 0, params->window * sizeof(*frags));
	for (i = 0; i < params->window; i++)
		frags[i].index = index + i;
}

bool atp_worker_push(struct atp_worker *w, struct atp_chunk *chunk)
{
	u32 lanes = atp_lanes(&w->params);
	u32 frags = (chunk->elements - 1) / lanes + 1;

	if ((u64)(w->end - w->una) + frags > S32_MAX)
		return false;

	chunk->next = NULL;
	chunk->first = w->end;
	chunk->frags = frags;
	chunk->done = 0;
	chunk->overflow = false;

	if (w->tail)
		w->tail->next = chunk;
	else
		w->head = chunk;
	w->tail = chunk;
	if (!w->unsent)
		w->unsent = chunk;
	w->end += frags;
	w->pending += chunk->elements;
	return true;
}

bool atp_worker_readable(const struct atp_worker *w)
{
	return w->head && w->head->done == w->head->frags;
}

struct atp_chunk *atp_worker_pop(struct atp_worker *w)
{
	struct atp_chunk *chunk = w->head;

	if (!atp_worker_readable(w))
		return NULL;
	w->head = chunk->next;
	if (!w->head)
		w->tail = NULL;
	chunk->next = NULL;
	return chunk;
}

void atp_worker_put_back(struct atp_worker *w, struct atp_chunk *chunk)
{
	struct atp_chunk **link = &w->head;

	while (*link && atp_before((*link)->first, chunk->first))
		link = &(*link)->next;
	chunk->next = *link;
	*link = chunk;
	if (!chunk->next)
		w->tail = chunk;
}

bool atp_worker_next(const struct atp_worker *w, u32 *seq)
{
	bool room = w->inflight < atp_cong_window(&w->cong);
	u32 s;

	if (w->lost && !room) {
		/* The oldest holds up the window: it waits for nothing. */
		*seq = w->una;
		return atp_frag(w, w->una)->state & ATP_FRAG_LOST;
	}
	if (w->lost) {
		for (s = w->rtx; s != w->nxt; s++) {
			if (!(atp_frag(w, s)->state & ATP_FRAG_LOST))
				continue;
			*seq = s;
			return true;
		}
	}
	*seq = w->nxt;
	return room && w->nxt != w->end && w->nxt - w->una < w->params.window;
}

bool atp_worker_gathers(const struct atp_worker *w, u32 most)
{
	u32 window = atp_cong_window(&w->cong);
	u32 want = min(most, window / ATP_GATHER_PART);

	/* what may be lost shows by answers to what is sent later */
	if (w->lost || w->inflight != w->nxt - w->una || w->inflight >= window)
		return false;
	return window - w->inflight < min(want, w->end - w->nxt);
}

static struct atp_chunk *chunk_of(const struct atp_worker *w, u32 seq)
{
	return seq == w->nxt ? w->unsent : atp_frag(w, seq)->chunk;
}

u32 atp_worker_len(const struct atp_worker *w, u32 seq)
{
	u32 lanes = atp_frag_lanes(w, chunk_of(w, seq), seq);

	return ATP_HDR_LEN + ATP_PAYLOAD_LEN(lanes);
}

static void set_raw(struct atp_worker *w, struct atp_frag *f)
{
	if (!(f->state & ATP_FRAG_RAW))
		w->stats.raw++;
	f->state |= ATP_FRAG_RAW;
}

/*
 * As they are, or as integers if @quantise is set.  Return: false if a lane
 * does not fit an integer; @wire is then undefined.
 */
static bool put_lanes(const struct atp_worker *w, const struct atp_chunk *chunk,
		      u32 offset, u32 n, u8 *wire, bool quantise)
{
	const u32 *data;
	bool fits;
	u32 some;

	for (; n; n -= some, offset += some, wire += 4 * some) {
		some = n;
		data = atp_chunk_lanes(chunk, offset, &some);
		if (!quantise) {
			atp_lanes_put(wire, data, some);
			continue;
		}
		/* pages are a user's, who may spoil his sum */
		fits = data_race(atp_quantise_lanes(wire, data, some,
						    w->params.scale));
		if (!fits)
			return false;
	}
	return true;
}

static void write_lanes(struct atp_worker *w, const struct atp_chunk *chunk,
			u32 seq, u8 *wire)
{
	u32 offset = atp_frag_offset(w, chunk, seq);
	u32 n = atp_frag_lanes(w, chunk, seq);
	struct atp_frag *f = atp_frag(w, seq);

	if (n & 1)
		put_unaligned_le32(0, wire + 4 * n);

	if (chunk->dtype == ATP_FLOAT32 && !(f->state & ATP_FRAG_RAW)) {
		if (put_lanes(w, chunk, offset, n, wire, true))
			return;
		/* A lane that no switch can add: as pushed (paper 3.8) */
		set_raw(w, f);
	}
	put_lanes(w, chunk, offset, n, wire, false);
}

/* The next new fragment takes the slot that its predecessor a window earlier
 * has left, and its index.
 */
static void send_new(struct atp_worker *w)
{
	struct atp_frag *f = atp_frag(w, w->nxt);

	f->chunk = w->unsent;
	f->state = ATP_FRAG_SENT;
	w->stats.sent++;
	w->nxt++;
	if (w->nxt == w->unsent->first + w->unsent->frags)
		w->unsent = w->unsent->next;
}

static void send_again(struct atp_worker *w, u32 seq, u64 now)
{
	struct atp_frag *f = atp_frag(w, seq);

	f->state &= ~ATP_FRAG_LOST;
	f->state |= ATP_FRAG_RESENT;
	w->stats.resent++;
	w->lost--;
	if (seq == w->una && !w->tries++)
		w->trying = now;
	/* atp_worker_next() names the first */
	w->rtx = seq + 1;
}

u32 atp_worker_build(struct atp_worker *w, u32 seq, u64 now, void *buf)
{
	const struct atp_chunk *chunk = chunk_of(w, seq);
	struct atp_frag *f = atp_frag(w, seq);
	struct atp_pkt pkt = {
		.type = ATP_TYPE_DATA,
		.dtype = chunk->dtype,
		.fanin0 = w->params.workers,
		.elements = atp_frag_lanes(w, chunk, seq),
		.cap = ATP_NO_CAP,
		.job = w->params.job,
		.epoch = w->epoch,
		.seq = seq,
		.bitmap0 = 1U << w->rank,
		.index = f->index,
	};
	u32 len;

	if (seq == w->nxt)
		send_new(w);
	else
		send_again(w, seq, now);
	f->sent = now;
	atp_flight_add(w, seq);
	/* the timer is una's */
	if (seq == w->una || !w->timer)
		atp_timer_restart(w, now);

	len = ATP_HDR_LEN + ATP_PAYLOAD_LEN(pkt.elements);
	write_lanes(w, chunk, seq, (u8 *)buf + ATP_HDR_LEN);
	if (f->state & ATP_FRAG_RESENT)
		pkt.flags |= ATP_F_RESEND;
	if (f->state & ATP_FRAG_RAW)
		pkt.flags |= ATP_F_RAW;
	if (seq == chunk->first + chunk->frags - 1)
		pkt.flags |= ATP_F_LAST;
	atp_pkt_write_hdr(buf, &pkt);
	return len;
}

/* The PS asks for the values as they were pushed (paper 3.8). */
static enum atp_drop rx_raw_request(struct atp_worker *w, u64 now, u32 seq)
{
	struct atp_frag *f = atp_frag(w, seq);

	if (seq == w->una)
		w->tries = 0;
	/* Asked for again while they are on their way */
	if ((f->state & ATP_FRAG_RAW) &&
	    (f->state & ATP_FRAG_LOST || now - f->sent < w->rtt.rto))
		return ATP_DROP_DUPLICATE;

	set_raw(w, f);
	if (!(f->state & ATP_FRAG_LOST))
		atp_mark_lost(w, seq);
	return ATP_OK;
}

static void read_lanes(const struct atp_worker *w, struct atp_chunk *chunk,
		       const struct atp_pkt *pkt)
{
	bool quantised = chunk->dtype == ATP_FLOAT32 &&
			 !(pkt->flags & ATP_F_RAW);
	u32 offset = atp_frag_offset(w, chunk, pkt->seq);
	const u8 *wire = pkt->payload;
	u32 n = pkt->elements;
	u32 *data;
	u32 some;

	for (; n; n -= some, offset += some, wire += 4 * some) {
		some = n;
		data = atp_chunk_lanes(chunk, offset, &some);
		if (!quantised) {
			atp_lanes_get(data, wire, some);
			continue;
		}
		/* here, too */
		(void)data_race((atp_dequantise_lanes(data, wire, some,
						      w->params.scale), 0));
	}
}

static void advance(struct atp_worker *w, u64 now)
{
	u32 una = w->una;

	while (w->una != w->nxt && atp_frag(w, w->una)->state & ATP_FRAG_ACKED)
		w->una++;
	if (w->una == una)
		return;

	if (atp_waits(w))
		w->fresh = now;
	atp_waits_no_more(w);
	w->asked = false;
	if (w->lost && atp_before(w->rtx, w->una))
		w->rtx = w->una;
	if (w->loss && !atp_before(w->una, w->loss_end))
		w->loss = false;
	atp_timer_restart(w, now);
}

/* Every mark counts, whatever its packet is good for otherwise; but for a
 * duplicate's, whose first copy came by the same way.
 */
static void rx_congestion(struct atp_worker *w, const struct atp_pkt *pkt)
{
	atp_cong_cap(&w->cong, pkt->cap);
	if (pkt->ce || pkt->flags & ATP_F_ECN) {
		w->stats.ecn++;
		atp_cong_reduce(&w->cong, pkt->seq, w->nxt);
	} else if (pkt->elements) {
		atp_cong_ack(&w->cong);
	}
}

static void rx_result(struct atp_worker *w, u64 now, const struct atp_pkt *pkt)
{
	struct atp_frag *f = atp_frag(w, pkt->seq);
	struct atp_chunk *chunk = f->chunk;

	w->tries = 0;
	read_lanes(w, chunk, pkt);
	if (pkt->flags & ATP_F_OVERFLOW)
		chunk->overflow = true;
	chunk->done++;
	if (chunk->done == chunk->frags) {
		w->pending -= chunk->elements;
		w->stats.chunks++;
	}

	/* Its owner is the only one that may give the slot a new index, and
	 * only once: all workers must use the same one (paper 3.6).
	 */
	if (pkt->flags & ATP_F_COLLISION)
		f->index = pkt->bitmap0;

	/* Answered though it was not sent again since the timeout: that was
	 * early (RFC 5682 in spirit).
	 */
	if (w->loss && f->state & ATP_FRAG_LOST)
		atp_loss_undo(w);
	rx_congestion(w, pkt);

	if (!(f->state & (ATP_FRAG_RESENT | ATP_FRAG_RAW)) &&
	    !atp_waits(w) && f->sent >= w->fresh)
		atp_rtt_sample(&w->rtt, now - f->sent);

	if (f->state & ATP_FRAG_LOST)
		w->lost--;
	else
		atp_flight_del(w, pkt->seq);
	f->state &= ~ATP_FRAG_LOST;
	f->state |= ATP_FRAG_ACKED;

	w->rtt.backoff = 0;
	w->timer = min(w->timer, now + atp_worker_rto(w, now));
	advance(w, now);
	atp_loss_detect(w, f, now);
}

/* It was answered before, so it was sent more often than was necessary.  If
 * round trips have become longer than the timeout, everything is, and there is
 * no other sample to learn it from: the path needs at least as long as this
 * answer took from the last transmission.
 */
static enum atp_drop rx_duplicate(struct atp_worker *w, u64 now, u32 seq)
{
	const struct atp_frag *f = atp_frag(w, seq);

	w->stats.duplicates++;
	/* the slot is still its own */
	if (w->nxt - seq <= w->params.window && f->state & ATP_FRAG_RESENT &&
	    now - f->sent > w->rtt.rto)
		atp_rtt_sample(&w->rtt, now - f->sent);
	return ATP_DROP_DUPLICATE;
}

static enum atp_drop rx_parameters(struct atp_worker *w, u64 now,
				   const struct atp_pkt *pkt)
{
	const struct atp_frag *f = atp_frag(w, pkt->seq);
	const struct atp_chunk *chunk;

	if (!(pkt->flags & ATP_F_ACK))
		return ATP_DROP_FLAGS;
	if (pkt->fanin0 != w->params.workers)
		return ATP_DROP_FANIN;
	if (pkt->seq - w->una >= w->nxt - w->una) {
		if (!atp_before(pkt->seq, w->una))
			return ATP_DROP_UNSENT;
		return rx_duplicate(w, now, pkt->seq);
	}
	if (f->state & ATP_FRAG_ACKED)
		return rx_duplicate(w, now, pkt->seq);

	chunk = f->chunk;
	if (pkt->dtype != chunk->dtype)
		return ATP_DROP_DTYPE;
	if (!pkt->elements) {
		if (!(pkt->flags & ATP_F_OVERFLOW))
			return ATP_DROP_ELEMENTS;
		rx_congestion(w, pkt);
		return rx_raw_request(w, now, pkt->seq);
	}
	if (pkt->elements != atp_frag_lanes(w, chunk, pkt->seq))
		return ATP_DROP_ELEMENTS;
	if (pkt->flags & ATP_F_OVERFLOW && pkt->dtype != ATP_INT32)
		return ATP_DROP_FLAGS;
	rx_result(w, now, pkt);
	return ATP_OK;
}

enum atp_drop atp_worker_rx(struct atp_worker *w, u64 now,
			    const struct atp_pkt *pkt)
{
	if (pkt->job != w->params.job)
		return ATP_DROP_JOB;
	if (pkt->epoch != w->epoch)
		return ATP_DROP_EPOCH;
	w->heard = now;
	switch (pkt->type) {
	case ATP_TYPE_DATA:
		return rx_parameters(w, now, pkt);
	case ATP_TYPE_STATUS:
		return atp_worker_status(w, now, pkt);
	default:
		return ATP_DROP_TYPE;
	}
}
