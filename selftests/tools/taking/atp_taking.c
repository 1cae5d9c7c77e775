// SPDX-License-Identifier: GPL-2.0
/*
 * A module of somebody else's that has taken the family number of AF_ATP
 * first: no socket can be made of it, by anybody.
 */
#include <linux/atp.h>
#include <linux/module.h>
#include <linux/net.h>

static int taking_create(struct net *net, struct socket *sock, int protocol,
			 int kern)
{
	return -ESOCKTNOSUPPORT;
}

static const struct net_proto_family taking_family = {
	.family	= AF_ATP,
	.create	= taking_create,
	.owner	= THIS_MODULE,
};

static int __init taking_init(void)
{
	return sock_register(&taking_family);
}

static void __exit taking_exit(void)
{
	sock_unregister(AF_ATP);
}

module_init(taking_init);
module_exit(taking_exit);

MODULE_DESCRIPTION("Takes a family number, to see what others say of it");
MODULE_LICENSE("GPL");
