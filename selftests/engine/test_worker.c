// SPDX-License-Identifier: GPL-2.0
/* A worker: queue, packets, results; event by event. */
#include "worker_fixture.h"

TEST(nothing_to_do)
{
	start();
	EXPECT_FALSE(send_one());
	EXPECT_FALSE(atp_worker_readable(&w));
	EXPECT_TRUE(!atp_worker_pop(&w));
	EXPECT_EQ(atp_worker_deadline(&w), U64_MAX);
	atp_worker_timeout(&w, now);
	EXPECT_EQ(w.stats.timeouts, 0);
	done();
}

TEST(packet_of_integers)
{
	u32 *data = malloc(6 * 4);
	u32 i;

	for (i = 0; i < 6; i++)
		data[i] = -i * 0x01020304;
	start();
	push(data, 5, ATP_INT32);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.type, ATP_TYPE_DATA);
	EXPECT_EQ(sent.dtype, ATP_INT32);
	EXPECT_EQ(sent.fanin0, 4);
	EXPECT_EQ(sent.flags, 0);
	EXPECT_EQ(sent.elements, 4);
	EXPECT_EQ(sent.cap, ATP_NO_CAP);
	EXPECT_EQ(sent.job, 9);
	EXPECT_EQ(sent.epoch, EPOCH);
	EXPECT_EQ(sent.bitmap0, 2);
	EXPECT_EQ(sent.index, atp_index_hash(9, EPOCH, 0));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(sent_lane(i), (s32)data[i]);

	/* the last one is shorter, padded, and says so */
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 1);
	EXPECT_EQ(sent.flags, ATP_F_LAST);
	EXPECT_EQ(sent.elements, 1);
	EXPECT_EQ(sent.index, atp_index_hash(9, EPOCH, 0) + 1);
	EXPECT_EQ(sent_lane(0), (s32)data[4]);
	EXPECT_EQ(sent_lane(1), 0);
	EXPECT_FALSE(send_one());
	EXPECT_EQ(w.stats.sent, 2);
	done();
}

TEST(packet_of_floats)
{
	u32 *data = malloc(8 * 4);
	u32 i;

	for (i = 0; i < 8; i++)
		data[i] = oracle_bits(i - 2.125);
	data[6] = oracle_bits(3e7);
	start();
	push(data, 8, ATP_FLOAT32);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.flags, 0);
	EXPECT_EQ(sent_lane(0), -212);
	EXPECT_EQ(sent_lane(3), 88);
	/* one lane that does not fit: the fragment goes as it was pushed */
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.flags, ATP_F_RAW | ATP_F_LAST);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(sent_lane(i), (s32)data[4 + i]);
	EXPECT_EQ(w.stats.raw, 1);
	done();
}

TEST(results_in_place)
{
	u32 *data = calloc(5, 4);
	struct atp_chunk *chunk;
	u32 i;

	start();
	chunk = push(data, 5, ATP_FLOAT32);
	EXPECT_EQ(send_all(), 2);

	/* out of order, the short one first */
	put_unaligned_le32(250, lanes_in + 1);
	EXPECT_EQ(answer(1), ATP_OK);
	EXPECT_EQ(data[4], oracle_bits(2.5));
	EXPECT_EQ(data[3], 0);
	EXPECT_EQ(w.una, 0);
	EXPECT_FALSE(atp_worker_readable(&w));
	EXPECT_TRUE(!atp_worker_pop(&w));

	for (i = 0; i < 4; i++)
		put_unaligned_le32(oracle_bits(1e20 * i), lanes_in + 1 + 4 * i);
	answer_pkt(0, ATP_F_RAW);
	EXPECT_EQ(rx(), ATP_OK);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(data[i], oracle_bits(1e20 * i));
	EXPECT_EQ(w.una, 2);
	EXPECT_TRUE(atp_worker_readable(&w));
	EXPECT_TRUE(atp_worker_pop(&w) == chunk);
	EXPECT_TRUE(!w.head && !w.tail);
	EXPECT_FALSE(chunk->overflow);
	EXPECT_EQ(w.stats.chunks, 1);
	EXPECT_EQ(atp_worker_deadline(&w), U64_MAX);
	drop_chunk(chunk);
	done();
}

