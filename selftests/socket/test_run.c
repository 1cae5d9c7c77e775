// SPDX-License-Identifier: GPL-2.0
/* How a run ends, whom everybody blames, and what comes after. */
#include <sched.h>
#include <sys/syscall.h>
#include "host.h"

static void pair(int *fds, uint32_t workers, const char *more)
{
	host_net();
	job_add(workers, more);
	join_all(fds, workers);
}

static void expect_failed(int fd, uint32_t reason, uint32_t ranks)
{
	struct atp_info info = info_of(fd);

	EXPECT_EQ(info.state, ATP_FAILED);
	EXPECT_EQ(info.reason, reason);
	EXPECT_EQ(info.ranks, ranks);
}

/* Every call of a failed run says so. */
static void expect_error(int fd, int error)
{
	struct sockaddr_atp addr;
	socklen_t len = sizeof(addr);
	uint32_t lane = 0;
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_ERRNO(send(fd, &lane, 4, MSG_NOSIGNAL), error);
		EXPECT_ERRNO(recv(fd, &lane, 4, 0), error);
	}
	EXPECT_ERRNO(getpeername(fd, (struct sockaddr *)&addr, &len), ENOTCONN);
}

TEST(close_while_others_wait)
{
	uint32_t lane = 0;
	int fds[4], i;

	pair(fds, 4, "");
	for (i = 0; i < 3; i++)
		push(fds[i], &lane, 4);
	close(fds[3]);
	for (i = 0; i < 3; i++) {
		EXPECT_ERRNO(recv(fds[i], &lane, 4, 0), ECONNRESET);
		expect_failed(fds[i], ATP_REASON_LEFT, 1 << 3);
		expect_error(fds[i], ECONNRESET);
	}
}

/* It closes first, the others need it later. */
TEST(needed_after_close)
{
	uint32_t lane = 0;
	int fds[3], i;

	pair(fds, 3, "");
	sum_works(fds, 3);
	close(fds[0]);
	/* nobody needs it: no harm */
	EXPECT_EQ(events_of(fds[1], 0) & (POLLERR | POLLHUP), 0);
	push(fds[1], &lane, 4);
	for (i = 1; i < 3; i++) {
		wait_state(fds[i], ATP_FAILED);
		EXPECT_ERRNO(recv(fds[i], &lane, 4, 0), ECONNRESET);
		expect_failed(fds[i], ATP_REASON_LEFT, 1 << 0);
	}
}

/* Who has pushed nothing and waits for a result learns that there is none, but
 * the run goes on: it may have all that it wants.  The next push ends it.
 */
TEST(close_while_one_only_pulls)
{
	uint32_t lane = 0, result;
	struct call c;
	int fds[3], i;

	pair(fds, 3, "");
	start_pull(&c, fds[0], &result, 4);
	close(fds[2]);
	EXPECT_EQ(end_call(&c), -ECONNRESET);
	for (i = 0; i < 2; i++) {
		wait_events(fds[i], POLLRDHUP);
		EXPECT_EQ(events_of(fds[i], 0), POLLIN | POLLOUT | POLLRDHUP);
		EXPECT_ERRNO(recv(fds[i], &lane, 4, 0), ECONNRESET);
		EXPECT_ERRNO(recv(fds[i], &lane, 4, MSG_DONTWAIT | MSG_PEEK),
			     ECONNRESET);
		EXPECT_EQ(info_of(fds[i]).state, ATP_JOINED);
	}
	EXPECT_EQ(atp("-j -s job show %u | grep -q '\"aborts\":0'", JOB), 0);
	push(fds[0], &lane, 4);
	for (i = 0; i < 2; i++) {
		wait_state(fds[i], ATP_FAILED);
		EXPECT_ERRNO(recv(fds[i], &lane, 4, 0), ECONNRESET);
		expect_failed(fds[i], ATP_REASON_LEFT, 1 << 2);
		expect_error(fds[i], ECONNRESET);
	}
}

TEST(killed_process)
{
	int fds[2], status, fd;
	uint32_t lane = 0;
	char ready;
	pid_t pid;
	int p[2];

	host_net();
	job_add(2, "");
	ASSERT_EQ(pipe(p), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		fd = socket(AF_ATP, SOCK_SEQPACKET, 0);
		if (do_connect(fd, JOB, 1) || write(p[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	fds[0] = new_socket(0);
	ASSERT_EQ(do_connect(fds[0], JOB, 0), 0);
	ASSERT_EQ(read(p[0], &ready, 1), 1);
	push(fds[0], &lane, 4);
	kill(pid, SIGKILL);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), ECONNRESET);
	expect_failed(fds[0], ATP_REASON_LEFT, 1 << 1);
}

/* What was complete before can still be pulled. */
TEST(results_survive_the_run)
{
	int32_t lane = 21;
	int fds[2], i;

	pair(fds, 2, "");
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &lane, 4);
	}
	wait_events(fds[0], POLLIN);
	push(fds[0], &lane, 4);
	close(fds[1]);
	wait_state(fds[0], ATP_FAILED);
	EXPECT_EQ(recv(fds[0], &lane, 4, 0), 4);
	EXPECT_EQ(lane, 42);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), ECONNRESET);
}

