// SPDX-License-Identifier: GPL-2.0
/*
 * The application at the PS: what it pulls and pushes, how it comes and goes.
 * The ranks' results are compared bit for bit with what it wrote.
 */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <linux/sockios.h>
#include "host.h"
#include "slow.h"

#define LANES	350	/* of a fragment */

/* A job with two ranks and an application */
struct rack {
	int fds[2];
	int server;
};

static void join_server(struct rack *r)
{
	r->server = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(r->server, JOB, ATP_SERVER), EINPROGRESS);
	EXPECT_EQ(info_of(r->server).state, ATP_JOINING);
	EXPECT_EQ(events_of(r->server, 0), 0);
	join_all(r->fds, 2);
	wait_events(r->server, POLLOUT);
	EXPECT_EQ(do_connect(r->server, JOB, ATP_SERVER), 0);
	set_nonblock(r->server, false);
}

static void setup(struct rack *r, const char *more)
{
	char words[64] = "server ";

	host_net();
	strcat(words, more);
	job_add(2, words);
	join_server(r);
}

static uint32_t mix(uint32_t x)
{
	x = (x ^ (x >> 16)) * 0x45d9f3b;
	return x ^ (x >> 13);
}

/* Both push the same n lanes. */
static void push_both(const struct rack *r, const uint32_t *lanes, uint32_t n)
{
	push(r->fds[0], lanes, n * 4);
	push(r->fds[1], lanes, n * 4);
}

/* The application gets n lanes, answers each piece, and expects the end of the
 * chunk there and nowhere else.
 */
