// SPDX-License-Identifier: GPL-2.0
/* What a worker takes for lost, and when. */
#include "worker_fixture.h"

TEST(third_later_answer)
{
	start();
	push_frags(20);
	w.cong.cwnd = 8;
	w.cong.ssthresh = 8;
	EXPECT_EQ(send_all(), 8);
	now += 100 * USEC;
	EXPECT_EQ(answer(1), ATP_OK);
	EXPECT_EQ(answer(2), ATP_OK);
	EXPECT_EQ(w.lost, 0);
	/* a copy does not count */
	EXPECT_EQ(answer(2), ATP_DROP_DUPLICATE);
	EXPECT_EQ(w.lost, 0);
	EXPECT_EQ(send_all(), 2);
	EXPECT_EQ(answer(5), ATP_OK);
	EXPECT_EQ(w.lost, 1);
	EXPECT_EQ(w.cong.cwnd, 4);
	EXPECT_EQ(w.stats.fast_retransmits, 1);

	/* una goes at once, though the window is full */
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 0);
	EXPECT_EQ(sent.flags, ATP_F_RESEND);
	EXPECT_FALSE(send_one());
	EXPECT_EQ(w.stats.resent, 1);

	/* once per transmission: these were sent before the second one */
	EXPECT_EQ(answer(6), ATP_OK);
	EXPECT_EQ(answer(7), ATP_OK);
	EXPECT_EQ(answer(8), ATP_OK);
	EXPECT_EQ(answer(9), ATP_OK);
	/* 3 and 4 are lost, as 6, 7, 8 were sent later */
	EXPECT_EQ(w.stats.fast_retransmits, 3);
	EXPECT_EQ(w.cong.cwnd, 5);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 3);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 4);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 10);
	EXPECT_EQ(sent.flags, 0);
	ASSERT_TRUE(send_one());
	EXPECT_FALSE(send_one());

	/* the second transmission is lost, too */
	now += 100 * USEC;
	EXPECT_EQ(answer(3), ATP_OK);
	EXPECT_EQ(answer(4), ATP_OK);
	EXPECT_EQ(w.lost, 0);
	EXPECT_EQ(answer(10), ATP_OK);
	EXPECT_EQ(w.lost, 1);
	EXPECT_EQ(w.stats.fast_retransmits, 4);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 0);
	EXPECT_EQ(w.stats.timeouts, 0);
	done();
}

TEST(reordering_is_no_loss)
{
	start();
	push_frags(10);
	EXPECT_EQ(send_all(), 10);
	EXPECT_EQ(answer(2), ATP_OK);
	EXPECT_EQ(answer(1), ATP_OK);
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_EQ(answer(5), ATP_OK);
	EXPECT_EQ(answer(4), ATP_OK);
	EXPECT_EQ(answer(3), ATP_OK);
	EXPECT_EQ(answer(9), ATP_OK);
	EXPECT_EQ(answer(8), ATP_OK);
	EXPECT_EQ(answer(6), ATP_OK);
	EXPECT_EQ(answer(7), ATP_OK);
	EXPECT_EQ(w.stats.fast_retransmits, 0);
	EXPECT_EQ(w.una, 10);
	done();
}

TEST(expiry_is_loss_of_all)
{
	u32 seq;

	start();
	push_frags(30);
	EXPECT_EQ(send_all(), 10);
	now += 10 * MSEC;
	EXPECT_EQ(answer(8), ATP_OK);
	EXPECT_EQ(send_all(), 2);
	/* what is known of the round trip now shortens it */
	EXPECT_EQ(atp_worker_deadline(&w), now + 30 * MSEC);
	expire();
	EXPECT_EQ(w.stats.timeouts, 1);
	EXPECT_EQ(w.inflight, 0);
	EXPECT_EQ(w.lost, 11);
	EXPECT_EQ(atp_cong_window(&w.cong), 1);

	/* the window is one: only the oldest */
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 0);
	EXPECT_EQ(sent.flags, ATP_F_RESEND);
	EXPECT_FALSE(send_one());
	EXPECT_EQ(atp_worker_deadline(&w), now + 60 * MSEC);

	/* backed off; the window does not fall twice */
	for (seq = 0; seq < 10; seq++) {
		u64 before = now;

		expire();
		/* the PS is heard no more: that may be a congestion, too */
		EXPECT_EQ(now - before, before - w.heard < SEC ?
			  min(60 * MSEC << seq, 120 * MSEC) :
			  min(60 * MSEC << seq, SEC));
		EXPECT_EQ(w.stats.timeouts, 2 + seq);
		ASSERT_TRUE(send_one());
		EXPECT_EQ(sent.seq, 0);
		EXPECT_FALSE(send_one());
	}
	EXPECT_EQ(atp_worker_deadline(&w), now + SEC);
	EXPECT_EQ(w.cong.ssthresh, 5);

	/* then it grows, and they go out in order, but for the marked one */
	now += 10 * MSEC;
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_EQ(w.rtt.backoff, 0);
	for (seq = 1; seq < 3; seq++) {
		ASSERT_TRUE(send_one());
		EXPECT_EQ(sent.seq, seq);
		EXPECT_EQ(sent.flags, ATP_F_RESEND);
	}
	EXPECT_FALSE(send_one());
	EXPECT_TRUE(w.loss);
	for (seq = 1; seq < 12; seq++) {
		while (send_one())
			EXPECT_NE(sent.seq, 8);
		EXPECT_EQ(answer(seq), seq == 8 ? ATP_DROP_DUPLICATE : ATP_OK);
	}
	EXPECT_FALSE(w.loss);
	EXPECT_EQ(w.stats.spurious, 0);
	done();
}

