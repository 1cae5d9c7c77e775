// SPDX-License-Identifier: GPL-2.0
/* Pushing: what sendmsg() takes, and back-pressure. */
#include "host.h"

TEST(sizes)
{
	char *bytes = calloc(1, 8 << 20);
	int fds[2];
	size_t len;

	join_pair(fds, "");
	EXPECT_ERRNO(send(fds[0], bytes, 0, 0), EINVAL);
	for (len = 1; len < 40; len++)
		if (len % 4)
			EXPECT_ERRNO(send(fds[0], bytes, len, 0), EINVAL);
	EXPECT_ERRNO(send(fds[0], bytes, (4 << 20) + 4, 0), EMSGSIZE);
	EXPECT_ERRNO(send(fds[0], bytes, 8 << 20, 0), EMSGSIZE);
	EXPECT_ERRNO(send(fds[0], bytes, 8 << 20, MSG_DONTWAIT), EMSGSIZE);
	/* more than there is memory in the world is refused as well */
	EXPECT_EQ(send(fds[0], bytes, 0x7ffffffc, 0), -1);
	EXPECT_EQ(info_of(fds[0]).end, 0);
	sum_works(fds, 2);
}

TEST(every_small_length)
{
	int32_t lanes[1024], sum[1024];
	int fds[2];
	uint32_t n, k;

	join_pair(fds, "fragment 64");
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
	for (n = 1; n <= 70; n++) {
		for (k = 0; k < n; k++)
			lanes[k] = n * 100 + k;
		push(fds[0], lanes, n * 4);
		push(fds[1], lanes, n * 4);
		pull(fds[0], sum, n * 4);
		for (k = 0; k < n; k++)
			ASSERT_EQ(sum[k], 2 * lanes[k]);
		pull(fds[1], sum, n * 4);
		for (k = 0; k < n; k++)
			ASSERT_EQ(sum[k], 2 * lanes[k]);
	}
}

/* Sequence numbers over many windows; chunks of 1 to 3 fragments */
TEST(many_windows)
{
	int32_t lanes[5], sum[5];
	int fds[2], i, r;

	join_pair(fds, "fragment 8 window 4");
	for (r = 0; r < 2; r++)
		set_dtype(fds[r], ATP_INT32);
	for (i = 0; i < 500; i++) {
		for (r = 0; r < 5; r++)
			lanes[r] = i + r;
		for (r = 0; r < 2; r++)
			push(fds[r], lanes, 4 + 4 * (i % 5));
		for (r = 0; r < 2; r++) {
			pull(fds[r], sum, 4 + 4 * (i % 5));
			ASSERT_EQ(sum[i % 5], 2 * (i + i % 5));
		}
	}
}

/* SO_SNDBUF larger and smaller; the largest chunk that fits does */
TEST(sndbuf_bounds_a_chunk)
{
	socklen_t len = sizeof(int);
	char *bytes;
	int fds[2], bound, lo, hi;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	ASSERT_EQ(getsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bound, &len), 0);
	EXPECT_EQ(bound, 65536);
	bytes = calloc(1, bound + 4);
	EXPECT_ERRNO(send(fds[0], bytes, bound + 4, MSG_DONTWAIT), EMSGSIZE);
	/* it costs a little more than its bytes, but not much */
	lo = bound - 512;
	hi = bound;
	while (send(fds[0], bytes, hi, MSG_DONTWAIT) < 0 && hi > lo) {
		EXPECT_EQ(errno, EMSGSIZE);
		hi -= 4;
	}
	EXPECT_GT(hi, lo);
	EXPECT_ERRNO(send(fds[0], bytes, hi, MSG_DONTWAIT), EAGAIN);
	push(fds[1], bytes, hi);
	pull(fds[0], bytes, hi);
	pull(fds[1], bytes, hi);
	push(fds[0], bytes, hi);
	push(fds[1], bytes, hi);
	pull(fds[0], bytes, hi);
	pull(fds[1], bytes, hi);
}

