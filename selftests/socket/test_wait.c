// SPDX-License-Identifier: GPL-2.0
/* Calls that wait, or not: timeouts, signals, threads. */
#include <time.h>
#include "host.h"
#include "slow.h"

TEST(dontwait)
{
	uint32_t lane;
	int fds[2];

	join_pair(fds, "");
	EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_DONTWAIT), EAGAIN);
	set_nonblock(fds[0], true);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), EAGAIN);
	set_nonblock(fds[0], false);
	/* pushed, but a peer is missing */
	push(fds[0], &lane, 4);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_DONTWAIT), EAGAIN);
	EXPECT_FALSE(events_of(fds[0], 0) & POLLIN);
	push(fds[1], &lane, 4);
	pull(fds[0], &lane, 4);
}

#define TIMEOUT_MS	100
/* The kernel counts in ticks, of at most so long, and the first has begun */
#define TICK_MS		10

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* Not before its time; how long after it, is up to the machine. */
#define EXPECT_TIMEOUT(call, ms) do {					\
	int64_t begin = now_ms();					\
									\
	EXPECT_ERRNO(call, EAGAIN);					\
	EXPECT_GE(now_ms() - begin, (ms) - TICK_MS);			\
} while (0)

TEST(timeouts)
{
	char bytes[4096] = {};
	int fds[2];

	join_pair(fds, "");
	set_timeout(fds[0], SO_RCVTIMEO, TIMEOUT_MS);
	set_timeout(fds[0], SO_SNDTIMEO, TIMEOUT_MS);
	EXPECT_TIMEOUT(recv(fds[0], bytes, 4, 0), TIMEOUT_MS);
	set_sndbuf(fds[0], 4096);
	push(fds[0], bytes, sizeof(bytes));
	EXPECT_TIMEOUT(send(fds[0], bytes, sizeof(bytes), 0), TIMEOUT_MS);
	EXPECT_TIMEOUT(recv(fds[0], bytes, 4, 0), TIMEOUT_MS);
	push(fds[1], bytes, sizeof(bytes));
	pull(fds[0], bytes, sizeof(bytes));
	pull(fds[1], bytes, sizeof(bytes));
	sum_works(fds, 2);
}

/* Not a multiple of a second: who sleeps looks so often whether others have the
 * descriptor, too.
 */
#define LONG_MS		2500

/* Another descriptor might pull what there is. */
TEST(long_timeouts)
{
	char bytes[4096] = {};
	int fds[2], i;

	join_pair(fds, "");
	ASSERT_GE(dup(fds[0]), 0);
	set_timeout(fds[0], SO_RCVTIMEO, LONG_MS);
	set_timeout(fds[0], SO_SNDTIMEO, LONG_MS);
	EXPECT_TIMEOUT(recv(fds[0], bytes, 4, 0), LONG_MS);
	set_sndbuf(fds[0], 4096);
	for (i = 0; i < 2; i++)
		push(fds[i], bytes, sizeof(bytes));
	wait_events(fds[0], POLLIN);
	EXPECT_TIMEOUT(send(fds[0], bytes, sizeof(bytes), 0), LONG_MS);
	for (i = 0; i < 2; i++)
		pull(fds[i], bytes, sizeof(bytes));
	sum_works(fds, 2);
}

/* Another descriptor might push what is due. */
TEST(long_timeout_at_the_ps)
{
	int32_t lane = 1;
	int fds[2];

	join_with_server(fds);
	ASSERT_GE(dup(fds[1]), 0);
	set_nonblock(fds[1], false);
	set_timeout(fds[1], SO_RCVTIMEO, LONG_MS);
	push(fds[0], &lane, 4);
	pull(fds[1], &lane, 4);
	EXPECT_TIMEOUT(recv(fds[1], &lane, 4, 0), LONG_MS);
	push(fds[1], &lane, 4);
	pull(fds[0], &lane, 4);
}

