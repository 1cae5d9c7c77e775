/* SPDX-License-Identifier: GPL-2.0 */
/* A worker on its own: what it is told, what it sends, what it gets. */
#ifndef _ATP_ENGINE_WORKER_FIXTURE_H
#define _ATP_ENGINE_WORKER_FIXTURE_H

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

#endif /* _ATP_ENGINE_WORKER_FIXTURE_H */