TEST(integer_overflow)
{
	u32 *data = calloc(8, 4);
	struct atp_chunk *chunk;

	start();
	chunk = push(data, 8, ATP_INT32);
	send_all();
	put_unaligned_le32(S32_MAX, lanes_in + 1);
	answer_pkt(1, ATP_F_OVERFLOW);
	EXPECT_EQ(rx(), ATP_OK);
	EXPECT_EQ(data[4], S32_MAX);
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_TRUE(chunk->overflow);
	EXPECT_TRUE(atp_worker_readable(&w));
	done();
}

TEST(chunks_in_a_row)
{
	struct atp_chunk *c[20], *chunk;
	u32 i, una, seq = 0;

	start();
	for (i = 0; i < 20; i++) {
		c[i] = push_frags(1 + i % 3);
		EXPECT_EQ(c[i]->first, seq);
		seq += 1 + i % 3;
	}
	EXPECT_EQ(w.end, seq);
	for (i = 0; i < 20; i++) {
		while (!atp_worker_readable(&w)) {
			send_all();
			now += 100 * USEC;
			/* backwards, so that chunks complete out of order */
			una = w.una;
			for (seq = w.nxt - 1; seq != una - 1; seq--)
				EXPECT_EQ(answer(seq), ATP_OK);
		}
		chunk = atp_worker_pop(&w);
		EXPECT_TRUE(chunk == c[i]);
		drop_chunk(chunk);
	}
	EXPECT_EQ(w.una, w.end);
	EXPECT_EQ(w.stats.chunks, 20);
	done();
}

/* Those that nobody could use come back, whatever is left in the queue. */
TEST(put_back)
{
	struct atp_chunk *c[5];
	u32 left, i, k;

	for (left = 0; left <= 2; left++) {
		start_at((u32)-3);
		for (i = 0; i < 5; i++)
			c[i] = push_frags(1);
		EXPECT_EQ(w.pending, 5 * LANES);
		send_all();
		now += 100 * USEC;
		for (i = 0; i < 4; i++)
			EXPECT_EQ(answer((u32)-3 + i), ATP_OK);
		EXPECT_EQ(w.pending, LANES);
		for (k = 0; k < 4 - left; k++)
			EXPECT_TRUE(atp_worker_pop(&w) == c[k]);
		/* the second, the first, then the others */
		atp_worker_put_back(&w, c[1]);
		EXPECT_TRUE(atp_worker_readable(&w));
		atp_worker_put_back(&w, c[0]);
		for (k = 2; k < 4 - left; k++)
			atp_worker_put_back(&w, c[k]);
		EXPECT_EQ(answer(1), ATP_OK);
		EXPECT_EQ(w.pending, 0);
		push_frags(1);
		for (i = 0; i < 5; i++) {
			EXPECT_TRUE(atp_worker_pop(&w) == c[i]);
			drop_chunk(c[i]);
		}
		EXPECT_TRUE(!atp_worker_pop(&w));
		done();
	}
	/* into an empty queue: it is the newest as well */
	start();
	c[0] = push_frags(1);
	send_all();
	EXPECT_EQ(answer(0), ATP_OK);
	EXPECT_TRUE(atp_worker_pop(&w) == c[0]);
	atp_worker_put_back(&w, c[0]);
	c[1] = push_frags(1);
	send_all();
	EXPECT_EQ(answer(1), ATP_OK);
	for (i = 0; i < 2; i++) {
		EXPECT_TRUE(atp_worker_pop(&w) == c[i]);
		drop_chunk(c[i]);
	}
	done();
}