static void serve(int server, const uint32_t *sums, uint32_t n)
{
	static uint32_t lanes[100000];
	struct iovec iov = { lanes, sizeof(lanes) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	uint32_t at = 0, got, i;
	ssize_t len;

	while (at < n) {
		len = recvmsg(server, &msg, 0);
		ASSERT_GT(len, 0);
		got = len / 4;
		ASSERT_LE(at + got, n);
		for (i = 0; i < got; i++) {
			ASSERT_EQ(lanes[i], sums[at + i]);
			lanes[i] = mix(lanes[i]);
		}
		at += got;
		EXPECT_EQ(!!(msg.msg_flags & MSG_EOR), at == n);
		EXPECT_FALSE(msg.msg_flags & MSG_TRUNC);
		push(server, lanes, len);
	}
}

static void expect_results(const struct rack *r, const uint32_t *sums,
			   uint32_t n)
{
	uint32_t *lanes = malloc(n * 4);
	uint32_t i, k;

	for (i = 0; i < 2; i++) {
		pull(r->fds[i], lanes, n * 4);
		for (k = 0; k < n; k++)
			ASSERT_EQ(lanes[k], mix(sums[k]));
	}
	free(lanes);
}

static int dtype_of(int fd)
{
	socklen_t len = sizeof(int);
	int dtype = 0;

	ASSERT_EQ(getsockopt(fd, SOL_ATP, ATP_DTYPE, &dtype, &len), 0);
	return dtype;
}

static void integers(struct rack *r, uint32_t n, uint32_t seed)
{
	uint32_t *lanes = malloc(n * 4), *sums = malloc(n * 4), i;

	for (i = 0; i < 2; i++)
		set_dtype(r->fds[i], ATP_INT32);
	for (i = 0; i < n; i++) {
		lanes[i] = (int32_t)mix(seed + i) / 2;
		sums[i] = 2 * lanes[i];
	}
	push_both(r, lanes, n);
	serve(r->server, sums, n);
	EXPECT_EQ(dtype_of(r->server), ATP_INT32);
	expect_results(r, sums, n);
	free(lanes);
	free(sums);
}

/* Chunks of any length, longer than the window, too */
TEST(exact)
{
	static const uint32_t lengths[] = {
		1, 2, LANES - 1, LANES, LANES + 1, 20 * LANES, 99999,
	};
	struct sockaddr_atp addr;
	socklen_t len = sizeof(addr);
	struct atp_info info;
	struct rack r;
	uint32_t i;

	setup(&r, "window 64");
	for (i = 0; i < 7; i++)
		integers(&r, lengths[i], 1000 * i);
	info = info_of(r.server);
	EXPECT_EQ(info.state, ATP_JOINED);
	EXPECT_EQ(info.job, JOB);
	EXPECT_EQ(info.rank, ATP_SERVER);
	EXPECT_EQ(info.workers, 2);
	EXPECT_EQ(info.una, info.nxt);
	EXPECT_EQ(info.una, info.end);
	EXPECT_EQ(info.una, info_of(r.fds[0]).una);
	EXPECT_EQ(getsockname(r.server, (struct sockaddr *)&addr, &len), 0);
	EXPECT_EQ(len, sizeof(addr));
	EXPECT_EQ(addr.satp_job, JOB);
	EXPECT_EQ(addr.satp_rank, ATP_SERVER);
	EXPECT_EQ(getpeername(r.server, (struct sockaddr *)&addr, &len), 0);
	EXPECT_EQ(addr.satp_rank, ATP_SERVER);
}

/* What comes back is no multiple of anything: any bits arrive. */
TEST(floats)
{
	static const float in[] = { 0.5, 1 / 1e8, -3, 1e20, 0 };
	static const float sums[] = { 1, 2 / 1e8, -6, 2e20, 0 };
	static const uint32_t out[] = {
		0x7f800001, 0x00000001, 0xffffffff, 0x3f800001, 0x80000000,
	};
	uint32_t lanes[5], i;
	struct rack r;
	float got[5];

	setup(&r, "");
	for (i = 0; i < 4; i++) {
		/* with and without the value that does not fit */
		push(r.fds[0], in, i % 2 ? 20 : 12);
		push(r.fds[1], in, i % 2 ? 20 : 12);
		pull(r.server, got, i % 2 ? 20 : 12);
		EXPECT_EQ(dtype_of(r.server), ATP_FLOAT32);
		EXPECT_EQ(memcmp(got, sums, i % 2 ? 20 : 12), 0);
		push(r.server, out, i % 2 ? 20 : 12);
		pull(r.fds[0], lanes, i % 2 ? 20 : 12);
		EXPECT_EQ(memcmp(lanes, out, i % 2 ? 20 : 12), 0);
		pull(r.fds[1], lanes, i % 2 ? 20 : 12);
		EXPECT_EQ(memcmp(lanes, out, i % 2 ? 20 : 12), 0);
	}
}

/* Several sums are out; results go in their order, in other portions. */
TEST(portions)
{
	uint32_t lanes[3 * LANES] = {}, two[3] = { 1, 2, 3 };
	struct rack r;
	uint32_t i;

	setup(&r, "");
	for (i = 0; i < 2; i++)
		set_dtype(r.fds[i], ATP_INT32);
	push_both(&r, lanes, 2 * LANES);
	push_both(&r, two, 3);
	EXPECT_ERRNO(send(r.server, lanes, 4, 0), EAGAIN);
	EXPECT_EQ(events_of(r.server, 0) & POLLOUT, 0);
	wait_events(r.server, POLLIN);
	/* a fragment is not divided, and chunks are not joined */
	pull(r.server, lanes, LANES * 4);
	EXPECT_TRUE(events_of(r.server, 0) & POLLOUT);
	wait_events(r.server, POLLIN);
	pull(r.server, lanes, LANES * 4);
	wait_events(r.server, POLLIN);
	pull(r.server, lanes, 12);
	EXPECT_EQ(lanes[2], 6);
	EXPECT_ERRNO(recv(r.server, lanes, 4, MSG_DONTWAIT), EAGAIN);
	/* whole fragments, none that was not pulled */
	EXPECT_ERRNO(send(r.server, lanes, 4, 0), EINVAL);
	EXPECT_ERRNO(send(r.server, lanes, LANES * 4 + 4, 0), EINVAL);
	EXPECT_ERRNO(send(r.server, lanes, 2 * LANES * 4 + 16, 0), EINVAL);
	for (i = 0; i < 2 * LANES + 3; i++)
		lanes[i] = i;
	push(r.server, lanes, LANES * 4);
	EXPECT_ERRNO(recv(r.fds[0], lanes, 4, MSG_DONTWAIT), EAGAIN);
	push(r.server, lanes + LANES, (LANES + 3) * 4);
	EXPECT_ERRNO(send(r.server, lanes, 12, 0), EAGAIN);
	for (i = 0; i < 2; i++) {
		pull(r.fds[i], lanes, 2 * LANES * 4);
		EXPECT_EQ(lanes[2 * LANES - 1], 2 * LANES - 1);
		pull(r.fds[i], lanes, 12);
		EXPECT_EQ(lanes[2], 2 * LANES + 2);
	}
}

/* Calls that wait, and one that would wait for ever */
TEST(waiting)
{
	uint32_t lanes[4] = { 1, 2, 3, 4 }, sum[4];
	struct call c;
	struct rack r;

	setup(&r, "");
	EXPECT_ERRNO(recv(r.server, sum, 16, MSG_DONTWAIT), EAGAIN);
	set_timeout(r.server, SO_RCVTIMEO, 20);
	EXPECT_ERRNO(recv(r.server, sum, 16, 0), EAGAIN);
	set_timeout(r.server, SO_RCVTIMEO, 0);
	set_dtype(r.fds[0], ATP_INT32);
	set_dtype(r.fds[1], ATP_INT32);
	catch_signal(SIGUSR1, 0);
	start_pull(&c, r.server, sum, 16);
	signal_asleep(&c, SIGUSR1);
	EXPECT_EQ(end_call(&c), -EINTR);
	start_pull(&c, r.server, sum, 16);
	push_both(&r, lanes, 4);
	EXPECT_EQ(end_call(&c), 16);
	EXPECT_EQ(sum[3], 8);
	wait_single_thread();
	EXPECT_ERRNO(recv(r.server, sum, 16, 0), EMSGSIZE);
	EXPECT_ERRNO(recv(r.server, sum, 16, MSG_DONTWAIT), EAGAIN);
	push(r.server, lanes, 16);
	pull(r.fds[0], sum, 16);
	EXPECT_EQ(sum[3], 4);

	EXPECT_EQ(queue_of(r.server, SIOCINQ), 0);
	push_both(&r, lanes, 4);
	wait_events(r.server, POLLIN);
	EXPECT_EQ(queue_of(r.server, SIOCINQ), 16);
	pull(r.server, sum, 16);
	EXPECT_EQ(queue_of(r.server, SIOCINQ), 0);
}

/* What comes next; what was pushed is the PS's, and no more on its way there */
TEST(queues)
{
	uint32_t lanes[2 * LANES + 3] = {}, i;
	struct rack r;

	setup(&r, "");
	EXPECT_EQ(queue_of(r.server, SIOCINQ), 0);
	push_both(&r, lanes, 2 * LANES + 3);
	for (i = 0; info_of(r.server).end != 3; i++) {
		ASSERT_LT(i, LIMIT_MS);
		poll(NULL, 0, 1);
	}
	EXPECT_EQ(queue_of(r.server, SIOCINQ), sizeof(lanes));
	/* a piece that was looked at is what comes next */
	ASSERT_EQ(recv(r.server, lanes, LANES * 4, MSG_PEEK), LANES * 4);
	EXPECT_EQ(queue_of(r.server, SIOCINQ), LANES * 4);
	pull(r.server, lanes, LANES * 4);
	EXPECT_EQ(queue_of(r.server, SIOCINQ), (LANES + 3) * 4);
	EXPECT_EQ(queue_of(r.server, SIOCOUTQ), 0);
	push(r.server, lanes, LANES * 4);
	EXPECT_EQ(queue_of(r.server, SIOCOUTQ), 0);
	EXPECT_EQ(queue_of(r.fds[0], SIOCOUTQ), sizeof(lanes));
	pull(r.server, lanes, (LANES + 3) * 4);
	EXPECT_EQ(queue_of(r.server, SIOCINQ), 0);
	push(r.server, lanes, (LANES + 3) * 4);
	for (i = 0; i < 2; i++)
		pull(r.fds[i], lanes, sizeof(lanes));
	/* what can be pulled no more does not count */
	push_both(&r, lanes, 1);
	wait_events(r.server, POLLIN);
	ASSERT_EQ(atp("job del 7"), 0);
	wait_state(r.server, ATP_FAILED);
	EXPECT_EQ(queue_of(r.server, SIOCINQ), 0);
}

/* A sum that nobody got stays. */
TEST(peek_and_fault)
{
	uint32_t lanes[4] = { 1, 2, 3, 4 }, sum[4] = {};
	struct rack r;
	void *bad;

	setup(&r, "");
	bad = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(bad, MAP_FAILED);
	set_dtype(r.fds[0], ATP_INT32);
	set_dtype(r.fds[1], ATP_INT32);
	push_both(&r, lanes, 4);
	ASSERT_EQ(recv(r.server, sum, 16, MSG_PEEK), 16);
	EXPECT_EQ(sum[3], 8);
	EXPECT_ERRNO(send(r.server, lanes, 16, 0), EAGAIN);
	EXPECT_ERRNO(recv(r.server, bad, 16, 0), EFAULT);
	EXPECT_TRUE(events_of(r.server, 0) & POLLIN);
	EXPECT_ERRNO(send(r.server, lanes, 16, 0), EAGAIN);
	/* what is cut off is lost, but not its length */
	EXPECT_EQ(recv(r.server, sum, 4, MSG_TRUNC), 16);
	EXPECT_ERRNO(send(r.server, bad, 16, 0), EFAULT);
	push(r.server, lanes, 16);
	pull(r.fds[1], sum, 16);
	EXPECT_EQ(sum[3], 4);
}

/* One thread pulls and does not get it; another has answered meanwhile, without
 * knowing what.
 */
TEST(answered_unseen)
{
	uint32_t lanes[4] = { 1, 2, 3, 4 }, sum[4];
	struct slow slow;
	struct call c;
	struct rack r;
	uint32_t i;

	setup(&r, "");
	slow_page(&slow);
	for (i = 0; i < 2; i++)
		set_dtype(r.fds[i], ATP_INT32);
	push_both(&r, lanes, 4);
	wait_events(r.server, POLLIN);
	start_pull(&c, r.server, slow.page, 16);
	slow_wait(&slow);
	push(r.server, lanes, 16);
	slow_unmap(&slow);
	EXPECT_EQ(end_call(&c), -EFAULT);
	/* nothing is due */
	EXPECT_ERRNO(send(r.server, lanes, 4, 0), EAGAIN);
	EXPECT_ERRNO(recv(r.server, sum, 16, MSG_DONTWAIT), EAGAIN);
	for (i = 0; i < 2; i++) {
		pull(r.fds[i], sum, 16);
		EXPECT_EQ(sum[3], 4);
	}
	integers(&r, 1000, 1);
}

/* An int32 sum that does not fit */
TEST(overflow)
{
	int32_t lanes[2] = { INT32_MAX, INT32_MIN }, sum[2];
	struct rack r;
	uint32_t i;

	setup(&r, "");
	set_dtype(r.fds[0], ATP_INT32);
	set_dtype(r.fds[1], ATP_INT32);
	push_both(&r, (uint32_t *)lanes, 2);
	pull(r.server, sum, 8);
	EXPECT_EQ(sum[0], INT32_MAX);
	EXPECT_EQ(sum[1], INT32_MIN);
	push(r.server, sum, 8);
	for (i = 0; i < 2; i++)
		EXPECT_ERRNO(recv(r.fds[i], sum, 8, 0), EOVERFLOW);
	integers(&r, 10, 1);
}

/* Who may be it, and who has to be there */
TEST(joining)
{
	struct rack r;
	int fd;

	host_net();
	job_add(2, "");
	fd = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(fd, JOB, ATP_SERVER), EINVAL);
	ASSERT_EQ(atp("job del 7"), 0);
	/* the PS is another host */
	host_to_nowhere();
	ASSERT_EQ(atp("job add 7 ps 10.1.0.254 worker 10.1.0.1 server"), 0);
	EXPECT_ERRNO(do_connect(fd, JOB, ATP_SERVER), EADDRNOTAVAIL);
	ASSERT_EQ(atp("job del 7"), 0);

	job_add(2, "server");
	EXPECT_ERRNO(do_connect(fd, JOB, ATP_SERVER - 1), EINVAL);
	join_server(&r);
	EXPECT_ERRNO(do_connect(fd, JOB, ATP_SERVER), EADDRINUSE);
	EXPECT_ERRNO(do_connect(r.server, JOB, ATP_SERVER), EISCONN);
	integers(&r, 10, 1);
}