/* All have what they want and close one after the other. */
TEST(quiet_end)
{
	int fds[3], i;

	pair(fds, 3, "");
	sum_works(fds, 3);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(info_of(fds[i]).state, ATP_JOINED);
		EXPECT_EQ(error_of(fds[i]), 0);
		close(fds[i]);
	}
	EXPECT_EQ(atp("-j job show %u | grep -q '\"running\":false'", JOB), 0);
	EXPECT_EQ(atp("-j -s job show %u | grep -q '\"aborts\":0'", JOB), 0);
}

struct caller {
	int fd;
	bool sends;
	pid_t tid;
	int error;
};

static void *call_thread(void *arg)
{
	static char bytes[60000];
	struct caller *c = arg;
	ssize_t ret;

	__atomic_store_n(&c->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	if (c->sends)
		ret = send(c->fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
	else
		ret = recv(c->fd, bytes, sizeof(bytes), 0);
	c->error = ret < 0 ? errno : 0;
	return NULL;
}

TEST(job_deleted)
{
	struct caller c[2] = {};
	pthread_t thread[2];
	char bytes[60000] = {};
	int fds[3], i;

	pair(fds, 3, "");
	/* one sleeps in recv(), one in send(), one does nothing */
	set_sndbuf(fds[1], 32768);
	push(fds[1], bytes, sizeof(bytes));
	c[1].sends = true;
	for (i = 0; i < 2; i++) {
		c[i].fd = fds[i];
		pthread_create(&thread[i], NULL, call_thread, &c[i]);
		while (!__atomic_load_n(&c[i].tid, __ATOMIC_ACQUIRE))
			sched_yield();
		wait_asleep(c[i].tid);
	}
	ASSERT_EQ(atp("job del %u", JOB), 0);
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(c[i].error, EIDRM);
	}
	for (i = 0; i < 3; i++) {
		expect_failed(fds[i], ATP_REASON_REMOVED, 0);
		expect_error(fds[i], EIDRM);
	}
	for (i = 0; i < 3; i++)
		EXPECT_ERRNO(do_connect(fds[i], JOB, i), ENOENT);
}

TEST(job_deleted_while_joining)
{
	int fd;

	host_net();
	job_add(2, "");
	fd = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), EINPROGRESS);
	ASSERT_EQ(atp("job del %u", JOB), 0);
	wait_events(fd, POLLOUT);
	EXPECT_EQ(error_of(fd), EIDRM);
	EXPECT_EQ(info_of(fd).state, ATP_FAILED);
}

TEST(job_deleted_after_bind)
{
	int fd;

	host_net();
	job_add(1, "");
	fd = new_socket(0);
	ASSERT_EQ(do_bind(fd, JOB, 0), 0);
	ASSERT_EQ(atp("job del %u", JOB), 0);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), ENOENT);
}

/* The host knows a job of this ID again, so the next run can be joined. */
TEST(job_added_again)
{
	int fds[2], i;

	pair(fds, 2, "");
	ASSERT_EQ(atp("job del %u", JOB), 0);
	for (i = 0; i < 2; i++)
		expect_error(fds[i], EIDRM);
	job_add(2, "");
	connect_all(fds, 2);
	sum_works(fds, 2);
}

/* A job of the same ID that is another one does not get the old's sockets. */
TEST(job_replaced)
{
	int old, fd;

	pair(&old, 1, "");
	ASSERT_EQ(atp("job del %u", JOB), 0);
	job_add(1, "fragment 64");
	fd = new_socket(0);
	EXPECT_EQ(do_connect(fd, JOB, 0), 0);
	EXPECT_EQ(info_of(fd).fragment, 64);
	EXPECT_EQ(info_of(old).state, ATP_FAILED);
	close(old);
	sum_works(&fd, 1);
}

static void fail_run(int *fds, uint32_t workers)
{
	uint32_t lane = 0, i;

	/* rank 0 pushes what the last never will */
	push(fds[0], &lane, 4);
	close(fds[workers - 1]);
	for (i = 0; i < workers - 1; i++)
		wait_state(fds[i], ATP_FAILED);
	fds[workers - 1] = new_socket(0);
}

