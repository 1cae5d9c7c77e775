// SPDX-License-Identifier: GPL-2.0
/*
 * A job whose results an application at the PS makes, in the simulated network:
 * every rank gets the bits that the application wrote, whatever is lost,
 * copied, reordered or collides, and however long the application takes (sim.h
 * compares every chunk).
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
	.chunks = 20,
	.elements = 1024,
	.data = SIM_INT | SIM_FLOAT | SIM_BIG | SIM_SUMS | SIM_ODD,
	.ahead = 3,
	.runs = 1,
	.epoch = 1000,
	.aggregators = 256,
	.agg_timeout = 20 * MSEC,
	.cap = ATP_NO_CAP,
	.behind = ~0U,
	.delay = 10 * USEC,
	.limit = 100 * SEC,
	.server = true,
	.think = 100 * USEC,
};

static void run(struct sim *s, const struct sim_cfg *cfg)
{
	sim_init(s, cfg);
	sim_run(s);
	EXPECT_GT(s->ps.stats.completed, 0);
}

TEST(lossless)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.data = SIM_INT | SIM_FLOAT;
	for (cfg.workers = 1; cfg.workers <= 32; cfg.workers *= 2) {
		cfg.aggregators = cfg.workers % 3 == 1 ? 256 : 0;
		run(&s, &cfg);
		EXPECT_EQ(s.sum.timeouts, s.sum.spurious);
		sim_free(&s);
	}
}

TEST(loss)
{
	static const u32 ppm[] = { 1000, 10000, 50000, 100000 };
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 i;

	cfg.runs = 2;
	for (i = 0; i < 2 * ARRAY_SIZE(ppm); i++) {
		cfg.loss = ppm[i / 2];
		cfg.aggregators = i % 2 ? 0 : 256;
		run(&s, &cfg);
		EXPECT_GT(s.sum.resent, 0);
		EXPECT_GT(s.ps.stats.cached, 0);
		sim_free(&s);
	}
}

TEST(copies_reordering_collisions)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.dup = 200000;
	cfg.jitter = 200 * USEC;
	cfg.loss = 10000;
	cfg.aggregators = 16;
	cfg.foreign = 100000;
	cfg.locked = 100000;
	cfg.agg_timeout = MSEC;
	cfg.forget = 300 * USEC;
	for (cfg.net_seed = 1; cfg.net_seed <= 5; cfg.net_seed++) {
		run(&s, &cfg);
		EXPECT_GT(s.ps.stats.collisions, 0);
		sim_free(&s);
	}
}

/* Sequence numbers pass zero; chunks are longer than the window. */
TEST(wrap)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.start = -100;
	cfg.loss = 10000;
	cfg.elements = 5 * 64 * 16;
	run(&s, &cfg);
	sim_free(&s);
}

/*
 * It needs seconds each time.  Workers ask with one fragment at a time,
 * backed off to a second, and their window is what it was.
 */
TEST(slow)
{
	struct sim_cfg cfg = usual;
	struct sim s;
	u32 r;

	cfg.data = SIM_INT | SIM_FLOAT;
	cfg.chunks = 10;
	cfg.think = 8 * SEC;
	run(&s, &cfg);
	EXPECT_EQ(s.sum.spurious, s.sum.timeouts);
	/* once a second and some at first, per worker and chunk */
	EXPECT_LT(s.sum.resent, cfg.workers * cfg.chunks *
		  (cfg.window + 20 + 8));
	for (r = 0; r < cfg.workers; r++)
		EXPECT_GE(s.w[r].worker.cong.cwnd, 10);
	printf("# %.1f s, %llu sent, %llu again, %llu timeouts\n",
	       (double)(s.now - SEC) / SEC, (unsigned long long)s.sum.sent,
	       (unsigned long long)s.sum.resent,
	       (unsigned long long)s.sum.timeouts);
	sim_free(&s);
}

TAP_MAIN()
