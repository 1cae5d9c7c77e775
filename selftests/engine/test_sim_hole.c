// SPDX-License-Identifier: GPL-2.0
/*
 * Paths of the simulated network that lose data and nothing else, as those of a
 * smaller MTU do: all ranks are told, in bounded virtual time, though nobody is
 * silent.  And what only loses many packets, or waits for others, is not taken
 * for that.
 */
#include "sim_usual.h"

/* Tries are at most a second apart, but for the first; a quarter of the timeout
 * more is what it takes to look at them.
 */
static u64 bound(const struct sim_cfg *cfg)
{
	return max(cfg->timeout, (ATP_TRIES + 2) * SEC) + cfg->timeout / 4;
}

static void expect_end(const struct sim *s, u32 rank, u32 reason, u32 ranks)
{
	const struct sim_worker *w = &s->w[rank];

	EXPECT_EQ(w->session.state, ATP_SESSION_FAILED);
	EXPECT_EQ(w->session.reason, reason);
	EXPECT_EQ(w->session.ranks, ranks);
	EXPECT_GE(w->failed, max(s->cfg.hole_from, SEC) + s->cfg.timeout);
	EXPECT_LE(w->failed,
		  max(s->cfg.hole_from, SEC) + bound(&s->cfg));
}

/* Nothing has ever come to the PS, so it waits for nobody. */
TEST(gradients_of_all)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 i, r;

	cfg.hole_up = ~0U;
	cfg.limit = 200 * SEC;
	for (i = 0; i < 4; i++) {
		cfg.aggregators = i % 2 ? 0 : 256;
		cfg.timeout = i / 2 ? 100 * SEC : 4 * SEC;
		run(&s, &cfg);
		EXPECT_EQ(s.ps.stats.ps_frags + s.ps.stats.completed, 0);
		for (r = 0; r < cfg.workers; r++)
			expect_end(&s, r, ATP_REASON_UNANSWERED, 1U << r);
		sim_free(&s);
	}
}

/* Of one rank, from some time on; the others come to wait for it.  It tells
 * what is wrong, and they that it has left.
 */
static void one(struct sim_cfg cfg, u32 seeds)
{
	struct sim s;
	u64 last;
	u32 i, r;

	cfg.timeout = 4 * SEC;
	cfg.chunks = 300;
	cfg.limit = 2 * bound(&cfg);
	cfg.hole_fits = ATP_HDR_LEN + ATP_CTL_LEN;
	cfg.hole_from = SEC + SEC / 2;
	cfg.delay = max(cfg.delay, MSEC);
	for (i = 0; i < seeds; i++) {
		cfg.net_seed++;
		cfg.aggregators = i % 2 ? 0 : 256;
		cfg.loss = i % 4 > 1 ? 30000 : 0;
		run(&s, &cfg);
		EXPECT_GT(s.w[1].popped, 0);
		last = 0;
		for (r = 0; r < cfg.workers; r++) {
			expect_end(&s, r, r == 1 ? ATP_REASON_UNANSWERED :
				   ATP_REASON_LEFT, 0x2);
			last = max(last, s.w[r].failed);
		}
		/* what answers there were had made the timer short */
		EXPECT_LE(last, cfg.hole_from + 2 * cfg.timeout);
		sim_free(&s);
	}
}

TEST(gradients_of_one)
{
	struct sim_cfg cfg = usual;

	cfg.hole_up = 0x2;
	one(cfg, 8);
}

/* The PS has all that it has sent, and knows of nothing that it waits for. */
TEST(results_of_one)
{
	struct sim_cfg cfg = usual;

	cfg.hole_down = 0x2;
	one(cfg, 8);
}

/* It is asked for its part of what comes next so often that the timer of what
 * it lacks hardly runs out.
 */
TEST(results_of_one_of_many)
{
	struct sim_cfg cfg = usual;

	cfg.workers = 32;
	cfg.elements = 200;
	cfg.delay = 4 * MSEC;
	cfg.hole_down = 0x2;
	one(cfg, 4);
}

TEST(results_of_one_with_an_application)
{
	struct sim_cfg cfg = usual;

	cfg.server = true;
	cfg.hole_down = 0x2;
	one(cfg, 4);
}

/* Three of four round trips fail, with timers that are short and long: it takes
 * its time, but no run fails (sim.h sees to that).
 */
TEST(loss_of_a_third_is_no_hole)
{
	static const u64 delays[] = { 10 * USEC, 5 * MSEC, 40 * MSEC };
	struct sim_cfg cfg = usual;
	struct sim s;
	u64 tries = 0;
	u32 i;

	cfg.timeout = 20 * SEC;
	cfg.loss = 300000;
	cfg.data |= SIM_BIG | SIM_SUMS | SIM_ODD;
	cfg.limit = 100000 * SEC;
	for (i = 0; i < 60; i++) {
		cfg.net_seed++;
		cfg.data_seed++;
		cfg.delay = delays[i % 3];
		cfg.aggregators = i / 3 % 2 ? 0 : 256;
		cfg.server = i / 6 % 2;
		cfg.chunks = 10 / (1 + i % 3);
		cfg.elements = 200;
		run(&s, &cfg);
		tries += s.sum.resent;
		sim_free(&s);
	}
	printf("# %llu times sent again\n", (unsigned long long)tries);
}

/* With loss and without, by a switch and without; it takes so long at least */
static void waits_for_long(struct sim_cfg cfg, u64 least)
{
	struct sim s;
	u32 i;

	cfg.timeout = 30 * SEC;
	for (i = 0; i < 4; i++) {
		cfg.net_seed++;
		cfg.loss = i % 2 ? 300000 : 0;
		cfg.aggregators = i / 2 ? 0 : 256;
		run(&s, &cfg);
		EXPECT_GT(s.now, least);
		sim_free(&s);
	}
}

/* Others are late, for hours, and most questions or answers are lost. */
TEST(late_is_no_hole)
{
	struct sim_cfg cfg = usual;

	cfg.slow = 0x6;
	cfg.wait = 3 * 3600 * SEC;
	cfg.chunks = 3;
	cfg.limit = 4 * cfg.wait;
	waits_for_long(cfg, 2 * cfg.wait);
}

/* So is the application at the PS. */
TEST(a_late_application_is_no_hole)
{
	struct sim_cfg cfg = usual;

	cfg.server = true;
	cfg.think = 4 * 3600 * SEC;
	cfg.chunks = 4;
	cfg.ahead = 1;
	cfg.elements = 100;
	cfg.limit = 40 * cfg.think;
	waits_for_long(cfg, 3600 * SEC);
}

TAP_MAIN()
