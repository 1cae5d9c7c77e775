// SPDX-License-Identifier: GPL-2.0
/*
 * Two CPUs at the same aggregators at once.  Every value has a known owner, so
 * every packet that leaves can be checked: its lanes are the sum of the values
 * of the ranks in its bitmap.  And nothing gets lost: each rank of a fragment
 * is in some packet that has left.
 *
 * Built with PLANTED the program is one without locks, and the test is passed
 * if it is seen to add wrongly.
 */
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include "../include/tap.h"
#include "check.h"
#include "target_bpf.h"

#define THREADS		2
#define WORKERS		32
#define MINE		(WORKERS / THREADS)
#define SECONDS		3
/* Fragments, from which something can be seen */
#define ENOUGH		10

static struct t_job job = { .id = 1, .workers = WORKERS, .quota = 1,
			    .ps_port = 1 };
static int lanes;
static uint32_t met;
static uint32_t left[THREADS];		/* ranks of this fragment that left */
static uint64_t wrong, lost, fragments, packets;
static bool stop, last;

/* The value of a rank in a lane of a fragment: no sum overflows */
static int32_t value(uint32_t seq, uint32_t rank, uint32_t lane)
{
	uint32_t x = seq * 2654435761u ^ rank * 40503u ^ lane * 2246822519u;

	x ^= x >> 15;
	x *= 2654435761u;
	return (int32_t)x >> 6;
}

/* Wait for all; the count only grows, so that nobody can miss it */
static void meet(uint32_t round)
{
	__atomic_add_fetch(&met, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&met, __ATOMIC_SEQ_CST) < (round + 1) * THREADS)
		;
}

static void check_out(const uint8_t *frame, uint32_t len, uint32_t seq,
		      int thread)
{
	struct f_pkt p;
	uint32_t rank;
	int i;

	if (!f_read(&p, frame, len) || p.seq != seq) {
		__atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
		return;
	}
	for (i = 0; i < lanes; i++) {
		int64_t sum = 0;

		for (rank = 0; rank < WORKERS; rank++) {
			if (p.bitmap & 1U << rank)
				sum += value(seq, rank, i);
		}
		if (sum != p.lane[i]) {
			__atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
			return;
		}
	}
	left[thread] |= p.bitmap;
}

static void send_one(struct f_pkt *p, uint8_t *frame, uint32_t seq,
		     uint32_t rank, uint16_t flags, int thread)
{
	uint32_t len;
	int i;

	c_gradient(p, &job, rank, seq);
	p->index = 0;
	p->flags |= flags;
	p->elements = lanes;
	for (i = 0; i < lanes; i++)
		p->lane[i] = value(seq, rank, i);
	len = f_make(p, frame);
	/* a copy that was damaged on the way adds nothing, nor does it lose
	 * what the other CPU adds meanwhile
	 */
	if (rank % 4 == 0) {
		frame[len - 3] ^= 0x20;
		if (t_run(0, frame, len) != XDP_ABORTED)
			__atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
		frame[len - 3] ^= 0x20;
	}
	if (t_run(0, frame, len) == XDP_REDIRECT)
		check_out(frame, len, seq, thread);
}

static void *sender(void *arg)
{
	int me = (int)(intptr_t)arg;
	static struct f_pkt packet[THREADS];
	uint8_t *frame = f_buffer();
	uint32_t seq, round = 0, i;
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(me, &cpu);
	pthread_setaffinity_np(pthread_self(), sizeof(cpu), &cpu);

	for (seq = 0; ; seq++) {
		if (!me)
			last = __atomic_load_n(&stop, __ATOMIC_SEQ_CST);
		meet(round++);
		if (last)
			break;
		/* not before the first thread is done with the last round's */
		left[me] = 0;
		for (i = 0; i < MINE; i++)
			send_one(&packet[me], frame, seq, i * THREADS + me, 0,
				 me);
		meet(round++);
		if (me)
			continue;
		/* whatever is in the aggregator leaves with a resend */
		for (i = 0; i < WORKERS; i++) {
			if (!((left[0] | left[1]) & 1U << i))
				send_one(&packet[me], frame, seq, i,
					 ATP_F_RESEND, me);
		}
		if ((left[0] | left[1]) != ~0U)
			lost++;
		t_agg(0)->bitmap = 0;
		sw_state_get(&t_switch, 1)->occupied = 0;
		fragments++;
		packets += WORKERS;
	}
	free(frame - 2);
	return NULL;
}

static void race(int n_lanes)
{
	struct sw_counters c;
	pthread_t thread[THREADS];
	int i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < THREADS)
		tap_skip("one CPU");
	lanes = n_lanes;
	c_open(1, ATP_FRAGMENT_MAX);
	c_add_job(&job);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, sender, (void *)(intptr_t)i);
	/* on a busy machine until there is something to look at */
	do
		sleep(SECONDS);
	while (__atomic_load_n(&fragments, __ATOMIC_RELAXED) <= ENOUGH);
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	t_counters(1, &c);
	printf("# %d lanes: %llu packets, %llu fragments; locked %llu times\n",
	       lanes, (unsigned long long)packets,
	       (unsigned long long)fragments,
	       (unsigned long long)c.collision_locked);
	printf("# wrong sums %llu, lost values %llu\n",
	       (unsigned long long)wrong, (unsigned long long)lost);
#ifdef PLANTED
	EXPECT_GT(wrong + lost, 0);
#else
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(lost, 0);
	EXPECT_GT(c.drop_csum, fragments);
	/* else the sums were right because nothing was added */
	EXPECT_GT(c.aggregated, fragments * WORKERS / 4);
#endif
	c_close();
}

#ifdef PLANTED
TEST(without_locks_it_is_seen)
{
	race(F_MAX_LANES);
}
#else
TEST(two_lanes)
{
	race(2);
}

TEST(sixty_two_lanes)
{
	race(62);
}

TEST(most_lanes)
{
	race(F_MAX_LANES);
}
#endif

TAP_MAIN()
