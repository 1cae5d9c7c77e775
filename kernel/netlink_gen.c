// SPDX-License-Identifier: GPL-2.0
/* Generated from Documentation/netlink/specs/atp.yaml by "make netlink-gen". */
#include "netlink_gen.h"

static struct netlink_range_validation atp_job_timeout_range = {
	.min	= 100ULL,
	.max	= 3600000ULL,
};

static const struct nla_policy atp_worker_nl_policy[] = {
	[ATP_A_WORKER_ADDR] = NLA_POLICY_EXACT_LEN(16),
};

static const struct nla_policy atp_job_add_nl_policy[] = {
	[ATP_A_JOB_ID] = { .type = NLA_U32 },
	[ATP_A_JOB_PS] = NLA_POLICY_EXACT_LEN(16),
	[ATP_A_JOB_WORKER] = NLA_POLICY_NESTED(atp_worker_nl_policy),
	[ATP_A_JOB_FRAGMENT] = NLA_POLICY_RANGE(NLA_U32, 8, 3400),
	[ATP_A_JOB_WINDOW] = NLA_POLICY_RANGE(NLA_U32, 4, 4096),
	[ATP_A_JOB_SCALE] = NLA_POLICY_MIN(NLA_U32, 1),
	[ATP_A_JOB_TIMEOUT] =
		NLA_POLICY_FULL_RANGE(NLA_U32, &atp_job_timeout_range),
	[ATP_A_JOB_UID] = { .type = NLA_U32 },
	[ATP_A_JOB_GID] = { .type = NLA_U32 },
	[ATP_A_JOB_PATIENCE] = { .type = NLA_U32 },
	[ATP_A_JOB_SERVER] = NLA_POLICY_MAX(NLA_U8, 1),
};

static const struct nla_policy atp_job_set_nl_policy[] = {
	[ATP_A_JOB_ID] = { .type = NLA_U32 },
	[ATP_A_JOB_TIMEOUT] =
		NLA_POLICY_FULL_RANGE(NLA_U32, &atp_job_timeout_range),
	[ATP_A_JOB_UID] = { .type = NLA_U32 },
	[ATP_A_JOB_GID] = { .type = NLA_U32 },
	[ATP_A_JOB_PATIENCE] = { .type = NLA_U32 },
};

static const struct nla_policy atp_job_del_nl_policy[] = {
	[ATP_A_JOB_ID] = { .type = NLA_U32 },
};

static const struct nla_policy atp_job_get_nl_policy[] = {
	[ATP_A_JOB_ID] = { .type = NLA_U32 },
};

const struct genl_ops atp_nl_ops[] = {
	{
		.cmd		= ATP_CMD_JOB_ADD,
		.doit		= atp_nl_job_add_doit,
		.policy		= atp_job_add_nl_policy,
		.maxattr	= ATP_A_JOB_SERVER,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= ATP_CMD_JOB_SET,
		.doit		= atp_nl_job_set_doit,
		.policy		= atp_job_set_nl_policy,
		.maxattr	= ATP_A_JOB_PATIENCE,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= ATP_CMD_JOB_DEL,
		.doit		= atp_nl_job_del_doit,
		.policy		= atp_job_del_nl_policy,
		.maxattr	= ATP_A_JOB_ID,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= ATP_CMD_JOB_GET,
		.doit		= atp_nl_job_get_doit,
		.dumpit		= atp_nl_job_get_dumpit,
		.policy		= atp_job_get_nl_policy,
		.maxattr	= ATP_A_JOB_ID,
	},
	{
		.cmd		= ATP_CMD_SOCK_GET,
		.dumpit		= atp_nl_sock_get_dumpit,
	},
	{
		.cmd		= ATP_CMD_FAMILY_GET,
		.doit		= atp_nl_family_get_doit,
	},
};

const struct genl_multicast_group atp_nl_mcgrps[] = {
	[ATP_NLGRP_EVENTS] = {
		.name	= ATP_MCGRP_EVENTS,
		.flags	= GENL_MCAST_CAP_NET_ADMIN,
	},
};
