// SPDX-License-Identifier: GPL-2.0
/* Pulling: what recvmsg() gives, and who gets what. */
#include <sys/mman.h>
#include <sys/uio.h>
#include "host.h"
#include "slow.h"

TEST(scattered)
{
	char in[64], out[64];
	struct iovec iov[7];
	struct msghdr msg = { .msg_iov = iov };
	int32_t lane;
	int fds[2], i, at;

	join_pair(fds, "");
	for (i = 0; i < 16; i++) {
		lane = i * 0x01010101;
		memcpy(in + 4 * i, &lane, 4);
	}
	/* pieces of 1, 2, ... bytes */
	for (i = 0, at = 0; i < 6; at += i + 1, i++)
		iov[i] = (struct iovec){ in + at, i + 1 };
	iov[6] = (struct iovec){ in + at, 64 - at };
	msg.msg_iovlen = 7;
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		ASSERT_EQ(sendmsg(fds[i], &msg, 0), 64);
	}
	for (i = 0, at = 0; i < 6; at += 6 - i, i++)
		iov[i] = (struct iovec){ out + at, 6 - i };
	iov[6] = (struct iovec){ out + at, 64 - at };
	memset(out, 0xa5, sizeof(out));
	ASSERT_EQ(recvmsg(fds[0], &msg, 0), 64);
	EXPECT_FALSE(msg.msg_flags & MSG_TRUNC);
	EXPECT_TRUE(msg.msg_flags & MSG_EOR);
	for (i = 0; i < 16; i++) {
		memcpy(&lane, out + 4 * i, 4);
		EXPECT_EQ(lane, 2 * i * 0x01010101);
	}
	EXPECT_EQ(msg.msg_namelen, 0);
}

TEST(read_and_write)
{
	int32_t lane = 21;
	int fds[2];

	join_pair(fds, "");
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
	ASSERT_EQ(write(fds[0], &lane, 4), 4);
	ASSERT_EQ(write(fds[1], &lane, 4), 4);
	ASSERT_EQ(read(fds[0], &lane, 4), 4);
	EXPECT_EQ(lane, 42);
}

/* Chunks of many lengths in flight come back in order. */
TEST(in_order)
{
	static const uint32_t lengths[] = { 1, 5000, 2, 350, 351, 349, 1, 1 };
	int32_t *lanes = malloc(5000 * 4);
	int fds[2], r;
	uint32_t i, k, n;

	join_pair(fds, "");
	for (r = 0; r < 2; r++)
		set_dtype(fds[r], ATP_INT32);
	for (i = 0; i < 8; i++) {
		n = lengths[i];
		for (r = 0; r < 2; r++) {
			for (k = 0; k < n; k++)
				lanes[k] = i * 10000 + k + r;
			push(fds[r], lanes, n * 4);
		}
	}
	for (i = 0; i < 8; i++) {
		n = lengths[i];
		for (r = 0; r < 2; r++) {
			/* one recv() never gives more than one chunk */
			ASSERT_EQ(recv(fds[r], lanes, 5000 * 4, 0), n * 4);
			for (k = 0; k < n; k++)
				ASSERT_EQ(lanes[k], 2 * (i * 10000 + k) + 1);
		}
	}
	EXPECT_ERRNO(recv(fds[0], lanes, 4, MSG_DONTWAIT), EAGAIN);
	EXPECT_EQ(info_of(fds[0]).chunks, 8);
}

TEST(peek)
{
	int32_t lanes[3] = { 1, 2, 3 }, sum[3];
	int fds[2], i;

	join_pair(fds, "");
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], lanes, 12);
	}
	for (i = 0; i < 3; i++) {
		memset(sum, 0, sizeof(sum));
		ASSERT_EQ(recv(fds[0], sum, 12, MSG_PEEK), 12);
		EXPECT_EQ(sum[2], 6);
	}
	ASSERT_EQ(recv(fds[0], sum, 4, MSG_PEEK), 4);
	ASSERT_EQ(recv(fds[0], sum, 4, MSG_PEEK | MSG_TRUNC), 12);
	EXPECT_EQ(events_of(fds[0], 0), POLLIN | POLLOUT);
	pull(fds[0], sum, 12);
	EXPECT_EQ(sum[0], 2);
	EXPECT_ERRNO(recv(fds[0], sum, 12, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
}

TEST(truncation)
{
	int32_t lanes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, sum[8];
	struct iovec iov = { sum, 8 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[2], i;

	join_pair(fds, "");
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], lanes, 32);
		push(fds[i], lanes, 32);
		push(fds[i], lanes + 4, 16);
	}
	memset(sum, 0, sizeof(sum));
	ASSERT_EQ(recvmsg(fds[0], &msg, 0), 8);
	EXPECT_TRUE(msg.msg_flags & MSG_TRUNC);
	EXPECT_EQ(sum[1], 4);
	EXPECT_EQ(sum[2], 0);
	/* the true length, if asked for; no room at all is not too little */
	iov.iov_len = 0;
	ASSERT_EQ(recvmsg(fds[0], &msg, MSG_TRUNC), 32);
	EXPECT_TRUE(msg.msg_flags & MSG_TRUNC);
	/* the rest is lost, the next is the next */
	iov.iov_len = sizeof(sum);
	ASSERT_EQ(recvmsg(fds[0], &msg, 0), 16);
	EXPECT_FALSE(msg.msg_flags & MSG_TRUNC);
	EXPECT_EQ(sum[0], 10);
}