TEST(flags_refused)
{
	static const int flags[] = {
		MSG_OOB, MSG_MORE, MSG_DONTROUTE, MSG_CONFIRM, MSG_FASTOPEN,
	};
	uint32_t lane = 0;
	int fds[2];
	size_t i;

	join_pair(fds, "");
	for (i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		EXPECT_ERRNO(send(fds[0], &lane, 4, flags[i]), EOPNOTSUPP);
	EXPECT_EQ(info_of(fds[0]).end, 0);
	EXPECT_EQ(send(fds[0], &lane, 4, MSG_EOR | MSG_NOSIGNAL), 4);
}

/* A pipe knows no chunks: some would be pieces of what was written to it. */
TEST(splice_is_refused)
{
	int fds[2], pipes[2];
	int32_t lane = 1;

	join_pair(fds, "");
	ASSERT_EQ(pipe(pipes), 0);
	ASSERT_EQ(write(pipes[1], &lane, 4), 4);
	EXPECT_ERRNO(splice(pipes[0], NULL, fds[0], NULL, 4, 0), EOPNOTSUPP);
	EXPECT_EQ(info_of(fds[0]).end, 0);
	/* it is still there */
	EXPECT_EQ(read(pipes[0], &lane, 4), 4);
	sum_works(fds, 2);
}

/* The kernel marks all but the last. */
TEST(several_messages_at_once)
{
	int32_t lanes[3][2] = { { 1, 2 }, { 3, 4 }, { 5, 6 } }, sum[2];
	struct mmsghdr messages[3] = {};
	struct iovec iov[3];
	int fds[2], k, i;

	join_pair(fds, "");
	for (i = 0; i < 2; i++)
		set_dtype(fds[i], ATP_INT32);
	for (k = 0; k < 3; k++) {
		iov[k] = (struct iovec){ lanes[k], sizeof(lanes[k]) };
		messages[k].msg_hdr.msg_iov = &iov[k];
		messages[k].msg_hdr.msg_iovlen = 1;
	}
	for (i = 0; i < 2; i++)
		EXPECT_EQ(sendmmsg(fds[i], messages, 3, 0), 3);
	for (k = 0; k < 3; k++) {
		EXPECT_EQ(messages[k].msg_len, sizeof(lanes[k]));
		for (i = 0; i < 2; i++) {
			pull(fds[i], sum, sizeof(sum));
			EXPECT_EQ(sum[0], 2 * lanes[k][0]);
			EXPECT_EQ(sum[1], 2 * lanes[k][1]);
		}
	}
}

TEST(address_refused)
{
	struct sockaddr_atp addr = {
		.satp_family = AF_ATP,
		.satp_job = JOB,
	};
	uint32_t lane = 0;
	int fds[2];

	join_pair(fds, "");
	EXPECT_ERRNO(sendto(fds[0], &lane, 4, 0, (struct sockaddr *)&addr,
			    sizeof(addr)), EISCONN);
	EXPECT_EQ(info_of(fds[0]).end, 0);
}

/* None means anything here, known to the socket layer or not: a program that
 * asks for something must not believe that it got it.
 */
TEST(control_messages_refused)
{
	static const struct {
		int level, type;
	} unknown[] = {
		{ SOL_SOCKET, SCM_RIGHTS }, { SOL_SOCKET, SO_MARK },
		{ SOL_SOCKET, 9999 }, { SOL_ATP, ATP_DTYPE }, { SOL_ATP, 9999 },
		{ 9999, 1 },
	};
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct cmsghdr *c = (struct cmsghdr *)control;
	uint32_t lane = 0;
	struct iovec iov = { &lane, sizeof(lane) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fds[2];
	size_t i;

	join_pair(fds, "");
	c->cmsg_len = CMSG_LEN(sizeof(int));
	for (i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		c->cmsg_level = unknown[i].level;
		c->cmsg_type = unknown[i].type;
		EXPECT_ERRNO(sendmsg(fds[0], &msg, 0), EINVAL);
	}
	EXPECT_EQ(info_of(fds[0]).end, 0);
	msg.msg_controllen = 0;
	EXPECT_EQ(sendmsg(fds[0], &msg, 0), 4);
}

TEST(bad_source)
{
	int fds[2];

	join_pair(fds, "");
	EXPECT_ERRNO(send(fds[0], (void *)8, 32, 0), EFAULT);
	EXPECT_EQ(info_of(fds[0]).end, 0);
	sum_works(fds, 2);
}

/* What is pushed is a copy. */
TEST(buffer_may_be_used_again)
{
	int32_t lanes[20000], sum[20000];
	int fds[2], i, k;

	join_pair(fds, "");
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		for (k = 0; k < 20000; k++)
			lanes[k] = k;
		push(fds[i], lanes, sizeof(lanes));
		memset(lanes, 0xff, sizeof(lanes));
	}
	for (i = 0; i < 2; i++) {
		pull(fds[i], sum, sizeof(sum));
		for (k = 0; k < 20000; k++)
			ASSERT_EQ(sum[k], 2 * k);
	}
}

TEST(back_pressure)
{
	char bytes[8192] = {};
	int fds[2], n, i;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	set_sndbuf(fds[1], 1 << 20);
	n = fill(fds[0], bytes, sizeof(bytes));
	EXPECT_EQ(n, 7);	/* of 64 KiB, each a little more than 8 */
	EXPECT_FALSE(events_of(fds[0], 0) & POLLOUT);
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	/* results that nobody pulls are no room */
	wait_events(fds[0], POLLIN);
	for (i = 0; i < n; i++)
		pull(fds[1], bytes, sizeof(bytes));
	EXPECT_ERRNO(send(fds[0], bytes, sizeof(bytes), MSG_DONTWAIT), EAGAIN);
	EXPECT_FALSE(events_of(fds[0], 0) & POLLOUT);
	pull(fds[0], bytes, sizeof(bytes));
	EXPECT_TRUE(events_of(fds[0], 0) & POLLOUT);
	EXPECT_EQ(fill(fds[0], bytes, sizeof(bytes)), 1);
}

/* Writable means room for what was refused, not for any byte. */
TEST(writable_for_what_was_refused)
{
	char bytes[32768] = {};
	int fds[2], n, i;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	set_sndbuf(fds[1], 1 << 20);
	n = fill(fds[0], bytes, 8192);
	for (i = 0; i < n; i++)
		push(fds[1], bytes, 8192);
	for (i = 0; i < n; i++)
		pull(fds[1], bytes, 8192);
	EXPECT_ERRNO(send(fds[0], bytes, 32768, MSG_DONTWAIT), EAGAIN);
	for (i = 0; i < n; i++) {
		pull(fds[0], bytes, 8192);
		if (events_of(fds[0], 0) & POLLOUT)
			break;
		EXPECT_ERRNO(send(fds[0], bytes, 32768, MSG_DONTWAIT), EAGAIN);
	}
	EXPECT_GE(i, 3);
	EXPECT_LT(i, n);
	EXPECT_EQ(send(fds[0], bytes, 32768, MSG_DONTWAIT), 32768);
	/* that wish is granted; a smaller one counts for itself */
	EXPECT_TRUE(events_of(fds[0], 0) & POLLOUT);
}

TEST(pull_wakes_push)
{
	char bytes[8192] = {}, other[8192] = {};
	struct call c;
	int fds[2], n, i;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	n = fill(fds[0], bytes, sizeof(bytes));
	start_push(&c, fds[0], other, sizeof(other));
	for (i = 0; i <= n; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i <= n; i++)
		pull(fds[0], bytes, sizeof(bytes));
	EXPECT_EQ(end_call(&c), sizeof(other));
	for (i = 0; i <= n; i++)
		pull(fds[1], bytes, sizeof(bytes));
	sum_works(fds, 2);
}

/* Only this process has the socket and it has one thread, so nobody could pull
 * while it sleeps: it is told instead.
 */
TEST(alone_with_results)
{
	char bytes[8192] = {};
	int fds[2], n, i;

	join_pair(fds, "");
	wait_single_thread();
	set_sndbuf(fds[0], 32768);
	n = fill(fds[0], bytes, sizeof(bytes));
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i < n; i++)
		pull(fds[1], bytes, sizeof(bytes));
	EXPECT_ERRNO(send(fds[0], bytes, sizeof(bytes), 0), EAGAIN);
	EXPECT_FALSE(events_of(fds[0], 0) & POLLOUT);
	pull(fds[0], bytes, sizeof(bytes));
	push(fds[0], bytes, sizeof(bytes));
	for (i = 1; i < n; i++)
		pull(fds[0], bytes, sizeof(bytes));
	push(fds[1], bytes, sizeof(bytes));
	pull(fds[0], bytes, sizeof(bytes));
	pull(fds[1], bytes, sizeof(bytes));
	sum_works(fds, 2);
}

