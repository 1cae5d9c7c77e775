// SPDX-License-Identifier: GPL-2.0
/* MSG_ZEROCOPY: a chunk that stays in the memory of who pushes it. */
#include <sys/ioctl.h>
#include <linux/sockios.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "host.h"

#define PAGE	4096
#define ROOM	(64 * PAGE)
#define NOBODY	65534

static char *room(void)
{
	char *mem = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_TRUE(mem != MAP_FAILED);
	return mem;
}

static void push_there(int fd, const void *lanes, size_t bytes)
{
	ASSERT_EQ(send(fd, lanes, bytes, MSG_ZEROCOPY), bytes);
}

/* The sum is where the values were. */
static void pull_there(int fd, size_t bytes)
{
	ASSERT_EQ(recv(fd, NULL, 0, MSG_TRUNC), bytes);
}

static long vmstat(const char *name)
{
	char line[128], word[64];
	long value = -1;
	FILE *f;

	f = fopen("/proc/vmstat", "r");
	ASSERT_TRUE(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %ld", word, &value) == 2 &&
		    !strcmp(word, name))
			break;
		value = -1;
	}
	fclose(f);
	ASSERT_GE(value, 0);
	return value;
}

/* Each CPU keeps some to itself until it is asked. */
static long pinned(void)
{
	host_must("echo 1 >/proc/sys/vm/stat_refresh");
	return vmstat("nr_foll_pin_acquired") -
	       vmstat("nr_foll_pin_released");
}

/* Pages are let go of a moment later. */
static void wait_unpinned(void)
{
	unsigned int tries;

	for (tries = 0; pinned(); tries++) {
		ASSERT_LT(tries, LIMIT_MS / 10);
		usleep(10000);
	}
}

static void set_types(const int *fds, int dtype)
{
	set_dtype(fds[0], dtype);
	set_dtype(fds[1], dtype);
}

/* From each place in pages, over none, one and several of their ends */
TEST(sums_in_place)
{
	static const size_t offsets[] = { 0, 4, 2044, PAGE - 4, PAGE - 1400 };
	static const uint32_t lanes[] = { 1, 349, 350, 351, 1023, 1024, 1025,
					  9000 };
	char *mem[2] = { room(), room() };
	unsigned int i, k, n, r;
	int32_t *at[2];
	int fds[2];

	join_pair(fds, "");
	set_types(fds, ATP_INT32);
	for (i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		for (k = 0; k < sizeof(lanes) / sizeof(*lanes); k++) {
			for (r = 0; r < 2; r++) {
				memset(mem[r], 0x5a, ROOM);
				at[r] = (int32_t *)(mem[r] + PAGE +
						    offsets[i]);
				for (n = 0; n < lanes[k]; n++)
					at[r][n] = n * 7919 + r;
				push_there(fds[r], at[r], lanes[k] * 4);
			}
			for (r = 0; r < 2; r++) {
				pull_there(fds[r], lanes[k] * 4);
				for (n = 0; n < lanes[k]; n++)
					ASSERT_EQ(at[r][n], 2 * n * 7919 + 1);
				/* nothing beside it */
				ASSERT_EQ(at[r][-1], 0x5a5a5a5a);
				ASSERT_EQ(at[r][n], 0x5a5a5a5a);
			}
		}
	}
	wait_unpinned();
}

/* One rank copies, the other does not: both have the same bits. */
TEST(same_bits_as_a_copy)
{
	static float copied[5000], there[5000];
	unsigned int n;
	int fds[2];

	join_pair(fds, "");
	for (n = 0; n < 5000; n++) {
		copied[n] = n * 0.37f;
		there[n] = n % 97 ? -1.0f / (n + 3) : 1e12f * n;
	}
	push(fds[0], copied, sizeof(copied));
	push_there(fds[1], there, sizeof(there));
	pull(fds[0], copied, sizeof(copied));
	pull_there(fds[1], sizeof(there));
	ASSERT_EQ(memcmp(copied, there, sizeof(there)), 0);
	/* more than one that fits no integer was among them */
	EXPECT_TRUE(there[97] > 9e13f);
	wait_unpinned();
}

