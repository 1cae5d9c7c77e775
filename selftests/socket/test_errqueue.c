// SPDX-License-Identifier: GPL-2.0
/* What recvmsg(MSG_ERRQUEUE) tells of a run that has failed. */
#include <time.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include "host.h"

/* In the control message */
struct errmsg {
	struct sock_extended_err ee;
	struct atp_error error;
};

#define ROOM	CMSG_SPACE(sizeof(struct errmsg))

/* Return: as recvmsg(); @got is how much of the message there was. */
static ssize_t read_error(int fd, size_t room, struct errmsg *message,
			  size_t *got, int *flags)
{
	char control[ROOM] = {}, byte = 0x5a;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = room,
	};
	struct cmsghdr *cmsg;
	ssize_t ret;

	memset(message, 0, sizeof(*message));
	*got = 0;
	ret = recvmsg(fd, &msg, MSG_ERRQUEUE);
	if (ret < 0)
		return ret;
	EXPECT_EQ(byte, 0x5a);
	*flags = msg.msg_flags;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg)
		return ret;
	EXPECT_EQ(cmsg->cmsg_level, SOL_ATP);
	EXPECT_EQ(cmsg->cmsg_type, ATP_RECVERR);
	*got = cmsg->cmsg_len - CMSG_LEN(0);
	memcpy(message, CMSG_DATA(cmsg), *got);
	EXPECT_FALSE(CMSG_NXTHDR(&msg, cmsg));
	return ret;
}

static void expect_none(int fd)
{
	struct errmsg m;
	size_t got;
	int flags;

	EXPECT_ERRNO(read_error(fd, ROOM, &m, &got, &flags), EAGAIN);
}

TEST(nothing_has_failed)
{
	int fds[2], fd;

	fd = new_socket(0);
	expect_none(fd);
	join_pair(fds, "");
	expect_none(fds[0]);
	sum_works(fds, 2);
	expect_none(fds[0]);
	EXPECT_FALSE(events_of(fds[0], 0) & POLLERR);
}

/* Rank 0 waits for rank 2 at its second fragment, which then leaves. */
TEST(run_that_failed)
{
	char bytes[2800] = {};
	struct atp_info info;
	struct errmsg m;
	int fds[3], flags = 0, i;
	size_t got;

	host_net();
	job_add(3, "");
	join_all(fds, 3);
	for (i = 0; i < 3; i++)
		push(fds[i], bytes, 1400);
	for (i = 0; i < 2; i++)
		push(fds[i], bytes, 1400);
	for (i = 0; i < 3; i++)
		pull(fds[i], bytes, 1400);
	/* until the PS has said whom it waits for */
	while (info_of(fds[0]).ranks != 1 << 2)
		usleep(1000);
	info = info_of(fds[0]);
	close(fds[2]);
	wait_state(fds[0], ATP_FAILED);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLERR);

	/* it takes no result, nor does a result take it */
	EXPECT_EQ(error_of(fds[0]), ECONNRESET);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLERR);
	EXPECT_GT(meminfo(fds[0], SK_MEMINFO_RMEM_ALLOC), 0);
	EXPECT_EQ(read_error(fds[0], ROOM, &m, &got, &flags), 0);
	EXPECT_EQ(meminfo(fds[0], SK_MEMINFO_RMEM_ALLOC), 0);
	EXPECT_EQ(flags, MSG_ERRQUEUE);
	EXPECT_EQ(got, sizeof(m));
	EXPECT_EQ(m.ee.ee_errno, ECONNRESET);
	EXPECT_EQ(m.ee.ee_origin, SO_EE_ORIGIN_LOCAL);
	EXPECT_EQ(m.ee.ee_type, 0);
	EXPECT_EQ(m.ee.ee_code, ATP_REASON_LEFT);
	EXPECT_EQ(m.ee.ee_pad, 0);
	EXPECT_EQ(m.ee.ee_info, 1 << 2);
	EXPECT_EQ(m.ee.ee_data, 1);
	EXPECT_EQ(m.error.job, JOB);
	EXPECT_EQ(m.error.rank, 0);
	EXPECT_EQ(m.error.epoch, info.epoch);
	EXPECT_EQ(m.error.reason, ATP_REASON_LEFT);
	EXPECT_EQ(m.error.ranks, 1 << 2);
	EXPECT_EQ(m.error.sequence, 1);
	EXPECT_EQ(m.error.missing, 1 << 2);
	EXPECT_EQ(m.error.reserved, 0);

	expect_none(fds[0]);
	EXPECT_FALSE(events_of(fds[0], 0) & POLLERR);
	/* every rank has its own */
	EXPECT_EQ(read_error(fds[1], ROOM, &m, &got, &flags), 0);
	EXPECT_EQ(m.error.rank, 1);
	EXPECT_EQ(m.error.ranks, 1 << 2);
	/* SO_ERROR is another thing */
	EXPECT_EQ(error_of(fds[1]), ECONNRESET);
}

