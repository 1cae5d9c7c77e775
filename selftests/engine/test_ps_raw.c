// SPDX-License-Identifier: GPL-2.0
/* The PS: sums that do not fit, the way by raw values and the room for them. */
#include "ps_fixture.h"

#define RAW	(ATP_F_RAW | ATP_F_RESEND)

TEST(sum_that_does_not_fit)
{
	static const s32 v[3][2] = {
		{ 5, S32_MAX }, { 6, 1 }, { 7, -1 },
	};
	u32 i;

	make_ps(3, 2, 8);
	start_run();
	EXPECT_EQ(rx_bits(0, 1, 0, v[0]), ATP_OK);
	EXPECT_EQ(rx_bits(0, 2, 0, v[1]), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_RAW);
	expect_raw_request(7, 0);
	EXPECT_EQ(cell_of(0)->bitmap, 0);
	/* the third did not know: it is told, alone */
	EXPECT_EQ(rx_bits(0, 4, 0, v[2]), ATP_OK);
	expect_raw_request(4, 0);
	EXPECT_EQ(out.events, 0);
	EXPECT_EQ(cell_of(0)->bitmap, 0);

	EXPECT_EQ(rx_bits(0, 2, RAW, v[1]), ATP_OK);
	expect_status(2, 0, 2);
	/* a late copy of what it sent first */
	EXPECT_EQ(rx_bits(0, 2, 0, v[1]), ATP_DROP_DUPLICATE);
	expect_nothing();
	EXPECT_EQ(rx_bits(0, 2, RAW, v[1]), ATP_OK);
	expect_status(7, 0, 2);
	EXPECT_EQ(rx_bits(0, 2, ATP_F_RAW, v[1]), ATP_DROP_DUPLICATE);
	EXPECT_EQ(rx_bits(0, 1, RAW, v[0]), ATP_OK);
	EXPECT_EQ(rx_bits(0, 4, RAW, v[2]), ATP_OK);
	/* all together it does fit: as if nothing had been */
	expect_complete(7, 0);
	for (i = 0; i < 3; i++) {
		read_answer(i, false);
		EXPECT_EQ(ans.flags, ATP_F_ACK);
		EXPECT_EQ(ans.elements, 2);
		EXPECT_EQ(answer_lane(0), 18);
		EXPECT_EQ(answer_lane(1), S32_MAX);
	}
	EXPECT_EQ(ps.raw_used, 0);
	EXPECT_EQ(ps.stats.raw, 1);
	EXPECT_EQ(ps.stats.ps_frags, 2);
	EXPECT_EQ(ps.frontier, 1);
}

/* Every lane is looked at, and both ends of the range. */
TEST(each_lane_and_sign)
{
	s32 a[9], b[9];
	u32 lane, k, i;

	for (lane = 0; lane < 9; lane++) {
		for (k = 0; k < 6; k++) {
			static const struct {
				s32 a, b;
				bool fits;
			} pairs[] = {
				{ S32_MAX, 0, true }, { S32_MAX, 1, false },
				{ S32_MIN, -1, false }, { S32_MIN, 0, true },
				{ S32_MIN, S32_MIN, false },
				{ S32_MIN, S32_MAX, true },
			};

			for (i = 0; i < 9; i++) {
				a[i] = i;
				b[i] = -2 * i;
			}
			a[lane] = pairs[k].a;
			b[lane] = pairs[k].b;
			make_ps(2, 10, 8);
			start_run();
			struct grad g = grad(0, 1, a);

			g.elements = 9;
			g.flags = ATP_F_LAST;
			EXPECT_EQ(rx(&g), ATP_OK);
			g.bits = 2;
			g.sender = 2;
			g.lanes = b;
			EXPECT_EQ(rx(&g), ATP_OK);
			EXPECT_EQ(out.events, pairs[k].fits ?
				  ATP_PS_EV_COMPLETE : ATP_PS_EV_RAW);
		}
	}
}

