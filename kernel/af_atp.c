// SPDX-License-Identifier: GPL-2.0
/*
 * The socket family: address, options, joining, poll, release.
 *
 * sk_state: TCP_CLOSE (not joined, or failed) > TCP_SYN_SENT (joining) >
 * TCP_ESTABLISHED (joined) > TCP_CLOSE.
 */
#include <linux/module.h>
#include <linux/poll.h>
#include <net_sendpage.h>
#include "atp.h"

static atomic_long_t atp_memory_allocated;
static DEFINE_PER_CPU(int, atp_memory_per_cpu_fw_alloc);
static unsigned long atp_memory_pressure;
static struct percpu_counter atp_sockets_allocated;

static void atp_enter_memory_pressure(struct sock *sk)
{
	WRITE_ONCE(atp_memory_pressure, 1);
}

static void atp_leave_memory_pressure(struct sock *sk)
{
	WRITE_ONCE(atp_memory_pressure, 0);
}

struct proto atp_prot = {
	.name			= "ATP",
	.owner			= THIS_MODULE,
	.obj_size		= sizeof(struct atp_sock),
	.release_cb		= atp_sk_release_cb,
	.memory_allocated	= &atp_memory_allocated,
	.per_cpu_fw_alloc	= &atp_memory_per_cpu_fw_alloc,
	.sockets_allocated	= &atp_sockets_allocated,
	.enter_memory_pressure	= atp_enter_memory_pressure,
	.leave_memory_pressure	= atp_leave_memory_pressure,
	.memory_pressure	= &atp_memory_pressure,
	.sysctl_mem		= atp_mem,
	.sysctl_wmem		= atp_wmem,
	.sysctl_rmem		= &atp_rmem,
};

/* Let go of a job that was removed; one with its ID may have been added since.
 * Context: socket lock.
 */
static void atp_sk_unbind(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_job *job = as->job;

	sock_owned_by_me(sk);

	atp_sk_purge(sk);
	atp_job_detach(job, sk, as->rank);
	as->attached = false;
	atp_sk_free_frags(sk);
	dst_cache_destroy(&as->dst);
	memset(&as->dst, 0, sizeof(as->dst));
	memset(&as->session, 0, sizeof(as->session));
	/* a packet that still finds the socket may look */
	WRITE_ONCE(as->job, NULL);
	as->server = false;
	WRITE_ONCE(as->unasked, false);
	/* nor is a join of then to be told of */
	sk->sk_socket->state = SS_UNCONNECTED;
	/* a sum that is being copied has no place to go back to */
	WRITE_ONCE(as->run, as->run + 1);
	atp_job_put(job);
}

/* Has the job such a rank, and on this host? */
static int atp_check_rank(const struct atp_job *job, u32 rank)
{
	if (rank == ATP_SERVER && job->params.server)
		return job->role & ATP_ROLE_PS ? 0 : -EADDRNOTAVAIL;
	if (rank >= job->params.workers)
		return -EINVAL;
	return atp_addr_local(job->net, &job->addr[rank]) ? 0 : -EADDRNOTAVAIL;
}

/* Take a rank of a job, or the application's place.  Context: socket lock. */
static int atp_sk_bind(struct sock *sk, u32 id, u32 rank)
{
	struct net *net = sock_net(sk);
	struct atp_sock *as = atp_sk(sk);
	struct atp_job *job;
	int err;

	sock_owned_by_me(sk);

	if (as->job && READ_ONCE(as->job->dead) && sk->sk_state == TCP_CLOSE)
		atp_sk_unbind(sk);
	if (as->job) {
		if (as->job->params.job == id && as->rank == rank)
			return 0;
		return -EINVAL;
	}
	job = atp_job_get(atp_pernet(net), id);
	if (!job)
		return -ENOENT;
	err = -EACCES;
	if (!atp_job_may_join(job, net))
		goto put;
	err = atp_check_rank(job, rank);
	if (err)
		goto put;
	err = dst_cache_init(&as->dst, ATP_GFP);
	if (err)
		goto put;
	/* packets reach the socket from here on */
	WRITE_ONCE(as->job, job);
	as->rank = rank;
	as->server = rank == ATP_SERVER;
	err = atp_job_attach(job, sk, rank);
	if (err)
		goto undo;
	as->attached = true;
	return 0;

undo:
	as->server = false;
	WRITE_ONCE(as->job, NULL);
	dst_cache_destroy(&as->dst);
	memset(&as->dst, 0, sizeof(as->dst));
put:
	atp_job_put(job);
	return err;
}

