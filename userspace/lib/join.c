// SPDX-License-Identifier: GPL-2.0
/* Joining, leaving, and what went wrong, in words. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "priv.h"

/* All ranks must cut a tensor alike.  Large enough for few system calls, small
 * enough that many are in flight in the default send buffer.
 */
#define CUT	(256 * 1024)

/* Who failed to join has no handle to ask. */
static __thread struct atp failed_join;

static void read_info(const struct atp *atp, struct atp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	getsockopt(atp->sock, SOL_ATP, ATP_INFO, info, &len);
}

/* Leave the run at once.  The caller's memory is his again, so the kernel must
 * not write sums there any more; closing alone would not do if a process that
 * was forked has the socket, too.  That one closes and no more: the run is its
 * parent's.
 */
static void leave_run(const struct atp *atp)
{
	struct sockaddr addr = { .sa_family = AF_UNSPEC };

	if (getpid() == atp->pid)
		connect(atp->sock, &addr, sizeof(addr));
}

int atp_fail(struct atp *atp, int error)
{
	if (!atp->error) {
		atp->error = error;
		read_info(atp, &atp->info);
		/* the run may go on without what has failed here */
		if (atp->info.state == ATP_JOINED)
			leave_run(atp);
	}
	errno = atp->error;
	return -1;
}

