// SPDX-License-Identifier: GPL-2.0
/* The PS: gradients and their sums, rule by rule. */
#include "ps_fixture.h"

TEST(sum_of_three)
{
	static const s32 v[3][5] = {
		{ 1, -5, S32_MAX, 0, 7 },
		{ 10, 5, -1, 0, 8 },
		{ 100, -9, S32_MIN, 0, -16 },
	};
	u32 i;

	make_ps(3, 6, 8);
	start_run();
	for (i = 0; i < 3; i++) {
		struct grad g = grad(0, 1U << i, v[i]);

		g.elements = 5;
		g.flags = ATP_F_LAST;
		g.cap = 300 - i;
		EXPECT_EQ(rx(&g), ATP_OK);
		if (i < 2)
			expect_nothing();
	}
	expect_complete(7, 0);
	EXPECT_FALSE(out.mcast);
	for (i = 0; i < 3; i++) {
		read_answer(i, false);
		EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_LAST);
		EXPECT_EQ(ans.epoch, ps.epoch);
		EXPECT_EQ(ans.seq, 0);
		EXPECT_EQ(ans.elements, 5);
		EXPECT_EQ(ans.dtype, ATP_INT32);
		EXPECT_EQ(ans.bitmap0, 7);
		EXPECT_EQ(ans.index, 1000);
		EXPECT_EQ(ans.cap, 298);
		EXPECT_EQ(answer_lane(0), 111);
		EXPECT_EQ(answer_lane(1), -9);
		EXPECT_EQ(answer_lane(2), -2);
		EXPECT_EQ(answer_lane(3), 0);
		EXPECT_EQ(answer_lane(4), -1);
		/* padding */
		EXPECT_EQ(answer_lane(5), 0);
	}
	EXPECT_EQ(ps.frontier, 1);
	EXPECT_EQ(ps.stats.completed, 1);
	EXPECT_EQ(ps.stats.ps_frags, 2);
	EXPECT_EQ(ps.stats.switch_frags, 0);
}

TEST(who_may_send_what)
{
	struct grad g;

	make_ps(4, 6, 8);
	start_run();
	/* from the address of one who is in it */
	g = grad(0, 6, NULL);
	g.sender = 1;
	EXPECT_EQ(rx(&g), ATP_DROP_STRANGER);
	g.sender = 0;
	EXPECT_EQ(rx(&g), ATP_DROP_STRANGER);
	expect_nothing();
	EXPECT_EQ(cell_of(0)->state, ATP_CELL_EMPTY);
	g.sender = 4;
	EXPECT_EQ(rx(&g), ATP_OK);
	g.sender = 2;
	EXPECT_EQ(rx(&g), ATP_DROP_DUPLICATE);

	g = grad(1, 1, NULL);
	g.fanin = 5;
	EXPECT_EQ(rx(&g), ATP_DROP_FANIN);
	g.fanin = 3;
	EXPECT_EQ(rx(&g), ATP_DROP_FANIN);
	/* a full fragment, or the last one of its chunk */
	g = grad(1, 1, NULL);
	g.elements = 5;
	EXPECT_EQ(rx(&g), ATP_DROP_ELEMENTS);
	g.elements = 7;
	g.flags = ATP_F_LAST;
	EXPECT_EQ(rx(&g), ATP_DROP_ELEMENTS);
	g.elements = 1;
	EXPECT_EQ(rx(&g), ATP_OK);
	/* not from a PS */
	g = grad(2, 1, NULL);
	g.flags = ATP_F_ACK;
	EXPECT_EQ(rx(&g), ATP_DROP_TYPE);
	EXPECT_EQ(ps.raw_used, 0);
}

