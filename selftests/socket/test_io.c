// SPDX-License-Identifier: GPL-2.0
/* Pushing and pulling: sendmsg(), recvmsg(), numbers, back-pressure. */
#include <limits.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include "host.h"

static void pair(int *fds, const char *more)
{
	host_net();
	job_add(2, more);
	join_all(fds, 2);
}

TEST(sizes)
{
	char *bytes = calloc(1, 8 << 20);
	int fds[2];
	size_t len;

	pair(fds, "");
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

	pair(fds, "fragment 64");
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

/* SO_SNDBUF larger and smaller; the largest chunk that fits does */
TEST(sndbuf_bounds_a_chunk)
{
	socklen_t len = sizeof(int);
	char *bytes;
	int fds[2], bound, lo, hi;

	pair(fds, "");
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
	static const int send_flags[] = {
		MSG_OOB, MSG_MORE, MSG_DONTROUTE, MSG_CONFIRM, MSG_ZEROCOPY,
		MSG_FASTOPEN,
	};
	uint32_t lane = 0;
	int fds[2];
	size_t i;

	pair(fds, "");
	for (i = 0; i < sizeof(send_flags) / sizeof(*send_flags); i++)
		EXPECT_ERRNO(send(fds[0], &lane, 4, send_flags[i]),
			     EOPNOTSUPP);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_OOB | MSG_DONTWAIT),
		     EOPNOTSUPP);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_ERRQUEUE | MSG_DONTWAIT),
		     EOPNOTSUPP);
	EXPECT_EQ(info_of(fds[0]).end, 0);
	EXPECT_EQ(send(fds[0], &lane, 4, MSG_EOR | MSG_NOSIGNAL), 4);
}

TEST(address_refused)
{
	struct sockaddr_atp addr = {
		.satp_family = AF_ATP,
		.satp_job = JOB,
	};
	uint32_t lane = 0;
	int fds[2];

	pair(fds, "");
	EXPECT_ERRNO(sendto(fds[0], &lane, 4, 0, (struct sockaddr *)&addr,
			    sizeof(addr)), EISCONN);
	EXPECT_EQ(info_of(fds[0]).end, 0);
}

TEST(bad_pointers)
{
	int32_t lanes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, sum[8];
	int fds[2];

	pair(fds, "");
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
	EXPECT_ERRNO(send(fds[0], (void *)8, 32, 0), EFAULT);
	EXPECT_EQ(info_of(fds[0]).end, 0);
	push(fds[0], lanes, 32);
	push(fds[1], lanes, 32);
	wait_events(fds[0], POLLIN);
	EXPECT_ERRNO(recv(fds[0], (void *)8, 32, 0), EFAULT);
	/* it is lost as a datagram is, or still there; the next is in order */
	push(fds[0], lanes, 28);
	push(fds[1], lanes, 28);
	if (recv(fds[0], sum, 32, 0) == 32)
		pull(fds[0], sum, 28);
	EXPECT_EQ(sum[6], 14);
	pull(fds[1], sum, 32);
	EXPECT_EQ(sum[7], 16);
	pull(fds[1], sum, 28);
	sum_works(fds, 2);
}