TEST(joins_again_on_the_same_socket)
{
	uint32_t epoch, lane;
	int fds[3], i;

	pair(fds, 3, "");
	for (i = 0; i < 5; i++) {
		sum_works(fds, 3);
		epoch = info_of(fds[0]).epoch;
		fail_run(fds, 3);
		EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), ECONNRESET);
		EXPECT_ERRNO(recv(fds[1], &lane, 4, 0), ECONNRESET);
		connect_all(fds, 3);
		EXPECT_NE(info_of(fds[0]).epoch, epoch);
		EXPECT_EQ(info_of(fds[0]).epoch, info_of(fds[2]).epoch);
		EXPECT_EQ(info_of(fds[0]).reason, 0);
		EXPECT_EQ(info_of(fds[0]).ranks, 0);
		EXPECT_EQ(info_of(fds[0]).una, 0);
		EXPECT_EQ(info_of(fds[0]).sent, 0);
		EXPECT_EQ(info_of(fds[0]).chunks, 0);
	}
	sum_works(fds, 3);
}

/* The error of the run before that nobody has fetched is not the next one's. */
TEST(old_error_does_not_reach_the_next_run)
{
	uint32_t lane = 0;
	int fds[2];

	pair(fds, 2, "");
	fail_run(fds, 2);
	connect_all(fds, 2);
	EXPECT_EQ(events_of(fds[0], 0), POLLOUT);
	push(fds[0], &lane, 4);
	push(fds[1], &lane, 4);
	pull(fds[0], &lane, 4);
	pull(fds[1], &lane, 4);
	EXPECT_EQ(error_of(fds[0]), 0);
}

/* Results that nobody has pulled end with the join of the next run. */
TEST(old_results_do_not_reach_the_next_run)
{
	int32_t lane = 1, i;
	int fds[2];

	pair(fds, 2, "");
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &lane, 4);
	}
	wait_events(fds[0], POLLIN);
	fail_run(fds, 2);
	EXPECT_EQ(error_of(fds[0]), ECONNRESET);
	connect_all(fds, 2);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, MSG_DONTWAIT), EAGAIN);
	sum_works(fds, 2);
}

TEST(joins_again_nonblocking)
{
	uint32_t lane;
	int fds[2], i;

	host_net();
	job_add(2, "");
	fds[0] = new_socket(SOCK_NONBLOCK);
	for (i = 0; i < 3; i++) {
		EXPECT_ERRNO(do_connect(fds[0], JOB, 0), EINPROGRESS);
		ASSERT_EQ(info_of(fds[0]).state, ATP_JOINING);
		fds[1] = new_socket(0);
		ASSERT_EQ(do_connect(fds[1], JOB, 1), 0);
		wait_events(fds[0], POLLOUT);
		EXPECT_EQ(error_of(fds[0]), 0);
		set_nonblock(fds[0], false);
		sum_works(fds, 2);
		set_nonblock(fds[0], true);
		push(fds[0], &lane, 4);
		close(fds[1]);
		wait_state(fds[0], ATP_FAILED);
		EXPECT_EQ(error_of(fds[0]), ECONNRESET);
	}
}

TEST(what_was_refused_is_forgotten)
{
	char bytes[60000] = {};
	int fds[2];

	pair(fds, 2, "");
	set_sndbuf(fds[0], 32768);
	push(fds[0], bytes, sizeof(bytes));
	EXPECT_ERRNO(send(fds[0], bytes, sizeof(bytes), MSG_DONTWAIT), EAGAIN);
	EXPECT_FALSE(events_of(fds[0], 0) & POLLOUT);
	fail_run(fds, 2);
	EXPECT_EQ(error_of(fds[0]), ECONNRESET);
	connect_all(fds, 2);
	/* all is room again */
	EXPECT_EQ(events_of(fds[0], 0), POLLOUT);
	EXPECT_EQ(send(fds[0], bytes, sizeof(bytes), MSG_DONTWAIT),
		  sizeof(bytes));
}

TEST(next_run_has_a_new_epoch)
{
	uint32_t epoch[4];
	int fds[2], i, k;

	host_net();
	job_add(2, "");
	for (i = 0; i < 4; i++) {
		join_all(fds, 2);
		sum_works(fds, 2);
		epoch[i] = info_of(fds[0]).epoch;
		for (k = 0; k < i; k++)
			EXPECT_NE(epoch[i], epoch[k]);
		close(fds[0]);
		close(fds[1]);
	}
	EXPECT_EQ(atp("-j -s job show %u | grep -q '\"runs\":4'", JOB), 0);
}