TEST(looked_at_and_pulled_elsewhere)
{
	static int32_t lanes[3000], sum[3000], other[3000];
	unsigned int n;
	int fds[2];

	join_pair(fds, "");
	set_types(fds, ATP_INT32);
	for (n = 0; n < 3000; n++) {
		lanes[n] = n;
		other[n] = 5;
	}
	push_there(fds[0], lanes, sizeof(lanes));
	push(fds[1], other, sizeof(other));
	ASSERT_EQ(recv(fds[0], sum, sizeof(sum), MSG_PEEK), sizeof(sum));
	for (n = 0; n < 3000; n++)
		ASSERT_EQ(sum[n], n + 5);
	memset(sum, 0, sizeof(sum));
	/* what does not fit is cut off, in the middle of a page */
	ASSERT_EQ(recv(fds[0], sum, 5002, MSG_TRUNC), sizeof(sum));
	for (n = 0; n < 1250; n++)
		ASSERT_EQ(sum[n], n + 5);
	EXPECT_EQ(sum[1250] & 0xffff, 1255);
	EXPECT_EQ(sum[1251], 0);
	pull(fds[1], other, sizeof(other));
	wait_unpinned();
}

TEST(refused)
{
	char *mem = room();
	struct iovec two[2] = {
		{ .iov_base = mem, .iov_len = 8 },
		{ .iov_base = mem + 8, .iov_len = 8 },
	};
	struct msghdr msg = { .msg_iov = two, .msg_iovlen = 2 };
	unsigned int i;
	int fds[2];

	join_pair(fds, "");
	for (i = 1; i < 4; i++)
		EXPECT_ERRNO(send(fds[0], mem + i, 64, MSG_ZEROCOPY), EINVAL);
	EXPECT_ERRNO(sendmsg(fds[0], &msg, MSG_ZEROCOPY), EINVAL);
	/* sums cannot be written there */
	ASSERT_EQ(mprotect(mem + PAGE, PAGE, PROT_READ), 0);
	EXPECT_ERRNO(send(fds[0], mem, 2 * PAGE, MSG_ZEROCOPY), EFAULT);
	ASSERT_EQ(munmap(mem + 2 * PAGE, PAGE), 0);
	EXPECT_ERRNO(send(fds[0], mem + 2 * PAGE, 64, MSG_ZEROCOPY), EFAULT);
	EXPECT_ERRNO(send(fds[0], mem + 3 * PAGE - 4, 8, MSG_ZEROCOPY),
		     EFAULT);
	EXPECT_ERRNO(send(fds[0], mem, (4 << 20) + 4, MSG_ZEROCOPY), EMSGSIZE);
	EXPECT_EQ(info_of(fds[0]).end, 0);
	wait_unpinned();
	sum_works(fds, 2);
}

/* Memory that is shared is as good; pages of a file on a disk are not: they
 * would be written back while they change.
 */
TEST(shared_with_a_file)
{
	char name[] = "/out/shared-XXXXXX";
	int32_t *mem, lane = 5;
	int fds[2], fd;

	join_pair(fds, "");
	set_types(fds, ATP_INT32);
	mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_TRUE(mem != MAP_FAILED);
	*mem = 3;
	push_there(fds[0], mem, 4);
	push(fds[1], &lane, 4);
	pull_there(fds[0], 4);
	EXPECT_EQ(*mem, 8);
	pull(fds[1], &lane, 4);

	/* that of the machine's host, all others are in memory */
	fd = mkstemp(name);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(ftruncate(fd, PAGE), 0);
	mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_TRUE(mem != MAP_FAILED);
	EXPECT_ERRNO(send(fds[0], mem, 4, MSG_ZEROCOPY), EFAULT);
	ASSERT_EQ(munmap(mem, PAGE), 0);
	/* a page of one's own, of which it was a copy */
	mem = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ASSERT_TRUE(mem != MAP_FAILED);
	push_there(fds[0], mem, 4);
	push(fds[1], &lane, 4);
	pull_there(fds[0], 4);
	EXPECT_EQ(*mem, 8);
	munmap(mem, PAGE);
	close(fd);
	EXPECT_EQ(unlink(name), 0);
	wait_unpinned();
}

