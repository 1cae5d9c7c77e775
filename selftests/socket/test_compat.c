// SPDX-License-Identifier: GPL-2.0
/*
 * A 32-bit program on a 64-bit kernel: what it calls and what lies in its
 * memory.  No 32-bit compiler is needed for that: int $0x80 enters the kernel
 * as such a program does, if all pointers are below 4 GiB.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <linux/errqueue.h>
#include <linux/sockios.h>
#include "host.h"

/* arch/x86/entry/syscalls/syscall_32.tbl */
#define SYS32_IOCTL		54
#define SYS32_SOCKET		359
#define SYS32_CONNECT		362
#define SYS32_GETSOCKOPT	365
#define SYS32_SETSOCKOPT	366
#define SYS32_GETSOCKNAME	367
#define SYS32_SENDMSG		370
#define SYS32_RECVMSG		372

struct iovec32 {
	uint32_t base;
	uint32_t len;
};

struct msghdr32 {
	uint32_t name;
	int32_t namelen;
	uint32_t iov;
	uint32_t iovlen;
	uint32_t control;
	uint32_t controllen;
	uint32_t flags;
};

struct cmsghdr32 {
	uint32_t len;
	int32_t level;
	int32_t type;
};

/* All that such a program points to */
struct low {
	int value;
	uint32_t len;
	struct atp_join join;
	struct atp_info info;
	struct sockaddr_atp addr;
	int32_t timeval[2];
	struct iovec32 iov;
	struct msghdr32 msg;
	struct {
		struct cmsghdr32 head;
		struct sock_extended_err ee;
		struct atp_error error;
	} control;
	int32_t lanes[100];
};

static struct low *low;

static uint32_t low_addr(const void *p)
{
	ASSERT_LT((uintptr_t)p, 1ULL << 32);
	return (uintptr_t)p;
}