/* Who has left may wait for the next run before the others have left. */
TEST(early_for_the_next_run)
{
	int fds[2], early;
	uint32_t epoch;

	pair(fds, 2, "");
	sum_works(fds, 2);
	epoch = info_of(fds[0]).epoch;
	close(fds[0]);
	early = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(early, JOB, 0), EINPROGRESS);
	EXPECT_EQ(info_of(fds[1]).state, ATP_JOINED);
	EXPECT_EQ(error_of(fds[1]), 0);
	close(fds[1]);
	fds[0] = early;
	fds[1] = new_socket(0);
	ASSERT_EQ(do_connect(fds[1], JOB, 1), 0);
	wait_events(fds[0], POLLOUT);
	EXPECT_NE(info_of(fds[0]).epoch, epoch);
	set_nonblock(fds[0], false);
	sum_works(fds, 2);
}

static void disagree(uint32_t workers, uint32_t odd, uint32_t blamed,
		     bool type)
{
	uint32_t lanes[64] = {}, i;
	int fds[32];

	pair(fds, workers, "");
	for (i = 0; i < workers; i++)
		if (type)
			set_dtype(fds[i], i == odd ? ATP_INT32 : ATP_FLOAT32);
	for (i = 0; i < workers; i++)
		if (i != odd)
			push(fds[i], lanes, 64);
	push(fds[odd], lanes, type ? 64 : 68);
	for (i = 0; i < workers; i++) {
		EXPECT_ERRNO(recv(fds[i], lanes, sizeof(lanes), 0), EPROTO);
		expect_failed(fds[i], ATP_REASON_DISAGREE, blamed);
	}
	for (i = 0; i < workers; i++)
		expect_error(fds[i], EPROTO);
	connect_all(fds, workers);
	sum_works(fds, workers);
}

TEST(two_disagree_on_the_length)
{
	disagree(2, 1, 3, false);
}

TEST(one_of_three_disagrees_on_the_length)
{
	disagree(3, 1, 2, false);
}

TEST(one_of_four_disagrees_on_the_type)
{
	disagree(4, 2, 4, true);
}

/* The operator may change the timeout, not end a run by it. */
TEST(timeout_changes_in_a_run)
{
	int fds[2];

	pair(fds, 2, "timeout 60min");
	sum_works(fds, 2);
	ASSERT_EQ(atp("job set %u timeout 30s", JOB), 0);
	sum_works(fds, 2);
	ASSERT_EQ(atp("job set %u uid 1 gid 1", JOB), 0);
	sum_works(fds, 2);
	/* those who have joined ask every 15 minutes, and do nothing else */
	ASSERT_EQ(atp("job set %u timeout 100ms", JOB), 0);
	usleep(1000000);
	sum_works(fds, 2);
}

/* An application that does nothing is not dead. */
TEST(idle_is_not_silent)
{
	int fds[2];

	/* not for as long as a machine may be kept from running */
	pair(fds, 2, "timeout 4s");
	/* PING and PONG of many timeouts */
	host_must("until [ $(%s -j -s job show %u | grep -o 'in_packets\":[0-9]*' | cut -d: -f2) -gt 40 ]; do :; done",
		  ATP_TOOL, JOB);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINED);
	EXPECT_EQ(info_of(fds[1]).state, ATP_JOINED);
	sum_works(fds, 2);
}

/* Here is rank 0, the other host has PS and rank 1. */
#define THERE	"sock-there"

static void two_hosts(const char *more, const char *more_there)
{
	host_net_outside(THERE);
	ASSERT_EQ(atp("job add %u ps 10.1.0.254 worker 10.1.0.1 %s",
		      JOB, more), 0);
	ASSERT_EQ(atp("-n %s job add %u ps 10.1.0.254 worker 10.1.0.1 %s",
		      THERE, JOB, more_there), 0);
}

TEST(configured_differently)
{
	static const char *const others[] = {
		"fragment 64", "window 16", "scale 5", "worker 10.1.0.254",
	};
	size_t i;
	int fd;

	two_hosts("", "");
	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		ASSERT_EQ(atp("-n %s job del %u", THERE, JOB), 0);
		ASSERT_EQ(atp("-n %s job add %u ps 10.1.0.254 worker 10.1.0.1 %s",
			      THERE, JOB, others[i]), 0);
		fd = new_socket(0);
		EXPECT_ERRNO(do_connect(fd, JOB, 0), EPROTO);
		expect_failed(fd, ATP_REASON_MISMATCH, 1);
		close(fd);
	}
	/* a timeout is each host's own */
	ASSERT_EQ(atp("-n %s job del %u", THERE, JOB), 0);
	ASSERT_EQ(atp("-n %s job add %u ps 10.1.0.254 worker 10.1.0.1 timeout 5min",
		      THERE, JOB), 0);
	fd = new_socket(0);
	EXPECT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
}

