// SPDX-License-Identifier: GPL-2.0
/* Congestion window and retransmission timer. */
#include <tap.h>
#include <math.h>
#include "packet.h"
#include "window.h"

#define MSEC	1000000ULL
#define SEC	1000000000ULL

static void acks(struct atp_cong *c, u32 n)
{
	while (n--)
		atp_cong_ack(c);
}

/* An MTU is five fragments of the paper's size and one of an MTU's. */
TEST(step)
{
	static const u32 of[][2] = {
		{ 248, 5 }, { 1400, 1 }, { 1024, 1 }, { 512, 3 }, { 3400, 1 },
		{ 8, 21 },
	};
	struct atp_cong c;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(of); i++) {
		atp_cong_init(&c, of[i][0], 64);
		EXPECT_EQ(c.step, of[i][1]);
	}
}

TEST(begins_with_ten)
{
	struct atp_cong c;

	atp_cong_init(&c, 248, 1024);
	EXPECT_EQ(atp_cong_window(&c), 10);
	atp_cong_init(&c, 248, 4);
	EXPECT_EQ(atp_cong_window(&c), 4);
	atp_cong_init(&c, 248, 1);
	EXPECT_EQ(atp_cong_window(&c), 1);
	acks(&c, 10);
	EXPECT_EQ(atp_cong_window(&c), 1);
}

TEST(grows_by_an_mtu_per_packet)
{
	struct atp_cong c;
	u32 i;

	atp_cong_init(&c, 248, 64);
	for (i = 15; i < 64; i += 5) {
		acks(&c, 1);
		EXPECT_EQ(atp_cong_window(&c), i);
	}
	acks(&c, 1);
	EXPECT_EQ(atp_cong_window(&c), 64);
	acks(&c, 1000);
	EXPECT_EQ(atp_cong_window(&c), 64);
}

TEST(grows_by_an_mtu_per_window)
{
	struct atp_cong c;

	atp_cong_init(&c, 1400, 64);
	acks(&c, 54);
	EXPECT_EQ(c.cwnd, 64);
	EXPECT_TRUE(atp_cong_reduce(&c, 10, 64));
	EXPECT_EQ(c.cwnd, 32);
	EXPECT_EQ(c.ssthresh, 32);
	acks(&c, 31);
	EXPECT_EQ(c.cwnd, 32);
	acks(&c, 1);
	EXPECT_EQ(c.cwnd, 33);
	acks(&c, 32);
	EXPECT_EQ(c.cwnd, 33);
	acks(&c, 1);
	EXPECT_EQ(c.cwnd, 34);
}

/* Whichever packet of a window is marked, it halves; the others do not. */
TEST(halves_once_per_window)
{
	struct atp_cong c;
	u32 base, mark, seq;

	for (base = -80; base != 80; base += 16) {
		for (mark = 0; mark < 16; mark++) {
			atp_cong_init(&c, 1400, 16);
			c.cwnd = 16;
			/* from long ago: no influence */
			c.recover = base;
			EXPECT_TRUE(atp_cong_reduce(&c, base + mark,
						    base + 16));
			EXPECT_EQ(c.cwnd, 8);
			for (seq = base; seq != base + 16; seq++)
				EXPECT_FALSE(atp_cong_reduce(&c, seq,
							     base + 16));
			EXPECT_EQ(c.cwnd, 8);
			EXPECT_TRUE(atp_cong_reduce(&c, base + 16, base + 24));
			EXPECT_EQ(c.cwnd, 4);
		}
	}
}

TEST(a_mark_counts_after_terabytes_without)
{
	struct atp_cong c;
	u64 seq;

	for (seq = 0; seq < 3ULL << 32; seq += 0x10000001) {
		atp_cong_init(&c, 1400, 64);
		c.cwnd = 64;
		atp_cong_reduce(&c, 0, 64);
		if ((u32)seq < 64)
			continue;
		EXPECT_TRUE(atp_cong_reduce(&c, seq, seq + 32));
		EXPECT_EQ(c.cwnd, 16);
	}
}

TEST(never_below_one)
{
	struct atp_cong c;
	u32 seq;

	atp_cong_init(&c, 1400, 64);
	for (seq = 0; seq < 100; seq++) {
		atp_cong_reduce(&c, seq, seq + 1);
		EXPECT_GE(atp_cong_window(&c), 1);
	}
	EXPECT_EQ(c.cwnd, 1);
	EXPECT_EQ(c.ssthresh, 1);
	acks(&c, 1);
	EXPECT_EQ(c.cwnd, 2);
	acks(&c, 2);
	EXPECT_EQ(c.cwnd, 3);
}

TEST(cap_of_the_switches)
{
	struct atp_cong c;

	atp_cong_init(&c, 1400, 1 << 17);
	c.cwnd = 100000;
	atp_cong_cap(&c, 0xfffe);
	EXPECT_EQ(atp_cong_window(&c), 0xfffe);
	atp_cong_cap(&c, ATP_NO_CAP);
	EXPECT_EQ(atp_cong_window(&c), 100000);
	atp_cong_cap(&c, 0);
	EXPECT_EQ(atp_cong_window(&c), 1);
	atp_cong_cap(&c, 40);
	EXPECT_EQ(atp_cong_window(&c), 40);
	/* half of what was in use */
	atp_cong_reduce(&c, 0, 40);
	EXPECT_EQ(atp_cong_window(&c), 20);
	atp_cong_cap(&c, ATP_NO_CAP);
	EXPECT_EQ(atp_cong_window(&c), 20);
}

