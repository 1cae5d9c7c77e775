/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A network in virtual time: the engine's workers and PS, a switch, and legs
 * that lose, copy, delay and mark packets.
 *
 *	worker 0 --up--> +--------+ --up--> +----+
 *	worker 1 --up--> | switch |         | PS |
 *	   ...   <-down- +--------+ <-down- +----+
 *
 * Everything random about the network comes from one seed, everything random
 * about the data from another.  Each chunk that a worker pops is compared with
 * the oracle.
 */
#ifndef _ATP_SELFTESTS_SIM_H
#define _ATP_SELFTESTS_SIM_H

#include "chunk.h"
#include "sim_data.h"
#include "sim_net.h"

static void sim_send_ps(struct sim *s, const struct atp_ps_out *out)
{
	u8 *buf = malloc(ATP_HDR_LEN + max_t(u32, s->cfg.fragment,
					     ATP_CTL_LEN));
	u32 rank, len;

	if (out->type && out->mcast) {
		len = atp_ps_build(&s->ps, out, out->mcast_rank, true, buf);
		sim_leg(s, SIM_AT_SWITCH_DOWN, out->mcast_rank, buf, len, false,
			&s->down_busy);
	}
	for (rank = 0; out->type && rank < s->cfg.workers; rank++) {
		if (!(out->ranks & (1U << rank)))
			continue;
		len = atp_ps_build(&s->ps, out, rank, false, buf);
		sim_leg(s, SIM_AT_SWITCH_DOWN, rank, buf, len, false,
			&s->down_busy);
	}
	free(buf);

	if (out->events & ATP_PS_EV_RUN) {
		s->ps.frontier = s->cfg.start;
		s->ps.server.summed = s->cfg.start;
		s->ps.server.taken = s->cfg.start;
		s->n_owed = 0;
	}
	if (out->events & ATP_PS_EV_SUM && !s->thinking) {
		s->thinking = true;
		sim_post(s, (struct sim_event){ .kind = SIM_SERVER,
			 .time = s->now + sim_rand(s) % (s->cfg.think + 1) });
	}
}

/* The application takes what there is, piece by piece. */
static void sim_server_take(struct sim *s)
{
	struct atp_ps_sum sum, all;
	u32 i, at, seq;
	u32 *lanes;

	while (atp_ps_sum(&s->ps, sim_rand(s) % 300, &sum)) {
		s->owed = realloc(s->owed, (s->n_owed + sum.elements) *
				  sizeof(*lanes));
		lanes = s->owed + s->n_owed;
		for (at = 0, seq = sum.first; at < sum.elements; seq++)
			at += atp_ps_sum_read(&s->ps, seq, lanes + at);
		ASSERT_EQ(at, sum.elements);
		ASSERT_EQ(seq, sum.first + sum.frags);
		ASSERT_TRUE(atp_ps_sum(&s->ps, U32_MAX, &all));
		ASSERT_EQ(s->ps.server.ready, all.elements);
		atp_ps_sum_take(&s->ps, &sum);
		s->n_owed += sum.elements;
		ASSERT_EQ(atp_ps_due(&s->ps, seq, s->n_owed),
			  seq - s->ps.frontier);
		for (i = 0; i < sum.elements; i++)
			lanes[i] = sim_serve(s, lanes[i]);
	}
}

/* Then it answers, but now and then not all of it at once. */
static void sim_server(struct sim *s)
{
	struct atp_ps_out out;
	u32 n;

	s->thinking = false;
	if (!s->ps.server.joined)
		return;
	sim_server_take(s);
	while (s->n_owed && sim_rand(s) % 32) {
		n = atp_ps_answer(&s->ps, s->now, s->owed, &out);
		ASSERT_LE(n, s->n_owed);
		s->n_owed -= n;
		memmove(s->owed, s->owed + n, s->n_owed * sizeof(*s->owed));
		sim_send_ps(s, &out);
	}
	ASSERT_EQ(!s->n_owed, s->ps.frontier == s->ps.server.taken);
	if (!s->n_owed)
		return;
	s->thinking = true;
	sim_post(s, (struct sim_event){ .kind = SIM_SERVER,
		 .time = s->now + sim_rand(s) % (4 * s->cfg.delay + 1) });
}

