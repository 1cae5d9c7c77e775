// SPDX-License-Identifier: GPL-2.0
/* The PS of a job whose results an application makes. */
#include "ps_fixture.h"

#define ALL	7
#define AGAIN	(ATP_F_RESEND | ATP_F_LAST)

static const s32 one[4] = { 1, 2, 3, 4 };

/* Three workers, four lanes; the application waits. */
static void make(void)
{
	make_ps(3, 4, 8);
	params.server = true;
	ps.params.server = true;
	atp_ps_server_join(&ps, now, &out);
	EXPECT_EQ(out.type, 0);
	EXPECT_EQ(out.events, 0);
}

static void begin(void)
{
	make();
	start_run();
	EXPECT_EQ(out.events, ATP_PS_EV_RUN);
	EXPECT_TRUE(ps.server.joined);
	EXPECT_FALSE(ps.server.pending);
}

/* All have sent a fragment. */
static void sum_up(u32 seq, u32 flags)
{
	EXPECT_EQ(rx_bits(seq, 1, flags, one), ATP_OK);
	EXPECT_EQ(rx_bits(seq, 4, flags, one), ATP_OK);
	EXPECT_EQ(rx_bits(seq, 2, flags, one), ATP_OK);
	EXPECT_EQ(out.type, 0);
	EXPECT_EQ(out.events, ATP_PS_EV_SUM);
}

static struct atp_ps_sum next(u32 elements)
{
	struct atp_ps_sum sum;

	ASSERT_TRUE(atp_ps_sum(&ps, elements, &sum));
	atp_ps_sum_take(&ps, &sum);
	return sum;
}

static bool waits_for_server(void)
{
	struct atp_ps_wait wait;

	if (!atp_ps_waiting(&ps, &wait))
		return false;
	EXPECT_EQ(!wait.ranks, wait.server);
	return wait.server;
}

TEST(run_needs_it)
{
	u32 i;

	make_ps(3, 4, 8);
	params.server = true;
	ps.params.server = true;
	for (i = 0; i < 3; i++) {
		nonces[i] = next_nonce++;
		EXPECT_EQ(join(i, nonces[i]), ATP_OK);
		EXPECT_EQ(out.type, ATP_TYPE_PONG);
	}
	EXPECT_FALSE(ps.running);
	atp_ps_server_join(&ps, now, &out);
	EXPECT_EQ(out.type, ATP_TYPE_WELCOME);
	EXPECT_EQ(out.ranks, ALL);
	EXPECT_EQ(out.events, ATP_PS_EV_RUN);
	/* who asks hears whether it is still there */
	EXPECT_EQ(ping(0), ATP_OK);
	read_answer(0, false);
	EXPECT_EQ(ctl.server, 1);
	atp_ps_server_leave(&ps, now, &out);
	EXPECT_EQ(ping(0), ATP_OK);
	read_answer(0, false);
	EXPECT_EQ(ctl.server, 0);
	/* and it does not wait any more */
	make();
	atp_ps_server_leave(&ps, now, &out);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(join(i, next_nonce++), ATP_OK);
	EXPECT_FALSE(ps.running);
}

/* One host was told of the application, the other was not. */
TEST(mismatch)
{
	make();
	params.server = false;
	EXPECT_EQ(join(1, 5), ATP_DROP_MISMATCH);
	EXPECT_EQ(out.type, ATP_TYPE_ABORT);
	EXPECT_EQ(out.reason, ATP_REASON_MISMATCH);
	EXPECT_EQ(out.blame, 2);
}

