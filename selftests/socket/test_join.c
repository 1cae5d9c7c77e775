// SPDX-License-Identifier: GPL-2.0
/* Becoming a worker: socket(), bind(), connect(), ATP_JOIN, and refusals. */
#include <stddef.h>
#include "host.h"

TEST(types_refused)
{
	static const int types[] = {
		SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_DCCP,
	};
	static const int protocols[] = { 1, 6, 17, 255 };
	int pair[2];
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(*types); i++)
		EXPECT_ERRNO(socket(AF_ATP, types[i], 0), ESOCKTNOSUPPORT);
	for (i = 0; i < sizeof(protocols) / sizeof(*protocols); i++)
		EXPECT_ERRNO(socket(AF_ATP, SOCK_SEQPACKET, protocols[i]),
			     EPROTONOSUPPORT);
	EXPECT_ERRNO(socketpair(AF_ATP, SOCK_SEQPACKET, 0, pair), EOPNOTSUPP);
}

TEST(flags_of_socket)
{
	int fd = new_socket(SOCK_CLOEXEC | SOCK_NONBLOCK);
	socklen_t len = sizeof(int);
	int value;

	EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	EXPECT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len), 0);
	EXPECT_EQ(value, SOCK_SEQPACKET);
	EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &len), 0);
	EXPECT_EQ(value, AF_ATP);
	EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &len), 0);
	EXPECT_EQ(value, 0);
	EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &value, &len), 0);
	EXPECT_EQ(value, 4 << 20);
}

