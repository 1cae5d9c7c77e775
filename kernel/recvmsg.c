// SPDX-License-Identifier: GPL-2.0
/*
 * Pulling: one recvmsg() is the result of one chunk, in order of pushing.  The
 * copy is made without the socket lock, as in sendmsg.c.
 */
#include <linux/uio.h>
#include "atp.h"

/* Also evaluated without the lock, so of single words only. */
static bool atp_sk_may_pull(struct sock *sk)
{
	u8 shutdown = READ_ONCE(sk->sk_shutdown);

	return READ_ONCE(atp_sk(sk)->ready) ||
	       READ_ONCE(sk->sk_state) != TCP_ESTABLISHED ||
	       (shutdown & RCV_SHUTDOWN) ||
	       ((shutdown & SEND_SHUTDOWN) && !READ_ONCE(sk->sk_wmem_queued));
}

/* Sleep until there is a result or will be none.  Context: socket lock. */
static int atp_wait_result(struct sock *sk, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	if (atp_sk_may_pull(sk))
		return 0;
	add_wait_queue(sk_sleep(sk), &wait);
	while (!atp_sk_may_pull(sk)) {
		if (!*timeo) {
			err = -EAGAIN;
			break;
		}
		if (signal_pending(current)) {
			err = sock_intr_errno(*timeo);
			break;
		}
		sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
		sk_wait_event(sk, timeo, atp_sk_may_pull(sk), &wait);
		sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* Take the oldest chunk, or look at it.  Return: chunk; NULL with @err for
 * none: 0 after shutdown.  Context: process, takes the socket lock.
 */
static struct atp_chunk *atp_pull_begin(struct sock *sk, int flags, int *err)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_chunk *chunk = NULL;
	long timeo;

	lock_sock(sk);
	timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	*err = atp_wait_result(sk, &timeo);
	if (*err)
		goto out;
	if (as->ready) {
		chunk = as->worker.head;
		if (flags & MSG_PEEK)
			container_of(chunk, struct atp_push, chunk)->users++;
		else
			atp_worker_pop(&as->worker);
		atp_sk_ready(sk);
		goto out;
	}
	/* the run has ended, or nothing was ever joined, or shutdown */
	*err = sock_error(sk);
	if (!*err)
		*err = atp_sk_errno(sk);
out:
	release_sock(sk);
	return chunk;
}

static void atp_pull_end(struct sock *sk, struct atp_chunk *chunk)
{
	lock_sock(sk);
	atp_chunk_put(sk, chunk);
	sk->sk_write_space(sk);
	release_sock(sk);
}

int atp_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	struct atp_chunk *chunk;
	size_t size, copy;
	int err;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return -EOPNOTSUPP;

	chunk = atp_pull_begin(sk, flags, &err);
	if (!chunk)
		return err;
	size = (size_t)chunk->elements * 4;
	copy = min(len, size);
	err = copy;
	if (chunk->overflow)
		err = -EOVERFLOW;
	else if (copy_to_iter(chunk->data, copy, &msg->msg_iter) != copy)
		err = -EFAULT;
	if (copy < size) {
		msg->msg_flags |= MSG_TRUNC;
		if (err >= 0 && (flags & MSG_TRUNC))
			err = size;
	}
	msg->msg_flags |= MSG_EOR;
	atp_pull_end(sk, chunk);
	return err;
}
