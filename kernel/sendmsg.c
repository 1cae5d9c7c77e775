// SPDX-License-Identifier: GPL-2.0
/*
 * Pushing: one sendmsg() is one chunk.  Its bytes are copied once, into memory
 * that is charged to the socket until the result has been pulled; fragments are
 * built from there for every transmission, and the result is written there.
 * With MSG_ZEROCOPY that is the user's own memory (zerocopy.c).
 *
 * The copy is made without the socket lock: user memory may take as long as it
 * likes to appear, and packets and other tasks must not wait for it.
 */
#include <linux/mm.h>
#include <linux/uio.h>
#include <net_proto_memory.h>
#include "atp.h"

/* What a chunk counts in the send buffer.  Pinned memory does as a copy would,
 * so that this bounds it, too.
 */
static u32 atp_chunk_cost(u32 len, bool zerocopy)
{
	return len + sizeof(struct atp_push) +
	       (zerocopy ? atp_pin_cost(len) : 0);
}

/* What it is charged for.  Whoever pushes should know the former beforehand,
 * which this is not good for, and limits should hold, which that is not.
 */
static u32 atp_chunk_memory(u32 len, bool zerocopy)
{
	return atp_alloc_size(sizeof(struct atp_push)) +
	       (zerocopy ? len + atp_alloc_size(atp_pin_cost(len)) :
			   atp_alloc_size(len));
}

/* Bytes that may still be pushed.  Context: any, without lock it is a hint. */
static int atp_sk_space(const struct sock *sk)
{
	return READ_ONCE(sk->sk_sndbuf) - READ_ONCE(sk->sk_wmem_queued);
}

/* Room for what was refused last, or for any byte?  What can never fit is
 * refused again at once, so that needs no room.  A result needs a sum that was
 * pulled.  Context: as above.
 */
bool atp_sk_writeable(const struct sock *sk)
{
	u32 wanted = READ_ONCE(atp_sk(sk)->wanted);

	if (READ_ONCE(atp_sk(sk)->unasked))
		return false;
	if (wanted > READ_ONCE(sk->sk_sndbuf))
		return true;
	return atp_sk_space(sk) >= (int)max(wanted, 1U);
}

/* There is more room, or another send buffer: wake who waits for that.  Each
 * looks whether it is enough and says again that it waits; a signal comes once,
 * when it is enough for what was refused last.  Context: socket lock.
 */
void atp_write_space(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	struct socket_wq *wq;
	bool enough;

	sock_owned_by_me(sk);

	/* room before @nospace, atp_poll() has them the other way round */
	smp_mb();
	if (!READ_ONCE(as->nospace))
		return;
	enough = atp_sk_writeable(sk);
	if (enough)
		WRITE_ONCE(as->nospace, false);
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM);
	if (enough)
		sk_wake_async(sk, SOCK_WAKE_SPACE, POLL_OUT);
	rcu_read_unlock();
}

/* Context: socket lock. */
static void atp_charge(struct sock *sk, u32 cost, u32 memory)
{
	sock_owned_by_me(sk);

	sk_wmem_queued_add(sk, cost);
	atp_sk(sk)->memory += memory;
	sk_mem_charge(sk, memory);
}

/* Context: socket lock. */
static void atp_uncharge(struct sock *sk, u32 cost, u32 memory)
{
	sock_owned_by_me(sk);

	sk_wmem_queued_add(sk, -cost);
	atp_sk(sk)->memory -= memory;
	sk_mem_uncharge(sk, memory);
}

/* The socket was charged for it already. */
static struct atp_push *atp_push_alloc(u32 len, bool zerocopy, gfp_t gfp)
{
	struct atp_push *push;

	push = kzalloc(sizeof(*push), gfp);
	if (!push)
		return NULL;
	if (!zerocopy) {
		push->chunk.data = atp_alloc(len, gfp);
		if (!push->chunk.data) {
			kfree(push);
			return NULL;
		}
	}
	push->chunk.elements = len / 4;
	push->users = 1;
	push->cost = atp_chunk_cost(len, zerocopy);
	push->memory = atp_chunk_memory(len, zerocopy);
	return push;
}

static void atp_push_free(struct atp_push *push)
{
	if (push->pin)
		atp_pin_put(push->pin);
	kvfree(push->chunk.data);
	kfree(push);
}

/* Return: 0 or a negative errno. */
static int atp_push_fill(struct atp_push *push, struct iov_iter *from,
			 bool zerocopy, gfp_t gfp)
{
	struct atp_chunk *chunk = &push->chunk;
	size_t len = (size_t)chunk->elements * 4;
	struct atp_pin *pin;

	if (zerocopy) {
		pin = atp_pin_chunk(chunk, from, gfp);
		if (IS_ERR(pin))
			return PTR_ERR(pin);
		push->pin = pin;
		return 0;
	}
	return copy_from_iter_full(chunk->data, len, from) ? 0 : -EFAULT;
}

