// SPDX-License-Identifier: GPL-2.0
/*
 * The packets that everybody refuses (../vectors/packets), at a PS and at the
 * worker of rank 1.
 */
#include "../vectors/vectors.h"
#include "ps_fixture.h"
#include "session.h"
#include "worker.h"

#define FILE_NAME	"../vectors/packets"
#define RANK		1

static struct atp_session session;
static struct atp_worker worker;
static struct atp_frag *frags;
static bool running;
/* what the numbers in the vector are relative to */
static u32 epoch, seq;

static const char *reason_name(enum atp_drop drop)
{
	static const char *const names[] = {
		"ok",
#define X(name, string, help) string,
		ATP_DROP_REASONS(X)
#undef X
	};

	return names[drop];
}

/* At the worker, as kernel/worker.c does it */
static enum atp_drop worker_rx(const struct atp_pkt *pkt)
{
	enum atp_drop drop = atp_session_rx(&session, now, pkt);

	if (drop)
		return drop;
	if (!running && session.state == ATP_SESSION_JOINED) {
		atp_worker_init(&worker, &params, RANK, session.epoch, frags);
		running = true;
	}
	if (pkt->type != ATP_TYPE_DATA && pkt->type != ATP_TYPE_STATUS)
		return ATP_OK;
	return running ? atp_worker_rx(&worker, now, pkt) : ATP_DROP_STATE;
}

static void push(u32 elements, u8 dtype)
{
	struct atp_chunk *chunk = calloc(1, sizeof(*chunk));

	chunk->elements = elements;
	chunk->dtype = dtype;
	chunk->data = calloc(elements, 4);
	ASSERT_TRUE(atp_worker_push(&worker, chunk));
}

static void push_all(void)
{
	u8 buf[ATP_HDR_LEN + ATP_FRAGMENT_MAX];
	u32 next, len;

	push(10, ATP_INT32);
	push(3, ATP_FLOAT32);
	push(4, ATP_INT32);
	while (atp_worker_next(&worker, &next)) {
		len = atp_worker_build(&worker, next, now, buf);
		ASSERT_EQ(deliver(buf, len, false, ranks_at(RANK)), ATP_OK);
	}
	ASSERT_EQ(worker.nxt, params.window);
}

/* The state in which the job of a vector begins */
static void begin(const struct vector *v)
{
	u32 nonce = 4711, rank;

	make_ps(v->workers, v->fragment / 4, v->window);
	params.job = 7;
	ps.params.job = 7;
	frags = calloc(params.window, sizeof(*frags));
	running = false;
	atp_session_init(&session, &params, RANK);
	atp_session_join(&session, now, nonce);
	ASSERT_EQ(join(RANK, nonce), ATP_OK);
	nonces[RANK] = nonce;
	if (!strcmp(v->state, "joining"))
		return;
	for (rank = 0; rank < params.workers; rank++)
		if (rank != RANK)
			ASSERT_EQ(join(rank, ++nonce), ATP_OK);
	ASSERT_TRUE(ps.running);
	read_answer(RANK, false);
	ASSERT_EQ(worker_rx(&ans), ATP_OK);
	ASSERT_TRUE(running);
	if (!strcmp(v->state, "pushed"))
		push_all();
	else
		ASSERT_FALSE(strcmp(v->state, "idle"));
}

static void end(void)
{
	struct atp_chunk *chunk;

	while (running && (chunk = worker.head)) {
		worker.head = chunk->next;
		free(chunk->data);
		free(chunk);
	}
	memset(&worker, 0, sizeof(worker));
	free(frags);
	frags = NULL;
}

static void add_to(u8 *at, u32 n)
{
	put_unaligned_be32(get_unaligned_be32(at) + n, at);
}

static enum atp_drop take(const struct vector *v, u8 *data)
{
	struct atp_pkt pkt;
	enum atp_drop drop;

	if (v->len >= ATP_HDR_LEN) {
		add_to(data + 8, epoch);
		add_to(data + 12, seq);
	}
	if (v->to == VECTOR_PS)
		return deliver(data, v->len, false, v->from < params.workers ?
			       ranks_at(v->from) : 0);
	drop = atp_pkt_parse(&pkt, data, v->len);
	return drop ?: worker_rx(&pkt);
}

static void one(const struct vector *v)
{
	bool was_running = ps.running;
	u32 frontier = ps.frontier;
	/* at the exact length, for the sanitizer */
	u8 *data = malloc(v->len + 1);
	enum atp_drop drop;

	memcpy(data + 1, v->data, v->len);
	drop = take(v, data + 1);
	free(data);
	if (strcmp(reason_name(drop), v->host))
		tap_fail(__FILE__, __LINE__, "%s: %s, not %s", v->name,
			 reason_name(drop), v->host);
	EXPECT_EQ(ps.frontier, frontier);
	if (!drop || v->goes_on)
		return;
	/* what is refused at once has changed nothing */
	if (!strcmp(v->state, "idle"))
		EXPECT_EQ(ps.cells[0].state, ATP_CELL_EMPTY);
	if (drop != ATP_DROP_DISAGREE)
		EXPECT_EQ(ps.running, was_running);
}

TEST(each_for_its_reason)
{
	FILE *f = fopen(FILE_NAME, "r");
	struct vector v = {};
	u32 n = 0;

	ASSERT_TRUE(f);
	while (vector_read(f, &v)) {
		/* who sends to a worker is looked at before its engine is */
		if (v.to == RANK && v.from != VECTOR_PS)
			continue;
		if (!v.goes_on) {
			end();
			begin(&v);
			epoch = session.epoch;
			seq = worker.una;
		}
		one(&v);
		n++;
	}
	end();
	fclose(f);
	EXPECT_GT(n, 0);
	printf("# %u packets\n", n);
}

TAP_MAIN()
