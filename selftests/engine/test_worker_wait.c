// SPDX-License-Identifier: GPL-2.0
/* A worker whose peers are late: waiting is not losing. */
#include "worker_fixture.h"

/* Peers are late for a minute: one packet at a time, at last one a second. */
TEST(waiting_is_not_losing)
{
	u64 until;
	u32 seq, n = 0;

	start();
	push_frags(30);
	w.cong.cwnd = 12;
	w.cong.ssthresh = 13;
	EXPECT_EQ(send_all(), 12);
	expire();
	EXPECT_EQ(atp_cong_window(&w.cong), 1);
	EXPECT_EQ(w.stats.timeouts, 1);
	ASSERT_TRUE(send_one());
	now += 100 * USEC;
	EXPECT_EQ(status(0, 0x3), ATP_OK);
	EXPECT_EQ(w.waiting, 0xc);
	EXPECT_EQ(w.stats.spurious, 1);
	EXPECT_EQ(w.cong.cwnd, 12);
	EXPECT_EQ(w.cong.ssthresh, 13);
	EXPECT_EQ(w.lost, 0);
	EXPECT_EQ(w.inflight, 12);
	EXPECT_FALSE(send_one());
	/* not a sample of the peers' delay, but of the way to the PS */
	EXPECT_EQ(w.rtt.srtt, 100 * USEC);

	until = now + 60 * SEC;
	while (atp_worker_deadline(&w) < until) {
		expire();
		EXPECT_EQ(send_all(), 1);
		EXPECT_EQ(sent.seq, 0);
		EXPECT_EQ(sent.flags, ATP_F_RESEND);
		now += 100 * USEC;
		EXPECT_EQ(status(0, 0x3), ATP_OK);
		n++;
	}
	EXPECT_LE(n, 60 + 9);
	EXPECT_GE(n, 60);
	EXPECT_EQ(w.cong.cwnd, 12);
	EXPECT_EQ(w.stats.timeouts, 1);

	/* here they are */
	now = until;
	for (seq = 0; seq < 12; seq++)
		EXPECT_EQ(answer(seq), ATP_OK);
	EXPECT_EQ(w.waiting, 0);
	EXPECT_EQ(w.rtt.srtt, 100 * USEC);
	EXPECT_EQ(w.rtt.rto, 2 * MSEC);
	EXPECT_EQ(w.rtt.backoff, 0);
	EXPECT_GE(w.cong.cwnd, 12);
	EXPECT_GE(send_all(), 12);
	EXPECT_EQ(atp_worker_deadline(&w), now + 2 * MSEC);
	done();
}

/* Back-off is for peers that the PS says are late: what asks for them may be
 * lost, too, and then it asks again soon.
 */
TEST(lost_asking)
{
	u32 i;

	start();
	push_frags(1);
	send_all();
	expire();
	send_all();
	now += 100 * USEC;
	EXPECT_EQ(status(0, 0x3), ATP_OK);
	for (i = 1; i < 9; i++) {
		expire();
		EXPECT_EQ(w.rtt.backoff, i + 1);
		EXPECT_EQ(send_all(), 1);
		/* as long as there is no answer */
		EXPECT_EQ(atp_worker_deadline(&w),
			  now + (2 * MSEC << min_t(u32, i + 1, 2)));
		expire();
		EXPECT_EQ(w.rtt.backoff, i + 1);
		EXPECT_EQ(send_all(), 1);
		now += 100 * USEC;
		EXPECT_EQ(status(0, 0x3), ATP_OK);
		EXPECT_EQ(atp_worker_deadline(&w),
			  now + min(2 * MSEC << (i + 1), SEC));
	}
	EXPECT_EQ(w.waiting, 0xc);
	EXPECT_EQ(w.stats.timeouts, 1);
	done();
}