/* It ends: whoever needs it is told, and the next run begins with another. */
TEST(death)
{
	struct atp_info info;
	uint32_t lane = 1, i;
	struct call c;
	struct rack r;

	setup(&r, "");
	integers(&r, 10, 1);
	push_both(&r, &lane, 1);
	start_pull(&c, r.fds[0], &lane, 4);
	close(r.server);
	EXPECT_EQ(end_call(&c), -EOWNERDEAD);
	wait_state(r.fds[1], ATP_FAILED);
	EXPECT_EQ(error_of(r.fds[1]), EOWNERDEAD);
	for (i = 0; i < 2; i++) {
		info = info_of(r.fds[i]);
		EXPECT_EQ(info.reason, ATP_REASON_SERVER);
		EXPECT_EQ(info.ranks, 0);
		close(r.fds[i]);
	}
}

/* By shutdown(), of either half; which is not felt until it is needed */
TEST(shut_down)
{
	static const int halves[] = { SHUT_WR, SHUT_RD };
	uint32_t lane = 1, i;
	struct rack r;

	setup(&r, "");
	for (i = 0; i < 2; i++) {
		integers(&r, 1000, 2);
		ASSERT_EQ(shutdown(r.server, halves[i]), 0);
		EXPECT_EQ(recv(r.server, &lane, 4, 0), 0);
		EXPECT_ERRNO(send(r.server, &lane, 4, MSG_NOSIGNAL), EPIPE);
		EXPECT_EQ(info_of(r.fds[0]).state, ATP_JOINED);
		push(r.fds[0], &lane, 4);
		EXPECT_ERRNO(recv(r.fds[0], &lane, 4, 0), EOWNERDEAD);
		wait_state(r.fds[1], ATP_FAILED);
		close(r.server);
		close(r.fds[0]);
		close(r.fds[1]);
		join_server(&r);
	}
}

