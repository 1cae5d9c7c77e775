/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A worker's membership: joining, keeping alive, failing, leaving
 * (Documentation/protocol.rst, Joining).  The caller serialises.
 */
#ifndef _ATP_ENGINE_SESSION_H
#define _ATP_ENGINE_SESSION_H

#include "packet.h"

#define ATP_JOIN_INTERVAL_MIN	(20ULL * 1000 * 1000)
#define ATP_JOIN_INTERVAL_MAX	(500ULL * 1000 * 1000)

/* Copies of a LEAVE, which nobody answers */
#define ATP_LEAVES		3

enum atp_session_state {
	ATP_SESSION_IDLE,
	ATP_SESSION_JOINING,
	ATP_SESSION_JOINED,
	ATP_SESSION_FAILED,
	ATP_SESSION_LEAVING,
};

/**
 * struct atp_session - a worker's membership
 * @params: of the job
 * @state: enum atp_session_state
 * @rank: own rank
 * @nonce: of this join, not zero
 * @ticket: joining: what the PS wants a JOIN to repeat, zero if it has not said
 * @ticket_epoch: the epoch that goes with @ticket
 * @epoch: run, once joined
 * @reason: enum atp_reason, once failed
 * @ranks: joining: ranks that the PS has; failed: who is to blame
 * @over: joined: somebody has left, and what is sent for the first time from
 *	now on lacks that part
 * @unserved: joined: of those, the application at the PS
 * @heard: when the PS was last heard
 * @next: when to send the next JOIN, PING or LEAVE
 * @interval: between JOINs, backed off
 * @leaves: copies of LEAVE still to be sent
 */
struct atp_session {
	struct atp_params params;
	enum atp_session_state state;
	u32	rank;
	u32	nonce;
	u32	ticket;
	u32	ticket_epoch;
	u32	epoch;
	u32	reason;
	u32	ranks;
	bool	over;
	bool	unserved;
	u64	heard;
	u64	next;
	u64	interval;
	u32	leaves;
};

void atp_session_init(struct atp_session *s, const struct atp_params *params,
		      u32 rank);
/* IDLE or FAILED to JOINING; the first JOIN is due at once.  nonce: random */
void atp_session_join(struct atp_session *s, u64 now, u32 nonce);
/* JOINING or JOINED to LEAVING, and to IDLE after the last LEAVE; the first is
 * due at once.
 */
void atp_session_leave(struct atp_session *s, u64 now);
/* Any packet from the PS: control packets drive the state, all of the run
 * count as a sign of life (also call it for data).
 */
enum atp_drop atp_session_rx(struct atp_session *s, u64 now,
			     const struct atp_pkt *pkt);
/* When atp_session_tick() wants to be called; U64_MAX for never */
u64 atp_session_deadline(const struct atp_session *s);
/* Return: enum atp_type of the packet that is due now, 0 for none; may
 * fail the session by silence (in JOINING: the PS was never heard for the
 * timeout; waiting for other workers has no limit).
 */
u8 atp_session_tick(struct atp_session *s, u64 now);
/* Write JOIN, PING or LEAVE.  Return: length */
u32 atp_session_build(const struct atp_session *s, u8 type, void *buf);

#endif /* _ATP_ENGINE_SESSION_H */
