// SPDX-License-Identifier: GPL-2.0
/* The PS: ranks that push different chunks, and who is named for it. */
#include "ps_fixture.h"

/* Four shapes of fragment 2, each other than the first in one respect */
static enum atp_drop push(u32 ranks, char shape, u32 flags)
{
	struct grad g = grad(2, ranks, NULL);

	g.flags = flags | (shape == 'l' ? 0 : ATP_F_LAST);
	g.dtype = shape == 't' ? ATP_FLOAT32 : ATP_INT32;
	g.elements = shape == 'e' ? 3 : 4;
	return rx(&g);
}

static void expect_end(u32 blame)
{
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	EXPECT_EQ(out.type, ATP_TYPE_ABORT);
	EXPECT_EQ(out.ranks, all_ranks());
	EXPECT_EQ(out.reason, ATP_REASON_DISAGREE);
	EXPECT_EQ(out.blame, blame);
	EXPECT_FALSE(ps.running);
}

static void expect_open(void)
{
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(out.events, 0);
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT / 4);
}

static void begin(u32 workers)
{
	make_ps(workers, 4, 8);
	start_run();
}

/* What comes: ranks and shapes, in this order; who is named at the last */
struct votes {
	u32 workers;
	struct {
		u32 ranks;
		char shape;
	} vote[5];
	u32 blame;
};

static void play(const struct votes *v, const char *shapes)
{
	enum atp_drop drop = ATP_OK;
	bool differs = false;
	char shape;
	u32 i;

	begin(v->workers);
	for (i = 0; i < ARRAY_SIZE(v->vote) && v->vote[i].ranks; i++) {
		if (differs)
			expect_open();
		shape = shapes[v->vote[i].shape - 'A'];
		differs |= v->vote[i].shape != v->vote[0].shape;
		drop = push(v->vote[i].ranks, shape, 0);
	}
	EXPECT_EQ(drop, ATP_DROP_DISAGREE);
	expect_end(v->blame);
	/* and it is over */
	start_run();
	EXPECT_EQ(push(1, 'e', 0), ATP_OK);
	EXPECT_EQ(out.events, 0);
}

TEST(who_is_named)
{
	static const struct votes votes[] = {
		/* two workers: nobody can tell */
		{ 2, { { 0x1, 'A' }, { 0x2, 'B' } }, 0x3 },
		/* one against the rest, whoever comes first */
		{ 3, { { 0x1, 'A' }, { 0x2, 'A' }, { 0x4, 'B' } }, 0x4 },
		{ 3, { { 0x1, 'B' }, { 0x2, 'A' }, { 0x4, 'A' } }, 0x1 },
		{ 3, { { 0x1, 'A' }, { 0x2, 'B' }, { 0x4, 'A' } }, 0x2 },
		{ 4, { { 0x7, 'A' }, { 0x8, 'B' } }, 0x8 },
		{ 4, { { 0x8, 'A' }, { 0x1, 'B' }, { 0x6, 'B' } }, 0x8 },
		/* a majority need not wait for the others */
		{ 5, { { 0x1, 'A' }, { 0x2, 'B' }, { 0x14, 'A' } }, 0x2 },
		{ 32, { { 0x80000000, 'B' }, { 0x1ffff, 'A' } }, 0x80000000 },
		/* halves */
		{ 4, { { 0x3, 'A' }, { 0xc, 'B' } }, 0xf },
		/* more than two kinds */
		{ 3, { { 0x1, 'A' }, { 0x2, 'B' }, { 0x4, 'C' } }, 0x7 },
		{ 4, { { 0x1, 'A' }, { 0x2, 'B' }, { 0x4, 'C' },
		       { 0x8, 'B' } }, 0xf },
		{ 5, { { 0x1, 'A' }, { 0x2, 'B' }, { 0x4, 'C' },
		       { 0x18, 'B' } }, 0x5 },
		{ 5, { { 0x1, 'A' }, { 0x2, 'B' }, { 0x4, 'C' },
		       { 0x18, 'A' } }, 0x6 },
	};
	static const char *const shapes[] = { "lte", "tel", "elx", "xlt" };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(votes); i++)
		for (k = 0; k < ARRAY_SIZE(shapes); k++)
			play(&votes[i], shapes[k]);
}

/* Contradicting oneself needs no votes. */
TEST(one_rank_two_shapes)
{
	begin(4);
	EXPECT_EQ(push(0x2, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x2, 'e', 0), ATP_DROP_DISAGREE);
	expect_end(0x2);
	start_run();
	EXPECT_EQ(push(0x7, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x2, 't', 0), ATP_DROP_DISAGREE);
	expect_end(0x2);
	/* about a complete fragment */
	start_run();
	EXPECT_EQ(push(0xf, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x8, 'l', ATP_F_RESEND), ATP_DROP_DISAGREE);
	expect_end(0x8);
	/* first the one that differs, then what others have */
	start_run();
	EXPECT_EQ(push(0x1, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x2, 'e', 0), ATP_DROP_DISAGREE);
	expect_open();
	EXPECT_EQ(push(0x2, 'x', 0), ATP_DROP_DISAGREE);
	expect_end(0x2);
	/* two that differ, in either order */
	start_run();
	EXPECT_EQ(push(0x1, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x2, 'e', 0), ATP_DROP_DISAGREE);
	EXPECT_EQ(push(0x2, 't', 0), ATP_DROP_DISAGREE);
	expect_end(0x2);
	start_run();
	EXPECT_EQ(push(0x1, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x2, 'e', 0), ATP_DROP_DISAGREE);
	EXPECT_EQ(push(0x4, 't', 0), ATP_DROP_DISAGREE);
	expect_open();
	EXPECT_EQ(push(0x4, 'e', 0), ATP_DROP_DISAGREE);
	expect_end(0x4);
}