static void sim_arm_ps(struct sim *s)
{
	u64 at = max(atp_ps_deadline(&s->ps), s->now);

	if (at == U64_MAX || (s->ps_armed && s->ps_armed <= at))
		return;
	s->ps_armed = at;
	sim_post(s, (struct sim_event){ .time = at, .kind = SIM_PS_TIMER });
}

static void sim_push(struct sim *s, u32 rank)
{
	struct sim_worker *w = &s->w[rank];
	const struct sim_expect *e = &s->expect[w->pushed];
	struct atp_chunk *chunk;
	u32 i;

	/* each rank as it likes: nobody can tell by the sums */
	if ((w->pushed + rank) % 2)
		chunk = chunk_in_pages(e->elements,
				       (w->pushed * 7 + rank) % ATP_PAGE_LANES);
	else
		chunk = chunk_in_one(e->elements);
	chunk->dtype = e->dtype;
	for (i = 0; i < e->elements; i++)
		*chunk_lane(chunk, i) = sim_value(s, s->run, w->pushed, i, rank,
						  e->dtype);
	ASSERT_TRUE(atp_worker_push(&w->worker, chunk));
	w->pushed++;
}

/* Compare with the oracle, bit for bit. */
static void sim_pop(struct sim *s, u32 rank)
{
	struct sim_worker *w = &s->w[rank];
	const struct sim_expect *e = &s->expect[w->popped];
	struct atp_chunk *chunk = atp_worker_pop(&w->worker);
	u32 i, lane;

	ASSERT_EQ(chunk->elements, e->elements);
	ASSERT_EQ(chunk->overflow, e->overflow);
	for (i = 0; i < e->elements; i++) {
		lane = *chunk_lane(chunk, i);
		if (lane != e->lanes[i])
			printf("# run %u chunk %u lane %u rank %u type %u\n",
			       s->run, w->popped, i, rank, e->dtype);
		ASSERT_EQ(lane, e->lanes[i]);
		/* in no order */
		s->digest += sim_mix(sim_data(s, s->run, w->popped, i, rank) ^
				     lane);
	}
	w->overflows += chunk->overflow;
	chunk_free(chunk);
	w->popped++;
}

/* The expectations of the run that this rank is in */
static void sim_enter(struct sim *s, u32 rank)
{
	u32 epoch = s->w[rank].session.epoch;

	if (!s->cfg.by_epoch || s->run == epoch)
		return;
	s->run = epoch;
	sim_expect(s);
}

static bool sim_is_slow(const struct sim *s, u32 rank)
{
	return s->cfg.slow & (1U << rank);
}

static void sim_app(struct sim *s, u32 rank)
{
	bool few = s->cfg.few & (1U << rank);
	u32 chunks = few ? s->cfg.most : s->cfg.chunks;
	struct sim_worker *w = &s->w[rank];

	while (atp_worker_readable(&w->worker))
		sim_pop(s, rank);
	while (w->pushed < chunks &&
	       w->pushed - w->popped < s->cfg.ahead) {
		if (sim_is_slow(s, rank)) {
			if (s->now < w->ready)
				return;
			w->ready = s->now + s->cfg.wait;
			sim_post(s, (struct sim_event){ .time = w->ready,
				 .kind = SIM_APP, .rank = rank });
		}
		sim_push(s, rank);
	}
}

static bool sim_is_dead(const struct sim *s, u32 rank)
{
	return s->cfg.dead & (1U << rank) && s->now >= s->cfg.dies;
}

static void sim_session_out(struct sim *s, u32 rank, u8 type)
{
	u8 buf[ATP_HDR_LEN + ATP_CTL_LEN];
	u32 len = atp_session_build(&s->w[rank].session, type, buf);

	sim_leg(s, SIM_AT_SWITCH_UP, rank, buf, len, false, NULL);
}

static bool sim_may_fail(const struct sim *s)
{
	return s->cfg.dead || s->cfg.dead_ps || s->cfg.few || s->cfg.hole_up ||
	       s->cfg.hole_down;
}

/* As the kernel: the others are told */
static void sim_give_up(struct sim *s, u32 rank)
{
	struct sim_worker *w = &s->w[rank];

	ASSERT_TRUE(sim_may_fail(s));
	sim_session_out(s, rank, ATP_TYPE_LEAVE);
	w->session.state = ATP_SESSION_FAILED;
	w->session.reason = ATP_REASON_UNANSWERED;
	w->session.ranks = 1U << rank;
	w->failed = s->now;
}

