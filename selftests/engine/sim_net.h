/* SPDX-License-Identifier: GPL-2.0 */
/* Chance, the order of events, and packets on their way */
#ifndef _ATP_SELFTESTS_SIM_NET_H
#define _ATP_SELFTESTS_SIM_NET_H

#include "sim_types.h"

/* Random numbers: a counter, multiplied and folded */
static u64 sim_mix(u64 z)
{
	z = (z ^ (z >> 31)) * 0x9fb21c651e98df25ULL;
	z = (z ^ (z >> 28)) * 0xd6e8feb86659fd93ULL;
	return z ^ (z >> 32);
}

static u64 sim_rand(struct sim *s)
{
	s->rng += 0x9e3779b97f4a7c15ULL;
	return sim_mix(s->rng);
}

static bool sim_chance(struct sim *s, u32 ppm)
{
	return ppm && sim_rand(s) % 1000000 < ppm;
}

/* The event queue: a binary heap by time, then by order */
static bool sim_earlier(const struct sim_event *a, const struct sim_event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void sim_post(struct sim *s, struct sim_event ev)
{
	u32 i = s->heap_len++;

	if (s->heap_len > s->heap_size) {
		s->heap_size = max_t(u32, 256, 2 * s->heap_size);
		s->heap = realloc(s->heap, s->heap_size * sizeof(*s->heap));
	}
	ev.order = s->order++;
	for (; i && sim_earlier(&ev, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = ev;
}

static struct sim_event sim_take(struct sim *s)
{
	struct sim_event first = s->heap[0];
	struct sim_event last = s->heap[--s->heap_len];
	u32 i = 0, c;

	for (;;) {
		c = 2 * i + 1;
		if (c >= s->heap_len)
			break;
		if (c + 1 < s->heap_len &&
		    sim_earlier(&s->heap[c + 1], &s->heap[c]))
			c++;
		if (!sim_earlier(&s->heap[c], &last))
			break;
		s->heap[i] = s->heap[c];
		i = c;
	}
	s->heap[i] = last;
	return first;
}

/* What passes PING, but no data */
static bool sim_in_hole(const struct sim *s, enum sim_kind to, u32 rank,
			const u8 *packet, u32 len)
{
	u32 ranks = to == SIM_AT_SWITCH_UP ? s->cfg.hole_up :
		    to == SIM_AT_WORKER ? s->cfg.hole_down : 0;

	return ranks & (1U << rank) && s->now >= s->cfg.hole_from &&
	       packet[1] == ATP_TYPE_DATA && len > s->cfg.hole_fits;
}

/* A packet takes one leg to where .kind says.  A shared leg serves one packet
 * after the other.
 */
static void sim_leg(struct sim *s, enum sim_kind kind, u32 rank,
		    const void *packet, u32 len, bool ce, u64 *busy)
{
	u64 at = s->now, waiting;
	u32 copies = 1;

	s->packets++;
	if (sim_chance(s, s->cfg.loss) ||
	    sim_in_hole(s, kind, rank, packet, len))
		return;
	if (sim_chance(s, s->cfg.mark))
		ce = true;
	if (busy && s->cfg.serve) {
		at = max(at, *busy);
		waiting = (at - s->now) / s->cfg.serve;
		if (waiting > s->cfg.queue)
			return;
		if (waiting > s->cfg.knee)
			ce = true;
		at += s->cfg.serve;
		*busy = at;
	}
	copies += sim_chance(s, s->cfg.dup);
	while (copies--) {
		struct sim_event ev = {
			.time = at + s->cfg.delay +
				sim_rand(s) % (s->cfg.jitter + 1),
			.kind = kind,
			.rank = rank,
			.len = len,
			.ce = ce,
			.mem = malloc(len + 1),
		};

		memcpy(ev.mem + 1, packet, len);
		sim_post(s, ev);
	}
}

#endif /* _ATP_SELFTESTS_SIM_NET_H */
