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

/* 4 MiB over 8 workers; performance.rst has the figures of what follows */
static struct sim_cfg large(void)
{
	struct sim_cfg cfg = usual;

	cfg.workers = 8;
	cfg.chunks = 16;
	cfg.elements = 65450;
	cfg.ahead = 15;
	return cfg;
}

/* Of a window that its own queue has no room for a worker loses packets, and
 * all wait for each of them.
 */
TEST(queue_shorter_than_a_window)
{
	struct sim_cfg cfg = large();
	struct sim s;

	EXPECT_GE(share(&s, &cfg, 1), 97);
	sim_free(&s);
	cfg.queue = 100;
	EXPECT_LE(share(&s, &cfg, 1), 60);
	EXPECT_GT(s.sum.resent, 0);
	sim_free(&s);
	cfg.window = 64;
	EXPECT_GE(share(&s, &cfg, 1), 97);
	EXPECT_EQ(s.sum.resent, 0);
	sim_free(&s);
}

/* Eight windows do not fit the queue of the PS. */
TEST(queue_shorter_than_all_windows)
{
	struct sim_cfg cfg = large();
	struct sim s;

	u32 some;

	cfg.aggregators = 0;
	some = share(&s, &cfg, cfg.workers);
	EXPECT_GE(some, 80);
	EXPECT_LE(some, 95);
	EXPECT_GT(s.sum.resent, 0);
	sim_free(&s);
}

/* A packet that is overtaken looks lost, by few as by many. */
TEST(out_of_order)
{
	struct sim_cfg cfg = large();
	struct sim s;
	u32 some;

	cfg.jitter = 2 * SERVE;
	some = share(&s, &cfg, 1);
	sim_free(&s);
	cfg.jitter = 4 * SERVE;
	EXPECT_LT(share(&s, &cfg, 1), some);
	EXPECT_LE(some, 95);
	sim_free(&s);
}

TAP_MAIN()
