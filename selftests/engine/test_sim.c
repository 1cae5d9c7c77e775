// SPDX-License-Identifier: GPL-2.0
/*
 * The engine as a whole in a simulated network: whatever is lost, copied,
 * delayed, reordered or collides, every rank gets the oracle's bits (sim.h
 * compares every chunk) in bounded virtual time.
 */
#include "sim.h"

static const struct sim_cfg usual = {
	.net_seed = 1,
	.data_seed = 1,
	.workers = 4,
	.fragment = 64,
	.window = 64,
	.scale = 100000000,
	.timeout = 60 * SEC,
	.chunks = 10,
	.elements = 1000,
	.data = SIM_INT | SIM_FLOAT,
	.ahead = 3,
	.runs = 1,
	.epoch = 1000,
	.aggregators = 256,
	.agg_timeout = 20 * MSEC,
	.cap = ATP_NO_CAP,
	.behind = ~0U,
	.delay = 10 * USEC,
	.limit = 60 * SEC,
};

static void run(struct sim *s, const struct sim_cfg *cfg)
{
	sim_init(s, cfg);
	sim_run(s);
}

/* For the curious; nothing depends on it. */
static void report(const struct sim *s, const char *what)
{
	const struct atp_ps_stats *p = &s->ps.stats;
	u64 all = p->switch_frags + p->ps_frags;

	printf("# %s: %.3f s, %llu of %llu additions in the switch\n", what,
	       (double)(s->now - SEC) / SEC,
	       (unsigned long long)p->switch_frags, (unsigned long long)all);
	printf("#	%llu sent, %llu again, %llu timeouts, %llu spurious\n",
	       (unsigned long long)s->sum.sent,
	       (unsigned long long)s->sum.resent,
	       (unsigned long long)s->sum.timeouts,
	       (unsigned long long)s->sum.spurious);
}

/* Without loss everything is added in the switch, and nothing is sent twice. */
static void lossless(struct sim_cfg cfg)
{
	struct sim s;

	/* one for each slot is enough: those of a job do not meet */
	cfg.aggregators = cfg.window;
	run(&s, &cfg);
	EXPECT_EQ(s.sum.resent, 0);
	EXPECT_EQ(s.sum.timeouts, 0);
	EXPECT_EQ(s.sum.duplicates, 0);
	EXPECT_EQ(s.ps.stats.ps_frags, 0);
	EXPECT_EQ(s.ps.stats.collisions, 0);
	EXPECT_EQ(s.ps.stats.switch_frags,
		  (cfg.workers - 1) * s.ps.stats.completed);
	sim_free(&s);
}

TEST(lossless_all_in_switch)
{
	static const u32 workers[] = { 1, 2, 3, 8, 16, 32 };
	struct sim_cfg cfg = usual;
	u32 i;

	cfg.window = 32;
	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		cfg.workers = workers[i];
		cfg.fragment = 8 << i;
		lossless(cfg);
	}
}

TEST(lossless_without_switch)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.aggregators = 0;
	run(&s, &cfg);
	EXPECT_EQ(s.sum.resent, 0);
	EXPECT_EQ(s.sum.timeouts, 0);
	EXPECT_EQ(s.ps.stats.switch_frags, 0);
	sim_free(&s);
}

TEST(every_number_of_workers)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.elements = 300;
	cfg.loss = 10000;
	cfg.jitter = 5 * USEC;
	for (cfg.workers = 1; cfg.workers <= 32; cfg.workers++) {
		cfg.net_seed++;
		run(&s, &cfg);
		sim_free(&s);
	}
}

TEST(loss)
{
	static const u32 ppm[] = { 1000, 10000, 50000, 100000 };
	struct sim_cfg cfg = usual;
	char what[64];
	struct sim s;
	u32 i;

	for (i = 0; i < 2 * ARRAY_SIZE(ppm); i++) {
		cfg.loss = ppm[i / 2];
		cfg.aggregators = i % 2 ? 0 : 256;
		run(&s, &cfg);
		snprintf(what, sizeof(what), "%u ppm per leg, %s switch",
			 cfg.loss, i % 2 ? "no" : "a");
		report(&s, what);
		sim_free(&s);
	}
}

