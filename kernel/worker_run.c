// SPDX-License-Identifier: GPL-2.0
/*
 * How a worker socket's run begins and ends.  Context: process.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include "atp.h"

static u32 atp_sk_frags_size(const struct atp_sock *as)
{
	return as->job->params.window * sizeof(*as->frags);
}

static u32 atp_sk_frags_memory(const struct atp_sock *as)
{
	return atp_alloc_size(atp_sk_frags_size(as));
}

/* Window slots, charged to the socket.  Context: socket lock, process. */
static int atp_sk_alloc_frags(struct atp_sock *as)
{
	u32 memory = atp_sk_frags_memory(as);

	sock_owned_by_me(&as->sk);

	if (as->frags)
		return 0;
	if (!sk_wmem_schedule(&as->sk, memory))
		return -ENOBUFS;
	as->frags = atp_alloc(atp_sk_frags_size(as), GFP_KERNEL | __GFP_NOWARN);
	if (!as->frags)
		return -ENOMEM;
	sk_mem_charge(&as->sk, memory);
	return 0;
}

/* The engine does not run any more.  Context: socket lock. */
void atp_sk_free_frags(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	if (!as->frags)
		return;
	kvfree(as->frags);
	as->frags = NULL;
	sk_mem_uncharge(sk, atp_sk_frags_memory(as));
}

/* Nothing of an earlier run is left: the next may begin.  Context: socket lock,
 * process.
 */
void atp_sk_reset(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	atp_sk_purge(sk);
	WRITE_ONCE(as->run, as->run + 1);
	WRITE_ONCE(as->wanted, 0);
	WRITE_ONCE(as->failed, false);
	WRITE_ONCE(sk->sk_err, 0);
	skb_queue_purge(&sk->sk_error_queue);
	WRITE_ONCE(sk->sk_shutdown, 0);
	atp_sk_update(sk);
	WRITE_ONCE(sk->sk_state, TCP_SYN_SENT);
}

/* Begin to join.  Context: socket lock, process. */
int atp_sk_start(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_job *job = as->job;
	struct atp_params params;
	u32 overhead;
	int err, mtu;

	sock_owned_by_me(sk);

	overhead = ATP_HDR_LEN + sizeof(struct udphdr) +
		   (ipv6_addr_v4mapped(&job->ps_addr) ?
		    sizeof(struct iphdr) : sizeof(struct ipv6hdr));
	mtu = atp_path_mtu(sock_net(sk), &job->addr[as->rank], &job->ps_addr,
			   READ_ONCE(sk->sk_mark));
	/* a job that was removed just now may have no UDP socket any more */
	if (mtu < 0)
		return READ_ONCE(job->dead) ? -ENOENT : mtu;
	if (mtu < job->params.fragment + overhead)
		return -EMSGSIZE;

	err = atp_sk_alloc_frags(as);
	if (err)
		return err;
	atp_sk_reset(sk);
	atp_leave_cancel(job, as->rank);
	atp_job_params(job, &params);
	atp_session_init(&as->session, &params, as->rank);
	atp_session_join(&as->session, ktime_get_ns(), get_random_u32());
	atp_sk_arm(sk);
	return 0;
}

/* Free all chunks.  Context: socket lock. */
void atp_sk_purge(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);
	struct atp_chunk *chunk;

	sock_owned_by_me(sk);

	while ((chunk = as->sums)) {
		as->sums = chunk->next;
		atp_chunk_put(sk, chunk);
	}
	if (!as->running)
		return;
	while ((chunk = as->worker.head)) {
		as->worker.head = chunk->next;
		atp_chunk_put(sk, chunk);
	}
	as->worker.tail = NULL;
	WRITE_ONCE(as->running, false);
	atp_sk_update(sk);
}

/* Leave the run, if there is one.  Context: socket lock, process. */
static void atp_sk_quit(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	sock_owned_by_me(sk);

	if (as->server)
		atp_server_leave(sk);
	else if (as->job && (as->session.state == ATP_SESSION_JOINING ||
			     as->session.state == ATP_SESSION_JOINED))
		atp_leave(as);
	if (as->running)
		atp_sk_fold(as);
}

/**
 * atp_sk_disconnect() - leave the run at once, whoever else has the socket
 * @sk: socket, in any state
 *
 * Nothing is sent from pinned memory, or written there, any more.  The socket
 * stays bound and may join the next run.
 *
 * Context: process, takes the socket lock.
 */
void atp_sk_disconnect(struct sock *sk)
{
	lock_sock(sk);
	atp_sk_quit(sk);
	memset(&atp_sk(sk)->session, 0, sizeof(atp_sk(sk)->session));
	atp_sk_reset(sk);
	WRITE_ONCE(sk->sk_state, TCP_CLOSE);
	sk->sk_socket->state = SS_UNCONNECTED;
	/* who sleeps in a call, who polls */
	sk->sk_state_change(sk);
	release_sock(sk);
}

/* The last use of the socket is over.  Context: process, no lock. */
void atp_sk_stop(struct sock *sk)
{
	struct atp_sock *as = atp_sk(sk);

	lock_sock(sk);
	atp_sk_quit(sk);
	as->dead = true;
	WRITE_ONCE(sk->sk_state, TCP_CLOSE);
	if (as->attached)
		atp_job_detach(as->job, sk, as->rank);
	as->attached = false;
	atp_sk_purge(sk);
	atp_sk_free_frags(sk);
	release_sock(sk);

	/* dead: none of these starts anything any more */
	hrtimer_cancel(&as->timer);
	tasklet_kill(&as->tasklet);
	dst_cache_destroy(&as->dst);
}