TEST(queue_of_half_the_sequence_space)
{
	struct atp_chunk a = { .elements = 0xffffffff, .dtype = ATP_INT32 };
	struct atp_chunk b = a, c = a, d = { .elements = 4 };

	start_at(-3);
	EXPECT_TRUE(atp_worker_push(&w, &a));
	EXPECT_EQ(a.frags, 1 << 30);
	b.elements -= 4;
	EXPECT_TRUE(atp_worker_push(&w, &b));
	EXPECT_EQ(w.end - w.una, S32_MAX);
	EXPECT_FALSE(atp_worker_push(&w, &c));
	EXPECT_FALSE(atp_worker_push(&w, &d));
	EXPECT_TRUE(w.tail == &b);
	w.head = NULL;
	done();
}

/* What is refused changes nothing. */
TEST(refused)
{
	u32 *data = calloc(8, 4);
	struct atp_worker before;
	struct atp_pkt good;

	start();
	push(data, 7, ATP_FLOAT32);
	push_frags(1);
	send_all();
	memset(lanes_in, 0x55, sizeof(lanes_in));
	EXPECT_EQ(answer(2), ATP_OK);
	before = w;

#define REFUSED(change, reason) do {					\
	answer_pkt(1, 0);						\
	good = in;							\
	change;								\
	EXPECT_EQ(rx(), ATP_DROP_##reason);				\
	w.stats.duplicates = 0;						\
	EXPECT_FALSE(memcmp(&w, &before, sizeof(w)));			\
	EXPECT_EQ(data[4], 0);						\
	in = good;							\
} while (0)
	REFUSED(in.job = 8, JOB);
	REFUSED(in.epoch = EPOCH - 1, EPOCH);
	REFUSED(in.type = ATP_TYPE_PING, TYPE);
	REFUSED(in.flags = 0, FLAGS);
	REFUSED(in.fanin0 = 5, FANIN);
	REFUSED(in.dtype = ATP_INT32, DTYPE);
	REFUSED(in.elements = 4, ELEMENTS);
	REFUSED(in.elements = 2, ELEMENTS);
	REFUSED(in.elements = 0, ELEMENTS);
	REFUSED(in.flags |= ATP_F_OVERFLOW, FLAGS);
	REFUSED(in.seq = 3, UNSENT);
	REFUSED(in.seq = 1 << 30, UNSENT);
	REFUSED(in.seq = -1, DUPLICATE);
	REFUSED(in.seq = 2; in.dtype = ATP_INT32; in.elements = 4, DUPLICATE);
#undef REFUSED
	EXPECT_EQ(status(1, 0x10), ATP_DROP_BITMAP);
	EXPECT_EQ(status(-1, 1), ATP_DROP_OLD);
	EXPECT_EQ(status(3, 2), ATP_DROP_UNSENT);
	EXPECT_EQ(status(4, 1), ATP_DROP_UNSENT);
	EXPECT_EQ(status(2, 1), ATP_DROP_DUPLICATE);
	EXPECT_FALSE(memcmp(&w, &before, sizeof(w)));
	done();
}

/* A second answer to a fragment does not touch what may be read already. */
TEST(duplicates)
{
	u32 *data = calloc(4, 4);

	start();
	push_frags(1);
	push(data, 4, ATP_INT32);
	send_all();
	put_unaligned_le32(5, lanes_in + 1);
	EXPECT_EQ(answer(1), ATP_OK);
	put_unaligned_le32(6, lanes_in + 1);
	EXPECT_EQ(answer(1), ATP_DROP_DUPLICATE);
	EXPECT_EQ(data[0], 5);
	EXPECT_EQ(answer(0), ATP_OK);
	answer_pkt(1, ATP_F_COLLISION);
	EXPECT_EQ(rx(), ATP_DROP_DUPLICATE);
	EXPECT_EQ(w.stats.duplicates, 2);
	EXPECT_EQ(w.frags[1].index, atp_index_hash(9, EPOCH, 0) + 1);
	EXPECT_EQ(w.inflight, 0);
	done();
}

