// SPDX-License-Identifier: GPL-2.0
/* Namespaces, jobs and sockets for the tests in C. */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include "host.h"

static void pause_briefly(void)
{
	struct timespec ts = { .tv_nsec = 1000000 };

	nanosleep(&ts, NULL);
}

/* Is it in time still?  @tries counts milliseconds at least. */
static void may_wait(unsigned int *tries, const char *what)
{
	if (++*tries > LIMIT_MS) {
		tap_fail(__FILE__, __LINE__, "never: %s", what);
		tap_exit();
	}
	pause_briefly();
}

static int vrun(const char *fmt, va_list args)
{
	char command[4096];
	int status;

	vsnprintf(command, sizeof(command), fmt, args);
	fflush(NULL);
	status = system(command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Return: exit status of a shell command. */
int host_run(const char *fmt, ...)
{
	va_list args;
	int status;

	va_start(args, fmt);
	status = vrun(fmt, args);
	va_end(args);
	return status;
}

void host_must(const char *fmt, ...)
{
	va_list args;
	int status;

	va_start(args, fmt);
	status = vrun(fmt, args);
	va_end(args);
	if (status) {
		tap_fail(__FILE__, __LINE__, "%s: status %d", fmt, status);
		tap_exit();
	}
}

/* Return: exit status of the tool. */
int atp(const char *fmt, ...)
{
	char command[4096] = ATP_TOOL " ";
	size_t len = strlen(command);
	va_list args;

	va_start(args, fmt);
	vsnprintf(command + len, sizeof(command) - len, fmt, args);
	va_end(args);
	return host_run("%s", command);
}

/* A fresh network namespace for this process, lo up. */
void host_net(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	ASSERT_EQ(unshare(CLONE_NEWNET), 0);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	ASSERT_GE(fd, 0);
	ASSERT_EQ(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	close(fd);
}

/*
 * A fresh one with a way to another host, the named namespace: we are 10.1.0.1
 * and have eth0, it is 10.1.0.254.
 */
void host_net_outside(const char *netns)
{
	host_net();
	/* what an earlier test left */
	host_run("ip netns del %s 2>/dev/null", netns);
	host_must("ip netns add %s", netns);
	host_must("ip link add eth0 type veth peer eth0 netns %s", netns);
	host_must("ip addr add 10.1.0.1/24 dev eth0 && ip link set eth0 up");
	host_must("ip -n %s addr add 10.1.0.254/24 dev eth0", netns);
	host_must("ip -n %s link set eth0 up", netns);
	host_must("ip -n %s link set lo up", netns);
}

/* A device behind which nobody is: we are 10.1.0.1, 10.1.0.254 is reachable. */
void host_to_nowhere(void)
{
	host_must("ip link add eth0 type dummy");
	host_must("ip addr add 10.1.0.1/24 dev eth0");
	host_must("ip link set eth0 up");
	host_must("ip neigh add 10.1.0.254 lladdr 02:00:00:00:00:01 dev eth0");
}

/* Packets through lo: ETH_P_ALL has what goes out, too, and then twice; with
 * SOCK_DGRAM they begin with the IP header.
 */
int listen_on_lo(int type, uint16_t protocol)
{
	struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = if_nametoindex("lo"),
	};
	int fd = socket(AF_PACKET, type | SOCK_NONBLOCK, 0);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

void job_add(uint32_t workers, const char *more)
{
	char words[32 * 20] = "";
	uint32_t i;

	for (i = 0; i < workers; i++)
		strcat(words, "worker 127.0.0.2 ");
	ASSERT_EQ(atp("job add %u ps 127.0.0.1 %s%s", JOB, words, more), 0);
}

int new_socket(int flags)
{
	int fd = socket(AF_ATP, SOCK_SEQPACKET | flags, 0);

	ASSERT_GE(fd, 0);
	return fd;
}

int do_bind(int fd, uint32_t job, uint32_t rank)
{
	struct sockaddr_atp addr = {
		.satp_family = AF_ATP,
		.satp_rank = rank,
		.satp_job = job,
	};

	return bind(fd, (struct sockaddr *)&addr, sizeof(addr));
}

int do_connect(int fd, uint32_t job, uint32_t rank)
{
	struct sockaddr_atp addr = {
		.satp_family = AF_ATP,
		.satp_rank = rank,
		.satp_job = job,
	};

	return connect(fd, (struct sockaddr *)&addr, sizeof(addr));
}

int do_join(int fd, uint32_t job, uint32_t rank)
{
	struct atp_join join = { .job = job, .rank = rank };

	return setsockopt(fd, SOL_ATP, ATP_JOIN, &join, sizeof(join));
}

struct joining {
	pthread_t thread;
	int fd;
	uint32_t rank;
	int error;
};

static void *joining_thread(void *arg)
{
	struct joining *j = arg;

	if (do_connect(j->fd, JOB, j->rank))
		j->error = errno;
	return NULL;
}

/* All ranks connect at once; blocking sockets. */
void connect_all(int *fds, uint32_t workers)
{
	struct joining j[32] = {};
	uint32_t i;

	for (i = 0; i < workers; i++) {
		j[i].fd = fds[i];
		j[i].rank = i;
		ASSERT_EQ(pthread_create(&j[i].thread, NULL, joining_thread,
					 &j[i]), 0);
	}
	for (i = 0; i < workers; i++) {
		pthread_join(j[i].thread, NULL);
		ASSERT_EQ(j[i].error, 0);
	}
}

void join_all(int *fds, uint32_t workers)
{
	uint32_t i;

	for (i = 0; i < workers; i++)
		fds[i] = new_socket(0);
	connect_all(fds, workers);
}

/* A job of two ranks in a namespace of their own */
void join_pair(int *fds, const char *more)
{
	host_net();
	job_add(2, more);
	join_all(fds, 2);
}

/* A rank, and the application at the PS, which does not wait for it */
void join_with_server(int *fds)
{
	host_net();
	job_add(1, "server");
	fds[0] = new_socket(0);
	fds[1] = new_socket(SOCK_NONBLOCK);
	ASSERT_EQ(do_connect(fds[1], JOB, ATP_SERVER), -1);
	ASSERT_EQ(errno, EINPROGRESS);
	ASSERT_EQ(do_connect(fds[0], JOB, 0), 0);
}

struct atp_info info_of(int fd)
{
	struct atp_info info = {};
	socklen_t len = sizeof(info);

	ASSERT_EQ(getsockopt(fd, SOL_ATP, ATP_INFO, &info, &len), 0);
	ASSERT_EQ(len, sizeof(info));
	return info;
}

/* SO_ERROR */
int error_of(int fd)
{
	socklen_t len = sizeof(int);
	int error = -1;

	ASSERT_EQ(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
	return error;
}

/* Everything that poll() says; zero for nothing. */
int events_of(int fd, int timeout_ms)
{
	struct pollfd p = {
		.fd = fd,
		.events = POLLIN | POLLOUT | POLLRDHUP | POLLPRI,
	};
	int n = poll(&p, 1, timeout_ms);

	ASSERT_GE(n, 0);
	return n ? p.revents : 0;
}

void wait_events(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	ASSERT_EQ(poll(&p, 1, LIMIT_MS), 1);
}

void wait_state(int fd, uint32_t state)
{
	unsigned int tries = 0;

	while (info_of(fd).state != state)
		may_wait(&tries, "state");
}

void set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	ASSERT_EQ(fcntl(fd, F_SETFL, flags), 0);
}

void set_dtype(int fd, int dtype)
{
	ASSERT_EQ(setsockopt(fd, SOL_ATP, ATP_DTYPE, &dtype, sizeof(dtype)), 0);
}

void set_timeout(int fd, int option, unsigned int ms)
{
	struct timeval tv = {
		.tv_sec = ms / 1000,
		.tv_usec = ms % 1000 * 1000,
	};

	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv)), 0);
}