/* Blocked in pulling, then in pushing */
static void signalled(int *fds, int flags, int error)
{
	char bytes[4096] = {};
	int i;

	catch_signal(SIGUSR1, flags);
	set_sndbuf(fds[0], 4096);
	set_timeout(fds[0], SO_RCVTIMEO, flags ? 0 : LIMIT_MS);
	for (i = 0; i < 2; i++) {
		struct call c;

		if (i == 0)
			start_pull(&c, fds[0], bytes, sizeof(bytes));
		else
			start_push(&c, fds[0], bytes, sizeof(bytes));
		ASSERT_EQ(pthread_kill(c.thread, SIGUSR1), 0);
		EXPECT_EQ(end_call(&c), -error);
		if (i == 0)
			push(fds[0], bytes, sizeof(bytes));
	}
	push(fds[1], bytes, sizeof(bytes));
	pull(fds[0], bytes, sizeof(bytes));
	pull(fds[1], bytes, sizeof(bytes));
	sum_works(fds, 2);
}

TEST(signals)
{
	int fds[2];

	join_pair(fds, "");
	signalled(fds, 0, EINTR);
}

/* With SA_RESTART a call goes on, unless it has a timeout (signal(7)). */
TEST(signals_restart)
{
	char bytes[4096] = {};
	struct call c;
	int fds[2], i;

	join_pair(fds, "");
	catch_signal(SIGUSR1, SA_RESTART);
	start_pull(&c, fds[0], bytes, sizeof(bytes));
	for (i = 0; i < 3; i++)
		signal_asleep(&c, SIGUSR1);
	for (i = 0; i < 2; i++)
		push(fds[i], bytes, sizeof(bytes));
	EXPECT_EQ(end_call(&c), sizeof(bytes));
	pull(fds[1], bytes, sizeof(bytes));

	set_sndbuf(fds[0], 4096);
	push(fds[0], bytes, sizeof(bytes));
	start_push(&c, fds[0], bytes, sizeof(bytes));
	for (i = 0; i < 3; i++)
		signal_asleep(&c, SIGUSR1);
	push(fds[1], bytes, sizeof(bytes));
	pull(fds[0], bytes, sizeof(bytes));
	EXPECT_EQ(end_call(&c), sizeof(bytes));
	push(fds[1], bytes, sizeof(bytes));
	pull(fds[0], bytes, sizeof(bytes));
	pull(fds[1], bytes, sizeof(bytes));
	pull(fds[1], bytes, sizeof(bytes));

	set_timeout(fds[0], SO_RCVTIMEO, LIMIT_MS);
	start_pull(&c, fds[0], bytes, sizeof(bytes));
	signal_asleep(&c, SIGUSR1);
	EXPECT_EQ(end_call(&c), -EINTR);
	sum_works(fds, 2);
}

/* In the midst of copying a signal waits, nothing is lost. */
TEST(signal_while_pull_copies)
{
	int32_t lane = 21;
	struct slow slow;
	struct call c;
	int fds[2], i;

	join_pair(fds, "");
	slow_page(&slow);
	catch_signal(SIGUSR1, 0);
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &lane, 4);
	}
	wait_events(fds[0], POLLIN);
	start_pull(&c, fds[0], slow.page, 4);
	slow_wait(&slow);
	ASSERT_EQ(pthread_kill(c.thread, SIGUSR1), 0);
	/* nobody holds the socket meanwhile */
	EXPECT_EQ(info_of(fds[0]).chunks, 1);
	slow_fill(&slow, &lane, 4);
	EXPECT_EQ(end_call(&c), 4);
	EXPECT_EQ(*(int32_t *)slow.page, 42);
	pull(fds[1], &lane, 4);
	sum_works(fds, 2);
}

TEST(signal_while_push_copies)
{
	int32_t lane = 21, sum;
	struct slow slow;
	struct call c;
	int fds[2], i;

	join_pair(fds, "");
	slow_page(&slow);
	catch_signal(SIGUSR1, 0);
	for (i = 0; i < 2; i++)
		set_dtype(fds[i], ATP_INT32);
	start_push(&c, fds[0], slow.page, 4);
	slow_wait(&slow);
	ASSERT_EQ(pthread_kill(c.thread, SIGUSR1), 0);
	EXPECT_EQ(info_of(fds[0]).end, 0);
	slow_fill(&slow, &lane, 4);
	EXPECT_EQ(end_call(&c), 4);
	push(fds[1], &lane, 4);
	pull(fds[0], &sum, 4);
	EXPECT_EQ(sum, 42);
	pull(fds[1], &sum, 4);
	sum_works(fds, 2);
}