/* Peers have come further: what they have and I have not was answered. */
TEST(behind)
{
	u32 seq;

	for (seq = 4; seq < 12; seq++) {
		start();
		push_frags(12);
		EXPECT_EQ(send_all(), 10);
		now += MSEC;
		EXPECT_EQ(answer(1), ATP_OK);
		w.cong.ssthresh = 11;
		EXPECT_EQ(send_all(), 2);
		now += 100 * USEC;
		/* 10 and 11 were sent a moment ago */
		EXPECT_EQ(status(seq, 0xd), ATP_OK);
		EXPECT_EQ(w.lost, min_t(u32, seq, 10) - 1);
		EXPECT_EQ(w.stats.fast_retransmits, w.lost);
		EXPECT_EQ(w.stats.timeouts, 0);
		/* it is a loss like any other */
		EXPECT_EQ(w.cong.cwnd, 5);
		ASSERT_TRUE(send_one());
		EXPECT_EQ(sent.seq, 0);
		EXPECT_EQ(sent.flags, ATP_F_RESEND);
		now += 100 * USEC;
		/* that is on its way */
		send_all();
		EXPECT_EQ(status(seq, 0xd), ATP_OK);
		EXPECT_FALSE(w.frags[0].state & ATP_FRAG_LOST);
		done();
	}

	/* not sent at all; and I thought that I waited for peers */
	start();
	push_frags(2);
	EXPECT_EQ(send_all(), 2);
	expire();
	EXPECT_EQ(send_all(), 1);
	now += 100 * USEC;
	EXPECT_EQ(status(0, 0x3), ATP_OK);
	now += MSEC;
	EXPECT_EQ(status(2, 0xd), ATP_OK);
	EXPECT_EQ(w.waiting, 0);
	EXPECT_EQ(w.lost, 2);
	EXPECT_EQ(send_all(), 2);
	done();

	/* nothing that I could do: the application has pushed nothing */
	start();
	EXPECT_EQ(status(0, 0xd), ATP_OK);
	EXPECT_FALSE(send_one());
	EXPECT_EQ(atp_worker_deadline(&w), U64_MAX);
	done();

	/* the answer to what I have sent again myself says nothing of others */
	start();
	push_frags(10);
	EXPECT_EQ(send_all(), 10);
	now += MSEC;
	for (seq = 1; seq < 10; seq++)
		if (seq != 5)
			EXPECT_EQ(answer(seq), ATP_OK);
	w.cong.cwnd = 10;
	EXPECT_EQ(send_all(), 2);
	now += 50 * MSEC;
	EXPECT_EQ(status(5, 0xd), ATP_OK);
	EXPECT_EQ(w.lost, 0);
	done();
}

/* What was sent while peers were late says nothing of the path. */
TEST(no_round_trip_with_late_peers)
{
	u32 seq;

	start();
	push_frags(2);
	send_all();
	expire();
	send_all();
	now += 100 * USEC;
	EXPECT_EQ(status(0, 0x2), ATP_OK);
	push_frags(6);
	now += MSEC;
	EXPECT_EQ(send_all(), 6);
	now += 5 * SEC;
	for (seq = 7; seq != -1; seq--)
		EXPECT_EQ(answer(seq), ATP_OK);
	EXPECT_EQ(w.rtt.srtt, 100 * USEC);
	done();

	start();
	push_frags(2);
	send_all();
	expire();
	send_all();
	now += 100 * USEC;
	EXPECT_EQ(status(0, 0x2), ATP_OK);
	push_frags(6);
	now += MSEC;
	EXPECT_EQ(send_all(), 6);
	now += 5 * SEC;
	for (seq = 0; seq < 8; seq++)
		EXPECT_EQ(answer(seq), ATP_OK);
	EXPECT_EQ(w.rtt.srtt, 100 * USEC);

	/* afterwards it does */
	push_frags(1);
	EXPECT_EQ(send_all(), 1);
	now += 500 * USEC;
	EXPECT_EQ(answer(8), ATP_OK);
	EXPECT_EQ(w.rtt.srtt, 150 * USEC);
	done();
}

/* As long as peers keep coming, the back-off begins anew. */
TEST(waiting_for_several)
{
	u32 i;

	start();
	push_frags(1);
	send_all();
	expire();
	send_all();
	now += 100 * USEC;
	EXPECT_EQ(status(0, 0x2), ATP_OK);
	for (i = 0; i < 5; i++) {
		expire();
		send_all();
		EXPECT_EQ(status(0, 0x2), ATP_OK);
	}
	EXPECT_EQ(w.rtt.backoff, 6);
	EXPECT_EQ(status(0, 0x3), ATP_OK);
	EXPECT_EQ(w.waiting, 0xc);
	EXPECT_EQ(w.rtt.backoff, 0);
	EXPECT_EQ(atp_worker_deadline(&w), now + 2 * MSEC);
	done();
}

/* The peers are there again, but una is in two halves (stalled aggregation):
 * later answers say so, and it is no congestion.
 */
TEST(stalled_after_waiting)
{
	start();
	push_frags(10);
	EXPECT_EQ(send_all(), 10);
	expire();
	send_all();
	EXPECT_EQ(status(0, 0xe), ATP_OK);
	EXPECT_EQ(answer(1), ATP_OK);
	EXPECT_EQ(answer(2), ATP_OK);
	EXPECT_EQ(w.lost, 0);
	EXPECT_EQ(answer(3), ATP_OK);
	EXPECT_EQ(w.lost, 1);
	EXPECT_GE(w.cong.cwnd, 10);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 0);
	EXPECT_EQ(sent.flags, ATP_F_RESEND);
	done();
}

