// SPDX-License-Identifier: GPL-2.0
/* A socket that several processes have, or another one than joined. */
#include "host.h"

TEST(fork_shares_the_socket)
{
	int32_t lane = 4, sum;
	int fds[2], status;
	pid_t pid;

	join_pair(fds, "");
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(send(fds[0], &lane, 4, 0) != 4);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	/* the child's end is no LEAVE */
	push(fds[1], &lane, 4);
	pull(fds[0], &sum, 4);
	EXPECT_EQ(sum, 8);
}

/* All results are there, and who might have pulled them ends while a push
 * sleeps for the room: it would sleep for ever.
 */
TEST(last_one_does_not_sleep)
{
	static char bytes[8192], large[60000];
	int fds[2], n, i, status;
	pid_t pid;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	n = fill(fds[0], bytes, sizeof(bytes));
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i < n; i++)
		pull(fds[1], bytes, sizeof(bytes));
	wait_events(fds[0], POLLIN);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		wait_asleep(getppid());
		_exit(0);
	}
	EXPECT_ERRNO(send(fds[0], large, sizeof(large), 0), EAGAIN);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	for (i = 0; i < n; i++)
		pull(fds[0], bytes, sizeof(bytes));
	EXPECT_EQ(send(fds[0], large, sizeof(large), 0), sizeof(large));
}

/* The same at the PS: a pull that waits for what needs the results first */
TEST(last_one_at_the_ps_does_not_sleep)
{
	int32_t lane = 1;
	int fds[2], status;
	pid_t pid;

	join_with_server(fds);
	wait_state(fds[1], ATP_JOINED);
	set_nonblock(fds[1], false);
	push(fds[0], &lane, 4);
	pull(fds[1], &lane, 4);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		wait_asleep(getppid());
		_exit(0);
	}
	EXPECT_ERRNO(recv(fds[1], &lane, 4, 0), EMSGSIZE);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	push(fds[1], &lane, 4);
	pull(fds[0], &lane, 4);
}

/* The parent pushes and closes, the child pulls and goes on. */
TEST(child_goes_on)
{
	int32_t lane = 4, sum;
	int fds[2], p[2], status;
	char go;
	pid_t pid;

	join_pair(fds, "");
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
	ASSERT_EQ(pipe(p), 0);
	push(fds[0], &lane, 4);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(fds[1]);
		if (read(p[0], &go, 1) != 1 ||
		    recv(fds[0], &sum, 4, 0) != 4 || sum != 8 ||
		    send(fds[0], &lane, 4, 0) != 4 ||
		    recv(fds[0], &sum, 4, 0) != 4 || sum != 8)
			_exit(1);
		_exit(0);
	}
	close(fds[0]);
	ASSERT_EQ(write(p[1], "", 1), 1);
	push(fds[1], &lane, 4);
	push(fds[1], &lane, 4);
	pull(fds[1], &sum, 4);
	pull(fds[1], &sum, 4);
	EXPECT_EQ(sum, 8);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	/* with the child the socket is gone */
	push(fds[1], &lane, 4);
	EXPECT_ERRNO(recv(fds[1], &lane, 4, 0), ECONNRESET);
	EXPECT_EQ(info_of(fds[1]).ranks, 1 << 0);
}

static void pass(int via, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int))] = {};
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	ASSERT_EQ(sendmsg(via, &msg, 0), 1);
}

static int take(int via)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room),
	};
	int fd = -1;

	if (recvmsg(via, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

/* Another user, who could not have joined, goes on with the socket. */
TEST(passed_to_another_process)
{
	int32_t lane = 4, sum;
	int fds[2], via[2], status, fd;
	pid_t pid;

	host_net();
	job_add(2, "");
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, via), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(via[1]);
		if (setresuid(12345, 12345, 12345))
			_exit(1);
		fd = take(via[0]);
		if (fd < 0 || recv(fd, &sum, 4, 0) != 4 || sum != 8)
			_exit(2);
		_exit(send(fd, &lane, 4, 0) != 4);
	}
	close(via[0]);
	join_all(fds, 2);
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
	push(fds[0], &lane, 4);
	pass(via[1], fds[0]);
	close(fds[0]);
	push(fds[1], &lane, 4);
	push(fds[1], &lane, 4);
	pull(fds[1], &sum, 4);
	pull(fds[1], &sum, 4);
	EXPECT_EQ(sum, 8);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

/* One on its way that nobody takes is closed with what it is in. */
TEST(passed_to_nobody)
{
	int fds[2], via[2];
	int32_t lane = 4;

	join_pair(fds, "");
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, via), 0);
	pass(via[1], fds[0]);
	close(fds[0]);
	push(fds[1], &lane, 4);
	EXPECT_ERRNO(recv(fds[1], &lane, 4, MSG_DONTWAIT), EAGAIN);
	close(via[0]);
	close(via[1]);
	EXPECT_ERRNO(recv(fds[1], &lane, 4, 0), ECONNRESET);
	EXPECT_EQ(info_of(fds[1]).ranks, 1 << 0);
}

TAP_MAIN()