TEST(scattered)
{
	char in[64], out[64];
	struct iovec iov[7];
	struct msghdr msg = { .msg_iov = iov };
	int32_t lane;
	int fds[2], i, at;

	pair(fds, "");
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

	pair(fds, "");
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

	pair(fds, "");
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

	pair(fds, "");
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

	pair(fds, "");
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

TEST(dontwait)
{
	uint32_t lane;
	int fds[2];

	pair(fds, "");
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

TEST(timeouts)
{
	char bytes[4096] = {};
	int fds[2];

	pair(fds, "");
	set_timeout(fds[0], SO_RCVTIMEO, 30);
	set_timeout(fds[0], SO_SNDTIMEO, 30);
	EXPECT_ERRNO(recv(fds[0], bytes, 4, 0), EAGAIN);
	set_sndbuf(fds[0], 4096);
	push(fds[0], bytes, sizeof(bytes));
	EXPECT_ERRNO(send(fds[0], bytes, sizeof(bytes), 0), EAGAIN);
	EXPECT_ERRNO(recv(fds[0], bytes, 4, 0), EAGAIN);
	push(fds[1], bytes, sizeof(bytes));
	pull(fds[0], bytes, sizeof(bytes));
	pull(fds[1], bytes, sizeof(bytes));
	sum_works(fds, 2);
}

static void *signal_thread(void *arg)
{
	pid_t tid = *(pid_t *)arg;

	wait_asleep(tid);
	kill(tid, SIGUSR1);
	return NULL;
}

TEST(signals)
{
	char bytes[4096] = {};
	pid_t self = getpid();
	pthread_t thread;
	int fds[2], i;

	pair(fds, "");
	catch_signal(SIGUSR1);
	set_sndbuf(fds[0], 4096);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(pthread_create(&thread, NULL, signal_thread, &self),
			  0);
		if (i == 0)
			EXPECT_ERRNO(recv(fds[0], bytes, 4, 0), EINTR);
		else
			EXPECT_ERRNO(send(fds[0], bytes, sizeof(bytes), 0),
				     EINTR);
		pthread_join(thread, NULL);
		if (i == 0)
			push(fds[0], bytes, sizeof(bytes));
	}
	push(fds[1], bytes, sizeof(bytes));
	pull(fds[0], bytes, sizeof(bytes));
	pull(fds[1], bytes, sizeof(bytes));
	sum_works(fds, 2);
}

/* Until refused; all of one size */
static int fill(int fd, const void *bytes, size_t len)
{
	int n = 0;

	while (send(fd, bytes, len, MSG_DONTWAIT) == (ssize_t)len)
		n++;
	EXPECT_EQ(errno, EAGAIN);
	return n;
}

TEST(back_pressure)
{
	char bytes[8192] = {};
	int fds[2], n, i;

	pair(fds, "");
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

	pair(fds, "");
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

struct pusher {
	int fd;
	pid_t tid;
	ssize_t ret;
	int error;
	size_t len;
	char *bytes;
};

static void *push_thread(void *arg)
{
	struct pusher *p = arg;

	__atomic_store_n(&p->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	p->ret = send(p->fd, p->bytes, p->len, MSG_NOSIGNAL);
	p->error = errno;
	return NULL;
}

static void *pull_thread(void *arg)
{
	struct pusher *p = arg;

	__atomic_store_n(&p->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	p->ret = recv(p->fd, p->bytes, p->len, 0);
	p->error = errno;
	return NULL;
}

static void wait_thread_asleep(struct pusher *p)
{
	while (!__atomic_load_n(&p->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	wait_asleep(p->tid);
}

TEST(pull_wakes_push)
{
	char bytes[8192] = {}, other[8192] = {};
	struct pusher p = { .bytes = other, .len = sizeof(other) };
	pthread_t thread;
	int fds[2], n, i;

	pair(fds, "");
	set_sndbuf(fds[0], 32768);
	n = fill(fds[0], bytes, sizeof(bytes));
	p.fd = fds[0];
	ASSERT_EQ(pthread_create(&thread, NULL, push_thread, &p), 0);
	wait_thread_asleep(&p);
	for (i = 0; i <= n; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i <= n; i++)
		pull(fds[0], bytes, sizeof(bytes));
	pthread_join(thread, NULL);
	EXPECT_EQ(p.ret, sizeof(other));
	for (i = 0; i <= n; i++)
		pull(fds[1], bytes, sizeof(bytes));
	sum_works(fds, 2);
}

TEST(result_wakes_pull)
{
	struct pusher p[3];
	pthread_t thread[3];
	int32_t lanes[3][4];
	int fds[2], i, k;

	pair(fds, "");
	memset(p, 0, sizeof(p));
	for (i = 0; i < 3; i++) {
		p[i].fd = fds[0];
		p[i].bytes = (char *)lanes[i];
		p[i].len = 16;
		ASSERT_EQ(pthread_create(&thread[i], NULL, pull_thread, &p[i]),
			  0);
		wait_thread_asleep(&p[i]);
	}
	/* each thread gets a chunk of its own */
	for (i = 0; i < 2; i++)
		set_dtype(fds[i], ATP_INT32);
	for (i = 0; i < 3; i++) {
		int32_t out[4] = { i, i, i, i };

		for (k = 0; k < 2; k++)
			push(fds[k], out, 16);
	}
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(p[i].ret, 16);
		EXPECT_EQ(lanes[i][0], lanes[i][3]);
	}
	EXPECT_EQ(lanes[0][0] + lanes[1][0] + lanes[2][0], 6);
	EXPECT_NE(lanes[0][0], lanes[1][0]);
	EXPECT_NE(lanes[1][0], lanes[2][0]);
}

/* A tensor of many times the send buffer, pushed and pulled by two threads */
static void *stream_push(void *arg)
{
	struct pusher *p = arg;
	int32_t lanes[4096];
	uint32_t i, k;

	for (i = 0; i < p->len; i++) {
		for (k = 0; k < 4096; k++)
			lanes[k] = i * 4096 + k;
		if (send(p->fd, lanes, sizeof(lanes), 0) != sizeof(lanes))
			p->error = errno;
	}
	return NULL;
}

static void *stream_pull(void *arg)
{
	struct pusher *p = arg;
	int32_t lanes[4096];
	uint32_t i, k;

	for (i = 0; i < p->len; i++) {
		if (recv(p->fd, lanes, sizeof(lanes), 0) != sizeof(lanes))
			p->error = errno;
		for (k = 0; k < 4096; k++)
			if (lanes[k] != (int32_t)(2 * (i * 4096 + k)))
				p->ret = -1;
	}
	return NULL;
}

TEST(two_threads_per_socket)
{
	struct pusher p[2][2] = {};
	pthread_t thread[2][2];
	int fds[2], i;

	pair(fds, "");
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		set_sndbuf(fds[i], 65536);
		p[i][0].fd = fds[i];
		p[i][1].fd = fds[i];
		p[i][0].len = 300;
		p[i][1].len = 300;
		pthread_create(&thread[i][0], NULL, stream_push, &p[i][0]);
		pthread_create(&thread[i][1], NULL, stream_pull, &p[i][1]);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i][0], NULL);
		pthread_join(thread[i][1], NULL);
		EXPECT_EQ(p[i][0].error, 0);
		EXPECT_EQ(p[i][1].error, 0);
		EXPECT_EQ(p[i][1].ret, 0);
	}
}

/* What is pushed is a copy. */
TEST(buffer_may_be_used_again)
{
	int32_t lanes[20000], sum[20000];
	int fds[2], i, k;

	pair(fds, "");
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

TEST(int32)
{
	static const int32_t a[] = { 0, 1, -1, INT_MAX, INT_MIN, INT_MAX,
				     INT_MIN, 0x12345678 };
	static const int32_t b[] = { 0, -1, -1, 0, 0, INT_MIN, INT_MAX, -1 };
	int32_t sum[8];
	int fds[2], i, k;

	pair(fds, "");
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], i ? a : b, sizeof(a));
	}
	for (i = 0; i < 2; i++) {
		pull(fds[i], sum, sizeof(sum));
		for (k = 0; k < 8; k++)
			EXPECT_EQ(sum[k], (int64_t)a[k] + b[k]);
	}
}

