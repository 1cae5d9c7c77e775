/* SPDX-License-Identifier: GPL-2.0 */
/* A PS with exactly the memory that it asked for, and packets for it. */
#ifndef _ATP_SELFTESTS_PS_FIXTURE_H
#define _ATP_SELFTESTS_PS_FIXTURE_H

#include <tap.h>
#include "ps.h"

#define MS		1000000ULL
#define TIMEOUT		(1000 * MS)
#define EPOCH		0xfffffffe	/* the second run's is zero */
#define SCALE		100000000
#define MAX_LANES	(ATP_FRAGMENT_MAX / 4)

static struct atp_params params;
static struct atp_ps ps;
static struct atp_ps_out out;
static u64 now = 5 * TIMEOUT;
static u32 nonces[ATP_MAX_WORKERS];
static u32 next_nonce = 1000;
/* address of each rank: ranks with the same number share a host */
static u32 address[ATP_MAX_WORKERS];

/* The answer that read_answer() parsed */
static struct atp_pkt ans;
static struct atp_ctl_host ctl;
static u8 ans_buf[ATP_HDR_LEN + ATP_FRAGMENT_MAX + 1];

static u32 all_ranks(void)
{
	return atp_all_ranks(&params);
}

/* The last JOINs that were sent, for late copies of them */
static struct {
	u32 rank, nonce, epoch, seq;
} sent[64];
static u32 sents;

static void make_ps(u32 workers, u32 lanes, u32 window)
{
	u32 i;

	memset(sent, 0, sizeof(sent));
	free(ps.cells);
	params = (struct atp_params) {
		.job = 77, .workers = workers, .fragment = lanes * 4,
		.window = window, .scale = SCALE, .timeout = TIMEOUT,
	};
	/* calloc() of the exact size: the sanitizer guards its end */
	atp_ps_init(&ps, &params, EPOCH, calloc(1, atp_ps_mem(&params)));
	for (i = 0; i < ATP_MAX_WORKERS; i++)
		address[i] = i;
}

static u32 ranks_at(u32 addr)
{
	u32 ranks = 0;
	u32 i;

	for (i = 0; i < params.workers; i++)
		if (address[i] == addr)
			ranks |= 1U << i;
	return ranks;
}

static enum atp_drop deliver(void *data, size_t len, bool ce, u32 sender)
{
	struct atp_pkt pkt;
	enum atp_drop drop;

	drop = atp_pkt_parse(&pkt, data, len);
	if (drop) {
		memset(&out, 0, sizeof(out));
		return drop;
	}
	pkt.ce = ce;
	return atp_ps_rx(&ps, now, &pkt, sender, &out);
}

static enum atp_drop rx_ctl_seq(u8 type, u32 rank, u32 nonce, u32 epoch,
				u32 seq)
{
	struct atp_pkt pkt = {
		.type = type, .job = params.job, .epoch = epoch, .seq = seq,
		.bitmap0 = 1U << rank, .cap = ATP_NO_CAP,
	};
	struct atp_ctl_host c = {
		.nonce = nonce, .workers = params.workers,
		.fragment = params.fragment, .window = params.window,
		.scale = params.scale, .server = params.server,
	};
	u8 buf[ATP_HDR_LEN + ATP_CTL_LEN];

	return deliver(buf, atp_ctl_write(buf, &pkt, &c), false,
		       ranks_at(address[rank]));
}

static enum atp_drop rx_ctl(u8 type, u32 rank, u32 nonce, u32 epoch)
{
	return rx_ctl_seq(type, rank, nonce, epoch, 0);
}

static enum atp_drop join_with(u32 rank, u32 nonce, u32 epoch, u32 seq)
{
	u32 i = sents++ % ARRAY_SIZE(sent);

	sent[i].rank = rank;
	sent[i].nonce = nonce;
	sent[i].epoch = epoch;
	sent[i].seq = seq;
	return rx_ctl_seq(ATP_TYPE_JOIN, rank, nonce, epoch, seq);
}

