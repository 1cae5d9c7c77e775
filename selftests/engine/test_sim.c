// SPDX-License-Identifier: GPL-2.0
/*
 * The engine as a whole in a simulated network: whatever is lost, copied,
 * delayed, reordered or collides, every rank gets the oracle's bits (sim.h
 * compares every chunk) in bounded virtual time.
 */
#include "sim_usual.h"

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

/* Some ranks elsewhere: it does not wait for those, nor makes things slower. */
TEST(ranks_that_are_not_behind_it)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u64 without;

	cfg.chunks = 4;
	cfg.aggregators = 0;
	run(&s, &cfg);
	without = s.now;
	report(&s, "without a switch");
	sim_free(&s);
	cfg.aggregators = usual.aggregators;
	cfg.behind = 0x5;
	run(&s, &cfg);
	report(&s, "two of four behind the switch");
	EXPECT_GT(s.sw.completed, 0);
	EXPECT_LT(s.now, 2 * without);
	sim_free(&s);
	cfg.loss = 10000;
	run(&s, &cfg);
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

TAP_MAIN()
