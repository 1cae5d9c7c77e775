// SPDX-License-Identifier: GPL-2.0
/* Random calls on sockets of the family. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/atp.h>
#include "vm_fuzz.h"

#define ROOM	65536
/* behind any place that buffer() names */
#define SMALL	256

/* No mapping is there; glibc would see a null pointer */
#define NOWHERE	((void *)0x10)

/* One per thread, so that data races are the kernel's alone */
static __thread uint8_t room[ROOM];

static volatile int *slot(struct thread *t)
{
	return &t->process->fd[below(t, FDS)];
}

static int any_fd(struct thread *t)
{
	return *slot(t);
}

/* Replace a descriptor; what was there is closed, whoever uses it. */
static void put_fd(struct thread *t, int fd)
{
	int old;

	if (fd < 0)
		return;
	old = __atomic_exchange_n(slot(t), fd, __ATOMIC_RELAXED);
	if (old >= 0)
		close(old);
}

void sockets_init(struct process *p)
{
	int i;

	for (i = 0; i < FDS; i++)
		p->fd[i] = -1;
	p->epoll = epoll_create1(0);
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, p->pass))
		exit(2);
}

/* Short as a rule: now a few bytes, now much of what there is */
static uint32_t length(struct thread *t)
{
	switch (below(t, 8)) {
	case 0:
		return 0;
	case 1:
		return below(t, 32);
	case 2:
		return below(t, ROOM);
	case 3:
		return (uint32_t)rand64(t);
	default:
		return 4 * (1 + below(t, 600));
	}
}

static void *buffer(struct thread *t)
{
	if (chance(t, 24))
		return chance(t, 2) ? NULL : NOWHERE;
	return room + (chance(t, 8) ? below(t, ROOM - SMALL) : 0);
}

/* The kernel shall not write where it may, but where we have other things. */
static void bound(uint32_t *len, const void *at)
{
	const uint8_t *p = at;

	if (p >= room && p <= room + ROOM && *len > room + ROOM - p)
		*len = room + ROOM - p;
}

static void noise(struct thread *t, void *to, size_t len)
{
	uint8_t *p = to;

	while (len--)
		*p++ = rand64(t);
}

static void open_socket(struct thread *t)
{
	static const int types[] = {
		SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_PACKET, 0,
	};
	const struct timeval little = { .tv_usec = 30000 };
	int type = SOCK_SEQPACKET, flags = 0, fd;

	if (chance(t, 30))
		type = types[below(t, 6)];
	if (chance(t, 2))
		flags = SOCK_NONBLOCK;
	if (chance(t, 4))
		flags |= SOCK_CLOEXEC;
	fd = socket(AF_ATP, type | flags, chance(t, 40) ? rand64(t) : 0);
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &little, sizeof(little));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &little, sizeof(little));
	put_fd(t, fd);
}

static uint16_t rank(struct thread *t)
{
	return chance(t, 3) ? ATP_SERVER : below(t, RANKS);
}

static struct sockaddr_atp address(struct thread *t)
{
	struct sockaddr_atp a = {
		.satp_family = AF_ATP,
		.satp_rank = rank(t),
		.satp_job = 1 + below(t, JOBS),
	};

	if (chance(t, 10))
		noise(t, (uint8_t *)&a + below(t, sizeof(a)), 1);
	if (chance(t, 20))
		noise(t, &a, sizeof(a));
	return a;
}

static socklen_t address_len(struct thread *t)
{
	return chance(t, 10) ? rand64(t) >> below(t, 64) :
			       sizeof(struct sockaddr_atp);
}

/* As an application does it, in a quarter of all cases to the end */
static void join(struct thread *t)
{
	struct atp_join j = { 1 + below(t, JOBS), rank(t) };
	int fd = any_fd(t), err;
	struct atp_info info;
	socklen_t len = sizeof(info);

	if (chance(t, 10))
		noise(t, &j, sizeof(j));
	err = setsockopt(fd, SOL_ATP, ATP_JOIN, chance(t, 20) ? NOWHERE : &j,
			 chance(t, 20) ? below(t, 64) : sizeof(j));
	if (err && errno != EINPROGRESS)
		return;
	if (getsockopt(fd, SOL_ATP, ATP_INFO, &info, &len))
		return;
	if (info.state == ATP_JOINED) {
		count(info.rank == ATP_SERVER ? &shared->served :
						&shared->joined);
		if (info.job <= JOBS) {
			shared->run[info.job].epoch = info.epoch;
			shared->run[info.job].due = info.una;
		}
	}
}