TEST(timer_is_the_oldest_s)
{
	u64 first;

	start();
	push_frags(20);
	w.cong.cwnd = 2;
	w.cong.ssthresh = 2;
	EXPECT_EQ(send_all(), 2);
	first = now;
	EXPECT_EQ(atp_worker_deadline(&w), first + 50 * MSEC);
	now += MSEC;
	/* new ones do not move it */
	w.cong.cwnd = 3;
	EXPECT_EQ(send_all(), 1);
	EXPECT_EQ(atp_worker_deadline(&w), first + 50 * MSEC);
	/* una's answer does */
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_EQ(atp_worker_deadline(&w), now + 3 * MSEC);
	EXPECT_EQ(answer(1), ATP_OK);
	EXPECT_EQ(answer(2), ATP_OK);
	EXPECT_EQ(atp_worker_deadline(&w), U64_MAX);
	atp_worker_timeout(&w, now + SEC);
	EXPECT_EQ(w.stats.timeouts, 0);
	now += 10 * SEC;
	EXPECT_EQ(send_all(), 4);
	EXPECT_GT(atp_worker_deadline(&w), now);
	done();
}

/* The second transmission gets as much time as the first. */
TEST(timer_of_a_resend)
{
	u32 seq;

	start();
	push_frags(10);
	EXPECT_EQ(send_all(), 10);
	now += MSEC;
	for (seq = 1; seq < 4; seq++)
		EXPECT_EQ(answer(seq), ATP_OK);
	EXPECT_EQ(w.lost, 1);
	now += MSEC;
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 0);
	EXPECT_EQ(atp_worker_deadline(&w), now + w.rtt.rto);
	done();
}

/* The caller could not send when the timer ran: it does not fall asleep. */
TEST(expiry_without_memory)
{
	start();
	push_frags(4);
	EXPECT_EQ(send_all(), 4);
	expire();
	EXPECT_EQ(w.lost, 4);
	expire();
	expire();
	EXPECT_EQ(w.stats.timeouts, 1);
	EXPECT_EQ(w.rtt.backoff, 1);
	EXPECT_GT(atp_worker_deadline(&w), now);
	ASSERT_TRUE(send_one());
	done();
}

/* Round trips have become longer than the timer: everything is sent twice, and
 * answered twice.
 */
TEST(longer_round_trips)
{
	u64 rtt = 40 * MSEC, first;
	u32 seq, n;

	start();
	push_frags(100);
	w.cong.cwnd = 1;
	w.cong.ssthresh = 1;
	w.cong.max = 1;
	ASSERT_TRUE(send_one());
	now += MSEC;
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_EQ(w.rtt.rto, 3 * MSEC);
	for (seq = 1; seq < 8; seq++) {
		ASSERT_TRUE(send_one());
		first = now;
		n = 0;
		while (atp_worker_deadline(&w) < first + rtt) {
			expire();
			ASSERT_TRUE(send_one());
			n++;
		}
		now = first + rtt;
		EXPECT_EQ(answer(seq), ATP_OK);
		if (!n)
			break;
		/* the last of the others */
		now = w.frags[seq % params.window].sent + rtt;
		EXPECT_EQ(answer(seq), ATP_DROP_DUPLICATE);
	}
	EXPECT_LT(seq, 5);
	EXPECT_GT(w.rtt.rto, rtt);
	EXPECT_LT(w.rtt.rto, 5 * rtt);
	done();

	/* two answers that peers have brought about are not late */
	start();
	push_frags(2);
	EXPECT_EQ(send_all(), 2);
	now += MSEC;
	EXPECT_EQ(answer(1), ATP_OK);
	expire();
	EXPECT_EQ(send_all(), 1);
	now += MSEC;
	EXPECT_EQ(answer(0), ATP_OK);
	now += MSEC;
	EXPECT_EQ(answer(0), ATP_DROP_DUPLICATE);
	EXPECT_EQ(w.rtt.rto, 3 * MSEC);
	done();
}

