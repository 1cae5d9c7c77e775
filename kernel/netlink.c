// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink: jobs, sockets, numbers of the family.  The tables come from
 * Documentation/netlink/specs/atp.yaml.
 */
#include <linux/module.h>
#include <net/genetlink.h>
#include <net/netlink.h>
#include "atp.h"
#include "netlink_gen.h"

#define ATP_DEFAULT_FRAGMENT	1400
#define ATP_DEFAULT_WINDOW	256
#define ATP_DEFAULT_SCALE	100000000
#define ATP_DEFAULT_TIMEOUT	(10ULL * NSEC_PER_SEC)
#define ATP_DEFAULT_PATIENCE	(600ULL * NSEC_PER_SEC)

/* (uid_t)-1, which make_kuid() maps nowhere */
#define ATP_NO_ID		U32_MAX

struct genl_family atp_nl_family __ro_after_init = {
	.name		= ATP_GENL_NAME,
	.version	= ATP_GENL_VERSION,
	.netnsok	= true,
	.module		= THIS_MODULE,
	.ops		= atp_nl_ops,
	.n_ops		= ARRAY_SIZE(atp_nl_ops),
	.mcgrps		= atp_nl_mcgrps,
	.n_mcgrps	= ARRAY_SIZE(atp_nl_mcgrps),
};

static int atp_nl_need_id(struct genl_info *info)
{
	if (!GENL_REQ_ATTR_CHECK(info, ATP_A_JOB_ID))
		return 0;
	GENL_SET_ERR_MSG(info, "no job ID given");
	return -EINVAL;
}

/* One address out of a checked attribute. */
static int atp_nl_addr(struct nlattr *attr, struct in6_addr *addr,
		       struct netlink_ext_ack *extack)
{
	*addr = nla_get_in6_addr(attr);
	if (atp_addr_valid(addr))
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr, "not an address of one host");
	return -EINVAL;
}

static int atp_nl_worker(struct atp_job *job, struct nlattr *attr,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ATP_A_WORKER_MAX + 1];
	int err;

	if (job->params.workers == ATP_MAX_WORKERS) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "more than 32 workers");
		return -E2BIG;
	}
	/* the family's policy has looked inside already */
	err = nla_parse_nested(tb, ATP_A_WORKER_MAX, attr, NULL, extack);
	if (err)
		return err;
	if (!tb[ATP_A_WORKER_ADDR]) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "no address given");
		return -EINVAL;
	}
	err = atp_nl_addr(tb[ATP_A_WORKER_ADDR],
			  &job->addr[job->params.workers], extack);
	if (err)
		return err;
	if (ipv6_addr_v4mapped(&job->addr[job->params.workers]) !=
	    ipv6_addr_v4mapped(&job->ps_addr)) {
		NL_SET_ERR_MSG_ATTR(extack, attr,
				    "PS and workers mix IPv4 and IPv6");
		return -EINVAL;
	}
	job->params.workers++;
	return 0;
}

static u32 atp_nl_u32(struct genl_info *info, int attr, u32 value)
{
	return info->attrs[attr] ? nla_get_u32(info->attrs[attr]) : value;
}

/* Milliseconds to nanoseconds, or @value */
static u64 atp_nl_time(struct genl_info *info, int attr, u64 value)
{
	if (!info->attrs[attr])
		return value;
	return (u64)nla_get_u32(info->attrs[attr]) * NSEC_PER_MSEC;
}

/* Who may join.  The ID that is nobody's takes permission away. */
static int atp_nl_owner(struct genl_info *info, kuid_t *uid, kgid_t *gid)
{
	struct user_namespace *ns = current_user_ns();
	struct nlattr *attr = info->attrs[ATP_A_JOB_UID];
	u32 id;

	if (attr) {
		id = nla_get_u32(attr);
		*uid = make_kuid(ns, id);
		if (!uid_valid(*uid) && id != ATP_NO_ID) {
			NL_SET_ERR_MSG_ATTR(info->extack, attr,
					    "no such user in this namespace");
			return -EINVAL;
		}
	}
	attr = info->attrs[ATP_A_JOB_GID];
	if (attr) {
		id = nla_get_u32(attr);
		*gid = make_kgid(ns, id);
		if (!gid_valid(*gid) && id != ATP_NO_ID) {
			NL_SET_ERR_MSG_ATTR(info->extack, attr,
					    "no such group in this namespace");
			return -EINVAL;
		}
	}
	return 0;
}