TEST(integer_overflow)
{
	static const s32 v[2][2] = { { S32_MAX, 4 }, { 1, 5 } };

	make_ps(2, 2, 8);
	start_run();
	/* a switch has seen it */
	EXPECT_EQ(rx_bits(0, 3, ATP_F_OVERFLOW | ATP_F_SWITCHED, NULL), ATP_OK);
	EXPECT_TRUE(out.mcast);
	EXPECT_EQ(out.mcast_rank, 0);
	EXPECT_EQ(out.ranks, 0);
	read_answer(0, true);
	EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_OVERFLOW | ATP_F_MCAST);
	EXPECT_EQ(ans.elements, 0);
	EXPECT_EQ(rx_bits(0, 1, RAW, v[0]), ATP_OK);
	EXPECT_EQ(rx_bits(0, 2, RAW, v[1]), ATP_OK);
	expect_complete(3, 0);
	read_answer(0, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_OVERFLOW);
	EXPECT_EQ(ans.elements, 2);
	EXPECT_EQ(answer_lane(0), S32_MAX);
	EXPECT_EQ(answer_lane(1), 9);
	/* and again for who lost it */
	EXPECT_EQ(rx_bits(0, 2, ATP_F_RESEND | ATP_F_OVERFLOW, NULL), ATP_OK);
	read_answer(1, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_OVERFLOW);
	EXPECT_EQ(ans.elements, 2);
	/* the next one is not concerned */
	complete(1);
	read_answer(0, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK);
}

TEST(raw_values_come_first)
{
	s32 v[2] = { 1, 2 };

	make_ps(3, 2, 8);
	start_run();
	/* rank 1's values do not fit: its first packet says so */
	EXPECT_EQ(rx_bits(0, 1, 0, v), ATP_OK);
	EXPECT_EQ(rx_bits(0, 2, RAW, v), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_RAW);
	expect_raw_request(5, 0);
	EXPECT_EQ(cell_of(0)->bitmap, 2);
	/* raw values are one worker's own */
	struct grad g = grad(0, 1, v);

	g.flags = RAW;
	g.sender = 4;
	EXPECT_EQ(rx(&g), ATP_DROP_STRANGER);
	EXPECT_EQ(cell_of(0)->bitmap, 2);

	/* alone, everything happens at once */
	make_ps(1, 2, 8);
	start_run();
	EXPECT_EQ(rx_bits(0, 1, RAW, v), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_RAW | ATP_PS_EV_COMPLETE);
	read_answer(0, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK);
	EXPECT_EQ(answer_lane(1), 2);
	EXPECT_EQ(ps.raw_used, 0);
}

TEST(float_overflow)
{
	/* 1.0 and 2.0 are scaled; 30 does not fit; 10^30 + 1 - 10^30 is 1 */
	static const u32 v[3][3] = {
		{ 0x3f800000, 0x41f00000, 0x7149f2ca },
		{ 0x40000000, 0x3f800000, 0x3f800000 },
		{ 0x3dcccccd, 0xc1f00000, 0xf149f2ca },
	};
	/* what 1 + 2 + 0.1 is at 10^8, divided again: 310000000 / 10^8 */
	static const u32 due[3] = { 0x40466666, 0x3f800000, 0x3f800000 };
	struct grad g;
	u32 i, k;

	make_ps(3, 4, 8);
	start_run();
	for (i = 0; i < 3; i++) {
		g = grad(0, 1U << i, (const s32 *)v[i]);
		g.elements = 3;
		g.dtype = ATP_FLOAT32;
		g.flags = RAW | ATP_F_LAST;
		EXPECT_EQ(rx(&g), ATP_OK);
	}
	expect_complete(7, 0);
	read_answer(0, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_RAW | ATP_F_LAST);
	EXPECT_EQ(ans.dtype, ATP_FLOAT32);
	for (k = 0; k < 3; k++)
		EXPECT_EQ((u32)answer_lane(k), due[k]);

	/* the first lane alone is the sum that the workers scale back */
	for (i = 0; i < 3; i++) {
		g = grad(1, 1U << i, (const s32 *)v[i]);
		g.elements = 1;
		g.dtype = ATP_FLOAT32;
		g.flags = RAW | ATP_F_LAST;
		EXPECT_EQ(rx(&g), ATP_OK);
	}
	read_answer(0, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_LAST);
	EXPECT_EQ(answer_lane(0), 310000000);
}