/* A storm of signals: each chunk goes once and its result comes once. */
static void *storm_push(void *arg)
{
	int fd = *(int *)arg, i, k;
	int32_t lane[2000];

	for (i = 0; i < 200; i++) {
		for (k = 0; k < 2000; k++)
			lane[k] = i - k;
		while (send(fd, lane, sizeof(lane), 0) < 0)
			ASSERT_EQ(errno, EINTR);
	}
	return NULL;
}

static void *storm_pull(void *arg)
{
	int fd = *(int *)arg, i, k;
	int32_t lane[2000];

	for (i = 0; i < 200; i++) {
		while (recv(fd, lane, sizeof(lane), 0) < 0)
			ASSERT_EQ(errno, EINTR);
		for (k = 0; k < 2000; k++)
			ASSERT_EQ(lane[k], 2 * (i - k));
	}
	return NULL;
}

TEST(signal_storm)
{
	void *(*work[2])(void *) = { storm_push, storm_pull };
	pthread_t thread[2][2];
	int fds[2], left = 4;
	bool ended[2][2] = {};
	int i, k;

	join_pair(fds, "");
	catch_signal(SIGUSR1, 0);
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		set_sndbuf(fds[i], 16384);
		for (k = 0; k < 2; k++)
			ASSERT_EQ(pthread_create(&thread[i][k], NULL, work[k],
						 &fds[i]), 0);
	}
	while (left) {
		for (i = 0; i < 2; i++) {
			for (k = 0; k < 2; k++) {
				if (ended[i][k])
					continue;
				pthread_kill(thread[i][k], SIGUSR1);
				if (pthread_tryjoin_np(thread[i][k], NULL))
					continue;
				ended[i][k] = true;
				left--;
			}
		}
		usleep(200);
	}
	sum_works(fds, 2);
}

struct stream {
	int fd;
	int error;
	bool wrong;
	uint32_t chunks;
};

/* A tensor of many times the send buffer, pushed and pulled by two threads */
static void *stream_push(void *arg)
{
	struct stream *p = arg;
	int32_t lanes[4096];
	uint32_t i, k;

	for (i = 0; i < p->chunks; i++) {
		for (k = 0; k < 4096; k++)
			lanes[k] = i * 4096 + k;
		if (send(p->fd, lanes, sizeof(lanes), 0) != sizeof(lanes))
			p->error = errno;
	}
	return NULL;
}

static void *stream_pull(void *arg)
{
	struct stream *p = arg;
	int32_t lanes[4096];
	uint32_t i, k;

	for (i = 0; i < p->chunks; i++) {
		if (recv(p->fd, lanes, sizeof(lanes), 0) != sizeof(lanes))
			p->error = errno;
		for (k = 0; k < 4096; k++)
			if (lanes[k] != (int32_t)(2 * (i * 4096 + k)))
				p->wrong = true;
	}
	return NULL;
}

TEST(two_threads_per_socket)
{
	struct stream p[2][2] = {};
	pthread_t thread[2][2];
	int fds[2], i;

	join_pair(fds, "");
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		set_sndbuf(fds[i], 65536);
		p[i][0].fd = fds[i];
		p[i][1].fd = fds[i];
		p[i][0].chunks = 300;
		p[i][1].chunks = 300;
		pthread_create(&thread[i][0], NULL, stream_push, &p[i][0]);
		pthread_create(&thread[i][1], NULL, stream_pull, &p[i][1]);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i][0], NULL);
		pthread_join(thread[i][1], NULL);
		EXPECT_EQ(p[i][0].error, 0);
		EXPECT_EQ(p[i][1].error, 0);
		EXPECT_FALSE(p[i][1].wrong);
	}
}

TAP_MAIN()