/* It may sleep for peers, and is told when their results are there. */
TEST(alone_asleep)
{
	char bytes[8192] = {};
	int fds[2], status, n, i;
	pid_t pid;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		for (n = 0; send(fds[0], bytes, sizeof(bytes), 0) > 0;)
			n++;
		_exit(errno == EAGAIN ? n : 255);
	}
	close(fds[0]);
	wait_asleep(pid);
	n = 7;
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), n);
}

/* With a second descriptor somebody might pull. */
TEST(not_alone_sleeps)
{
	char bytes[8192] = {};
	int fds[2], status, other, n, i;
	pid_t pid;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		for (i = 0; i < 8; i++)
			if (send(fds[0], bytes, sizeof(bytes), 0) < 0)
				_exit(255);
		_exit(i);
	}
	other = fds[0];
	n = 7;
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i < n; i++)
		pull(fds[1], bytes, sizeof(bytes));
	wait_asleep(pid);
	pull(other, bytes, sizeof(bytes));
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), 8);
}

/* A rank of one thread with blocking calls; many times the send buffer */
static int push_then_pull(int fd)
{
	enum { CHUNKS = 100, LANES = 2000 };
	int32_t lanes[LANES];
	int pushed = 0, pulled = 0, k;

	while (pulled < CHUNKS) {
		if (pushed < CHUNKS) {
			for (k = 0; k < LANES; k++)
				lanes[k] = pushed * LANES + k;
			if (send(fd, lanes, sizeof(lanes), 0) > 0) {
				pushed++;
				continue;
			}
			if (errno != EAGAIN)
				return errno;
		}
		if (recv(fd, lanes, sizeof(lanes), 0) != sizeof(lanes))
			return 253;
		for (k = 0; k < LANES; k++)
			if (lanes[k] != 2 * (pulled * LANES + k))
				return 254;
		pulled++;
	}
	return 0;
}