/* Nothing is added that differs, nor acknowledged. */
TEST(nothing_is_added)
{
	begin(4);
	EXPECT_EQ(push(0x1, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x2, 'e', ATP_F_RESEND), ATP_DROP_DISAGREE);
	EXPECT_EQ(out.type, 0);
	expect_open();
	EXPECT_EQ(ps.cells[2].bitmap, 0x1);
	/* another fragment, that differs as well, or does not */
	EXPECT_EQ(rx_bits(3, 0x1, 0, NULL), ATP_OK);
	EXPECT_EQ(rx_bits(3, 0x2, ATP_F_LAST, NULL), ATP_DROP_DISAGREE);
	expect_open();
	EXPECT_EQ(rx_bits(0, 0xf, 0, NULL), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_COMPLETE);
	/* a question is answered as ever */
	EXPECT_EQ(push(0x1, 'x', ATP_F_RESEND), ATP_OK);
	EXPECT_EQ(out.type, ATP_TYPE_STATUS);
	EXPECT_EQ(push(0x4, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x8, 'x', 0), ATP_DROP_DISAGREE);
	expect_end(0x2);
}

/* On the overflow path */
TEST(values_as_pushed)
{
	begin(2);
	EXPECT_EQ(push(0x1, 'x', ATP_F_OVERFLOW), ATP_OK);
	EXPECT_EQ(push(0x2, 'l', ATP_F_RAW | ATP_F_RESEND),
		  ATP_DROP_DISAGREE);
	expect_end(0x3);
}

static enum atp_drop push_values(u32 seq, u32 rank, u32 flags)
{
	struct grad g = grad(seq, 1U << rank, NULL);

	g.flags = ATP_F_RAW | ATP_F_RESEND | flags;
	return rx(&g);
}

/* An older fragment takes the slot of the one that they disagree about.  That
 * one begins anew with what comes first, and nobody says two things by that.
 */
TEST(slot_of_values_taken)
{
	struct grad g;
	u32 seq;

	make_ps(4, 4, 16);
	start_run();
	for (seq = 8; seq; seq--) {
		g = grad(seq, 0x8, NULL);
		g.flags = ATP_F_OVERFLOW;
		EXPECT_EQ(rx(&g), ATP_OK);
		EXPECT_EQ(out.events, ATP_PS_EV_RAW);
	}
	EXPECT_EQ(push_values(8, 2, 0), ATP_OK);
	EXPECT_EQ(push_values(8, 0, ATP_F_LAST), ATP_DROP_DISAGREE);
	g = grad(0, 0x8, NULL);
	g.flags = ATP_F_OVERFLOW;
	EXPECT_EQ(rx(&g), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_RAW);
	EXPECT_EQ(push_values(8, 0, ATP_F_LAST), ATP_DROP_RAWFULL);
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(push_values(8, 1, ATP_F_LAST), ATP_DROP_RAWFULL);
	EXPECT_EQ(push_values(8, 2, 0), ATP_DROP_DISAGREE);
	EXPECT_EQ(push_values(8, 3, ATP_F_LAST), ATP_DROP_DISAGREE);
	expect_end(0x4);
}

/* Who sends nothing does not keep the others waiting. */
TEST(some_do_not_vote)
{
	u64 opened;

	begin(4);
	EXPECT_EQ(push(0x1, 'x', 0), ATP_OK);
	now += 7;
	EXPECT_EQ(push(0x2, 't', 0), ATP_DROP_DISAGREE);
	expect_open();
	opened = now;
	now += 9;
	EXPECT_EQ(push(0x4, 'x', 0), ATP_OK);
	EXPECT_EQ(atp_ps_deadline(&ps), opened + TIMEOUT / 4);
	now = opened + TIMEOUT / 4 - 1;
	atp_ps_timeout(&ps, now, &out);
	EXPECT_TRUE(ps.running);
	EXPECT_EQ(out.type, 0);
	now++;
	atp_ps_timeout(&ps, now, &out);
	expect_end(0x2);

	begin(4);
	EXPECT_EQ(push(0x1, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x2, 't', 0), ATP_DROP_DISAGREE);
	now = atp_ps_deadline(&ps);
	atp_ps_timeout(&ps, now, &out);
	expect_end(0x3);

	/* one that leaves ends it before that */
	begin(4);
	EXPECT_EQ(push(0x1, 'x', 0), ATP_OK);
	EXPECT_EQ(push(0x2, 't', 0), ATP_DROP_DISAGREE);
	EXPECT_EQ(leave(3), ATP_OK);
	EXPECT_EQ(out.events, ATP_PS_EV_ENDED);
	EXPECT_EQ(out.reason, ATP_REASON_LEFT);
	start_run();
	EXPECT_EQ(atp_ps_deadline(&ps), now + TIMEOUT);
}

TAP_MAIN()
