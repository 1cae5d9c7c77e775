// SPDX-License-Identifier: GPL-2.0
/* Module and namespace life. */
#include <linux/module.h>
#include <linux/random.h>
#include <net/genetlink.h>
#include <net/netns/generic.h>
#include "atp.h"

static unsigned int atp_net_id __read_mostly;

struct atp_net *atp_pernet(const struct net *net)
{
	return net_generic(net, atp_net_id);
}

static int __net_init atp_net_init(struct net *net)
{
	struct atp_net *an = atp_pernet(net);
	int err, i;

	mutex_init(&an->lock);
	for (i = 0; i < ATP_JOB_HASH; i++)
		INIT_HLIST_HEAD(&an->jobs[i]);
	an->salt = get_random_u32();
	an->mib = alloc_percpu_gfp(struct atp_mib, GFP_KERNEL | __GFP_NOWARN);
	if (!an->mib)
		return -ENOMEM;
	err = atp_rcv_open(net);
	if (err)
		free_percpu(an->mib);
	return err;
}

/* A grace period later nobody is in a hook any more. */
static void __net_exit atp_net_pre_exit(struct net *net)
{
	atp_rcv_close(net);
}

/* Worker sockets hold their namespace, so none is left here. */
static void __net_exit atp_net_exit(struct net *net)
{
	struct atp_net *an = atp_pernet(net);

	atp_job_del_all(net);
	free_percpu(an->mib);
}

static struct pernet_operations atp_net_ops = {
	.init		= atp_net_init,
	.pre_exit	= atp_net_pre_exit,
	.exit		= atp_net_exit,
	.id		= &atp_net_id,
	.size		= sizeof(struct atp_net),
};

static int __init atp_init(void)
{
	int err;

	err = atp_zerocopy_init();
	if (err)
		return err;

	err = register_pernet_subsys(&atp_net_ops);
	if (err)
		goto zerocopy;

	err = atp_netlink_register();
	if (err)
		goto pernet;

	err = atp_limits_register();
	if (err)
		goto netlink;

	/* last: from here on there can be sockets */
	err = atp_family_register();
	if (err)
		goto limits;

	return 0;

limits:
	atp_limits_unregister();
netlink:
	atp_netlink_unregister();
pernet:
	unregister_pernet_subsys(&atp_net_ops);
	/* of jobs that were added in between */
	rcu_barrier();
zerocopy:
	atp_zerocopy_exit();
	return err;
}

static void __exit atp_exit(void)
{
	atp_family_unregister();
	atp_limits_unregister();
	atp_netlink_unregister();
	unregister_pernet_subsys(&atp_net_ops);
	/* jobs and sockets are freed by RCU callbacks of this module */
	rcu_barrier();
	atp_zerocopy_exit();
}

module_init(atp_init);
module_exit(atp_exit);

MODULE_DESCRIPTION("In-network gradient aggregation transport (ATP)");
MODULE_LICENSE("GPL");
MODULE_ALIAS_NETPROTO(PF_ATP);
MODULE_ALIAS_GENL_FAMILY("atp");
