/* SPDX-License-Identifier: GPL-2.0 */
/* Congestion window and retransmission timer of a worker (paper 3.7). */
#ifndef _ATP_ENGINE_WINDOW_H
#define _ATP_ENGINE_WINDOW_H

#include <atp/env.h>

#define ATP_INIT_CWND		10
#define ATP_MTU_BYTES		1500
/* IPv4, UDP and ATP header: what a fragment costs besides its lanes */
#define ATP_WIRE_HDR		64
#define ATP_RTO_INIT		(50ULL * 1000 * 1000)
#define ATP_RTO_MIN		(2ULL * 1000 * 1000)
#define ATP_RTO_MAX		(1000ULL * 1000 * 1000)

/**
 * struct atp_cong - congestion window in fragments
 * @cwnd: fragments that may be in flight
 * @ssthresh: below it cwnd grows with every parameter packet
 * @credit: parameter packets counted towards the next additive increase
 * @step: fragments in one MTU, at least one
 * @max: the job's window
 * @cap: cwndCap of the last parameter packet
 * @recover: halved already for marks and losses before this sequence
 * @prior_cwnd: cwnd before the last timeout, zero if there is none to undo
 * @prior_ssthresh: ssthresh likewise
 * @prior_recover: recover likewise
 */
struct atp_cong {
	u32	cwnd;
	u32	ssthresh;
	u32	credit;
	u32	step;
	u32	max;
	u32	cap;
	u32	recover;
	u32	prior_cwnd;
	u32	prior_ssthresh;
	u32	prior_recover;
};

void atp_cong_init(struct atp_cong *c, u32 fragment, u32 window);
/* Fragments that may be in flight now, at least one */
u32 atp_cong_window(const struct atp_cong *c);
/* What the switches on the path allow, from every parameter packet */
void atp_cong_cap(struct atp_cong *c, u16 cap);
/* A parameter packet without a mark: grow */
void atp_cong_ack(struct atp_cong *c);
/* Mark or loss of fragment seq while nxt is the next to be sent: halve once
 * per window.  Return: whether it halved.
 */
bool atp_cong_reduce(struct atp_cong *c, u32 seq, u32 nxt);
void atp_cong_timeout(struct atp_cong *c, u32 nxt);
/* The last timeout was spurious.  Harmless without one. */
void atp_cong_undo(struct atp_cong *c);
/* There was a loss, but the path is not empty: like any other loss it halves */
void atp_cong_ease(struct atp_cong *c);

/**
 * struct atp_rtt - round trip and retransmission timeout, in nanoseconds
 * @srtt: smoothed, zero before the first sample
 * @rttvar: variation
 * @best: shortest sample, zero before the first
 * @rto: timeout without back-off
 * @backoff: doublings since the last new parameter packet
 */
struct atp_rtt {
	u64	srtt;
	u64	rttvar;
	u64	best;
	u64	rto;
	u32	backoff;
};

void atp_rtt_init(struct atp_rtt *r);
void atp_rtt_sample(struct atp_rtt *r, u64 rtt);
/* A sample of the path alone: it outweighs all before */
void atp_rtt_path(struct atp_rtt *r, u64 rtt);
/* alive: the path carries packets, so those that are lost are not all */
u64 atp_rtt_timeout(const struct atp_rtt *r, bool alive);

#endif /* _ATP_ENGINE_WINDOW_H */
