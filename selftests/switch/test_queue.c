// SPDX-License-Identifier: GPL-2.0
/* The phantom queue of a port, which reads the clock when it matters only. */
#include <stdlib.h>
#include "../../userspace/switch/atp_switch.bpf.c"
#include "../include/tap.h"

#define BYTES		1400
#define MARK		SW_MARK_DEFAULT
/* So much of a queue may have been seen by no clock */
#define UNSEEN		(MARK >> SW_UNSEEN_SHIFT)

static uint64_t now, reads;

void *shim_lookup(const void *map, const void *key)
{
	(void)map;
	(void)key;
	abort();
}

long shim_redirect(const void *map, __u64 key, __u64 flags)
{
	(void)map;
	(void)key;
	(void)flags;
	abort();
}

__u64 shim_now(void)
{
	reads++;
	return now;
}

/* A port of so many Mbit/s, and a time at which it is idle */
static struct sw_port port_of(uint64_t rate)
{
	now = 1000000000000ULL;
	reads = 0;
	return (struct sw_port){
		.cost = (8000ULL << SW_COST_SHIFT) / rate,
		.mark = MARK,
	};
}

/* A packet takes so long at most, with what rounding leaves */
static uint64_t time_of(uint64_t rate)
{
	return BYTES * 8000 / rate + 1;
}

/* Packets that come at once before one is marked */
static int burst(struct sw_port *port)
{
	int n = 0;

	while (!sw_queue(port, BYTES) && n < 1000000)
		n++;
	return n;
}

static void burst_at(uint64_t rate)
{
	struct sw_port port = port_of(rate);
	uint64_t each = (BYTES * port.cost) >> SW_COST_SHIFT;
	int again;

	/* of an idle port, whatever was sent long ago */
	for (again = 0; again < 3; again++) {
		uint64_t queue = burst(&port) * each;

		EXPECT_GT(queue, MARK);
		EXPECT_LE(queue, MARK + UNSEEN + 2 * each);
		now += 1000000000;
	}
}

TEST(a_burst_is_marked_at_its_end)
{
	burst_at(10);
	burst_at(1000);
	burst_at(10000);
	burst_at(100000);
}

/* @gap: nanoseconds between packets */
static int marked_of(struct sw_port *port, int packets, uint64_t gap)
{
	int marked = 0;

	while (packets--) {
		marked += sw_queue(port, BYTES);
		now += gap;
	}
	return marked;
}

TEST(what_the_link_can_take_is_not_marked)
{
	struct sw_port port = port_of(10000);

	EXPECT_EQ(marked_of(&port, 100000, time_of(10000)), 0);
	/* a packet takes a tenth of what may go unseen */
	EXPECT_LT(reads, 100000 / 8);
}

TEST(what_it_cannot_take_is)
{
	struct sw_port port = port_of(10000);

	/* a quarter too much: the mark is reached in four times as long */
	EXPECT_EQ(marked_of(&port, MARK / 1120 * 3, 896), 0);
	marked_of(&port, MARK / 1120 * 4, 896);
	EXPECT_EQ(marked_of(&port, 1000, 896), 1000);
}

TEST(a_slow_port_reads_the_clock_each_time)
{
	struct sw_port port = port_of(100);

	marked_of(&port, 1000, time_of(100));
	EXPECT_GE(reads, 999);
}

/* A port was told its rate while a packet left by it */
TEST(a_queue_that_was_forgotten_begins_anew)
{
	struct sw_port port = port_of(10000);

	port.seen = now;
	EXPECT_FALSE(sw_queue(&port, BYTES));
	EXPECT_EQ(reads, 1);
	EXPECT_GT(port.clear, now);
}

TEST(without_a_rate_nothing_is_marked)
{
	struct sw_port port = { .mark = MARK };

	EXPECT_EQ(burst(&port), 1000000);
	EXPECT_EQ(port.clear, 0);
}

TAP_MAIN()