TEST(before_joining)
{
	int fd = new_socket(0);
	struct sockaddr_atp addr;
	socklen_t len = sizeof(addr);
	uint32_t lane = 1;

	EXPECT_ERRNO(send(fd, &lane, 4, MSG_NOSIGNAL), ENOTCONN);
	EXPECT_ERRNO(recv(fd, &lane, 4, 0), ENOTCONN);
	EXPECT_ERRNO(recv(fd, &lane, 4, MSG_DONTWAIT), ENOTCONN);
	EXPECT_ERRNO(listen(fd, 1), EOPNOTSUPP);
	EXPECT_ERRNO(accept(fd, NULL, NULL), EOPNOTSUPP);
	EXPECT_ERRNO(shutdown(fd, SHUT_RDWR), ENOTCONN);
	EXPECT_ERRNO(getpeername(fd, (struct sockaddr *)&addr, &len), ENOTCONN);
	memset(&addr, 0xa5, sizeof(addr));
	len = sizeof(addr);
	EXPECT_EQ(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
	EXPECT_EQ(len, 16);
	EXPECT_EQ(addr.satp_family, AF_ATP);
	EXPECT_EQ(addr.satp_job, 0);
	EXPECT_EQ(addr.satp_rank, 0);
	EXPECT_EQ(addr.satp_zero[0] | addr.satp_zero[1], 0);
	EXPECT_EQ(info_of(fd).state, ATP_UNBOUND);
	/* as those of TCP before connect() */
	EXPECT_FALSE(events_of(fd, 0) & (POLLIN | POLLERR));
	EXPECT_EQ(error_of(fd), 0);
}

TEST(malformed_addresses)
{
	struct sockaddr_storage big = {};
	struct sockaddr_atp addr = {
		.satp_family = AF_ATP,
		.satp_job = JOB,
	};
	struct sockaddr *sa = (struct sockaddr *)&addr;
	socklen_t len;
	int fd;

	host_net();
	job_add(1, "");
	fd = new_socket(0);
	for (len = 0; len < sizeof(addr); len++) {
		EXPECT_ERRNO(bind(fd, sa, len), EINVAL);
		EXPECT_ERRNO(connect(fd, sa, len), EINVAL);
	}
	addr.satp_zero[0] = 1;
	EXPECT_ERRNO(bind(fd, sa, sizeof(addr)), EINVAL);
	EXPECT_ERRNO(connect(fd, sa, sizeof(addr)), EINVAL);
	addr.satp_zero[0] = 0;
	addr.satp_zero[1] = 0x80000000;
	EXPECT_ERRNO(bind(fd, sa, sizeof(addr)), EINVAL);
	EXPECT_ERRNO(connect(fd, sa, sizeof(addr)), EINVAL);
	addr.satp_zero[1] = 0;
	addr.satp_family = AF_INET;
	EXPECT_ERRNO(bind(fd, sa, sizeof(addr)), EAFNOSUPPORT);
	EXPECT_ERRNO(connect(fd, sa, sizeof(addr)), EAFNOSUPPORT);
	addr.satp_family = AF_UNSPEC;
	EXPECT_ERRNO(bind(fd, sa, sizeof(addr)), EAFNOSUPPORT);
	EXPECT_EQ(info_of(fd).state, ATP_UNBOUND);
	/* room behind it does no harm */
	addr.satp_family = AF_ATP;
	memcpy(&big, &addr, sizeof(addr));
	EXPECT_EQ(bind(fd, (struct sockaddr *)&big, sizeof(big)), 0);
}

TEST(malformed_options)
{
	struct atp_join join[2] = { { .job = JOB }, { .job = JOB } };
	struct atp_info info;
	int fd = new_socket(0);
	char byte;
	socklen_t len;
	int dtype;

	EXPECT_ERRNO(setsockopt(fd, SOL_ATP, ATP_JOIN, join, 0), EINVAL);
	EXPECT_ERRNO(setsockopt(fd, SOL_ATP, ATP_JOIN, join, 4), EINVAL);
	EXPECT_ERRNO(setsockopt(fd, SOL_ATP, ATP_JOIN, join, 16), EINVAL);
	EXPECT_ERRNO(setsockopt(fd, SOL_ATP, ATP_JOIN, (void *)8, 8), EFAULT);
	EXPECT_ERRNO(setsockopt(fd, SOL_ATP, 99, join, 8), ENOPROTOOPT);
	EXPECT_ERRNO(setsockopt(fd, SOL_ATP, ATP_INFO, &info, sizeof(info)),
		     ENOPROTOOPT);
	EXPECT_ERRNO(setsockopt(fd, 6, ATP_JOIN, join, 8), ENOPROTOOPT);

	for (dtype = -1; dtype < 5; dtype++) {
		if (dtype == ATP_INT32 || dtype == ATP_FLOAT32)
			continue;
		EXPECT_ERRNO(setsockopt(fd, SOL_ATP, ATP_DTYPE, &dtype,
					sizeof(dtype)), EINVAL);
	}
	EXPECT_ERRNO(setsockopt(fd, SOL_ATP, ATP_DTYPE, &dtype, 1), EINVAL);
	EXPECT_ERRNO(setsockopt(fd, SOL_ATP, ATP_DTYPE, (void *)8,
				sizeof(dtype)), EFAULT);
	len = sizeof(dtype);
	EXPECT_EQ(getsockopt(fd, SOL_ATP, ATP_DTYPE, &dtype, &len), 0);
	EXPECT_EQ(dtype, ATP_FLOAT32);
	EXPECT_EQ(len, sizeof(dtype));
	set_dtype(fd, ATP_INT32);
	EXPECT_EQ(getsockopt(fd, SOL_ATP, ATP_DTYPE, &dtype, &len), 0);
	EXPECT_EQ(dtype, ATP_INT32);

	len = sizeof(info);
	EXPECT_ERRNO(getsockopt(fd, SOL_ATP, ATP_JOIN, &info, &len),
		     ENOPROTOOPT);
	EXPECT_ERRNO(getsockopt(fd, SOL_ATP, 99, &info, &len), ENOPROTOOPT);
	EXPECT_ERRNO(getsockopt(fd, 6, ATP_INFO, &info, &len), ENOPROTOOPT);
	EXPECT_ERRNO(getsockopt(fd, SOL_ATP, ATP_INFO, (void *)8, &len),
		     EFAULT);
	len = -1;
	EXPECT_ERRNO(getsockopt(fd, SOL_ATP, ATP_INFO, &info, &len), EINVAL);
	/* an application that is older than the kernel */
	len = 1;
	byte = 0xa5;
	EXPECT_EQ(getsockopt(fd, SOL_ATP, ATP_INFO, &byte, &len), 0);
	EXPECT_EQ(len, 1);
	EXPECT_EQ(byte, ATP_UNBOUND);
}

typedef int take_fn(int fd, uint32_t job, uint32_t rank);

static void refusals(take_fn *take)
{
	int fd, other;

	host_net();
	job_add(2, "");
	other = atp("job add 8 ps 127.0.0.1 worker 192.0.2.1 worker 127.0.0.3");
	ASSERT_EQ(other, 0);
	fd = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(take(fd, 6, 0), ENOENT);
	EXPECT_ERRNO(take(fd, JOB, 2), EINVAL);
	EXPECT_ERRNO(take(fd, JOB, 32), EINVAL);
	EXPECT_ERRNO(take(fd, JOB, 65535), EINVAL);
	EXPECT_ERRNO(take(fd, 8, 0), EADDRNOTAVAIL);
	other = new_socket(0);
	ASSERT_EQ(do_bind(other, JOB, 1), 0);
	EXPECT_ERRNO(take(fd, JOB, 1), EADDRINUSE);
	/* no refusal has left a trace */
	EXPECT_EQ(info_of(fd).state, ATP_UNBOUND);
	EXPECT_EQ(do_bind(fd, 8, 1), 0);
	EXPECT_EQ(info_of(fd).job, 8);

	EXPECT_ERRNO(take(fd, JOB, 0), EINVAL);
	EXPECT_ERRNO(take(fd, 8, 0), EINVAL);
	/* what is closed is free */
	close(other);
	other = new_socket(SOCK_NONBLOCK);
	if (take == do_bind)
		EXPECT_EQ(take(other, JOB, 1), 0);
	else
		EXPECT_ERRNO(take(other, JOB, 1), EINPROGRESS);
}

TEST(refused_by_bind)
{
	refusals(do_bind);
}

TEST(refused_by_connect)
{
	refusals(do_connect);
}

TEST(refused_by_option)
{
	int fd;

	refusals(do_join);
	fd = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_join(fd, JOB, 65536), EINVAL);
	EXPECT_ERRNO(do_join(fd, JOB, 0xffffffff), EINVAL);
}