TEST(ps_removed)
{
	uint32_t lane;
	int fd;

	two_hosts("", "");
	fd = new_socket(0);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	ASSERT_EQ(atp("-n %s job del %u", THERE, JOB), 0);
	EXPECT_ERRNO(recv(fd, &lane, 4, 0), EIDRM);
	expect_failed(fd, ATP_REASON_REMOVED, 0);
	/* back again, the same socket goes on */
	ASSERT_EQ(atp("-n %s job add %u ps 10.1.0.254 worker 10.1.0.1",
		      THERE, JOB), 0);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
}

TEST(ps_started_again)
{
	uint32_t lane = 0;
	int fd;

	two_hosts("timeout 60s", "timeout 60s");
	fd = new_socket(0);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
	/* as if it had lost its power: nobody hears of its end */
	host_must("tc -n " THERE " qdisc add dev eth0 root netem loss 100%%");
	ASSERT_EQ(atp("-n %s job del %u", THERE, JOB), 0);
	ASSERT_EQ(atp("-n %s job add %u ps 10.1.0.254 worker 10.1.0.1",
		      THERE, JOB), 0);
	host_must("tc -n " THERE " qdisc del dev eth0 root");
	push(fd, &lane, 4);
	EXPECT_ERRNO(recv(fd, &lane, 4, 0), ESTALE);
	expect_failed(fd, ATP_REASON_EPOCH, 0);
	expect_error(fd, ESTALE);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
}

TEST(ps_silent)
{
	uint32_t lane = 0;
	int fd;

	two_hosts("timeout 1s", "timeout 1s");
	fd = new_socket(0);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	push(fd, &lane, 4);
	pull(fd, &lane, 4);
	host_must("ip link set eth0 down");
	push(fd, &lane, 4);
	EXPECT_ERRNO(recv(fd, &lane, 4, 0), EHOSTDOWN);
	expect_failed(fd, ATP_REASON_PS_SILENT, 0);
	host_must("ip link set eth0 up");
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
}

/* The PS's host goes away as a whole. */
TEST(ps_namespace_deleted)
{
	uint32_t lane = 0;
	int fd;

	two_hosts("timeout 1s", "timeout 1s");
	fd = new_socket(0);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
	host_must("ip netns del " THERE);
	/* whether its last words came out or not */
	EXPECT_EQ(recv(fd, &lane, 4, 0), -1);
	EXPECT_TRUE(errno == EHOSTDOWN || errno == EIDRM);
}

TEST(worker_silent)
{
	uint32_t lane = 0;
	int fds[2], p[2], q[2], error;
	char ready;
	pid_t pid;

	host_net_outside(THERE);
	ASSERT_EQ(atp("job add %u ps 10.1.0.1 worker 10.1.0.1 worker 10.1.0.254 timeout 1s",
		      JOB), 0);
	ASSERT_EQ(atp("-n %s job add %u ps 10.1.0.1 worker 10.1.0.1 worker 10.1.0.254 timeout 1s",
		      THERE, JOB), 0);
	ASSERT_EQ(pipe(p), 0);
	ASSERT_EQ(pipe(q), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		int ns = open("/run/netns/" THERE, O_RDONLY);

		if (setns(ns, 0))
			_exit(1);
		fds[1] = socket(AF_ATP, SOCK_SEQPACKET, 0);
		if (do_connect(fds[1], JOB, 1) || write(p[1], "", 1) != 1)
			_exit(2);
		if (recv(fds[1], &lane, 4, 0) != -1)
			_exit(3);
		error = errno;
		_exit(write(q[1], &error, sizeof(error)) != sizeof(error));
	}
	fds[0] = new_socket(0);
	ASSERT_EQ(do_connect(fds[0], JOB, 0), 0);
	ASSERT_EQ(read(p[0], &ready, 1), 1);
	push(fds[0], &lane, 4);
	host_must("ip link set eth0 down");
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), ETIMEDOUT);
	expect_failed(fds[0], ATP_REASON_SILENT, 1 << 1);
	/* the other says so of the PS */
	ASSERT_EQ(read(q[0], &error, sizeof(error)), sizeof(error));
	EXPECT_EQ(error, EHOSTDOWN);
}

TAP_MAIN()
