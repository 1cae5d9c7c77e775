// SPDX-License-Identifier: GPL-2.0
/*
 * A whole job in the simulated network (../engine/sim.h), with the bytes as
 * everything that can go wrong: which packet comes next, which are lost, copied
 * or come much later, when time goes on, who restarts.  Whatever that was, each
 * chunk that a worker pulls is the oracle's bit for bit (sim_pop() compares).
 * When the bytes end the network is good, and then every chunk must come
 * through in bounded time; or, if a worker has died, every rank must know why
 * not.
 */
#include "bytes.h"
#include "invariants.h"
#include "engine/sim.h"

/* Copies of packets that may come again any time, also in a later run */
#define OLD_PACKETS	8
/* Ranks that an input has die are bits of sim_cfg.dead; this one is nobody and
 * tells sim.h that runs may fail.
 */
#define NOBODY		0x80000000
#define MOST_EVENTS	200000

struct old_packet {
	enum sim_kind kind;
	u32 rank, len;
	u8 *mem;
};

static struct sim s;
static struct old_packet old[OLD_PACKETS];
static u32 n_old, next_nonce;

static bool is_packet(const struct sim_event *ev)
{
	return ev->kind == SIM_AT_SWITCH_UP || ev->kind == SIM_AT_SWITCH_DOWN ||
	       ev->kind == SIM_AT_PS || ev->kind == SIM_AT_WORKER;
}

static void check_all(void)
{
	u32 r;

	for (r = 0; r < s.cfg.workers; r++)
		if (s.w[r].running)
			check_worker(&s.w[r].worker);
	check_ps(&s.ps);
	CHECK(!tap_failures);
}

/* Remember a packet that was delivered. */
static void keep(const struct sim_event *ev)
{
	struct old_packet *o = &old[n_old++ % OLD_PACKETS];

	free(o->mem);
	o->kind = ev->kind;
	o->rank = ev->rank;
	o->len = ev->len;
	o->mem = malloc(ev->len + 1);
	memcpy(o->mem + 1, ev->mem + 1, ev->len);
}

static void forget_old(void)
{
	u32 i;

	for (i = 0; i < OLD_PACKETS; i++)
		free(old[i].mem);
	memset(old, 0, sizeof(old));
	n_old = 0;
}

static void replay(u32 i)
{
	const struct old_packet *o = &old[i % OLD_PACKETS];
	struct sim_event ev = {
		.time = s.now, .kind = o->kind, .rank = o->rank, .len = o->len,
	};

	if (!o->mem)
		return;
	ev.mem = malloc(o->len + 1);
	memcpy(ev.mem + 1, o->mem + 1, o->len);
	sim_post(&s, ev);
}

/* The earliest event happens. */
static void step(void)
{
	struct sim_event ev = sim_take(&s);

	s.now = max(s.now, ev.time);
	if (is_packet(&ev))
		keep(&ev);
	sim_event(&s, &ev);
	free(ev.mem);
	check_all();
}

/* Bring event i to the front of the heap, as of now. */
static void hurry(u32 i)
{
	struct sim_event ev = s.heap[i];

	ev.time = 0;
	for (; i; i = (i - 1) / 2)
		s.heap[i] = s.heap[(i - 1) / 2];
	s.heap[0] = ev;
}

/* What becomes of a packet on its way: it comes now, never, twice, late. */
static void fate(struct bytes *in, u32 what)
{
	u32 i, left = byte(in);
	struct sim_event ev;

	if (!s.heap_len)
		return;
	i = left % s.heap_len;
	if (!is_packet(&s.heap[i]))
		return;
	hurry(i);
	if (!what) {
		step();
		return;
	}
	ev = sim_take(&s);
	if (what == 1) {
		free(ev.mem);
		return;
	}
	ev.time = s.now + (1000ULL << byte(in) % 22);
	if (what == 2) {
		sim_post(&s, ev);
		return;
	}
	ev.ce = true;
	sim_post(&s, ev);
	keep(&ev);
	replay(n_old - 1);
}

static void drop_chunks(struct sim_worker *w)
{
	while (w->worker.head) {
		struct atp_chunk *chunk = w->worker.head;

		w->worker.head = chunk->next;
		chunk_free(chunk);
	}
}

