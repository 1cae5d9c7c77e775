// SPDX-License-Identifier: GPL-2.0
/* Sending packets through target and oracle, and comparing. */
#include <linux/bpf.h>
#include <string.h>
#include "check.h"

static uint32_t n_aggregators;
static uint8_t *frame, *copy;

uint32_t c_aggregators(void)
{
	return n_aggregators;
}

void c_open(uint32_t aggregators, uint32_t payload)
{
	n_aggregators = aggregators;
	t_open(aggregators, payload);
	o_open(aggregators, payload);
	if (!frame) {
		frame = f_buffer();
		copy = f_buffer();
	}
}

void c_add_job(const struct t_job *job)
{
	t_add_job(job);
	o_add_job(job);
}

static void common(struct f_pkt *p, const struct t_job *job, uint32_t seq)
{
	memset(p, 0, sizeof(*p));
	p->v6 = job->v6;
	p->ttl = 64;
	p->ecn = 2;
	p->job = job->id;
	p->epoch = 1;
	p->seq = seq;
	p->index = seq;
	p->fanin = (uint8_t)job->workers;
	p->dtype = ATP_INT32;
	p->cap = ATP_NO_CAP;
	p->elements = 2;
	p->sport = ATP_PORT;
}

/* A gradient as the worker would send it, with two lanes of zeros */
void c_gradient(struct f_pkt *p, const struct t_job *job, uint32_t rank,
		uint32_t seq)
{
	common(p, job, seq);
	t_addr(job->v6, job->id, (int)rank, p->src);
	t_addr(job->v6, job->id, T_PS, p->dst);
	t_mac((int)rank, p->src_mac);
	t_mac(T_PS, p->dst_mac);
	p->bitmap = 1U << (rank & 31);
	p->sport = ATP_PORT;
}

void c_parameter(struct f_pkt *p, const struct t_job *job, uint32_t rank,
		 uint32_t seq)
{
	common(p, job, seq);
	t_addr(job->v6, job->id, T_PS, p->src);
	t_addr(job->v6, job->id, (int)rank, p->dst);
	t_mac(T_PS, p->src_mac);
	t_mac((int)rank, p->dst_mac);
	p->flags = ATP_F_ACK;
}

/**
 * c_welcome() - the packet with which a run begins, for rank 0
 * @job: the job
 * @epoch: the run
 * @frame: filled in
 *
 * Return: its length
 */
uint32_t c_welcome(const struct t_job *job, uint32_t epoch, uint8_t *frame)
{
	static struct f_pkt p;
	uint32_t len;

	c_parameter(&p, job, 0, 0);
	p.epoch = epoch;
	p.elements = ATP_CTL_LEN / 4;
	len = f_make(&p, frame);
	/* type, flags and elements */
	frame[f_udp(job->v6) + 8 + 1] = ATP_TYPE_WELCOME;
	frame[f_udp(job->v6) + 8 + 3] = 0;
	frame[f_udp(job->v6) + 8 + 33] = 0;
	f_seal(frame, len);
	return len;
}

/* A control packet through target and oracle: it is the kernel's */
void c_control(int port, uint8_t *frame, uint32_t len)
{
	memcpy(copy, frame, len);
	C_EQ(t_run(port, frame, len), XDP_PASS);
	C_EQ(memcmp(copy, frame, len), 0);
	o_control(port, frame, len);
}

/* A lane of an aggregator, which may be in the narrow form */
static int32_t cell_lane(const struct sw_agg *a, int i)
{
	uint32_t lane = ((const uint32_t *)a->lanes)[i];

	return (int32_t)(a->wide ? lane : lane - 0x40000000);
}

/* Does the target's aggregator hold what the oracle's does? */
bool c_same_cell(uint32_t index)
{
	const struct sw_agg *a = t_agg(index);
	const struct o_cell *cell = o_cell(index);
	unsigned int before = c_failures;
	int i;

	C_EQ(a->lock, 0);
	C_EQ(a->bitmap != 0, cell->used);
	if (!cell->used)
		return c_failures == before;
	C_EQ(a->job, cell->job);
	C_EQ(a->epoch, cell->epoch);
	C_EQ(a->seq, cell->seq);
	C_EQ(a->bitmap, cell->in);
	C_EQ(a->flags, cell->flags);
	C_EQ(a->elements, cell->elements);
	C_EQ(a->dtype, cell->dtype);
	C_EQ(a->cap, cell->cap);
	for (i = 0; i < cell->elements; i++) {
		if (cell_lane(a, i) != cell->sum[i]) {
			C_EQ(cell_lane(a, i), cell->sum[i]);
			c_fail(__FILE__, __LINE__, "lane %d of %d", i,
			       cell->elements);
			break;
		}
	}
	return c_failures == before;
}

