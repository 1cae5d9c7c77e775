// SPDX-License-Identifier: GPL-2.0
/* A chunk in pages: the packets and results of one in a piece, bit for bit. */
#include <tap.h>
#include "chunk.h"
#include "oracle.h"

#define EPOCH	77
#define LANES	150	/* of a fragment: more than two pages */
#define FRAGS	3
#define ROOM	(ATP_HDR_LEN + 4 * LANES)

static const struct atp_params params = {
	.job = 9,
	.workers = 4,
	.fragment = 4 * LANES,
	.window = 4,
	.scale = 100,
	.timeout = 1000000000,
};

/**
 * struct side - a worker with one chunk
 * @w: worker
 * @frags: its window
 * @packets: what it sent
 * @len: of each
 */
struct side {
	struct atp_worker w;
	struct atp_frag frags[4];
	u8 packets[FRAGS][ROOM];
	u32 len[FRAGS];
};

static void begin(struct side *s, struct atp_chunk *chunk, u8 dtype,
		  const u32 *lanes)
{
	u32 i;

	memset(s, 0, sizeof(*s));
	for (i = 0; i < chunk->elements; i++)
		*chunk_lane(chunk, i) = lanes[i];
	chunk->dtype = dtype;
	atp_worker_init(&s->w, &params, 1, EPOCH, s->frags);
	s->w.cong.cwnd = 4;
	ASSERT_TRUE(atp_worker_push(&s->w, chunk));
}

static void send_all(struct side *s)
{
	u32 seq;

	while (atp_worker_next(&s->w, &seq)) {
		ASSERT_LT(seq, FRAGS);
		s->len[seq] = atp_worker_len(&s->w, seq);
		ASSERT_LE(s->len[seq], ROOM);
		ASSERT_EQ(atp_worker_build(&s->w, seq, 1, s->packets[seq]),
			  s->len[seq]);
	}
}

/* Each fragment's sum is what was sent, from behind: out of order. */
static void answer_all(struct side *s)
{
	struct atp_pkt pkt;
	u32 seq = s->w.nxt;

	while (seq--) {
		ASSERT_EQ(atp_pkt_parse(&pkt, s->packets[seq], s->len[seq]),
			  ATP_OK);
		pkt.flags = ATP_F_ACK | (pkt.flags & ATP_F_RAW);
		ASSERT_EQ(atp_worker_rx(&s->w, 2, &pkt), ATP_OK);
	}
}

static u32 lane_of(u8 dtype, u32 i)
{
	if (dtype == ATP_INT32)
		return i * 0x01020304;
	/* behind the first fragment every seventh fits no integer */
	return oracle_bits(i % 7 || i < LANES ? i - 212.125 : 3e9);
}

static void compare(u32 elements, u32 skip, u8 dtype)
{
	struct atp_chunk *one = chunk_in_one(elements);
	struct atp_chunk *pages = chunk_in_pages(elements, skip);
	struct side a, b;
	u32 lanes[LANES * FRAGS];
	u32 i;

	for (i = 0; i < elements; i++)
		lanes[i] = lane_of(dtype, i);
	begin(&a, one, dtype, lanes);
	begin(&b, pages, dtype, lanes);
	send_all(&a);
	send_all(&b);
	ASSERT_EQ(a.w.nxt, b.w.nxt);
	ASSERT_EQ(a.w.stats.raw, b.w.stats.raw);
	ASSERT_EQ(memcmp(a.len, b.len, sizeof(a.len)), 0);
	ASSERT_EQ(memcmp(a.packets, b.packets, sizeof(a.packets)), 0);

	/* what comes back is not what was pushed: that is gone */
	for (i = 0; i < elements; i++) {
		*chunk_lane(one, i) = 0xa5a5a5a5;
		*chunk_lane(pages, i) = 0xa5a5a5a5;
	}
	answer_all(&a);
	answer_all(&b);
	ASSERT_TRUE(atp_worker_pop(&a.w) == one);
	ASSERT_TRUE(atp_worker_pop(&b.w) == pages);
	for (i = 0; i < elements; i++) {
		ASSERT_NE(*chunk_lane(one, i), 0xa5a5a5a5);
		ASSERT_EQ(*chunk_lane(one, i), *chunk_lane(pages, i));
	}
	chunk_free(one);
	chunk_free(pages);
}

static void compare_all(u8 dtype)
{
	static const u32 elements[] = { 1, 2, 63, 64, 65, LANES - 1, LANES,
					LANES + 1, LANES * FRAGS };
	u32 i, skip;

	for (i = 0; i < ARRAY_SIZE(elements); i++) {
		for (skip = 0; skip < ATP_PAGE_LANES; skip++)
			compare(elements[i], skip, dtype);
	}
}

TEST(integers)
{
	compare_all(ATP_INT32);
}

TEST(floats)
{
	compare_all(ATP_FLOAT32);
}

/* Lanes beside those of the chunk are somebody else's. */
TEST(nothing_beside_it)
{
	struct atp_chunk *chunk = chunk_in_pages(LANES, 30);
	u32 lanes[LANES] = {};
	struct side s;
	u32 i;

	for (i = 0; i < 30; i++)
		chunk->pages[0][i] = ~i;
	for (i = LANES + 30; i < 3 * ATP_PAGE_LANES; i++)
		chunk->pages[2][i % ATP_PAGE_LANES] = ~i;
	begin(&s, chunk, ATP_INT32, lanes);
	send_all(&s);
	answer_all(&s);
	for (i = 0; i < 30; i++)
		EXPECT_EQ(chunk->pages[0][i], ~i);
	for (i = LANES + 30; i < 3 * ATP_PAGE_LANES; i++)
		EXPECT_EQ(chunk->pages[2][i % ATP_PAGE_LANES], ~i);
	chunk_free(chunk);
}

TAP_MAIN()