/* A process closes its socket, or is killed, and opens another. */
static void rejoin(u32 rank, bool leave)
{
	struct sim_worker *w = &s.w[rank];

	if (sim_is_dead(&s, rank))
		return;
	if (leave && w->session.state != ATP_SESSION_FAILED)
		sim_session_out(&s, rank, ATP_TYPE_LEAVE);
	drop_chunks(w);
	atp_worker_init(&w->worker, &s.params, rank, 0, w->frags);
	w->running = false;
	w->pushed = 0;
	w->popped = 0;
	w->failed = 0;
	atp_session_init(&w->session, &s.params, rank);
	atp_session_join(&w->session, s.now, next_nonce++);
	sim_worker_go(&s, rank);
}

/* The application at the PS closes its socket, and opens another or not. */
static void serve(bool again)
{
	struct atp_ps_out out;

	atp_ps_server_leave(&s.ps, s.now, &out);
	sim_send_ps(&s, &out);
	if (again) {
		atp_ps_server_join(&s.ps, s.now, &out);
		sim_send_ps(&s, &out);
	}
	sim_arm_ps(&s);
}

/* Who takes part: the ranks, behind them the application if there is one */
static void restart(u32 who, bool first)
{
	who %= s.cfg.workers + s.cfg.server;
	if (who == s.cfg.workers)
		serve(first);
	else
		rejoin(who, first);
}

/* With a farewell (the job is removed and added) or without (power). */
static void restart_ps(bool stop)
{
	u32 epoch = s.ps.epoch + 0x40000001;
	struct atp_ps_out out;

	if (stop) {
		atp_ps_stop(&s.ps, &out);
		sim_send_ps(&s, &out);
	}
	memset(s.ps_mem, 0, atp_ps_mem(&s.params));
	atp_ps_init(&s.ps, &s.params, epoch, s.ps_mem);
}

/* A packet that is no worker's: nothing may come of it. */
static void stranger(struct bytes *in)
{
	u8 packet[ATP_HDR_LEN + 64];
	struct atp_ps_out out;
	struct atp_ps before = s.ps;
	struct atp_pkt pkt;
	size_t len = take(in, packet, byte(in) % sizeof(packet));

	if (len >= ATP_HDR_LEN) {
		packet[0] = ATP_VERSION;
		/* most of it is right, or it would never get far */
		put_unaligned_be32(SIM_JOB, packet + 4);
		put_unaligned_be32(s.ps.epoch, packet + 8);
		put_unaligned_be32(s.ps.frontier + packet[15] % 4, packet + 12);
	}
	if (atp_pkt_parse(&pkt, packet, len))
		return;
	CHECK(atp_ps_rx(&s.ps, s.now, &pkt, 0, &out) != ATP_OK);
	CHECK(!out.type && !out.events);
	CHECK(!memcmp(&before, &s.ps, offsetof(struct atp_ps, stats)));
}

static void operate(struct bytes *in)
{
	u8 op = byte(in);
	u32 rank = (op >> 4) % s.cfg.workers;

	switch (op & 15) {
	case 0:
	case 1:
	case 2:
	case 3:
		fate(in, op & 3);
		break;
	case 4:
		if (s.cfg.aggregators)
			sim_switch_forget(&s.sw);
		break;
	case 5:
		if (s.cfg.aggregators)
			sim_switch_occupy(&s.sw, byte(in), s.now);
		break;
	case 6:
		/* the switch is there from now on, or no longer */
		s.cfg.absent = op >> 4 & 1 ? s.now : 0;
		s.cfg.present = op >> 4 & 1 ? U64_MAX : s.now;
		break;
	case 7:
		restart_ps(op >> 4 & 1);
		break;
	case 8:
	case 9:
		restart(op >> 4, !(op & 1));
		break;
	case 10:
		replay(op >> 4);
		break;
	case 11:
		stranger(in);
		break;
	case 12:
		s.now += 1000ULL << byte(in) % 21;
		break;
	case 13:
		if (byte(in) == 0xdd) {
			s.cfg.dead |= 1U << rank;
			s.cfg.dies = 0;
		}
		break;
	default:
		/* the network as it should be */
		for (rank = 1 + (op >> 4); rank && s.heap_len; rank--)
			step();
	}
	check_all();
}

static bool failed(u32 rank)
{
	return s.w[rank].session.state == ATP_SESSION_FAILED;
}

/* Each rank has pulled all of the same run. */
static bool done(void)
{
	u32 r;

	for (r = 0; r < s.cfg.workers; r++)
		if (!s.w[r].running || s.w[r].popped < s.cfg.chunks ||
		    s.w[r].session.epoch != s.w[0].session.epoch || failed(r))
			return false;
	return true;
}