/* A new index is for the fragment a window later, from its owner alone. */
TEST(new_index)
{
	u32 seq;

	start();
	push_frags(60);
	EXPECT_EQ(send_all(), 10);
	w.cong.cwnd = 16;
	answer_pkt(3, ATP_F_COLLISION);
	in.bitmap0 = 0xabcdef;
	EXPECT_EQ(rx(), ATP_OK);
	for (seq = 0; seq < 3; seq++)
		EXPECT_EQ(answer(seq), ATP_OK);
	while (w.nxt != 20) {
		ASSERT_TRUE(send_one());
		EXPECT_EQ(sent.index, sent.seq == 19 ? 0xabcdef :
			  atp_index_hash(9, EPOCH, 0) + sent.seq % 16);
	}
	/* a late copy, when the slot is another's */
	answer_pkt(3, ATP_F_COLLISION);
	in.bitmap0 = 0x111111;
	EXPECT_EQ(rx(), ATP_DROP_DUPLICATE);
	EXPECT_EQ(w.frags[3].index, 0xabcdef);
	/* without the flag bitmap0 is something else, and the index stays */
	for (seq = 4; seq < 20; seq++)
		EXPECT_EQ(answer(seq), ATP_OK);
	do {
		ASSERT_TRUE(send_one());
	} while (sent.seq != 35);
	EXPECT_EQ(sent.index, 0xabcdef);
	done();
}

TEST(raw_request_is_obeyed_at_once)
{
	u32 *data = calloc(12, 4);
	u32 i;

	for (i = 0; i < 12; i++)
		data[i] = oracle_bits(i);
	start();
	push(data, 12, ATP_FLOAT32);
	EXPECT_EQ(send_all(), 3);
	now += 100 * USEC;
	EXPECT_EQ(raw_request(1), ATP_OK);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 1);
	EXPECT_EQ(sent.flags, ATP_F_RAW | ATP_F_RESEND);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(sent_lane(i), (s32)data[4 + i]);
	EXPECT_FALSE(send_one());
	EXPECT_EQ(w.stats.raw, 1);
	EXPECT_EQ(w.cong.cwnd, 10);

	/* its copies are not */
	EXPECT_EQ(raw_request(1), ATP_DROP_DUPLICATE);
	EXPECT_FALSE(send_one());
	/* later it is a new one; and raw it stays */
	now += 49 * MSEC;
	EXPECT_EQ(raw_request(1), ATP_DROP_DUPLICATE);
	now += 2 * MSEC;
	EXPECT_EQ(raw_request(1), ATP_OK);
	EXPECT_EQ(raw_request(1), ATP_DROP_DUPLICATE);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.flags, ATP_F_RAW | ATP_F_RESEND);
	EXPECT_EQ(w.stats.raw, 1);

	/* the next fragment in the slot is an ordinary one */
	for (i = 0; i < 3; i++)
		EXPECT_EQ(answer(i), ATP_OK);
	push_frags(40);
	while (send_one()) {
		EXPECT_EQ(sent.flags & ATP_F_RAW, 0);
		EXPECT_EQ(answer(sent.seq), ATP_OK);
	}
	done();
}

/* An undo does not keep what the PS has asked for. */
TEST(raw_request_and_undo)
{
	start();
	push_frags(4);
	EXPECT_EQ(send_all(), 4);
	expire();
	EXPECT_EQ(raw_request(2), ATP_OK);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(status(0, 0x2), ATP_OK);
	EXPECT_EQ(w.lost, 1);
	ASSERT_TRUE(send_one());
	EXPECT_EQ(sent.seq, 2);
	EXPECT_EQ(sent.flags, ATP_F_RAW | ATP_F_RESEND);
	EXPECT_FALSE(send_one());
	done();
}

TAP_MAIN()