void set_sndbuf(int fd, int bytes)
{
	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)),
		  0);
}

/* A word of SO_MEMINFO */
uint32_t meminfo(int fd, int word)
{
	uint32_t mem[SK_MEMINFO_VARS] = {};
	socklen_t len = sizeof(mem);

	ASSERT_EQ(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, mem, &len), 0);
	return mem[word];
}

/* SIOCOUTQ or SIOCINQ */
int queue_of(int fd, unsigned long which)
{
	int bytes = -1;

	ASSERT_EQ(ioctl(fd, which, &bytes), 0);
	return bytes;
}

void push(int fd, const void *lanes, size_t bytes)
{
	ASSERT_EQ(send(fd, lanes, bytes, MSG_NOSIGNAL), bytes);
}

void pull(int fd, void *lanes, size_t bytes)
{
	ASSERT_EQ(recv(fd, lanes, bytes, 0), bytes);
}

/* Push until that would wait; all of one size.  Return: how many. */
int fill(int fd, const void *bytes, size_t len)
{
	int n = 0;

	while (send(fd, bytes, len, MSG_DONTWAIT) == (ssize_t)len)
		n++;
	EXPECT_EQ(errno, EAGAIN);
	return n;
}

/* One chunk of int32 through all ranks, which have nothing in flight. */
void sum_works(int *fds, uint32_t workers)
{
	int32_t lanes[1000];
	uint32_t i, k;

	for (i = 0; i < workers; i++) {
		set_dtype(fds[i], ATP_INT32);
		for (k = 0; k < 1000; k++)
			lanes[k] = (i + 1) * 1000 - k;
		push(fds[i], lanes, sizeof(lanes));
	}
	for (i = 0; i < workers; i++) {
		pull(fds[i], lanes, sizeof(lanes));
		for (k = 0; k < 1000; k++)
			ASSERT_EQ(lanes[k], 1000 * workers * (workers + 1) / 2 -
				  k * workers);
	}
}