static void set_option(struct thread *t)
{
	static const int sol[] = {
		SO_SNDBUF, SO_RCVBUF, SO_SNDTIMEO, SO_RCVTIMEO, SO_LINGER,
		SO_KEEPALIVE, SO_PRIORITY, SO_MARK, SO_ZEROCOPY, SO_TIMESTAMP,
		SO_RCVLOWAT, SO_BUSY_POLL, SO_SNDBUFFORCE, SO_ATTACH_FILTER,
		SO_BINDTODEVICE, SO_PASSCRED, SO_REUSEADDR, SO_BROADCAST,
	};
	uint32_t value[4] = { rand64(t) >> below(t, 64) };
	int level = SOL_SOCKET, option = sol[below(t, 18)];

	if (chance(t, 2)) {
		level = SOL_ATP;
		option = ATP_DTYPE;
		value[0] = 1 + below(t, 3);
	}
	if (chance(t, 10))
		option = below(t, 80);
	if (chance(t, 20))
		level = rand64(t) >> below(t, 64);
	/* no waiting without end: the alarm interrupts, but threads are few */
	if (level == SOL_SOCKET &&
	    (option == SO_SNDTIMEO || option == SO_RCVTIMEO)) {
		value[0] = 0;
		value[2] = below(t, 100000);
		setsockopt(any_fd(t), level, option, value, sizeof(value));
		return;
	}
	setsockopt(any_fd(t), level, option, chance(t, 20) ? NOWHERE : value,
		   chance(t, 6) ? rand64(t) >> below(t, 64) : sizeof(*value));
}

static void get_option(struct thread *t)
{
	socklen_t len = chance(t, 6) ? rand64(t) >> below(t, 64) :
				       below(t, 200);
	int level = chance(t, 3) ? SOL_SOCKET : SOL_ATP;
	int option = chance(t, 3) ? below(t, 80) : ATP_INFO;

	getsockopt(any_fd(t), level, option,
		   chance(t, 20) ? NOWHERE : (void *)room,
		   chance(t, 20) ? NOWHERE : &len);
}

static void fill(struct thread *t, struct msghdr *m, struct iovec *iov)
{
	uint32_t i, len;

	memset(m, 0, sizeof(*m));
	m->msg_iov = iov;
	m->msg_iovlen = chance(t, 4) ? below(t, 8) : 1;
	for (i = 0; i < 8; i++) {
		iov[i].iov_base = buffer(t);
		len = length(t);
		bound(&len, iov[i].iov_base);
		iov[i].iov_len = len;
	}
	if (chance(t, 20)) {
		m->msg_control = buffer(t);
		m->msg_controllen = below(t, SMALL);
	}
	if (chance(t, 20)) {
		m->msg_name = buffer(t);
		m->msg_namelen = below(t, SMALL);
	}
	if (chance(t, 60))
		m->msg_iov = NOWHERE;
	if (chance(t, 100))
		m->msg_iovlen = rand64(t);
}

static int flags(struct thread *t)
{
	static const int known[] = {
		MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, MSG_ERRQUEUE,
		MSG_OOB, MSG_MORE, MSG_EOR, MSG_NOSIGNAL, MSG_ZEROCOPY,
	};
	int f = chance(t, 2) ? MSG_DONTWAIT : 0;

	if (chance(t, 3))
		f |= known[below(t, 10)];
	if (chance(t, 30))
		f |= (int)rand64(t);
	return f;
}

static void push(struct thread *t)
{
	struct iovec iov[8];
	struct msghdr m;

	fill(t, &m, iov);
	if (sendmsg(any_fd(t), &m, flags(t)) >= 0)
		count(&shared->pushed);
}

/* A result is as long as the sums that it is for.  Another thread may have put
 * another socket there meanwhile.
 */
static void answer(struct thread *t, int fd, size_t len)
{
	struct atp_info info;
	socklen_t size = sizeof(info);

	if (len <= ROOM && send(fd, room, len, flags(t)) >= 0 &&
	    !getsockopt(fd, SOL_ATP, ATP_INFO, &info, &size) &&
	    info.rank == ATP_SERVER)
		count(&shared->answered);
}

static void pull(struct thread *t)
{
	struct iovec iov[8];
	int fd = any_fd(t);
	struct msghdr m;
	ssize_t len;

	fill(t, &m, iov);
	len = recvmsg(fd, &m, flags(t));
	if (len <= 0)
		return;
	count(&shared->pulled);
	if (!chance(t, 4))
		answer(t, fd, (size_t)len);
}

