// SPDX-License-Identifier: GPL-2.0
/* The PS: whom the oldest fragment waits for, and how long. */
#include "ps_fixture.h"

#define PATIENCE	(5 * TIMEOUT)

/* Return: ranks that are waited for */
static u32 waits(u64 *since)
{
	struct atp_ps_wait wait;

	if (!atp_ps_waiting(&ps, &wait))
		return 0;
	EXPECT_NE(wait.ranks, 0);
	EXPECT_FALSE(wait.server);
	*since = wait.since;
	return wait.ranks;
}

TEST(waiting)
{
	u64 since = 0, began;

	make_ps(3, 2, 8);
	EXPECT_EQ(waits(&since), 0);
	start_run();
	EXPECT_EQ(waits(&since), 0);
	now += 5;
	began = now;
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_OK);
	now += 5;
	EXPECT_EQ(waits(&since), 5);
	EXPECT_EQ(since, began);
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(waits(&since), 4);
	EXPECT_EQ(since, began);
	EXPECT_EQ(rx_bits(1, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(0, 4, 0, NULL), ATP_OK);
	EXPECT_EQ(waits(&since), 6);
	EXPECT_EQ(since, now);
	EXPECT_EQ(leave(2), ATP_OK);
	EXPECT_FALSE(ps.running);
	EXPECT_EQ(waits(&since), 0);
}

static void begin(u64 patience)
{
	make_ps(3, 4, 8);
	ps.params.patience = patience;
	start_run();
}

/* Time goes by, and all show that they live. */
static void pass(u64 time)
{
	u32 i;

	now += time;
	for (i = 0; i < params.workers; i++) {
		EXPECT_EQ(ping(i), ATP_OK);
		EXPECT_EQ(out.events, 0);
	}
}

static void expect_patience(u64 until)
{
	/* nobody is silent before */
	pass(until - 1 - now);
	atp_ps_timeout(&ps, now, &out);
	EXPECT_EQ(out.type, 0);
	EXPECT_EQ(out.events, 0);
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(atp_ps_deadline(&ps), until);
}

static void expect_late(u32 ranks)
{
	now = atp_ps_deadline(&ps);
	atp_ps_timeout(&ps, now, &out);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	EXPECT_EQ(out.type, ATP_TYPE_ABORT);
	EXPECT_EQ(out.ranks, all_ranks());
	EXPECT_EQ(out.reason, ATP_REASON_LATE);
	EXPECT_EQ(out.blame, ranks);
	EXPECT_FALSE(ps.running);
	read_answer(0, false);
	EXPECT_EQ(ctl.reason, ATP_REASON_LATE);
	EXPECT_EQ(ctl.ranks, ranks);
}

TEST(patience_has_an_end)
{
	u64 began;

	begin(PATIENCE);
	/* nothing was pushed: nobody waits */
	pass(10 * PATIENCE);
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT);
	began = now;
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_OK);
	pass(TIMEOUT / 2);
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_OK);
	/* what comes besides changes nothing */
	EXPECT_EQ(rx_bits(0, 1, ATP_F_RESEND, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(1, 3, 0, NULL), ATP_OK);
	expect_patience(began + PATIENCE);
	expect_late(4);
	/* and it is over */
	start_run();
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT);
}

TEST(patience_for_several)
{
	u64 began;

	begin(PATIENCE);
	began = now;
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_OK);
	expect_patience(began + PATIENCE);
	expect_late(5);
}

/* Who comes late finds that the next fragments are as old as its delay. */
TEST(patience_begins_anew)
{
	u64 began;

	begin(PATIENCE);
	began = now;
	EXPECT_EQ(rx_bits(0, 3, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(1, 3, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(2, 3, 0, NULL), ATP_OK);
	expect_patience(began + PATIENCE);
	EXPECT_EQ(rx_bits(0, 4, 0, NULL), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_COMPLETE);
	began = now;
	pass(TIMEOUT / 2);
	atp_ps_timeout(&ps, now, &out);
	EXPECT_TRUE(ps.running);
	/* a later one counts, too: the oldest was lost on its way */
	EXPECT_EQ(rx_bits(2, 4, 0, NULL), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_COMPLETE);
	began = now;
	expect_patience(began + PATIENCE);
	expect_late(4);
}

TEST(patience_without_end)
{
	begin(0);
	EXPECT_EQ(rx_bits(0, 3, 0, NULL), ATP_OK);
	pass(1000000 * PATIENCE);
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT);
	atp_ps_timeout(&ps, now, &out);
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(rx_bits(0, 4, 0, NULL), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_COMPLETE);
}

/* Those who were asked for the values as pushed are waited for as well. */
TEST(patience_with_overflow)
{
	u64 began;

	begin(PATIENCE);
	began = now;
	EXPECT_EQ(rx_bits(0, 1, ATP_F_OVERFLOW, NULL), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_RAW);
	EXPECT_EQ(rx_bits(0, 4, ATP_F_RAW | ATP_F_RESEND, NULL), ATP_OK);
	expect_patience(began + PATIENCE);
	expect_late(3);
}

/* Death and dispute are told as what they are, though patience ends before. */
TEST(less_patience_than_timeout)
{
	begin(TIMEOUT / 8);
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(0, 2, ATP_F_LAST, NULL), ATP_DROP_DISAGREE);
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT / 4);
	now = atp_ps_deadline(&ps);
	atp_ps_timeout(&ps, now, &out);
	EXPECT_EQ(out.reason, ATP_REASON_DISAGREE);
	EXPECT_EQ(out.blame, 3);

	begin(PATIENCE);
	EXPECT_EQ(rx_bits(0, 3, 0, NULL), ATP_OK);
	now += PATIENCE;
	EXPECT_EQ(ping(0), ATP_OK);
	EXPECT_EQ(ping(1), ATP_OK);
	atp_ps_timeout(&ps, now, &out);
	EXPECT_EQ(out.reason, ATP_REASON_SILENT);
	EXPECT_EQ(out.blame, 4);
}

TAP_MAIN()