TEST(sum_and_result)
{
	static const u32 result[4] = { 0xffffffff, 0x80000000, 7, 0 };
	struct atp_ps_sum sum;
	u32 lanes[8], i;

	begin();
	EXPECT_FALSE(atp_ps_sum(&ps, 100, &sum));
	sum_up(0, 0);
	EXPECT_EQ(rx_bits(2, 7, ATP_F_LAST, one), ATP_OK);
	EXPECT_EQ(out.events, 0);
	sum_up(1, ATP_F_LAST);
	EXPECT_EQ(ps.server.summed, 3);
	EXPECT_EQ(ps.frontier, 0);
	/* as much as fits, but at least a fragment; chunks are not joined */
	ASSERT_TRUE(atp_ps_sum(&ps, 1, &sum));
	EXPECT_EQ(sum.frags, 1);
	EXPECT_EQ(ps.server.ready, 8);
	sum = next(100);
	EXPECT_EQ(sum.first, 0);
	EXPECT_EQ(sum.frags, 2);
	EXPECT_EQ(sum.elements, 8);
	EXPECT_EQ(sum.dtype, ATP_INT32);
	EXPECT_TRUE(sum.last);
	EXPECT_EQ(ps.server.ready, 4);
	EXPECT_EQ(atp_ps_sum_read(&ps, sum.first, lanes), 4);
	EXPECT_EQ(atp_ps_sum_read(&ps, sum.first + 1, lanes + 4), 4);
	for (i = 0; i < 8; i++)
		EXPECT_EQ(lanes[i], 3 * (i % 4 + 1));
	EXPECT_EQ(atp_ps_due(&ps, ps.server.taken, 4), 1);
	EXPECT_EQ(atp_ps_due(&ps, ps.server.taken, 8), 2);
	EXPECT_EQ(atp_ps_due(&ps, ps.server.taken, 5), 0);
	EXPECT_EQ(atp_ps_due(&ps, ps.server.taken, 12), 0);

	EXPECT_EQ(atp_ps_answer(&ps, now, result, &out), 4);
	EXPECT_EQ(ps.frontier, 1);
	EXPECT_EQ(atp_ps_due(&ps, ps.frontier - 1, 4), 0);
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	EXPECT_EQ(out.seq, 0);
	EXPECT_EQ(out.events, ATP_PS_EV_COMPLETE);
	/* now and whenever a worker asks again */
	for (i = 0; i < 2; i++) {
		read_answer(0, false);
		EXPECT_EQ(ans.elements, 4);
		EXPECT_EQ(answer_lane(0), -1);
		EXPECT_EQ(answer_lane(1), S32_MIN);
		EXPECT_EQ(answer_lane(2), 7);
		EXPECT_EQ(rx_bits(0, 1, ATP_F_RESEND, one), ATP_OK);
		EXPECT_EQ(out.ranks, 1);
	}
}

/* Nothing is added to a sum, and who asks hears that all are there. */
TEST(again)
{
	struct atp_ps_sum sum;
	u32 lanes[4];

	begin();
	sum_up(0, ATP_F_LAST);
	EXPECT_EQ(rx_bits(0, 2, ATP_F_LAST, one), ATP_DROP_DUPLICATE);
	EXPECT_EQ(out.type, 0);
	EXPECT_EQ(rx_bits(0, 2, AGAIN, one), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_STATUS);
	EXPECT_EQ(out.ranks, 2);
	read_answer(1, false);
	EXPECT_EQ(ans.bitmap0, ALL);
	EXPECT_EQ(rx_bits(0, 2, AGAIN | ATP_F_RAW, one), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_STATUS);
	EXPECT_EQ(rx_bits(0, 2, AGAIN | ATP_F_OVERFLOW, one), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_STATUS);
	sum = next(4);
	EXPECT_EQ(atp_ps_sum_read(&ps, sum.first, lanes), 4);
	EXPECT_EQ(lanes[0], 3);
	EXPECT_EQ(lanes[3], 12);
}

/* A float32 result goes as it is; the sum is what a worker would have got. */
TEST(floats)
{
	static const u32 result[4] = { 0x7f800001, 1, 0x80000000, 0xdeadbeef };
	struct atp_ps_sum sum;
	struct grad g;
	u32 lanes[4];
	u32 i;

	begin();
	for (i = 0; i < 3; i++) {
		g = grad(0, 1 << i, one);
		g.dtype = ATP_FLOAT32;
		g.flags = ATP_F_LAST;
		EXPECT_EQ(rx(&g), ATP_OK);
	}
	sum = next(4);
	EXPECT_EQ(sum.dtype, ATP_FLOAT32);
	EXPECT_EQ(atp_ps_sum_read(&ps, sum.first, lanes), 4);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(lanes[i], atp_dequantise(3 * one[i], SCALE));
	atp_ps_answer(&ps, now, result, &out);
	read_answer(0, false);
	EXPECT_TRUE(ans.flags & ATP_F_RAW);
	EXPECT_FALSE(ans.flags & ATP_F_OVERFLOW);
	for (i = 0; i < 4; i++)
		EXPECT_EQ((u32)answer_lane(i), result[i]);
}

/* A sum that does not fit int32 is the nearest that does, and workers hear of
 * it with the result.
 */