TEST(overflow_is_of_its_chunk)
{
	int32_t fine[1000], over[1000], sum[1000];
	struct iovec iov = { sum, sizeof(sum) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[3], i, k;

	host_net();
	job_add(3, "");
	join_all(fds, 3);
	for (k = 0; k < 1000; k++) {
		fine[k] = k;
		over[k] = k;
	}
	/* one lane in the middle, of two ranks; a third compensates nothing */
	over[777] = 0x60000000;
	for (i = 0; i < 3; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], fine, sizeof(fine));
		push(fds[i], over, sizeof(over));
		push(fds[i], fine, sizeof(fine));
		push(fds[i], over, 777 * 4);
	}
	for (i = 0; i < 3; i++) {
		pull(fds[i], sum, sizeof(sum));
		EXPECT_EQ(sum[999], 3 * 999);
		wait_events(fds[i], POLLIN);
		EXPECT_FALSE(events_of(fds[i], 0) & POLLERR);
		EXPECT_ERRNO(recvmsg(fds[i], &msg, MSG_PEEK), EOVERFLOW);
		EXPECT_ERRNO(recvmsg(fds[i], &msg, 0), EOVERFLOW);
		pull(fds[i], sum, sizeof(sum));
		EXPECT_EQ(sum[999], 3 * 999);
		pull(fds[i], sum, 777 * 4);
		EXPECT_EQ(sum[776], 3 * 776);
		EXPECT_EQ(error_of(fds[i]), 0);
		EXPECT_EQ(info_of(fds[i]).state, ATP_JOINED);
		EXPECT_EQ(info_of(fds[i]).chunks, 4);
		/* the fragment with lane 777 and no other */
		EXPECT_EQ(info_of(fds[i]).raw, 1);
	}
	sum_works(fds, 3);
}

