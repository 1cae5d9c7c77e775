// SPDX-License-Identifier: GPL-2.0
/* Ending by oneself: shutdown() of each half, close() at any moment. */
#include <time.h>
#include "host.h"
#include "slow.h"

TEST(refused)
{
	int fds[2], how;

	host_net();
	job_add(2, "");
	fds[0] = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(shutdown(fds[0], SHUT_WR), ENOTCONN);
	/* nor while it joins, which goes on */
	EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINPROGRESS);
	for (how = SHUT_RD; how <= SHUT_RDWR; how++)
		EXPECT_ERRNO(shutdown(fds[0], how), ENOTCONN);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINING);
	fds[1] = new_socket(0);
	ASSERT_EQ(do_connect(fds[1], JOB, 1), 0);
	wait_events(fds[0], POLLOUT);
	EXPECT_EQ(do_connect(fds[0], JOB, 0), 0);
	set_nonblock(fds[0], false);
	EXPECT_ERRNO(shutdown(fds[0], 3), EINVAL);
	EXPECT_ERRNO(shutdown(fds[0], -1), EINVAL);
	sum_works(fds, 2);
}

/* No more pushes; the results of those before still come, then the end. */
TEST(write_half)
{
	int32_t lanes[5000] = {}, lane = 1;
	int fds[2], i;

	join_pair(fds, "");
	for (i = 0; i < 2; i++)
		set_dtype(fds[i], ATP_INT32);
	lanes[4999] = 5;
	push(fds[0], lanes, sizeof(lanes));
	push(fds[0], &lane, 4);
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	EXPECT_ERRNO(send(fds[0], &lane, 4, MSG_NOSIGNAL), EPIPE);
	/* a push that fails does not wait; nothing to pull yet */
	EXPECT_EQ(events_of(fds[0], 0), POLLOUT);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_DONTWAIT), EAGAIN);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINED);

	push(fds[1], lanes, sizeof(lanes));
	push(fds[1], &lane, 4);
	pull(fds[0], lanes, sizeof(lanes));
	EXPECT_EQ(lanes[4999], 10);
	wait_events(fds[0], POLLIN);
	EXPECT_FALSE(events_of(fds[0], 0) & POLLRDHUP);
	pull(fds[0], &lane, 4);
	EXPECT_EQ(lane, 2);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLIN);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLRDHUP);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(recv(fds[0], &lane, 4, 0), 0);
	EXPECT_ERRNO(send(fds[0], &lane, 4, MSG_NOSIGNAL), EPIPE);
	EXPECT_EQ(error_of(fds[0]), 0);
	pull(fds[1], lanes, sizeof(lanes));
	pull(fds[1], &lane, 4);
	EXPECT_EQ(lane, 2);
}

/* The others learn that it will push no more when they need it. */
TEST(write_half_is_leaving)
{
	uint32_t lane = 0;
	int fds[3], i;

	host_net();
	job_add(3, "");
	join_all(fds, 3);
	for (i = 0; i < 3; i++)
		push(fds[i], &lane, 4);
	ASSERT_EQ(shutdown(fds[2], SHUT_WR), 0);
	for (i = 0; i < 3; i++)
		pull(fds[i], &lane, 4);
	wait_state(fds[2], ATP_BOUND);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINED);
	push(fds[0], &lane, 4);
	for (i = 0; i < 2; i++) {
		EXPECT_ERRNO(recv(fds[i], &lane, 4, 0), ECONNRESET);
		EXPECT_EQ(info_of(fds[i]).reason, ATP_REASON_LEFT);
		EXPECT_EQ(info_of(fds[i]).ranks, 1 << 2);
	}
	/* it has left in peace, and all can join the next run */
	EXPECT_EQ(error_of(fds[2]), 0);
	EXPECT_EQ(recv(fds[2], &lane, 4, 0), 0);
	connect_all(fds, 3);
	sum_works(fds, 3);
}

