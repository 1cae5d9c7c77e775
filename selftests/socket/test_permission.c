// SPDX-License-Identifier: GPL-2.0
/* Who may join a job: users, groups, and root of which namespace. */
#include <grp.h>
#include <sched.h>
#include "host.h"

#define USER	12345
#define GROUP	23456

/* In a child, without capabilities: as user and groups of which the effective
 * ones are these, and the real and saved ones those
 */
static int as_both(uid_t real_uid, gid_t real_gid, uid_t uid, gid_t gid,
		   gid_t extra, uint32_t rank)
{
	int status, fd;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid) {
		if (setgroups(1, &extra) ||
		    setresgid(real_gid, gid, real_gid) ||
		    setresuid(real_uid, uid, real_uid))
			_exit(255);
		fd = socket(AF_ATP, SOCK_SEQPACKET, 0);
		_exit(fd < 0 ? 254 : do_bind(fd, JOB, rank) ? errno : 0);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	ASSERT_TRUE(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int as_user(uid_t uid, gid_t gid, gid_t extra, uint32_t rank)
{
	return as_both(uid, gid, uid, gid, extra, rank);
}

/* What a program that has changed one of its identities is asked for */
TEST(effective_identities)
{
	host_net();
	job_add(1, "");
	ASSERT_EQ(atp("job set %u uid %u", JOB, USER), 0);
	EXPECT_EQ(as_both(USER + 1, 1, USER, 1, 1, 0), 0);
	EXPECT_EQ(as_both(USER, 1, USER + 1, 1, 1, 0), EACCES);
	ASSERT_EQ(atp("job set %u uid none gid %u", JOB, GROUP), 0);
	EXPECT_EQ(as_both(USER, 1, USER, GROUP, 1, 0), 0);
	EXPECT_EQ(as_both(USER, GROUP, USER, 1, 1, 0), EACCES);
}

TEST(permission)
{
	int fd;

	host_net();
	job_add(1, "");
	EXPECT_EQ(as_user(USER, GROUP, GROUP, 0), EACCES);
	/* who may not join learns nothing of the ranks */
	EXPECT_EQ(as_user(USER, GROUP, GROUP, 9), EACCES);
	ASSERT_EQ(atp("job set %u uid %u", JOB, USER), 0);
	EXPECT_EQ(as_user(USER, 1, 1, 0), 0);
	EXPECT_EQ(as_user(USER + 1, GROUP, GROUP, 0), EACCES);
	ASSERT_EQ(atp("job set %u gid %u", JOB, GROUP), 0);
	EXPECT_EQ(as_user(USER + 1, GROUP, 1, 0), 0);
	EXPECT_EQ(as_user(USER + 1, 1, GROUP, 0), 0);
	EXPECT_EQ(as_user(USER + 1, 1, 1, 0), EACCES);
	EXPECT_EQ(as_user(USER, 1, 1, 0), 0);
	/* CAP_NET_ADMIN needs no permission */
	fd = new_socket(0);
	EXPECT_EQ(do_bind(fd, JOB, 0), 0);
	close(fd);
	ASSERT_EQ(atp("job del %u", JOB), 0);
	job_add(1, "uid 12345");
	EXPECT_EQ(as_user(USER, 1, 1, 0), 0);
	EXPECT_EQ(as_user(USER + 1, 1, 1, 0), EACCES);
	ASSERT_EQ(atp("job del %u", JOB), 0);
	job_add(1, "gid 23456");
	EXPECT_EQ(as_user(USER, GROUP, 1, 0), 0);
	EXPECT_EQ(as_user(USER, 1, 1, 0), EACCES);
}

/* Root of a user namespace of our own, over a namespace that belongs to it or
 * to the first
 */
static void become_ns_root(bool own_net)
{
	int fd;

	if (own_net) {
		ASSERT_EQ(unshare(CLONE_NEWUSER), 0);
	} else {
		host_net();
		job_add(1, "");
		ASSERT_EQ(unshare(CLONE_NEWUSER), 0);
	}
	fd = open("/proc/self/uid_map", O_WRONLY);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(write(fd, "0 0 1", 5), 5);
	close(fd);
	fd = open("/proc/self/setgroups", O_WRONLY);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(write(fd, "deny", 4), 4);
	close(fd);
	fd = open("/proc/self/gid_map", O_WRONLY);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(write(fd, "0 0 1", 5), 5);
	close(fd);
	if (own_net)
		host_net();
}

TEST(root_of_another_user_namespace)
{
	int fd;

	become_ns_root(false);
	fd = new_socket(0);
	EXPECT_ERRNO(do_bind(fd, JOB, 0), EACCES);
	EXPECT_EQ(atp("%s 2>&1 | grep -q CAP_NET_ADMIN",
		      "job add 8 ps 127.0.0.1 worker 127.0.0.2"), 0);
	EXPECT_NE(atp("job add 8 ps 127.0.0.1 worker 127.0.0.2 2>/dev/null"),
		  0);
	EXPECT_NE(atp("job set %u timeout 1s 2>/dev/null", JOB), 0);
	EXPECT_NE(atp("job del %u 2>/dev/null", JOB), 0);
	/* who may not join learns nothing */
	EXPECT_NE(atp("job show %u 2>/dev/null", JOB), 0);
}

TEST(root_of_the_network_s_user_namespace)
{
	int fd;

	become_ns_root(true);
	job_add(1, "uid 0");
	EXPECT_EQ(atp("job show %u | grep -q root", JOB), 0);
	EXPECT_EQ(atp("job set %u timeout 1s", JOB), 0);
	EXPECT_EQ(atp("sock show"), 0);
	/* who is not mapped cannot be let in */
	EXPECT_EQ(atp("job set %u uid 5 2>&1 | grep -q 'no such user'", JOB),
		  0);
	EXPECT_EQ(atp("job set %u gid 5 2>&1 | grep -q 'no such group'", JOB),
		  0);
	fd = new_socket(0);
	ASSERT_EQ(do_connect(fd, JOB, 0), 0);
	sum_works(&fd, 1);
	EXPECT_EQ(atp("job del %u", JOB), 0);
}

TAP_MAIN()
