/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A page that appears when the test says so: whoever touches it, the kernel
 * included, waits until then (userfaultfd(2)).
 */
#ifndef _ATP_SELFTESTS_SOCKET_SLOW_H
#define _ATP_SELFTESTS_SOCKET_SLOW_H

#include <pthread.h>
#include <stddef.h>

struct slow {
	int fd;
	char *page;
	size_t size;
};

void slow_page(struct slow *slow);
/* Until somebody waits for it */
void slow_wait(struct slow *slow);
/* It appears, or never will */
void slow_fill(struct slow *slow, const void *bytes, size_t len);
void slow_unmap(struct slow *slow);

/**
 * struct owner - a thread that owns a socket until it is told to let go
 * @thread: that
 * @fd: socket
 * @slow: what it waits for meanwhile
 * @ret: of its call
 */
struct owner {
	pthread_t thread;
	int fd;
	struct slow slow;
	int ret;
};

/* Return when it owns the socket */
void own(struct owner *owner, int fd);
void disown(struct owner *owner);

#endif /* _ATP_SELFTESTS_SOCKET_SLOW_H */