/* Each first bitmap with each second one, by rules in words */
TEST(bitmap_rules)
{
	static s32 v[1] = { 0 }, w[1] = { 0 };
	u32 a, b, k, due_sum, due_bits;
	enum atp_drop due, got;

	for (a = 1; a < 15; a++) {
		for (b = 1; b < 16; b++) {
			make_ps(4, 2, 8);
			start_run();
			/* rank r has 10^r; a wrong addition is seen */
			v[0] = 0;
			w[0] = 0;
			for (k = 0, due_sum = 1; k < 4; k++, due_sum *= 10) {
				v[0] += a & (1U << k) ? due_sum : 0;
				w[0] += b & (1U << k) ? due_sum : 0;
			}
			struct grad g = grad(0, a, v);

			g.elements = 1;
			g.flags = ATP_F_LAST;
			ASSERT_EQ(rx(&g), ATP_OK);
			g.bits = b;
			g.sender = 1U << __ffs(b);
			g.lanes = w;
			got = rx(&g);
			if (!(a & b)) {
				due = ATP_OK;
				due_bits = a | b;
				due_sum = v[0] + w[0];
			} else if ((a & b) == b) {
				due = ATP_DROP_DUPLICATE;
				due_bits = a;
				due_sum = v[0];
			} else if ((a & b) == a) {
				due = ATP_OK;
				due_bits = b;
				due_sum = w[0];
			} else {
				due = ATP_DROP_OVERLAP;
				due_bits = a;
				due_sum = v[0];
			}
			EXPECT_EQ(got, due);
			EXPECT_EQ(cell_of(0)->bitmap, due_bits);
			EXPECT_EQ(cell_of(0)->value[0], due_sum);
			EXPECT_EQ(!!(out.events & ATP_PS_EV_COMPLETE),
				  due == ATP_OK && due_bits == 15);
			EXPECT_EQ(cell_of(0)->state, due_bits == 15 ?
				  ATP_CELL_COMPLETE : ATP_CELL_SUMMING);
		}
	}
}

/* [F - W, F + W), and nothing before the first fragment of the run */
TEST(window_bounds)
{
	u32 f, i;
	s32 d;

	make_ps(2, 2, 8);
	start_run();
	for (d = -20; d < 0; d++) {
		EXPECT_EQ(rx_bits(d, 1, ATP_F_RESEND, NULL), ATP_DROP_OLD);
		expect_nothing();
	}
	for (f = 0; f < 40; f++) {
		EXPECT_EQ(ps.frontier, f);
		for (d = -20; d < 20; d++) {
			i = f + d;
			if (d >= 8)
				EXPECT_EQ(rx_bits(i, 1, 0, NULL),
					  ATP_DROP_FUTURE);
			else if (d < -8 || (s32)i < 0)
				EXPECT_EQ(rx_bits(i, 1, ATP_F_RESEND, NULL),
					  ATP_DROP_OLD);
			else if (d < 0)
				EXPECT_EQ(rx_bits(i, 1, ATP_F_RESEND, NULL),
					  ATP_OK);
			else
				EXPECT_EQ(rx_bits(i, 1, 0, NULL),
					  !f || d == 7 ? ATP_OK :
					  ATP_DROP_DUPLICATE);
			/* an answer only to who may need it */
			EXPECT_EQ(out.type, d < 0 && d >= -8 && (s32)i >= 0 ?
				  ATP_TYPE_DATA : 0);
		}
		EXPECT_EQ(rx_bits(f, 2, 0, NULL), ATP_OK);
	}
}

