// SPDX-License-Identifier: GPL-2.0
/* A worker's window: how much is in flight, marks, round trips. */
#include "worker_fixture.h"

/* The window of the job and the congestion window, to the fragment */
TEST(window)
{
	start();
	push_frags(100);
	EXPECT_EQ(send_all(), 10);
	w.cong.cwnd = 100;
	w.cong.ssthresh = 100;
	EXPECT_EQ(send_all(), 6);
	EXPECT_EQ(w.nxt, 16);
	/* una holds the window, whatever else has come */
	EXPECT_EQ(answer(1), ATP_OK);
	EXPECT_EQ(answer(2), ATP_OK);
	EXPECT_EQ(send_all(), 0);
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_EQ(w.una, 3);
	EXPECT_EQ(send_all(), 3);
	EXPECT_EQ(w.nxt, 19);
	done();
}

/* A burst waits for a quarter of the window; with nothing in flight it goes. */
TEST(gathers)
{
	u32 n;

	start();
	EXPECT_EQ(atp_worker_gathers(&w, 41), false);
	push_frags(22);
	w.cong.cwnd = 16;
	w.cong.ssthresh = 16;
	EXPECT_EQ(atp_worker_gathers(&w, 41), false);
	EXPECT_EQ(send_all(), 16);
	for (n = 0; n < 3; n++) {
		EXPECT_EQ(answer(n), ATP_OK);
		EXPECT_EQ(atp_worker_gathers(&w, 41), true);
	}
	/* a burst is not longer than that */
	EXPECT_EQ(atp_worker_gathers(&w, 3), false);
	EXPECT_EQ(answer(n), ATP_OK);
	EXPECT_EQ(atp_worker_gathers(&w, 41), false);
	EXPECT_EQ(send_all(), 4);

	/* there are two that were not sent yet, and no more to come */
	EXPECT_EQ(answer(4), ATP_OK);
	EXPECT_EQ(atp_worker_gathers(&w, 41), true);
	EXPECT_EQ(answer(5), ATP_OK);
	EXPECT_EQ(atp_worker_gathers(&w, 41), false);
	EXPECT_EQ(send_all(), 2);

	/* of a window so small each may go at once */
	w.cong.cwnd = 7;
	w.cong.ssthresh = 7;
	w.cong.credit = 0;
	push_frags(100);
	/* and the window may have become smaller than what is in flight */
	EXPECT_EQ(w.inflight, 16);
	EXPECT_EQ(atp_worker_gathers(&w, 41), false);
	for (n = 6; n < 16; n++)
		EXPECT_EQ(answer(n), ATP_OK);
	EXPECT_EQ(w.inflight, 6);
	EXPECT_LE(atp_cong_window(&w.cong), 8);
	EXPECT_EQ(atp_worker_gathers(&w, 41), false);
	done();
}

/* What may be lost is not waited with */
TEST(gathers_in_order)
{
	start();
	push_frags(100);
	w.cong.cwnd = 16;
	w.cong.ssthresh = 16;
	EXPECT_EQ(send_all(), 16);
	EXPECT_EQ(answer(1), ATP_OK);
	EXPECT_EQ(atp_worker_gathers(&w, 41), false);
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_EQ(atp_worker_gathers(&w, 41), true);
	/* it is to be sent again */
	EXPECT_EQ(raw_request(3), ATP_OK);
	EXPECT_EQ(w.lost, 1);
	EXPECT_EQ(atp_worker_gathers(&w, 41), false);
	done();
}

TEST(cap)
{
	start();
	push_frags(100);
	EXPECT_EQ(send_all(), 10);
	answer_pkt(0, 0);
	in.cap = 3;
	EXPECT_EQ(rx(), ATP_OK);
	EXPECT_EQ(send_all(), 0);
	EXPECT_EQ(w.inflight, 9);
	while (w.una < 8)
		EXPECT_EQ(answer(w.una), ATP_OK);
	in.cap = 3;
	w.cong.cap = 3;
	EXPECT_EQ(send_all(), 1);
	EXPECT_EQ(w.inflight, 3);
	done();
}

/* Whichever packet of a window has the mark, and whatever it is else */
TEST(marks)
{
	u32 mark, seq;

	for (mark = 0; mark < 30; mark++) {
		start();
		push_frags(40);
		w.cong.ssthresh = 10;
		EXPECT_EQ(send_all(), 10);
		for (seq = 0; seq < 10; seq++) {
			answer_pkt(seq, 0);
			if (seq == mark % 10 && mark < 10) {
				in.flags |= ATP_F_ECN;
			} else if (seq == mark % 10 && mark < 20) {
				in.ce = true;
			} else if (seq == mark % 10) {
				in.ce = true;
				in.flags |= ATP_F_OVERFLOW;
				in.elements = 0;
				EXPECT_EQ(rx(), ATP_OK);
				answer_pkt(seq, 0);
			}
			EXPECT_EQ(rx(), ATP_OK);
		}
		EXPECT_EQ(w.stats.ecn, 1);
		EXPECT_EQ(w.cong.ssthresh, 5);
		EXPECT_LE(w.cong.cwnd, 10);
		EXPECT_GE(w.cong.cwnd, 5);
		done();
	}
}

TEST(round_trips)
{
	start();
	push_frags(30);
	EXPECT_EQ(send_all(), 10);
	now += 8 * MSEC;
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_EQ(w.rtt.srtt, 8 * MSEC);
	/* no sample of one that was sent twice */
	EXPECT_EQ(answer(2), ATP_OK);
	EXPECT_EQ(answer(3), ATP_OK);
	EXPECT_EQ(answer(4), ATP_OK);
	EXPECT_EQ(w.stats.fast_retransmits, 1);
	send_all();
	now += 3 * MSEC;
	EXPECT_EQ(answer(1), ATP_OK);
	EXPECT_EQ(w.rtt.srtt, 8 * MSEC);
	EXPECT_EQ(w.rtt.best, 8 * MSEC);
	/* nor of one that was in flight when the timer ran */
	now += 3 * MSEC;
	expire();
	EXPECT_EQ(answer(5), ATP_OK);
	EXPECT_EQ(w.rtt.srtt, 8 * MSEC);
	done();
}

/* Peers' answers to a resend do not condemn what was sent before it. */
TEST(answer_faster_than_the_path)
{
	u32 seq;

	start();
	push_frags(60);
	w.cong.cwnd = 16;
	w.cong.ssthresh = 16;
	EXPECT_EQ(send_all(), 16);
	now += MSEC;
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_EQ(send_all(), 1);
	for (seq = 4; seq < 8; seq++)
		EXPECT_EQ(answer(seq), ATP_OK);
	EXPECT_EQ(w.lost, 3);
	w.cong.cwnd = 16;
	while (w.lost && send_one())
		EXPECT_LT(sent.seq, 4);
	ASSERT_EQ(w.lost, 0);
	now += 10 * USEC;
	for (seq = 1; seq < 4; seq++)
		EXPECT_EQ(answer(seq), ATP_OK);
	EXPECT_EQ(w.lost, 0);
	EXPECT_EQ(w.stats.fast_retransmits, 3);
	done();
}

TAP_MAIN()
