// SPDX-License-Identifier: GPL-2.0
/* What a switch has to do. */
#include <stdlib.h>
#include <string.h>
#include "oracle.h"

#define MAX_JOBS 8

static struct o_cell *cells;
static uint32_t n_cells, most_lanes;
static struct t_job all[MAX_JOBS];
static uint32_t hand[MAX_JOBS];
/* Of each job: the last run, and the last before epochs leapt, if known */
static struct { bool known; uint32_t epoch; } run[MAX_JOBS], former[MAX_JOBS];
static int n_jobs;

void o_open(uint32_t aggregators, uint32_t payload)
{
	free(cells);
	cells = calloc(aggregators, sizeof(*cells));
	n_cells = aggregators;
	most_lanes = payload / 4;
	n_jobs = 0;
}

void o_add_job(const struct t_job *job)
{
	hand[n_jobs] = 0;
	run[n_jobs].known = false;
	former[n_jobs].known = false;
	all[n_jobs++] = *job;
}

struct o_cell *o_cell(uint32_t index)
{
	return &cells[index];
}

const struct t_job *o_job(uint32_t id)
{
	int i;

	for (i = 0; i < n_jobs; i++) {
		if (all[i].id == id)
			return &all[i];
	}
	return NULL;
}

uint32_t o_occupied(uint32_t id)
{
	uint32_t i, n = 0;

	for (i = 0; i < n_cells; i++)
		n += cells[i].used && cells[i].job == id;
	return n;
}

static bool is_from(const struct t_job *job, int host, const uint8_t *addr)
{
	uint8_t want[16];

	t_addr(job->v6, job->id, host, want);
	return !memcmp(want, addr, 16);
}

static bool same(const struct o_cell *cell, const struct f_pkt *p)
{
	return cell->used && cell->job == p->job && cell->epoch == p->epoch &&
	       cell->seq == p->seq;
}

static void add(struct o_cell *cell, const struct f_pkt *p)
{
	int i;

	for (i = 0; i < p->elements; i++) {
		int64_t v = cell->sum[i] + p->lane[i];

		if (v > INT32_MAX || v < INT32_MIN) {
			cell->flags |= ATP_F_OVERFLOW;
			v = v > 0 ? INT32_MAX : INT32_MIN;
		}
		cell->sum[i] = v;
	}
	cell->in |= p->bitmap;
	cell->flags |= p->flags &
		       (ATP_F_ECN | ATP_F_COLLISION | ATP_F_OVERFLOW);
	if (p->ecn == 3)
		cell->flags |= ATP_F_ECN;
	if (p->cap < cell->cap)
		cell->cap = p->cap;
}

/* The packet leaves with what the aggregator has */
static void leave_with(const struct o_cell *cell, struct f_pkt *p)
{
	int i;

	for (i = 0; i < p->elements; i++)
		p->lane[i] = (int32_t)cell->sum[i];
	p->bitmap = cell->in;
	p->flags |= cell->flags &
		    (ATP_F_ECN | ATP_F_COLLISION | ATP_F_OVERFLOW);
	if (cell->cap < p->cap)
		p->cap = cell->cap;
}

/* 256 runs before the last one are over, and as many before epochs leapt */
static bool is_over(const struct t_job *job, uint32_t epoch)
{
	int i = job - all;

	return (run[i].known && epoch != run[i].epoch &&
		run[i].epoch - epoch <= 256) ||
	       (former[i].known && epoch != former[i].epoch &&
		former[i].epoch - epoch <= 256);
}

/* The PS speaks of a run. */
static void begin(const struct t_job *job, uint32_t epoch)
{
	int i = job - all;

	if (is_over(job, epoch))
		return;
	if (run[i].known && epoch - run[i].epoch >= 256)
		former[i] = run[i];
	run[i].known = true;
	run[i].epoch = epoch;
}

/* The run that goes on, as far as is known: the last, or that before a leap */
static bool is_current(const struct t_job *job, uint32_t epoch)
{
	int i = job - all;

	return !run[i].known || epoch == run[i].epoch ||
	       (former[i].known && epoch == former[i].epoch);
}

/* The address of one of the job's hosts, but not its port */
static bool is_forged(const struct t_job *job, int port, const uint8_t *src)
{
	uint32_t i;

	if (is_from(job, T_PS, src))
		return port != job->ps_port;
	for (i = 0; i < job->workers; i++) {
		if (is_from(job, i, src))
			return port != job->port[i];
	}
	return false;
}

static bool is_welcome(int port, const struct t_job *job, const uint8_t *frame)
{
	uint8_t src[16] = { [10] = 0xff, 0xff };
	const uint8_t *udp = frame + f_udp(job->v6);

	if (job->v6)
		memcpy(src, frame + 22, 16);
	else
		memcpy(src + 12, frame + 26, 4);
	return port == job->ps_port && is_from(job, T_PS, src) &&
	       udp[0] == ATP_PORT >> 8 && udp[1] == (ATP_PORT & 0xff) &&
	       udp[8] == ATP_VERSION && udp[9] == ATP_TYPE_WELCOME;
}

/**
 * o_control() - a frame that is no data packet comes in
 * @port: at which port
 * @frame: its bytes
 * @len: their number
 *
 * With a good one from the PS a run may begin.
 */