TEST(out_of_order)
{
	make_ps(2, 2, 4);
	start_run();
	complete(2);
	EXPECT_EQ(ps.frontier, 0);
	complete(3);
	complete(1);
	EXPECT_EQ(ps.frontier, 0);
	EXPECT_EQ(rx_bits(4, 1, 0, NULL), ATP_DROP_FUTURE);
	complete(0);
	EXPECT_EQ(ps.frontier, 4);
	EXPECT_EQ(rx_bits(7, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(8, 1, 0, NULL), ATP_DROP_FUTURE);
	EXPECT_EQ(rx_bits(0, 1, ATP_F_RESEND, NULL), ATP_OK);
	/* fragment 8 takes the cell of fragment 0, with nothing of it */
	complete(4);
	EXPECT_EQ(rx_bits(8, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(cell_of(8)->bitmap, 1);
	EXPECT_EQ(rx_bits(0, 1, ATP_F_RESEND, NULL), ATP_DROP_OLD);
}

TEST(sequence_wraps)
{
	s32 v[2] = { 3, 4 };
	u32 i, seq;

	make_ps(2, 2, 4);
	start_run();
	ps.frontier = -6;
	for (i = 0; i < 12; i++) {
		seq = i - 6;
		EXPECT_EQ(rx_bits(seq + 4, 1, 0, v), ATP_DROP_FUTURE);
		EXPECT_EQ(rx_bits(seq, 1, 0, v), ATP_OK);
		EXPECT_EQ(rx_bits(seq, 2, 0, v), ATP_OK);
		expect_complete(3, seq);
		read_answer(0, false);
		EXPECT_EQ(ans.seq, seq);
		EXPECT_EQ(answer_lane(1), 8);
		EXPECT_EQ(ps.frontier, seq + 1);
		if (i >= 4)
			EXPECT_EQ(rx_bits(seq - 3, 2, ATP_F_RESEND, v), ATP_OK);
		if (i >= 5)
			EXPECT_EQ(rx_bits(seq - 4, 2, ATP_F_RESEND, v),
				  ATP_DROP_OLD);
	}
}

TEST(congestion_marks)
{
	struct grad g;
	u32 k;

	/* none; in the header; in IP; in a duplicate */
	for (k = 0; k < 4; k++) {
		make_ps(2, 2, 8);
		start_run();
		g = grad(0, 1, NULL);
		g.flags = k == 1 ? ATP_F_ECN : 0;
		g.ce = k == 2;
		EXPECT_EQ(rx(&g), ATP_OK);
		g.flags = k == 3 ? ATP_F_ECN : 0;
		g.ce = false;
		EXPECT_EQ(rx(&g), ATP_DROP_DUPLICATE);
		EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_OK);
		read_answer(0, false);
		EXPECT_EQ(ans.flags, ATP_F_ACK | (k ? ATP_F_ECN : 0));
		EXPECT_EQ(ps.stats.ecn, !!k);
		/* it belongs to that fragment */
		complete(1);
		read_answer(0, false);
		EXPECT_EQ(ans.flags, ATP_F_ACK);
	}
}

TEST(least_cap)
{
	struct grad g;

	make_ps(3, 2, 8);
	start_run();
	g = grad(0, 1, NULL);
	EXPECT_EQ(rx(&g), ATP_OK);
	g = grad(0, 2, NULL);
	g.cap = 17;
	EXPECT_EQ(rx(&g), ATP_OK);
	g = grad(0, 4, NULL);
	g.cap = 40;
	EXPECT_EQ(rx(&g), ATP_OK);
	read_answer(0, false);
	EXPECT_EQ(ans.cap, 17);
	complete(1);
	read_answer(0, false);
	EXPECT_EQ(ans.cap, ATP_NO_CAP);
}

/* All get the same new index, however late they ask. */
TEST(collision)
{
	u32 first, second, i;

	make_ps(2, 2, 8);
	start_run();
	EXPECT_EQ(rx_bits(0, 1, ATP_F_COLLISION, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_OK);
	read_answer(0, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_COLLISION);
	EXPECT_EQ(ans.index, 1000);
	first = ans.bitmap0;
	EXPECT_NE(first, 3);
	read_answer(1, false);
	EXPECT_EQ(ans.bitmap0, first);
	/* it is none of the indexes that slots begin with */
	for (i = 0; i < 8; i++)
		EXPECT_NE(first, atp_index_hash(77, ps.epoch, 0) + i);

	/* another fragment has another, or none */
	complete(1);
	read_answer(0, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK);
	EXPECT_EQ(ans.bitmap0, 3);
	EXPECT_EQ(rx_bits(2, 3, ATP_F_COLLISION, NULL), ATP_OK);
	read_answer(0, false);
	second = ans.bitmap0;
	EXPECT_NE(second, first);

	EXPECT_EQ(rx_bits(0, 2, ATP_F_RESEND | ATP_F_COLLISION, NULL), ATP_OK);
	read_answer(1, false);
	EXPECT_EQ(ans.bitmap0, first);
	/* a collision after the answer is too late for this fragment */
	EXPECT_EQ(rx_bits(1, 1, ATP_F_RESEND | ATP_F_COLLISION, NULL), ATP_OK);
	read_answer(0, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK);
	EXPECT_EQ(ans.bitmap0, 3);
	EXPECT_EQ(ps.stats.collisions, 4);
}

TEST(behind_a_switch)
{
	make_ps(4, 2, 8);
	start_run();
	/* ranks 1 and 2 come added up, 0 and 3 straight */
	EXPECT_EQ(rx_bits(0, 6, ATP_F_SWITCHED, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(0, 8, 0, NULL), ATP_OK);
	expect_complete(9, 0);
	EXPECT_TRUE(out.mcast);
	EXPECT_EQ(out.mcast_rank, 1);
	read_answer(1, true);
	EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_MCAST);
	read_answer(0, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK);
	EXPECT_EQ(ps.stats.switch_frags, 1);
	EXPECT_EQ(ps.stats.ps_frags, 2);

	/* a lost answer is had alone */
	EXPECT_EQ(rx_bits(0, 4, ATP_F_RESEND | ATP_F_SWITCHED, NULL), ATP_OK);
	EXPECT_EQ(out.ranks, 4);
	EXPECT_FALSE(out.mcast);
	read_answer(2, false);
	EXPECT_EQ(ans.flags, ATP_F_ACK);

	/* the switch is gone for rank 1: the last packet counts */
	EXPECT_EQ(rx_bits(1, 2, ATP_F_RESEND, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(1, 12, ATP_F_SWITCHED, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(1, 1, 0, NULL), ATP_OK);
	expect_complete(3, 1);
	EXPECT_TRUE(out.mcast);
	EXPECT_EQ(out.mcast_rank, 2);

	/* who has left is no address for it */
	EXPECT_EQ(rx_bits(2, 4, 0, NULL), ATP_OK);
	EXPECT_EQ(leave(2), ATP_OK);
	EXPECT_EQ(rx_bits(2, 1, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(2, 2, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(2, 8, 0, NULL), ATP_OK);
	expect_complete(11, 2);
	EXPECT_FALSE(out.mcast);
	EXPECT_EQ(rx_bits(3, 15, ATP_F_SWITCHED, NULL), ATP_OK);
	expect_complete(0, 3);
	EXPECT_TRUE(out.mcast);
	EXPECT_EQ(out.mcast_rank, 0);
	EXPECT_EQ(ps.stats.completed, 4);
	EXPECT_EQ(ps.stats.switch_frags + ps.stats.ps_frags, 4 * 3);
}

/* What is outside every window says nothing about its sender's path, nor that
 * the sender lives: it is a late copy, or nobody has sent it.
 */
TEST(refused_say_nothing)
{
	u64 heard;
	u32 seq;

	make_ps(2, 2, 4);
	start_run();
	for (seq = 0; seq < 6; seq++) {
		EXPECT_EQ(rx_bits(seq, 1, 0, NULL), ATP_OK);
		EXPECT_EQ(rx_bits(seq, 2, 0, NULL), ATP_OK);
	}
	heard = ps.members[0].heard;
	now += TIMEOUT / 2;
	EXPECT_EQ(rx_bits(1, 1, ATP_F_SWITCHED, NULL), ATP_DROP_OLD);
	EXPECT_EQ(rx_bits(10, 1, ATP_F_SWITCHED, NULL), ATP_DROP_FUTURE);
	EXPECT_EQ(ps.members[0].heard, heard);
	EXPECT_FALSE(ps.members[0].switched);
	/* one within it does, even if its values are known */
	EXPECT_EQ(rx_bits(5, 1, ATP_F_SWITCHED, NULL), ATP_DROP_DUPLICATE);
	EXPECT_EQ(ps.members[0].heard, now);
	EXPECT_TRUE(ps.members[0].switched);
}

TAP_MAIN()
