// SPDX-License-Identifier: GPL-2.0
/* The PS: who takes part, and how runs end. */
#include "ps_fixture.h"

TEST(memory)
{
	params = (struct atp_params) {
		.workers = 3, .fragment = 40, .window = 8,
	};
	EXPECT_EQ(atp_ps_mem(&params), 16 * (sizeof(struct atp_cell) + 40) +
				       ATP_PS_RAW_SLOTS * 3 * 40);
}

TEST(control_senders)
{
	struct atp_pkt pkt = { .type = ATP_TYPE_JOIN, .job = 77 };
	struct atp_ctl_host c = { .nonce = 1 };
	u8 buf[ATP_HDR_LEN + ATP_CTL_LEN];
	u32 t, len;

	make_ps(3, 10, 8);
	/* two ranks on a host: the bit says which of them */
	address[1] = 0;
	EXPECT_EQ(join(1, 9), ATP_OK);
	EXPECT_TRUE(ps.members[1].pending);
	EXPECT_FALSE(ps.members[0].pending);

	/* who is not of the job, or speaks for another */
	pkt.bitmap0 = 4;
	len = atp_ctl_write(buf, &pkt, &c);
	EXPECT_EQ(deliver(buf, len, false, 0), ATP_DROP_STRANGER);
	expect_nothing();
	EXPECT_EQ(deliver(buf, len, false, 3), ATP_DROP_STRANGER);
	pkt.bitmap0 = 6;
	len = atp_ctl_write(buf, &pkt, &c);
	EXPECT_EQ(deliver(buf, len, false, 7), ATP_DROP_BITMAP);
	pkt.bitmap0 = 0;
	len = atp_ctl_write(buf, &pkt, &c);
	EXPECT_EQ(deliver(buf, len, false, 7), ATP_DROP_BITMAP);
	pkt.bitmap0 = 8;
	len = atp_ctl_write(buf, &pkt, &c);
	EXPECT_EQ(deliver(buf, len, false, 15), ATP_DROP_BITMAP);
	pkt.bitmap0 = 1;
	pkt.job = 78;
	len = atp_ctl_write(buf, &pkt, &c);
	EXPECT_EQ(deliver(buf, len, false, 7), ATP_DROP_JOB);
	/* what only a PS says */
	pkt.job = 77;
	for (t = 0; t < 4; t++) {
		static const u8 types[] = {
			ATP_TYPE_WELCOME, ATP_TYPE_ABORT, ATP_TYPE_STATUS,
			ATP_TYPE_PONG,
		};

		pkt.type = types[t];
		len = atp_ctl_write(buf, &pkt, &c);
		EXPECT_EQ(deliver(buf, len, false, 7), ATP_DROP_TYPE);
		expect_nothing();
	}
	EXPECT_EQ(join(2, 0), ATP_DROP_NONCE);
	EXPECT_FALSE(ps.members[2].pending);
}

TEST(leave_quietly)
{
	make_ps(3, 2, 8);
	start_run();
	EXPECT_EQ(leave(1), ATP_OK);
	expect_nothing();
	/* a copy changes nothing, nor does what is no copy */
	EXPECT_EQ(leave(1), ATP_OK);
	expect_nothing();
	EXPECT_EQ(rx_ctl(ATP_TYPE_LEAVE, 0, nonces[1], ps.epoch),
		  ATP_DROP_NONCE);
	EXPECT_EQ(rx_ctl(ATP_TYPE_LEAVE, 1, 0, ps.epoch), ATP_DROP_NONCE);
	EXPECT_TRUE(ps.members[0].joined);
	EXPECT_EQ(leave(0), ATP_OK);
	EXPECT_TRUE(ps.running);
	/* who has left may wait for the next */
	EXPECT_EQ(join(0, 50), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(leave(2), ATP_OK);
	EXPECT_EQ(out.type, 0);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	EXPECT_EQ(out.ended_epoch, ps.epoch);
	EXPECT_FALSE(ps.running);
	EXPECT_EQ(ps.reason, ATP_REASON_NONE);
	EXPECT_EQ(ps.stats.aborts, 0);
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT);
	/* nor is a copy the LEAVE of who waits */
	EXPECT_EQ(leave(0), ATP_DROP_NONCE);
	expect_nothing();
	EXPECT_TRUE(ps.members[0].pending);
}

