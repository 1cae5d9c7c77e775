// SPDX-License-Identifier: GPL-2.0
/* Membership of a worker, event by event. */
#include <tap.h>
#include "session.h"

#define MSEC	1000000ULL
#define SEC	1000000000ULL
#define NONCE	0x1234
#define EPOCH	77

static const struct atp_params params = {
	.job = 9,
	.workers = 5,
	.fragment = 248,
	.window = 64,
	.scale = 100000000,
	.timeout = 8 * SEC,
};

static struct atp_session s;

/* A control packet of the PS through the real writer and parser */
static enum atp_drop rx_ctl(u64 now, u8 type, u32 job, u32 epoch, u32 nonce,
			    u32 reason, u32 ranks)
{
	struct atp_pkt pkt = {
		.type = type, .job = job, .epoch = epoch, .fanin0 = 5,
		.bitmap0 = 4, .cap = ATP_NO_CAP,
	};
	struct atp_ctl_host ctl = {
		.nonce = nonce, .workers = 5, .fragment = 248, .window = 64,
		.scale = 100000000, .reason = reason, .ranks = ranks,
	};
	u8 buf[ATP_HDR_LEN + ATP_CTL_LEN + 1];
	struct atp_pkt in;

	ASSERT_EQ(atp_ctl_write(buf + 1, &pkt, &ctl), sizeof(buf) - 1);
	ASSERT_EQ(atp_pkt_parse(&in, buf + 1, sizeof(buf) - 1), ATP_OK);
	return atp_session_rx(&s, now, &in);
}

static enum atp_drop rx(u64 now, u8 type, u32 epoch, u32 nonce)
{
	return rx_ctl(now, type, 9, epoch, nonce, ATP_REASON_LEFT, 0x13);
}

static enum atp_drop rx_data(u64 now, u32 epoch, u16 flags)
{
	struct atp_pkt pkt = {
		.type = ATP_TYPE_DATA, .job = 9, .epoch = epoch,
		.flags = flags, .dtype = ATP_INT32, .fanin0 = 5, .elements = 2,
	};

	return atp_session_rx(&s, now, &pkt);
}

static void joining(u64 now)
{
	atp_session_init(&s, &params, 2);
	EXPECT_EQ(s.state, ATP_SESSION_IDLE);
	atp_session_join(&s, now, NONCE);
	EXPECT_EQ(s.state, ATP_SESSION_JOINING);
	EXPECT_EQ(atp_session_tick(&s, now), ATP_TYPE_JOIN);
	EXPECT_EQ(atp_session_tick(&s, now), 0);
}

static void joined(u64 now)
{
	joining(now);
	EXPECT_EQ(rx(now, ATP_TYPE_WELCOME, EPOCH, NONCE), ATP_OK);
	EXPECT_EQ(s.state, ATP_SESSION_JOINED);
	EXPECT_EQ(s.epoch, EPOCH);
}

TEST(idle_wants_nothing)
{
	atp_session_init(&s, &params, 2);
	EXPECT_EQ(atp_session_deadline(&s), U64_MAX);
	EXPECT_EQ(atp_session_tick(&s, 100 * SEC), 0);
	EXPECT_EQ(rx(1, ATP_TYPE_WELCOME, EPOCH, 0), ATP_DROP_STATE);
	EXPECT_EQ(rx(1, ATP_TYPE_ABORT, 0, 0), ATP_DROP_STATE);
	EXPECT_EQ(s.state, ATP_SESSION_IDLE);
}

TEST(join_backs_off)
{
	u64 at = SEC, gap = 20 * MSEC;
	u32 i;

	joining(at);
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(atp_session_deadline(&s) - at, gap);
		EXPECT_EQ(atp_session_tick(&s, at + gap - 1), 0);
		at += gap;
		EXPECT_EQ(atp_session_tick(&s, at), ATP_TYPE_JOIN);
		/* it lives, so this goes on for ever */
		EXPECT_EQ(rx(at, ATP_TYPE_PONG, 0, NONCE), ATP_OK);
		EXPECT_EQ(s.ranks, 0x13);
		gap = min(2 * gap, 500 * MSEC);
	}
}

