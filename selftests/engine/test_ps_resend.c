// SPDX-License-Identifier: GPL-2.0
/* The PS: who asks again is told what is missing, or gets the sum again. */
#include "ps_fixture.h"

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

TAP_MAIN()
