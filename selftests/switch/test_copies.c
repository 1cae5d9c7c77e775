// SPDX-License-Identifier: GPL-2.0
/*
 * Copies of parameter packets, as the kernel has them leave: those for a port
 * one packet after the other, but a port's queue goes out whenever it is full,
 * which may be between two copies of a packet.
 */
#include <linux/bpf.h>
#include <string.h>
#include "../include/tap.h"
#include "check.h"

#define PACKETS		6
#define HOSTS		3
/* The length of a queue: five packets' copies for three hosts, and one more */
#define QUEUE		16

static struct t_job job = {
	.id = 1, .workers = 2 * HOSTS, .quota = 1, .ps_port = 2,
	.port = { 0, 0, 0, 1, 1, 1 },
};

/* How often each rank has got each packet */
static int got[PACKETS][2 * HOSTS];
static uint8_t *frame;

/* A copy of a packet leaves: for whom? */
static void leave(int port, uint32_t seq, bool v6)
{
	uint8_t addr[16];
	struct f_pkt p;
	uint32_t len, i;

	job.v6 = v6;
	c_parameter(&p, &job, 0, seq);
	p.flags |= ATP_F_MCAST;
	len = f_make(&p, frame);
	ASSERT_EQ(t_leave(port, frame, len), XDP_PASS);
	ASSERT_TRUE(f_read(&p, frame, len));
	EXPECT_EQ(p.seq, seq);
	EXPECT_EQ(p.flags & ATP_F_MCAST, 0);
	for (i = 0; i < job.workers; i++) {
		t_addr(v6, job.id, (int)i, addr);
		if (memcmp(addr, p.dst, sizeof(addr)))
			continue;
		EXPECT_EQ(job.port[i], port);
		got[seq][i]++;
	}
}

/* Of the copies for a port, in their order, those from @first on */
static void leave_some(int port, int first, int n, bool v6)
{
	int i;

	for (i = first; i < first + n; i++)
		leave(port, i / HOSTS, v6);
}

static void expect_each_once(void)
{
	uint32_t i;
	int seq;

	for (seq = 0; seq < PACKETS; seq++) {
		for (i = 0; i < job.workers; i++) {
			if (got[seq][i] != 1)
				tap_fail(__FILE__, __LINE__,
					 "rank %u has got packet %d %d times",
					 i, seq, got[seq][i]);
		}
	}
}

static void begin(bool v6)
{
	job.v6 = v6;
	frame = f_buffer();
	memset(got, 0, sizeof(got));
	c_open(1, 248);
	c_add_job(&job);
}

static void queues(bool v6)
{
	int all = PACKETS * HOSTS, port;

	begin(v6);
	for (port = 0; port < 2; port++)
		leave_some(port, 0, QUEUE, v6);
	for (port = 0; port < 2; port++)
		leave_some(port, QUEUE, all - QUEUE, v6);
	expect_each_once();
	c_close();
}

TEST(queues_that_are_full_amid_a_packet_ipv4)
{
	queues(false);
}

TEST(queues_that_are_full_amid_a_packet_ipv6)
{
	queues(true);
}

/* As in generic mode */
TEST(all_copies_of_a_packet_in_a_row)
{
	int seq, i;

	begin(false);
	for (seq = 0; seq < PACKETS; seq++) {
		for (i = 0; i < 2 * HOSTS; i++)
			leave(i % 2, seq, false);
	}
	expect_each_once();
	c_close();
}

/* One that is sent again goes to everybody again */
TEST(the_same_packet_once_more)
{
	uint32_t i;

	begin(false);
	leave_some(0, 0, HOSTS, false);
	leave_some(0, 0, HOSTS, false);
	for (i = 0; i < HOSTS; i++)
		EXPECT_EQ(got[0][i], 2);
	c_close();
}

TAP_MAIN()
