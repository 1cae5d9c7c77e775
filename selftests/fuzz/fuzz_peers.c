// SPDX-License-Identifier: GPL-2.0
/*
 * Any packets, from anybody, to a PS and a worker in the middle of a run.  No
 * sum is compared, since a worker's host may push what it likes; but memory,
 * answers and the invariants hold, and a stranger changes nothing.
 *
 * An input is a list of records:
 *
 *	0		time goes on; the next byte says how far
 *	1 to 255, len	a packet of len bytes: bit 0 to the worker, else to the
 *			PS; bit 1 with CE; bits 2 to 4: ranks whose address is
 *			the sender's; 5: to what the worker sends next, instead
 *			of len bytes
 */
#include <atp/env.h>
#include "bytes.h"
#include "invariants.h"
#include "session.h"

#define WORKERS		3
#define RANK		1
#define FIRST_EPOCH	0x100
#define NONCE		1000
#define SEC		1000000000ULL

static const struct atp_params params = {
	.job = 7, .workers = WORKERS, .fragment = 16, .window = 4,
	.scale = 100000000, .timeout = SEC, .patience = 4 * SEC,
};

static u64 now;
static struct atp_ps ps;
static struct atp_session session;
static struct atp_worker worker;
static struct atp_frag frags[4];
static bool running;

static void push(u32 elements, u8 dtype)
{
	struct atp_chunk *chunk = calloc(1, sizeof(*chunk));

	chunk->elements = elements;
	chunk->dtype = dtype;
	chunk->data = calloc(elements, 4);
	CHECK(atp_worker_push(&worker, chunk));
}

static void free_chunk(struct atp_chunk *chunk)
{
	free(chunk->data);
	free(chunk);
}

/* Whatever the PS wants to be sent can be built, and is what it may send. */
static void check_answer(const struct atp_ps_out *out, u32 rank, bool mcast)
{
	u32 len = atp_ps_len(&ps, out);
	u8 *buf = malloc(len + 1);
	struct atp_pkt pkt;

	CHECK(atp_ps_build(&ps, out, rank, mcast, buf + 1) == len);
	CHECK(atp_pkt_parse(&pkt, buf + 1, len) == ATP_OK);
	CHECK(pkt.job == params.job && pkt.type == out->type);
	if (pkt.type == ATP_TYPE_DATA)
		CHECK(pkt.flags & ATP_F_ACK && pkt.seq == out->seq);
	else if (pkt.type != ATP_TYPE_STATUS)
		CHECK(pkt.bitmap0 == 1U << rank);
	free(buf);
}

static void check_out(const struct atp_ps_out *out)
{
	u32 rank;

	CHECK(!(out->ranks & ~atp_all_ranks(&params)));
	CHECK(!(out->blame & ~atp_all_ranks(&params)));
	if (!out->type) {
		CHECK(!out->mcast);
		return;
	}
	for (rank = 0; rank < WORKERS; rank++)
		if (out->ranks & (1U << rank))
			check_answer(out, rank, false);
	if (out->mcast) {
		CHECK(out->mcast_rank < WORKERS);
		check_answer(out, out->mcast_rank, true);
	}
}

/* All of the PS that a packet could change but the counters */
static u64 digest_ps(void)
{
	const u8 *part[] = { (u8 *)&ps, (u8 *)ps.cells };
	const size_t size[] = { offsetof(struct atp_ps, stats),
				atp_ps_mem(&params) };
	u64 hash = 14695981039346656037ULL;
	size_t i, k;

	for (k = 0; k < 2; k++)
		for (i = 0; i < size[k]; i++)
			hash = (hash ^ part[k][i]) * 1099511628211ULL;
	return hash;
}

static void to_ps(const struct atp_pkt *pkt, u32 sender)
{
	u32 frontier = ps.frontier, epoch = ps.epoch;
	u64 before = sender ? 0 : digest_ps();
	struct atp_ps_out out;
	enum atp_drop drop;

	drop = atp_ps_rx(&ps, now, pkt, sender, &out);
	CHECK(drop < ATP_DROP_MAX);
	check_out(&out);
	check_ps(&ps);
	if (epoch == ps.epoch)
		CHECK((s32)(ps.frontier - frontier) >= 0);
	if (!sender) {
		CHECK(drop != ATP_OK);
		CHECK(!out.type && !out.events);
		CHECK(digest_ps() == before);
	}
}