/* At least four JOINs fit into the timeout, however short that is. */
TEST(join_backs_off_to_a_quarter_of_the_timeout)
{
	u64 at = SEC;
	u32 i;

	joining(at);
	s.params.timeout = 400 * MSEC;
	for (i = 0; i < 10; i++) {
		at = atp_session_deadline(&s);
		EXPECT_EQ(atp_session_tick(&s, at), ATP_TYPE_JOIN);
		EXPECT_EQ(rx(at, ATP_TYPE_PONG, 0, NONCE), ATP_OK);
	}
	EXPECT_EQ(atp_session_deadline(&s) - at, 100 * MSEC);
}

/* What the PS wants to see again, a JOIN repeats at once, and once. */
TEST(ticket)
{
	static const struct {
		u32 epoch, seq;
		bool news;
	} said[] = {
		{ 5, 0, false }, { 5, 1, true }, { 5, 1, false },
		{ 5, 2, true }, { 6, 2, true }, { 7, 0, false },
		{ 6, 2, false },
	};
	u8 buf[ATP_HDR_LEN + ATP_CTL_LEN];
	u32 epoch = 0, seq = 0;
	struct atp_pkt pkt;
	u64 at = SEC;
	u32 i;

	joining(at);
	for (i = 0; i < ARRAY_SIZE(said); i++) {
		struct atp_pkt pong = {
			.type = ATP_TYPE_PONG, .job = 9, .fanin0 = 5,
			.epoch = said[i].epoch, .seq = said[i].seq,
			.bitmap0 = 4, .cap = ATP_NO_CAP,
		};
		struct atp_ctl_host ctl = { .nonce = NONCE };

		atp_ctl_write(buf, &pong, &ctl);
		ASSERT_EQ(atp_pkt_parse(&pkt, buf, sizeof(buf)), ATP_OK);
		EXPECT_EQ(atp_session_rx(&s, at, &pkt), ATP_OK);
		EXPECT_EQ(atp_session_tick(&s, at),
			  said[i].news ? ATP_TYPE_JOIN : 0);
		if (said[i].news) {
			epoch = said[i].epoch;
			seq = said[i].seq;
		}
		atp_session_build(&s, ATP_TYPE_JOIN, buf);
		ASSERT_EQ(atp_pkt_parse(&pkt, buf, sizeof(buf)), ATP_OK);
		EXPECT_EQ(pkt.epoch, epoch);
		EXPECT_EQ(pkt.seq, seq);
		atp_session_build(&s, ATP_TYPE_LEAVE, buf);
		ASSERT_EQ(atp_pkt_parse(&pkt, buf, sizeof(buf)), ATP_OK);
		EXPECT_EQ(pkt.epoch, 0);
		EXPECT_EQ(pkt.seq, 0);
	}
	/* another join knows nothing of it */
	atp_session_leave(&s, at);
	atp_session_join(&s, at, NONCE);
	atp_session_build(&s, ATP_TYPE_JOIN, buf);
	ASSERT_EQ(atp_pkt_parse(&pkt, buf, sizeof(buf)), ATP_OK);
	EXPECT_EQ(pkt.epoch, 0);
	EXPECT_EQ(pkt.seq, 0);
}

TEST(joining_without_an_answer)
{
	u64 at = SEC;
	u32 joins = 0;

	joining(at);
	while (s.state == ATP_SESSION_JOINING) {
		at = atp_session_deadline(&s);
		joins += atp_session_tick(&s, at) == ATP_TYPE_JOIN;
		ASSERT_LT(joins, 1000);
	}
	EXPECT_EQ(s.state, ATP_SESSION_FAILED);
	EXPECT_EQ(s.reason, ATP_REASON_PS_SILENT);
	EXPECT_EQ(s.ranks, 0);
	EXPECT_EQ(at, 9 * SEC);
	EXPECT_GE(joins, 15);
	EXPECT_EQ(atp_session_deadline(&s), U64_MAX);
}