/* As a worker does: once more with what the PS wants to see, if it says that */
static enum atp_drop join(u32 rank, u32 nonce)
{
	enum atp_drop drop = join_with(rank, nonce, 0, 0);

	if (drop || out.type != ATP_TYPE_PONG || !out.seq)
		return drop;
	EXPECT_EQ(out.ranks, 1U << rank);
	return join_with(rank, nonce, out.epoch, out.seq);
}

/* Copies of all JOINs with that nonce; the first has no ticket, and none may
 * begin or end a run
 */
static void late_join(u32 rank, u32 nonce)
{
	enum atp_drop drop;
	u32 i, n = 0;

	for (i = 0; i < ARRAY_SIZE(sent); i++) {
		if (sent[i].rank != rank || sent[i].nonce != nonce)
			continue;
		drop = rx_ctl_seq(ATP_TYPE_JOIN, rank, nonce, sent[i].epoch,
				  sent[i].seq);
		if (sent[i].seq)
			EXPECT_EQ(drop, ATP_DROP_NONCE);
		EXPECT_EQ(out.events, 0);
		EXPECT_NE(out.type, ATP_TYPE_WELCOME);
		n++;
	}
	EXPECT_GE(n, 2);
}

static enum atp_drop leave(u32 rank)
{
	return rx_ctl(ATP_TYPE_LEAVE, rank, nonces[rank], ps.epoch);
}

static enum atp_drop ping(u32 rank)
{
	return rx_ctl(ATP_TYPE_PING, rank, nonces[rank], ps.epoch);
}

/* All join with new nonces. */
static void start_run(void)
{
	u32 i;

	for (i = 0; i < params.workers; i++) {
		nonces[i] = next_nonce++;
		ASSERT_EQ(join(i, nonces[i]), ATP_OK);
	}
	ASSERT_TRUE(ps.running);
	ASSERT_EQ(out.type, ATP_TYPE_WELCOME);
}

/* What a gradient is, where it is not the usual: all lanes of int32 */
struct grad {
	u32 seq;
	u32 bits;
	u32 flags;
	u32 elements;
	u32 dtype;
	u32 epoch;
	u32 fanin;
	u32 index;
	u32 cap;
	u32 sender;
	bool ce;
	const s32 *lanes;
};

static struct grad grad(u32 seq, u32 bits, const s32 *lanes)
{
	struct grad g = {
		.seq = seq, .bits = bits, .elements = params.fragment / 4,
		.dtype = ATP_INT32, .epoch = ps.epoch,
		.fanin = params.workers, .index = seq + 1000,
		.cap = ATP_NO_CAP, .lanes = lanes,
		.sender = bits ? ranks_at(address[__ffs(bits)]) : 1,
	};

	return g;
}

static enum atp_drop rx(const struct grad *g)
{
	size_t len = ATP_HDR_LEN + ATP_PAYLOAD_LEN(g->elements);
	struct atp_pkt pkt = {
		.type = ATP_TYPE_DATA, .job = params.job, .epoch = g->epoch,
		.seq = g->seq, .bitmap0 = g->bits, .flags = g->flags,
		.elements = g->elements, .dtype = g->dtype,
		.fanin0 = g->fanin, .index = g->index, .cap = g->cap,
	};
	u8 *buf = malloc(len + 1);
	enum atp_drop drop;
	u32 i;

	/* nobody else sends what several ranks have in it */
	if ((g->bits & (g->bits - 1)) && !(g->flags & ATP_F_RAW))
		pkt.flags |= ATP_F_SWITCHED;
	/* an odd address, and the end of the packet is the end of memory */
	atp_pkt_write_hdr(buf + 1, &pkt);
	memset(buf + 1 + ATP_HDR_LEN, 0x5a, len - ATP_HDR_LEN);
	for (i = 0; i < g->elements; i++)
		put_unaligned_le32(g->lanes ? g->lanes[i] : i,
				   buf + 1 + ATP_HDR_LEN + 4 * i);
	drop = deliver(buf + 1, len, g->ce, g->sender);
	free(buf);
	return drop;
}

