// SPDX-License-Identifier: GPL-2.0
/* What poll() and epoll say, by level and by edge. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include "host.h"

static int watch(int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };
	int ep = epoll_create1(0);

	ASSERT_GE(ep, 0);
	ASSERT_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev), 0);
	return ep;
}

/* What epoll says; zero for nothing in time */
static uint32_t seen(int ep, int timeout_ms)
{
	struct epoll_event ev;
	int n = epoll_wait(ep, &ev, 1, timeout_ms);

	ASSERT_GE(n, 0);
	return n ? ev.events : 0;
}

/* Two ranks that push integers */
static void join_two(int *fds)
{
	join_pair(fds, "");
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
}

static void one_chunk(int *fds, int k)
{
	int32_t lane = k;
	int i;

	for (i = 0; i < 2; i++)
		push(fds[i], &lane, 4);
}

/* Its sum */
static void pull_one(int fd, int k)
{
	int32_t lane;

	pull(fd, &lane, 4);
	EXPECT_EQ(lane, 2 * k);
}

TEST(level)
{
	int fds[2], ep, i;

	join_two(fds);
	ep = watch(fds[0], EPOLLIN | EPOLLRDHUP);
	EXPECT_EQ(seen(ep, 0), 0);
	for (i = 0; i < 3; i++)
		one_chunk(fds, i);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN);
		EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN);
		pull_one(fds[0], i);
	}
	EXPECT_EQ(seen(ep, 0), 0);
}

TEST(edge_of_results)
{
	int fds[2], ep, i;
	int32_t lane = -1;

	join_two(fds);
	ep = watch(fds[0], EPOLLIN | EPOLLET);
	EXPECT_EQ(seen(ep, 0), 0);
	for (i = 0; i < 50; i++) {
		one_chunk(fds, i);
		EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN);
		/* read until it is empty, as one has to */
		do {
			pull_one(fds[1], i);
		} while (recv(fds[0], &lane, 4, MSG_DONTWAIT) == 4 &&
			 events_of(fds[1], 0) & POLLIN);
		EXPECT_EQ(lane, 2 * i);
		EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_DONTWAIT), EAGAIN);
	}
}

/* Not one edge is missed by who pulls all that is there and waits again. */
TEST(edge_misses_nothing)
{
	int fds[2], ep, pushed = 0, pulled = 0;
	int32_t lane;

	join_two(fds);
	set_nonblock(fds[0], true);
	ep = watch(fds[0], EPOLLIN | EPOLLET);
	while (pulled < 500) {
		while (pushed < 500 && pushed - pulled < 7)
			one_chunk(fds, pushed++);
		ASSERT_TRUE(seen(ep, LIMIT_MS) & EPOLLIN);
		while (recv(fds[0], &lane, 4, 0) == 4) {
			EXPECT_EQ(lane, 2 * pulled);
			pull_one(fds[1], pulled++);
		}
		EXPECT_EQ(errno, EAGAIN);
	}
}

/* Two ranks that push integers, and the application at the PS */
static void join_served(int *fds)
{
	host_net();
	job_add(2, "server");
	fds[2] = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(fds[2], JOB, ATP_SERVER), EINPROGRESS);
	join_all(fds, 2);
	wait_events(fds[2], POLLOUT);
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
}

/* A sum is one edge for the application at the PS, whoever pushed last. */
TEST(edge_of_sums)
{
	int fds[3], ep, i, k;
	int32_t lane;

	join_served(fds);
	ep = watch(fds[2], EPOLLIN | EPOLLET);
	EXPECT_EQ(seen(ep, 0), 0);
	for (i = 0; i < 50; i++) {
		lane = i;
		push(fds[i % 2], &lane, 4);
		EXPECT_EQ(seen(ep, 0), 0);
		push(fds[1 - i % 2], &lane, 4);
		EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN);
		EXPECT_EQ(seen(ep, 0), 0);
		pull_one(fds[2], i);
		EXPECT_ERRNO(recv(fds[2], &lane, 4, 0), EAGAIN);
		lane = 100 - i;
		push(fds[2], &lane, 4);
		for (k = 0; k < 2; k++) {
			pull(fds[k], &lane, 4);
			EXPECT_EQ(lane, 100 - i);
		}
	}
}