/* All slots taken: a newer fragment changes nothing, an older one is first. */
TEST(raw_slots)
{
	s32 big[2] = { S32_MAX, 1 }, one[2] = { 1, 1 };
	u32 i, newest;

	make_ps(2, 2, 32);
	start_run();
	for (i = 0; i < ATP_PS_RAW_SLOTS; i++)
		EXPECT_EQ(rx_bits(10 + i, 1, ATP_F_OVERFLOW, NULL), ATP_OK);
	EXPECT_EQ(ps.raw_used, 0xff);
	newest = 10 + ATP_PS_RAW_SLOTS - 1;

	/* by a flag, by a sum, by raw values: dropped, and nothing is lost */
	EXPECT_EQ(rx_bits(20, 1, ATP_F_OVERFLOW, big), ATP_DROP_RAWFULL);
	expect_nothing();
	EXPECT_EQ(rx_bits(21, 1, RAW, big), ATP_DROP_RAWFULL);
	EXPECT_EQ(rx_bits(22, 1, 0, big), ATP_OK);
	EXPECT_EQ(rx_bits(22, 2, 0, one), ATP_DROP_RAWFULL);
	EXPECT_EQ(cell_of(22)->bitmap, 1);
	EXPECT_EQ(cell_of(22)->state, ATP_CELL_SUMMING);
	EXPECT_EQ(cell_of(22)->value[0], S32_MAX);
	EXPECT_EQ(cell_of(22)->value[1], 1);
	/* who resends hears at least that the PS has not got it */
	EXPECT_EQ(rx_bits(22, 2, ATP_F_RESEND, one), ATP_DROP_RAWFULL);
	expect_status(2, 22, 1);
	for (i = 0; i < ATP_PS_RAW_SLOTS; i++)
		EXPECT_EQ(cell_of(10 + i)->state, ATP_CELL_RAW);

	/* an older fragment takes the newest one's room */
	EXPECT_EQ(rx_bits(newest, 1, RAW, one), ATP_OK);
	EXPECT_EQ(rx_bits(0, 1, ATP_F_OVERFLOW, NULL), ATP_OK);
	expect_raw_request(3, 0);
	EXPECT_EQ(cell_of(newest)->state, ATP_CELL_EMPTY);
	EXPECT_EQ(cell_of(newest - 1)->state, ATP_CELL_RAW);
	EXPECT_EQ(ps.raw_used, 0xff);
	/* which begins anew */
	EXPECT_EQ(rx_bits(newest, 2, 0, one), ATP_OK);
	EXPECT_EQ(cell_of(newest)->bitmap, 2);
	EXPECT_EQ(rx_bits(newest, 1, RAW, one), ATP_DROP_RAWFULL);
	EXPECT_EQ(cell_of(newest)->bitmap, 2);
	/* the oldest gets through */
	EXPECT_EQ(rx_bits(0, 1, RAW, one), ATP_OK);
	EXPECT_EQ(rx_bits(0, 2, RAW, one), ATP_OK);
	expect_complete(3, 0);
	read_answer(0, false);
	EXPECT_EQ(answer_lane(0), 2);
	/* and its room is free again */
	EXPECT_EQ(rx_bits(newest, 1, RAW, one), ATP_OK);
	EXPECT_EQ(rx_bits(newest, 2, RAW, one), ATP_OK);
	expect_complete(3, newest);
	read_answer(0, false);
	EXPECT_EQ(answer_lane(0), 2);
}

/*
 * All fragments of the window on the overflow path, and workers that send
 * nothing but their oldest fragment: still everything completes.
 */
TEST(raw_progress)
{
	s32 one[2] = { 1, 1 };
	u32 r, i, seq;

	make_ps(3, 2, 16);
	start_run();
	for (i = 16; i--; )
		rx_bits(i, 1, ATP_F_OVERFLOW, one);
	for (seq = 0; seq < 200; seq++) {
		EXPECT_EQ(ps.frontier, seq);
		for (r = 0; r < 3; r++)
			rx_bits(seq, 1U << r, RAW, one);
		expect_complete(7, seq);
		/* and somebody keeps all rooms busy ahead of them */
		for (i = 15; i; i--)
			rx_bits(seq + 1 + i, 2, ATP_F_OVERFLOW, one);
	}
}

TAP_MAIN()
