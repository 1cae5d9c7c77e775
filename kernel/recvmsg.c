// SPDX-License-Identifier: GPL-2.0
/*
 * Pulling: one recvmsg() is the result of one chunk, in order of pushing.  The
 * copy is made without the socket lock, as in sendmsg.c; until it has succeeded
 * the chunk may have to go back.
 */
#include <linux/uio.h>
#include "atp.h"

/* Also evaluated without the lock, so of single words only. */
static bool atp_sk_may_pull(struct sock *sk, u32 run)
{
	const struct atp_sock *as = atp_sk(sk);

	return READ_ONCE(as->ready) || READ_ONCE(as->eof) ||
	       READ_ONCE(as->alone) || READ_ONCE(as->run) != run ||
	       READ_ONCE(sk->sk_state) != TCP_ESTABLISHED;
}

/* An application at the PS that owes results: the workers may not send more
 * until they have them.  If this descriptor is the only one, of a process with
 * one thread, nobody gives them while it sleeps.  Context: socket lock.
 */
static bool atp_sk_owes(const struct sock *sk)
{
	const struct file *file = sk->sk_socket->file;

	sock_owned_by_me(sk);

	return atp_sk(sk)->server && atp_server_owes(atp_sk(sk)) && file &&
	       file_count(file) == 1;
}

/* Sleep until there is a result or will be none.  Context: socket lock. */
static int atp_wait_result(struct sock *sk, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	u32 run = atp_sk(sk)->run;
	long nap, left;
	int err = 0;

	sock_owned_by_me(sk);

	if (atp_sk_may_pull(sk, run))
		return 0;
	add_wait_queue(sk_sleep(sk), &wait);
	while (!atp_sk_may_pull(sk, run)) {
		if (!*timeo) {
			err = -EAGAIN;
			break;
		}
		if (atp_sk_owes(sk)) {
			err = -EMSGSIZE;
			break;
		}
		if (signal_pending(current)) {
			err = sock_intr_errno(*timeo);
			break;
		}
		sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
		nap = atp_nap(*timeo);
		left = nap;
		sk_wait_event(sk, &left, atp_sk_may_pull(sk, run), &wait);
		atp_woke(timeo, nap, left);
		sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* The oldest chunk, to be taken or looked at.  Context: socket lock. */
static struct atp_chunk *atp_sk_pull(struct sock *sk, bool peek)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_chunk *chunk = as->worker.head;

	sock_owned_by_me(sk);

	if (peek)
		container_of(chunk, struct atp_push, chunk)->users++;
	else
		atp_worker_pop(&as->worker);
	atp_sk_update(sk);
	return chunk;
}

/* Take the oldest chunk, or look at it.  Return: chunk; NULL with @err for
 * none: 0 after the last; @run is whose result it is.  Context: process, takes
 * the socket lock.
 */
static struct atp_chunk *atp_pull_begin(struct sock *sk, size_t len, int flags,
					u32 *run, int *err)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_chunk *chunk = NULL;
	long timeo;

	lock_sock(sk);
	*run = as->run;
	timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	*err = atp_wait_result(sk, &timeo);
	if (*err)
		goto out;
	if (as->run != *run) {
		/* the socket has left, and joined another one perhaps */
		*err = atp_sk_errno(sk) ?: -ECONNRESET;
		goto out;
	}
	if (as->server)
		atp_server_seen(sk);
	if (as->ready) {
		chunk = as->server ?
			atp_server_pull(sk, min_t(size_t, len / 4, U32_MAX),
					flags & MSG_PEEK, err) :
			atp_sk_pull(sk, flags & MSG_PEEK);
		if (chunk || *err)
			goto out;
	}
	/* the run has ended, or nothing was ever joined, or shutdown, or others
	 * have left: that fails the call, not the run, which may have given all
	 * that it should
	 */
	*err = sock_error(sk);
	if (!*err && as->alone)
		*err = atp_reason_errno(as->session.unserved ?
					ATP_REASON_SERVER : ATP_REASON_LEFT);
	if (!*err && !as->eof)
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

/* Nobody has got it: the next recvmsg() may, if its run is still there. */
static void atp_pull_undo(struct sock *sk, struct atp_chunk *chunk, u32 run)
{
	struct atp_sock *as = atp_sk(sk);

	lock_sock(sk);
	if (as->run != run || !(as->running || as->server)) {
		atp_chunk_put(sk, chunk);
		sk->sk_write_space(sk);
	} else if (as->server) {
		atp_server_put_back(sk, chunk);
	} else {
		atp_worker_put_back(&as->worker, chunk);
		atp_sk_update(sk);
		if (as->ready)
			sk->sk_data_ready(sk);
	}
	release_sock(sk);
}

/* Lanes of a chunk that may be in pages, each a copy of its own. */
static bool atp_pull_lanes(const struct atp_chunk *chunk, size_t copy,
			   struct iov_iter *to)
{
	size_t done, some;
	u32 n, *lanes;

	for (done = 0; done < copy; done += some) {
		n = chunk->elements - done / 4;
		lanes = atp_chunk_lanes(chunk, done / 4, &n);
		some = min_t(size_t, copy - done, (size_t)n * 4);
		if (copy_to_iter(lanes, some, to) != some)
			return false;
	}
	return true;
}

/* Return: bytes copied or a negative errno. */
static int atp_pull_copy(const struct atp_chunk *chunk, struct msghdr *msg,
			 size_t len, int flags)
{
	const struct atp_push *push = container_of(chunk, struct atp_push,
						   chunk);
	size_t size = (size_t)chunk->elements * 4;
	size_t copy = min(len, size);

	if (chunk->overflow)
		return -EOVERFLOW;
	if (!atp_pull_lanes(chunk, copy, &msg->msg_iter))
		return -EFAULT;
	if (!push->part)
		msg->msg_flags |= MSG_EOR;
	if (copy == size)
		return copy;
	msg->msg_flags |= MSG_TRUNC;
	return flags & MSG_TRUNC ? size : copy;
}

int atp_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	struct atp_chunk *chunk;
	int err;
	u32 run;

	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (flags & MSG_ERRQUEUE)
		return atp_errqueue_recv(sk, msg);

	chunk = atp_pull_begin(sk, len, flags, &run, &err);
	if (!chunk)
		return err;
	err = atp_pull_copy(chunk, msg, len, flags);
	if (err == -EFAULT && !(flags & MSG_PEEK))
		atp_pull_undo(sk, chunk, run);
	else
		atp_pull_end(sk, chunk);
	return err;
}