/* All have shut down: the run has ended, and nobody failed. */
TEST(write_half_of_all)
{
	uint32_t lane = 0;
	int fds[2], i;

	join_pair(fds, "");
	for (i = 0; i < 2; i++) {
		push(fds[i], &lane, 4);
		ASSERT_EQ(shutdown(fds[i], SHUT_WR), 0);
	}
	for (i = 0; i < 2; i++) {
		pull(fds[i], &lane, 4);
		EXPECT_EQ(recv(fds[i], &lane, 4, 0), 0);
		wait_state(fds[i], ATP_BOUND);
	}
	host_must("until %s -j job show %u | grep -q '\"running\":false'; do :; done",
		  ATP_TOOL, JOB);
	EXPECT_EQ(atp("-j -s job show %u | grep -q '\"aborts\":0'", JOB), 0);
}

/* Results are thrown away, which makes room; pushing goes on. */
TEST(read_half)
{
	char bytes[8192] = {};
	int32_t lane = 0;
	int fds[2], i;

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	push(fds[0], &lane, 4);
	push(fds[1], &lane, 4);
	wait_events(fds[0], POLLIN);
	ASSERT_EQ(shutdown(fds[0], SHUT_RD), 0);
	EXPECT_EQ(recv(fds[0], &lane, 4, 0), 0);
	EXPECT_EQ(recv(fds[0], &lane, 4, MSG_PEEK), 0);
	EXPECT_EQ(events_of(fds[0], 0), POLLIN | POLLRDHUP | POLLOUT);
	pull(fds[1], &lane, 4);
	for (i = 0; i < 50; i++) {
		push(fds[0], bytes, sizeof(bytes));
		push(fds[1], bytes, sizeof(bytes));
		pull(fds[1], bytes, sizeof(bytes));
	}
	EXPECT_EQ(recv(fds[0], &lane, 4, 0), 0);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINED);
	/* the next run has both halves */
	close(fds[1]);
	push(fds[0], &lane, 4);
	wait_state(fds[0], ATP_FAILED);
	fds[1] = new_socket(0);
	connect_all(fds, 2);
	sum_works(fds, 2);
}

TEST(both_halves)
{
	int32_t lane = 1;
	int fds[2];

	join_pair(fds, "");
	set_dtype(fds[0], ATP_INT32);
	set_dtype(fds[1], ATP_INT32);
	push(fds[0], &lane, 4);
	ASSERT_EQ(shutdown(fds[0], SHUT_RDWR), 0);
	EXPECT_EQ(recv(fds[0], &lane, 4, 0), 0);
	EXPECT_ERRNO(send(fds[0], &lane, 4, MSG_NOSIGNAL), EPIPE);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLHUP);
	/* what it pushed is everybody's */
	push(fds[1], &lane, 4);
	pull(fds[1], &lane, 4);
	EXPECT_EQ(lane, 2);
	wait_state(fds[0], ATP_BOUND);
}

TEST(one_half_after_the_other)
{
	int32_t lane = 1;
	int fds[2];

	join_pair(fds, "");
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	EXPECT_EQ(recv(fds[0], &lane, 4, 0), 0);
	ASSERT_EQ(shutdown(fds[0], SHUT_RD), 0);
	EXPECT_EQ(recv(fds[0], &lane, 4, 0), 0);
	EXPECT_TRUE(events_of(fds[0], 0) & POLLHUP);
}