TEST(overflow)
{
	static const s32 big[4] = { S32_MAX, S32_MIN, 1, 0 };
	struct atp_ps_sum sum;
	u32 lanes[4];
	u32 i;

	begin();
	for (i = 0; i < 3; i++)
		EXPECT_EQ(rx_bits(0, 1 << i, ATP_F_RAW | ATP_F_LAST, big),
			  ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_SUM);
	sum = next(4);
	EXPECT_EQ(atp_ps_sum_read(&ps, sum.first, lanes), 4);
	EXPECT_EQ((s32)lanes[0], S32_MAX);
	EXPECT_EQ((s32)lanes[1], S32_MIN);
	EXPECT_EQ(lanes[2], 3);
	atp_ps_answer(&ps, now, lanes, &out);
	read_answer(0, false);
	EXPECT_TRUE(ans.flags & ATP_F_OVERFLOW);
}

/* It has gone: a fragment that needs it ends the run, present or coming. */
TEST(gone)
{
	u32 i;

	for (i = 0; i < 3; i++) {
		begin();
		if (i == 1)
			sum_up(0, ATP_F_LAST);
		if (i == 2)
			EXPECT_EQ(rx_bits(0, 2, ATP_F_LAST, one), ATP_OK);
		atp_ps_server_leave(&ps, now, &out);
		if (!i) {
			EXPECT_EQ(out.events, 0);
			EXPECT_TRUE(ps.running);
			EXPECT_EQ(rx_bits(0, 2, 0, one), ATP_OK);
		}
		EXPECT_FALSE(ps.running);
		EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
		EXPECT_EQ(out.type, ATP_TYPE_ABORT);
		EXPECT_EQ(out.ranks, ALL);
		EXPECT_EQ(out.reason, ATP_REASON_SERVER);
		EXPECT_EQ(out.blame, 0);
	}
	/* with all answered, workers may still ask, and leave */
	begin();
	sum_up(0, ATP_F_LAST);
	next(4);
	atp_ps_answer(&ps, now, (const u32 *)one, &out);
	atp_ps_server_leave(&ps, now, &out);
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(rx_bits(0, 2, AGAIN, one), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(leave(i), ATP_OK);
	EXPECT_FALSE(ps.running);
	EXPECT_EQ(out.reason, ATP_REASON_NONE);
}

/* The run ends for another reason: it owes nothing and gets nothing. */
TEST(ended)
{
	struct atp_ps_sum sum;

	begin();
	sum_up(0, ATP_F_LAST);
	EXPECT_EQ(rx_bits(1, 1, 0, one), ATP_OK);
	EXPECT_EQ(leave(2), ATP_OK);
	EXPECT_EQ(out.reason, ATP_REASON_LEFT);
	EXPECT_FALSE(ps.server.joined);
	EXPECT_FALSE(atp_ps_sum(&ps, 4, &sum));
	EXPECT_EQ(atp_ps_due(&ps, 1, 4), 0);
}

TEST(waiting)
{
	begin();
	ps.params.patience = 5 * TIMEOUT;
	ps.params.timeout = 100 * TIMEOUT;
	EXPECT_EQ(rx_bits(0, 1, ATP_F_LAST, one), ATP_OK);
	EXPECT_FALSE(waits_for_server());
	now += TIMEOUT;
	EXPECT_EQ(rx_bits(0, 2, ATP_F_LAST, one), ATP_OK);
	EXPECT_EQ(rx_bits(0, 4, ATP_F_LAST, one), ATP_OK);
	EXPECT_TRUE(waits_for_server());
	EXPECT_EQ(rx_bits(1, 1, ATP_F_LAST, one), ATP_OK);
	EXPECT_TRUE(waits_for_server());
	next(4);
	EXPECT_EQ(atp_ps_deadline(&ps), now + 5 * TIMEOUT);
	now += TIMEOUT;
	atp_ps_answer(&ps, now, (const u32 *)one, &out);
	EXPECT_FALSE(waits_for_server());
	EXPECT_EQ(rx_bits(1, 2, ATP_F_LAST, one), ATP_OK);
	EXPECT_EQ(rx_bits(1, 4, ATP_F_LAST, one), ATP_OK);
	now += 5 * TIMEOUT;
	atp_ps_timeout(&ps, now, &out);
	EXPECT_EQ(out.reason, ATP_REASON_LATE);
	EXPECT_EQ(out.blame, 0);
	EXPECT_FALSE(ps.server.joined);
}

TAP_MAIN()
