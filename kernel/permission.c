// SPDX-License-Identifier: GPL-2.0
/* Who may join a job, and who may see it (atp(7), Permissions). */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include "atp.h"

/* Whom the operator let in, or who could let himself in. */
bool atp_job_may_join(const struct atp_job *job, const struct net *net)
{
	kuid_t uid = READ_ONCE(job->uid);
	kgid_t gid = READ_ONCE(job->gid);

	if (uid_valid(uid) && uid_eq(uid, current_euid()))
		return true;
	if (gid_valid(gid) && in_egroup_p(gid))
		return true;
	return ns_capable(net->user_ns, CAP_NET_ADMIN);
}

/* A netlink socket may be handed to a program that has more rights than the
 * one that opened it, and would use them without knowing.  So whoever is let
 * in below is so twice: as the one who asks, and as the one who opened.
 */
static const struct cred *atp_nl_opener(const struct sk_buff *skb)
{
	return NETLINK_CB(skb).sk->sk_socket->file->f_cred;
}

/* Context: process or RCU; @skb is the request. */
bool atp_nl_may_see_job(const struct sk_buff *skb, const struct atp_job *job)
{
	const struct cred *own;
	bool opener;

	own = override_creds(atp_nl_opener(skb));
	opener = atp_job_may_join(job, job->net);
	revert_creds(own);
	return opener && atp_job_may_join(job, job->net);
}

/* Context: process; @skb is the request. */
bool atp_nl_may_see_sock(const struct sk_buff *skb, struct sock *sk)
{
	kuid_t uid = sock_i_uid(sk);

	if (uid_eq(uid, current_euid()) &&
	    uid_eq(uid, atp_nl_opener(skb)->euid))
		return true;
	return netlink_ns_capable(skb, sock_net(sk)->user_ns, CAP_NET_ADMIN);
}
