// SPDX-License-Identifier: GPL-2.0
/*
 * A worker's membership in a run (Documentation/protocol.rst, Joining).
 */
#include "session.h"

/* Packets to the PS in the job's timeout, so that a lost one is no death */
#define BEATS		4

/* PINGs in the time of one, until there is an answer */
#define HURRY		16

/* What an answer of the PS must repeat to be one */
enum match {
	REFUSED,	/* it means nothing in this state */
	NONCE,		/* the nonce of this join */
	EPOCH,		/* the epoch of this run */
	BOTH,		/* who asks in our name hears the epoch, too */
};

static enum match answers(const struct atp_session *s, u8 type)
{
	static const u8 joining[] = {
		[ATP_TYPE_WELCOME] = NONCE,
		[ATP_TYPE_ABORT] = NONCE,
		[ATP_TYPE_PONG] = NONCE,
	};
	static const u8 joined[] = {
		[ATP_TYPE_DATA] = EPOCH,
		[ATP_TYPE_STATUS] = EPOCH,
		[ATP_TYPE_WELCOME] = EPOCH,
		[ATP_TYPE_ABORT] = EPOCH,
		[ATP_TYPE_PONG] = BOTH,
	};

	if (s->state == ATP_SESSION_JOINING && type < ARRAY_SIZE(joining))
		return joining[type];
	if (s->state == ATP_SESSION_JOINED && type < ARRAY_SIZE(joined))
		return joined[type];
	return REFUSED;
}

void atp_session_init(struct atp_session *s, const struct atp_params *params,
		      u32 rank)
{
	memset(s, 0, sizeof(*s));
	s->params = *params;
	s->state = ATP_SESSION_IDLE;
	s->rank = rank;
}

void atp_session_join(struct atp_session *s, u64 now, u32 nonce)
{
	s->state = ATP_SESSION_JOINING;
	/* an ABORT of a whole run may carry zero: nobody's nonce */
	s->nonce = nonce ?: 1;
	s->ticket = 0;
	s->ticket_epoch = 0;
	s->epoch = 0;
	s->reason = ATP_REASON_NONE;
	s->ranks = 0;
	s->over = false;
	s->unserved = false;
	s->heard = now;
	s->next = now;
	s->interval = ATP_JOIN_INTERVAL_MIN;
}

void atp_session_leave(struct atp_session *s, u64 now)
{
	s->state = ATP_SESSION_LEAVING;
	s->next = now;
	s->leaves = ATP_LEAVES;
}

static u64 beat(const struct atp_session *s)
{
	return div_u64(s->params.timeout, BEATS);
}

static void fail(struct atp_session *s, u32 reason, u32 ranks)
{
	s->state = ATP_SESSION_FAILED;
	s->reason = reason;
	s->ranks = ranks;
}

/* The PS wants to see that in a JOIN, which is due at once if it is news. */
static void rx_ticket(struct atp_session *s, u64 now,
		      const struct atp_pkt *pkt)
{
	if (!pkt->seq || (pkt->seq == s->ticket &&
			  pkt->epoch == s->ticket_epoch))
		return;
	s->ticket = pkt->seq;
	s->ticket_epoch = pkt->epoch;
	s->next = now;
}

static void rx_ctl(struct atp_session *s, u64 now, const struct atp_pkt *pkt,
		   const struct atp_ctl_host *ctl)
{
	switch (pkt->type) {
	case ATP_TYPE_WELCOME:
		/* an answer to a JOIN that was repeated */
		if (s->state == ATP_SESSION_JOINED)
			break;
		s->state = ATP_SESSION_JOINED;
		s->epoch = pkt->epoch;
		s->ranks = ctl->ranks;
		s->next = now + beat(s);
		break;
	case ATP_TYPE_ABORT:
		fail(s, ctl->reason, ctl->ranks);
		break;
	case ATP_TYPE_PONG:
		if (s->state == ATP_SESSION_JOINED) {
			/* nobody comes back to a run, whatever comes late */
			s->unserved |= ctl->server != s->params.server;
			s->over |= ctl->ranks != atp_all_ranks(&s->params) ||
				   s->unserved;
			s->next = now + beat(s);
			break;
		}
		s->ranks = ctl->ranks;
		rx_ticket(s, now, pkt);
		break;
	}
}

/* A PS that has not let us in may be configured for more ranks than we are. */
static bool has_undefined_ranks(const struct atp_session *s, u8 type,
				u32 ranks)
{
	return (s->state == ATP_SESSION_JOINED || type == ATP_TYPE_WELCOME) &&
	       (ranks & ~atp_all_ranks(&s->params));
}