static int atp_nl_params(struct atp_job *job, struct genl_info *info)
{
	struct atp_params *p = &job->params;
	struct nlattr *attr;
	int err, rem;

	if (GENL_REQ_ATTR_CHECK(info, ATP_A_JOB_PS)) {
		GENL_SET_ERR_MSG(info, "no address of the PS given");
		return -EINVAL;
	}
	err = atp_nl_addr(info->attrs[ATP_A_JOB_PS], &job->ps_addr,
			  info->extack);
	if (err)
		return err;
	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rem) {
		if (nla_type(attr) != ATP_A_JOB_WORKER)
			continue;
		err = atp_nl_worker(job, attr, info->extack);
		if (err)
			return err;
	}
	if (!p->workers) {
		GENL_SET_ERR_MSG(info, "no worker given");
		return -EINVAL;
	}
	p->fragment = atp_nl_u32(info, ATP_A_JOB_FRAGMENT,
				 ATP_DEFAULT_FRAGMENT);
	if (p->fragment % 8) {
		NL_SET_ERR_MSG_ATTR(info->extack,
				    info->attrs[ATP_A_JOB_FRAGMENT],
				    "not a multiple of 8 bytes");
		return -EINVAL;
	}
	p->window = atp_nl_u32(info, ATP_A_JOB_WINDOW, ATP_DEFAULT_WINDOW);
	if (!is_power_of_2(p->window)) {
		NL_SET_ERR_MSG_ATTR(info->extack,
				    info->attrs[ATP_A_JOB_WINDOW],
				    "not a power of two");
		return -EINVAL;
	}
	attr = info->attrs[ATP_A_JOB_SERVER];
	p->server = attr && nla_get_u8(attr);
	p->scale = atp_nl_u32(info, ATP_A_JOB_SCALE, ATP_DEFAULT_SCALE);
	p->timeout = atp_nl_time(info, ATP_A_JOB_TIMEOUT, ATP_DEFAULT_TIMEOUT);
	p->patience = atp_nl_time(info, ATP_A_JOB_PATIENCE,
				  ATP_DEFAULT_PATIENCE);
	return atp_nl_owner(info, &job->uid, &job->gid);
}

int atp_nl_job_add_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct atp_job *job;
	int err;
	u32 id;

	err = atp_nl_need_id(info);
	if (err)
		return err;
	id = nla_get_u32(info->attrs[ATP_A_JOB_ID]);
	job = atp_job_alloc(net, id);
	if (!job) {
		GENL_SET_ERR_MSG(info, "no memory for a job");
		return -ENOMEM;
	}
	err = atp_nl_params(job, info);
	if (!err)
		err = atp_job_add(net, job, info->extack);
	if (err) {
		atp_job_put(job);
		return err;
	}
	atp_event(net, ATP_EVENT_JOB_ADDED, id, 0, 0, 0, 0, U32_MAX,
		  GFP_KERNEL);
	return 0;
}

int atp_nl_job_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct atp_job *job;
	kuid_t uid;
	kgid_t gid;
	int err;

	err = atp_nl_need_id(info);
	if (err)
		return err;
	job = atp_job_get(atp_pernet(net),
			  nla_get_u32(info->attrs[ATP_A_JOB_ID]));
	if (!job) {
		GENL_SET_ERR_MSG(info, "no job with this ID");
		return -ENOENT;
	}
	/* nobody else writes them: genl_mutex */
	uid = job->uid;
	gid = job->gid;
	err = atp_nl_owner(info, &uid, &gid);
	if (err)
		goto put;
	WRITE_ONCE(job->uid, uid);
	WRITE_ONCE(job->gid, gid);
	atp_job_set_times(job, atp_nl_time(info, ATP_A_JOB_TIMEOUT,
					   job->params.timeout),
			  atp_nl_time(info, ATP_A_JOB_PATIENCE,
				      job->params.patience));
	atp_event(net, ATP_EVENT_JOB_CHANGED, job->params.job, 0, 0, 0, 0,
		  U32_MAX, GFP_KERNEL);