/* What the kernel does after each event: applications, packets, the timer */
static void sim_worker_go(struct sim *s, u32 rank)
{
	struct sim_worker *w = &s->w[rank];
	u64 burst = 0, at;
	bool gathers;
	u32 seq, len;
	u8 *buf, type;

	if (sim_is_dead(s, rank) || w->failed)
		return;
	while ((type = atp_session_tick(&w->session, s->now)))
		sim_session_out(s, rank, type);
	if (w->session.state == ATP_SESSION_FAILED) {
		ASSERT_TRUE(sim_may_fail(s));
		w->failed = s->now;
		return;
	}

	if (w->running) {
		atp_worker_timeout(&w->worker, s->now);
		if (atp_worker_unanswered(&w->worker, s->now)) {
			sim_give_up(s, rank);
			return;
		}
		sim_enter(s, rank);
		sim_app(s, rank);
		gathers = atp_worker_gathers(&w->worker, SIM_BURST);
		while (!gathers && atp_worker_next(&w->worker, &seq)) {
			len = atp_worker_len(&w->worker, seq);
			buf = malloc(len + 1);
			ASSERT_EQ(atp_worker_build(&w->worker, seq, s->now,
						   buf + 1), len);
			sim_leg(s, SIM_AT_SWITCH_UP, rank, buf + 1, len, false,
				s->cfg.links ? &w->up_busy : NULL);
			free(buf);
			ASSERT_LE(++burst, s->cfg.window);
		}
		ASSERT_LE(w->worker.nxt - w->worker.una, s->cfg.window);
	}

	at = atp_session_deadline(&w->session);
	if (w->running)
		at = min(at, atp_worker_deadline(&w->worker));
	at = max(at, s->now);
	if (at == U64_MAX || (w->armed && w->armed <= at))
		return;
	w->armed = at;
	sim_post(s, (struct sim_event){ .time = at, .kind = SIM_WORKER_TIMER,
		 .rank = rank });
}

static void sim_worker_start(struct sim *s, u32 rank)
{
	struct sim_worker *w = &s->w[rank];
	u32 start = s->cfg.start;

	atp_worker_init(&w->worker, &s->params, rank, w->session.epoch,
			w->frags);
	w->worker.una = start;
	w->worker.nxt = start;
	w->worker.end = start;
	w->running = true;
}

static void sim_at_worker(struct sim *s, const struct sim_event *ev)
{
	struct sim_worker *w = &s->w[ev->rank];
	struct atp_pkt pkt;

	if (sim_is_dead(s, ev->rank))
		return;
	ASSERT_EQ(atp_pkt_parse(&pkt, ev->mem + 1, ev->len), ATP_OK);
	pkt.ce = ev->ce;
	atp_session_rx(&w->session, s->now, &pkt);
	if (!w->running && w->session.state == ATP_SESSION_JOINED)
		sim_worker_start(s, ev->rank);
	if (w->running)
		atp_worker_rx(&w->worker, s->now, &pkt);
	sim_worker_go(s, ev->rank);
}

static bool sim_switch_there(const struct sim *s)
{
	return s->cfg.aggregators &&
	       (s->now < s->cfg.absent || s->now >= s->cfg.present);
}

/* When the leg from the switch is free again, if that matters */
static u64 *sim_busy(struct sim *s, bool up, u32 rank)
{
	if (up)
		return &s->up_busy;
	return s->cfg.links ? &s->w[rank].down_busy : NULL;
}

static void sim_at_switch(struct sim *s, const struct sim_event *ev)
{
	bool up = ev->kind == SIM_AT_SWITCH_UP;
	bool behind = s->cfg.behind & (1U << ev->rank);
	enum sim_kind to = up ? SIM_AT_PS : SIM_AT_WORKER;
	struct sim_frame f;
	u32 rank, first, last;

	memcpy(f.buf, ev->mem + 1, ev->len);
	f.len = ev->len;
	ASSERT_EQ(atp_pkt_parse(&f.pkt, f.buf, f.len), ATP_OK);
	f.pkt.ce = ev->ce;
	if (f.pkt.type == ATP_TYPE_WELCOME && !up && behind &&
	    sim_switch_there(s))
		sim_switch_begin(&s->sw, f.pkt.epoch);
	if (f.pkt.type != ATP_TYPE_DATA || !behind || !sim_switch_there(s)) {
		sim_leg(s, to, ev->rank, f.buf, f.len, ev->ce,
			sim_busy(s, up, ev->rank));
		return;
	}

	first = ev->rank;
	last = ev->rank;
	if (up) {
		if (sim_chance(s, s->cfg.foreign))
			sim_switch_occupy(&s->sw, f.pkt.index, s->now);
		if (!sim_switch_gradient(&s->sw, &f, s->now,
					 sim_chance(s, s->cfg.locked)))
			return;
	} else {
		sim_switch_parameter(&s->sw, &f, s->now);
		if (f.pkt.flags & ATP_F_MCAST) {
			f.pkt.flags &= ~ATP_F_MCAST;
			first = 0;
			last = s->cfg.workers - 1;
		}
	}
	atp_pkt_write_hdr(f.buf, &f.pkt);
	for (rank = first; rank <= last; rank++)
		sim_leg(s, to, rank, f.buf, f.len, ev->ce,
			sim_busy(s, up, rank));
}