/* What the application at the PS pushes is copied. */
TEST(not_at_the_ps)
{
	int32_t lane = 0;
	int fds[2];

	join_with_server(fds);
	push(fds[0], &lane, 4);
	wait_events(fds[1], POLLIN);
	pull(fds[1], &lane, 4);
	EXPECT_ERRNO(send(fds[1], &lane, 4, MSG_ZEROCOPY), EOPNOTSUPP);
	push(fds[1], &lane, 4);
	pull(fds[0], &lane, 4);
}

/* A user's limit, which what was pulled does not count for any more */
TEST(no_more_than_may_be_locked)
{
	const struct rlimit limit = { 64 * 1024, 64 * 1024 };
	static char mem[32 * 1024];
	int fds[2], status, i;
	pid_t pid;

	host_net();
	job_add(2, "uid 65534");
	fflush(NULL);
	pid = fork();
	if (!pid) {
		ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
		ASSERT_EQ(setuid(NOBODY), 0);
		join_all(fds, 2);
		/* its ends may be in two pages more */
		push_there(fds[0], mem, sizeof(mem));
		EXPECT_ERRNO(send(fds[0], mem, sizeof(mem), MSG_ZEROCOPY),
			     ENOBUFS);
		push(fds[1], mem, sizeof(mem));
		pull_there(fds[0], sizeof(mem));
		pull(fds[1], mem, sizeof(mem));
		for (i = 0; i < 100; i++) {
			push_there(fds[0], mem, sizeof(mem));
			push(fds[1], mem, sizeof(mem));
			pull_there(fds[0], sizeof(mem));
			pull(fds[1], mem, sizeof(mem));
		}
		tap_exit();
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	wait_unpinned();
}

/* The send buffer bounds it as it does copies. */
TEST(back_pressure)
{
	static char mem[64 * 1024];
	int fds[2], copies, there = 0;
	ssize_t ret;

	join_pair(fds, "");
	set_nonblock(fds[0], true);
	set_nonblock(fds[1], true);
	copies = fill(fds[1], mem, sizeof(mem));
	while ((ret = send(fds[0], mem, sizeof(mem), MSG_ZEROCOPY)) > 0)
		there++;
	EXPECT_EQ(ret, -1);
	EXPECT_EQ(errno, EAGAIN);
	EXPECT_EQ(there, copies);
	close(fds[0]);
	close(fds[1]);
	wait_unpinned();
}

/* The list of pages is charged, too. */
TEST(what_a_push_costs)
{
	static char mem[1 << 20];
	uint32_t held;
	int fds[2];

	join_pair(fds, "");
	EXPECT_EQ(meminfo(fds[0], SK_MEMINFO_WMEM_QUEUED), 0);
	push_there(fds[0], mem, sizeof(mem));
	held = meminfo(fds[0], SK_MEMINFO_WMEM_QUEUED);
	EXPECT_GE(held, sizeof(mem) + sizeof(mem) / PAGE * sizeof(void *));
	push(fds[1], mem, sizeof(mem));
	EXPECT_LT(meminfo(fds[1], SK_MEMINFO_WMEM_QUEUED), held);
	pull_there(fds[0], sizeof(mem));
	EXPECT_EQ(meminfo(fds[0], SK_MEMINFO_WMEM_QUEUED), 0);
	close(fds[0]);
	close(fds[1]);
	wait_unpinned();
}

/* The pages are those of the time of the push. */
TEST(unmapped_in_flight)
{
	int32_t *lanes = (int32_t *)room();
	static int32_t sum[5000], other[5000];
	unsigned int n;
	int fds[2];

	join_pair(fds, "");
	set_types(fds, ATP_INT32);
	for (n = 0; n < 5000; n++)
		lanes[n] = n;
	push_there(fds[0], lanes, sizeof(sum));
	ASSERT_EQ(munmap(lanes, ROOM), 0);
	push(fds[1], other, sizeof(other));
	pull(fds[0], sum, sizeof(sum));
	for (n = 0; n < 5000; n++)
		ASSERT_EQ(sum[n], n);
	wait_unpinned();
}

/* A child has the values, its parent the sum. */
TEST(forked_in_flight)
{
	int32_t *lanes = (int32_t *)room();
	static int32_t other[2000];
	int fds[2], p[2], status, n;
	char go;
	pid_t pid;

	join_pair(fds, "");
	set_types(fds, ATP_INT32);
	ASSERT_EQ(pipe(p), 0);
	for (n = 0; n < 2000; n++) {
		lanes[n] = n;
		other[n] = 1;
	}
	push_there(fds[0], lanes, sizeof(other));
	fflush(NULL);
	pid = fork();
	if (!pid) {
		if (read(p[0], &go, 1) != 1)
			_exit(1);
		for (n = 0; n < 2000; n++)
			if (lanes[n] != n)
				_exit(2);
		_exit(0);
	}
	push(fds[1], other, sizeof(other));
	pull_there(fds[0], sizeof(other));
	for (n = 0; n < 2000; n++)
		ASSERT_EQ(lanes[n], n + 1);
	ASSERT_EQ(write(p[1], "", 1), 1);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	wait_unpinned();
}

/* After close() nobody writes there. */
TEST(closed_in_flight)
{
	int32_t *lanes = (int32_t *)room();
	static int32_t other[5000];
	unsigned int n;
	int fds[2];

	join_pair(fds, "");
	set_types(fds, ATP_INT32);
	for (n = 0; n < 5000; n++)
		lanes[n] = n;
	push_there(fds[0], lanes, 20000);
	EXPECT_GT(pinned(), 0);
	close(fds[0]);
	wait_unpinned();
	/* the first may have come out still, the second never does */
	send(fds[1], other, sizeof(other), MSG_NOSIGNAL);
	send(fds[1], other, sizeof(other), MSG_NOSIGNAL);
	wait_state(fds[1], ATP_FAILED);
	for (n = 0; n < 5000; n++)
		ASSERT_EQ(lanes[n], n);
}

TEST(killed_in_flight)
{
	int fds[2], p[2], status;
	char *mem = room();
	char go;
	pid_t pid;

	host_net();
	job_add(2, "");
	ASSERT_EQ(pipe(p), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		join_all(fds, 2);
		push_there(fds[0], mem, ROOM);
		_exit(write(p[1], "", 1) != 1 || pause());
	}
	ASSERT_EQ(read(p[0], &go, 1), 1);
	EXPECT_GT(pinned(), 0);
	ASSERT_EQ(kill(pid, SIGKILL), 0);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	wait_unpinned();
}

/* Who wants no sums gets some there all the same, and lets go of the pages. */
TEST(thrown_away)
{
	static int32_t mem[5000], other[5000];
	unsigned int tries, i, n;
	int fds[2];

	join_pair(fds, "");
	set_types(fds, ATP_INT32);
	ASSERT_EQ(shutdown(fds[0], SHUT_RD), 0);
	for (i = 0; i < 20; i++) {
		for (n = 0; n < 5000; n++) {
			mem[n] = n;
			other[n] = i;
		}
		push_there(fds[0], mem, sizeof(mem));
		push(fds[1], other, sizeof(other));
		pull(fds[1], other, sizeof(other));
		for (tries = 0; queue_of(fds[0], SIOCOUTQ); tries++) {
			ASSERT_LT(tries, LIMIT_MS);
			usleep(1000);
		}
		for (n = 0; n < 5000; n++)
			ASSERT_EQ(mem[n], n + i);
	}
	wait_unpinned();
}

/* Values that change while they are sent are this rank's sum alone. */
TEST(changed_in_flight)
{
	static volatile int32_t lanes[20000];
	static int32_t other[20000], sum[20000];
	int fds[2], i, n;

	join_pair(fds, "");
	set_types(fds, ATP_INT32);
	for (i = 0; i < 20; i++) {
		for (n = 0; n < 20000; n++) {
			lanes[n] = 0;
			other[n] = n;
		}
		push_there(fds[0], (void *)lanes, sizeof(lanes));
		push(fds[1], other, sizeof(other));
		for (n = 0; n < 20000; n++)
			lanes[n] += 1000000;
		pull_there(fds[0], sizeof(lanes));
		pull(fds[1], sum, sizeof(sum));
		for (n = 0; n < 20000; n++)
			ASSERT_TRUE(sum[n] == n || sum[n] == n + 1000000);
	}
	wait_unpinned();
}

TAP_MAIN()