put:
	atp_job_put(job);
	return err;
}

int atp_nl_job_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	u32 id;
	int err;

	err = atp_nl_need_id(info);
	if (err)
		return err;
	id = nla_get_u32(info->attrs[ATP_A_JOB_ID]);
	err = atp_job_del(net, id, info->extack);
	if (!err)
		atp_event(net, ATP_EVENT_JOB_DELETED, id, 0, 0, 0, 0, U32_MAX,
			  GFP_KERNEL);
	return err;
}

static int atp_nl_put_workers(struct sk_buff *skb, const struct atp_job *job)
{
	struct nlattr *nest;
	u32 rank;

	for (rank = 0; rank < job->params.workers; rank++) {
		nest = nla_nest_start(skb, ATP_A_JOB_WORKER);
		if (!nest)
			return -EMSGSIZE;
		if (nla_put_in6_addr(skb, ATP_A_WORKER_ADDR, &job->addr[rank]))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
	}
	return 0;
}

static int atp_nl_put_ps(struct sk_buff *skb, struct atp_job *job)
{
	struct atp_ps_host *ps = job->ps;
	u32 epoch, joined, frontier, rank;
	struct atp_ps_wait wait;
	bool running, server;
	u64 since = 0;

	spin_lock_bh(&ps->lock);
	epoch = ps->engine.epoch;
	running = ps->engine.running;
	frontier = ps->engine.frontier;
	if (atp_ps_waiting(&ps->engine, &wait))
		since = ktime_get_ns() - wait.since;
	server = ps->engine.server.joined || ps->engine.server.pending;
	joined = 0;
	for (rank = 0; rank < job->params.workers; rank++)
		if ((running && ps->engine.members[rank].joined) ||
		    ps->engine.members[rank].pending)
			joined |= BIT(rank);
	spin_unlock_bh(&ps->lock);

	if (nla_put_u32(skb, ATP_A_JOB_EPOCH, epoch) ||
	    nla_put_u32(skb, ATP_A_JOB_JOINED, joined) ||
	    nla_put_u8(skb, ATP_A_JOB_RUNNING, running) ||
	    nla_put_u32(skb, ATP_A_JOB_FRONTIER, frontier) ||
	    nla_put_u32(skb, ATP_A_JOB_WAITING, wait.ranks) ||
	    nla_put_u8(skb, ATP_A_JOB_SERVER_JOINED, server) ||
	    nla_put_u8(skb, ATP_A_JOB_SERVER_WAITING, wait.server) ||
	    nla_put_u32(skb, ATP_A_JOB_STALL_MS,
			div_u64(since, NSEC_PER_MSEC)) ||
	    nla_put_u32(skb, ATP_A_JOB_MEMORY, ps->mem_size))
		return -EMSGSIZE;
	return 0;
}

static u32 atp_nl_sockets(const struct atp_job *job)
{
	u32 slot, n = 0;

	for (slot = 0; slot < ATP_SLOTS; slot++)
		n += !!rcu_access_pointer(job->socks[slot]);
	return n;
}

/* Context: RCU, or a reference on the job. */
static int atp_nl_put_attrs(struct sk_buff *skb, struct atp_job *job)
{
	const struct atp_params *p = &job->params;
	struct user_namespace *ns = current_user_ns();
	kuid_t uid = READ_ONCE(job->uid);
	kgid_t gid = READ_ONCE(job->gid);

	if (nla_put_u32(skb, ATP_A_JOB_ID, p->job) ||
	    nla_put_in6_addr(skb, ATP_A_JOB_PS, &job->ps_addr) ||
	    atp_nl_put_workers(skb, job) ||
	    nla_put_u32(skb, ATP_A_JOB_FRAGMENT, p->fragment) ||
	    nla_put_u32(skb, ATP_A_JOB_WINDOW, p->window) ||
	    nla_put_u32(skb, ATP_A_JOB_SCALE, p->scale) ||
	    nla_put_u8(skb, ATP_A_JOB_SERVER, p->server) ||
	    nla_put_u32(skb, ATP_A_JOB_TIMEOUT,
			div_u64(READ_ONCE(p->timeout), NSEC_PER_MSEC)) ||
	    nla_put_u32(skb, ATP_A_JOB_PATIENCE,
			div_u64(READ_ONCE(p->patience), NSEC_PER_MSEC)) ||
	    (uid_valid(uid) &&
	     nla_put_u32(skb, ATP_A_JOB_UID, from_kuid_munged(ns, uid))) ||
	    (gid_valid(gid) &&
	     nla_put_u32(skb, ATP_A_JOB_GID, from_kgid_munged(ns, gid))) ||
	    nla_put_u32(skb, ATP_A_JOB_ROLE, job->role) ||
	    nla_put_u32(skb, ATP_A_JOB_SOCKETS, atp_nl_sockets(job)) ||
	    (job->ps && atp_nl_put_ps(skb, job)) ||
	    atp_mib_put(skb, ATP_A_JOB_COUNTERS, job->mib))
		return -EMSGSIZE;
	return 0;
}

