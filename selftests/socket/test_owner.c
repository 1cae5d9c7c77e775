// SPDX-License-Identifier: GPL-2.0
/*
 * A socket that a user owns for as long as he likes: options of the socket
 * layer read his memory meanwhile.  Who lists sockets or removes jobs holds
 * locks of the whole host and must not wait for him; a test that waits does not
 * end.
 */
#include <sys/syscall.h>
#include "host.h"
#include "slow.h"

#define OTHER	8
#define ADDRS	"ps 127.0.0.1 worker 127.0.0.2 worker 127.0.0.2 timeout 100s"

/* Two ranks of the other job, joined */
static void join_other(int *fds)
{
	int i;

	ASSERT_EQ(atp("job add %u " ADDRS, OTHER), 0);
	for (i = 0; i < 2; i++) {
		fds[i] = new_socket(SOCK_NONBLOCK);
		EXPECT_ERRNO(do_connect(fds[i], OTHER, i), EINPROGRESS);
	}
	for (i = 0; i < 2; i++) {
		wait_state(fds[i], ATP_JOINED);
		set_nonblock(fds[i], false);
	}
}

/* So many sockets of a job are listed, each with its state */
static bool listed(uint32_t job, unsigned int sockets, const char *state)
{
	return !atp("sock show job %u >/tmp/listed", job) &&
	       !host_run("test $(grep -c %s /tmp/listed) = %u", state, sockets);
}

static void ended_by_removal(int fd)
{
	struct atp_info info;
	char byte[4];

	EXPECT_ERRNO(recv(fd, byte, sizeof(byte), 0), EIDRM);
	info = info_of(fd);
	EXPECT_EQ(info.state, ATP_FAILED);
	EXPECT_EQ(info.reason, ATP_REASON_REMOVED);
}

static int unload(void)
{
	return syscall(SYS_delete_module, "atp", O_NONBLOCK);
}

TEST(of_a_job_that_is_shown_changed_and_removed)
{
	struct owner owner;
	int fds[2], other[2];

	join_pair(fds, "timeout 100s");
	join_other(other);
	own(&owner, fds[0]);

	EXPECT_TRUE(listed(JOB, 2, "joined"));
	EXPECT_TRUE(listed(OTHER, 2, "joined"));
	EXPECT_EQ(atp("job show %u >/tmp/shown", JOB), 0);
	EXPECT_EQ(atp("job set %u timeout 90s", JOB), 0);
	sum_works(other, 2);

	ASSERT_EQ(atp("job del %u", JOB), 0);
	EXPECT_NE(atp("job show %u 2>/tmp/shown", JOB), 0);
	/* the rank that nobody owns, at once */
	ended_by_removal(fds[1]);
	sum_works(other, 2);
	/* neither is it one of the next job of that number */
	job_add(2, "timeout 100s");
	EXPECT_TRUE(listed(JOB, 0, "."));

	disown(&owner);
	ended_by_removal(fds[0]);
	connect_all(fds, 2);
	sum_works(fds, 2);
	sum_works(other, 2);
}

TEST(of_the_last_job_whose_ps_says_nothing)
{
	struct owner owner;
	int fd;

	host_net();
	host_to_nowhere();
	ASSERT_EQ(atp("job add %u ps 10.1.0.254 worker 10.1.0.1", JOB), 0);
	fd = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), EINPROGRESS);
	own(&owner, fd);
	EXPECT_TRUE(listed(JOB, 1, "joining"));
	ASSERT_EQ(atp("job del %u", JOB), 0);
	/* it has not let go of the socket yet, so it was not told yet */
	EXPECT_EQ(events_of(fd, 0), 0);

	disown(&owner);
	EXPECT_EQ(error_of(fd), EIDRM);
	EXPECT_EQ(info_of(fd).state, ATP_FAILED);
	EXPECT_EQ(info_of(fd).reason, ATP_REASON_REMOVED);
	EXPECT_ERRNO(do_connect(fd, JOB, 0), ENOENT);
}

/* Ranks and the application that makes their results, which is added by one */
static void join_served(int *fds, int server)
{
	EXPECT_ERRNO(do_connect(server, JOB, ATP_SERVER), EINPROGRESS);
	connect_all(fds, 2);
	wait_events(server, POLLOUT);
	ASSERT_EQ(do_connect(server, JOB, ATP_SERVER), 0);
}

static void push_ranks(const int *fds, uint32_t lane)
{
	int i;

	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &lane, sizeof(lane));
	}
}

static void serve_one(const int *fds, int server, uint32_t sum)
{
	uint32_t lane;
	int i;

	wait_events(server, POLLIN);
	pull(server, &lane, sizeof(lane));
	EXPECT_EQ(lane, sum);
	lane++;
	push(server, &lane, sizeof(lane));
	for (i = 0; i < 2; i++) {
		pull(fds[i], &lane, sizeof(lane));
		EXPECT_EQ(lane, sum + 1);
	}
}