TEST(bind_takes_the_rank_only_once)
{
	int fd;

	host_net();
	job_add(1, "");
	fd = new_socket(0);
	ASSERT_EQ(do_bind(fd, JOB, 0), 0);
	EXPECT_EQ(info_of(fd).state, ATP_BOUND);
	EXPECT_FALSE(events_of(fd, 0) & (POLLIN | POLLERR));
	EXPECT_ERRNO(do_bind(fd, JOB, 0), EINVAL);
	EXPECT_EQ(do_connect(fd, JOB, 0), 0);
	EXPECT_EQ(info_of(fd).state, ATP_JOINED);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), EISCONN);
	EXPECT_ERRNO(do_join(fd, JOB, 0), EISCONN);
	EXPECT_ERRNO(do_bind(fd, JOB, 0), EINVAL);
	sum_works(&fd, 1);
}

TEST(connect_alone_is_enough)
{
	int fd;

	host_net();
	job_add(1, "");
	fd = new_socket(0);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
}

TEST(option_after_bind)
{
	int fd;

	host_net();
	job_add(1, "");
	fd = new_socket(0);
	ASSERT_EQ(do_bind(fd, JOB, 0), 0);
	ASSERT_EQ(do_join(fd, JOB, 0), 0);
	sum_works(&fd, 1);
}

