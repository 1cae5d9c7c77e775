/* SPDX-License-Identifier: GPL-2.0 */
/* Tests of what must not get through: a sum that waits for its last gradient,
 * and must not change
 */
#ifndef _REFUSE_FIXTURE_H
#define _REFUSE_FIXTURE_H

#include <linux/bpf.h>
#include <stddef.h>
#include "../include/tap.h"
#include "check.h"

#define LANES	5

static struct t_job job;
static uint8_t *frame, *before, snapshot[8192];
static struct f_pkt pkt;
static struct sw_counters count;

/* A job of two; rank 0's gradient of fragment 0 is in */
static inline void begin(bool v6)
{
	int i;

	job = (struct t_job){ .id = 1, .v6 = v6, .workers = 2, .quota = 1,
			      .ps_port = 2, .port = { 0, 1 } };
	if (!frame) {
		frame = f_buffer();
		before = f_buffer();
	}
	c_open(1, 248);
	c_add_job(&job);
	c_gradient(&pkt, &job, 0, 0);
	pkt.elements = LANES;
	for (i = 0; i < LANES; i++)
		pkt.lane[i] = 1000 + i;
	ASSERT_TRUE(c_send(0, &pkt));
	c_gradient(&pkt, &job, 1, 0);
	pkt.elements = LANES;
	for (i = 0; i < LANES; i++)
		pkt.lane[i] = -7 * i;
	t_counters(1, &count);
}

/* Without the time stamp, since the kernel's clock goes on */
static inline void take_snapshot(uint8_t *to)
{
	struct sw_agg *a = t_agg(0);

	memcpy(to, a, sizeof(*a) + 256);
	memset(to + offsetof(struct sw_agg, stamp), 0, 8);
}

static inline bool unchanged(void)
{
	uint8_t now[sizeof(snapshot)];

	take_snapshot(now);
	return !memcmp(now, snapshot, sizeof(struct sw_agg) + 256);
}

static inline int run(int port, uint32_t len)
{
	take_snapshot(snapshot);
	memcpy(before, frame, len);
	return t_run(port, frame, len);
}

static inline void expect_drop(int port, uint32_t len, __u64 *counter,
			       const char *what)
{
	uint64_t was = *counter;
	int verdict = run(port, len);

	t_counters(1, &count);
	if (verdict != XDP_ABORTED || !unchanged() || *counter != was + 1) {
		tap_fail(__FILE__, __LINE__,
			 "%s: verdict %d, %schanged, counted %lld times",
			 what, verdict, unchanged() ? "un" : "",
			 (long long)(*counter - was));
	}
}

static inline void expect_left_alone(int port, uint32_t len,
				     const char *what)
{
	int verdict = run(port, len);

	if (verdict != XDP_PASS || !unchanged() || memcmp(frame, before, len))
		tap_fail(__FILE__, __LINE__, "%s: verdict %d", what, verdict);
}

/* Change a byte behind the UDP header, and make the checksums right */
static inline uint32_t with_byte(uint32_t at, uint8_t v)
{
	uint32_t len = f_make(&pkt, frame);

	frame[f_udp(job.v6) + 8 + at] = v;
	f_seal(frame, len);
	return len;
}

#endif /* _REFUSE_FIXTURE_H */
