// SPDX-License-Identifier: GPL-2.0
/* What a socket tells of itself: ATP_INFO, SIOCOUTQ, SIOCINQ. */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "host.h"

TEST(info_counts)
{
	char bytes[14000] = {};		/* 10 fragments of 1,400 */
	struct atp_info info;
	int fds[2], i;

	join_pair(fds, "");
	push(fds[0], bytes, sizeof(bytes));
	info = info_of(fds[0]);
	EXPECT_EQ(info.una, 0);
	EXPECT_EQ(info.nxt, 10);
	EXPECT_EQ(info.end, 10);
	EXPECT_EQ(info.sent, 10);
	EXPECT_EQ(info.chunks, 0);
	/* the window is full: pushed, but not sent */
	push(fds[0], bytes, sizeof(bytes));
	info = info_of(fds[0]);
	EXPECT_EQ(info.end, 20);
	EXPECT_LT(info.nxt, 20);
	for (i = 0; i < 2; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i < 2; i++) {
		pull(fds[0], bytes, sizeof(bytes));
		pull(fds[1], bytes, sizeof(bytes));
	}
	for (i = 0; i < 2; i++) {
		info = info_of(fds[i]);
		EXPECT_EQ(info.una, 20);
		EXPECT_EQ(info.nxt, 20);
		EXPECT_EQ(info.end, 20);
		EXPECT_EQ(info.sent, 20);
		EXPECT_EQ(info.chunks, 2);
		EXPECT_EQ(info.raw, 0);
		EXPECT_EQ(info.ecn, 0);
		EXPECT_EQ(info.fast_retransmits, 0);
		EXPECT_GT(info.cwnd, 0);
		EXPECT_LE(info.cwnd, info.window);
		EXPECT_GE(info.rto_us, 2000);
		EXPECT_LE(info.timeouts, info.resent);
	}
	EXPECT_GT(info_of(fds[1]).srtt_us, 0);
}

TEST(info_says_who_is_waited_for)
{
	unsigned int tries = 0;
	uint32_t lane = 0;
	int fds[3];

	host_net();
	job_add(3, "");
	join_all(fds, 3);
	push(fds[0], &lane, 4);
	push(fds[1], &lane, 4);
	while (info_of(fds[0]).ranks != 4 && ++tries < LIMIT_MS)
		usleep(1000);
	EXPECT_EQ(info_of(fds[0]).ranks, 4);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINED);
	push(fds[2], &lane, 4);
	pull(fds[0], &lane, 4);
	EXPECT_EQ(info_of(fds[0]).ranks, 0);
}

TEST(bytes_in_the_queues)
{
	char bytes[20000] = {};
	int fds[2], fd, i;

	host_net();
	fd = new_socket(0);
	EXPECT_EQ(queue_of(fd, SIOCOUTQ), 0);
	EXPECT_EQ(queue_of(fd, SIOCINQ), 0);
	EXPECT_ERRNO(ioctl(fd, SIOCOUTQ, (void *)8), EFAULT);
	EXPECT_ERRNO(ioctl(fd, SIOCATMARK, &i), ENOTTY);

	job_add(2, "");
	join_all(fds, 2);
	EXPECT_EQ(queue_of(fds[0], SIOCOUTQ), 0);
	push(fds[0], bytes, 20000);
	EXPECT_EQ(queue_of(fds[0], SIOCOUTQ), 20000);
	push(fds[0], bytes, 4);
	EXPECT_EQ(queue_of(fds[0], SIOCOUTQ), 20004);
	EXPECT_EQ(queue_of(fds[0], SIOCINQ), 0);
	/* one of two is complete */
	push(fds[1], bytes, 20000);
	wait_events(fds[0], POLLIN);
	EXPECT_EQ(queue_of(fds[0], SIOCOUTQ), 4);
	EXPECT_EQ(queue_of(fds[0], SIOCINQ), 20000);
	push(fds[1], bytes, 4);
	for (i = 0; i < 2; i++) {
		/* the next result, not all of them */
		pull(fds[i], bytes, 20000);
		wait_events(fds[i], POLLIN);
		EXPECT_EQ(queue_of(fds[i], SIOCINQ), 4);
		EXPECT_EQ(queue_of(fds[i], SIOCOUTQ), 0);
		pull(fds[i], bytes, 4);
		EXPECT_EQ(queue_of(fds[i], SIOCINQ), 0);
	}
	push(fds[0], bytes, 8);
	close(fds[1]);
	wait_state(fds[0], ATP_FAILED);
	/* it never will be */
	EXPECT_EQ(queue_of(fds[0], SIOCOUTQ), 8);
	EXPECT_EQ(error_of(fds[0]), ECONNRESET);
	fds[1] = new_socket(0);
	connect_all(fds, 2);
	EXPECT_EQ(queue_of(fds[0], SIOCOUTQ), 0);
}

TAP_MAIN()