/* Also evaluated without the lock, so of single words only. */
static bool atp_sk_join_done(const struct sock *sk, u32 run)
{
	return READ_ONCE(sk->sk_state) != TCP_SYN_SENT ||
	       READ_ONCE(atp_sk(sk)->run) != run;
}

/* Sleep until all workers have joined.  Context: socket lock. */
static int atp_wait_join(struct sock *sk, long timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	u32 run = atp_sk(sk)->run;
	int err = 0;

	sock_owned_by_me(sk);

	if (atp_sk_join_done(sk, run))
		return 0;
	add_wait_queue(sk_sleep(sk), &wait);
	while (!atp_sk_join_done(sk, run)) {
		if (!timeo) {
			err = -EINPROGRESS;
			break;
		}
		if (signal_pending(current)) {
			err = sock_intr_errno(timeo);
			break;
		}
		sk_wait_event(sk, &timeo, atp_sk_join_done(sk, run), &wait);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	/* somebody else has given it up, and joins again perhaps */
	if (!err && atp_sk(sk)->run != run)
		err = -ECONNRESET;
	return err;
}

/* Has the application at the PS joined a run that all ranks have left in peace
 * before anybody looked?  Context: socket lock.
 */
static bool atp_sk_joined_and_over(const struct sock *sk)
{
	const struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	return as->server && as->eof && sk->sk_socket->state == SS_CONNECTING;
}

/**
 * atp_sk_join() - connect() and the socket option ATP_JOIN
 * @sk: socket
 * @id: job
 * @rank: rank
 * @nonblock: do not wait for the other workers
 *
 * Context: process, takes the socket lock.
 * Return: 0 when all workers have joined, else a negative errno:
 * -EINPROGRESS and -EALREADY while they have not (poll for writing).
 */
int atp_sk_join(struct sock *sk, u32 id, u32 rank, bool nonblock)
{
	struct atp_sock *as = atp_sk(sk);
	struct socket *sock = sk->sk_socket;
	int err;

	lock_sock(sk);
	err = atp_sk_bind(sk, id, rank);
	if (err)
		goto out;
	switch (as->session.state) {
	case ATP_SESSION_JOINED:
		/* once 0 for who has not waited */
		if (sock->state != SS_CONNECTING) {
			err = -EISCONN;
			goto out;
		}
		break;
	case ATP_SESSION_JOINING:
		if (nonblock) {
			err = -EALREADY;
			goto out;
		}
		break;
	case ATP_SESSION_FAILED:
		/* of a join that nobody has waited for */
		if (sock->state == SS_CONNECTING && READ_ONCE(sk->sk_err))
			break;
		fallthrough;
	default:
		if (atp_sk_joined_and_over(sk))
			break;
		err = READ_ONCE(as->job->dead) ? -ENOENT :
		      as->server ? atp_server_start(sk) : atp_sk_start(sk);
		if (err)
			goto out;
		sock->state = SS_CONNECTING;
	}
	err = atp_wait_join(sk, sock_sndtimeo(sk, nonblock));
	if (err)
		goto out;
	if (as->session.state == ATP_SESSION_JOINED ||
	    atp_sk_joined_and_over(sk)) {
		sock->state = SS_CONNECTED;
	} else {
		sock->state = SS_UNCONNECTED;
		err = sock_error(sk) ?: atp_sk_errno(sk);
	}
out:
	release_sock(sk);
	return err;
}

static int atp_check_addr(const struct sockaddr_atp *addr, int len)
{
	if (len < sizeof(*addr) || addr->satp_zero[0] || addr->satp_zero[1])
		return -EINVAL;
	if (addr->satp_family != AF_ATP)
		return -EAFNOSUPPORT;
	return 0;
}

static int atp_bind(struct socket *sock, struct sockaddr *uaddr, int len)
{
	struct sockaddr_atp *addr = (struct sockaddr_atp *)uaddr;
	struct sock *sk = sock->sk;
	int err;

	err = atp_check_addr(addr, len);
	if (err)
		return err;
	lock_sock(sk);
	err = -EINVAL;
	if (!atp_sk(sk)->job)
		err = atp_sk_bind(sk, addr->satp_job, addr->satp_rank);
	release_sock(sk);
	return err;
}

static int atp_connect(struct socket *sock, struct sockaddr *uaddr, int len,
		       int flags)
{
	struct sockaddr_atp *addr = (struct sockaddr_atp *)uaddr;
	int err;

	if (len >= sizeof(uaddr->sa_family) && uaddr->sa_family == AF_UNSPEC) {
		atp_sk_disconnect(sock->sk);
		return 0;
	}
	err = atp_check_addr(addr, len);
	if (err)
		return err;
	return atp_sk_join(sock->sk, addr->satp_job, addr->satp_rank,
			   flags & O_NONBLOCK);
}

/* The peer is the job, which has no address but those of its members: so it is
 * the socket's own, and only there during a run.
 */
static int atp_getname(struct socket *sock, struct sockaddr *uaddr, int peer)
{
	struct sockaddr_atp *addr = (struct sockaddr_atp *)uaddr;
	struct atp_sock *as = atp_sk(sock->sk);
	int err = sizeof(*addr);

	memset(addr, 0, sizeof(*addr));
	addr->satp_family = AF_ATP;
	lock_sock(sock->sk);
	if (peer && as->session.state != ATP_SESSION_JOINED) {
		err = -ENOTCONN;
	} else if (as->job) {
		addr->satp_job = as->job->params.job;
		addr->satp_rank = as->rank;
	}
	release_sock(sock->sk);
	return err;
}

/* Without the socket lock: a user may own it for long.  Each condition is set
 * before its wake-up.
 */
static __poll_t atp_poll(struct file *file, struct socket *sock,
			 poll_table *wait)
{
	struct sock *sk = sock->sk;
	struct atp_sock *as = atp_sk(sk);
	u8 shutdown, state;
	__poll_t mask = 0;

	sock_poll_wait(file, sock, wait);

	shutdown = READ_ONCE(sk->sk_shutdown);
	state = READ_ONCE(sk->sk_state);
	if (READ_ONCE(sk->sk_err) ||
	    !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	if (state == TCP_CLOSE || shutdown == SHUTDOWN_MASK)
		mask |= EPOLLHUP;
	if (READ_ONCE(as->failed) || READ_ONCE(as->eof) ||
	    READ_ONCE(as->alone))
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (READ_ONCE(as->ready))
		mask |= EPOLLIN | EPOLLRDNORM;
	/* a push that fails at once does not wait either */
	if (state == TCP_CLOSE || (shutdown & SEND_SHUTDOWN))
		return mask | EPOLLOUT | EPOLLWRNORM;
	if (state != TCP_ESTABLISHED)
		return mask;

	if (!atp_sk_writeable(sk)) {
		sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
		WRITE_ONCE(as->nospace, true);
		/* room may have come before this was seen */
		smp_mb();
		if (!atp_sk_writeable(sk))
			return mask;
	}
	return mask | EPOLLOUT | EPOLLWRNORM;
}

static int atp_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	int err = 0;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	lock_sock(sk);
	/* the other half of one that has left its run already, too */
	if (atp_sk(sk)->session.state != ATP_SESSION_JOINED &&
	    !(sk->sk_shutdown & SEND_SHUTDOWN))
		err = -ENOTCONN;
	else if (atp_sk(sk)->server)
		atp_server_shutdown(sk);
	else
		atp_sk_shutdown(sk, how + 1);
	release_sock(sk);
	return err;
}

static int atp_setsockopt(struct socket *sock, int level, int optname,
			  sockptr_t optval, unsigned int optlen)
{
	struct file *file = sock->file;
	struct sock *sk = sock->sk;
	struct atp_join join;
	int dtype;

	if (level != SOL_ATP)
		return -ENOPROTOOPT;
	switch (optname) {
	case ATP_JOIN:
		if (optlen != sizeof(join))
			return -EINVAL;
		if (copy_from_sockptr(&join, optval, sizeof(join)))
			return -EFAULT;
		return atp_sk_join(sk, join.job, join.rank,
				   file && (READ_ONCE(file->f_flags) &
					    O_NONBLOCK));
	case ATP_DTYPE:
		if (optlen != sizeof(dtype))
			return -EINVAL;
		if (copy_from_sockptr(&dtype, optval, sizeof(dtype)))
			return -EFAULT;
		if (dtype != ATP_INT32 && dtype != ATP_FLOAT32)
			return -EINVAL;
		lock_sock(sk);
		atp_sk(sk)->dtype = dtype;
		release_sock(sk);
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int atp_getsockopt(struct socket *sock, int level, int optname,
			  char __user *optval, int __user *optlen)
{
	struct sock *sk = sock->sk;
	struct atp_info info;
	const void *value;
	int len, size;
	int dtype;

	if (level != SOL_ATP)
		return -ENOPROTOOPT;
	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;

	lock_sock(sk);
	switch (optname) {
	case ATP_DTYPE:
		dtype = atp_sk(sk)->dtype;
		value = &dtype;
		size = sizeof(dtype);
		break;
	case ATP_INFO:
		atp_sk_info(sk, &info);
		value = &info;
		size = sizeof(info);
		break;
	default:
		release_sock(sk);
		return -ENOPROTOOPT;
	}
	release_sock(sk);

	len = min(len, size);
	if (put_user(len, optlen) || copy_to_user(optval, value, len))
		return -EFAULT;
	return 0;
}

static int atp_release(struct socket *sock)
{
	struct sock *sk = sock->sk;

	if (!sk)
		return 0;
	atp_sk_stop(sk);
	sock_prot_inuse_add(sock_net(sk), &atp_prot, -1);
	sock_orphan(sk);
	sock->sk = NULL;
	sock_put(sk);
	return 0;
}

/* Nothing runs for the socket any more; the memory went with the chunks. */
static void atp_sk_destruct(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	skb_queue_purge(&sk->sk_error_queue);
	WARN_ON_ONCE(sk->sk_wmem_queued);
	sk_mem_reclaim_final(sk);
	WARN_ON_ONCE(sk->sk_forward_alloc);
	sk_sockets_allocated_dec(sk);
	if (as->job)
		atp_job_put(as->job);
}

static const struct proto_ops atp_ops = {
	.family		= PF_ATP,
	.owner		= THIS_MODULE,
	.release	= atp_release,
	.bind		= atp_bind,
	.connect	= atp_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= sock_no_accept,
	.getname	= atp_getname,
	.poll		= atp_poll,
	.ioctl		= atp_ioctl,
	.listen		= sock_no_listen,
	.shutdown	= atp_shutdown,
	.setsockopt	= atp_setsockopt,
	.getsockopt	= atp_getsockopt,
	.sendmsg	= atp_sendmsg,
	.recvmsg	= atp_recvmsg,
	.mmap		= sock_no_mmap,
	ATP_NO_SENDPAGE
};

static int atp_create(struct net *net, struct socket *sock, int protocol,
		      int kern)
{
	struct atp_sock *as;
	struct sock *sk;

	if (protocol)
		return -EPROTONOSUPPORT;
	if (sock->type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	sk = sk_alloc(net, PF_ATP, GFP_KERNEL, &atp_prot, kern);
	if (!sk)
		return -ENOMEM;
	sock->ops = &atp_ops;
	sock->state = SS_UNCONNECTED;
	sock_init_data(sock, sk);
	/* readers find the socket through its job under RCU */
	sock_set_flag(sk, SOCK_RCU_FREE);
	/* packets on their way out are no room of ours */
	sock_set_flag(sk, SOCK_USE_WRITE_QUEUE);
	sk->sk_write_space = atp_write_space;
	sk->sk_destruct = atp_sk_destruct;
	sk->sk_sndbuf = READ_ONCE(atp_wmem[1]);
	sk->sk_rcvbuf = READ_ONCE(atp_rmem);
	sk_sockets_allocated_inc(sk);
	sock_prot_inuse_add(net, &atp_prot, 1);
	as = atp_sk(sk);
	as->dtype = ATP_FLOAT32;
	atp_sk_init(as);
	return 0;
}

static const struct net_proto_family atp_family_ops = {
	.family	= PF_ATP,
	.create	= atp_create,
	.owner	= THIS_MODULE,
};

int atp_family_register(void)
{
	int err;

	err = percpu_counter_init(&atp_sockets_allocated, 0, GFP_KERNEL);
	if (err)
		return err;
	err = proto_register(&atp_prot, 1);
	if (err)
		goto counter;
	err = sock_register(&atp_family_ops);
	if (err) {
		if (err == -EEXIST)
			pr_err("atp: address family %d is taken by another module\n",
			       PF_ATP);
		goto proto;
	}
	return 0;

proto:
	proto_unregister(&atp_prot);
counter:
	percpu_counter_destroy(&atp_sockets_allocated);
	return err;
}

void atp_family_unregister(void)
{
	sock_unregister(PF_ATP);
	proto_unregister(&atp_prot);
	percpu_counter_destroy(&atp_sockets_allocated);
}