TEST(joining_table)
{
	joining(SEC);
	EXPECT_EQ(rx(SEC, ATP_TYPE_WELCOME, EPOCH, NONCE + 1), ATP_DROP_NONCE);
	EXPECT_EQ(rx(SEC, ATP_TYPE_ABORT, EPOCH, NONCE + 1), ATP_DROP_NONCE);
	EXPECT_EQ(rx(SEC, ATP_TYPE_ABORT, 0, 0), ATP_DROP_NONCE);
	EXPECT_EQ(rx(SEC, ATP_TYPE_PONG, 0, NONCE - 1), ATP_DROP_NONCE);
	EXPECT_EQ(rx(SEC, ATP_TYPE_STATUS, 0, NONCE), ATP_DROP_STATE);
	EXPECT_EQ(rx_data(SEC, 0, ATP_F_ACK), ATP_DROP_STATE);
	EXPECT_EQ(rx(SEC, ATP_TYPE_JOIN, 0, NONCE), ATP_DROP_TYPE);
	EXPECT_EQ(rx(SEC, ATP_TYPE_LEAVE, 0, NONCE), ATP_DROP_TYPE);
	EXPECT_EQ(rx(SEC, ATP_TYPE_PING, 0, NONCE), ATP_DROP_TYPE);
	EXPECT_EQ(rx_ctl(SEC, ATP_TYPE_WELCOME, 8, EPOCH, NONCE, 0, 0),
		  ATP_DROP_JOB);
	EXPECT_EQ(rx_ctl(SEC, ATP_TYPE_ABORT, 9, 0, NONCE, 0, 0),
		  ATP_DROP_FLAGS);
	EXPECT_EQ(s.state, ATP_SESSION_JOINING);
	EXPECT_EQ(s.heard, SEC);

	EXPECT_EQ(rx(SEC + 5, ATP_TYPE_ABORT, 0, NONCE), ATP_OK);
	EXPECT_EQ(s.state, ATP_SESSION_FAILED);
	EXPECT_EQ(s.reason, ATP_REASON_LEFT);
	EXPECT_EQ(s.ranks, 0x13);
	EXPECT_EQ(rx(SEC + 6, ATP_TYPE_WELCOME, EPOCH, NONCE), ATP_DROP_STATE);
	EXPECT_EQ(s.state, ATP_SESSION_FAILED);
}

TEST(joined_table)
{
	joined(SEC);
	EXPECT_EQ(rx(2 * SEC, ATP_TYPE_ABORT, EPOCH + 1, NONCE),
		  ATP_DROP_EPOCH);
	EXPECT_EQ(rx(2 * SEC, ATP_TYPE_PONG, EPOCH - 1, NONCE),
		  ATP_DROP_EPOCH);
	EXPECT_EQ(rx(2 * SEC, ATP_TYPE_STATUS, 0, NONCE), ATP_DROP_EPOCH);
	EXPECT_EQ(rx(2 * SEC, ATP_TYPE_WELCOME, EPOCH + 1, NONCE),
		  ATP_DROP_EPOCH);
	EXPECT_EQ(rx_data(2 * SEC, EPOCH + 1, ATP_F_ACK), ATP_DROP_EPOCH);
	EXPECT_EQ(rx_data(2 * SEC, EPOCH, 0), ATP_DROP_FLAGS);
	EXPECT_EQ(s.heard, SEC);
	EXPECT_EQ(s.state, ATP_SESSION_JOINED);

	/* for somebody else that says it is this rank */
	EXPECT_EQ(rx(2 * SEC, ATP_TYPE_PONG, EPOCH, 0), ATP_DROP_NONCE);
	EXPECT_EQ(s.heard, SEC);
	EXPECT_EQ(rx(3 * SEC, ATP_TYPE_PONG, EPOCH, NONCE), ATP_OK);
	EXPECT_EQ(s.heard, 3 * SEC);
	EXPECT_EQ(rx_data(4 * SEC, EPOCH, ATP_F_ACK), ATP_OK);
	EXPECT_EQ(s.heard, 4 * SEC);
	EXPECT_EQ(rx(5 * SEC, ATP_TYPE_STATUS, EPOCH, 0), ATP_OK);
	EXPECT_EQ(s.heard, 5 * SEC);
	EXPECT_EQ(rx(6 * SEC, ATP_TYPE_WELCOME, EPOCH, NONCE), ATP_OK);
	EXPECT_EQ(s.heard, 6 * SEC);
	EXPECT_EQ(s.state, ATP_SESSION_JOINED);

	EXPECT_EQ(rx_ctl(7 * SEC, ATP_TYPE_ABORT, 9, EPOCH, 0,
			 ATP_REASON_DISAGREE, 0x4), ATP_OK);
	EXPECT_EQ(s.state, ATP_SESSION_FAILED);
	EXPECT_EQ(s.reason, ATP_REASON_DISAGREE);
	EXPECT_EQ(s.ranks, 0x4);
}