/*
 * So much is lost that most fragments need several attempts of several workers:
 * a result still takes milliseconds, not seconds.  The time is the network's,
 * and the same in every run of this test.
 */
TEST(heavy_loss)
{
	static const struct {
		u32 workers;
		u32 loss;
		u64 most;	/* per fragment */
	} cases[] = {
		{ 32, 10000, MSEC }, { 8, 100000, 10 * MSEC },
		{ 32, 100000, 30 * MSEC }, { 1, 300000, 50 * MSEC },
		{ 2, 300000, 200 * MSEC }, { 4, 300000, 200 * MSEC },
		{ 8, 300000, 200 * MSEC }, { 32, 300000, 400 * MSEC },
	};
	struct sim_cfg cfg = usual;
	char what[64];
	struct sim s;
	u64 each;
	u32 i;

	cfg.chunks = 4;
	cfg.elements = 1500;
	for (i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		cfg.net_seed = 300 + i;
		cfg.workers = cases[i / 2].workers;
		cfg.loss = cases[i / 2].loss;
		cfg.aggregators = i % 2 ? 0 : 1024;
		run(&s, &cfg);
		each = (s.now - SEC) / s.ps.stats.completed;
		snprintf(what, sizeof(what), "%u workers, %u ppm, %s switch",
			 cfg.workers, cfg.loss, i % 2 ? "no" : "a");
		report(&s, what);
		printf("#	%llu us for each of %llu fragments\n",
		       (unsigned long long)each / USEC,
		       (unsigned long long)s.ps.stats.completed);
		EXPECT_LT(each, cases[i / 2].most);
		sim_free(&s);
	}
}

TEST(copies_and_reordering)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.dup = 200000;
	cfg.jitter = 200 * USEC;
	run(&s, &cfg);
	report(&s, "copies and reordering");
	sim_free(&s);
	cfg.jitter = 10 * MSEC;
	cfg.loss = 20000;
	run(&s, &cfg);
	report(&s, "much later copies");
	sim_free(&s);
}

/* Figure 10's other end: hardly any aggregator for anybody */
TEST(collisions)
{
	static const u32 n[] = { 1, 2, 16, 64 };
	struct sim_cfg cfg = usual;
	char what[64];
	struct sim s;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(n); i++) {
		cfg.aggregators = n[i];
		cfg.foreign = 0;
		run(&s, &cfg);
		snprintf(what, sizeof(what), "%u aggregators", n[i]);
		report(&s, what);
		EXPECT_GT(s.ps.stats.collisions, 0);
		sim_free(&s);

		cfg.loss = 10000;
		cfg.foreign = 100000;
		cfg.locked = 100000;
		cfg.agg_timeout = MSEC;
		run(&s, &cfg);
		sim_free(&s);
		cfg.loss = 0;
	}
}

/* A switch that was restarted, goes, comes */
TEST(switch_comes_and_goes)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.chunks = 40;
	cfg.elements = 4000;
	cfg.forget = 300 * USEC;
	cfg.jitter = 5 * USEC;
	run(&s, &cfg);
	report(&s, "forgets");
	EXPECT_GT(s.sum.resent, 0);
	sim_free(&s);

	cfg.forget = 0;
	cfg.jitter = 0;
	cfg.absent = SEC + 500 * USEC;
	cfg.present = 1000 * SEC;
	run(&s, &cfg);
	report(&s, "vanishes");
	EXPECT_GT(s.ps.stats.switch_frags, 0);
	EXPECT_GT(s.ps.stats.ps_frags, 0);
	sim_free(&s);

	cfg.absent = 0;
	cfg.present = SEC + 500 * USEC;
	run(&s, &cfg);
	report(&s, "appears");
	EXPECT_GT(s.ps.stats.switch_frags, 0);
	EXPECT_GT(s.ps.stats.ps_frags, 0);
	sim_free(&s);

	cfg.absent = SEC + 300 * USEC;
	cfg.present = cfg.absent + MSEC;
	cfg.loss = 10000;
	run(&s, &cfg);
	report(&s, "goes and comes");
	sim_free(&s);
}

