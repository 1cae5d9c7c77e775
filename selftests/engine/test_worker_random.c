// SPDX-License-Identifier: GPL-2.0
/* A worker that gets any packet at any time. */
#include "worker_fixture.h"

/* Counters and lists agree with what the slots say. */
static void check(void)
{
	u32 inflight = 0, lost = 0, seq, slot, n = 0, last = 0;

	for (seq = w.una; seq != w.nxt; seq++) {
		u8 state = w.frags[seq % params.window].state;

		ASSERT_TRUE(state & ATP_FRAG_SENT);
		if (state & ATP_FRAG_ACKED) {
			ASSERT_NE(seq, w.una);
			ASSERT_FALSE(state & ATP_FRAG_LOST);
			continue;
		}
		lost += !!(state & ATP_FRAG_LOST);
		inflight += !(state & ATP_FRAG_LOST);
		if (state & ATP_FRAG_LOST)
			ASSERT_FALSE(atp_before(seq, w.rtx));
	}
	ASSERT_EQ(inflight, w.inflight);
	ASSERT_EQ(lost, w.lost);
	/* a slot before una is another fragment's */
	if (lost)
		ASSERT_FALSE(atp_before(w.rtx, w.una));
	for (slot = w.oldest; slot != ATP_NO_SLOT; slot = w.frags[slot].next) {
		ASSERT_FALSE(w.frags[slot].state &
			     (ATP_FRAG_LOST | ATP_FRAG_ACKED));
		if (n)
			ASSERT_TRUE(atp_before(last, w.frags[slot].txno));
		last = w.frags[slot].txno;
		ASSERT_LE(++n, inflight);
	}
	ASSERT_EQ(n, inflight);
	ASSERT_LE(w.nxt - w.una, params.window);
	ASSERT_EQ(!!w.timer, w.una != w.nxt);
}

/* Any packet at any time, near the end of the sequence space */
TEST(random_events)
{
	u32 i, round, seq, pushed = 0, popped = 0;

	tap_seed(42);
	for (round = 0; round < 200; round++) {
		start_at(-tap_below(100));
		w.txno = tap_chance(2) ? -tap_below(200) : 1;
		for (i = 0; i < ATP_DUP_THRESH; i++)
			w.answered[i] = w.txno - 1;
		for (i = 0; i < 1000; i++) {
			seq = w.una + tap_below(20) - 2;
			now += tap_below(2 * MSEC);
			if (w.end - w.una < 40) {
				push_frags(1 + tap_below(5));
				pushed++;
			}
			switch (tap_below(10)) {
			case 0:
				now = max(now, min(atp_worker_deadline(&w),
						   now + 2 * SEC));
				atp_worker_timeout(&w, now);
				break;
			case 1:
				status(seq, tap_rand());
				break;
			case 2:
				status(w.una, tap_below(16));
				break;
			case 3:
				if (seq - w.una < w.nxt - w.una)
					raw_request(seq);
				break;
			case 4:
			case 5:
			case 6:
				if (seq - w.una < w.nxt - w.una) {
					answer_pkt(seq, tap_rand() &
						   (ATP_F_ECN |
						    ATP_F_COLLISION));
					rx();
				}
				break;
			default:
				send_one();
			}
			check();
			while (atp_worker_readable(&w)) {
				drop_chunk(atp_worker_pop(&w));
				popped++;
			}
		}
		/* and it ends */
		for (i = 0; w.una != w.end && i < 1000; i++) {
			while (send_one())
				;
			if (w.una != w.nxt)
				EXPECT_EQ(answer(w.una), ATP_OK);
			check();
		}
		EXPECT_EQ(w.una, w.end);
		while (atp_worker_readable(&w)) {
			drop_chunk(atp_worker_pop(&w));
			popped++;
		}
		EXPECT_TRUE(!w.head);
		done();
	}
	EXPECT_EQ(pushed, popped);
}

TAP_MAIN()