static int call32(int nr, uint32_t a, uint32_t b, uint32_t c, uint32_t d,
		  uint32_t e)
{
	int ret;

	asm volatile("int $0x80" : "=a"(ret)
		     : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
		     : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

static void get_low(void)
{
	low = mmap(NULL, sizeof(*low), PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	ASSERT_TRUE(low != MAP_FAILED);
}

static int msg32(int nr, int fd, int flags, uint32_t bytes)
{
	low->iov.base = low_addr(low->lanes);
	low->iov.len = bytes;
	low->msg.iov = low_addr(&low->iov);
	low->msg.iovlen = 1;
	return call32(nr, fd, low_addr(&low->msg), flags, 0, 0);
}

TEST(joins_by_address_and_option)
{
	int fds[2], i;

	host_net();
	get_low();
	for (i = 0; i < 2; i++) {
		job_add(1, "");
		fds[i] = call32(SYS32_SOCKET, AF_ATP, SOCK_SEQPACKET, 0, 0, 0);
		ASSERT_GE(fds[i], 0);
		low->addr = (struct sockaddr_atp){
			.satp_family = AF_ATP,
			.satp_job = JOB,
		};
		low->join = (struct atp_join){ .job = JOB };
		if (i)
			ASSERT_EQ(call32(SYS32_SETSOCKOPT, fds[i], SOL_ATP,
					 ATP_JOIN, low_addr(&low->join),
					 sizeof(low->join)), 0);
		else
			ASSERT_EQ(call32(SYS32_CONNECT, fds[i],
					 low_addr(&low->addr),
					 sizeof(low->addr), 0, 0), 0);
		memset(&low->addr, 0, sizeof(low->addr));
		low->len = sizeof(low->addr);
		EXPECT_EQ(call32(SYS32_GETSOCKNAME, fds[i],
				 low_addr(&low->addr), low_addr(&low->len), 0,
				 0), 0);
		EXPECT_EQ(low->addr.satp_job, JOB);
		sum_works(&fds[i], 1);
		close(fds[i]);
		ASSERT_EQ(atp("job del %u", JOB), 0);
	}
}

TEST(options)
{
	struct atp_info info;
	int fd;

	host_net();
	job_add(1, "");
	get_low();
	join_all(&fd, 1);
	sum_works(&fd, 1);
	low->len = sizeof(low->info);
	ASSERT_EQ(call32(SYS32_GETSOCKOPT, fd, SOL_ATP, ATP_INFO,
			 low_addr(&low->info), low_addr(&low->len)), 0);
	EXPECT_EQ(low->len, sizeof(low->info));
	info = info_of(fd);
	EXPECT_EQ(low->info.chunks, 1);
	EXPECT_EQ(memcmp(&low->info, &info, sizeof(info)), 0);
	low->value = ATP_FLOAT32;
	ASSERT_EQ(call32(SYS32_SETSOCKOPT, fd, SOL_ATP, ATP_DTYPE,
			 low_addr(&low->value), sizeof(low->value)), 0);
	/* a timeout of 32-bit words is the socket layer's, and works */
	low->timeval[1] = 30000;
	ASSERT_EQ(call32(SYS32_SETSOCKOPT, fd, SOL_SOCKET, SO_RCVTIMEO,
			 low_addr(low->timeval), sizeof(low->timeval)), 0);
	EXPECT_EQ(msg32(SYS32_RECVMSG, fd, 0, 4), -EAGAIN);
}

TEST(messages_and_queues)
{
	int fds[2], i;

	join_pair(fds, "");
	get_low();
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		low->lanes[99] = 21;
		ASSERT_EQ(msg32(SYS32_SENDMSG, fds[i], 0, 400), 400);
		if (i)
			break;
		EXPECT_EQ(call32(SYS32_IOCTL, fds[0], SIOCOUTQ,
				 low_addr(&low->value), 0, 0), 0);
		EXPECT_EQ(low->value, 400);
		EXPECT_EQ(call32(SYS32_IOCTL, fds[0], SIOCINQ,
				 low_addr(&low->value), 0, 0), 0);
		EXPECT_EQ(low->value, 0);
	}
	wait_events(fds[0], POLLIN);
	EXPECT_EQ(call32(SYS32_IOCTL, fds[0], SIOCINQ, low_addr(&low->value),
			 0, 0), 0);
	EXPECT_EQ(low->value, 400);
	EXPECT_EQ(call32(SYS32_IOCTL, fds[0], SIOCOUTQ, low_addr(&low->value),
			 0, 0), 0);
	EXPECT_EQ(low->value, 0);
	memset(low->lanes, 0, sizeof(low->lanes));
	EXPECT_EQ(msg32(SYS32_RECVMSG, fds[0], MSG_PEEK, 8), 8);
	EXPECT_TRUE(low->msg.flags & MSG_TRUNC);
	EXPECT_EQ(msg32(SYS32_RECVMSG, fds[0], 0, 400), 400);
	EXPECT_FALSE(low->msg.flags & MSG_TRUNC);
	EXPECT_EQ(low->lanes[99], 42);
}

TEST(error_queue)
{
	int fds[2], room;

	join_pair(fds, "");
	get_low();
	for (room = sizeof(low->control); room > 12; room -= 24) {
		ASSERT_EQ(msg32(SYS32_SENDMSG, fds[0], 0, 4), 4);
		close(fds[1]);
		wait_state(fds[0], ATP_FAILED);
		memset(&low->control, 0, sizeof(low->control));
		low->msg.control = low_addr(&low->control);
		low->msg.controllen = room;
		EXPECT_EQ(msg32(SYS32_RECVMSG, fds[0], MSG_ERRQUEUE, 0), 0);
		EXPECT_TRUE(low->msg.flags & MSG_ERRQUEUE);
		EXPECT_EQ(!!(low->msg.flags & MSG_CTRUNC),
			  room < (int)sizeof(low->control));
		EXPECT_EQ(low->control.head.len, room);
		EXPECT_EQ(low->control.head.level, SOL_ATP);
		EXPECT_EQ(low->control.head.type, ATP_RECVERR);
		EXPECT_EQ(low->control.ee.ee_errno, ECONNRESET);
		if (room == sizeof(low->control)) {
			EXPECT_EQ(low->control.error.job, JOB);
			EXPECT_EQ(low->control.error.ranks, 1 << 1);
			EXPECT_EQ(low->control.error.reason, ATP_REASON_LEFT);
		}
		low->msg.control = 0;
		low->msg.controllen = 0;
		fds[1] = new_socket(0);
		connect_all(fds, 2);
	}
}

TAP_MAIN()