/* One of a dump.  Context: RCU. */
static int atp_nl_put_job(struct sk_buff *skb, struct atp_job *job,
			  struct netlink_callback *cb)
{
	void *hdr;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "a job of a dump without RCU");

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &atp_nl_family, NLM_F_MULTI, ATP_CMD_JOB_GET);
	if (!hdr)
		return -EMSGSIZE;
	genl_dump_check_consistent(cb, hdr);
	if (atp_nl_put_attrs(skb, job)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

static int atp_nl_no_memory(struct genl_info *info)
{
	GENL_SET_ERR_MSG(info, "no memory for the answer");
	return -ENOMEM;
}

static int atp_nl_too_long(struct genl_info *info)
{
	GENL_SET_ERR_MSG(info, "the answer is too long for one message");
	return -EMSGSIZE;
}

int atp_nl_job_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *reply;
	struct atp_job *job;
	void *hdr;
	int err;

	err = atp_nl_need_id(info);
	if (err)
		return err;
	job = atp_job_get(atp_pernet(genl_info_net(info)),
			  nla_get_u32(info->attrs[ATP_A_JOB_ID]));
	if (!job) {
		GENL_SET_ERR_MSG(info, "no job with this ID");
		return -ENOENT;
	}
	if (!atp_nl_may_see_job(skb, job)) {
		GENL_SET_ERR_MSG(info, "only who may join a job may see it");
		err = -EACCES;
		goto put;
	}
	reply = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!reply) {
		err = atp_nl_no_memory(info);
		goto put;
	}
	hdr = genlmsg_put_reply(reply, info, &atp_nl_family, 0,
				ATP_CMD_JOB_GET);
	if (!hdr || atp_nl_put_attrs(reply, job)) {
		nlmsg_free(reply);
		err = atp_nl_too_long(info);
		goto put;
	}
	genlmsg_end(reply, hdr);
	err = genlmsg_reply(reply, info);
put:
	atp_job_put(job);
	return err;
}

/* cb->args: bucket, place in it */
int atp_nl_job_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct atp_net *an = atp_pernet(sock_net(skb->sk));
	int bucket, n, err = 0;
	struct atp_job *job;

	rcu_read_lock();
	cb->seq = READ_ONCE(an->seq);
	for (bucket = cb->args[0]; bucket < ATP_JOB_HASH; bucket++) {
		n = 0;
		hlist_for_each_entry_rcu(job, &an->jobs[bucket], node) {
			if (n++ < cb->args[1] ||
			    !atp_nl_may_see_job(cb->skb, job))
				continue;
			err = atp_nl_put_job(skb, job, cb);
			if (err)
				goto out;
			cb->args[1] = n;
		}
		cb->args[1] = 0;
		cb->args[0] = bucket + 1;
	}
out:
	rcu_read_unlock();
	return skb->len ?: err;
}

/* Does not wait for a user who owns the socket, who may do so for ever.
 * Context: process; takes the socket's spinlock.
 */
static int atp_nl_put_sock(struct sk_buff *skb, struct sock *sk,
			   struct netlink_callback *cb)
{
	struct user_namespace *ns = current_user_ns();
	struct atp_info info;
	u32 queued, ready, silence;
	void *hdr;