/* Some ranks elsewhere: no aggregate is ever complete in the switch. */
TEST(ranks_that_are_not_behind_it)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.behind = 0x5;
	cfg.chunks = 4;
	run(&s, &cfg);
	report(&s, "two of four behind the switch");
	sim_free(&s);
	cfg.loss = 10000;
	run(&s, &cfg);
	sim_free(&s);
}

/*
 * A peer that needs seconds for each chunk.  The others must wait without
 * flooding: one fragment at a time, backed off to a second.  And without
 * slowing down: the window is what it was.
 */
static void slow_peer(struct sim_cfg cfg, const char *what)
{
	u64 waits, expiries;
	struct sim s;
	u32 r;

	cfg.slow = 0x2;
	cfg.wait = 5 * SEC;
	cfg.chunks = 6;
	cfg.ahead = 2;
	cfg.limit = cfg.chunks * cfg.wait + 2 * SEC;
	run(&s, &cfg);
	report(&s, what);

	/* 2, 4, ... 512 ms, then each second, and what finds it out */
	waits = cfg.chunks;
	expiries = 9 + cfg.wait / SEC;
	for (r = 0; r < cfg.workers; r++) {
		const struct atp_worker *w = &s.w[r].worker;

		if (r == 1)
			continue;
		EXPECT_LE(w->stats.resent, waits * (expiries + 10));
		EXPECT_GE(w->cong.cwnd, ATP_INIT_CWND);
		EXPECT_EQ(w->stats.spurious, w->stats.timeouts);
		EXPECT_LT(w->rtt.rto, 10 * MSEC);
	}
	sim_free(&s);
}

TEST(slow_peer_with_switch)
{
	slow_peer(usual, "slow peer, a switch");
}

TEST(slow_peer_without_switch)
{
	struct sim_cfg cfg = usual;

	cfg.aggregators = 0;
	slow_peer(cfg, "slow peer, no switch");
}

TEST(slow_peers_and_loss)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.slow = 0x6;
	cfg.wait = 2 * SEC;
	cfg.chunks = 8;
	cfg.loss = 50000;
	cfg.limit = cfg.chunks * cfg.wait + 20 * SEC;
	run(&s, &cfg);
	report(&s, "slow peers and loss");
	sim_free(&s);
}

/* Values and sums that do not fit, in every form */
TEST(overflow)
{
	static const u32 data[] = {
		SIM_FLOAT | SIM_BIG, SIM_FLOAT | SIM_SUMS, SIM_FLOAT | SIM_ODD,
		SIM_INT | SIM_SUMS, SIM_INT | SIM_ODD,
		SIM_INT | SIM_FLOAT | SIM_BIG | SIM_SUMS | SIM_ODD,
	};
	static const u32 scales[] = { 1, 1 << 20, 100000000, ~0U };
	struct sim_cfg cfg = usual;
	u32 i, j, k, overflows;
	struct sim s;

	cfg.jitter = 10 * USEC;
	for (i = 0; i < ARRAY_SIZE(data); i++) {
		overflows = 0;
		for (j = 0; j < ARRAY_SIZE(scales); j++) {
			cfg.data = data[i];
			cfg.scale = scales[j];
			cfg.loss = j % 2 ? 20000 : 0;
			cfg.workers = 4 + i + j;
			cfg.aggregators = i % 3 ? 256 : 0;
			cfg.data_seed++;
			run(&s, &cfg);
			EXPECT_GT(s.ps.stats.raw, 0);
			for (k = 0; k < cfg.workers; k++)
				EXPECT_EQ(s.w[k].overflows, s.w[0].overflows);
			overflows += s.w[0].overflows;
			sim_free(&s);
		}
		EXPECT_EQ(overflows > 0,
			  (data[i] & (SIM_INT | SIM_SUMS)) ==
			  (SIM_INT | SIM_SUMS));
	}
}