/* Ranks that the job does not have: no news of a run.  One that is configured
 * otherwise may have them, and says so before.
 */
TEST(undefined_ranks)
{
	static const u32 undefined[] = { 0x20, 0x33, 1U << 31, ~0U };
	static const u8 types[] = {
		ATP_TYPE_WELCOME, ATP_TYPE_ABORT, ATP_TYPE_STATUS,
		ATP_TYPE_PONG,
	};
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(undefined); i++) {
		joining(SEC);
		EXPECT_EQ(rx_ctl(2 * SEC, ATP_TYPE_WELCOME, 9, EPOCH, NONCE, 0,
				 undefined[i]), ATP_DROP_BITMAP);
		EXPECT_EQ(s.state, ATP_SESSION_JOINING);
		EXPECT_EQ(s.heard, SEC);
		EXPECT_EQ(rx_ctl(2 * SEC, ATP_TYPE_PONG, 9, 0, NONCE, 0,
				 undefined[i]), ATP_OK);
		EXPECT_EQ(s.ranks, undefined[i]);
		EXPECT_EQ(rx_ctl(2 * SEC, ATP_TYPE_ABORT, 9, 0, NONCE,
				 ATP_REASON_MISMATCH, undefined[i]), ATP_OK);
		EXPECT_EQ(s.state, ATP_SESSION_FAILED);

		joined(SEC);
		for (k = 0; k < ARRAY_SIZE(types); k++)
			EXPECT_EQ(rx_ctl(2 * SEC, types[k], 9, EPOCH, NONCE,
					 ATP_REASON_LEFT, undefined[i]),
				  ATP_DROP_BITMAP);
		EXPECT_EQ(s.state, ATP_SESSION_JOINED);
		EXPECT_EQ(s.heard, SEC);
		EXPECT_FALSE(s.over);
		EXPECT_EQ(rx(2 * SEC, ATP_TYPE_ABORT, EPOCH, 0), ATP_OK);
	}
}

/* Who has left stays away, though an older PONG comes later. */
TEST(somebody_has_left)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		joined(SEC);
		/* of another run, of somebody else's join */
		EXPECT_EQ(rx_ctl(SEC, ATP_TYPE_PONG, 9, EPOCH - 1, NONCE, 0,
				 0x17), ATP_DROP_EPOCH);
		EXPECT_EQ(rx_ctl(SEC, ATP_TYPE_PONG, 9, EPOCH, NONCE + 1, 0,
				 0x17), ATP_DROP_NONCE);
		EXPECT_EQ(rx_ctl(SEC, ATP_TYPE_PONG, 9, EPOCH, NONCE, 0, 0x1f),
			  ATP_OK);
		EXPECT_FALSE(s.over);
		/* the first time a rank, then the application at the PS */
		s.params.server = i;
		EXPECT_EQ(rx_ctl(SEC, ATP_TYPE_PONG, 9, EPOCH, NONCE, 0,
				 i ? 0x1f : 0x17), ATP_OK);
		EXPECT_TRUE(s.over);
		EXPECT_EQ(s.unserved, i);
		s.params.server = false;
		EXPECT_EQ(rx_ctl(SEC, ATP_TYPE_PONG, 9, EPOCH, NONCE, 0, 0x1f),
			  ATP_OK);
		EXPECT_TRUE(s.over);
	}
	joined(SEC);
	EXPECT_FALSE(s.over);
	EXPECT_FALSE(s.unserved);
}