TEST(of_the_application_at_the_ps)
{
	int fds[2], server, other[2], i;
	uint32_t lane = 0;
	struct owner owner;

	host_net();
	job_add(2, "server timeout 100s");
	join_other(other);
	server = new_socket(SOCK_NONBLOCK);
	for (i = 0; i < 2; i++)
		fds[i] = new_socket(0);
	join_served(fds, server);

	/* of a sum it is told when it lets go */
	own(&owner, server);
	push_ranks(fds, 20);
	EXPECT_TRUE(listed(JOB, 3, "joined"));
	disown(&owner);
	serve_one(fds, server, 40);

	/* one sum is pulled, one looked at, one not */
	for (i = 1; i <= 3; i++)
		push_ranks(fds, i);
	wait_events(server, POLLIN);
	pull(server, &lane, sizeof(lane));
	wait_events(server, POLLIN);
	ASSERT_EQ(recv(server, &lane, sizeof(lane), MSG_PEEK), sizeof(lane));
	EXPECT_EQ(lane, 4);
	own(&owner, server);
	EXPECT_TRUE(listed(JOB, 3, "joined"));
	ASSERT_EQ(atp("job del %u", JOB), 0);
	ended_by_removal(fds[0]);
	ended_by_removal(fds[1]);
	job_add(2, "server timeout 100s");
	EXPECT_TRUE(listed(JOB, 0, "."));
	sum_works(other, 2);
	disown(&owner);
	/* its own end, not what another PS has */
	ended_by_removal(server);
	EXPECT_ERRNO(send(server, &lane, sizeof(lane), MSG_NOSIGNAL), EIDRM);
	join_served(fds, server);
	push_ranks(fds, 5);
	serve_one(fds, server, 10);

	/* nor does a run that ends wait for it */
	own(&owner, server);
	push_ranks(fds, 6);
	close(fds[1]);
	lane = 0;
	push(fds[0], &lane, sizeof(lane));
	EXPECT_ERRNO(recv(fds[0], &lane, sizeof(lane), 0), ECONNRESET);
	disown(&owner);
	EXPECT_ERRNO(recv(server, &lane, sizeof(lane), 0), ECONNRESET);
	close(server);
	sum_works(other, 2);
}

TEST(in_a_namespace_that_everybody_has_left)
{
	unsigned int tries = 0;
	struct owner owner;
	int fds[2], i;

	join_pair(fds, "timeout 100s");
	own(&owner, fds[0]);
	/* they end one after the other: that the second one does says that the
	 * first has
	 */
	for (i = 0; i < 2; i++) {
		host_net_outside("atp-owner");
		host_must("ip netns exec atp-owner %s job add %u " ADDRS,
			  ATP_TOOL, OTHER);
		host_must("ip netns del atp-owner");
		while (!host_run("ip link show eth0 >/tmp/eth0 2>&1"))
			ASSERT_LT(tries++, LIMIT_MS);
	}
	EXPECT_TRUE(listed(JOB, 0, "."));
	EXPECT_ERRNO(unload(), EWOULDBLOCK);
	disown(&owner);
	/* nothing else has happened to it */
	sum_works(fds, 2);
	EXPECT_ERRNO(unload(), EWOULDBLOCK);

	close(fds[0]);
	close(fds[1]);
	while (unload()) {
		ASSERT_EQ(errno, EWOULDBLOCK);
		ASSERT_LT(tries++, LIMIT_MS);
		usleep(1000);
	}
	host_must("modprobe atp");
}

struct pusher {
	pthread_t thread;
	int fd;
	int error;
};

static void *push_on(void *arg)
{
	int32_t lanes[20000] = {};
	struct pusher *p = arg;
	ssize_t n;

	/* always one ahead */
	n = send(p->fd, lanes, sizeof(lanes), MSG_NOSIGNAL);
	while (n > 0) {
		n = send(p->fd, lanes, sizeof(lanes), MSG_NOSIGNAL);
		if (n > 0)
			n = recv(p->fd, lanes, sizeof(lanes), 0);
	}
	p->error = errno;
	return NULL;
}

/* With the last job go the UDP sockets that fragments are sent through. */
TEST(of_one_who_pushes_while_the_last_job_goes)
{
	static const char *const ways[] = {
		"ps 127.0.0.1 worker 127.0.0.2",
		"ps fd00::1 worker fd00::2",
	};
	struct pusher p;
	int round;

	host_net();
	host_must("ip addr add fd00::1/128 dev lo nodad");
	host_must("ip addr add fd00::2/128 dev lo nodad");
	for (round = 0; round < 6; round++) {
		ASSERT_EQ(atp("job add %u %s timeout 100s window 1024", JOB,
			      ways[round % 2]), 0);
		p.fd = new_socket(0);
		ASSERT_EQ(do_connect(p.fd, JOB, 0), 0);
		ASSERT_EQ(pthread_create(&p.thread, NULL, push_on, &p), 0);
		wait_events(p.fd, POLLIN);
		ASSERT_EQ(atp("job del %u", JOB), 0);
		ASSERT_EQ(pthread_join(p.thread, NULL), 0);
		EXPECT_EQ(p.error, EIDRM);
		close(p.fd);
	}
}

TAP_MAIN()
