// SPDX-License-Identifier: GPL-2.0
/* What a socket holds is charged to it, and given back. */
#include "host.h"

#define LANES	40000
#define BURST	(64 << 10)
#define JOB_WORDS	"ps 10.1.0.254 worker 10.1.0.1 timeout 100s"

/* Pages that all sockets of the family hold; each CPU may have 256 more or less
 * in a reserve of its own.
 */
static long family_pages(void)
{
	char line[256], name[32];
	long pages = -1;
	FILE *f;

	f = fopen("/proc/net/protocols", "r");
	ASSERT_TRUE(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%31s %*s %*s %ld", name, &pages) == 2 &&
		    !strcmp(name, "ATP"))
			break;
		pages = -1;
	}
	fclose(f);
	ASSERT_GE(pages, 0);
	return pages;
}

static void until(bool (*condition)(int fd), int fd)
{
	unsigned int tries;

	for (tries = 0; !condition(fd); tries++) {
		ASSERT_LT(tries, LIMIT_MS / 10);
		usleep(10000);
	}
}

static bool nothing_in_flight(int fd)
{
	return !meminfo(fd, SK_MEMINFO_WMEM_ALLOC);
}

static bool something_in_flight(int fd)
{
	return meminfo(fd, SK_MEMINFO_WMEM_ALLOC) > 0;
}

static bool held(int fd)
{
	(void)fd;
	return !atp("-s job show %u | grep -q 'out_held [1-9]'", JOB);
}

/* No socket holds the module. */
static bool nobody(int fd)
{
	(void)fd;
	return !host_run("grep -qx 0 /sys/module/atp/refcnt");
}

/* One worker, its PS on another host; what it sends stays in the queue of its
 * device.
 */
static int joined_to_outside(void)
{
	int fd;

	host_net_outside("atpps");
	ASSERT_EQ(atp("-n atpps job add %u " JOB_WORDS, JOB), 0);
	ASSERT_EQ(atp("job add %u " JOB_WORDS, JOB), 0);
	fd = new_socket(0);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	host_must("tc qdisc add dev eth0 root plug limit 10000000");
	return fd;
}

static void let_go(void)
{
	host_must("tc qdisc del dev eth0 root");
}

static void push_lanes(int fd)
{
	static int32_t lanes[LANES];
	int i;

	set_dtype(fd, ATP_INT32);
	for (i = 0; i < LANES; i++)
		lanes[i] = i * 3;
	push(fd, lanes, sizeof(lanes));
}

static void pull_lanes(int fd)
{
	static int32_t lanes[LANES];
	int i;

	pull(fd, lanes, sizeof(lanes));
	for (i = 0; i < LANES; i++)
		ASSERT_EQ(lanes[i], i * 3);
}

TEST(packets_are_the_sockets)
{
	int fd = joined_to_outside();

	EXPECT_EQ(meminfo(fd, SK_MEMINFO_WMEM_ALLOC), 0);
	push_lanes(fd);
	until(something_in_flight, fd);
	let_go();
	pull_lanes(fd);
	until(nothing_in_flight, fd);
}

/* More than the send buffer holds does not pile up before the device. */
TEST(no_more_than_the_send_buffer)
{
	int fd = joined_to_outside();
	uint32_t queued;

	push_lanes(fd);
	until(something_in_flight, fd);
	set_sndbuf(fd, 0);
	until(held, fd);
	queued = meminfo(fd, SK_MEMINFO_WMEM_ALLOC);
	EXPECT_GE(queued, meminfo(fd, SK_MEMINFO_SNDBUF));
	let_go();
	pull_lanes(fd);
	until(nothing_in_flight, fd);
}

/* Nor do all fragments that the window allows as results come and open it: the
 * device is slow, and the buffer is made small when all of them are in it.
 */
TEST(no_more_than_the_send_buffer_and_a_burst)
{
	static char chunk[1 << 20], sum[sizeof(chunk)];
	uint32_t bound, queued, most = 0;
	int room = 4 * sizeof(chunk), fd;

	host_net();
	job_add(1, "timeout 100s");
	fd = new_socket(0);
	set_dtype(fd, ATP_INT32);
	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room,
			     sizeof(room)), 0);
	ASSERT_EQ(do_join(fd, JOB, 0), 0);
	host_must("tc qdisc add dev lo root tbf rate 2mbit burst 70000 limit 10000000");
	memset(chunk, 1, sizeof(chunk));
	push(fd, chunk, sizeof(chunk));
	set_sndbuf(fd, 0);
	/* a burst is charged with what it takes, up to twice its bytes */
	bound = meminfo(fd, SK_MEMINFO_SNDBUF) + 2 * BURST;
	/* what left before that */
	while (meminfo(fd, SK_MEMINFO_WMEM_ALLOC) > bound)
		usleep(1000);
	while (!(events_of(fd, 1) & POLLIN)) {
		queued = meminfo(fd, SK_MEMINFO_WMEM_ALLOC);
		if (queued > most)
			most = queued;
	}
	EXPECT_GT(most, meminfo(fd, SK_MEMINFO_SNDBUF));
	EXPECT_LT(most, bound);
	pull(fd, sum, sizeof(sum));
	EXPECT_EQ(memcmp(sum, chunk, sizeof(sum)), 0);
}

/* A socket that is closed lives until its packets are gone, and no longer. */
TEST(closed_with_packets_in_flight)
{
	int fd = joined_to_outside();

	push_lanes(fd);
	until(something_in_flight, fd);
	close(fd);
	EXPECT_FALSE(nobody(-1));
	let_go();
	until(nobody, -1);
}

/* A window of 32 ranks, at least 32 bytes a slot */
TEST(window_slots)
{
	long least = 32L * 4096 * 32 / getpagesize();
	long before = family_pages(), joined;
	int fds[32], i;

	host_net();
	job_add(32, "window 4096");
	join_all(fds, 32);
	joined = family_pages();
	EXPECT_GE(joined, before + least - 512);
	for (i = 0; i < 32; i++)
		close(fds[i]);
	EXPECT_LT(family_pages(), joined - least + 512);
}

/* The operator's defaults; what is smaller than a page is refused. */
TEST(defaults_of_the_buffers)
{
	socklen_t len = sizeof(int);
	int before, room, size, fd;

	fd = new_socket(0);
	ASSERT_EQ(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &before, &len), 0);
	ASSERT_EQ(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, &len), 0);
	close(fd);
	host_must("echo 4096 123456 >/proc/sys/net/atp/wmem");
	fd = new_socket(0);
	ASSERT_EQ(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &len), 0);
	EXPECT_EQ(size, 123456);
	EXPECT_NE(host_run("echo 4096 100 2>/dev/null >/proc/sys/net/atp/wmem"),
		  0);
	host_must("echo 4096 %d >/proc/sys/net/atp/wmem", before);
	host_must("echo 65537 >/proc/sys/net/atp/rmem");
	fd = new_socket(0);
	ASSERT_EQ(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len), 0);
	EXPECT_EQ(size, 65537);
	EXPECT_NE(host_run("echo 100 2>/dev/null >/proc/sys/net/atp/rmem"),
		  0);
	host_must("echo %d >/proc/sys/net/atp/rmem", room);
	/* theirs are the host's */
	host_net();
	EXPECT_NE(access("/proc/sys/net/atp/wmem", F_OK), 0);
}

TAP_MAIN()