static void wait_for(struct thread *t)
{
	struct epoll_event ev = { .events = (uint32_t)rand64(t) };
	struct pollfd p[FDS];
	uint32_t i;

	switch (below(t, 4)) {
	case 0:
		for (i = 0; i < FDS; i++) {
			p[i].fd = any_fd(t);
			p[i].events = (short)rand64(t);
		}
		poll(p, FDS, below(t, 5));
		break;
	case 1:
		epoll_ctl(t->process->epoll, 1 + below(t, 3), any_fd(t), &ev);
		break;
	default:
		epoll_wait(t->process->epoll, &ev, 1, below(t, 5));
	}
}

static void pass(struct thread *t)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = room, .iov_len = 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fd = any_fd(t);

	if (chance(t, 2)) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		sendmsg(t->process->pass[0], &m, MSG_DONTWAIT);
		return;
	}
	if (recvmsg(t->process->pass[1], &m, MSG_DONTWAIT) < 0)
		return;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS)
		return;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	put_fd(t, fd);
}

/* A process that has the sockets, too, and ends with them */
static void child(struct thread *t)
{
	pid_t pid = fork();

	if (!pid) {
		send(any_fd(t), room, 64, MSG_DONTWAIT | MSG_NOSIGNAL);
		_exit(0);
	}
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
}

static void control(struct thread *t)
{
	static const unsigned long known[] = {
		FIONREAD, 0x5411 /* SIOCOUTQ */, FIONBIO, FIOASYNC, 0x8906,
		0x894b, 0x8907, 0x8901, 0x8910,
	};

	memset(room, 0, SMALL);
	ioctl(any_fd(t), chance(t, 8) ? rand64(t) & 0xffff :
	      known[below(t, 9)], chance(t, 20) ? NOWHERE : (void *)room);
}

static void close_one(struct thread *t)
{
	int old = __atomic_exchange_n(slot(t), -1, __ATOMIC_RELAXED);

	if (old >= 0)
		close(old);
}

static void address_call(struct thread *t)
{
	struct sockaddr_atp a = address(t);
	socklen_t len = address_len(t);
	struct sockaddr *sa = chance(t, 30) ? NOWHERE : (struct sockaddr *)&a;
	int fd = any_fd(t);

	switch (below(t, 6)) {
	case 0:
	case 1:
		bind(fd, sa, len);
		break;
	case 2:
	case 3:
		connect(fd, sa, len);
		break;
	case 4:
		len = below(t, sizeof(a) + 1);
		getsockname(fd, sa, &len);
		getpeername(fd, sa, &len);
		break;
	default:
		listen(fd, below(t, 9));
		accept4(fd, NULL, NULL, SOCK_NONBLOCK);
	}
}

static void read_write(struct thread *t)
{
	uint32_t len = length(t);
	void *at = buffer(t);
	int pipes[2];

	bound(&len, at);
	switch (below(t, 3)) {
	case 0:
		if (write(any_fd(t), at, len) >= 0)
			count(&shared->pushed);
		break;
	case 1:
		if (read(any_fd(t), at, len) > 0)
			count(&shared->pulled);
		break;
	default:
		if (pipe2(pipes, O_NONBLOCK))
			break;
		if (write(pipes[1], room, 64) == 64)
			splice(pipes[0], NULL, any_fd(t), NULL, 64,
			       SPLICE_F_NONBLOCK);
		splice(any_fd(t), NULL, pipes[1], NULL, 64, SPLICE_F_NONBLOCK);
		close(pipes[0]);
		close(pipes[1]);
	}
}

void do_socket(struct thread *t)
{
	switch (below(t, 34)) {
	case 0 ... 2:
		open_socket(t);
		break;
	case 3 ... 7:
		join(t);
		break;
	case 8 ... 13:
		push(t);
		break;
	case 14 ... 19:
		pull(t);
		break;
	case 20:
		set_option(t);
		break;
	case 21:
	case 22:
		get_option(t);
		break;
	case 23:
	case 24:
		wait_for(t);
		break;
	case 25:
		close_one(t);
		break;
	case 26:
		put_fd(t, dup(any_fd(t)));
		break;
	case 27:
		pass(t);
		break;
	case 28:
		control(t);
		break;
	case 29:
	case 30:
		address_call(t);
		break;
	case 31:
		if (chance(t, 6))
			shutdown(any_fd(t), below(t, 4));
		break;
	case 32:
		read_write(t);
		break;
	default:
		if (chance(t, 20))
			child(t);
	}
}
