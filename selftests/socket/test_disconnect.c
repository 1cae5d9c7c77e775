// SPDX-License-Identifier: GPL-2.0
/* connect() with AF_UNSPEC: leaving a run at once, whoever has the socket. */
#include <sched.h>
#include <unistd.h>
#include "host.h"

static int disconnect(int fd)
{
	struct sockaddr addr = { .sa_family = AF_UNSPEC };

	return connect(fd, &addr, sizeof(addr));
}

static void expect_left(int fd, uint32_t state)
{
	uint32_t lane = 0;

	EXPECT_EQ(info_of(fd).state, state);
	EXPECT_EQ(info_of(fd).reason, 0);
	EXPECT_EQ(info_of(fd).ranks, 0);
	EXPECT_EQ(error_of(fd), 0);
	EXPECT_ERRNO(send(fd, &lane, 4, MSG_NOSIGNAL), ENOTCONN);
	EXPECT_ERRNO(recv(fd, &lane, 4, 0), ENOTCONN);
	EXPECT_TRUE(events_of(fd, 0) & POLLHUP);
}

TEST(nothing_to_leave)
{
	struct sockaddr addr = { .sa_family = AF_UNSPEC };
	int fd = new_socket(0);

	host_net();
	EXPECT_EQ(disconnect(fd), 0);
	expect_left(fd, ATP_UNBOUND);
	/* what other families take is enough, less is not */
	EXPECT_EQ(connect(fd, &addr, sizeof(addr.sa_family)), 0);
	EXPECT_ERRNO(connect(fd, &addr, 1), EINVAL);

	host_net();
	job_add(1, "");
	fd = new_socket(0);
	ASSERT_EQ(do_bind(fd, JOB, 0), 0);
	EXPECT_EQ(disconnect(fd), 0);
	expect_left(fd, ATP_BOUND);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
}

/* Who waits for a join hears of that one, even if the next has begun before he
 * gets to look.  That is so here: he has the CPU of one who has precedence.
 */
TEST(joined_again_before_it_is_seen)
{
	const struct sched_param first = { .sched_priority = 1 }, other = {};
	struct call c;
	cpu_set_t cpu;
	int fds[2];

	host_net();
	job_add(2, "");
	fds[0] = new_socket(0);
	fds[1] = new_socket(0);
	CPU_ZERO(&cpu);
	CPU_SET(0, &cpu);
	ASSERT_EQ(sched_setaffinity(0, sizeof(cpu), &cpu), 0);
	start_connect(&c, fds[0]);

	ASSERT_EQ(sched_setscheduler(0, SCHED_FIFO, &first), 0);
	EXPECT_EQ(disconnect(fds[0]), 0);
	set_nonblock(fds[0], true);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINPROGRESS);
	ASSERT_EQ(sched_setscheduler(0, SCHED_OTHER, &other), 0);

	set_nonblock(fds[0], false);
	connect_all(fds, 2);
	EXPECT_EQ(end_call(&c), -ECONNRESET);
	sum_works(fds, 2);
}

/* Its chunks are gone, who needs them hears of it; both join again. */
TEST(in_flight)
{
	uint32_t lanes[1000] = {};
	int fds[2], dup_fd;

	join_pair(fds, "");
	/* another descriptor does not keep it in the run */
	dup_fd = dup(fds[0]);
	push(fds[0], lanes, sizeof(lanes));
	EXPECT_EQ(disconnect(fds[0]), 0);
	expect_left(fds[0], ATP_BOUND);
	/* the first may have come out still, the second never does */
	send(fds[1], lanes, sizeof(lanes), MSG_NOSIGNAL);
	send(fds[1], lanes, sizeof(lanes), MSG_NOSIGNAL);
	wait_state(fds[1], ATP_FAILED);
	EXPECT_EQ(error_of(fds[1]), ECONNRESET);
	EXPECT_EQ(info_of(fds[1]).ranks, 1 << 0);
	connect_all(fds, 2);
	sum_works(fds, 2);
	close(dup_fd);
}

TEST(while_joining)
{
	int fds[2];

	host_net();
	job_add(2, "");
	fds[0] = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINPROGRESS);
	EXPECT_EQ(disconnect(fds[0]), 0);
	expect_left(fds[0], ATP_BOUND);
	fds[1] = new_socket(0);
	set_nonblock(fds[0], false);
	connect_all(fds, 2);
	sum_works(fds, 2);
}