/* The others end. */
TEST(ends)
{
	struct atp_info info;
	uint32_t lane = 1;
	struct call c;
	struct rack r;

	setup(&r, "");
	integers(&r, 10, 1);
	start_pull(&c, r.server, &lane, 4);
	close(r.fds[0]);
	close(r.fds[1]);
	EXPECT_EQ(end_call(&c), 0);
	EXPECT_TRUE(events_of(r.server, 0) & POLLHUP);
	EXPECT_ERRNO(send(r.server, &lane, 4, MSG_NOSIGNAL), ENOTCONN);
	close(r.server);

	join_server(&r);
	push(r.fds[0], &lane, 4);
	close(r.fds[1]);
	wait_events(r.server, POLLIN);
	EXPECT_ERRNO(recv(r.server, &lane, 4, 0), ECONNRESET);
	info = info_of(r.server);
	EXPECT_EQ(info.state, ATP_FAILED);
	EXPECT_EQ(info.reason, ATP_REASON_LEFT);
	EXPECT_EQ(info.ranks, 2);
	close(r.fds[0]);
	close(r.server);

	join_server(&r);
	integers(&r, 10, 1);
	start_pull(&c, r.server, &lane, 4);
	ASSERT_EQ(atp("job del 7"), 0);
	EXPECT_EQ(end_call(&c), -EIDRM);
	EXPECT_EQ(info_of(r.server).reason, ATP_REASON_REMOVED);
	EXPECT_ERRNO(do_connect(r.server, JOB, ATP_SERVER), ENOENT);
	job_add(2, "server");
	close(r.server);
	close(r.fds[0]);
	close(r.fds[1]);
	join_server(&r);
	integers(&r, 10, 1);
}