/* Every quarter of the timeout, whatever else is heard */
TEST(pings)
{
	u64 at = SEC;
	u32 i;

	joined(at);
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(atp_session_deadline(&s), at + 2 * SEC);
		EXPECT_EQ(atp_session_tick(&s, at + 2 * SEC - 1), 0);
		at += 2 * SEC;
		EXPECT_EQ(atp_session_tick(&s, at), ATP_TYPE_PING);
		EXPECT_EQ(atp_session_tick(&s, at), 0);
		EXPECT_EQ(rx(at, ATP_TYPE_PONG, EPOCH, NONCE), ATP_OK);
		EXPECT_EQ(rx_data(at + SEC, EPOCH, ATP_F_ACK), ATP_OK);
	}
}

/* A lost PING or PONG is made up for soon: on a path that loses half of what
 * it is given, who has nothing to send must not seem dead.
 */
TEST(pings_until_there_is_an_answer)
{
	u64 at = 3 * SEC;
	u32 i;

	joined(SEC);
	for (i = 0; i < 20; i++) {
		EXPECT_EQ(atp_session_deadline(&s), at);
		EXPECT_EQ(atp_session_tick(&s, at), ATP_TYPE_PING);
		/* the PS sends results, and may have heard nothing of this */
		EXPECT_EQ(rx_data(at, EPOCH, ATP_F_ACK), ATP_OK);
		at += 125 * MSEC;
	}
	EXPECT_EQ(rx(at, ATP_TYPE_PONG, EPOCH, NONCE), ATP_OK);
	EXPECT_EQ(atp_session_deadline(&s), at + 2 * SEC);
}

TEST(silence_of_the_ps)
{
	u64 at = SEC;
	u32 pings = 0;

	joined(at);
	while (s.state == ATP_SESSION_JOINED) {
		at = atp_session_deadline(&s);
		pings += atp_session_tick(&s, at) == ATP_TYPE_PING;
		ASSERT_LT(pings, 100);
	}
	EXPECT_EQ(at, 9 * SEC);
	EXPECT_EQ(pings, 3 * 16);
	EXPECT_EQ(s.state, ATP_SESSION_FAILED);
	EXPECT_EQ(s.reason, ATP_REASON_PS_SILENT);
	EXPECT_EQ(s.ranks, 0);
}

/* Who was suspended itself asks once more before it says that the PS is. */
TEST(suspended)
{
	joined(SEC);
	EXPECT_EQ(atp_session_tick(&s, 100 * SEC), ATP_TYPE_PING);
	EXPECT_EQ(s.state, ATP_SESSION_JOINED);
	EXPECT_EQ(rx(100 * SEC + 1, ATP_TYPE_PONG, EPOCH, NONCE),
		  ATP_OK);
	EXPECT_EQ(atp_session_tick(&s, 102 * SEC + 1), ATP_TYPE_PING);
	EXPECT_EQ(s.state, ATP_SESSION_JOINED);

	joined(SEC);
	EXPECT_EQ(atp_session_tick(&s, 100 * SEC), ATP_TYPE_PING);
	EXPECT_EQ(atp_session_tick(&s, 102 * SEC - 1), ATP_TYPE_PING);
	EXPECT_EQ(atp_session_deadline(&s), 102 * SEC);
	EXPECT_EQ(atp_session_tick(&s, 102 * SEC), 0);
	EXPECT_EQ(s.state, ATP_SESSION_FAILED);
}

TEST(joins_again)
{
	joined(SEC);
	EXPECT_EQ(rx(2 * SEC, ATP_TYPE_ABORT, EPOCH, 0), ATP_OK);
	atp_session_join(&s, 3 * SEC, 0);
	EXPECT_NE(s.nonce, 0);
	EXPECT_EQ(s.reason, ATP_REASON_NONE);
	EXPECT_EQ(s.ranks, 0);
	EXPECT_EQ(s.epoch, 0);
	EXPECT_EQ(atp_session_tick(&s, 3 * SEC), ATP_TYPE_JOIN);
	EXPECT_EQ(atp_session_deadline(&s), 3 * SEC + 20 * MSEC);
	EXPECT_EQ(rx(3 * SEC, ATP_TYPE_WELCOME, EPOCH, NONCE), ATP_DROP_NONCE);
	EXPECT_EQ(rx(3 * SEC, ATP_TYPE_WELCOME, EPOCH + 1, s.nonce), ATP_OK);
	EXPECT_EQ(s.epoch, EPOCH + 1);
}