/* A rank that has left waits while others are still in the run. */
TEST(leave_and_wait)
{
	u32 epoch;

	make_ps(2, 2, 8);
	start_run();
	epoch = ps.epoch;
	leave(0);
	EXPECT_EQ(join(0, 50), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	leave(1);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	EXPECT_EQ(join(1, 51), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_RUN);
	EXPECT_EQ(ps.epoch, epoch + 1);
	/* cells are empty, all starts from zero */
	EXPECT_EQ(ps.frontier, 0);
}

/* Who has joined asks as often as the timeout of then wants it. */
TEST(shorter_timeout_waits)
{
	make_ps(2, 2, 8);
	start_run();
	now += TIMEOUT / 2;
	EXPECT_EQ(ping(0), ATP_OK);
	EXPECT_EQ(ping(1), ATP_OK);
	atp_ps_set_times(&ps, TIMEOUT / 10, 0);
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT);
	atp_ps_set_times(&ps, 2 * TIMEOUT, 0);
	EXPECT_EQ(atp_ps_deadline(&ps), now + 2 * TIMEOUT);
	atp_ps_set_times(&ps, TIMEOUT / 10, 0);
	leave(0);
	EXPECT_EQ(join(0, 50), ATP_OK);
	EXPECT_EQ(atp_ps_deadline(&ps), now + 2 * TIMEOUT);
	/* waits, while nobody is in a run */
	leave(1);
	EXPECT_EQ(join(1, 51), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_RUN);
	EXPECT_EQ(atp_ps_deadline(&ps), now + 2 * TIMEOUT);
	EXPECT_EQ(rx_ctl(ATP_TYPE_LEAVE, 0, 50, ps.epoch), ATP_OK);
	EXPECT_EQ(rx_ctl(ATP_TYPE_LEAVE, 1, 51, ps.epoch), ATP_OK);
	EXPECT_EQ(join(0, 52), ATP_OK);
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT / 10);
}