/* Who waits for an edge would not learn that it is still there. */
static void fault_is_an_edge(int *fds, int fd)
{
	int ep = watch(fd, EPOLLIN | EPOLLET);

	one_chunk(fds, 21);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN);
	EXPECT_EQ(seen(ep, 0), 0);
	EXPECT_ERRNO(recv(fd, (void *)8, 4, MSG_DONTWAIT), EFAULT);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN);
	EXPECT_EQ(seen(ep, 0), 0);
	pull_one(fd, 21);
}

TEST(edge_of_a_fault)
{
	int fds[2];

	join_two(fds);
	fault_is_an_edge(fds, fds[0]);
}

TEST(edge_of_a_fault_at_the_ps)
{
	int fds[3];

	join_served(fds);
	fault_is_an_edge(fds, fds[2]);
}

/* Each result is an edge, even while one is there that nobody has pulled. */
TEST(edge_of_every_result)
{
	int fds[2], ep, i;

	join_two(fds);
	ep = watch(fds[0], EPOLLIN | EPOLLET);
	for (i = 0; i < 5; i++) {
		one_chunk(fds, i);
		EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN);
		EXPECT_EQ(seen(ep, 0), 0);
	}
	for (i = 0; i < 5; i++)
		pull_one(fds[0], i);
}

/* No edge of room before what was refused would fit. */
TEST(edge_of_enough_room)
{
	static char large[60000], bytes[8192];
	int fds[2], ep, n, i;

	host_net();
	job_add(2, "");
	join_all(fds, 2);
	set_sndbuf(fds[0], 32768);
	ep = watch(fds[0], EPOLLOUT | EPOLLET);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
	n = fill(fds[0], bytes, sizeof(bytes));
	EXPECT_ERRNO(send(fds[0], large, sizeof(large), MSG_DONTWAIT), EAGAIN);
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i < n; i++) {
		EXPECT_EQ(seen(ep, 0), 0);
		pull(fds[1], bytes, sizeof(bytes));
		pull(fds[0], bytes, sizeof(bytes));
	}
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
	EXPECT_EQ(send(fds[0], large, sizeof(large), MSG_DONTWAIT),
		  sizeof(large));
}

/* Does a signal come that says so?  Others before it are taken as well. */
static bool signalled(const sigset_t *set, int code)
{
	struct timespec limit = { .tv_sec = LIMIT_MS / 1000 };
	siginfo_t info;

	while (sigtimedwait(set, &info, &limit) > 0) {
		if (info.si_code == code)
			return true;
	}
	return false;
}

static void ask_for_signals(int fd, sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGRTMIN);
	ASSERT_EQ(sigprocmask(SIG_BLOCK, set, NULL), 0);
	ASSERT_EQ(fcntl(fd, F_SETOWN, getpid()), 0);
	ASSERT_EQ(fcntl(fd, F_SETSIG, SIGRTMIN), 0);
	ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC), 0);
}

/* Of having joined; of there being no result any more, in two ways */
TEST(signals_of_a_run)
{
	sigset_t set;
	int fds[2];

	host_net();
	job_add(2, "");
	fds[0] = new_socket(SOCK_NONBLOCK);
	ask_for_signals(fds[0], &set);
	EXPECT_ERRNO(do_join(fds[0], JOB, 0), EINPROGRESS);
	fds[1] = new_socket(0);
	ASSERT_EQ(do_join(fds[1], JOB, 1), 0);
	EXPECT_TRUE(signalled(&set, POLL_OUT));
	close(fds[1]);
	/* alone */
	EXPECT_TRUE(signalled(&set, POLL_IN));
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	EXPECT_TRUE(signalled(&set, POLL_IN));
	EXPECT_EQ(recv(fds[0], fds, 4, 0), 0);
}

TEST(signals_at_the_ps)
{
	sigset_t set;
	int fds[2];

	host_net();
	job_add(1, "server");
	fds[1] = new_socket(SOCK_NONBLOCK);
	ask_for_signals(fds[1], &set);
	EXPECT_ERRNO(do_connect(fds[1], JOB, ATP_SERVER), EINPROGRESS);
	fds[0] = new_socket(0);
	ASSERT_EQ(do_connect(fds[0], JOB, 0), 0);
	EXPECT_TRUE(signalled(&set, POLL_OUT));
	close(fds[0]);
	EXPECT_TRUE(signalled(&set, POLL_HUP));
	EXPECT_EQ(recv(fds[1], fds, 4, 0), 0);
}