/* The answer to what was not sent again shows that the timer was early. */
TEST(late_answers_undo)
{
	u32 seq;

	start();
	push_frags(30);
	EXPECT_EQ(send_all(), 10);
	expire();
	EXPECT_EQ(w.lost, 10);
	ASSERT_TRUE(send_one());
	now += MSEC;
	EXPECT_EQ(answer(4), ATP_OK);
	EXPECT_EQ(w.stats.spurious, 1);
	EXPECT_GE(w.cong.cwnd, 10);
	EXPECT_EQ(w.lost, 0);
	EXPECT_EQ(w.inflight, 9);
	for (seq = 0; seq < 4; seq++)
		EXPECT_EQ(answer(seq), ATP_OK);
	EXPECT_EQ(w.una, 5);
	EXPECT_EQ(w.stats.resent, 1);
	done();
}

/* Something later was answered, so peers have sent una as well: it was lost,
 * and the window is half of what it was.  The rest is on its way.
 */
TEST(a_hole_is_a_loss)
{
	start();
	push_frags(30);
	EXPECT_EQ(send_all(), 10);
	now += MSEC;
	EXPECT_EQ(answer(5), ATP_OK);
	EXPECT_EQ(send_all(), 2);
	expire();
	EXPECT_EQ(w.cong.cwnd, 1);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 0);
	EXPECT_EQ(w.lost, 10);
	now += MSEC;
	EXPECT_EQ(status(0, 0x3), ATP_OK);
	EXPECT_EQ(w.lost, 0);
	EXPECT_EQ(w.inflight, 11);
	EXPECT_EQ(w.cong.cwnd, 5);
	EXPECT_EQ(w.cong.ssthresh, 5);
	EXPECT_EQ(w.stats.spurious, 0);
	EXPECT_FALSE(send_one());
	done();

	/* the same, seen by an answer to what was not sent again */
	start();
	push_frags(30);
	EXPECT_EQ(send_all(), 10);
	now += MSEC;
	EXPECT_EQ(answer(5), ATP_OK);
	expire();
	ASSERT_TRUE(send_one());
	now += MSEC;
	EXPECT_EQ(answer(6), ATP_OK);
	EXPECT_EQ(w.lost, 0);
	EXPECT_EQ(w.cong.ssthresh, 5);
	EXPECT_EQ(w.cong.cwnd, 5);
	EXPECT_EQ(w.stats.spurious, 0);
	done();
}

/* What was undone is over: the next expiry is a first one. */
TEST(expiry_after_an_early_one)
{
	start();
	push_frags(30);
	EXPECT_EQ(send_all(), 10);
	expire();
	ASSERT_TRUE(send_one());
	now += MSEC;
	EXPECT_EQ(status(0, 0x3), ATP_OK);
	EXPECT_EQ(w.cong.cwnd, 10);
	/* the switch had it, and has lost it */
	EXPECT_EQ(status(0, 0xc), ATP_OK);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 0);
	expire();
	EXPECT_EQ(w.stats.timeouts, 2);
	EXPECT_EQ(w.cong.cwnd, 1);
	ASSERT_TRUE(send_one());
	EXPECT_FALSE(send_one());
	done();
}

/* A rank at the same address has asked: the answer is no round trip of mine. */
TEST(news_that_another_asked_for)
{
	start();
	push_frags(4);
	EXPECT_EQ(send_all(), 4);
	now += 40 * MSEC;
	EXPECT_EQ(status(0, 0x3), ATP_OK);
	EXPECT_EQ(w.rtt.srtt, 0);
	EXPECT_EQ(w.rtt.rto, ATP_RTO_INIT);
	done();
}

TAP_MAIN()
