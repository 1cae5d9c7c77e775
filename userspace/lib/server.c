// SPDX-License-Identifier: GPL-2.0
/* The application at the PS: sums come, results go. */
#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "priv.h"

/* Return: 1 sums or the end, 0 nothing there, -1 with errno */
static int pull(struct atp *atp, void *buf, size_t size, struct atp_sum *sum)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	socklen_t len = sizeof(int);
	ssize_t ret;
	int type;

	ret = recvmsg(atp->sock, &msg, MSG_DONTWAIT);
	if (ret < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (ret < 0)
		return atp_try_again(atp) ? 0 : -1;
	atp->pauses = 0;
	/* the rest is lost, and nobody can answer what he does not know */
	if (msg.msg_flags & MSG_TRUNC) {
		errno = EMSGSIZE;
		return -1;
	}
	if (getsockopt(atp->sock, SOL_ATP, ATP_DTYPE, &type, &len))
		return -1;
	sum->first = atp->pulled;
	sum->count = ret / 4;
	sum->type = type;
	sum->last = !!(msg.msg_flags & MSG_EOR);
	atp->pulled += sum->count;
	return 1;
}

API int atp_pull_sum(struct atp *atp, void *buf, size_t count,
		     struct atp_sum *sum, int timeout)
{
	int64_t deadline = atp_deadline(timeout);
	int ret;

	if (atp->rank != ATP_SERVER || count > PTRDIFF_MAX / 4) {
		errno = EINVAL;
		return -1;
	}
	for (;;) {
		ret = atp_check_joined(atp);
		if (ret > 0)
			ret = pull(atp, buf, count * 4, sum);
		if (ret < 0)
			return atp_fail(atp, errno);
		if (ret > 0)
			return ret;
		ret = atp_sleep_until(atp, deadline);
		if (ret < 1)
			return ret;
	}
}

API int atp_push_result(struct atp *atp, const void *buf, size_t count)
{
	ssize_t ret;

	if (atp->error) {
		errno = atp->error;
		return -1;
	}
	if (atp->rank != ATP_SERVER || count > PTRDIFF_MAX / 4) {
		errno = EINVAL;
		return -1;
	}
	do {
		ret = send(atp->sock, buf, count * 4, MSG_NOSIGNAL);
	} while (ret < 0 && (errno == EINTR || atp_try_again(atp)));
	if (ret >= 0)
		atp->pauses = 0;
	/* a result that is not due is the caller's mistake */
	if (ret < 0 && errno != EINVAL && errno != EAGAIN)
		return atp_fail(atp, errno);
	return ret < 0 ? -1 : 0;
}