/* Three, all before the PS would find it silent. */
TEST(leaves_several_times)
{
	u64 at;
	u32 i;

	for (i = 0; i < 2; i++) {
		if (i)
			joined(SEC);
		else
			joining(SEC);
		at = 2 * SEC;
		atp_session_leave(&s, at);
		EXPECT_EQ(atp_session_deadline(&s), at);
		EXPECT_EQ(atp_session_tick(&s, at - 1), 0);
		EXPECT_EQ(atp_session_tick(&s, at), ATP_TYPE_LEAVE);
		EXPECT_EQ(atp_session_tick(&s, at), 0);
		/* what comes from the PS is for nobody any more */
		EXPECT_EQ(rx(at, ATP_TYPE_WELCOME, EPOCH, NONCE),
			  ATP_DROP_STATE);
		EXPECT_EQ(rx(at, ATP_TYPE_ABORT, EPOCH, NONCE),
			  ATP_DROP_STATE);
		EXPECT_EQ(rx_data(at, EPOCH, ATP_F_ACK), ATP_DROP_STATE);
		at = atp_session_deadline(&s);
		EXPECT_EQ(atp_session_tick(&s, at), ATP_TYPE_LEAVE);
		at = atp_session_deadline(&s);
		EXPECT_EQ(atp_session_tick(&s, at), ATP_TYPE_LEAVE);
		EXPECT_LE(at, 2 * SEC + params.timeout / 2);
		EXPECT_EQ(s.state, ATP_SESSION_IDLE);
		EXPECT_EQ(atp_session_deadline(&s), U64_MAX);
		EXPECT_EQ(atp_session_tick(&s, 100 * SEC), 0);
	}
}

TEST(joins_again_while_it_leaves)
{
	joined(SEC);
	atp_session_leave(&s, 2 * SEC);
	atp_session_join(&s, 3 * SEC, NONCE + 1);
	EXPECT_EQ(s.state, ATP_SESSION_JOINING);
	EXPECT_EQ(atp_session_tick(&s, 3 * SEC), ATP_TYPE_JOIN);
}

TEST(what_is_sent)
{
	static const u8 types[] = {
		ATP_TYPE_JOIN, ATP_TYPE_PING, ATP_TYPE_LEAVE,
	};
	u8 buf[ATP_HDR_LEN + ATP_CTL_LEN + 1];
	struct atp_ctl_host ctl;
	struct atp_pkt pkt;
	u32 i;

	for (i = 0; i < 2 * ARRAY_SIZE(types); i++) {
		if (i < 3)
			joining(SEC);
		else
			joined(SEC);
		EXPECT_EQ(atp_session_build(&s, types[i % 3], buf + 1),
			  sizeof(buf) - 1);
		ASSERT_EQ(atp_pkt_parse(&pkt, buf + 1, sizeof(buf) - 1),
			  ATP_OK);
		EXPECT_EQ(pkt.type, types[i % 3]);
		EXPECT_EQ(pkt.job, 9);
		/* no JOIN is sent in a run */
		if (i != 3)
			EXPECT_EQ(pkt.epoch, i < 3 ? 0 : EPOCH);
		EXPECT_EQ(pkt.bitmap0, 1 << 2);
		EXPECT_EQ(pkt.fanin0, 5);
		atp_ctl_read(&ctl, pkt.payload);
		EXPECT_EQ(ctl.nonce, NONCE);
		EXPECT_EQ(ctl.workers, 5);
		EXPECT_EQ(ctl.fragment, 248);
		EXPECT_EQ(ctl.window, 64);
		EXPECT_EQ(ctl.scale, 100000000);
		EXPECT_EQ(ctl.reason, 0);
		EXPECT_EQ(ctl.ranks, 0);
	}
}

TAP_MAIN()