/* Nobody asks again in between: there is one signal, when it is enough. */
TEST(signal_of_enough_room)
{
	static char large[60000], bytes[8192];
	sigset_t set;
	int fds[2], n, i;

	host_net();
	job_add(2, "");
	join_all(fds, 2);
	set_sndbuf(fds[0], 32768);
	n = fill(fds[0], bytes, sizeof(bytes));
	ask_for_signals(fds[0], &set);
	EXPECT_ERRNO(send(fds[0], large, sizeof(large), MSG_DONTWAIT), EAGAIN);
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i < n; i++) {
		pull(fds[1], bytes, sizeof(bytes));
		pull(fds[0], bytes, sizeof(bytes));
	}
	EXPECT_TRUE(signalled(&set, POLL_OUT));
	EXPECT_EQ(send(fds[0], large, sizeof(large), MSG_DONTWAIT),
		  sizeof(large));
}

/* Another send buffer is more room, or less to ask for. */
TEST(edge_of_another_sndbuf)
{
	static char large[60000];
	int fds[2], ep;

	host_net();
	job_add(2, "");
	join_all(fds, 2);
	set_sndbuf(fds[0], 32768);
	ep = watch(fds[0], EPOLLOUT | EPOLLET);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
	push(fds[0], large, sizeof(large));
	EXPECT_ERRNO(send(fds[0], large, sizeof(large), MSG_DONTWAIT), EAGAIN);
	EXPECT_EQ(seen(ep, 0), 0);
	set_sndbuf(fds[0], 65536);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
	EXPECT_EQ(send(fds[0], large, sizeof(large), MSG_DONTWAIT),
		  sizeof(large));
}

/* With one result, of which there was an edge, and nothing else in flight */
static int watch_the_last(int *fds)
{
	int ep;

	join_pair(fds, "");
	ep = watch(fds[0], EPOLLIN | EPOLLRDHUP | EPOLLET);
	one_chunk(fds, 1);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN);
	return ep;
}

TEST(edge_of_the_end)
{
	int fds[2], ep;
	int32_t lane;

	ep = watch_the_last(fds);
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	seen(ep, 0);
	/* the last result was pulled: that is the end */
	pull(fds[0], &lane, 4);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN | EPOLLRDHUP | EPOLLHUP);
	EXPECT_EQ(recv(fds[0], &lane, 4, 0), 0);
}

/* A rank has left: a pull does not wait, as no result comes any more. */
TEST(edge_of_leaving)
{
	int fds[2], ep;
	int32_t lane;

	ep = watch_the_last(fds);
	pull(fds[0], &lane, 4);
	close(fds[1]);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLIN | EPOLLRDHUP);
	EXPECT_EQ(seen(ep, 0), 0);
	EXPECT_EQ(events_of(fds[0], 0), POLLIN | POLLOUT | POLLRDHUP);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_DONTWAIT), ECONNRESET);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINED);
	/* as soon as something is in flight it is waited for */
	push(fds[0], &lane, 4);
	wait_events(fds[0], POLLERR);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_DONTWAIT), ECONNRESET);
}

TEST(edge_of_room)
{
	char bytes[8192] = {};
	int fds[2], ep, n, i, k;

	host_net();
	job_add(2, "");
	join_all(fds, 2);
	set_sndbuf(fds[0], 32768);
	set_sndbuf(fds[1], 1 << 20);
	ep = watch(fds[0], EPOLLOUT | EPOLLET);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
	for (k = 0; k < 10; k++) {
		for (n = 0; send(fds[0], bytes, 8192, MSG_DONTWAIT) == 8192;)
			n++;
		EXPECT_EQ(errno, EAGAIN);
		EXPECT_FALSE(seen(ep, 0) & EPOLLOUT);
		for (i = 0; i < n; i++)
			push(fds[1], bytes, 8192);
		for (i = 0; i < n; i++) {
			pull(fds[1], bytes, 8192);
			pull(fds[0], bytes, 8192);
		}
		EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
	}
}

/* All results are there, so nothing that comes says that there is room, and
 * poll was last asked when there was some: for less than is refused then.  An
 * edge of results would bring both, so that only who waits for room shows it.
 */
TEST(edge_of_room_when_idle)
{
	char bytes[8192] = {};
	int fds[2], ep, i;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	ep = watch(fds[0], EPOLLOUT | EPOLLET);
	EXPECT_EQ(seen(ep, 0), EPOLLOUT);
	/* of 64 KiB, each a little more than 8 */
	for (i = 0; i < 7; i++) {
		push(fds[0], bytes, sizeof(bytes));
		push(fds[1], bytes, sizeof(bytes));
	}
	for (i = 0; i < 7; i++)
		pull(fds[1], bytes, sizeof(bytes));
	while (info_of(fds[0]).una != info_of(fds[0]).end)
		poll(NULL, 0, 1);
	EXPECT_EQ(seen(ep, 0), 0);
	EXPECT_ERRNO(send(fds[0], bytes, sizeof(bytes), MSG_DONTWAIT), EAGAIN);
	for (i = 0; i < 7; i++)
		pull(fds[0], bytes, sizeof(bytes));
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
}

