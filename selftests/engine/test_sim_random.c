// SPDX-License-Identifier: GPL-2.0
/*
 * Simulated networks of all kinds, chosen by a seed that is printed when one
 * fails; TAP_SEED=... repeats it.
 */
#include "sim_usual.h"

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