/* Partial sums that do not fit are no overflow if the sum does. */
TEST(int32_sum_fits_in_the_end)
{
	static const int32_t lane[] = { INT_MAX, INT_MAX, INT_MIN, INT_MIN };
	int32_t sum;
	int fds[4], i;

	host_net();
	job_add(4, "");
	join_all(fds, 4);
	for (i = 0; i < 4; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &lane[i], 4);
	}
	for (i = 0; i < 4; i++) {
		pull(fds[i], &sum, 4);
		EXPECT_EQ(sum, -2);
	}
}

/* One unit of the default scale, and what rounds to none */
#define TINY	(1 / 1e8f)
#define LESS	(3 / 1e9f)

TEST(float32)
{
	static const float a[] = { 0.5f, -1.25f, TINY, 1e10f, INFINITY,
				   LESS, 20.0f, -0.0f };
	static const float b[] = { 0.25f, 1.25f, TINY, 1e10f, 1.0f,
				   0.0f, 20.0f, -0.0f };
	float sum[8], again[8];
	int fds[2], i;

	pair(fds, "fragment 8");
	for (i = 0; i < 2; i++)
		push(fds[i], i ? b : a, sizeof(a));
	for (i = 0; i < 2; i++)
		pull(fds[i], i ? again : sum, sizeof(sum));
	EXPECT_EQ(memcmp(sum, again, sizeof(sum)), 0);
	EXPECT_TRUE(sum[0] == 0.75f);
	EXPECT_TRUE(sum[1] == 0.0f);
	EXPECT_TRUE(sum[2] == 2 * TINY);
	/* beyond 2^31 / scale: as floating point, with those beside it */
	EXPECT_TRUE(sum[3] == 2e10f);
	EXPECT_TRUE(sum[4] == INFINITY);
	EXPECT_TRUE(sum[5] == 0.0f || sum[5] == LESS);
	EXPECT_TRUE(sum[6] == 40.0f);
	EXPECT_TRUE(sum[7] == 0.0f);
	EXPECT_EQ(info_of(fds[0]).chunks, 1);
}

TEST(float32_nan)
{
	float a[2] = { NAN, INFINITY }, b[2] = { 1.0f, -INFINITY }, sum[2];
	int fds[2];

	pair(fds, "");
	push(fds[0], a, sizeof(a));
	push(fds[1], b, sizeof(b));
	pull(fds[0], sum, sizeof(sum));
	EXPECT_TRUE(isnan(sum[0]));
	EXPECT_TRUE(isnan(sum[1]));
}

