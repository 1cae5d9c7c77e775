// SPDX-License-Identifier: GPL-2.0
/* Jobs: the table of a namespace, its memory, which sockets have joined. */
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/rculist.h>
#include <linux/user_namespace.h>
#include "atp.h"

static struct hlist_head *atp_job_bucket(struct atp_net *an, u32 id)
{
	return &an->jobs[jhash_1word(id, an->salt) % ATP_JOB_HASH];
}

/* Context: RCU read lock; the job stays until it is released. */
struct atp_job *atp_job_find(struct atp_net *an, u32 id)
{
	struct atp_job *job;

	hlist_for_each_entry_rcu(job, atp_job_bucket(an, id), node,
				 lockdep_is_held(&an->lock))
		if (job->params.job == id)
			return job;
	return NULL;
}

/* Return: the job with a reference, or NULL. */
struct atp_job *atp_job_get(struct atp_net *an, u32 id)
{
	struct atp_job *job;

	rcu_read_lock();
	job = atp_job_find(an, id);
	if (job && !refcount_inc_not_zero(&job->ref))
		job = NULL;
	rcu_read_unlock();
	return job;
}

static void atp_job_free_rcu(struct rcu_head *rcu)
{
	struct atp_job *job = container_of(rcu, struct atp_job, rcu);

	free_percpu(job->mib);
	kfree(job->ps);
	kfree(job);
}

void atp_job_put(struct atp_job *job)
{
	if (refcount_dec_and_test(&job->ref))
		call_rcu(&job->rcu, atp_job_free_rcu);
}

struct atp_job *atp_job_alloc(struct net *net, u32 id)
{
	struct atp_job *job;

	job = kzalloc(sizeof(*job), ATP_GFP);
	if (!job)
		return NULL;
	job->mib = alloc_percpu_gfp(struct atp_mib, ATP_GFP);
	if (!job->mib) {
		kfree(job);
		return NULL;
	}
	refcount_set(&job->ref, 1);
	spin_lock_init(&job->lock);
	atp_leave_init(job);
	job->net = net;
	job->params.job = id;
	job->uid = INVALID_UID;
	job->gid = INVALID_GID;
	return job;
}

/* What is this host for the job, and which ranks share an address? */
static void atp_job_place(struct atp_job *job)
{
	u32 a, b;

	if (atp_addr_local(job->net, &job->ps_addr))
		job->role |= ATP_ROLE_PS;
	for (a = 0; a < job->params.workers; a++) {
		if (atp_addr_local(job->net, &job->addr[a]))
			job->role |= ATP_ROLE_WORKER;
		for (b = 0; b < job->params.workers; b++)
			if (ipv6_addr_equal(&job->addr[a], &job->addr[b]))
				job->alias[a] |= BIT(b);
	}
}

/* Bytes of all PS of the host, and of those in namespaces that users made */
static atomic64_t atp_ps_mem_all = ATOMIC64_INIT(0);
static atomic64_t atp_ps_mem_users = ATOMIC64_INIT(0);

static u64 atp_ps_mem_limit(u32 share)
{
	return (u64)(totalram_pages() / share) << PAGE_SHIFT;
}

/* Any user makes user namespaces, and network namespaces in them: he takes of
 * the host's share, but leaves some to those who own the host.
 */
static bool atp_ps_mem_of_user(const struct net *net)
{
	return net->user_ns != &init_user_ns;
}

static void atp_ps_mem_uncharge(const struct net *net, u64 bytes)
{
	atomic64_sub(bytes, &atp_ps_mem_all);
	if (atp_ps_mem_of_user(net))
		atomic64_sub(bytes, &atp_ps_mem_users);
}

static bool atp_ps_mem_charge(const struct net *net, u64 bytes)
{
	bool fits = atomic64_add_return(bytes, &atp_ps_mem_all) <=
		    atp_ps_mem_limit(ATP_PS_MEM_ALL);

	if (atp_ps_mem_of_user(net) &&
	    atomic64_add_return(bytes, &atp_ps_mem_users) >
	    atp_ps_mem_limit(ATP_PS_MEM_SHARE))
		fits = false;
	if (!fits)
		atp_ps_mem_uncharge(net, bytes);
	return fits;
}