TEST(names)
{
	struct sockaddr_atp addr;
	socklen_t len = sizeof(addr);
	int fds[3];

	host_net();
	job_add(3, "");
	join_all(fds, 3);
	EXPECT_EQ(getsockname(fds[2], (struct sockaddr *)&addr, &len), 0);
	EXPECT_EQ(len, 16);
	EXPECT_EQ(addr.satp_family, AF_ATP);
	EXPECT_EQ(addr.satp_job, JOB);
	EXPECT_EQ(addr.satp_rank, 2);
	memset(&addr, 0xa5, sizeof(addr));
	EXPECT_EQ(getpeername(fds[2], (struct sockaddr *)&addr, &len), 0);
	EXPECT_EQ(len, 16);
	EXPECT_EQ(addr.satp_family, AF_ATP);
	EXPECT_EQ(addr.satp_job, JOB);
	EXPECT_EQ(addr.satp_rank, 2);
	EXPECT_EQ(addr.satp_zero[0] | addr.satp_zero[1], 0);
	/* a short buffer is told how much there was */
	len = 4;
	EXPECT_EQ(getsockname(fds[1], (struct sockaddr *)&addr, &len), 0);
	EXPECT_EQ(len, 16);
	EXPECT_EQ(addr.satp_rank, 1);
}

TEST(ranks_with_addresses_of_their_own)
{
	int fds[4], i;

	host_net();
	ASSERT_EQ(atp("job add %u ps 127.0.0.1 worker 127.0.0.2 worker 127.0.0.3 worker 127.0.0.4 worker 127.0.0.1",
		      JOB), 0);
	join_all(fds, 4);
	for (i = 0; i < 20; i++)
		sum_works(fds, 4);
}

TEST(ipv6)
{
	int fds[2];

	host_net();
	ASSERT_EQ(atp("job add %u ps ::1 worker ::1 worker ::1", JOB), 0);
	join_all(fds, 2);
	sum_works(fds, 2);
}

TEST(mtu)
{
	/* fragment, ATP header, UDP, IP */
	unsigned int need = 1400 + 36 + 8 + 20;
	int fd;

	host_net();
	job_add(1, "");
	fd = new_socket(0);
	host_must("ip link set lo mtu %u", need - 1);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), EMSGSIZE);
	EXPECT_EQ(info_of(fd).state, ATP_BOUND);
	EXPECT_ERRNO(do_join(fd, JOB, 0), EMSGSIZE);
	host_must("ip link set lo mtu %u", need);
	EXPECT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
	close(fd);

	ASSERT_EQ(atp("job add 8 ps ::1 worker ::1"), 0);
	fd = new_socket(0);
	host_must("ip link set lo mtu %u", need + 19);
	EXPECT_ERRNO(do_connect(fd, 8, 0), EMSGSIZE);
	host_must("ip link set lo mtu %u", need + 20);
	EXPECT_EQ(do_connect(fd, 8, 0), 0);
}

/* The device carries it, the route says less. */
TEST(mtu_of_the_route)
{
	static const char way[] =
		"ip route replace local 127.0.0.1 table local dev lo mtu";
	unsigned int need = 1400 + 36 + 8 + 20;
	int fd;

	host_net();
	job_add(1, "");
	fd = new_socket(0);
	host_must("%s %u", way, need - 1);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), EMSGSIZE);
	EXPECT_EQ(info_of(fd).state, ATP_BOUND);
	host_must("%s %u", way, need);
	EXPECT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
}

TEST(nonblocking)
{
	int fds[2], done;

	host_net();
	job_add(2, "");
	fds[0] = new_socket(SOCK_NONBLOCK);
	fds[1] = new_socket(0);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINPROGRESS);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINING);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EALREADY);
	EXPECT_ERRNO(do_join(fds[0], JOB, 0), EALREADY);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 1), EINVAL);
	EXPECT_EQ(events_of(fds[0], 0), 0);
	EXPECT_EQ(error_of(fds[0]), 0);
	EXPECT_EQ(do_connect(fds[1], JOB, 1), 0);
	wait_events(fds[0], POLLOUT);
	EXPECT_EQ(events_of(fds[0], 0), POLLOUT);
	EXPECT_EQ(error_of(fds[0]), 0);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINED);
	/* asked again it says that it is connected, now or the next time */
	errno = 0;
	done = do_connect(fds[0], JOB, 0);
	if (done)
		EXPECT_EQ(errno, EISCONN);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EISCONN);
	set_nonblock(fds[0], false);
	sum_works(fds, 2);
}

