// SPDX-License-Identifier: GPL-2.0
/* The PS: joining, and how runs begin. */
#include "ps_fixture.h"

TEST(join_begins_run)
{
	u32 i;

	make_ps(3, 10, 8);
	EXPECT_FALSE(ps.running);
	EXPECT_EQ(atp_ps_deadline(&ps), U64_MAX);

	EXPECT_EQ(join(2, 22), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(out.ranks, 4);
	read_answer(2, false);
	EXPECT_EQ(ctl.nonce, 22);
	EXPECT_EQ(ctl.ranks, 4);
	EXPECT_EQ(ans.bitmap0, 4);

	EXPECT_EQ(join(0, 20), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	read_answer(0, false);
	EXPECT_EQ(ctl.nonce, 20);
	EXPECT_EQ(ctl.ranks, 5);
	/* again, as nobody has answered */
	EXPECT_EQ(join(2, 22), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_FALSE(ps.running);

	EXPECT_EQ(join(1, 21), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
	EXPECT_EQ(out.ranks, 7);
	EXPECT_EQ(out.events, ATP_PS_EV_RUN);
	EXPECT_TRUE(ps.running);
	for (i = 0; i < 3; i++) {
		read_answer(i, false);
		EXPECT_EQ(ctl.nonce, 20 + i);
		EXPECT_EQ(ctl.ranks, 7);
		EXPECT_EQ(ctl.workers, 3);
		EXPECT_EQ(ctl.fragment, 40);
		EXPECT_EQ(ctl.window, 8);
		EXPECT_EQ(ctl.scale, SCALE);
		EXPECT_EQ(ans.epoch, EPOCH + 1);
		EXPECT_EQ(ans.bitmap0, 1U << i);
	}
	EXPECT_EQ(ps.stats.runs, 1);

	/* a lost WELCOME: the same to that one alone */
	EXPECT_EQ(join(1, 21), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
	EXPECT_EQ(out.ranks, 2);
	EXPECT_EQ(out.events, 0);
	read_answer(1, false);
	EXPECT_EQ(ctl.nonce, 21);
	EXPECT_EQ(ans.epoch, EPOCH + 1);
}

TEST(join_of_one)
{
	make_ps(1, 2, 2);
	start_run();
	EXPECT_EQ(out.ranks, 1);
	EXPECT_EQ(leave(0), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	start_run();
	EXPECT_EQ(ps.epoch, 0);
}

TEST(join_of_thirty_two)
{
	make_ps(32, 2, 2);
	start_run();
	EXPECT_EQ(out.ranks, 0xffffffff);
}

TEST(join_mismatch)
{
	struct atp_params real;
	u32 i;

	make_ps(3, 10, 8);
	real = params;
	for (i = 0; i < 4; i++) {
		/* what the worker believes */
		params.workers += i == 0;
		params.fragment += i == 1 ? 8 : 0;
		params.window *= i == 2 ? 2 : 1;
		params.scale -= i == 3;
		EXPECT_EQ(join(1, 5), ATP_DROP_MISMATCH);
		params = real;
		expect_abort(2, ATP_REASON_MISMATCH, 2);
		EXPECT_EQ(ctl.nonce, 5);
		EXPECT_FALSE(ps.members[1].pending);
	}
	start_run();
	params.scale = 1;
	EXPECT_EQ(join(1, 6), ATP_DROP_MISMATCH);
	params = real;
	expect_abort(2, ATP_REASON_MISMATCH, 2);
	EXPECT_TRUE(ps.running);
	EXPECT_TRUE(ps.members[1].joined);
}

/* Others that wait for the one that is configured otherwise are told, too. */
TEST(mismatch_ends_the_waiting)
{
	struct atp_params real;

	make_ps(3, 10, 8);
	real = params;
	EXPECT_EQ(join(0, 5), ATP_OK);
	EXPECT_EQ(join(2, 6), ATP_OK);
	params.scale = 1;
	EXPECT_EQ(join(1, 7), ATP_DROP_MISMATCH);
	params = real;
	expect_abort(2, ATP_REASON_MISMATCH, 2);
	/* when they repeat their JOIN, however often an answer is lost */
	EXPECT_EQ(join(0, 5), ATP_DROP_MISMATCH);
	expect_abort(1, ATP_REASON_MISMATCH, 2);
	EXPECT_EQ(ctl.nonce, 5);
	EXPECT_EQ(join(0, 5), ATP_DROP_MISMATCH);
	expect_abort(1, ATP_REASON_MISMATCH, 2);
	EXPECT_EQ(join(2, 6), ATP_DROP_MISMATCH);
	expect_abort(4, ATP_REASON_MISMATCH, 2);
	/* it is mended, in whatever order they come again */
	EXPECT_EQ(join(0, 8), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(join(1, 9), ATP_OK);
	/* not with one that was told, unless it comes again */
	EXPECT_EQ(join(2, 6), ATP_DROP_MISMATCH);
	EXPECT_FALSE(ps.running);
	EXPECT_EQ(join(2, 10), ATP_OK);
	EXPECT_TRUE(ps.running);
	/* a run is nobody's business but its members' */
	params.scale = 1;
	EXPECT_EQ(join(1, 11), ATP_DROP_MISMATCH);
	params = real;
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(join(2, 10), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
}

/* The one that is configured otherwise came first. */
TEST(mismatch_before_the_others)
{
	struct atp_params real;
	u64 began;
	u32 i;

	make_ps(3, 10, 8);
	real = params;
	params.scale = 1;
	EXPECT_EQ(join(1, 7), ATP_DROP_MISMATCH);
	params = real;
	/* however late; whoever was told and comes again waits as long */
	for (i = 0; i < 3; i++) {
		now += i * TIMEOUT;
		began = now;
		EXPECT_EQ(join(0, 20 + i), ATP_OK);
		EXPECT_EQ(out.type, ATP_TYPE_PONG);
		now = began + TIMEOUT - 1;
		EXPECT_EQ(join(0, 20 + i), ATP_OK);
		EXPECT_EQ(out.type, ATP_TYPE_PONG);
		EXPECT_EQ(join(2, 30 + i), ATP_OK);
		EXPECT_EQ(out.type, ATP_TYPE_PONG);
		now = began + TIMEOUT;
		EXPECT_EQ(join(0, 20 + i), ATP_DROP_MISMATCH);
		expect_abort(1, ATP_REASON_MISMATCH, 2);
		EXPECT_EQ(join(2, 30 + i), ATP_OK);
		EXPECT_EQ(out.type, ATP_TYPE_PONG);
		now = began + 2 * TIMEOUT - 1;
		EXPECT_EQ(join(2, 30 + i), ATP_DROP_MISMATCH);
		expect_abort(4, ATP_REASON_MISMATCH, 2);
	}
	EXPECT_EQ(join(0, 8), ATP_OK);
	now += TIMEOUT / 2;
	EXPECT_EQ(join(0, 8), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	/* in time, and mended in time */
	params.scale = 1;
	EXPECT_EQ(join(1, 9), ATP_DROP_MISMATCH);
	params = real;
	EXPECT_EQ(join(0, 8), ATP_DROP_MISMATCH);
	EXPECT_EQ(join(0, 10), ATP_OK);
	EXPECT_EQ(join(1, 11), ATP_OK);
	now += TIMEOUT - 1;
	EXPECT_EQ(join(0, 10), ATP_OK);
	EXPECT_EQ(join(1, 11), ATP_OK);
	now++;
	EXPECT_EQ(join(0, 10), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(join(2, 12), ATP_OK);
	EXPECT_TRUE(ps.running);
}

/* A JOIN that the network kept, of a run that is over, changes nothing. */
TEST(join_late_copies)
{
	u32 first, second, third;

	make_ps(2, 10, 8);
	start_run();
	first = nonces[1];
	leave(0);
	leave(1);
	late_join(1, first);
	EXPECT_FALSE(ps.members[1].pending);
	start_run();
	second = nonces[1];
	late_join(1, first);
	EXPECT_TRUE(ps.running);
	EXPECT_TRUE(ps.members[1].joined);
	/* it has left: its own JOIN does not bring it back */
	EXPECT_EQ(leave(1), ATP_OK);
	late_join(1, second);
	expect_nothing();
	EXPECT_FALSE(ps.members[1].pending);
	/* it waits, gives up, and starts again */
	EXPECT_EQ(join(1, 500), ATP_OK);
	EXPECT_EQ(rx_ctl(ATP_TYPE_LEAVE, 1, 500, 0), ATP_OK);
	EXPECT_FALSE(ps.members[1].pending);
	late_join(1, 500);
	EXPECT_FALSE(ps.members[1].pending);
	/* the LEAVE of the one that it replaced was lost */
	EXPECT_EQ(join(1, 501), ATP_OK);
	EXPECT_EQ(join(1, 502), ATP_OK);
	late_join(1, 501);
	EXPECT_EQ(ps.members[1].pending_nonce, 502);
	/* and its late LEAVE is not the new one's */
	EXPECT_EQ(rx_ctl(ATP_TYPE_LEAVE, 1, 501, 0), ATP_DROP_NONCE);
	EXPECT_EQ(rx_ctl(ATP_TYPE_LEAVE, 1, second, 0), ATP_DROP_NONCE);
	EXPECT_TRUE(ps.members[1].pending);
	third = 502;
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(leave(0), ATP_OK);
	EXPECT_EQ(join(0, 600), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
	EXPECT_EQ(ps.members[1].nonce, third);
	/* neither the last run's nor the one that never had a run */
	late_join(1, second);
	late_join(1, 501);
	EXPECT_TRUE(ps.running);
	EXPECT_TRUE(ps.members[1].joined);
}

/* However many runs ago the network got it. */
TEST(join_copies_of_long_ago)
{
	u32 first, i;

	make_ps(2, 10, 8);
	start_run();
	first = nonces[1];
	for (i = 0; i < 5; i++) {
		leave(0);
		leave(1);
		start_run();
	}
	late_join(1, first);
	EXPECT_TRUE(ps.running);
	EXPECT_TRUE(ps.members[1].joined);
	EXPECT_FALSE(ps.members[1].pending);
	leave(0);
	leave(1);

	/* nor does it take the place of the one that waits */
	EXPECT_EQ(join(1, 900), ATP_OK);
	late_join(1, first);
	EXPECT_EQ(ps.members[1].pending_nonce, 900);
	EXPECT_EQ(join(1, 900), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	late_join(1, first);
	EXPECT_EQ(join(0, 901), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
	EXPECT_EQ(ps.members[1].nonce, 900);
	leave(0);
	leave(1);

	/* or of one that was given up and begun again without a run */
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(join(1, 910 + i), ATP_OK);
		EXPECT_EQ(rx_ctl(ATP_TYPE_LEAVE, 1, 910 + i, 0), ATP_OK);
	}
	late_join(1, 910);
	EXPECT_FALSE(ps.members[1].pending);
}

/* It is mended and on its way, though it has yet to hear its ticket. */
TEST(mismatch_mended_in_time)
{
	struct atp_params real;

	make_ps(2, 10, 8);
	real = params;
	params.scale = 1;
	EXPECT_EQ(join(1, 5), ATP_DROP_MISMATCH);
	params = real;
	EXPECT_EQ(join(0, 6), ATP_OK);
	now += TIMEOUT - 1;
	EXPECT_EQ(join(0, 6), ATP_OK);
	now++;
	EXPECT_EQ(rx_ctl(ATP_TYPE_JOIN, 1, 7, 0), ATP_OK);
	EXPECT_EQ(join(0, 6), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(join(1, 7), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
}

/* Once it is mended, what it said before does not refuse the others again. */
TEST(mismatch_late_copies)
{
	struct atp_params real;

	make_ps(2, 10, 8);
	real = params;
	params.scale = 1;
	EXPECT_EQ(join(1, 5), ATP_DROP_MISMATCH);
	EXPECT_EQ(join(0, 6), ATP_DROP_MISMATCH);
	late_join(1, 5);
	params = real;
	EXPECT_EQ(join(0, 7), ATP_OK);
	params.scale = 1;
	late_join(1, 5);
	params = real;
	EXPECT_TRUE(ps.members[0].pending);
	EXPECT_EQ(join(1, 8), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
}

/* No run with a worker that died while it waited, nor do others wait for it. */
TEST(join_is_forgotten)
{
	u64 began;

	make_ps(3, 10, 8);
	EXPECT_EQ(atp_ps_deadline(&ps), U64_MAX);
	began = now;
	EXPECT_EQ(join(0, 1), ATP_OK);
	EXPECT_EQ(atp_ps_deadline(&ps), began + TIMEOUT);
	now = began + TIMEOUT - 1;
	EXPECT_EQ(join(0, 1), ATP_OK);
	EXPECT_EQ(join(1, 2), ATP_OK);
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT);
	now = began + TIMEOUT + 1;
	EXPECT_EQ(join(1, 2), ATP_OK);
	/* early is harmless */
	atp_ps_timeout(&ps, began + 2 * TIMEOUT - 2, &out);
	expect_nothing();
	EXPECT_EQ(atp_ps_pending(&ps), 3);

	now = began + 2 * TIMEOUT - 1;
	atp_ps_timeout(&ps, now, &out);
	expect_nothing();
	EXPECT_EQ(atp_ps_pending(&ps), 0);
	EXPECT_EQ(atp_ps_deadline(&ps), U64_MAX);
	/* told when it asks again, however often an answer is lost */
	EXPECT_EQ(join(1, 2), ATP_OK);
	expect_abort(2, ATP_REASON_SILENT, 1);
	EXPECT_EQ(ctl.nonce, 2);
	EXPECT_EQ(join(1, 2), ATP_OK);
	expect_abort(2, ATP_REASON_SILENT, 1);
	/* who comes now waits, and so does who comes again */
	EXPECT_EQ(join(2, 3), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(join(1, 4), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	read_answer(1, false);
	EXPECT_EQ(ctl.ranks, 6);
	EXPECT_EQ(join(0, 5), ATP_OK);
	EXPECT_TRUE(ps.running);
}

/* The timer is late: nevertheless it is found, by whoever comes. */
TEST(join_is_forgotten_late)
{
	make_ps(2, 10, 8);
	EXPECT_EQ(join(0, 1), ATP_OK);
	now += TIMEOUT;
	EXPECT_EQ(join(1, 2), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_FALSE(ps.running);
	read_answer(1, false);
	EXPECT_EQ(ctl.ranks, 2);
	now += TIMEOUT - 1;
	EXPECT_EQ(join(0, 3), ATP_OK);
	EXPECT_TRUE(ps.running);
}

/* The one that is just heard of is not dead, however late that is. */
TEST(join_is_heard_late)
{
	make_ps(2, 10, 8);
	EXPECT_EQ(join(0, 1), ATP_OK);
	now += TIMEOUT / 2;
	EXPECT_EQ(join(1, 2), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
	make_ps(3, 10, 8);
	EXPECT_EQ(join(0, 1), ATP_OK);
	now += TIMEOUT / 2;
	EXPECT_EQ(join(1, 2), ATP_OK);
	now += TIMEOUT;
	EXPECT_EQ(join(0, 1), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_ABORT);
	make_ps(3, 10, 8);
	EXPECT_EQ(join(0, 1), ATP_OK);
	now += TIMEOUT;
	EXPECT_EQ(join(0, 1), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(atp_ps_pending(&ps), 1);
}

/* Several at once, one of which had a run going on without it */
TEST(join_several_are_forgotten)
{
	make_ps(4, 10, 8);
	start_run();
	EXPECT_EQ(leave(2), ATP_OK);
	EXPECT_EQ(join(2, 50), ATP_OK);
	EXPECT_EQ(leave(3), ATP_OK);
	EXPECT_EQ(join(3, 51), ATP_OK);
	now += TIMEOUT / 2;
	EXPECT_EQ(ping(0), ATP_OK);
	EXPECT_EQ(ping(1), ATP_OK);
	EXPECT_EQ(join(3, 51), ATP_OK);
	now += TIMEOUT / 2;
	atp_ps_timeout(&ps, now, &out);
	/* the run is not concerned */
	expect_nothing();
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(join(3, 51), ATP_OK);
	expect_abort(8, ATP_REASON_SILENT, 4);
	EXPECT_EQ(ping(0), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_PONG);
	EXPECT_EQ(leave(0), ATP_OK);
	EXPECT_EQ(leave(1), ATP_OK);
	EXPECT_FALSE(ps.running);

	EXPECT_EQ(join(0, 60), ATP_OK);
	EXPECT_EQ(join(1, 61), ATP_OK);
	EXPECT_EQ(join(2, 62), ATP_OK);
	now += TIMEOUT - 1;
	EXPECT_EQ(join(1, 61), ATP_OK);
	now += 1;
	atp_ps_timeout(&ps, now, &out);
	EXPECT_EQ(join(1, 61), ATP_OK);
	expect_abort(2, ATP_REASON_SILENT, 5);
}

/* One that was refused goes away: its LEAVE is nothing strange. */
TEST(leave_of_the_refused)
{
	make_ps(2, 10, 8);
	nonces[1] = 2;
	EXPECT_EQ(join(0, 1), ATP_OK);
	now += TIMEOUT - 1;
	EXPECT_EQ(join(1, 2), ATP_OK);
	now += 1;
	atp_ps_timeout(&ps, now, &out);
	EXPECT_EQ(atp_ps_pending(&ps), 0);
	EXPECT_EQ(leave(1), ATP_OK);
	EXPECT_EQ(leave(1), ATP_OK);
	expect_nothing();
	late_join(1, 2);
}

/* It was not dead: the network has kept its JOINs from the PS. */
TEST(join_after_it_was_forgotten)
{
	make_ps(2, 10, 8);
	EXPECT_EQ(join(0, 1), ATP_OK);
	now += TIMEOUT;
	EXPECT_EQ(join(1, 2), ATP_OK);
	EXPECT_FALSE(ps.running);
	/* a copy is none the less one */
	late_join(0, 1);
	EXPECT_FALSE(ps.running);
	EXPECT_EQ(join(0, 1), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
	EXPECT_EQ(ps.members[0].nonce, 1);
}

TAP_MAIN()
