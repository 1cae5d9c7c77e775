/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests in C share: a network namespace in which the PS and all ranks
 * of a job live, and sockets that have joined.
 *
 * The PS is 127.0.0.1 and every rank 127.0.0.2, so that a parameter packet
 * comes once and no counter depends on copies.
 */
#ifndef _ATP_SELFTESTS_SOCKET_HOST_H
#define _ATP_SELFTESTS_SOCKET_HOST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <linux/atp.h>
#include <linux/sock_diag.h>
#include "tap.h"

#define JOB	7

#define FORMAT	__attribute__((format(printf, 1, 2)))

/* Longer than anything takes that works */
#define LIMIT_MS	60000

/* A call that shall fail with an errno */
#define EXPECT_ERRNO(call, err) do {					\
	errno = 0;							\
	EXPECT_EQ(call, -1);						\
	EXPECT_EQ(errno, err);						\
} while (0)

/* host.c */
void host_net(void);
void host_net_outside(const char *netns);
void host_to_nowhere(void);
int host_run(const char *fmt, ...) FORMAT;
void host_must(const char *fmt, ...) FORMAT;
int atp(const char *fmt, ...) FORMAT;
int listen_on_lo(int type, uint16_t protocol);
void job_add(uint32_t workers, const char *more);

int new_socket(int flags);
int do_bind(int fd, uint32_t job, uint32_t rank);
int do_connect(int fd, uint32_t job, uint32_t rank);
int do_join(int fd, uint32_t job, uint32_t rank);
void connect_all(int *fds, uint32_t workers);
void join_all(int *fds, uint32_t workers);
void join_pair(int *fds, const char *more);
void join_with_server(int *fds);

struct atp_info info_of(int fd);
int error_of(int fd);
int events_of(int fd, int timeout_ms);
void wait_events(int fd, short events);
void wait_state(int fd, uint32_t state);
void set_nonblock(int fd, bool on);
void set_dtype(int fd, int dtype);
void set_timeout(int fd, int option, unsigned int ms);
void set_sndbuf(int fd, int bytes);
uint32_t meminfo(int fd, int word);
int queue_of(int fd, unsigned long which);

/**
 * struct call - a push, a pull or a join in a thread of its own
 * @thread: that
 * @tid: its number, once it runs
 * @fd: socket
 * @bytes: chunk or result
 * @len: of it
 * @ret: bytes, 0 for a join, or a negative errno
 */
struct call {
	pthread_t thread;
	pid_t tid;
	int fd;
	void *bytes;
	size_t len;
	ssize_t ret;
};

/* Return when it sleeps */
void start_push(struct call *c, int fd, void *bytes, size_t len);
void start_pull(struct call *c, int fd, void *bytes, size_t len);
void start_connect(struct call *c, int fd);
void start_join(struct call *c, int fd);
void signal_asleep(const struct call *c, int sig);
ssize_t end_call(struct call *c);

void push(int fd, const void *lanes, size_t bytes);
void pull(int fd, void *lanes, size_t bytes);
int fill(int fd, const void *bytes, size_t len);
void sum_works(int *fds, uint32_t workers);
void wait_asleep(pid_t tid);
void wait_single_thread(void);
void catch_signal(int sig, int flags);

#endif /* _ATP_SELFTESTS_SOCKET_HOST_H */