/* A pull that sleeps in another thread ends. */
TEST(while_another_pulls)
{
	uint32_t lanes[1000] = {};
	struct call call;
	int fds[2];

	join_pair(fds, "");
	push(fds[0], lanes, sizeof(lanes));
	start_pull(&call, fds[0], lanes, sizeof(lanes));
	EXPECT_EQ(disconnect(fds[0]), 0);
	EXPECT_EQ(end_call(&call), -ENOTCONN);
}

/* So does a push that waits for room. */
TEST(while_another_pushes)
{
	static char bytes[64 * 1024];
	struct call call;
	int fds[2];

	join_pair(fds, "");
	set_nonblock(fds[0], true);
	fill(fds[0], bytes, sizeof(bytes));
	set_nonblock(fds[0], false);
	start_push(&call, fds[0], bytes, sizeof(bytes));
	EXPECT_EQ(disconnect(fds[0]), 0);
	EXPECT_EQ(end_call(&call), -ENOTCONN);
}

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void *sleeping_pull(void *arg)
{
	struct call *c = arg;

	on_cpu(1);
	__atomic_store_n(&c->tid, gettid(), __ATOMIC_RELEASE);
	c->ret = recv(c->fd, c->bytes, c->len, 0);
	if (c->ret < 0)
		c->ret = -errno;
	return NULL;
}

static volatile bool busy;

/* Nobody else gets that CPU */
static void *hog(void *arg)
{
	struct sched_param param = { .sched_priority = 1 };

	(void)arg;
	on_cpu(1);
	ASSERT_EQ(sched_setscheduler(0, SCHED_FIFO, &param), 0);
	busy = true;
	while (busy)
		;
	return NULL;
}

/* A call belongs to the run in which it began, though who made it does not come
 * to hear of the end before the next one has begun.
 */
TEST(a_pull_of_the_run_before)
{
	int32_t lanes[2] = { 1, 2 }, sum = 0, early = 0;
	struct call call = { .bytes = &early, .len = sizeof(early) };
	pthread_t thread;
	int fds[2];

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		tap_fail(__FILE__, __LINE__, "needs two CPUs");
		return;
	}
	on_cpu(0);
	join_pair(fds, "");
	call.fd = fds[0];
	ASSERT_EQ(pthread_create(&call.thread, NULL, sleeping_pull, &call), 0);
	while (!__atomic_load_n(&call.tid, __ATOMIC_ACQUIRE))
		sched_yield();
	wait_asleep(call.tid);
	ASSERT_EQ(pthread_create(&thread, NULL, hog, NULL), 0);
	while (!busy)
		sched_yield();
	EXPECT_EQ(disconnect(fds[0]), 0);
	EXPECT_EQ(disconnect(fds[1]), 0);
	connect_all(fds, 2);
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
	push(fds[0], &lanes[0], 4);
	push(fds[1], &lanes[1], 4);
	pull(fds[1], &sum, 4);
	EXPECT_EQ(sum, 3);
	busy = false;
	pthread_join(thread, NULL);
	EXPECT_EQ(end_call(&call), -ECONNRESET);
	EXPECT_EQ(early, 0);
	sum = 0;
	pull(fds[0], &sum, 4);
	EXPECT_EQ(sum, 3);
}

/* What has failed is forgotten. */
TEST(after_a_failure)
{
	uint32_t lane = 0;
	int fds[2];

	join_pair(fds, "");
	push(fds[0], &lane, 4);
	close(fds[1]);
	wait_state(fds[0], ATP_FAILED);
	EXPECT_EQ(disconnect(fds[0]), 0);
	expect_left(fds[0], ATP_BOUND);
	EXPECT_FALSE(events_of(fds[0], 0) & POLLERR);
}

/* The application at the PS, too */
TEST(at_the_ps)
{
	uint32_t lane = 0;
	int fds[2];

	join_with_server(fds);
	push(fds[0], &lane, 4);
	wait_events(fds[1], POLLIN);
	EXPECT_EQ(disconnect(fds[1]), 0);
	expect_left(fds[1], ATP_BOUND);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), EOWNERDEAD);
	EXPECT_ERRNO(do_connect(fds[1], JOB, ATP_SERVER), EINPROGRESS);
	ASSERT_EQ(do_connect(fds[0], JOB, 0), 0);
}

TAP_MAIN()