/* The application at the PS has pushed before it pulled. */
TEST(edge_of_being_asked)
{
	int fds[2], ep;
	int32_t lane = 1;

	join_with_server(fds);
	ep = watch(fds[1], EPOLLOUT | EPOLLET);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
	set_nonblock(fds[1], false);
	EXPECT_ERRNO(send(fds[1], &lane, 4, MSG_DONTWAIT), EAGAIN);
	push(fds[0], &lane, 4);
	pull(fds[1], &lane, 4);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
	push(fds[1], &lane, 4);
	pull(fds[0], &lane, 4);
}

TEST(edge_of_joining)
{
	int fds[2], ep;

	host_net();
	job_add(2, "");
	fds[0] = new_socket(SOCK_NONBLOCK);
	fds[1] = new_socket(0);
	ep = watch(fds[0], EPOLLIN | EPOLLOUT | EPOLLET);
	seen(ep, 0);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINPROGRESS);
	EXPECT_EQ(events_of(fds[0], 0), 0);
	ASSERT_EQ(do_connect(fds[1], JOB, 1), 0);
	EXPECT_EQ(seen(ep, LIMIT_MS), EPOLLOUT);
}

TEST(end_of_a_run)
{
	uint32_t all = EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLRDHUP;
	int fds[2], ep, et;

	host_net();
	job_add(2, "");
	join_all(fds, 2);
	ep = watch(fds[0], EPOLLIN | EPOLLRDHUP | EPOLLOUT);
	et = watch(fds[0], EPOLLIN | EPOLLET);
	ASSERT_EQ(atp("job del %u", JOB), 0);
	EXPECT_EQ(seen(ep, LIMIT_MS), all);
	EXPECT_EQ(seen(et, LIMIT_MS), EPOLLIN | EPOLLERR | EPOLLHUP);
	EXPECT_EQ(error_of(fds[0]), EIDRM);
	/* there is more to be read about it, see test_errqueue.c */
	EXPECT_EQ(seen(ep, 0), all);
	EXPECT_EQ(recv(fds[0], NULL, 0, MSG_ERRQUEUE), 0);
	/* told once as an error, the end stays the end */
	EXPECT_EQ(seen(ep, 0), all & ~EPOLLERR);
}

TEST(select_too)
{
	struct timeval tv = { .tv_sec = LIMIT_MS / 1000 };
	fd_set in, out;
	int fds[2];

	host_net();
	job_add(2, "");
	join_all(fds, 2);
	one_chunk(fds, 1);
	wait_events(fds[0], POLLIN);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fds[0], &in);
	FD_SET(fds[0], &out);
	EXPECT_EQ(select(fds[0] + 1, &in, &out, NULL, &tv), 2);
	EXPECT_TRUE(FD_ISSET(fds[0], &in));
	EXPECT_TRUE(FD_ISSET(fds[0], &out));
}

TEST(hundred_sockets)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = epoll_create1(0), fds[50][2], seen_of[50] = {};
	int i, left = 50;

	host_net();
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(atp("job add %u ps 127.0.0.1 worker 127.0.0.2 worker 127.0.0.2 window 4",
			      100 + i), 0);
		fds[i][0] = new_socket(SOCK_NONBLOCK);
		fds[i][1] = new_socket(0);
		EXPECT_ERRNO(do_connect(fds[i][0], 100 + i, 0), EINPROGRESS);
		ASSERT_EQ(do_connect(fds[i][1], 100 + i, 1), 0);
		wait_events(fds[i][0], POLLOUT);
		set_dtype(fds[i][0], ATP_INT32);
		set_dtype(fds[i][1], ATP_INT32);
		ev.data.u32 = i;
		ASSERT_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fds[i][0], &ev), 0);
	}
	for (i = 0; i < 50; i++)
		one_chunk(fds[i], i);
	while (left) {
		ASSERT_EQ(epoll_wait(ep, &ev, 1, LIMIT_MS), 1);
		pull_one(fds[ev.data.u32][0], ev.data.u32);
		EXPECT_EQ(seen_of[ev.data.u32]++, 0);
		left--;
	}
}

TAP_MAIN()
