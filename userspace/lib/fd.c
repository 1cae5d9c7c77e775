// SPDX-License-Identifier: GPL-2.0
/*
 * One descriptor that is readable exactly when a call into the library is worth
 * while.  What that is on the socket changes: pulling waits for POLLIN, pushing
 * that found no room for POLLOUT too; hence an epoll descriptor, whose interest
 * follows the state.  What is done already is in no socket: an event that is
 * always there stands for it.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "priv.h"

static int watch(const struct atp *atp, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(atp->epoll, op, fd, &event);
}

static uint32_t wanted_events(const struct atp *atp)
{
	uint32_t events = 0;

	if (!atp->joined || atp->full)
		events |= EPOLLOUT;
	if (atp->inflight || (atp->joined && atp->rank == ATP_SERVER))
		events |= EPOLLIN;
	return events;
}

/* Return: 0, or -1 with errno */
int atp_update_fd(struct atp *atp)
{
	uint32_t events = wanted_events(atp);
	bool signal = atp->done;

	if (atp->epoll < 0)
		return 0;
	if (events != atp->events) {
		if (watch(atp, EPOLL_CTL_MOD, atp->sock, events))
			return -1;
		atp->events = events;
	}
	if (signal != atp->signal) {
		if (watch(atp, EPOLL_CTL_MOD, atp->ready,
			  signal ? EPOLLIN : 0))
			return -1;
		atp->signal = signal;
	}
	return 0;
}

void atp_close_fd(struct atp *atp)
{
	if (atp->epoll >= 0)
		close(atp->epoll);
	if (atp->ready >= 0)
		close(atp->ready);
	atp->epoll = -1;
	atp->ready = -1;
}

API int atp_fd(struct atp *atp)
{
	int error;

	if (atp->epoll >= 0)
		return atp->epoll;
	atp->events = 0;
	atp->signal = false;
	atp->epoll = epoll_create1(EPOLL_CLOEXEC);
	atp->ready = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (atp->epoll < 0 || atp->ready < 0 ||
	    watch(atp, EPOLL_CTL_ADD, atp->sock, 0) ||
	    watch(atp, EPOLL_CTL_ADD, atp->ready, 0) || atp_update_fd(atp)) {
		error = errno;
		atp_close_fd(atp);
		errno = error;
		return -1;
	}
	return atp->epoll;
}