/* Nobody has looked at a run before all ranks left it in peace: it was joined,
 * and is over.
 */
TEST(missed)
{
	uint32_t lane, i;
	struct rack r;

	host_net();
	job_add(2, "server");
	r.server = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(r.server, JOB, ATP_SERVER), EINPROGRESS);
	join_all(r.fds, 2);
	close(r.fds[0]);
	close(r.fds[1]);
	for (i = 0; !(events_of(r.server, 0) & POLLHUP); i++) {
		ASSERT_LT(i, LIMIT_MS);
		poll(NULL, 0, 1);
	}
	EXPECT_EQ(do_connect(r.server, JOB, ATP_SERVER), 0);
	EXPECT_EQ(recv(r.server, &lane, 4, 0), 0);
	/* once; the next one is another run */
	EXPECT_ERRNO(do_connect(r.server, JOB, ATP_SERVER), EINPROGRESS);
	join_all(r.fds, 2);
	wait_events(r.server, POLLOUT);
	set_nonblock(r.server, false);
	integers(&r, 10, 1);
}

/* Who waits by poll() alone has not been told by connect(), and needs it for
 * the next run.
 */
TEST(joins_again)
{
	uint32_t lane;
	struct rack r;

	host_net();
	job_add(2, "server");
	r.server = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(r.server, JOB, ATP_SERVER), EINPROGRESS);
	join_all(r.fds, 2);
	wait_events(r.server, POLLOUT);
	set_nonblock(r.server, false);
	integers(&r, 10, 1);
	close(r.fds[0]);
	close(r.fds[1]);
	EXPECT_EQ(recv(r.server, &lane, 4, 0), 0);
	set_nonblock(r.server, true);
	EXPECT_ERRNO(do_connect(r.server, JOB, ATP_SERVER), EINPROGRESS);
	join_all(r.fds, 2);
	wait_events(r.server, POLLOUT);
	/* and nor is it told of a run that it has ended itself */
	shutdown(r.server, SHUT_RDWR);
	close(r.fds[0]);
	close(r.fds[1]);
	EXPECT_ERRNO(do_connect(r.server, JOB, ATP_SERVER), EINPROGRESS);
	join_all(r.fds, 2);
	wait_events(r.server, POLLOUT);
	set_nonblock(r.server, false);
	integers(&r, 10, 1);
}

