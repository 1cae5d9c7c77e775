// SPDX-License-Identifier: GPL-2.0
/*
 * How much a worker has in flight and how long it waits for an answer
 * (Documentation/protocol.rst, Window and Loss; paper 3.7).
 */
#include <linux/atp_packet.h>
#include "window.h"

/* The timeout is at its maximum from 2 ms on after nine doublings */
#define ATP_BACKOFF_MAX		10
/* Doublings for losses on a path that carries something */
#define ATP_BACKOFF_ALIVE	2

void atp_cong_init(struct atp_cong *c, u32 fragment, u32 window)
{
	u32 wire = fragment + ATP_WIRE_HDR;

	memset(c, 0, sizeof(*c));
	/* To the nearest: the paper's MTU is five of its 306-byte packets. */
	c->step = max_t(u32, (ATP_MTU_BYTES + wire / 2) / wire, 1);
	c->max = window;
	c->cap = ATP_NO_CAP;
	c->cwnd = min_t(u32, ATP_INIT_CWND, window);
	c->ssthresh = window;
}

u32 atp_cong_window(const struct atp_cong *c)
{
	if (c->cap == ATP_NO_CAP)
		return c->cwnd;
	return clamp_t(u32, c->cap, 1, c->cwnd);
}

void atp_cong_cap(struct atp_cong *c, u16 cap)
{
	c->cap = cap;
}

void atp_cong_ack(struct atp_cong *c)
{
	if (c->cwnd < c->ssthresh) {
		c->cwnd = min(c->cwnd + c->step, c->ssthresh);
		return;
	}
	/* Above the threshold: one MTU per window of parameter packets */
	if (++c->credit < c->cwnd)
		return;
	c->credit = 0;
	c->cwnd = min(c->cwnd + c->step, c->max);
}

bool atp_cong_reduce(struct atp_cong *c, u32 seq, u32 nxt)
{
	/* recover was nxt once, and no fragment in flight is further than a
	 * window below nxt.  A distance, not an order: a recover that was left
	 * behind by half the sequence space must not swallow marks.
	 */
	if (c->recover - seq - 1 < c->max)
		return false;
	c->cwnd = max_t(u32, atp_cong_window(c) / 2, 1);
	c->ssthresh = c->cwnd;
	c->credit = 0;
	c->recover = nxt;
	return true;
}

void atp_cong_timeout(struct atp_cong *c, u32 nxt)
{
	c->prior_cwnd = c->cwnd;
	c->prior_ssthresh = c->ssthresh;
	c->prior_recover = c->recover;
	c->ssthresh = max_t(u32, atp_cong_window(c) / 2, 2);
	c->cwnd = 1;
	c->credit = 0;
	c->recover = nxt;
}

void atp_cong_undo(struct atp_cong *c)
{
	if (!c->prior_cwnd)
		return;
	c->cwnd = max(c->cwnd, c->prior_cwnd);
	c->ssthresh = max(c->ssthresh, c->prior_ssthresh);
	c->recover = c->prior_recover;
	c->prior_cwnd = 0;
}

void atp_cong_ease(struct atp_cong *c)
{
	if (!c->prior_cwnd)
		return;
	c->cwnd = max(c->cwnd, c->ssthresh);
	c->prior_cwnd = 0;
}

void atp_rtt_init(struct atp_rtt *r)
{
	memset(r, 0, sizeof(*r));
	r->rto = ATP_RTO_INIT;
}

/* RFC 6298, 2.2 and 2.3 */
void atp_rtt_sample(struct atp_rtt *r, u64 rtt)
{
	u64 delta;

	rtt = clamp_t(u64, rtt, 1, ATP_RTO_MAX);
	if (!r->srtt) {
		r->srtt = rtt;
		r->rttvar = rtt / 2;
		r->best = rtt;
	} else {
		delta = r->srtt > rtt ? r->srtt - rtt : rtt - r->srtt;
		r->rttvar = r->rttvar - (r->rttvar >> 2) + (delta >> 2);
		r->srtt = r->srtt - (r->srtt >> 3) + (rtt >> 3);
		r->srtt = max_t(u64, r->srtt, 1);
		r->best = min(r->best, rtt);
	}
	r->rto = clamp_t(u64, r->srtt + 4 * r->rttvar, ATP_RTO_MIN,
			 ATP_RTO_MAX);
}

/* Peers' delays are in all other samples, and if then everything is lost once,
 * there is none to correct them.
 */
void atp_rtt_path(struct atp_rtt *r, u64 rtt)
{
	r->srtt = 0;
	atp_rtt_sample(r, rtt);
}

u64 atp_rtt_timeout(const struct atp_rtt *r, bool alive)
{
	u32 shift = min_t(u32, r->backoff,
			  alive ? ATP_BACKOFF_ALIVE : ATP_BACKOFF_MAX);

	return min_t(u64, r->rto << shift, ATP_RTO_MAX);
}