/* Until the thread or process sleeps in a system call. */
void wait_asleep(pid_t tid)
{
	unsigned int tries = 0;
	char path[64], state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	do {
		may_wait(&tries, "sleep");
		f = fopen(path, "r");
		ASSERT_TRUE(f);
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = '?';
		fclose(f);
	} while (state != 'S');
}

/* Of a thread that has ended the kernel may still hold something. */
void wait_single_thread(void)
{
	unsigned int tries = 0;
	struct stat st;

	do {
		may_wait(&tries, "one thread");
		ASSERT_EQ(stat("/proc/self/task", &st), 0);
	} while (st.st_nlink > 3);
}

static void *push_thread(void *arg)
{
	struct call *c = arg;

	__atomic_store_n(&c->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	c->ret = send(c->fd, c->bytes, c->len, MSG_NOSIGNAL);
	if (c->ret < 0)
		c->ret = -errno;
	return NULL;
}

static void *pull_thread(void *arg)
{
	struct call *c = arg;

	__atomic_store_n(&c->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	c->ret = recv(c->fd, c->bytes, c->len, 0);
	if (c->ret < 0)
		c->ret = -errno;
	return NULL;
}

static void *connect_thread(void *arg)
{
	struct call *c = arg;

	__atomic_store_n(&c->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	c->ret = do_connect(c->fd, JOB, 0) ? -errno : 0;
	return NULL;
}

static void *join_thread(void *arg)
{
	struct call *c = arg;

	__atomic_store_n(&c->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	c->ret = do_join(c->fd, JOB, 0) ? -errno : 0;
	return NULL;
}

static void start_call(struct call *c, void *(*thread)(void *), int fd,
		       void *bytes, size_t len)
{
	*c = (struct call){ .fd = fd, .bytes = bytes, .len = len };
	ASSERT_EQ(pthread_create(&c->thread, NULL, thread, c), 0);
	while (!__atomic_load_n(&c->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	wait_asleep(c->tid);
}

void start_push(struct call *c, int fd, void *bytes, size_t len)
{
	start_call(c, push_thread, fd, bytes, len);
}

void start_pull(struct call *c, int fd, void *bytes, size_t len)
{
	start_call(c, pull_thread, fd, bytes, len);
}

/* As rank 0 */
void start_connect(struct call *c, int fd)
{
	start_call(c, connect_thread, fd, NULL, 0);
}

/* Likewise */
void start_join(struct call *c, int fd)
{
	start_call(c, join_thread, fd, NULL, 0);
}

ssize_t end_call(struct call *c)
{
	ASSERT_EQ(pthread_join(c->thread, NULL), 0);
	return c->ret;
}

static unsigned int handled;

/* Return when the signal was handled; the call may sleep again by then. */
void signal_asleep(const struct call *c, int sig)
{
	unsigned int tries = 0;
	unsigned int before = __atomic_load_n(&handled, __ATOMIC_ACQUIRE);

	wait_asleep(c->tid);
	ASSERT_EQ(pthread_kill(c->thread, sig), 0);
	while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) == before)
		may_wait(&tries, "handled");
}

static void on_signal(int sig)
{
	(void)sig;
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELEASE);
}

/* So that it interrupts a system call and does no harm. */
void catch_signal(int sig, int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };

	ASSERT_EQ(sigaction(sig, &sa, NULL), 0);
}