void o_control(int port, const uint8_t *frame, uint32_t len)
{
	const struct t_job *job;
	uint32_t id, epoch;
	bool v6;

	if (!f_valid(frame, len))
		return;
	v6 = frame[12] == 0x86;
	if (len != f_udp(v6) + 8 + ATP_HDR_LEN + ATP_CTL_LEN ||
	    (!v6 && (frame[20] & 0x3f || frame[21])))
		return;
	memcpy(&id, frame + f_udp(v6) + 8 + 4, 4);
	memcpy(&epoch, frame + f_udp(v6) + 8 + 8, 4);
	job = o_job(__builtin_bswap32(id));
	if (!job || job->v6 != v6 || !is_welcome(port, job, frame))
		return;
	begin(job, __builtin_bswap32(epoch));
}

/* The job's quota is used up: four aggregators are searched, in turn */
static void search(const struct t_job *job)
{
	uint32_t *at = &hand[job - all];
	struct o_cell *cell;
	int i;

	for (i = 0; i < 4; i++) {
		cell = &cells[(*at)++ % n_cells];
		if (cell->used && cell->old && cell->job == job->id)
			cell->used = false;
	}
}

/* Those behind another port than the PS; here a port has one subnet */
static uint32_t those_that_pass(const struct t_job *job)
{
	uint32_t i, ranks = 0;

	for (i = 0; i < job->workers; i++) {
		if (job->port[i] != job->ps_port)
			ranks |= 1U << i;
	}
	return ranks;
}

static bool gradient(const struct t_job *job, struct f_pkt *p)
{
	struct o_cell *cell = &cells[p->index % n_cells];
	uint32_t everybody = those_that_pass(job);
	bool resend = p->flags & ATP_F_RESEND, takes;

	if (__builtin_popcount(everybody) < 2 || p->elements > most_lanes)
		return true;
	if (!is_current(job, p->epoch))
		return true;

	if (same(cell, p)) {
		if (p->flags & ATP_F_RAW) {
			cell->used = false;
			return true;
		}
		if (cell->elements != p->elements || cell->dtype != p->dtype ||
		    (cell->flags & ATP_F_LAST) != (p->flags & ATP_F_LAST))
			return true;
		if (cell->in & p->bitmap) {
			if (p->ecn == 3 || p->flags & ATP_F_ECN)
				cell->flags |= ATP_F_ECN;
			if (!resend)
				return false;
			leave_with(cell, p);
			cell->used = false;
			return true;
		}
		add(cell, p);
		cell->old = false;
		if ((cell->in & everybody) != everybody && !resend)
			return false;
		leave_with(cell, p);
		if (resend)
			cell->used = false;
		return true;
	}

	takes = !(p->flags & (ATP_F_RESEND | ATP_F_RAW | ATP_F_OVERFLOW));
	if (cell->used &&
	    (!cell->old || (!takes && cell->job != p->job))) {
		p->flags |= ATP_F_COLLISION;
		return true;
	}
	if (cell->job == p->job)
		cell->used = false;
	if (!takes)
		return true;
	if (o_occupied(job->id) >= job->quota)
		search(job);
	if (o_occupied(job->id) >= job->quota) {
		p->flags |= ATP_F_COLLISION;
		return true;
	}
	memset(cell, 0, sizeof(*cell));
	cell->used = true;
	cell->job = p->job;
	cell->epoch = p->epoch;
	cell->seq = p->seq;
	cell->elements = p->elements;
	cell->dtype = p->dtype;
	cell->cap = p->cap;
	cell->flags = p->flags & ATP_F_LAST;
	add(cell, p);
	return false;
}

/* Flags that no party sends together (protocol.rst, Packets and Numbers) */
static bool contradicts(const struct f_pkt *p)
{
	bool raw = p->flags & ATP_F_RAW, over = p->flags & ATP_F_OVERFLOW;

	if (raw && over)
		return true;
	if (!(p->flags & ATP_F_ACK))
		return p->flags & ATP_F_MCAST;
	return p->flags & ATP_F_RESEND ||
	       (raw && p->dtype != ATP_FLOAT32) ||
	       (over && p->elements && p->dtype != ATP_INT32);
}

/**
 * o_run() - what becomes of a packet
 * @port: port at which it comes in
 * @p: the packet, well-formed; becomes what leaves
 */
enum o_fate o_run(int port, struct f_pkt *p)
{
	const struct t_job *job = o_job(p->job);
	struct o_cell *cell = &cells[p->index % n_cells];
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	enum o_fate fate;
	uint32_t i;

	if (!job)
		return O_TO_KERNEL;
	if (contradicts(p))
		return O_REFUSED;
	if (p->sport != ATP_PORT || (p->v6 && !memcmp(p->src, mapped, 12)))
		return O_REFUSED;
	if (p->fanin != job->workers)
		return is_forged(job, port, p->src) ? O_REFUSED : O_TO_KERNEL;

	if (p->flags & ATP_F_ACK) {
		if (!is_from(job, T_PS, p->src) || port != job->ps_port)
			return O_REFUSED;
		for (i = 0; i < job->workers; i++) {
			if (is_from(job, i, p->dst))
				break;
		}
		if (i == job->workers)
			return O_REFUSED;
		begin(job, p->epoch);
		if (cell->used &&
		    (same(cell, p) || (cell->old && cell->job == p->job)))
			cell->used = false;
		fate = p->flags & ATP_F_MCAST ? O_TO_ALL : O_TO_WORKER;
	} else {
		for (i = 0; i < job->workers; i++) {
			if (p->bitmap == 1U << i)
				break;
		}
		if (i == job->workers || !is_from(job, i, p->src) ||
		    !is_from(job, T_PS, p->dst) || port != job->port[i])
			return O_REFUSED;
		if (!gradient(job, p))
			return O_TAKEN;
		fate = O_TO_PS;
	}
	p->flags |= ATP_F_SWITCHED;
	if (p->cap > job->quota)
		p->cap = (uint16_t)job->quota;
	return fate;
}
