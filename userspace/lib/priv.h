/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LIBATP_PRIV_H
#define _LIBATP_PRIV_H

#include <stdbool.h>
#include <sys/types.h>

#include "atp.h"

#define API __attribute__((visibility("default")))

/**
 * struct atp_request - an all-reduce
 * @atp: rank
 * @next: started after this one
 * @buf: values and sums
 * @size: bytes of @buf
 * @pushed: bytes pushed
 * @pulled: bytes pulled, or lost to an overflow
 * @in_place: the first bytes, pushed without a copy: their sums come there
 * @type: enum atp_data_type
 * @error: errno, 0 so far
 */
struct atp_request {
	struct atp *atp;
	struct atp_request *next;
	char *buf;
	size_t size;
	size_t pushed;
	size_t pulled;
	size_t in_place;
	int type;
	int error;
};

/**
 * struct atp - a rank
 * @job: job ID
 * @rank: own rank
 * @sock: socket, non-blocking
 * @pid: process that has joined; one that was forked has the socket, too, but
 *	other memory
 * @joined: all ranks have joined
 * @error: errno that ended the run, 0 while it goes on
 * @cut: bytes of a chunk, a multiple of the fragment
 * @type: ATP_DTYPE of the socket
 * @full: the last push found no room, or no memory and nothing in flight
 * @pauses: made for memory since something was pushed or pulled
 * @inflight: chunks pushed and not pulled
 * @done: requests that are done and were not given back
 * @first: oldest request that was not given back
 * @last: link of the newest
 * @push: next request to be pushed
 * @pull: next request to be pulled
 * @info: taken when the run ended
 * @epoll: descriptor for the application, or -1
 * @ready: event that is always there, in @epoll
 * @events: that @epoll waits for on @sock
 * @signal: @epoll waits for @ready
 * @pulled: (ATP_SERVER) lanes pulled in this run
 * @unknown: (that failed to join) flags that there are not
 */
struct atp {
	uint32_t job;
	uint32_t rank;
	int sock;
	pid_t pid;
	bool joined;
	int error;
	size_t cut;
	int type;
	bool full;
	unsigned int pauses;
	unsigned int inflight;
	unsigned int done;
	struct atp_request *first;
	struct atp_request **last;
	struct atp_request *push;
	struct atp_request *pull;
	struct atp_info info;
	int epoll;
	int ready;
	uint32_t events;
	bool signal;
	uint64_t pulled;
	unsigned int unknown;
};

/* join.c */
int atp_check_joined(struct atp *atp);
int atp_poll(struct atp *atp, int timeout);
/* Remember why the run ended, return -1 */
int atp_fail(struct atp *atp, int error);

/* allreduce.c */
int64_t atp_deadline(int timeout);
int atp_sleep_until(struct atp *atp, int64_t deadline);
/* Pause, if errno says that memory is short; return whether to try again */
bool atp_try_again(struct atp *atp);

/* fd.c */
int atp_update_fd(struct atp *atp);
void atp_close_fd(struct atp *atp);

static inline bool atp_request_done(const struct atp_request *req)
{
	return req->pulled == req->size;
}

#endif /* _LIBATP_PRIV_H */
