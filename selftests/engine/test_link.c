// SPDX-License-Identifier: GPL-2.0
/*
 * How much of a link is used where links are the limit: each carries one packet
 * in a given time, in each direction, and queues are deep enough to lose none.
 * Time is virtual, so the shares are the same on every machine.
 */
#include "sim.h"

/* A frame of 1,478 bytes at 20 Mbit/s */
#define SERVE	(1478 * 8 * SEC / 20000000)

static const struct sim_cfg usual = {
	.net_seed = 1,
	.data_seed = 1,
	.fragment = 1400,
	.window = 256,
	.scale = 100000000,
	.timeout = 60 * SEC,
	.data = SIM_FLOAT,
	.runs = 1,
	.epoch = 1000,
	.aggregators = 4096,
	.agg_timeout = 4 * SEC,
	.cap = ATP_NO_CAP,
	.behind = ~0U,
	.delay = 200 * USEC,
	.jitter = 100 * USEC,
	.serve = SERVE,
	.queue = 1000,
	.knee = 1000,
	.links = true,
	.limit = 600 * SEC,
};

static u64 fragments(const struct sim *s)
{
	u64 sum = 0;
	u32 c;

	for (c = 0; c < s->cfg.chunks; c++)
		sum += DIV_ROUND_UP(s->expect[c].elements,
				    s->cfg.fragment / 4);
	return sum;
}

/* The share of the time, in percent, in which the busiest link carries
 * gradients, each of them @copies times; joining is included.
 */
static u32 share(struct sim *s, const struct sim_cfg *cfg, u32 copies)
{
	u32 percent;

	sim_init(s, cfg);
	sim_run(s);
	percent = 100 * fragments(s) * copies * SERVE / (s->now - SEC);
	printf("# %u workers: %.3f s, %u %%, %llu again, %llu timeouts\n",
	       cfg->workers, (double)(s->now - SEC) / SEC, percent,
	       (unsigned long long)s->sum.resent,
	       (unsigned long long)s->sum.timeouts);
	return percent;
}

/* Many chunks in a row, as a long tensor is cut: every link is always busy. */
TEST(switch_long)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.chunks = 24;
	cfg.elements = 65450;
	cfg.ahead = 15;
	for (cfg.workers = 4; cfg.workers <= 8; cfg.workers += 4) {
		EXPECT_GE(share(&s, &cfg, 1), 97);
		EXPECT_EQ(s.sum.resent, 0);
		EXPECT_EQ(s.sum.timeouts, 0);
		sim_free(&s);
	}
}

/* One after the other: besides the packets there is a round trip for each. */
TEST(switch_short)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.chunks = 16;
	cfg.elements = 65450;
	cfg.ahead = 1;
	for (cfg.workers = 4; cfg.workers <= 8; cfg.workers += 4) {
		EXPECT_GE(share(&s, &cfg, 1), 90);
		EXPECT_EQ(s.sum.resent, 0);
		EXPECT_EQ(s.sum.timeouts, 0);
		sim_free(&s);
	}
}

/* Without a switch all gradients pass the link of the PS.  All windows together
 * must fit its queue.
 */
TEST(ps_alone)
{
	struct sim_cfg cfg = usual;
	struct sim s;

	cfg.aggregators = 0;
	cfg.window = 64;
	cfg.chunks = 8;
	cfg.elements = 65450;
	cfg.ahead = 15;
	for (cfg.workers = 4; cfg.workers <= 8; cfg.workers += 4) {
		EXPECT_GE(share(&s, &cfg, cfg.workers), 97);
		EXPECT_EQ(s.sum.resent, 0);
		sim_free(&s);
	}
}

/* 4 MiB over 8 workers, in chunks as in switch_long: the share, and how many of
 * a hundred fragments were sent again.
 */
static void large(struct sim_cfg cfg, u32 copies, u32 percent, u64 again)
{
	struct sim s;

	cfg.workers = 8;
	/* of all lengths up to 187 fragments; together 2,948 */
	cfg.chunks = 34;
	cfg.elements = 65450;
	cfg.ahead = 15;
	EXPECT_EQ(share(&s, &cfg, copies), percent);
	EXPECT_EQ(100 * s.sum.resent / s.sum.sent, again);
	sim_free(&s);
}

/* performance.rst has these figures: who changes one changes the other */
TEST(other_settings)
{
	struct sim_cfg cfg = usual;

	large(cfg, 1, 98, 0);
	/* Of a window that its own queue has no room for a worker loses
	 * packets, and all wait for each of them.
	 */
	cfg.queue = 100;
	large(cfg, 1, 43, 8);
	cfg.window = 64;
	large(cfg, 1, 98, 0);
	/* eight windows do not fit the queue of the PS */
	cfg = usual;
	cfg.aggregators = 0;
	large(cfg, 8, 93, 6);
	/* a packet that is overtaken looks lost, by few as by many */
	cfg = usual;
	cfg.jitter = 2 * SERVE;
	large(cfg, 1, 91, 0);
	cfg.jitter = 4 * SERVE;
	large(cfg, 1, 41, 2);
}

TAP_MAIN()
