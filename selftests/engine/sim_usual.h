/* SPDX-License-Identifier: GPL-2.0 */
/* The job that a test in the simulated network changes as it needs. */
#ifndef _ATP_SELFTESTS_SIM_USUAL_H
#define _ATP_SELFTESTS_SIM_USUAL_H

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

#endif /* _ATP_SELFTESTS_SIM_USUAL_H */