TEST(nonblocking_by_option)
{
	int fds[2];

	host_net();
	job_add(2, "");
	fds[0] = new_socket(SOCK_NONBLOCK);
	fds[1] = new_socket(0);
	EXPECT_ERRNO(do_join(fds[0], JOB, 0), EINPROGRESS);
	EXPECT_ERRNO(do_join(fds[0], JOB, 0), EALREADY);
	EXPECT_EQ(do_join(fds[1], JOB, 1), 0);
	wait_events(fds[0], POLLOUT);
	set_nonblock(fds[0], false);
	sum_works(fds, 2);
}

TEST(blocking_connect_after_nonblocking)
{
	int fds[2];

	host_net();
	job_add(2, "");
	fds[0] = new_socket(SOCK_NONBLOCK);
	fds[1] = new_socket(0);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINPROGRESS);
	set_nonblock(fds[0], false);
	connect_all(fds, 2);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EISCONN);
	sum_works(fds, 2);
}

TEST(sndtimeo_bounds_connect)
{
	int fds[2];

	host_net();
	job_add(2, "");
	fds[0] = new_socket(0);
	fds[1] = new_socket(0);
	set_timeout(fds[0], SO_SNDTIMEO, 50);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINPROGRESS);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINING);
	/* it goes on in the background, and another call waits again */
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINPROGRESS);
	set_timeout(fds[0], SO_SNDTIMEO, LIMIT_MS);
	connect_all(fds, 2);
	sum_works(fds, 2);
}

static void *signal_thread(void *arg)
{
	pid_t tid = *(pid_t *)arg;

	wait_asleep(tid);
	kill(tid, SIGUSR1);
	return NULL;
}

TEST(signal_ends_connect)
{
	pid_t self = getpid();
	pthread_t thread;
	int fds[2];

	host_net();
	job_add(2, "");
	fds[0] = new_socket(0);
	fds[1] = new_socket(0);
	catch_signal(SIGUSR1, 0);
	ASSERT_EQ(pthread_create(&thread, NULL, signal_thread, &self), 0);
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINTR);
	pthread_join(thread, NULL);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINING);
	connect_all(fds, 2);
	sum_works(fds, 2);
}

/* With SA_RESTART it goes on, by the option as well (signal(7)). */
TEST(signal_while_joining)
{
	void (*start[])(struct call *c, int fd) = { start_connect, start_join };
	struct call c;
	int fds[2], i, j;

	host_net();
	job_add(2, "");
	for (i = 0; i < 2; i++) {
		fds[0] = new_socket(0);
		fds[1] = new_socket(0);
		catch_signal(SIGUSR1, SA_RESTART);
		start[i](&c, fds[0]);
		for (j = 0; j < 3; j++)
			signal_asleep(&c, SIGUSR1);
		EXPECT_EQ(do_connect(fds[1], JOB, 1), 0);
		EXPECT_EQ(end_call(&c), 0);
		sum_works(fds, 2);
		close(fds[0]);
		close(fds[1]);

		fds[0] = new_socket(0);
		fds[1] = new_socket(0);
		catch_signal(SIGUSR1, 0);
		start[i](&c, fds[0]);
		signal_asleep(&c, SIGUSR1);
		EXPECT_EQ(end_call(&c), -EINTR);
		/* it is not lost: another call waits for it */
		start[i](&c, fds[0]);
		EXPECT_EQ(do_connect(fds[1], JOB, 1), 0);
		EXPECT_EQ(end_call(&c), 0);
		sum_works(fds, 2);
		close(fds[0]);
		close(fds[1]);
	}
}