static enum atp_drop rx_bits(u32 seq, u32 bits, u32 flags, const s32 *lanes)
{
	struct grad g = grad(seq, bits, lanes);

	g.flags = flags;
	return rx(&g);
}

/* Build out's packet for a rank and parse it again. */
static void read_answer(u32 rank, bool mcast)
{
	u32 len;

	ASSERT_NE(out.type, 0);
	memset(ans_buf, 0xa5, sizeof(ans_buf));
	len = atp_ps_build(&ps, &out, rank, mcast, ans_buf + 1);
	ASSERT_EQ(len, atp_ps_len(&ps, &out));
	ASSERT_LE(len, ATP_HDR_LEN + max_t(u32, params.fragment, ATP_CTL_LEN));
	ASSERT_EQ(atp_pkt_parse(&ans, ans_buf + 1, len), ATP_OK);
	EXPECT_EQ(ans.job, params.job);
	EXPECT_EQ(ans.type, out.type);
	EXPECT_EQ(ans.fanin0, params.workers);
	if (ans.type != ATP_TYPE_DATA)
		atp_ctl_read(&ctl, ans.payload);
}

static s32 answer_lane(u32 i)
{
	return get_unaligned_le32(ans.payload + 4 * i);
}

static void expect_nothing(void)
{
	EXPECT_EQ(out.type, 0);
	EXPECT_EQ(out.events, 0);
}

static void expect_abort(u32 ranks, u32 reason, u32 blame)
{
	EXPECT_EQ(out.type, ATP_TYPE_ABORT);
	EXPECT_EQ(out.ranks, ranks);
	EXPECT_FALSE(out.mcast);
	EXPECT_EQ(out.reason, reason);
	EXPECT_EQ(out.blame, blame);
	if (out.ranks) {
		read_answer(__ffs(out.ranks), false);
		EXPECT_EQ(ctl.reason, reason);
		EXPECT_EQ(ctl.ranks, blame);
	}
}

static struct atp_cell *cell_of(u32 seq)
{
	return &ps.cells[seq % (2 * params.window)];
}

static void expect_status(u32 ranks, u32 seq, u32 bitmap)
{
	EXPECT_EQ(out.type, ATP_TYPE_STATUS);
	EXPECT_EQ(out.ranks, ranks);
	EXPECT_EQ(out.seq, seq);
	EXPECT_FALSE(out.mcast);
	read_answer(__ffs(ranks), false);
	EXPECT_EQ(ans.seq, seq);
	EXPECT_EQ(ans.epoch, ps.epoch);
	EXPECT_EQ(ans.bitmap0, bitmap);
}

static void expect_raw_request(u32 ranks, u32 seq)
{
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	EXPECT_EQ(out.ranks, ranks);
	EXPECT_EQ(out.seq, seq);
	read_answer(__ffs(ranks), false);
	EXPECT_EQ(ans.flags, ATP_F_ACK | ATP_F_OVERFLOW);
	EXPECT_EQ(ans.elements, 0);
	EXPECT_EQ(ans.seq, seq);
	EXPECT_EQ(ans.index, seq + 1000);
}

static void expect_complete(u32 ranks, u32 seq)
{
	EXPECT_EQ(out.type, ATP_TYPE_DATA);
	EXPECT_EQ(out.ranks, ranks);
	EXPECT_EQ(out.seq, seq);
	EXPECT_TRUE(out.events & ATP_PS_EV_COMPLETE);
}

/* Complete a fragment at once, by an aggregate of all. */
static void complete(u32 seq)
{
	ASSERT_EQ(rx_bits(seq, all_ranks(), 0, NULL), ATP_OK);
	ASSERT_TRUE(out.events & ATP_PS_EV_COMPLETE);
}

#endif /* _ATP_SELFTESTS_PS_FIXTURE_H */