TEST(timeout_and_undo)
{
	struct atp_cong c;

	atp_cong_init(&c, 1400, 64);
	c.cwnd = 40;
	atp_cong_timeout(&c, 100);
	EXPECT_EQ(atp_cong_window(&c), 1);
	EXPECT_EQ(c.ssthresh, 20);
	/* marks in the window of the timeout say nothing new */
	EXPECT_FALSE(atp_cong_reduce(&c, 99, 100));
	acks(&c, 3);
	EXPECT_EQ(c.cwnd, 4);
	atp_cong_undo(&c);
	EXPECT_EQ(c.cwnd, 40);
	EXPECT_EQ(c.ssthresh, 64);
	/* but now they do */
	EXPECT_TRUE(atp_cong_reduce(&c, 99, 100));
	EXPECT_EQ(c.cwnd, 20);
	/* there is nothing more to undo */
	atp_cong_undo(&c);
	EXPECT_EQ(c.cwnd, 20);
	EXPECT_EQ(c.ssthresh, 20);
}

TEST(undo_does_not_shrink)
{
	struct atp_cong c;

	atp_cong_init(&c, 1400, 64);
	c.cwnd = 4;
	atp_cong_timeout(&c, 10);
	c.ssthresh = 64;
	acks(&c, 20);
	EXPECT_EQ(c.cwnd, 21);
	atp_cong_undo(&c);
	EXPECT_EQ(c.cwnd, 21);
}

TEST(first_timeout)
{
	struct atp_rtt r;

	atp_rtt_init(&r);
	EXPECT_EQ(atp_rtt_timeout(&r, false), 50 * MSEC);
	r.backoff = 1;
	EXPECT_EQ(atp_rtt_timeout(&r, false), 100 * MSEC);
	r.backoff = 4;
	EXPECT_EQ(atp_rtt_timeout(&r, false), 800 * MSEC);
	for (r.backoff = 5; r.backoff < 200; r.backoff++)
		EXPECT_EQ(atp_rtt_timeout(&r, false), SEC);
}

TEST(two_milliseconds_to_a_second)
{
	struct atp_rtt r;
	u32 i;

	atp_rtt_init(&r);
	for (i = 0; i < 50; i++)
		atp_rtt_sample(&r, 20000);
	EXPECT_EQ(atp_rtt_timeout(&r, false), 2 * MSEC);
	EXPECT_EQ(r.best, 20000);
	r.backoff = 8;
	EXPECT_EQ(atp_rtt_timeout(&r, false), 512 * MSEC);
	r.backoff = 9;
	EXPECT_EQ(atp_rtt_timeout(&r, false), SEC);

	atp_rtt_init(&r);
	atp_rtt_sample(&r, 3600 * SEC);
	EXPECT_EQ(atp_rtt_timeout(&r, false), SEC);
	/* a single sample of hours is forgotten as fast as one of a second */
	for (i = 0; i < 60; i++)
		atp_rtt_sample(&r, 20000);
	EXPECT_LT(atp_rtt_timeout(&r, false), 4 * MSEC);
	atp_rtt_init(&r);
	atp_rtt_sample(&r, 0);
	EXPECT_NE(r.srtt, 0);
}

/* RFC 6298 in floating point */
TEST(as_the_rfc_says)
{
	double srtt = 0, var = 0, rto;
	struct atp_rtt r;
	u64 sample;
	u32 i;

	tap_seed(6298);
	atp_rtt_init(&r);
	for (i = 0; i < 1000; i++) {
		sample = 1000000 + tap_below(20000000);
		atp_rtt_sample(&r, sample);
		if (!i) {
			srtt = sample;
			var = sample / 2.0;
		} else {
			var = 0.75 * var + 0.25 * fabs(srtt - sample);
			srtt = 0.875 * srtt + 0.125 * sample;
		}
		rto = srtt + 4 * var;
		EXPECT_LT(fabs(r.srtt - srtt), 1000);
		EXPECT_LT(fabs(atp_rtt_timeout(&r, false) - rto), 10000);
	}
}

/* As long as something arrives, four times the timeout is enough. */
TEST(little_backoff_on_a_live_path)
{
	struct atp_rtt r;

	atp_rtt_init(&r);
	atp_rtt_sample(&r, 20000);
	EXPECT_EQ(atp_rtt_timeout(&r, true), 2 * MSEC);
	r.backoff = 1;
	EXPECT_EQ(atp_rtt_timeout(&r, true), 4 * MSEC);
	for (r.backoff = 2; r.backoff < 200; r.backoff++)
		EXPECT_EQ(atp_rtt_timeout(&r, true), 8 * MSEC);
}

/* One sample that peers had no part in outweighs any number of others. */
TEST(path_sample)
{
	struct atp_rtt r;
	u32 i;

	atp_rtt_init(&r);
	for (i = 0; i < 100; i++)
		atp_rtt_sample(&r, (100 + i % 7 * 100) * MSEC);
	EXPECT_GT(r.rto, 500 * MSEC);
	atp_rtt_path(&r, 3 * MSEC);
	EXPECT_EQ(r.srtt, 3 * MSEC);
	EXPECT_EQ(r.best, 3 * MSEC);
	EXPECT_EQ(r.rto, 9 * MSEC);
}

TAP_MAIN()