TEST(sigpipe)
{
	int32_t lane = 1;
	int fds[2], status;
	pid_t pid;

	join_pair(fds, "");
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

TEST(wakes_pull)
{
	struct call c;
	char lane[4];
	int fds[2];

	join_pair(fds, "");
	start_pull(&c, fds[0], lane, 4);
	ASSERT_EQ(shutdown(fds[0], SHUT_RD), 0);
	EXPECT_EQ(end_call(&c), 0);
}

/* Nothing was pushed and nothing will be. */
TEST(write_half_wakes_pull)
{
	struct call c;
	char lane[4];
	int fds[2];

	join_pair(fds, "");
	start_pull(&c, fds[0], lane, 4);
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	EXPECT_EQ(end_call(&c), 0);
}

/* Two sleep for one result: one gets it, the other the end. */
TEST(last_result_wakes_all)
{
	struct call c[2];
	char lane[2][4];
	int fds[2], i;

	join_pair(fds, "");
	push(fds[0], lane[0], 4);
	for (i = 0; i < 2; i++)
		start_pull(&c[i], fds[0], lane[i], 4);
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	push(fds[1], lane[0], 4);
	EXPECT_EQ(end_call(&c[0]) + end_call(&c[1]), 4);
}

TEST(wakes_push)
{
	char bytes[8192] = {};
	struct call c;
	int fds[2];

	join_pair(fds, "");
	set_sndbuf(fds[0], 32768);
	fill(fds[0], bytes, sizeof(bytes));
	start_push(&c, fds[0], bytes, sizeof(bytes));
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	EXPECT_EQ(end_call(&c), -EPIPE);
}

/* In the midst of copying: that chunk is not pushed any more. */
TEST(while_push_copies)
{
	int32_t lane = 1;
	struct slow slow;
	struct call c;
	int fds[2];

	join_pair(fds, "");
	slow_page(&slow);
	start_push(&c, fds[0], slow.page, 4);
	slow_wait(&slow);
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	slow_fill(&slow, &lane, 4);
	EXPECT_EQ(end_call(&c), -EPIPE);
	EXPECT_EQ(info_of(fds[0]).end, 0);
}

/* Who has a result already gets it. */
TEST(while_pull_copies)
{
	int32_t lane = 21;
	struct slow slow;
	struct call c;
	int fds[2], i;

	join_pair(fds, "");
	slow_page(&slow);
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &lane, 4);
	}
	wait_events(fds[0], POLLIN);
	start_pull(&c, fds[0], slow.page, 4);
	slow_wait(&slow);
	ASSERT_EQ(shutdown(fds[0], SHUT_RDWR), 0);
	slow_fill(&slow, &lane, 4);
	EXPECT_EQ(end_call(&c), 4);
	EXPECT_EQ(*(int32_t *)slow.page, 42);
}

/* Sockets of the family, from /proc/net/protocols of this namespace */
static long sockets(void)
{
	char line[256];
	long n = -1;
	FILE *f;

	f = fopen("/proc/thread-self/net/protocols", "r");
	ASSERT_TRUE(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "ATP %*d %ld", &n) == 1)
			break;
	fclose(f);
	return n;
}

#define LANES	10000

/* A rank's part of a chunk; all three add up to that of rank 5. */
static void push_part(int fd, int rank, int chunk)
{
	static int32_t lanes[LANES];
	int i;

	for (i = 0; i < LANES; i++)
		lanes[i] = (rank + 1) * (i - 7 * chunk);
	push(fd, lanes, sizeof(lanes));
}

/* Is there one more result?  Then it is right. */
static bool pull_sum(int fd, int chunk)
{
	static int32_t lanes[LANES];
	ssize_t len;
	int i;

	len = recv(fd, lanes, sizeof(lanes), 0);
	if (len < 0)
		return false;
	ASSERT_EQ(len, sizeof(lanes));
	for (i = 0; i < LANES; i++)
		ASSERT_EQ(lanes[i], 6 * (i - 7 * chunk));
	return true;
}

/* Ranks 0 and 1 may get more, from this chunk on and no more than so many in
 * all; then an error in time that says who is to blame, and nothing stays.
 */
static void expect_end(const int *fds, const int *next, int most, int error,
		       uint32_t reason, uint32_t ranks)
{
	struct atp_info info;
	int32_t lane = 0;
	int i, chunk;

	for (i = 0; i < 2; i++) {
		set_timeout(fds[i], SO_RCVTIMEO, LIMIT_MS);
		/* it needs the other now, if it did not before */
		send(fds[i], &lane, 4, MSG_NOSIGNAL);
	}
	for (i = 0; i < 2; i++) {
		chunk = next[i];
		while (pull_sum(fds[i], chunk))
			chunk++;
		EXPECT_EQ(errno, error);
		EXPECT_LE(chunk, most);
		info = info_of(fds[i]);
		EXPECT_EQ(info.reason, reason);
		EXPECT_EQ(info.ranks, ranks);
	}
	close(fds[0]);
	close(fds[1]);
	ASSERT_EQ(sockets(), 0);
}