static void sim_at_ps(struct sim *s, const struct sim_event *ev)
{
	struct atp_ps_out out;
	struct atp_pkt pkt;

	ASSERT_EQ(atp_pkt_parse(&pkt, ev->mem + 1, ev->len), ATP_OK);
	pkt.ce = ev->ce;
	atp_ps_rx(&s->ps, s->now, &pkt, 1U << ev->rank, &out);
	sim_send_ps(s, &out);
}

static void sim_add_stats(struct sim *s)
{
	u64 *to = (u64 *)&s->sum;
	const u64 *from;
	u32 i, r;

	for (r = 0; r < s->cfg.workers; r++) {
		from = (const u64 *)&s->w[r].worker.stats;
		for (i = 0; i < sizeof(s->sum) / sizeof(*to); i++)
			to[i] += from[i];
	}
}

static bool sim_all_done(const struct sim *s)
{
	u32 r;

	for (r = 0; r < s->cfg.workers; r++)
		if (s->w[r].popped < s->cfg.chunks && !s->w[r].failed &&
		    !sim_is_dead(s, r))
			return false;
	return true;
}

/* Everybody joins, in a random order that the legs make. */
static void sim_begin(struct sim *s)
{
	struct atp_ps_out out;
	u32 r;

	sim_expect(s);
	for (r = 0; r < s->cfg.workers; r++) {
		struct sim_worker *w = &s->w[r];

		if (w->running)
			sim_session_out(s, r, ATP_TYPE_LEAVE);
		w->running = false;
		w->pushed = 0;
		w->popped = 0;
		w->ready = 0;
		atp_session_join(&w->session, s->now, sim_rand(s));
		sim_worker_go(s, r);
	}
	if (s->cfg.server) {
		atp_ps_server_join(&s->ps, s->now, &out);
		sim_send_ps(s, &out);
	}
}

/* Nothing happens any more there. */
static bool sim_is_at_dead_ps(const struct sim *s, enum sim_kind kind)
{
	return s->cfg.dead_ps && s->now >= s->cfg.dies &&
	       (kind == SIM_AT_PS || kind == SIM_SERVER ||
		kind == SIM_PS_TIMER);
}

static void sim_event(struct sim *s, const struct sim_event *ev)
{
	struct atp_ps_out out;

	if (sim_is_at_dead_ps(s, ev->kind))
		return;
	switch (ev->kind) {
	case SIM_AT_SWITCH_UP:
	case SIM_AT_SWITCH_DOWN:
		sim_at_switch(s, ev);
		break;
	case SIM_AT_PS:
		sim_at_ps(s, ev);
		sim_arm_ps(s);
		break;
	case SIM_AT_WORKER:
		sim_at_worker(s, ev);
		break;
	case SIM_WORKER_TIMER:
		s->w[ev->rank].armed = 0;
		sim_worker_go(s, ev->rank);
		break;
	case SIM_APP:
		sim_worker_go(s, ev->rank);
		break;
	case SIM_SERVER:
		sim_server(s);
		sim_arm_ps(s);
		break;
	case SIM_PS_TIMER:
		s->ps_armed = 0;
		atp_ps_timeout(&s->ps, s->now, &out);
		sim_send_ps(s, &out);
		sim_arm_ps(s);
		break;
	case SIM_FORGET:
		sim_switch_forget(&s->sw);
		sim_post(s, (struct sim_event){
			 .time = s->now + s->cfg.forget,
			 .kind = SIM_FORGET });
		break;
	}
}