enum atp_drop atp_session_rx(struct atp_session *s, u64 now,
			     const struct atp_pkt *pkt)
{
	struct atp_ctl_host ctl;

	if (pkt->job != s->params.job)
		return ATP_DROP_JOB;
	/* what only workers send */
	if (pkt->type == ATP_TYPE_DATA && !(pkt->flags & ATP_F_ACK))
		return ATP_DROP_FLAGS;
	if (pkt->type == ATP_TYPE_JOIN || pkt->type == ATP_TYPE_LEAVE ||
	    pkt->type == ATP_TYPE_PING)
		return ATP_DROP_TYPE;

	if (pkt->type != ATP_TYPE_DATA)
		atp_ctl_read(&ctl, pkt->payload);

	switch (answers(s, pkt->type)) {
	case NONCE:
		if (ctl.nonce != s->nonce)
			return ATP_DROP_NONCE;
		break;
	case EPOCH:
		if (pkt->epoch != s->epoch)
			return ATP_DROP_EPOCH;
		break;
	case BOTH:
		if (pkt->epoch != s->epoch)
			return ATP_DROP_EPOCH;
		if (ctl.nonce != s->nonce)
			return ATP_DROP_NONCE;
		break;
	case REFUSED:
		return ATP_DROP_STATE;
	}
	if (pkt->type == ATP_TYPE_ABORT && ctl.reason == ATP_REASON_NONE)
		return ATP_DROP_FLAGS;
	if (pkt->type != ATP_TYPE_DATA &&
	    has_undefined_ranks(s, pkt->type, ctl.ranks))
		return ATP_DROP_BITMAP;

	s->heard = now;
	if (pkt->type != ATP_TYPE_DATA)
		rx_ctl(s, now, pkt, &ctl);
	return ATP_OK;
}

u64 atp_session_deadline(const struct atp_session *s)
{
	if (s->state == ATP_SESSION_LEAVING)
		return s->next;
	if (s->state != ATP_SESSION_JOINING && s->state != ATP_SESSION_JOINED)
		return U64_MAX;
	return min(s->next, s->heard + s->params.timeout);
}

/* All copies go out within half of the time in which the PS would find the rank
 * silent.
 */
static u8 tick_leaving(struct atp_session *s, u64 now)
{
	if (now < s->next)
		return 0;
	s->next = now + div_u64(s->params.timeout, 2 * ATP_LEAVES);
	if (!--s->leaves)
		s->state = ATP_SESSION_IDLE;
	return ATP_TYPE_LEAVE;
}

u8 atp_session_tick(struct atp_session *s, u64 now)
{
	u8 type;

	if (s->state == ATP_SESSION_LEAVING)
		return tick_leaving(s, now);
	if (s->state == ATP_SESSION_JOINING)
		type = ATP_TYPE_JOIN;
	else if (s->state == ATP_SESSION_JOINED)
		type = ATP_TYPE_PING;
	else
		return 0;

	if (now >= s->heard + s->params.timeout) {
		/* Who asked nothing cannot say that there was no answer: a
		 * host that was suspended asks once more.
		 */
		if (now < s->next + beat(s)) {
			fail(s, ATP_REASON_PS_SILENT, 0);
			return 0;
		}
		s->heard = now - (s->params.timeout - beat(s));
	}
	if (now < s->next)
		return 0;

	if (type == ATP_TYPE_PING) {
		/* PONG says when the next one is due */
		s->next = now + div_u64(beat(s), HURRY);
	} else {
		s->next = now + s->interval;
		s->interval = min(2 * s->interval, ATP_JOIN_INTERVAL_MAX);
		s->interval = min(s->interval, beat(s));
	}
	return type;
}

u32 atp_session_build(const struct atp_session *s, u8 type, void *buf)
{
	struct atp_pkt pkt = {
		.type = type,
		.fanin0 = s->params.workers,
		.cap = ATP_NO_CAP,
		.job = s->params.job,
		.epoch = s->epoch,
		.bitmap0 = 1U << s->rank,
	};
	struct atp_ctl_host ctl = {
		.nonce = s->nonce,
		.workers = s->params.workers,
		.fragment = s->params.fragment,
		.window = s->params.window,
		.scale = s->params.scale,
		.server = s->params.server,
	};

	if (type == ATP_TYPE_JOIN) {
		pkt.epoch = s->ticket_epoch;
		pkt.seq = s->ticket;
	}
	return atp_ctl_write(buf, &pkt, &ctl);
}