	local_bh_disable();
	bh_lock_sock(sk);
	atp_sk_info(sk, &info);
	queued = READ_ONCE(sk->sk_wmem_queued);
	ready = READ_ONCE(atp_sk(sk)->ready);
	silence = atp_sk_silence(sk);
	bh_unlock_sock(sk);
	local_bh_enable();

	hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			  &atp_nl_family, NLM_F_MULTI, ATP_CMD_SOCK_GET);
	if (!hdr)
		return -EMSGSIZE;
	genl_dump_check_consistent(cb, hdr);
	if (nla_put_u32(skb, ATP_A_SOCK_JOB, info.job) ||
	    nla_put_u32(skb, ATP_A_SOCK_RANK, info.rank) ||
	    nla_put(skb, ATP_A_SOCK_INFO, sizeof(info), &info) ||
	    nla_put_u32(skb, ATP_A_SOCK_UID,
			from_kuid_munged(ns, sock_i_uid(sk))) ||
	    nla_put_u32(skb, ATP_A_SOCK_INODE, sock_i_ino(sk)) ||
	    nla_put_u32(skb, ATP_A_SOCK_RMEM, ready) ||
	    nla_put_u32(skb, ATP_A_SOCK_WMEM, queued) ||
	    nla_put_u32(skb, ATP_A_SOCK_SILENCE, silence)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, hdr);
	return 0;
}

/* A socket of a job with a reference, or NULL. */
static struct sock *atp_nl_hold_sock(struct atp_job *job, u32 slot)
{
	struct sock *sk;

	spin_lock_bh(&job->lock);
	sk = rcu_dereference_protected(job->socks[slot],
				       lockdep_is_held(&job->lock));
	if (sk)
		sock_hold(sk);
	spin_unlock_bh(&job->lock);
	return sk;
}

/* cb->args: bucket, place in it, slot */
int atp_nl_sock_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct atp_net *an = atp_pernet(sock_net(skb->sk));
	struct atp_job *job;
	struct sock *sk;
	int bucket, n;
	int err = 0;

	mutex_lock(&an->lock);
	cb->seq = an->seq;
	for (bucket = cb->args[0]; bucket < ATP_JOB_HASH; bucket++) {
		n = 0;
		hlist_for_each_entry(job, &an->jobs[bucket], node) {
			if (n++ < cb->args[1])
				continue;
			for (; cb->args[2] < ATP_SLOTS; cb->args[2]++) {
				sk = atp_nl_hold_sock(job, cb->args[2]);
				if (!sk)
					continue;
				if (atp_nl_may_see_sock(cb->skb, sk))
					err = atp_nl_put_sock(skb, sk, cb);
				sock_put(sk);
				if (err)
					goto out;
			}
			cb->args[2] = 0;
			cb->args[1] = n;
		}
		cb->args[1] = 0;
		cb->args[0] = bucket + 1;
	}
out:
	mutex_unlock(&an->lock);
	return skb->len ?: err;
}

int atp_nl_family_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	struct sk_buff *reply;
	void *hdr;

	reply = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!reply)
		return atp_nl_no_memory(info);
	hdr = genlmsg_put_reply(reply, info, &atp_nl_family, 0,
				ATP_CMD_FAMILY_GET);
	if (!hdr || nla_put_u32(reply, ATP_A_FAMILY_NUMBER, PF_ATP) ||
	    nla_put_u16(reply, ATP_A_FAMILY_PORT, ATP_PORT) ||
	    nla_put_u32(reply, ATP_A_FAMILY_VERSION, ATP_VERSION) ||
	    /* they are those of all jobs */
	    (netlink_ns_capable(skb, net->user_ns, CAP_NET_ADMIN) &&
	     atp_mib_put(reply, ATP_A_FAMILY_COUNTERS, atp_pernet(net)->mib))) {
		nlmsg_free(reply);
		return atp_nl_too_long(info);
	}
	genlmsg_end(reply, hdr);
	return genlmsg_reply(reply, info);
}

int __init atp_netlink_register(void)
{
	return genl_register_family(&atp_nl_family);
}

void atp_netlink_unregister(void)
{
	genl_unregister_family(&atp_nl_family);
}