static int atp_job_start_ps(struct atp_net *an, struct atp_job *job,
			    struct netlink_ext_ack *extack)
	__must_hold(&an->lock)
{
	u64 need = atp_ps_mem_size(&job->params) + ATP_PS_ROOM;
	int err;

	lockdep_assert_held(&an->lock);

	if (an->ps_mem + need > atp_ps_mem_limit(ATP_PS_MEM_SHARE)) {
		NL_SET_ERR_MSG(extack,
			       "memory for PS in this namespace is used up");
		return -ENOSPC;
	}
	if (!atp_ps_mem_charge(job->net, need)) {
		NL_SET_ERR_MSG(extack,
			       "memory for PS on this host is used up");
		return -ENOSPC;
	}
	err = atp_ps_start(job);
	if (err) {
		NL_SET_ERR_MSG(extack, "no memory for the PS");
		atp_ps_mem_uncharge(job->net, need);
		return err;
	}
	an->ps_mem += need;
	return 0;
}

/**
 * atp_job_add() - enter a job into the table
 * @net: namespace
 * @job: from atp_job_alloc(), addresses and parameters filled in; the table
 *	has the caller's reference on success
 * @extack: where refusals are explained
 *
 * Context: process, takes atp_net.lock.
 * Return: 0 or a negative errno; the caller still owns @job then.
 */
int atp_job_add(struct net *net, struct atp_job *job,
		struct netlink_ext_ack *extack)
{
	struct atp_net *an = atp_pernet(net);
	int err;

	atp_job_place(job);
	if (!job->role) {
		NL_SET_ERR_MSG(extack,
			       "neither the PS nor a worker has a local address");
		return -EADDRNOTAVAIL;
	}

	mutex_lock(&an->lock);
	err = -EEXIST;
	if (atp_job_find(an, job->params.job)) {
		NL_SET_ERR_MSG(extack, "a job with this ID exists");
		goto unlock;
	}
	err = -ENOSPC;
	if (an->njobs >= ATP_MAX_JOBS) {
		NL_SET_ERR_MSG(extack, "too many jobs in this namespace");
		goto unlock;
	}
	if (!an->njobs) {
		err = atp_udp_open(net);
		if (err) {
			NL_SET_ERR_MSG(extack, "cannot open the UDP port");
			goto unlock;
		}
	}
	err = atp_payer_open(job);
	if (err) {
		NL_SET_ERR_MSG(extack, "no memory for the job");
		goto close;
	}
	if (job->role & ATP_ROLE_PS) {
		err = atp_job_start_ps(an, job, extack);
		if (err)
			goto close_payer;
	}
	hlist_add_head_rcu(&job->node, atp_job_bucket(an, job->params.job));
	an->njobs++;
	WRITE_ONCE(an->seq, an->seq + 1);
	err = 0;
	goto unlock;

close_payer:
	atp_payer_close(job);
close:
	if (!an->njobs)
		atp_udp_close(net);
unlock:
	mutex_unlock(&an->lock);
	return err;
}

/* End the run of every local socket; where a user owns the socket, as soon as
 * he lets go of it.
 */
static void atp_job_fail_sockets(struct atp_job *job)
{
	struct sock *sk;
	u32 slot;

	for (slot = 0; slot < ATP_SLOTS; slot++) {
		spin_lock_bh(&job->lock);
		WRITE_ONCE(job->dead, true);
		sk = rcu_dereference_protected(job->socks[slot],
					       lockdep_is_held(&job->lock));
		if (sk)
			sock_hold(sk);
		spin_unlock_bh(&job->lock);
		if (!sk)
			continue;
		atp_sk_remove(sk);
		sock_put(sk);
	}
}

/* No packet finds it any more, after a grace period. */
static void atp_job_unlink(struct atp_net *an, struct atp_job *job)
	__must_hold(&an->lock)
{
	lockdep_assert_held(&an->lock);

	hlist_del_rcu(&job->node);
	an->njobs--;
	WRITE_ONCE(an->seq, an->seq + 1);
}

/* End its run.  The PS lets go of its memory at once, though sockets may keep
 * the job: memory that is no longer counted must not be held.  Netlink
 * requests, which look at it by a reference, are serialised with this one by
 * genl_mutex, or there are none: who sends one keeps the namespace.
 *
 * Context: a grace period after atp_job_unlink().
 */