/* The timer of a worker that becomes the server would still say that it is
 * there, from the address of a rank that there is not.
 */
TEST(was_a_worker)
{
	struct rack r;

	host_net();
	ASSERT_EQ(atp("job add 8 ps 127.0.0.1 worker 127.0.0.2 timeout 1s"), 0);
	job_add(2, "server");
	r.server = new_socket(0);
	EXPECT_EQ(do_connect(r.server, 8, 0), 0);
	ASSERT_EQ(atp("job del 8"), 0);
	wait_state(r.server, ATP_FAILED);
	set_nonblock(r.server, true);
	EXPECT_ERRNO(do_connect(r.server, JOB, ATP_SERVER), EINPROGRESS);
	/* longer than that timer takes */
	EXPECT_EQ(events_of(r.server, 2000), 0);
	EXPECT_EQ(info_of(r.server).state, ATP_JOINING);
	join_all(r.fds, 2);
	wait_events(r.server, POLLOUT);
	set_nonblock(r.server, false);
	integers(&r, 10, 1);
	EXPECT_EQ(events_of(r.server, 2000) & (POLLERR | POLLHUP), 0);
	integers(&r, 10, 2);
}

/* Beside what was pulled a result of as many bytes fits the send buffer. */
TEST(as_many_as_pulled)
{
	static uint32_t lanes[10 * LANES];
	socklen_t size = sizeof(int);
	struct rack r;
	ssize_t len;
	int room;
	uint32_t at;

	setup(&r, "window 64");
	set_sndbuf(r.server, 4 * LANES * 4);
	ASSERT_EQ(getsockopt(r.server, SOL_SOCKET, SO_SNDBUF, &room, &size), 0);
	push_both(&r, lanes, 10 * LANES);
	/* what workers send before they hear anything */
	for (at = 0; info_of(r.server).end != 10; at++) {
		ASSERT_LT(at, LIMIT_MS);
		poll(NULL, 0, 1);
	}
	for (at = 0; at < 10 * LANES; at += len / 4) {
		len = recv(r.server, lanes, sizeof(lanes), 0);
		ASSERT_GT(len, 0);
		ASSERT_LE(len, room / 2);
		/* what is looked at counts, too */
		recv(r.server, lanes, sizeof(lanes), MSG_PEEK | MSG_DONTWAIT);
		push(r.server, lanes, len);
	}
	pull(r.fds[0], lanes, sizeof(lanes));
	pull(r.fds[1], lanes, sizeof(lanes));
}

/* It is slow, and told of; then it was too slow. */
TEST(patience)
{
	struct atp_info info;
	uint32_t lane = 1, i;
	struct rack r;

	setup(&r, "");
	push_both(&r, &lane, 1);
	pull(r.server, &lane, 4);
	/* a worker asks, and the PS says who it is */
	for (i = 0; !(info_of(r.fds[0]).flags & ATP_INFO_SERVER); i++) {
		ASSERT_LT(i, LIMIT_MS);
		poll(NULL, 0, 1);
	}
	EXPECT_TRUE(info_of(r.server).flags & ATP_INFO_SERVER);
	EXPECT_EQ(atp("job stall | grep -q 'waits for the server'"), 0);
	EXPECT_EQ(atp("-json job show | grep -q '\"server_waiting\":true'"), 0);
	ASSERT_EQ(atp("job set 7 patience 100ms"), 0);
	EXPECT_ERRNO(recv(r.fds[0], &lane, 4, 0), ETIME);
	info = info_of(r.fds[0]);
	EXPECT_EQ(info.reason, ATP_REASON_LATE);
	EXPECT_EQ(info.ranks, 0);
	wait_state(r.server, ATP_FAILED);
	EXPECT_ERRNO(send(r.server, &lane, 4, MSG_NOSIGNAL), ETIME);
}

TAP_MAIN()