TEST(sequence_wrap)
{
	static const u32 start[] = { -1, -5, -64, -100, 0x7fffffc0 };
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 i;

	for (i = 0; i < 2 * ARRAY_SIZE(start); i++) {
		cfg.start = start[i / 2];
		cfg.loss = i % 2 ? 30000 : 0;
		cfg.jitter = i % 2 ? 20 * USEC : 0;
		cfg.data |= SIM_BIG | SIM_SUMS;
		run(&s, &cfg);
		EXPECT_LT(s.w[0].worker.nxt - cfg.start, 10 * 1000);
		sim_free(&s);
	}
}

/* Packets of one run that arrive in the next */
TEST(nothing_stale)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 i;

	cfg.runs = 5;
	cfg.chunks = 3;
	cfg.dup = 300000;
	cfg.jitter = 20 * MSEC;
	cfg.loss = 20000;
	cfg.aggregators = 16;
	for (i = 0; i < 10; i++) {
		cfg.net_seed++;
		run(&s, &cfg);
		EXPECT_EQ(s.ps.stats.runs, cfg.runs);
		sim_free(&s);
	}
}

/* The same inputs give the same bits in every network. */
TEST(reproducible)
{
	struct sim_cfg cfg = usual;
	u64 digest = 0;
	struct sim s;
	u32 i;

	cfg.data |= SIM_BIG | SIM_SUMS | SIM_ODD;
	cfg.dup = 10000;
	cfg.jitter = 30 * USEC;
	for (i = 0; i < 12; i++) {
		cfg.net_seed = 100 + i;
		cfg.loss = i * 5000;
		cfg.aggregators = i % 4 ? 4 << i : 0;
		run(&s, &cfg);
		if (!i)
			digest = s.digest;
		EXPECT_EQ(s.digest, digest);
		sim_free(&s);
	}
}

/* A bottleneck before the PS, with and without marks */
TEST(congestion)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 i;

	cfg.workers = 8;
	cfg.aggregators = 0;
	cfg.window = 256;
	cfg.chunks = 20;
	cfg.elements = 60000;
	cfg.fragment = 1400;
	cfg.serve = 2 * USEC;
	cfg.queue = 100;
	for (i = 0; i < 2; i++) {
		cfg.knee = i ? 1000 : 20;
		run(&s, &cfg);
		report(&s, i ? "bottleneck, loss only" : "bottleneck, marks");
		if (!i)
			EXPECT_GT(s.sum.ecn, 0);
		sim_free(&s);
	}
}

/* What the switch allows is never exceeded, once it was heard. */
TEST(cap)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 r;

	cfg.cap = 3;
	run(&s, &cfg);
	for (r = 0; r < cfg.workers; r++) {
		EXPECT_EQ(s.w[r].worker.cong.cap, 3);
		EXPECT_EQ(atp_cong_window(&s.w[r].worker.cong), 3);
	}
	sim_free(&s);
}

/* One dies: everyone else knows who, within little more than the timeout. */
TEST(dead_worker)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 r;

	cfg.dead = 0x4;
	cfg.dies = SEC + 500 * USEC;
	cfg.timeout = 4 * SEC;
	cfg.chunks = 1000;
	cfg.loss = 10000;
	cfg.limit = 2 * cfg.timeout;
	run(&s, &cfg);
	for (r = 0; r < cfg.workers; r++) {
		if (r == 2)
			continue;
		EXPECT_EQ(s.w[r].session.state, ATP_SESSION_FAILED);
		EXPECT_EQ(s.w[r].session.reason, ATP_REASON_SILENT);
		EXPECT_EQ(s.w[r].session.ranks, 0x4);
		EXPECT_LE(s.w[r].failed - cfg.dies, cfg.timeout * 3 / 2);
	}
	sim_free(&s);
}