/* Everything of a packet that is not an address or a time to live */
static void same_packet(const struct f_pkt *got, const struct f_pkt *want)
{
	C_EQ(got->flags, want->flags);
	C_EQ(got->job, want->job);
	C_EQ(got->epoch, want->epoch);
	C_EQ(got->seq, want->seq);
	C_EQ(got->bitmap, want->bitmap);
	C_EQ(got->index, want->index);
	C_EQ(got->cap, want->cap);
	C_EQ(got->fanin, want->fanin);
	C_EQ(got->dtype, want->dtype);
	C_EQ(got->elements, want->elements);
	C_EQ(got->sport, want->sport);
	C_EQ(memcmp(got->src, want->src, 16), 0);
	C_EQ(memcmp(got->dst, want->dst, 16), 0);
	if (got->elements == want->elements)
		C_EQ(memcmp(got->lane, want->lane, got->elements * 4UL), 0);
}

/* Link layer and time to live, from the PS's side to a worker's or back */
static void same_hop(const struct f_pkt *got, const struct f_pkt *want,
		     int host, int out, bool routed)
{
	uint8_t mac[6];

	t_mac(host, mac);
	C_EQ(memcmp(got->dst_mac, mac, 6), 0);
	C_EQ(got->ttl, want->ttl - routed);
	if (routed)
		t_port_mac(out, mac);
	else
		memcpy(mac, want->src_mac, 6);
	C_EQ(memcmp(got->src_mac, mac, 6), 0);
}

/* Was it sent to the machine itself, to be routed? */
static bool to_router(int port, const struct f_pkt *p)
{
	uint8_t mac[6];

	t_port_mac(port, mac);
	return !memcmp(p->dst_mac, mac, 6);
}

static bool other_side(int a, int b)
{
	return (a == T_ROUTED) != (b == T_ROUTED);
}

/* What each copy of a multicast becomes */
static void check_copies(const struct t_job *job, const struct f_pkt *want,
			 uint32_t len, bool router)
{
	uint32_t i;

	for (i = 0; i < (uint32_t)t_copies(); i++) {
		int out = t_copy_port(i);
		struct f_pkt got, copied = *want;

		memcpy(copy, frame, len);
		C_EQ(t_make_copy(i, copy, len), XDP_PASS);
		if (!f_read(&got, copy, len)) {
			c_fail(__FILE__, __LINE__, "bad copy leaves");
			break;
		}
		copied.flags &= ~ATP_F_MCAST;
		t_addr(job->v6, job->id, i, copied.dst);
		same_packet(&got, &copied);
		C_EQ(out, job->port[i]);
		same_hop(&got, want, i, out,
			 router || other_side(out, job->ps_port));
	}
}

/**
 * c_send() - a packet through target and oracle
 * @port: port at which it comes in
 * @p: the packet
 *
 * Return: false if something differed
 */
bool c_send(int port, const struct f_pkt *p)
{
	uint32_t len = f_make(p, frame), i;
	const struct t_job *job = o_job(p->job);
	unsigned int before = c_failures;
	bool router = to_router(port, p);
	struct f_pkt want = *p, got;
	enum o_fate fate = o_run(port, &want);
	int verdict;

	memcpy(copy, frame, len);
	verdict = t_run(port, frame, len);
	switch (fate) {
	case O_REFUSED:
		C_EQ(verdict, XDP_ABORTED);
		break;
	case O_TAKEN:
		C_EQ(verdict, XDP_DROP);
		break;
	case O_TO_KERNEL:
		C_EQ(verdict, XDP_PASS);
		C_EQ(memcmp(frame, copy, len), 0);
		break;
	default:
		C_EQ(verdict, XDP_REDIRECT);
		if (!f_read(&got, frame, len)) {
			c_fail(__FILE__, __LINE__, "bad packet leaves");
			break;
		}
		same_packet(&got, &want);
		C_EQ(got.ecn, want.ecn);
		if (fate == O_TO_PS)
			same_hop(&got, &want, T_PS, job->ps_port, router ||
				 other_side(port, job->ps_port));
		else if (fate == O_TO_ALL)
			check_copies(job, &want, len, router);
		if (fate == O_TO_PS && t_copies())
			C_EQ(t_copy_port(0), job->ps_port);
	}
	for (i = 0; i < n_aggregators && c_failures == before; i++)
		c_same_cell(i);
	if (job && c_failures == before)
		C_EQ(t_occupied(job->id), o_occupied(job->id));
	return c_failures == before;
}

/* Time goes by, without waiting for it: everything is abandoned */
void c_age(void)
{
	uint32_t i;

	for (i = 0; i < n_aggregators; i++) {
		t_agg(i)->stamp -= 1ULL << 40;
		o_cell(i)->old = true;
	}
}
