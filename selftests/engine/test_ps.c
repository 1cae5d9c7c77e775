// SPDX-License-Identifier: GPL-2.0
/* The PS: gradients, rule by rule. */
#include "ps_fixture.h"

static struct atp_cell *cell_of(u32 seq)
{
	return &ps.cells[seq % (2 * params.window)];
}

static void expect_status(u32 ranks, u32 seq, u32 bitmap)
{
	EXPECT_EQ(out.type, ATP_TYPE_STATUS);
	EXPECT_EQ(out.ranks, ranks);
	EXPECT_EQ(out.seq, seq);
	EXPECT_FALSE(out.mcast);
	read_answer(__ffs(ranks), false);
	EXPECT_EQ(ans.seq, seq);
	EXPECT_EQ(ans.epoch, ps.epoch);
	EXPECT_EQ(ans.bitmap0, bitmap);
}

static void expect_raw_request(u32 ranks, u32 seq)
{
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	EXPECT_EQ(out.ranks, ranks);
	EXPECT_EQ(out.seq, seq);
	read_answer(__ffs(ranks), false);
	EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_OVERFLOW);
	EXPECT_EQ(ans.elements, 0);
	EXPECT_EQ(ans.seq, seq);
	EXPECT_EQ(ans.index, seq + 1000);
}

static void expect_complete(u32 ranks, u32 seq)
{
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	EXPECT_EQ(out.ranks, ranks);
	EXPECT_EQ(out.seq, seq);
	EXPECT_TRUE(out.events & ATP_PS_EV_COMPLETE);
}

/* Complete a fragment at once, by an aggregate of all. */
static void complete(u32 seq)
{
	ASSERT_EQ(rx_bits(seq, all_ranks(), 0, NULL), ATP_OK);
	ASSERT_TRUE(out.events & ATP_PS_EV_COMPLETE);
}

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

TEST(resends)
{
	struct grad g;

	make_ps(3, 2, 8);
	start_run();
	/* added, and told who is missing */
	EXPECT_EQ(rx_bits(0, 1, ATP_F_RESEND, NULL), ATP_OK);
	expect_status(1, 0, 1);
	/* known: who holds it up is told, too */
	EXPECT_EQ(rx_bits(0, 1, ATP_F_RESEND, NULL), ATP_OK);
	expect_status(7, 0, 1);
	EXPECT_EQ(rx_bits(0, 1, 0, NULL), ATP_DROP_DUPLICATE);
	expect_nothing();
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_OK);
	/* useless, but a question all the same; from rank 2 */
	g = grad(0, 6, NULL);
	g.flags = ATP_F_RESEND;
	g.sender = 4;
	EXPECT_EQ(rx(&g), ATP_DROP_OVERLAP);
	expect_status(4, 0, 3);
	EXPECT_EQ(rx_bits(0, 4, ATP_F_RESEND, NULL), ATP_OK);
	/* rank 1's last came through a switch */
	expect_complete(5, 0);
	EXPECT_TRUE(out.mcast);
	/* complete: the answer again, to the sender alone */
	EXPECT_EQ(rx_bits(0, 2, ATP_F_RESEND, NULL), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	EXPECT_EQ(out.ranks, 2);
	EXPECT_EQ(out.events, 0);
	read_answer(1, false);
	EXPECT_EQ(answer_lane(1), 3);
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_DROP_DUPLICATE);
	expect_nothing();
	/* an aggregate that a resend pushed out of a switch */
	g = grad(0, 7, NULL);
	g.flags = ATP_F_RESEND | ATP_F_SWITCHED;
	g.sender = 2;
	EXPECT_EQ(rx(&g), ATP_OK);
	EXPECT_EQ(out.ranks, 2);
	EXPECT_EQ(ps.stats.cached, 2);
	EXPECT_EQ(ps.stats.resends, 6);
	EXPECT_EQ(ps.stats.completed, 1);
}

/* Who asks again has those asked that hold it up, at the oldest fragment only:
 * then they know that all before it are complete.
 */
TEST(those_who_hold_it_up)
{
	make_ps(4, 2, 8);
	start_run();
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(1, 2, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(1, 2, ATP_F_RESEND, NULL), ATP_OK);
	expect_status(2, 1, 2);
	EXPECT_EQ(rx_bits(0, 2, ATP_F_RESEND, NULL), ATP_OK);
	expect_status(15, 0, 2);
	EXPECT_EQ(rx_bits(0, 1, ATP_F_RESEND, NULL), ATP_OK);
	expect_status(1, 0, 3);
	EXPECT_EQ(rx_bits(0, 2, ATP_F_RESEND, NULL), ATP_OK);
	expect_status(14, 0, 3);
	/* a useless packet that asks nothing */
	EXPECT_EQ(rx_bits(0, 2, 0, NULL), ATP_DROP_DUPLICATE);
	expect_nothing();
	EXPECT_EQ(rx_bits(0, 4, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(0, 8, 0, NULL), ATP_OK);
	expect_complete(15, 0);
	EXPECT_EQ(rx_bits(1, 2, ATP_F_RESEND, NULL), ATP_OK);
	expect_status(15, 1, 2);
	/* on the overflow path likewise */
	EXPECT_EQ(rx_bits(1, 1, ATP_F_OVERFLOW, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(1, 1, ATP_F_RAW, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(1, 1, ATP_F_RAW | ATP_F_RESEND, NULL), ATP_OK);
	expect_status(15, 1, 1);
}

TEST(shared_addresses)
{
	struct grad g;

	make_ps(4, 2, 8);
	start_run();
	address[2] = 1;
	g = grad(0, 6, NULL);
	EXPECT_EQ(g.sender, 6);
	g.flags = ATP_F_RESEND;
	EXPECT_EQ(rx(&g), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_STATUS);
	EXPECT_EQ(out.ranks, 6);
}

/* ----- overflow ----- */

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