TEST(join_that_failed)
{
	struct errmsg m;
	int fd, flags;
	size_t got;

	host_net();
	host_to_nowhere();
	ASSERT_EQ(atp("job add %u ps 10.1.0.254 worker 10.1.0.1 timeout 200ms",
		      JOB), 0);
	fd = new_socket(0);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), EHOSTDOWN);
	EXPECT_EQ(read_error(fd, ROOM, &m, &got, &flags), 0);
	EXPECT_EQ(m.ee.ee_errno, EHOSTDOWN);
	EXPECT_EQ(m.error.reason, ATP_REASON_PS_SILENT);
	EXPECT_EQ(m.error.job, JOB);
	EXPECT_EQ(m.error.epoch, 0);
	EXPECT_EQ(m.error.ranks, 0);
	EXPECT_EQ(m.error.sequence, 0);
	EXPECT_EQ(m.error.missing, 0);
	expect_none(fd);
}

/* Too little room for the control message is no failure. */
TEST(truncated)
{
	static const size_t rooms[] = {
		0, 1, CMSG_LEN(0), CMSG_LEN(8),
		CMSG_LEN(sizeof(struct sock_extended_err)),
		CMSG_LEN(sizeof(struct errmsg) - 1),
	};
	struct errmsg m;
	int fd, flags;
	size_t i, got;

	host_net();
	for (i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
		job_add(1, "");
		fd = new_socket(0);
		ASSERT_EQ(do_connect(fd, JOB, 0), 0);
		ASSERT_EQ(atp("job del %u", JOB), 0);
		flags = 0;
		EXPECT_EQ(read_error(fd, rooms[i], &m, &got, &flags), 0);
		EXPECT_EQ(flags, MSG_ERRQUEUE | MSG_CTRUNC);
		EXPECT_EQ(got, rooms[i] < CMSG_LEN(0) ? 0 :
			  rooms[i] - CMSG_LEN(0));
		if (got >= sizeof(m.ee))
			EXPECT_EQ(m.ee.ee_errno, EIDRM);
		expect_none(fd);
		close(fd);
	}
	/* nor is none at all */
	job_add(1, "");
	fd = new_socket(0);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	ASSERT_EQ(atp("job del %u", JOB), 0);
	EXPECT_EQ(recv(fd, NULL, 0, MSG_ERRQUEUE), 0);
	expect_none(fd);
}

/* Nobody reads them: there is one at most, of the last run. */
TEST(only_of_the_last_run)
{
	struct errmsg m;
	int fds[2], flags, i;
	uint32_t epoch = 0, lane = 0;
	size_t got;

	join_pair(fds, "");
	for (i = 0; i < 5; i++) {
		epoch = info_of(fds[0]).epoch;
		push(fds[0], &lane, 4);
		close(fds[1]);
		wait_state(fds[0], ATP_FAILED);
		EXPECT_TRUE(events_of(fds[0], 0) & POLLERR);
		if (i == 4)
			break;
		fds[1] = new_socket(0);
		connect_all(fds, 2);
		expect_none(fds[0]);
		EXPECT_EQ(events_of(fds[0], 0), POLLOUT);
	}
	EXPECT_EQ(read_error(fds[0], ROOM, &m, &got, &flags), 0);
	EXPECT_EQ(m.error.epoch, epoch);
	expect_none(fds[0]);
}

/* Nothing of it stays. */
TEST(closed_unread)
{
	uint32_t lane = 0;
	int fds[2], i;

	host_net();
	job_add(2, "");
	for (i = 0; i < 10; i++) {
		join_all(fds, 2);
		push(fds[0], &lane, 4);
		close(fds[1]);
		wait_state(fds[0], ATP_FAILED);
		EXPECT_TRUE(events_of(fds[0], 0) & POLLERR);
		close(fds[0]);
	}
}

/* A queueing discipline that wants to know when to send leaves there what does
 * not say it: packets of the socket, which are no messages.
 */
TEST(packets_of_its_own)
{
	const struct sock_txtime txtime = {
		.clockid = CLOCK_MONOTONIC,
		.flags = SOF_TXTIME_REPORT_ERRORS,
	};
	int fd;

	host_net();
	host_to_nowhere();
	host_must("tc qdisc add dev eth0 root etf clockid CLOCK_TAI delta 1000");
	ASSERT_EQ(atp("job add %u ps 10.1.0.254 worker 10.1.0.1", JOB), 0);
	fd = new_socket(SOCK_NONBLOCK);
	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_TXTIME, &txtime,
			     sizeof(txtime)), 0);
	EXPECT_ERRNO(do_join(fd, JOB, 0), EINPROGRESS);
	wait_events(fd, POLLERR);
	expect_none(fd);
	EXPECT_EQ(info_of(fd).state, ATP_JOINING);
}

TEST(never_blocks)
{
	int32_t lane = 1;
	int fds[2];

	join_pair(fds, "");
	EXPECT_ERRNO(recv(fds[0], NULL, 0, MSG_ERRQUEUE), EAGAIN);
	EXPECT_ERRNO(recv(fds[0], NULL, 0, MSG_ERRQUEUE | MSG_PEEK), EAGAIN);
	/* that takes a message as well, as for every family */
	push(fds[0], &lane, 4);
	close(fds[1]);
	wait_state(fds[0], ATP_FAILED);
	EXPECT_EQ(recv(fds[0], NULL, 0, MSG_ERRQUEUE | MSG_PEEK), 0);
	expect_none(fds[0]);
}

TAP_MAIN()
