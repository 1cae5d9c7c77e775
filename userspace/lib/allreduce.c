// SPDX-License-Identifier: GPL-2.0
/*
 * All-reduce of any length: a tensor is cut into chunks, which are pushed until
 * the socket has no room and pulled as they come.  Pushing never sleeps, so the
 * room that pulling makes is always made.
 *
 * Chunks stay where the caller has them, if the kernel can do that: then to
 * pull one is no more than to hear that its sum is there.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "priv.h"

/* Short chunks are copied, as pinning pages costs something, too. */
#define IN_PLACE_MIN	16384

/* Three seconds in all for others to give back the memory that is missing */
#define PAUSE_NS	10000000
#define PAUSES		300

static size_t chunk_size(const struct atp_request *req, size_t done)
{
	size_t left = req->size - done;

	return left < req->atp->cut ? left : req->atp->cut;
}

static void skip_empty(struct atp_request **req)
{
	while (*req && !(*req)->size)
		*req = (*req)->next;
}

static int set_type(struct atp *atp, int type)
{
	if (atp->type == type)
		return 0;
	if (setsockopt(atp->sock, SOL_ATP, ATP_DTYPE, &type, sizeof(type)))
		return -1;
	atp->type = type;
	return 0;
}

/* In place as long as the kernel takes them: after one that was copied, because
 * the user may not lock more memory, say, all that follow of the request are.
 */
static ssize_t send_chunk(struct atp_request *req, size_t size)
{
	const char *at = req->buf + req->pushed;
	int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	ssize_t ret;

	if (req->in_place == req->pushed && size >= IN_PLACE_MIN) {
		ret = send(req->atp->sock, at, size, flags | MSG_ZEROCOPY);
		if (ret >= 0)
			req->in_place += size;
		if (ret >= 0 || errno == EAGAIN || errno == EINTR)
			return ret;
		/* whatever it is, a copy has it, too, or has it not */
	}
	return send(req->atp->sock, at, size, flags);
}

/* Return: bytes of the sum, which is in place then, or -1 with errno.  In place
 * is where it was pushed, which is not here if this process was forked since.
 */
static ssize_t recv_chunk(struct atp_request *req, size_t size)
{
	if (req->pulled < req->in_place && getpid() == req->atp->pid)
		return recv(req->atp->sock, NULL, 0, MSG_DONTWAIT | MSG_TRUNC);
	return recv(req->atp->sock, req->buf + req->pulled, size,
		    MSG_DONTWAIT | MSG_TRUNC);
}

/* Memory is the host's or the control group's: others make it short, and may
 * give some back in a moment.  That must not end the run of all ranks.
 */
bool atp_try_again(struct atp *atp)
{
	struct timespec left = { .tv_nsec = PAUSE_NS };

	if (errno != ENOBUFS && errno != ENOMEM)
		return false;
	if (atp->pauses == PAUSES)
		return false;
	atp->pauses++;
	while (nanosleep(&left, &left) && errno == EINTR)
		;
	return true;
}

/* Return: 0 push that later, -1 with errno */
static int push_failed(struct atp *atp)
{
	if (errno == EAGAIN || errno == EINTR) {
		atp->full = true;
		return 0;
	}
	/* What is in flight gives memory back when it is pulled.  There is room
	 * in the socket, so to wait for that would be no waiting.
	 */
	if (atp->inflight && (errno == ENOBUFS || errno == ENOMEM))
		return 0;
	if (!atp_try_again(atp))
		return -1;
	/* there is room, which brings the caller back for the next try */
	atp->full = true;
	return 0;
}

/* Return: 1 pushed, 0 nothing to push or no room, -1 with errno */
static int push(struct atp *atp)
{
	struct atp_request *req;
	ssize_t size, ret;

	atp->full = false;
	skip_empty(&atp->push);
	req = atp->push;
	if (!req)
		return 0;
	if (set_type(atp, req->type))
		return -1;
	size = chunk_size(req, req->pushed);
	ret = send_chunk(req, size);
	if (ret < 0)
		return push_failed(atp);
	atp->pauses = 0;
	atp->inflight++;
	req->pushed += size;
	if (req->pushed == req->size)
		atp->push = req->next;
	return 1;
}