/* Return: 1 joined, 0 not yet, -1 with errno */
int atp_check_joined(struct atp *atp)
{
	struct pollfd p = { .fd = atp->sock, .events = POLLOUT };
	socklen_t len = sizeof(int);
	struct atp_info info;
	int error;

	if (atp->error) {
		errno = atp->error;
		return -1;
	}
	if (atp->joined)
		return 1;
	if (poll(&p, 1, 0) < 1)
		return 0;
	if (getsockopt(atp->sock, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	if (error)
		return atp_fail(atp, error);
	read_info(atp, &info);
	atp->cut = CUT / info.fragment * info.fragment;
	atp->joined = true;
	/* room to push is no news any more */
	return atp_update_fd(atp) ? -1 : 1;
}

static int start_join(struct atp *atp)
{
	struct sockaddr_atp addr = {
		.satp_family = AF_ATP,
		.satp_rank = atp->rank,
		.satp_job = atp->job,
	};

	/* the address has less room for it */
	if (atp->rank >= ATP_MAX_WORKERS && atp->rank != ATP_SERVER) {
		errno = EINVAL;
		return -1;
	}
	atp->sock = socket(AF_ATP,
			   SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (atp->sock < 0)
		return -1;
	if (connect(atp->sock, (struct sockaddr *)&addr, sizeof(addr)) &&
	    errno != EINPROGRESS)
		return -1;
	return 0;
}

/* Keep it for atp_describe(NULL). */
static struct atp *join_failed(const struct atp *atp)
{
	failed_join = *atp;
	errno = atp->error;
	return NULL;
}

API struct atp *atp_join(uint32_t job, uint32_t rank, unsigned int flags)
{
	struct atp *atp;

	if (flags & ~ATP_NOWAIT)
		return join_failed(&(struct atp){
			.job = job,
			.rank = rank,
			.unknown = flags & ~ATP_NOWAIT,
			.error = EINVAL,
		});
	atp = calloc(1, sizeof(*atp));
	if (!atp)
		return join_failed(&(struct atp){
			.job = job,
			.rank = rank,
			.error = ENOMEM,
		});
	atp->job = job;
	atp->rank = rank;
	atp->sock = -1;
	atp->pid = getpid();
	atp->epoll = -1;
	atp->ready = -1;
	atp->last = &atp->first;

	if (!start_join(atp) &&
	    (flags & ATP_NOWAIT || atp_joined(atp, -1) == 1))
		return atp;

	atp_fail(atp, errno);
	join_failed(atp);
	atp_leave(atp);
	errno = failed_join.error;
	return NULL;
}

API int atp_join_at(struct atp **handle, uint32_t job, uint32_t rank,
		    unsigned int flags)
{
	*handle = atp_join(job, rank, flags);
	return *handle ? 0 : -1;
}

API void atp_leave(struct atp *atp)
{
	struct atp_request *req, *next;

	if (!atp)
		return;
	for (req = atp->first; req; req = next) {
		next = req->next;
		free(req);
	}
	atp_close_fd(atp);
	if (atp->sock >= 0) {
		leave_run(atp);
		close(atp->sock);
	}
	free(atp);
}

API void atp_leave_at(struct atp **handle)
{
	atp_leave(*handle);
	*handle = NULL;
}

API int atp_get_info(struct atp *atp, struct atp_info *info)
{
	if (atp->error)
		*info = atp->info;
	else
		read_info(atp, info);
	return 0;
}

/**
 * struct text - words that may not fit
 * @at: start
 * @size: of the room
 * @len: of the words
 */
struct text {
	char *at;
	size_t size;
	size_t len;
};

static void __attribute__((format(printf, 2, 3)))
say(struct text *text, const char *fmt, ...)
{
	size_t left = text->len < text->size ? text->size - text->len : 0;
	va_list args;

	va_start(args, fmt);
	text->len += vsnprintf(left ? text->at + text->len : NULL, left, fmt,
			       args);
	va_end(args);
}

/* "rank 2 is", "ranks 2,5 are" */
static void say_ranks(struct text *text, uint32_t ranks, const char *one,
		      const char *many)
{
	const char *sep = " ";
	unsigned int i;

	say(text, ranks & (ranks - 1) ? "ranks" : "rank");
	for (i = 0; i < ATP_MAX_WORKERS; i++) {
		if (!(ranks & 1U << i))
			continue;
		say(text, "%s%u", sep, i);
		sep = ",";
	}
	say(text, " %s", ranks & (ranks - 1) ? many : one);
}

/* Return: whether that is all to be said of the place of the application */
static bool say_server(struct text *text, int error)
{
	switch (error) {
	case EADDRINUSE:
		say(text, "another application makes the results");
		return true;
	case EADDRNOTAVAIL:
		say(text, "this host is not the PS");
		return true;
	case EINVAL:
		say(text, "it was added without \"server\"");
		return true;
	default:
		return false;
	}
}

static void say_reason(struct text *text, const struct atp *atp)
{
	const struct atp_info *info = &atp->info;

	switch (info->reason) {
	case ATP_REASON_LEFT:
		say_ranks(text, info->ranks, "has left", "have left");
		return;
	case ATP_REASON_SILENT:
		say_ranks(text, info->ranks, "is silent", "are silent");
		return;
	case ATP_REASON_PS_SILENT:
		say(text, "the PS is silent, or this host is cut off");
		return;
	case ATP_REASON_UNANSWERED:
		say(text,
		    "the PS lives, but answers no fragment: path MTU?");
		return;
	case ATP_REASON_REJOIN:
		say_ranks(text, info->ranks, "has started again",
			  "have started again");
		return;
	case ATP_REASON_DISAGREE:
		say_ranks(text, info->ranks, "pushes other lengths or types",
			  "push other lengths or types");
		return;
	case ATP_REASON_EPOCH:
		say(text, "the PS does not know this run, it was restarted");
		return;
	case ATP_REASON_MISMATCH:
		say_ranks(text, info->ranks,
			  "has the job configured differently than the PS",
			  "have the job configured differently than the PS");
		return;
	case ATP_REASON_REMOVED:
		say(text, "the job was removed at the PS");
		return;
	case ATP_REASON_MTU:
		say_ranks(text, info->ranks,
			  "has an MTU on its path that is too small",
			  "have an MTU on their path that is too small");
		return;
	case ATP_REASON_SERVER:
		say(text, "the application at the PS has left");
		return;
	case ATP_REASON_LATE:
		if (!info->ranks) {
			say(text,
			    "the application at the PS kept all waiting");
			return;
		}
		say_ranks(text, info->ranks,
			  "kept the others waiting for too long",
			  "kept the others waiting for too long");
		return;
	}

	if (atp->unknown) {
		say(text, "atp_join() knows no flags 0x%x", atp->unknown);
		return;
	}
	if (atp->rank == ATP_SERVER && say_server(text, atp->error))
		return;
	switch (atp->error) {
	case EAFNOSUPPORT:
		say(text, "this kernel has no AF_ATP, try modprobe atp");
		return;
	case ENOENT:
		say(text, "no such job on this host");
		return;
	case EACCES:
	case EPERM:
		say(text, "this user may not join");
		return;
	case EADDRINUSE:
		say(text, "rank %u is taken on this host", atp->rank);
		return;
	case EADDRNOTAVAIL:
		say(text, "the address of rank %u is not on this host",
		    atp->rank);
		return;
	case EINVAL:
		say(text, "there is no rank %u", atp->rank);
		return;
	default:
		say(text, "%s", strerror(atp->error));
	}
}

API int atp_describe(struct atp *atp, char *words, size_t size)
{
	struct text text = { .at = words, .size = size };
	struct atp_info info;

	if (!atp)
		atp = &failed_join;
	say(&text, "job %u: ", atp->job);
	if (atp->error) {
		say_reason(&text, atp);
		return text.len;
	}
	read_info(atp, &info);
	if (info.state == ATP_JOINING && atp->rank == ATP_SERVER)
		say(&text, "the application waits for the ranks to join");
	else if (info.state == ATP_JOINING)
		say(&text, "rank %u waits for the others to join", atp->rank);
	else if (info.flags & ATP_INFO_SERVER)
		say(&text, "the application at the PS is waited for");
	else if (!info.ranks && atp->rank == ATP_SERVER)
		say(&text, "the application is at work");
	else if (!info.ranks)
		say(&text, "rank %u is at work", atp->rank);
	else
		say_ranks(&text, info.ranks, "is waited for",
			  "are waited for");
	return text.len;
}
