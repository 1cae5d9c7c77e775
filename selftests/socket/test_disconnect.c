// SPDX-License-Identifier: GPL-2.0
/* connect() with AF_UNSPEC: leaving a run at once, whoever has the socket. */
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

	host_net();
	job_add(1, "server");
	fds[0] = new_socket(0);
	fds[1] = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(fds[1], JOB, ATP_SERVER), EINPROGRESS);
	ASSERT_EQ(do_connect(fds[0], JOB, 0), 0);
	push(fds[0], &lane, 4);
	wait_events(fds[1], POLLIN);
	EXPECT_EQ(disconnect(fds[1]), 0);
	expect_left(fds[1], ATP_BOUND);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), EOWNERDEAD);
	EXPECT_ERRNO(do_connect(fds[1], JOB, ATP_SERVER), EINPROGRESS);
	ASSERT_EQ(do_connect(fds[0], JOB, 0), 0);
}

TAP_MAIN()