TEST(result_wakes_pull)
{
	struct call c[3];
	int32_t lanes[3][4];
	int fds[2], i, k;

	join_pair(fds, "");
	for (i = 0; i < 3; i++)
		start_pull(&c[i], fds[0], lanes[i], 16);
	/* each thread gets a chunk of its own */
	for (i = 0; i < 2; i++)
		set_dtype(fds[i], ATP_INT32);
	for (i = 0; i < 3; i++) {
		int32_t out[4] = { i, i, i, i };

		for (k = 0; k < 2; k++)
			push(fds[k], out, 16);
	}
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(end_call(&c[i]), 16);
		EXPECT_EQ(lanes[i][0], lanes[i][3]);
	}
	EXPECT_EQ(lanes[0][0] + lanes[1][0] + lanes[2][0], 6);
	EXPECT_NE(lanes[0][0], lanes[1][0]);
	EXPECT_NE(lanes[1][0], lanes[2][0]);
}

/* Who gets no byte has not pulled. */
TEST(fault_keeps_the_chunk)
{
	int32_t lanes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, sum[8];
	long page = sysconf(_SC_PAGESIZE);
	char *edge;
	int fds[2], i;

	join_pair(fds, "");
	edge = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(edge != MAP_FAILED);
	ASSERT_EQ(munmap(edge + page, page), 0);
	edge += page - 16;
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], lanes, 32);
		push(fds[i], lanes, 28);
	}
	wait_events(fds[0], POLLIN);
	EXPECT_ERRNO(recv(fds[0], (void *)8, 32, MSG_PEEK), EFAULT);
	EXPECT_ERRNO(recv(fds[0], (void *)8, 32, 0), EFAULT);
	EXPECT_ERRNO(recv(fds[0], edge, 32, 0), EFAULT);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLIN);
	/* as much as there is room for is no fault */
	EXPECT_EQ(recv(fds[0], edge, 16, MSG_PEEK), 16);
	for (i = 0; i < 2; i++) {
		pull(fds[i], sum, 32);
		EXPECT_EQ(sum[7], 16);
		pull(fds[i], sum, 28);
		EXPECT_EQ(sum[6], 14);
	}
	sum_works(fds, 2);
}

/* What two threads could not get comes again in its order. */
TEST(faults_keep_the_order)
{
	int32_t lanes[2] = { 1, 2 }, sum[2];
	struct slow slow;
	struct call c;
	int fds[2], i;

	join_pair(fds, "");
	slow_page(&slow);
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], lanes, 8);
		push(fds[i], lanes, 4);
	}
	wait_events(fds[0], POLLIN);
	start_pull(&c, fds[0], slow.page, 8);
	slow_wait(&slow);
	wait_events(fds[0], POLLIN);
	EXPECT_ERRNO(recv(fds[0], (void *)8, 4, 0), EFAULT);
	/* nobody holds the socket meanwhile */
	EXPECT_EQ(recv(fds[0], sum, 8, MSG_PEEK), 4);
	slow_unmap(&slow);
	EXPECT_EQ(end_call(&c), -EFAULT);
	pull(fds[0], sum, 8);
	EXPECT_EQ(sum[1], 4);
	pull(fds[0], sum, 4);
	EXPECT_EQ(sum[0], 2);
}

/* It belongs to its run, though. */
TEST(fault_after_the_run)
{
	int32_t lane = 1;
	struct slow slow;
	struct call c;
	int fds[2], i;

	join_pair(fds, "");
	slow_page(&slow);
	for (i = 0; i < 2; i++)
		push(fds[i], &lane, 4);
	wait_events(fds[0], POLLIN);
	start_pull(&c, fds[0], slow.page, 4);
	slow_wait(&slow);
	push(fds[0], &lane, 4);
	close(fds[1]);
	wait_state(fds[0], ATP_FAILED);
	EXPECT_EQ(error_of(fds[0]), ECONNRESET);
	fds[1] = new_socket(0);
	connect_all(fds, 2);
	slow_unmap(&slow);
	EXPECT_EQ(end_call(&c), -EFAULT);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_DONTWAIT), EAGAIN);
	sum_works(fds, 2);
}

TAP_MAIN()