static void sim_init(struct sim *s, const struct sim_cfg *cfg)
{
	u32 r;

	memset(s, 0, sizeof(*s));
	s->cfg = *cfg;
	s->rng = cfg->net_seed;
	s->now = SEC;
	s->params = (struct atp_params){
		.job = SIM_JOB,
		.workers = cfg->workers,
		.fragment = cfg->fragment,
		.window = cfg->window,
		.scale = cfg->scale,
		.timeout = cfg->timeout,
		.patience = cfg->patience,
		.server = cfg->server,
	};
	s->expect = calloc(cfg->chunks, sizeof(*s->expect));
	s->ps_mem = calloc(1, atp_ps_mem(&s->params));
	atp_ps_init(&s->ps, &s->params, cfg->epoch, s->ps_mem);
	if (cfg->aggregators)
		sim_switch_init(&s->sw, cfg->aggregators,
				atp_all_ranks(&s->params) & cfg->behind,
				cfg->fragment, cfg->agg_timeout, cfg->cap);
	for (r = 0; r < cfg->workers; r++) {
		s->w[r].frags = malloc(cfg->window * sizeof(struct atp_frag));
		atp_session_init(&s->w[r].session, &s->params, r);
	}
	if (cfg->forget)
		sim_post(s, (struct sim_event){ .time = s->now + cfg->forget,
			 .kind = SIM_FORGET });
}

static void sim_free(struct sim *s)
{
	u32 i;

	while (s->heap_len)
		free(sim_take(s).mem);
	free(s->heap);
	for (i = 0; i < s->cfg.chunks; i++)
		free(s->expect[i].lanes);
	free(s->expect);
	for (i = 0; i < s->cfg.workers; i++) {
		while (s->w[i].worker.head) {
			struct atp_chunk *chunk = s->w[i].worker.head;

			s->w[i].worker.head = chunk->next;
			chunk_free(chunk);
		}
		free(s->w[i].frags);
	}
	if (s->cfg.aggregators)
		sim_switch_free(&s->sw);
	free(s->ps_mem);
	free(s->owed);
}

/* Where it hangs */
static void sim_dump(const struct sim *s)
{
	const struct atp_cell *cell;
	struct atp_ps_wait wait;
	u32 r;

	cell = &s->ps.cells[s->ps.frontier & (2 * s->cfg.window - 1)];
	printf("# %.6f s, %llu events; PS: running %d frontier %u\n",
	       (double)(s->now - SEC) / SEC, (unsigned long long)s->events,
	       s->ps.running, s->ps.frontier);
	atp_ps_waiting(&s->ps, &wait);
	printf("#	cell: seq %u state %u bitmap %#x waits for %#x%s\n",
	       cell->seq, cell->state, cell->bitmap, wait.ranks,
	       wait.server ? " the server" : "");
	for (r = 0; r < s->cfg.workers; r++) {
		const struct atp_worker *w = &s->w[r].worker;

		printf("# %u: session %u, chunks %u of %u\n", r,
		       s->w[r].session.state, s->w[r].popped, s->w[r].pushed);
		printf("#	una %u (%#x) nxt +%u end +%u flight %u lost %u\n",
		       w->una, w->frags[w->una & (s->cfg.window - 1)].state,
		       w->nxt - w->una, w->end - w->una, w->inflight, w->lost);
		printf("#	cwnd %u rto %llu us << %u timer %lld us\n",
		       w->cong.cwnd, (unsigned long long)w->rtt.rto / USEC,
		       w->rtt.backoff, (long long)(w->timer - s->now) / 1000);
		printf("#	waiting %#x resent %llu timeouts %llu\n",
		       w->waiting, (unsigned long long)w->stats.resent,
		       (unsigned long long)w->stats.timeouts);
	}
}

/* All runs, to the end or the limit */
static void sim_run(struct sim *s)
{
	struct sim_event ev;

	for (s->run = 0; s->run < s->cfg.runs; s->run++) {
		u64 limit = s->now + s->cfg.limit;

		sim_begin(s);
		while (!sim_all_done(s)) {
			ASSERT_TRUE(s->heap_len);
			ev = sim_take(s);
			s->now = ev.time;
			if (s->now >= limit)
				sim_dump(s);
			ASSERT_LT(s->now, limit);
			sim_event(s, &ev);
			free(ev.mem);
			s->events++;
		}
		sim_add_stats(s);
	}
}

#endif /* _ATP_SELFTESTS_SIM_H */