/* The PS dies: nobody is named, as soon as it was silent for the timeout. */
TEST(dead_ps)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 r;

	cfg.dead_ps = true;
	cfg.dies = SEC + 500 * USEC;
	cfg.timeout = 4 * SEC;
	cfg.chunks = 1000;
	cfg.loss = 10000;
	cfg.limit = 2 * cfg.timeout;
	run(&s, &cfg);
	for (r = 0; r < cfg.workers; r++) {
		EXPECT_EQ(s.w[r].session.state, ATP_SESSION_FAILED);
		EXPECT_EQ(s.w[r].session.reason, ATP_REASON_PS_SILENT);
		EXPECT_EQ(s.w[r].session.ranks, 0);
		/* it was in the run, and heard what was under way */
		EXPECT_TRUE(s.w[r].running);
		EXPECT_GT(s.w[r].session.heard, SEC);
		EXPECT_LE(s.w[r].session.heard, cfg.dies + 2 * cfg.delay);
		EXPECT_EQ(s.w[r].failed, s.w[r].session.heard + cfg.timeout);
	}
	sim_free(&s);
}

/* Some push fewer chunks: all are told who, within little more than the
 * patience, and have got every sum that there is.
 */
TEST(fewer_chunks)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 i, r;

	cfg.patience = 20 * SEC;
	cfg.limit = 2 * cfg.patience;
	for (i = 0; i < 6; i++) {
		cfg.net_seed++;
		cfg.few = i % 2 ? 0x2 : 0xd;
		cfg.most = i % 3 ? cfg.chunks - 1 : 0;
		cfg.loss = 30000 * (i / 2);
		run(&s, &cfg);
		for (r = 0; r < cfg.workers; r++) {
			EXPECT_EQ(s.w[r].popped, cfg.most);
			EXPECT_EQ(s.w[r].session.state, ATP_SESSION_FAILED);
			EXPECT_EQ(s.w[r].session.reason, ATP_REASON_LATE);
			EXPECT_EQ(s.w[r].session.ranks, cfg.few);
			EXPECT_GE(s.w[r].failed, SEC + cfg.patience);
			EXPECT_LE(s.w[r].failed,
				  SEC + cfg.patience + cfg.timeout / 4);
		}
		sim_free(&s);
	}
}

/* All have what they wanted and leave. */
static void leave(struct sim *s)
{
	struct sim_event ev;
	u32 r;

	for (r = 0; r < s->cfg.workers; r++) {
		s->w[r].running = false;
		atp_session_leave(&s->w[r].session, s->now);
		sim_worker_go(s, r);
	}
	while (s->ps.running) {
		ASSERT_TRUE(s->heap_len);
		ev = sim_take(s);
		s->now = ev.time;
		sim_event(s, &ev);
		free(ev.mem);
	}
}

/* A LEAVE that is lost makes nobody silent. */
TEST(leaving)
{
	struct sim_cfg cfg = usual;
	u32 i, waited = 0;
	struct sim s;
	u64 last;

	cfg.loss = 30000;
	for (i = 0; i < 50; i++) {
		cfg.net_seed++;
		run(&s, &cfg);
		last = s.now;
		leave(&s);
		EXPECT_EQ(s.ps.reason, ATP_REASON_NONE);
		EXPECT_EQ(s.ps.stats.aborts, 0);
		EXPECT_LE(s.now - last, cfg.timeout / 2 + MSEC);
		waited += s.now - last > MSEC;
		sim_free(&s);
	}
	/* for a copy */
	EXPECT_GT(waited, 5);
}

/* Slow ranks are not late, whatever they add up to. */
TEST(slow_is_not_late)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 i;

	cfg.patience = 20 * SEC;
	cfg.slow = 0x6;
	cfg.wait = cfg.patience - SEC;
	cfg.limit = cfg.chunks * cfg.patience;
	for (i = 0; i < 4; i++) {
		cfg.net_seed++;
		cfg.loss = i % 2 ? 100000 : 0;
		cfg.aggregators = i / 2 ? 0 : 256;
		run(&s, &cfg);
		EXPECT_GT(s.now, SEC + (cfg.chunks - 1) * cfg.wait);
		sim_free(&s);
	}
}

static u32 pick(const u32 *of, u32 n)
{
	return of[tap_below(n)];
}

