// SPDX-License-Identifier: GPL-2.0
/*
 * Peers in the simulated network that are slow, push fewer chunks, die or
 * leave: the others get what there is and are told who it was, in bounded
 * virtual time.
 */
#include "sim_usual.h"

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

TAP_MAIN()