/* When memory is short, each socket may hold as much as any other could hold,
 * too, and bytes of the least that it is promised.  The kernel would ask this
 * only of a socket with packets on their way, which do not tell what it holds.
 * Context: socket lock.
 */
static bool atp_sk_has_share(struct sock *sk, u32 cost, u32 memory)
{
	u64 held = PAGE_ALIGN(atp_sk(sk)->memory + memory);

	sock_owned_by_me(sk);

	if (!sk_under_memory_pressure(sk) ||
	    sk->sk_wmem_queued + cost <= READ_ONCE(atp_wmem[0]))
		return true;
	return sk_prot_mem_limits(sk, 2) >
	       percpu_counter_sum_positive(sk->sk_prot->sockets_allocated) *
	       (held >> PAGE_SHIFT);
}

/* Room for a sum, charged as what is pushed is.  Return: NULL if there is no
 * memory.  Context: socket lock, process.
 */
struct atp_push *atp_push_new(struct sock *sk, u32 len)
{
	u32 memory = atp_chunk_memory(len, false);
	u32 cost = atp_chunk_cost(len, false);
	struct atp_push *push;

	sock_owned_by_me(sk);

	if (!atp_sk_has_share(sk, cost, memory) ||
	    !sk_wmem_schedule(sk, memory))
		return NULL;
	push = atp_push_alloc(len, false, sk->sk_allocation | __GFP_NOWARN);
	if (!push)
		return NULL;
	atp_charge(sk, cost, memory);
	return push;
}

/* One user less; the last frees it.  Context: socket lock. */
void atp_chunk_put(struct sock *sk, struct atp_chunk *chunk)
{
	struct atp_push *push = container_of(chunk, struct atp_push, chunk);

	sock_owned_by_me(sk);

	if (--push->users)
		return;
	atp_uncharge(sk, push->cost, push->memory);
	atp_push_free(push);
}

/* Only pulling makes room once all results are there.  If this descriptor is
 * the only one, of a process with one thread, nobody is left to pull while it
 * sleeps.  Also evaluated without the lock.
 */
static bool atp_sk_sleeps_for_ever(const struct sock *sk)
{
	const struct file *file = sk->sk_socket->file;

	return READ_ONCE(atp_sk(sk)->idle) && file && file_count(file) == 1;
}

/* There is no room for a push: who sleeps, or waits for an edge or a signal, is
 * told when there is, also if it never asked poll.  Context: socket lock.
 */
void atp_sk_refused(struct sock *sk)
{
	sock_owned_by_me(sk);

	WRITE_ONCE(atp_sk(sk)->nospace, true);
	sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
}

/* Also evaluated without the lock, so of single words only. */
static bool atp_sk_may_push(struct sock *sk, u32 cost, u32 run)
{
	return atp_sk_space(sk) >= (int)cost ||
	       cost > READ_ONCE(sk->sk_sndbuf) ||
	       READ_ONCE(atp_sk(sk)->run) != run ||
	       READ_ONCE(sk->sk_state) != TCP_ESTABLISHED ||
	       (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN) ||
	       atp_sk_sleeps_for_ever(sk);
}

/* Sleep until a chunk of this cost fits, or the run is another.  Context:
 * socket lock.
 */