/* A rank that has all its results is not disturbed when another starts again,
 * though that one waits for it: the job has to be started again as a whole.
 */
static bool left_behind(u32 rank)
{
	const struct sim_worker *w = &s.w[rank];
	u32 r;

	if (!w->running || w->popped < s.cfg.chunks)
		return false;
	for (r = 0; r < s.cfg.workers; r++)
		if (!s.w[r].running ||
		    s.w[r].session.epoch != w->session.epoch)
			return true;
	return false;
}

/* Of those that live, each knows why there is no result, or has asked for
 * another run, which will be when the dead one comes.
 */
static bool all_know(void)
{
	u32 r;

	for (r = 0; r < s.cfg.workers; r++) {
		const struct sim_worker *w = &s.w[r];

		if (sim_is_dead(&s, r))
			continue;
		if (w->session.state == ATP_SESSION_JOINED &&
		    w->popped < s.cfg.chunks)
			return false;
	}
	return true;
}

/* The application's run has ended, or it has left. */
static bool unserved(void)
{
	return s.cfg.server && !s.ps.server.joined && !s.ps.server.pending;
}

/* The bytes have ended. */
static void recover(void)
{
	u64 limit = s.now + 100 * SEC;
	bool dead = s.cfg.dead & ~NOBODY;
	u32 r, events = 0;

	s.cfg.absent = 0;
	s.cfg.present = 0;
	for (r = 0; r < s.cfg.workers; r++)
		sim_worker_go(&s, r);
	sim_arm_ps(&s);
	while (!(dead ? all_know() : done())) {
		/* applications start again */
		for (r = 0; !dead && r < s.cfg.workers; r++)
			if (failed(r) || left_behind(r))
				rejoin(r, true);
		if (!dead && unserved())
			serve(true);
		if (!s.heap_len || s.now >= limit || ++events >= MOST_EVENTS)
			sim_dump(&s);
		CHECK(s.heap_len);
		CHECK(s.now < limit);
		CHECK(events < MOST_EVENTS);
		step();
	}
	for (r = 0; dead && r < s.cfg.workers; r++)
		CHECK(!failed(r) || s.w[r].session.reason);
}

static void configure(struct sim_cfg *cfg, struct bytes *in)
{
	static const u32 fragments[] = { 8, 16, 64 };
	static const u32 aggregators[] = { 0, 1, 3, 16 };
	static const u32 scales[] = { 1, 1000, 100000000, ~0U };
	u8 a = byte(in), b = byte(in), c = byte(in), d = byte(in);
	u8 e = byte(in);

	*cfg = (struct sim_cfg){
		.data_seed = e,
		.workers = 1 + a % 4,
		.fragment = fragments[(a >> 2) % 3],
		.window = 1U << (a >> 4) % 5,
		.scale = scales[b & 3],
		.timeout = SEC,
		.chunks = 1 + (b >> 2 & 3),
		.ahead = 1 + (b >> 4 & 1),
		.runs = 1,
		.start = b & 0x20 ? -(b >> 6) : b >> 6,
		.epoch = c & 1 ? 0xfffffffe : 100,
		.aggregators = aggregators[c >> 1 & 3],
		.agg_timeout = 20 * MSEC,
		.cap = c & 8 ? 2 : ATP_NO_CAP,
		.behind = c & 0x10 ? c >> 5 : ~0U,
		.delay = 10 * USEC,
		.dead = NOBODY,
		.server = e & 0x80,
		.think = 1000ULL << e % 21,
		.by_epoch = true,
	};
	cfg->elements = cfg->fragment / 4 * (1 + (d >> 5));
	cfg->data = d & 0x1f;
	if (!(cfg->data & (SIM_INT | SIM_FLOAT)))
		cfg->data |= SIM_INT | SIM_FLOAT;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	/* what sim.h says of a failure is to be seen */
	setvbuf(stdout, NULL, _IONBF, 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct sim_cfg cfg;
	u32 r;

	configure(&cfg, &in);
	sim_init(&s, &cfg);
	/* no run has this epoch before the workers have joined */
	s.run = cfg.epoch;
	next_nonce = 1;
	for (r = 0; r < cfg.workers; r++)
		rejoin(r, false);
	if (cfg.server)
		serve(true);
	sim_arm_ps(&s);
	while (in.left)
		operate(&in);
	recover();
	for (r = 0; r < cfg.workers; r++)
		drop_chunks(&s.w[r]);
	forget_old();
	sim_free(&s);
	return 0;
}