TEST(everything_before_the_first_pull)
{
	int fds[2], status, i;
	pid_t pid[2];

	join_pair(fds, "");
	fflush(NULL);
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		set_sndbuf(fds[i], 32768 << i);
	}
	for (i = 0; i < 2; i++) {
		pid[i] = fork();
		if (!pid[i]) {
			close(fds[!i]);
			_exit(push_then_pull(fds[i]));
		}
		close(fds[i]);
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(waitpid(pid[i], &status, 0), pid[i]);
		EXPECT_EQ(status, 0);
	}
}

/* Who sleeps for room that a smaller buffer can never have */
TEST(sndbuf_lowered)
{
	char bytes[60000] = {};
	struct call c;
	int fds[2];

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	push(fds[0], bytes, sizeof(bytes));
	start_push(&c, fds[0], bytes, sizeof(bytes));
	set_sndbuf(fds[0], 16384);
	EXPECT_EQ(end_call(&c), -EMSGSIZE);
	/* what can never fit is refused without waiting */
	EXPECT_TRUE(events_of(fds[0], 0) & POLLOUT);
}

TEST(sndbuf_raised)
{
	char bytes[60000] = {};
	struct call c;
	int fds[2];

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	push(fds[0], bytes, sizeof(bytes));
	start_push(&c, fds[0], bytes, sizeof(bytes));
	set_sndbuf(fds[0], 65536);
	EXPECT_EQ(end_call(&c), sizeof(bytes));
}

/* A wish for much does not keep one for little waiting. */
TEST(large_and_small)
{
	static char large[60000], bytes[8192];
	struct call c[2];
	int fds[2], n, i;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	n = fill(fds[0], bytes, sizeof(bytes));
	start_push(&c[0], fds[0], bytes, sizeof(bytes));
	start_push(&c[1], fds[0], large, sizeof(large));
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i < n; i++)
		pull(fds[1], bytes, sizeof(bytes));
	pull(fds[0], bytes, sizeof(bytes));
	EXPECT_EQ(end_call(&c[0]), sizeof(bytes));
	push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i < n; i++)
		pull(fds[0], bytes, sizeof(bytes));
	EXPECT_EQ(end_call(&c[1]), sizeof(large));
}

TAP_MAIN()