/* The PS has una of others, not mine: at once, but not for ever. */
TEST(status_without_me)
{
	start();
	push_frags(2);
	EXPECT_EQ(send_all(), 2);
	expire();
	EXPECT_EQ(send_all(), 1);
	/* the answer to an earlier one, perhaps */
	now += MSEC;
	EXPECT_EQ(status(0, 0x5), ATP_OK);
	EXPECT_EQ(send_all(), 0);
	now += 60 * MSEC;
	EXPECT_EQ(status(0, 0x5), ATP_OK);
	EXPECT_EQ(w.stats.spurious, 0);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 0);
	now += 60 * MSEC;
	EXPECT_EQ(status(0, 0x5), ATP_OK);
	EXPECT_FALSE(send_one());
	expire();
	EXPECT_EQ(send_all(), 1);
	now += 60 * MSEC;
	EXPECT_EQ(status(0, 0x5), ATP_OK);
	EXPECT_EQ(send_all(), 1);
	done();
}

/* So many expiries, and una is sent again each time. */
static void ask(u32 n)
{
	while (n--) {
		expire();
		ASSERT_TRUE(send_one());
		EXPECT_EQ(sent.seq, w.una);
	}
}

/* Nothing comes but PONG, which the session hears: it takes many tries, ... */
TEST(unanswered)
{
	start();
	push_frags(4);
	EXPECT_EQ(send_all(), 4);
	ask(ATP_TRIES);
	EXPECT_GT(now, SEC + 4 * params.timeout);
	EXPECT_FALSE(atp_worker_unanswered(&w, now + SEC));
	ask(1);
	EXPECT_TRUE(atp_worker_unanswered(&w, now));
	done();
}

/* ... and the timeout from the first of them on, though the timer is short. */
TEST(unanswered_for_a_moment)
{
	u64 first;

	start();
	push_frags(4);
	EXPECT_EQ(send_all(), 4);
	now += 100 * USEC;
	EXPECT_EQ(answer(0), ATP_OK);
	ask(1);
	first = now;
	ask(ATP_TRIES + 1);
	EXPECT_LT(now, first + SEC);
	EXPECT_FALSE(atp_worker_unanswered(&w, now));
	EXPECT_FALSE(atp_worker_unanswered(&w, first + params.timeout - 1));
	EXPECT_TRUE(atp_worker_unanswered(&w, first + params.timeout));

	/* no time counts in which nothing was asked */
	EXPECT_EQ(answer(1), ATP_OK);
	EXPECT_EQ(answer(2), ATP_OK);
	EXPECT_EQ(answer(3), ATP_OK);
	now += 10 * params.timeout;
	push_frags(2);
	EXPECT_EQ(send_all(), 2);
	now += 100 * USEC;
	EXPECT_EQ(answer(4), ATP_OK);
	ask(ATP_TRIES + 1);
	EXPECT_FALSE(atp_worker_unanswered(&w, now));
	done();
}

/* What cannot be sent asks nothing: the host has no memory. */
TEST(unanswered_as_nothing_was_asked)
{
	u32 i;

	start();
	push_frags(4);
	EXPECT_EQ(send_all(), 4);
	ask(1);
	for (i = 0; i < 2 * ATP_TRIES; i++)
		expire();
	EXPECT_GT(now, SEC + params.timeout);
	EXPECT_FALSE(atp_worker_unanswered(&w, now));
	ASSERT_TRUE(send_one());
	EXPECT_EQ(w.tries, 2);
	done();
}

static void asked_in_vain(void)
{
	ask(ATP_TRIES + 1);
	EXPECT_TRUE(atp_worker_unanswered(&w, now + params.timeout));
}

static void answered(void)
{
	EXPECT_FALSE(atp_worker_unanswered(&w, now + params.timeout));
	ask(ATP_TRIES);
	EXPECT_FALSE(atp_worker_unanswered(&w, now + params.timeout));
	ask(1);
	EXPECT_TRUE(atp_worker_unanswered(&w, now + params.timeout));
}

/* Which packets show that the PS has got una, or that results come back */
TEST(what_is_an_answer)
{
	start();
	push_frags(10);
	EXPECT_EQ(send_all(), 10);
	asked_in_vain();
	/* peers are late, or the application at the PS */
	EXPECT_EQ(status(0, 0x2), ATP_OK);
	answered();
	EXPECT_EQ(status(0, 0xf), ATP_OK);
	answered();
	/* it has my part, but cannot use it as it is */
	EXPECT_EQ(raw_request(0), ATP_OK);
	answered();
	EXPECT_EQ(answer(3), ATP_OK);
	answered();
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_EQ(w.tries, 0);
	done();
}

/* Others ask for una, or are where my results have been lost. */
TEST(what_is_no_answer)
{
	u32 i;

	start();
	push_frags(10);
	EXPECT_EQ(send_all(), 10);
	for (i = 0; i <= ATP_TRIES; i++) {
		EXPECT_FALSE(atp_worker_unanswered(&w, now + params.timeout));
		ask(1);
		now += USEC;
		EXPECT_EQ(status(0, 0x5), ATP_OK);
		EXPECT_EQ(status(9, 0xd), ATP_OK);
		EXPECT_EQ(raw_request(5), i ? ATP_DROP_DUPLICATE : ATP_OK);
	}
	EXPECT_TRUE(atp_worker_unanswered(&w, now + params.timeout));
	done();
}

TAP_MAIN()