/* Another rank closes in the midst of a stream. */
TEST(close_at_any_moment)
{
	int fds[3], next[2] = {}, round, i;

	host_net();
	job_add(3, "window 16");
	ASSERT_EQ(sockets(), 0);
	for (round = 0; round < 12; round++) {
		join_all(fds, 3);
		for (i = 0; i < 3; i++) {
			set_dtype(fds[i], ATP_INT32);
			push_part(fds[i], i, 0);
		}
		/* with more or less of its last chunk on the way */
		push_part(fds[0], 0, 1);
		push_part(fds[1], 1, 1);
		if (round % 3 == 1)
			push_part(fds[2], 2, 1);
		next[0] = round % 3 == 2;
		if (next[0])
			ASSERT_TRUE(pull_sum(fds[0], 0));
		close(fds[2]);
		expect_end(fds, next, round % 3 == 1 ? 2 : 1, ECONNRESET,
			   ATP_REASON_LEFT, 1 << 2);
	}
}

/* Packets that take longer than any call, so that each moment is one between
 * packets
 */
static void slow_net(void)
{
	host_net();
	host_must("tc qdisc add dev lo root netem delay 2ms");
}

/* Before the first of two chunks is complete, between them, or after both: they
 * take several round trips, each of 4 ms at least.
 */
static long any_moment_us(void)
{
	return tap_below(60000);
}

TEST(close_at_random)
{
	static const int next[2] = {};
	int fds[3], round, i;

	tap_seed(2);
	slow_net();
	job_add(3, "window 16");
	for (round = 0; round < 100; round++) {
		join_all(fds, 3);
		for (i = 0; i < 3; i++) {
			set_dtype(fds[i], ATP_INT32);
			push_part(fds[i], i, 0);
			push_part(fds[i], i, 1);
		}
		usleep(any_moment_us());
		close(fds[2]);
		expect_end(fds, next, 2, ECONNRESET, ATP_REASON_LEFT, 1 << 2);
	}
}

static long now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000L + ts.tv_nsec / 1000;
}

/* What two ranks lack of a sum is as much as they have. */
static void double_sums(int server, long us)
{
	static int32_t lanes[LANES];
	long end = now_us() + us;
	ssize_t len;
	int i;

	while (now_us() < end) {
		len = recv(server, lanes, sizeof(lanes), 0);
		if (len < 0) {
			ASSERT_EQ(errno, EAGAIN);
			usleep(100);
			continue;
		}
		for (i = 0; i < len / 4; i++)
			lanes[i] *= 2;
		push(server, lanes, len);
	}
}

/* The same of the application at the PS, in the midst of what it gives */
TEST(close_at_random_at_the_ps)
{
	static const int next[2] = {};
	int fds[2], server, round, i;

	tap_seed(3);
	slow_net();
	job_add(2, "server window 16");
	for (round = 0; round < 30; round++) {
		server = new_socket(SOCK_NONBLOCK);
		EXPECT_ERRNO(do_connect(server, JOB, ATP_SERVER), EINPROGRESS);
		join_all(fds, 2);
		wait_events(server, POLLOUT);
		for (i = 0; i < 2; i++) {
			set_dtype(fds[i], ATP_INT32);
			push_part(fds[i], i, 0);
			push_part(fds[i], i, 1);
		}
		double_sums(server, any_moment_us());
		close(server);
		expect_end(fds, next, 2, EOWNERDEAD, ATP_REASON_SERVER, 0);
	}
}

/* A call of another thread holds the socket as long as it lasts. */
TEST(close_under_a_call)
{
	struct call c;
	int32_t lane = 1;
	int fds[2];

	join_pair(fds, "");
	push(fds[0], &lane, 4);
	start_pull(&c, fds[0], &lane, 4);
	close(fds[0]);
	push(fds[1], &lane, 4);
	EXPECT_EQ(end_call(&c), 4);
	/* and with it goes the socket */
	push(fds[1], &lane, 4);
	pull(fds[1], &lane, 4);
	EXPECT_ERRNO(recv(fds[1], &lane, 4, 0), ECONNRESET);
	EXPECT_EQ(info_of(fds[1]).ranks, 1 << 0);
}

TAP_MAIN()