TEST(ps_absent)
{
	struct atp_info info;
	int fd;

	host_net();
	/* everything is on its way to nobody */
	host_to_nowhere();
	ASSERT_EQ(atp("job add %u ps 10.1.0.254 worker 10.1.0.1 timeout 300ms",
		      JOB), 0);
	fd = new_socket(0);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), EHOSTDOWN);
	info = info_of(fd);
	EXPECT_EQ(info.state, ATP_FAILED);
	EXPECT_EQ(info.reason, ATP_REASON_PS_SILENT);
	EXPECT_EQ(info.ranks, 0);
	/* and again */
	EXPECT_ERRNO(do_connect(fd, JOB, 0), EHOSTDOWN);
	close(fd);

	fd = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), EINPROGRESS);
	wait_events(fd, POLLOUT);
	EXPECT_TRUE(events_of(fd, 0) & POLLERR);
	EXPECT_EQ(error_of(fd), EHOSTDOWN);
	EXPECT_EQ(error_of(fd), 0);
}

TEST(nonblocking_tries_again)
{
	int fd, i;

	host_net();
	host_to_nowhere();
	ASSERT_EQ(atp("job add %u ps 10.1.0.254 worker 10.1.0.1 timeout 200ms",
		      JOB), 0);
	fd = new_socket(SOCK_NONBLOCK);
	for (i = 0; i < 3; i++) {
		EXPECT_ERRNO(do_connect(fd, JOB, 0), EINPROGRESS);
		ASSERT_EQ(info_of(fd).state, ATP_JOINING);
		wait_events(fd, POLLOUT);
		EXPECT_EQ(error_of(fd), EHOSTDOWN);
	}
}

TEST(no_way_to_the_ps)
{
	int fd;

	host_net();
	ASSERT_EQ(atp("job add %u ps 10.1.0.254 worker 127.0.0.2", JOB), 0);
	fd = new_socket(0);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), ENETUNREACH);
	EXPECT_EQ(info_of(fd).state, ATP_BOUND);
}

TEST(info_when_joined)
{
	struct atp_info info;
	int fds[2];

	host_net();
	job_add(2, "fragment 248 window 64 scale 1000");
	fds[0] = new_socket(0);
	ASSERT_EQ(do_bind(fds[0], JOB, 0), 0);
	info = info_of(fds[0]);
	EXPECT_EQ(info.state, ATP_BOUND);
	EXPECT_EQ(info.job, JOB);
	EXPECT_EQ(info.workers, 2);
	close(fds[0]);
	join_all(fds, 2);
	info = info_of(fds[1]);
	EXPECT_EQ(info.state, ATP_JOINED);
	EXPECT_EQ(info.reason, 0);
	EXPECT_EQ(info.ranks, 0);
	EXPECT_EQ(info.job, JOB);
	EXPECT_EQ(info.rank, 1);
	EXPECT_EQ(info.workers, 2);
	EXPECT_EQ(info.epoch, info_of(fds[0]).epoch);
	EXPECT_EQ(info.fragment, 248);
	EXPECT_EQ(info.window, 64);
	EXPECT_EQ(info.scale, 1000);
	EXPECT_EQ(info.una, 0);
	EXPECT_EQ(info.nxt, 0);
	EXPECT_EQ(info.end, 0);
	EXPECT_EQ(info.cwnd, 10);
	EXPECT_EQ(info.srtt_us, 0);
	EXPECT_EQ(info.rto_us, 50000);
	EXPECT_EQ(info.flags, 0);
	EXPECT_EQ(info.sent, 0);
	EXPECT_EQ(info.chunks, 0);
}

TEST(thirty_two_ranks)
{
	int fds[32];

	host_net();
	job_add(32, "");
	join_all(fds, 32);
	sum_works(fds, 32);
}

TEST(many_jobs_at_once)
{
	int fd[8][2];
	uint32_t i;

	host_net();
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(atp("job add %u ps 127.0.0.1 worker 127.0.0.2 worker 127.0.0.2",
			      100 + i), 0);
		fd[i][0] = new_socket(SOCK_NONBLOCK);
		fd[i][1] = new_socket(0);
		EXPECT_ERRNO(do_connect(fd[i][0], 100 + i, 0), EINPROGRESS);
	}
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(do_connect(fd[i][1], 100 + i, 1), 0);
		wait_events(fd[i][0], POLLOUT);
		set_nonblock(fd[i][0], false);
	}
	for (i = 0; i < 8; i++)
		sum_works(fd[i], 2);
}

TAP_MAIN()