static void atp_job_end(struct atp_net *an, struct atp_job *job)
	__must_hold(&an->lock)
{
	u64 held;

	lockdep_assert_held(&an->lock);

	if (job->ps) {
		held = job->ps->mem_size + ATP_PS_ROOM;
		atp_ps_shutdown(job);
		an->ps_mem -= held;
		atp_ps_mem_uncharge(job->net, held);
	}
	atp_job_fail_sockets(job);
	atp_leave_stop(job);
	atp_payer_close(job);
	atp_job_put(job);
}

int atp_job_del(struct net *net, u32 id, struct netlink_ext_ack *extack)
{
	struct atp_net *an = atp_pernet(net);
	struct atp_job *job;
	int err = -ENOENT;

	mutex_lock(&an->lock);
	job = atp_job_find(an, id);
	if (job) {
		atp_job_unlink(an, job);
		synchronize_rcu();
		atp_job_end(an, job);
		if (!an->njobs)
			atp_udp_close(net);
		err = 0;
	} else {
		NL_SET_ERR_MSG(extack, "no job with this ID");
	}
	mutex_unlock(&an->lock);
	return err;
}

void atp_job_del_all(struct net *net)
{
	struct atp_net *an = atp_pernet(net);
	struct hlist_node *next;
	struct atp_job *job;
	struct atp_job *tmp;
	LIST_HEAD(gone);
	int i;

	mutex_lock(&an->lock);
	for (i = 0; i < ATP_JOB_HASH; i++) {
		hlist_for_each_entry_safe(job, next, &an->jobs[i], node) {
			atp_job_unlink(an, job);
			list_add_tail(&job->gone, &gone);
		}
	}
	if (!list_empty(&gone)) {
		synchronize_rcu();
		list_for_each_entry_safe(job, tmp, &gone, gone)
			atp_job_end(an, job);
		atp_udp_close(net);
	}
	mutex_unlock(&an->lock);
}

/* A copy of what is fixed, and of the times as they are now.  Context: any. */
void atp_job_params(struct atp_job *job, struct atp_params *params)
{
	spin_lock_bh(&job->lock);
	*params = job->params;
	spin_unlock_bh(&job->lock);
}

/* For a worker socket from its next join on; for the PS at once, but a shorter
 * timeout once nobody is left who joined with the longer one.
 */
void atp_job_set_times(struct atp_job *job, u64 timeout, u64 patience)
{
	spin_lock_bh(&job->lock);
	WRITE_ONCE(job->params.timeout, timeout);
	WRITE_ONCE(job->params.patience, patience);
	spin_unlock_bh(&job->lock);
	if (job->ps)
		atp_ps_change_times(job->ps, timeout, patience);
}

/* Make @sk the socket of @rank.  Context: socket lock held. */
int atp_job_attach(struct atp_job *job, struct sock *sk, u32 rank)
{
	u32 slot = atp_job_slot(rank);
	int err = 0;

	sock_owned_by_me(sk);

	spin_lock_bh(&job->lock);
	if (job->dead)
		err = -ENOENT;
	else if (rcu_access_pointer(job->socks[slot]))
		err = -EADDRINUSE;
	else
		rcu_assign_pointer(job->socks[slot], sk);
	spin_unlock_bh(&job->lock);
	return err;
}

/* Context: socket lock held. */
void atp_job_detach(struct atp_job *job, struct sock *sk, u32 rank)
{
	u32 slot = atp_job_slot(rank);

	sock_owned_by_me(sk);

	spin_lock_bh(&job->lock);
	if (rcu_access_pointer(job->socks[slot]) == sk)
		RCU_INIT_POINTER(job->socks[slot], NULL);
	spin_unlock_bh(&job->lock);
}

/* Ranks that have this address; zero for a stranger. */
u32 atp_job_ranks_of(const struct atp_job *job, const struct in6_addr *addr)
{
	u32 rank;

	for (rank = 0; rank < job->params.workers; rank++)
		if (ipv6_addr_equal(&job->addr[rank], addr))
			return job->alias[rank];
	return 0;
}