static int atp_wait_space(struct sock *sk, u32 cost, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	u32 run = atp_sk(sk)->run;
	long nap, left;
	int err = 0;

	sock_owned_by_me(sk);

	if (atp_sk_may_push(sk, cost, run))
		return 0;
	add_wait_queue(sk_sleep(sk), &wait);
	while (!atp_sk_may_push(sk, cost, run)) {
		WRITE_ONCE(atp_sk(sk)->wanted, cost);
		atp_sk_refused(sk);
		if (!*timeo) {
			err = -EAGAIN;
			break;
		}
		if (signal_pending(current)) {
			err = sock_intr_errno(*timeo);
			break;
		}
		nap = atp_nap(*timeo);
		left = nap;
		sk_wait_event(sk, &left, atp_sk_may_push(sk, cost, run),
			      &wait);
		atp_woke(timeo, nap, left);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* May chunks be pushed at all?  Context: socket lock. */
static int atp_push_error(struct sock *sk)
{
	int err;

	sock_owned_by_me(sk);

	err = sock_error(sk);
	if (!err)
		err = atp_sk_errno(sk);
	if (!err && (sk->sk_shutdown & SEND_SHUTDOWN))
		err = -EPIPE;
	return err;
}

/* Wait for room and charge the socket.  Return: 0 or a negative errno; @run and
 * @dtype are what the chunk is for.
 */
static int atp_push_begin(struct sock *sk, u32 cost, u32 memory, int flags,
			  u32 *run, u8 *dtype)
{
	struct atp_sock *as = atp_sk(sk);
	long timeo;
	int err;

	lock_sock(sk);
	*run = as->run;
	timeo = sock_sndtimeo(sk, flags & MSG_DONTWAIT);
	err = atp_wait_space(sk, cost, &timeo);
	if (err)
		goto out;
	err = atp_push_error(sk);
	if (err)
		goto out;
	err = -ECONNRESET;
	if (as->run != *run)
		goto out;
	/* results are copied anyway, to be built for all workers at once */
	err = -EOPNOTSUPP;
	if (as->server && flags & MSG_ZEROCOPY)
		goto out;
	err = -EMSGSIZE;
	if (cost > sk->sk_sndbuf)
		goto out;
	err = -EAGAIN;
	if (atp_sk_space(sk) < (int)cost) {
		WRITE_ONCE(as->wanted, cost);
		atp_sk_refused(sk);
		goto out;
	}
	WRITE_ONCE(as->wanted, 0);
	err = -ENOBUFS;
	if (!atp_sk_has_share(sk, cost, memory) ||
	    !sk_wmem_schedule(sk, memory))
		goto out;
	atp_charge(sk, cost, memory);
	*dtype = as->dtype;
	err = 0;
out:
	release_sock(sk);
	return err;
}

/* Give the chunk to the engine.  Context: socket lock. */
static int atp_push_chunk(struct sock *sk, struct atp_push *push)
{
	int err;

	sock_owned_by_me(sk);

	if (!atp_sk(sk)->server) {
		if (!atp_worker_push(&atp_sk(sk)->worker, &push->chunk))
			return -ENOBUFS;
		atp_sk_update(sk);
		atp_sk_push(sk);
		return 0;
	}
	err = atp_server_answer(sk, &push->chunk);
	if (!err) {
		/* the engine has a copy */
		atp_chunk_put(sk, &push->chunk);
		sk->sk_write_space(sk);
	}
	return err;
}

/* Give the chunk to the engine, unless its run has ended meanwhile. */
static int atp_push_end(struct sock *sk, struct atp_push *push, u32 run)
{
	int err;

	lock_sock(sk);
	err = atp_push_error(sk);
	if (!err && run != atp_sk(sk)->run)
		err = -ECONNRESET;
	if (!err)
		err = atp_push_chunk(sk, push);
	if (err) {
		atp_chunk_put(sk, &push->chunk);
		sk->sk_write_space(sk);
	}
	release_sock(sk);
	return err;
}

static void atp_push_cancel(struct sock *sk, u32 cost, u32 memory)
{
	lock_sock(sk);
	atp_uncharge(sk, cost, memory);
	sk->sk_write_space(sk);
	release_sock(sk);
}

static int atp_push(struct sock *sk, struct msghdr *msg, u32 len)
{
	bool zerocopy = msg->msg_flags & MSG_ZEROCOPY;
	gfp_t gfp = sk->sk_allocation | __GFP_NOWARN;
	u32 memory = atp_chunk_memory(len, zerocopy);
	u32 cost = atp_chunk_cost(len, zerocopy);
	struct atp_push *push;
	u32 run;
	int err;
	u8 dtype;

	err = atp_push_begin(sk, cost, memory, msg->msg_flags, &run, &dtype);
	if (err)
		return err;
	push = atp_push_alloc(len, zerocopy, gfp);
	if (!push) {
		err = -ENOBUFS;
		goto cancel;
	}
	push->chunk.dtype = dtype;
	err = atp_push_fill(push, &msg->msg_iter, zerocopy, gfp);
	if (err)
		goto free;
	return atp_push_end(sk, push, run);

free:
	atp_push_free(push);
cancel:
	atp_push_cancel(sk, cost, memory);
	return err;
}

int atp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	int err;

	/* sendmmsg() says MSG_BATCH of all messages but the last */
	if (msg->msg_flags & ~(MSG_DONTWAIT | MSG_NOSIGNAL | MSG_EOR |
			       MSG_ZEROCOPY | MSG_BATCH | MSG_CMSG_COMPAT))
		return -EOPNOTSUPP;
	if (msg->msg_namelen)
		return -EISCONN;
	/* none is defined, and what is not understood must not seem to work */
	if (msg->msg_controllen)
		return -EINVAL;
	if (!len || len % 4)
		return -EINVAL;
	if (len > INT_MAX / 2)
		return -EMSGSIZE;

	err = atp_push(sock->sk, msg, len);
	if (err == -EPIPE && !(msg->msg_flags & MSG_NOSIGNAL))
		send_sig(SIGPIPE, current, 0);
	return err ?: len;
}