/* Return: 1 pulled, 0 nothing there, -1 with errno */
static int pull(struct atp *atp)
{
	struct atp_request *req;
	ssize_t size, ret;

	if (!atp->inflight)
		return 0;
	skip_empty(&atp->pull);
	req = atp->pull;
	size = chunk_size(req, req->pulled);
	ret = recv_chunk(req, size);
	if (ret < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (ret < 0 && errno == EOVERFLOW) {
		req->error = EOVERFLOW;
	} else if (ret < 0) {
		return -1;
	} else if (ret != size) {
		errno = EPROTO;
		return -1;
	}
	atp->inflight--;
	req->pulled += size;
	if (atp_request_done(req)) {
		atp->pull = req->next;
		atp->done++;
	}
	return 1;
}

/* Who neither pushes nor pulls hears only here that the run has ended, and
 * atp_fd() is readable from then on.  The application at the PS pulls.
 * Return: 0, or -1 with errno
 */
static int check_idle(struct atp *atp)
{
	struct pollfd p = { .fd = atp->sock };
	socklen_t len = sizeof(int);
	int error;

	if (atp->rank == ATP_SERVER || poll(&p, 1, 0) < 1)
		return 0;
	if (getsockopt(atp->sock, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	/* a process that was forked, or its parent, has left or taken that */
	if (!error && p.revents & POLLHUP)
		error = ENOTCONN;
	return error ? atp_fail(atp, error) : 0;
}

/* Return: 0, or -1 with errno */
static int advance(struct atp *atp)
{
	int pushed, pulled, error = 0;

	pushed = atp_check_joined(atp);
	if (pushed < 1)
		return pushed;
	skip_empty(&atp->push);
	if (!atp->push && !atp->inflight)
		return check_idle(atp);
	do {
		pushed = error ? 0 : push(atp);
		/* Results that were complete when the run ended are there. */
		if (pushed < 0)
			error = errno;
		pulled = pull(atp);
		if (pulled < 0 && !error)
			error = errno;
	} while (pulled > 0 || (pushed > 0 && !error));
	return error ? atp_fail(atp, error) : 0;
}

API int atp_progress(struct atp *atp)
{
	const struct atp_request *req;
	int ret = advance(atp), count = 0;

	if (atp_update_fd(atp))
		return -1;
	if (ret)
		return ret;
	for (req = atp->first; req; req = req->next)
		count += !atp_request_done(req);
	return count;
}

/* Sleep until the socket has something for us.
 * Return: 1 it has, 0 time is over, -1 with errno
 */
int atp_poll(struct atp *atp, int timeout)
{
	struct pollfd p = { .fd = atp->sock };
	int ret;

	if (!atp->joined || atp->full)
		p.events |= POLLOUT;
	if (atp->inflight || (atp->joined && atp->rank == ATP_SERVER))
		p.events |= POLLIN;
	ret = poll(&p, 1, timeout);
	/* a signal: the caller looks at the clock */
	return ret < 0 && errno == EINTR ? 1 : ret;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t atp_deadline(int timeout)
{
	return timeout < 0 ? -1 : now_ms() + timeout;
}

/* Sleep, but not beyond the deadline.
 * Return: 1 look again, 0 time is over, -1 with errno
 */
int atp_sleep_until(struct atp *atp, int64_t deadline)
{
	int64_t left = -1;

	if (deadline >= 0) {
		left = deadline - now_ms();
		if (left <= 0)
			return 0;
	}
	return atp_poll(atp, left);
}

API int atp_joined(struct atp *atp, int timeout)
{
	int64_t deadline = atp_deadline(timeout);
	int ret;

	while (!(ret = atp_check_joined(atp))) {
		ret = atp_sleep_until(atp, deadline);
		if (ret < 1)
			return ret;
	}
	return ret;
}

API struct atp_request *atp_allreduce_start(struct atp *atp, void *buf,
					    size_t count,
					    enum atp_data_type type)
{
	struct atp_request *req;

	if (atp->error) {
		errno = atp->error;
		return NULL;
	}
	if (atp->rank == ATP_SERVER ||
	    (type != ATP_FLOAT32 && type != ATP_INT32) ||
	    count > PTRDIFF_MAX / 4) {
		errno = EINVAL;
		return NULL;
	}
	req = calloc(1, sizeof(*req));
	if (!req)
		return NULL;
	req->atp = atp;
	req->buf = buf;
	req->size = count * 4;
	req->type = type;
	/* of nothing, done at once */
	atp->done += !count;
	*atp->last = req;
	atp->last = &req->next;
	if (!atp->push)
		atp->push = req;
	if (!atp->pull)
		atp->pull = req;
	/* A failure belongs to atp_wait(). */
	atp_progress(atp);
	return req;
}

API int atp_allreduce_start_at(struct atp_request **handle, struct atp *atp,
			       void *buf, size_t count, enum atp_data_type type)
{
	*handle = atp_allreduce_start(atp, buf, count, type);
	return *handle ? 0 : -1;
}

static void give_back(struct atp_request *req)
{
	struct atp *atp = req->atp;
	struct atp_request **link = &atp->first;

	while (*link != req)
		link = &(*link)->next;
	*link = req->next;
	if (atp->last == &req->next)
		atp->last = link;
	if (atp->push == req)
		atp->push = req->next;
	if (atp->pull == req)
		atp->pull = req->next;
	atp->done -= atp_request_done(req);
	free(req);
	atp_update_fd(atp);
}

API int atp_wait(struct atp_request *req, int timeout)
{
	int64_t deadline = atp_deadline(timeout);
	struct atp *atp = req->atp;
	int ret, error = 0;

	while (!atp_request_done(req)) {
		if (atp_progress(atp) < 0) {
			error = errno;
			break;
		}
		if (atp_request_done(req))
			break;
		ret = atp_sleep_until(atp, deadline);
		if (!ret)
			return 0;
		if (ret < 0) {
			error = errno;
			break;
		}
	}
	/* What was complete before the run ended is a result.  Whatever else
	 * has failed, the run is over: the buffer is the caller's again.
	 */
	if (atp_request_done(req)) {
		error = req->error;
	} else {
		atp_fail(atp, error);
		error = atp->error;
	}
	give_back(req);
	errno = error;
	return error ? -1 : 1;
}

API int atp_wait_at(struct atp_request **handle, int timeout, int *error)
{
	int ret;

	if (*handle) {
		ret = atp_wait(*handle, timeout);
		if (!ret)
			return 0;
		*error = ret < 0 ? errno : 0;
		*handle = NULL;
	}
	errno = *error;
	return *error ? -1 : 1;
}

API int atp_test(struct atp_request *req)
{
	return atp_wait(req, 0);
}

API int atp_allreduce(struct atp *atp, void *buf, size_t count,
		      enum atp_data_type type)
{
	struct atp_request *req = atp_allreduce_start(atp, buf, count, type);

	if (!req)
		return -1;
	return atp_wait(req, -1) < 0 ? -1 : 0;
}