TEST(scale_of_the_job)
{
	float a = 0.3f, b = 0.3f, sum;
	int fds[2];

	pair(fds, "scale 10");
	push(fds[0], &a, 4);
	push(fds[1], &b, 4);
	pull(fds[0], &sum, 4);
	EXPECT_TRUE(sum == 0.6f);
	a = 0.04f;
	push(fds[0], &a, 4);
	push(fds[1], &a, 4);
	pull(fds[0], &sum, 4);
	EXPECT_TRUE(sum == 0.0f);
}

/* The type is the chunk's, from the next sendmsg() on. */
TEST(types_alternate)
{
	int32_t whole = 1 << 30, isum;
	float real = 0.5f, fsum;
	int fds[2], i;

	pair(fds, "");
	for (i = 0; i < 2; i++) {
		push(fds[i], &real, 4);
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &whole, 4);
		set_dtype(fds[i], ATP_FLOAT32);
		push(fds[i], &real, 4);
		set_dtype(fds[i], ATP_INT32);
	}
	whole = 5;
	for (i = 0; i < 2; i++) {
		pull(fds[i], &fsum, 4);
		EXPECT_TRUE(fsum == 1.0f);
		EXPECT_ERRNO(recv(fds[i], &isum, 4, 0), EOVERFLOW);
		pull(fds[i], &fsum, 4);
		EXPECT_TRUE(fsum == 1.0f);
		push(fds[i], &whole, 4);
	}
	for (i = 0; i < 2; i++) {
		pull(fds[i], &isum, 4);
		EXPECT_EQ(isum, 10);
	}
}

TEST(info_counts)
{
	char bytes[14000] = {};		/* 10 fragments of 1,400 */
	struct atp_info info;
	int fds[2], i;

	pair(fds, "");
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

TEST(shutdown_of_a_half)
{
	int32_t lane = 1;
	int fds[2], i;

	pair(fds, "");
	EXPECT_ERRNO(shutdown(fds[0], 3), EINVAL);
	EXPECT_ERRNO(shutdown(fds[0], -1), EINVAL);
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &lane, 4);
	}
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	EXPECT_ERRNO(send(fds[0], &lane, 4, MSG_NOSIGNAL), EPIPE);
	/* results still come */
	pull(fds[0], &lane, 4);
	EXPECT_EQ(lane, 2);
	ASSERT_EQ(shutdown(fds[0], SHUT_RD), 0);
	EXPECT_EQ(recv(fds[0], &lane, 4, 0), 0);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLIN);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLRDHUP);
}

TEST(sigpipe)
{
	int32_t lane = 1;
	int fds[2], status;
	pid_t pid;

	pair(fds, "");
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		send(fds[0], &lane, 4, 0);
		_exit(0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
}

TEST(shutdown_wakes_pull)
{
	struct pusher p = {};
	pthread_t thread;
	char byte[4];
	int fds[2];

	pair(fds, "");
	p.fd = fds[0];
	p.bytes = byte;
	p.len = 4;
	ASSERT_EQ(pthread_create(&thread, NULL, pull_thread, &p), 0);
	wait_thread_asleep(&p);
	ASSERT_EQ(shutdown(fds[0], SHUT_RDWR), 0);
	pthread_join(thread, NULL);
	EXPECT_EQ(p.ret, 0);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLHUP);
}

/* Sequence numbers over many windows; chunks of 1 to 3 fragments */
TEST(many_windows)
{
	int32_t lanes[5], sum[5];
	int fds[2], i, r;

	pair(fds, "fragment 8 window 4");
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

TEST(fork_shares_the_socket)
{
	int32_t lane = 4, sum;
	int fds[2], status;
	pid_t pid;

	pair(fds, "");
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

TAP_MAIN()
