/* SPDX-License-Identifier: GPL-2.0 */
/* Generated from Documentation/netlink/specs/atp.yaml by "make netlink-gen". */
#ifndef _ATP_NETLINK_GEN_H
#define _ATP_NETLINK_GEN_H

#include <net/genetlink.h>
#include <net/netlink.h>
#include <linux/atp_netlink.h>

extern const struct genl_ops atp_nl_ops[6];

/* Indices of the multicast groups */
enum {
	ATP_NLGRP_EVENTS,
};

extern const struct genl_multicast_group atp_nl_mcgrps[1];

int atp_nl_job_add_doit(struct sk_buff *skb, struct genl_info *info);
int atp_nl_job_set_doit(struct sk_buff *skb, struct genl_info *info);
int atp_nl_job_del_doit(struct sk_buff *skb, struct genl_info *info);
int atp_nl_job_get_doit(struct sk_buff *skb, struct genl_info *info);
int atp_nl_job_get_dumpit(struct sk_buff *skb,
			  struct netlink_callback *cb);
int atp_nl_sock_get_dumpit(struct sk_buff *skb,
			   struct netlink_callback *cb);
int atp_nl_family_get_doit(struct sk_buff *skb, struct genl_info *info);

#endif /* _ATP_NETLINK_GEN_H */
