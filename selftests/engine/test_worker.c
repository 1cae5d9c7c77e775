// SPDX-License-Identifier: GPL-2.0
/* A worker: queue, packets, results, loss, waiting; event by event. */
#include <tap.h>
#include "oracle.h"
#include "quantise.h"
#include "worker.h"

#define USEC	1000ULL
#define MSEC	1000000ULL
#define SEC	1000000000ULL
#define EPOCH	77
#define LANES	4

static struct atp_params params = {
	.job = 9,
	.workers = 4,
	.fragment = 4 * LANES,
	.window = 16,
	.scale = 100,
	.timeout = 8 * SEC,
};

static struct atp_worker w;
static struct atp_frag *frags;
static u64 now;

/* The last packet that was sent */
static u8 wire[ATP_HDR_LEN + 4 * LANES + 1];
static struct atp_pkt sent;

static void start_at(u32 seq)
{
	now = SEC;
	free(frags);
	frags = malloc(params.window * sizeof(*frags));
	memset(frags, 0xa5, params.window * sizeof(*frags));
	atp_worker_init(&w, &params, 1, EPOCH, frags);
	w.una = seq;
	w.nxt = seq;
	w.end = seq;
	/* fragments of an MTU, as far as the window is concerned */
	w.cong.step = 1;
}

static void start(void)
{
	start_at(0);
}

static struct atp_chunk *push(u32 *data, u32 elements, u8 dtype)
{
	struct atp_chunk *chunk = calloc(1, sizeof(*chunk));

	chunk->data = data;
	chunk->elements = elements;
	chunk->dtype = dtype;
	ASSERT_TRUE(atp_worker_push(&w, chunk));
	return chunk;
}

/* A chunk of n fragments of integers, that need not be looked at */
static struct atp_chunk *push_frags(u32 n)
{
	return push(calloc(LANES * n, 4), LANES * n, ATP_INT32);
}

static void drop_chunk(struct atp_chunk *chunk)
{
	free(chunk->data);
	free(chunk);
}

static void done(void)
{
	while (w.head) {
		struct atp_chunk *chunk = w.head;

		w.head = chunk->next;
		drop_chunk(chunk);
	}
	free(frags);
	frags = NULL;
}

/* Send what may be sent next.  Return: is there anything? */
static bool send_one(void)
{
	u32 seq, len;

	if (!atp_worker_next(&w, &seq))
		return false;
	len = atp_worker_len(&w, seq);
	ASSERT_LE(len, sizeof(wire) - 1);
	memset(wire, 0xa5, sizeof(wire));
	ASSERT_EQ(atp_worker_build(&w, seq, now, wire + 1), len);
	ASSERT_EQ(atp_pkt_parse(&sent, wire + 1, len), ATP_OK);
	ASSERT_EQ(sent.seq, seq);
	return true;
}

static u32 send_all(void)
{
	u32 n = 0;

	while (send_one())
		n++;
	return n;
}

static s32 sent_lane(u32 i)
{
	return get_unaligned_le32((const u8 *)sent.payload + 4 * i);
}

/* The answer to a fragment, at an odd address */
static u8 lanes_in[4 * LANES + 1];
static struct atp_pkt in;

static void answer_pkt(u32 seq, u16 flags)
{
	const struct atp_chunk *chunk = w.frags[seq % params.window].chunk;

	in = (struct atp_pkt){
		.type = ATP_TYPE_DATA,
		.dtype = chunk->dtype,
		.fanin0 = 4,
		.flags = ATP_F_ACK | flags,
		.cap = ATP_NO_CAP,
		.job = 9,
		.epoch = EPOCH,
		.seq = seq,
		.bitmap0 = 0xf,
		.elements = min_t(u32, LANES,
				  chunk->elements -
				  LANES * (seq - chunk->first)),
		.payload = lanes_in + 1,
	};
}

static enum atp_drop rx(void)
{
	return atp_worker_rx(&w, now, &in);
}

static enum atp_drop answer(u32 seq)
{
	answer_pkt(seq, 0);
	return rx();
}

static enum atp_drop raw_request(u32 seq)
{
	answer_pkt(seq, ATP_F_OVERFLOW);
	in.elements = 0;
	return rx();
}

static enum atp_drop status(u32 seq, u32 ranks)
{
	in = (struct atp_pkt){
		.type = ATP_TYPE_STATUS,
		.fanin0 = 4,
		.job = 9,
		.epoch = EPOCH,
		.seq = seq,
		.bitmap0 = ranks,
	};
	return rx();
}

static void expire(void)
{
	now = atp_worker_deadline(&w);
	ASSERT_NE(now, U64_MAX);
	atp_worker_timeout(&w, now - 1);
	atp_worker_timeout(&w, now);
}

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