TEST(left_and_needed)
{
	s32 v[2] = { 1, 2 };

	/* the fragment is there when the LEAVE comes */
	make_ps(3, 2, 8);
	start_run();
	EXPECT_EQ(rx_bits(0, 1, 0, v), ATP_OK);
	EXPECT_EQ(leave(1), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	expect_abort(5, ATP_REASON_LEFT, 2);
	EXPECT_FALSE(ps.running);
	EXPECT_EQ(ctl.nonce, nonces[0]);
	EXPECT_EQ(ps.stats.aborts, 1);

	/* it comes later */
	start_run();
	EXPECT_EQ(leave(1), ATP_OK);
	expect_nothing();
	EXPECT_EQ(rx_bits(0, 4, 0, v), ATP_OK);
	expect_abort(5, ATP_REASON_LEFT, 2);

	/* two have left, and it is not the oldest fragment */
	start_run();
	EXPECT_EQ(leave(1), ATP_OK);
	EXPECT_EQ(leave(0), ATP_OK);
	EXPECT_EQ(rx_bits(3, 4, 0, v), ATP_OK);
	expect_abort(4, ATP_REASON_LEFT, 3);

	/* on the overflow path */
	start_run();
	EXPECT_EQ(rx_bits(5, 3, ATP_F_OVERFLOW, v), ATP_OK);
	EXPECT_EQ(leave(1), ATP_OK);
	expect_abort(5, ATP_REASON_LEFT, 2);
}

TEST(left_and_not_needed)
{
	s32 v[2] = { 1, 2 };

	make_ps(3, 2, 8);
	start_run();
	EXPECT_EQ(rx_bits(0, 7, 0, v), ATP_OK);
	/* its value is there, whoever else is missing */
	EXPECT_EQ(rx_bits(1, 2, 0, v), ATP_OK);
	EXPECT_EQ(leave(1), ATP_OK);
	expect_nothing();
	/* a lost result is had from those who stayed, and of those who left */
	EXPECT_EQ(rx_bits(0, 1, ATP_F_RESEND, v), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	EXPECT_EQ(out.ranks, 1);
	/* fragment 1 has only the value of one who does not wait for it */
	EXPECT_EQ(leave(0), ATP_OK);
	expect_nothing();
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(rx_bits(0, 4, ATP_F_RESEND, v), ATP_OK);
	EXPECT_EQ(out.ranks, 4);
	EXPECT_EQ(leave(2), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	EXPECT_EQ(ps.reason, ATP_REASON_NONE);

	/* who has left need not be told of results */
	start_run();
	EXPECT_EQ(rx_bits(0, 1, 0, v), ATP_OK);
	EXPECT_EQ(rx_bits(0, 2, 0, v), ATP_OK);
	EXPECT_EQ(leave(1), ATP_OK);
	EXPECT_EQ(rx_bits(0, 4, 0, v), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	EXPECT_EQ(out.ranks, 5);
}

TEST(silence)
{
	u64 began;
	u32 i;

	make_ps(3, 2, 8);
	start_run();
	began = now;
	EXPECT_EQ(atp_ps_deadline(&ps), began + TIMEOUT);
	/* early is harmless */
	atp_ps_timeout(&ps, began + TIMEOUT - 1, &out);
	expect_nothing();
	/* a sign of life: PING, data, even what is known already */
	now = began + 100;
	EXPECT_EQ(ping(0), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(out.ranks, 1);
	read_answer(0, false);
	EXPECT_EQ(ctl.nonce, nonces[0]);
	EXPECT_EQ(ans.epoch, ps.epoch);
	EXPECT_EQ(atp_ps_deadline(&ps), began + TIMEOUT);
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_OK);
	now = began + 200;
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_DROP_DUPLICATE);
	EXPECT_EQ(rx_bits(0, 4, 0, NULL), ATP_OK);
	EXPECT_EQ(atp_ps_deadline(&ps), began + 100 + TIMEOUT);
	now = began + 300;
	EXPECT_EQ(ping(0), ATP_OK);
	EXPECT_EQ(atp_ps_deadline(&ps), began + 200 + TIMEOUT);
	/* an aggregate proves nothing of those who did not send it */
	now = began + 400;
	EXPECT_EQ(rx_bits(1, 3, 0, NULL), ATP_OK);
	EXPECT_EQ(atp_ps_deadline(&ps), began + 200 + TIMEOUT);

	now = began + 200 + TIMEOUT;
	atp_ps_timeout(&ps, now, &out);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	expect_abort(7, ATP_REASON_SILENT, 6);
	EXPECT_FALSE(ps.running);
	EXPECT_EQ(ps.reason, ATP_REASON_SILENT);
	EXPECT_EQ(ps.blame, 6);

	/* three times, well within the time that workers give the PS */
	for (i = 1; i < ATP_PS_ABORTS; i++) {
		EXPECT_LE(atp_ps_deadline(&ps), now + TIMEOUT / 4);
		EXPECT_GT(atp_ps_deadline(&ps), now);
		atp_ps_timeout(&ps, atp_ps_deadline(&ps) - 1, &out);
		expect_nothing();
		now = atp_ps_deadline(&ps);
		atp_ps_timeout(&ps, now, &out);
		expect_abort(7, ATP_REASON_SILENT, 6);
		EXPECT_EQ(out.events, 0);
	}
	EXPECT_EQ(atp_ps_deadline(&ps), U64_MAX);
	atp_ps_timeout(&ps, now + TIMEOUT, &out);
	expect_nothing();

	/* and to whoever has not noticed */
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_DROP_EPOCH);
	expect_abort(2, ATP_REASON_SILENT, 6);
	EXPECT_EQ(ctl.nonce, nonces[1]);
	EXPECT_EQ(ping(2), ATP_DROP_EPOCH);
	expect_abort(4, ATP_REASON_SILENT, 6);
	/* nor heard of the run at all */
	EXPECT_EQ(join(0, nonces[0]), ATP_OK);
	expect_abort(1, ATP_REASON_SILENT, 6);
	EXPECT_EQ(ctl.nonce, nonces[0]);

	/* a rank that left is not missed */
	start_run();
	began = now;
	EXPECT_EQ(leave(1), ATP_OK);
	now += TIMEOUT / 2;
	EXPECT_EQ(ping(0), ATP_OK);
	EXPECT_EQ(ping(1), ATP_DROP_STATE);
	EXPECT_EQ(ping(2), ATP_OK);
	atp_ps_timeout(&ps, began + TIMEOUT, &out);
	expect_nothing();
	EXPECT_EQ(rx_ctl(ATP_TYPE_PING, 0, 1, ps.epoch), ATP_DROP_NONCE);
	atp_ps_timeout(&ps, now + TIMEOUT, &out);
	expect_abort(5, ATP_REASON_SILENT, 5);
	/* the LEAVE of one that was told: no more copies for it */
	EXPECT_EQ(leave(0), ATP_OK);
	now = atp_ps_deadline(&ps);
	atp_ps_timeout(&ps, now, &out);
	expect_abort(4, ATP_REASON_SILENT, 5);
}

/* Who asks hears who has left, but for parts that may still be completed. */
TEST(pong_says_who_has_left)
{
	make_ps(3, 2, 8);
	start_run();
	EXPECT_EQ(ping(0), ATP_OK);
	read_answer(0, false);
	EXPECT_EQ(ctl.ranks, 7);
	EXPECT_EQ(ctl.server, 0);
	EXPECT_EQ(rx_bits(3, 4, 0, NULL), ATP_OK);
	EXPECT_EQ(leave(2), ATP_OK);
	EXPECT_EQ(leave(1), ATP_OK);
	EXPECT_EQ(ping(0), ATP_OK);
	read_answer(0, false);
	EXPECT_EQ(ctl.ranks, 5);
	EXPECT_EQ(rx_bits(3, 2, 0, NULL), ATP_OK);
	EXPECT_EQ(ping(0), ATP_OK);
	read_answer(0, false);
	EXPECT_EQ(ctl.ranks, 7);
	EXPECT_EQ(rx_bits(3, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	EXPECT_EQ(ping(0), ATP_OK);
	read_answer(0, false);
	EXPECT_EQ(ctl.ranks, 1);
}

TEST(rejoin)
{
	u32 epoch;

	make_ps(3, 2, 8);
	start_run();
	epoch = ps.epoch;
	/* nobody needs it yet: perhaps its LEAVE was lost at the end */
	EXPECT_EQ(join(1, 70), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(out.events, 0);
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	expect_abort(5, ATP_REASON_REJOIN, 2);
	EXPECT_EQ(ctl.nonce, nonces[0]);
	EXPECT_EQ(ans.epoch, epoch);
	/* it asks again, and hears that the PS lives */
	EXPECT_EQ(join(1, 70), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	/* data of the old process's last moments: its abort is nobody's now */
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_DROP_EPOCH);
	expect_abort(2, ATP_REASON_REJOIN, 2);
	EXPECT_EQ(ctl.nonce, 0);
	/* the others come back */
	EXPECT_EQ(join(0, 71), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(join(2, 72), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
	EXPECT_EQ(out.ranks, 7);
	EXPECT_EQ(ps.epoch, epoch + 1);
	EXPECT_EQ(ps.reason, ATP_REASON_NONE);
	read_answer(1, false);
	EXPECT_EQ(ctl.nonce, 70);
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT);

	/* one that others wait for already */
	make_ps(3, 2, 8);
	start_run();
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(join(1, 70), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	expect_abort(5, ATP_REASON_REJOIN, 2);

	/* alone: one run ends and the next begins */
	make_ps(1, 2, 8);
	start_run();
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_OK);
	epoch = ps.epoch;
	EXPECT_EQ(join(0, 80), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED | ATP_PS_EV_RUN);
	EXPECT_EQ(out.ended_epoch, epoch);
	EXPECT_EQ(out.ended_seq, 1);
	EXPECT_EQ(out.epoch, epoch + 1);
	EXPECT_EQ(out.reason, ATP_REASON_NONE);
	EXPECT_EQ(out.blame, 0);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
	EXPECT_EQ(out.ranks, 1);
	read_answer(0, false);
	EXPECT_EQ(ctl.nonce, 80);
	EXPECT_EQ(ps.stats.runs, 2);
	EXPECT_EQ(ps.stats.aborts, 0);
}

TEST(other_epochs)
{
	struct grad g;
	u32 old;

	make_ps(2, 2, 8);
	/* before any run, even with the number that the first will follow */
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_DROP_EPOCH);
	expect_abort(1, ATP_REASON_EPOCH, 0);
	EXPECT_EQ(ans.epoch, EPOCH);
	start_run();
	old = ps.epoch;
	leave(0);
	leave(1);
	start_run();

	/* of the last run: changes nothing */
	g = grad(0, 1, NULL);
	g.epoch = old;
	EXPECT_EQ(rx(&g), ATP_DROP_EPOCH);
	expect_abort(1, ATP_REASON_EPOCH, 0);
	EXPECT_EQ(ans.epoch, old);
	/* a worker that joins must not take it for its own */
	EXPECT_EQ(ctl.nonce, 0);
	EXPECT_EQ(ps.cells[0].state, ATP_CELL_EMPTY);
	EXPECT_EQ(ps.members[0].heard, now);

	EXPECT_EQ(rx_ctl(ATP_TYPE_PING, 1, 4321, old - 5), ATP_DROP_EPOCH);
	expect_abort(2, ATP_REASON_EPOCH, 0);
	EXPECT_EQ(ans.epoch, old - 5);
	EXPECT_EQ(ctl.nonce, 4321);
	EXPECT_TRUE(ps.running);

	/* nor does one of several ranks get more than one */
	g.bits = 3;
	g.flags = ATP_F_SWITCHED;
	g.sender = 3;
	EXPECT_EQ(rx(&g), ATP_DROP_EPOCH);
	expect_abort(1, ATP_REASON_EPOCH, 0);
	g.bits = 1;
	g.flags = 0;

	/* a stranger's gets no answer */
	g.sender = 2;
	EXPECT_EQ(rx(&g), ATP_DROP_STRANGER);
	expect_nothing();

	/* one that waits for the next run is not hurt by what it sent before */
	leave(0);
	EXPECT_EQ(join(0, 90), ATP_OK);
	g.sender = 1;
	EXPECT_EQ(rx(&g), ATP_DROP_EPOCH);
	read_answer(0, false);
	EXPECT_EQ(ctl.nonce, 0);
}

TEST(nothing_of_the_last_run)
{
	s32 a[2] = { 100, 200 }, b[2] = { 1, 2 };
	u32 i;

	make_ps(2, 2, 4);
	start_run();
	for (i = 0; i < 4; i++)
		EXPECT_EQ(rx_bits(i, 1, ATP_F_SWITCHED | ATP_F_COLLISION, a),
			  ATP_OK);
	EXPECT_EQ(rx_bits(3, 2, ATP_F_OVERFLOW, a), ATP_OK);
	EXPECT_EQ(ps.raw_used, 1);
	start_run();
	EXPECT_EQ(ps.raw_used, 0);
	/* of no rank is known yet whether it is behind a switch */
	EXPECT_EQ(rx_bits(0, 2, ATP_F_OVERFLOW, b), ATP_OK);
	EXPECT_EQ(out.ranks, 3);
	EXPECT_FALSE(out.mcast);
	start_run();
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(rx_bits(i, 2, 0, b), ATP_OK);
		EXPECT_EQ(rx_bits(i, 1, 0, b), ATP_OK);
		EXPECT_EQ(out.ranks, 3);
		EXPECT_FALSE(out.mcast);
		read_answer(0, false);
		EXPECT_EQ(ans.flags, ATP_F_ACK);
		EXPECT_EQ(answer_lane(0), 2);
		EXPECT_EQ(answer_lane(1), 4);
	}
}

TEST(stop)
{
	make_ps(2, 2, 8);
	atp_ps_stop(&ps, &out);
	expect_nothing();

	/* who waits is told, with the nonce that it waits with */
	EXPECT_EQ(join(1, 33), ATP_OK);
	atp_ps_stop(&ps, &out);
	expect_abort(2, ATP_REASON_REMOVED, 0);
	EXPECT_EQ(ctl.nonce, 33);
	EXPECT_EQ(out.events, 0);

	start_run();
	atp_ps_stop(&ps, &out);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	expect_abort(3, ATP_REASON_REMOVED, 0);
	EXPECT_EQ(ctl.nonce, nonces[0]);
	EXPECT_EQ(ans.epoch, ps.epoch);
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_DROP_EPOCH);
	expect_abort(1, ATP_REASON_REMOVED, 0);
}

/* Workers that join, leave, die and restart as they like: what they have been
 * told and what the PS believes never contradict each other.
 */
TEST(random_life)
{
	enum { AWAY, JOINING, IN } state[5] = { AWAY };
	u32 i, r, all, epoch[5] = { 0 };
	u32 runs = 0, fails = 0;
	bool was_running;

	tap_seed(20231);
	make_ps(5, 2, 4);
	for (i = 0; i < 200000; i++) {
		r = tap_below(5);
		now += tap_below(20) * MS;
		was_running = ps.running;
		memset(&out, 0, sizeof(out));
		switch (tap_below(6)) {
		case 0:
		case 1:
			if (state[r] == AWAY) {
				nonces[r] = next_nonce++;
				state[r] = JOINING;
			}
			if (state[r] == JOINING)
				EXPECT_EQ(join(r, nonces[r]), ATP_OK);
			break;
		case 2:
			if (tap_chance(8) && state[r] != AWAY) {
				leave(r);
				state[r] = AWAY;
			}
			break;
		case 3:
			/* dies without a word */
			if (tap_chance(60))
				state[r] = AWAY;
			break;
		case 4:
			if (state[r] == IN)
				rx_ctl(ATP_TYPE_PING, r, nonces[r], epoch[r]);
			break;
		default:
			atp_ps_timeout(&ps, now, &out);
		}
		/* some packets are lost */
		for (r = 0, all = out.ranks; out.type && r < 5; r++) {
			if (!(all & (1U << r)) || tap_chance(5))
				continue;
			read_answer(r, false);
			if (state[r] == JOINING && ctl.nonce == nonces[r]) {
				if (ans.type == ATP_TYPE_WELCOME) {
					state[r] = IN;
					epoch[r] = ans.epoch;
				} else if (ans.type == ATP_TYPE_ABORT) {
					state[r] = AWAY;
				}
			} else if (state[r] == IN && ans.epoch == epoch[r] &&
				   ans.type == ATP_TYPE_ABORT) {
				state[r] = AWAY;
			}
		}
		if (!was_running && ps.running) {
			runs++;
			for (r = 0; r < 5; r++)
				EXPECT_TRUE(ps.members[r].joined);
		}
		fails += was_running && !ps.running;
		for (r = 0; r < 5; r++) {
			EXPECT_FALSE(ps.members[r].joined &&
				     ps.members[r].pending);
			/* nobody is in a run that the PS has yet to begin */
			if (state[r] == IN)
				EXPECT_LE((s32)(epoch[r] - ps.epoch), 0);
			/* who is in the present run is known to be */
			if (state[r] == IN && epoch[r] == ps.epoch &&
			    ps.running)
				EXPECT_TRUE(ps.members[r].joined &&
					    ps.members[r].nonce == nonces[r]);
		}
		EXPECT_TRUE(!ps.running || atp_ps_deadline(&ps) != U64_MAX);
	}
	EXPECT_GT(runs, 100);
	EXPECT_GT(fails, 100);
	printf("# %u runs\n", runs);
}

TAP_MAIN()