static void to_worker(const struct atp_pkt *pkt)
{
	struct atp_chunk *chunk;
	u32 una = worker.una;
	enum atp_drop drop;

	drop = atp_session_rx(&session, now, pkt);
	CHECK(drop < ATP_DROP_MAX);
	CHECK((session.state == ATP_SESSION_FAILED) == !!session.reason);
	if (session.state == ATP_SESSION_JOINED)
		CHECK(!(session.ranks & ~atp_all_ranks(&params)));
	if (!running && session.state == ATP_SESSION_JOINED) {
		atp_worker_init(&worker, &params, RANK, session.epoch, frags);
		running = true;
		push(10, ATP_INT32);
		push(3, ATP_FLOAT32);
		push(4, ATP_INT32);
		una = 0;
	}
	if (!running)
		return;
	CHECK(atp_worker_rx(&worker, now, pkt) < ATP_DROP_MAX);
	check_worker(&worker);
	CHECK(worker.una - una <= params.window);
	chunk = atp_worker_pop(&worker);
	if (chunk) {
		CHECK(chunk->done == chunk->frags);
		free_chunk(chunk);
	}
}

/* What the worker would send now.  Return: length, 0 for nothing */
static u32 worker_packet(u8 *buf)
{
	u32 seq, len;
	u8 type = atp_session_tick(&session, now);

	if (type)
		return atp_session_build(&session, type, buf);
	if (!running || !atp_worker_next(&worker, &seq))
		return 0;
	len = atp_worker_len(&worker, seq);
	CHECK(atp_worker_build(&worker, seq, now, buf) == len);
	check_worker(&worker);
	return len;
}

static void time_goes_on(u32 how_far)
{
	struct atp_ps_out out;

	now += 1000ULL << how_far % 24;
	atp_ps_timeout(&ps, now, &out);
	check_out(&out);
	check_ps(&ps);
	if (!running)
		return;
	atp_worker_timeout(&worker, now);
	check_worker(&worker);
}

static void deliver(u8 kind, const u8 *data, size_t len)
{
	struct atp_pkt pkt;

	if (atp_pkt_parse(&pkt, data, len))
		return;
	pkt.ce = kind & 2;
	if (kind & 1)
		to_worker(&pkt);
	else
		to_ps(&pkt, kind >> 2 & atp_all_ranks(&params));
}

static void join(u32 rank)
{
	u8 buf[ATP_HDR_LEN + ATP_CTL_LEN];
	struct atp_session s;

	atp_session_init(&s, &params, rank);
	atp_session_join(&s, now, NONCE + rank);
	CHECK(atp_session_tick(&s, now) == ATP_TYPE_JOIN);
	deliver(4 << rank, buf, atp_session_build(&s, ATP_TYPE_JOIN, buf));
	/* as the PS answers */
	s.ticket = ps.members[rank].ticket;
	s.ticket_epoch = ps.epoch;
	deliver(4 << rank, buf, atp_session_build(&s, ATP_TYPE_JOIN, buf));
	if (rank == RANK)
		session = s;
}

static void begin(void)
{
	u32 rank;

	now = SEC;
	running = false;
	atp_ps_init(&ps, &params, FIRST_EPOCH, calloc(1, atp_ps_mem(&params)));
	for (rank = 0; rank < WORKERS; rank++)
		join(rank);
	CHECK(ps.running);
}

static void end(void)
{
	struct atp_chunk *chunk;

	while (running && (chunk = worker.head)) {
		worker.head = chunk->next;
		free_chunk(chunk);
	}
	memset(&worker, 0, sizeof(worker));
	free(ps.cells);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	u8 sent[ATP_HDR_LEN + ATP_CTL_LEN], kind, *packet;
	size_t len;

	begin();
	while (in.left) {
		kind = byte(&in);
		if (!kind) {
			time_goes_on(byte(&in));
			continue;
		}
		if (kind & 0x20) {
			len = worker_packet(sent);
			if (len)
				deliver(4 << RANK, sent, len);
			continue;
		}
		len = byte(&in);
		packet = malloc(len + 1);
		len = take(&in, packet + 1, len);
		packet = realloc(packet, len + 1);
		deliver(kind, packet + 1, len);
		free(packet);
	}
	end();
	return 0;
}