#define PICK(...) pick((const u32 []){ __VA_ARGS__ },			\
		       sizeof((const u32 []){ __VA_ARGS__ }) / sizeof(u32))

static void random_cfg(struct sim_cfg *cfg)
{
	*cfg = usual;
	cfg->net_seed = tap_rand64();
	cfg->data_seed = tap_rand64();
	cfg->workers = tap_chance(4) ? 1 + tap_below(32) : 1 + tap_below(6);
	cfg->fragment = PICK(8, 16, 64, 248, 256, 1400);
	cfg->window = PICK(1, 2, 4, 16, 64, 256);
	cfg->scale = PICK(1, 1000, 1 << 16, 100000000, 100000000, ~0U);
	cfg->chunks = 1 + tap_below(10);
	cfg->elements = 1 + cfg->fragment / 4 * (1 + tap_below(30));
	cfg->data = PICK(SIM_INT, SIM_FLOAT, SIM_INT | SIM_FLOAT);
	cfg->data |= tap_below(8) * SIM_BIG;
	cfg->ahead = 1 + tap_below(5);
	cfg->runs = tap_chance(4) ? 2 : 1;
	cfg->start = tap_chance(3) ? -tap_below(300) :
				     tap_below(2) * tap_rand();
	cfg->epoch = tap_rand();
	cfg->aggregators = PICK(0, 0, 1, 2, 3, 16, 64, 256, 1024);
	cfg->agg_timeout = PICK(100, 1000, 20000) * USEC;
	cfg->cap = tap_chance(8) ? 1 + tap_below(20) : ATP_NO_CAP;
	cfg->behind = tap_chance(10) ? tap_rand() : ~0U;
	cfg->foreign = PICK(0, 0, 10000, 200000);
	cfg->locked = PICK(0, 0, 1000, 100000);
	cfg->forget = PICK(0, 0, 0, 100, 1000, 100000) * USEC;
	if (tap_chance(4)) {
		cfg->absent = SEC + tap_below(3000) * USEC;
		cfg->present = cfg->absent + tap_below(3000) * USEC;
	}
	cfg->loss = PICK(0, 0, 1000, 10000, 50000, 100000);
	cfg->dup = PICK(0, 0, 1000, 100000);
	cfg->mark = PICK(0, 0, 1000, 100000);
	cfg->delay = PICK(1, 10, 100, 1000) * USEC;
	cfg->jitter = PICK(0, 0, 1, 10, 100, 1000) * USEC;
	if (tap_chance(4)) {
		cfg->serve = PICK(100, 1000, 5000);
		cfg->queue = 20 + tap_below(200);
		cfg->knee = tap_below(cfg->queue);
	}
	if (tap_chance(10)) {
		cfg->slow = tap_rand();
		cfg->wait = PICK(3, 30, 300, 3000) * MSEC;
	}
	cfg->limit = 100 * SEC + cfg->chunks * cfg->wait;
}

static void random_networks(u64 seed, u32 n)
{
	u64 events = 0, sent = 0, resent = 0, longest = 0;
	struct sim_cfg cfg;
	struct sim s;
	u32 i;

	tap_seed(seed);
	for (i = 0; i < n; i++) {
		u64 state = tap_state;

		random_cfg(&cfg);
		run(&s, &cfg);
		if (tap_failures) {
			printf("# TAP_SEED=%llu\n", (unsigned long long)state);
			tap_exit();
		}
		events += s.events;
		sent += s.sum.sent;
		resent += s.sum.resent;
		longest = max(longest, s.now - SEC);
		sim_free(&s);
	}
	printf("# %u networks, longest %.1f s: %llu events\n", n,
	       (double)longest / SEC, (unsigned long long)events);
	printf("#	%llu sent, %llu again\n", (unsigned long long)sent,
	       (unsigned long long)resent);
}

TEST(random_networks_1)
{
	random_networks(1, 100);
}

TEST(random_networks_2)
{
	random_networks(2, 100);
}

TEST(random_networks_3)
{
	random_networks(3, 100);
}

TEST(random_networks_4)
{
	random_networks(4, 100);
}

TAP_MAIN()
