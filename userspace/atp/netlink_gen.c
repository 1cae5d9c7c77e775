// SPDX-License-Identifier: GPL-2.0
/* Generated from Documentation/netlink/specs/atp.yaml by "make netlink-gen". */
#include <linux/atp_netlink.h>
#include "netlink_gen.h"

static const struct nl_attr worker_attrs[] = {
	[ATP_A_WORKER_ADDR] = {
		.name = "addr",
		.type = NL_BINARY,
		.len = 16,
	},
};

const struct nl_set atp_set_worker = {
	.name = "worker",
	.attrs = worker_attrs,
	.max = ATP_A_WORKER_MAX,
};

static const struct nl_attr job_attrs[] = {
	[ATP_A_JOB_ID] = {
		.name = "id",
		.type = NL_U32,
	},
	[ATP_A_JOB_PS] = {
		.name = "ps",
		.type = NL_BINARY,
		.len = 16,
	},
	[ATP_A_JOB_WORKER] = {
		.name = "worker",
		.type = NL_NEST,
		.multi = true,
		.nested = &atp_set_worker,
	},
	[ATP_A_JOB_FRAGMENT] = {
		.name = "fragment",
		.type = NL_U32,
	},
	[ATP_A_JOB_WINDOW] = {
		.name = "window",
		.type = NL_U32,
	},
	[ATP_A_JOB_SCALE] = {
		.name = "scale",
		.type = NL_U32,
	},
	[ATP_A_JOB_TIMEOUT] = {
		.name = "timeout",
		.type = NL_U32,
	},
	[ATP_A_JOB_UID] = {
		.name = "uid",
		.type = NL_U32,
	},
	[ATP_A_JOB_GID] = {
		.name = "gid",
		.type = NL_U32,
	},
	[ATP_A_JOB_ROLE] = {
		.name = "role",
		.type = NL_U32,
	},
	[ATP_A_JOB_EPOCH] = {
		.name = "epoch",
		.type = NL_U32,
	},
	[ATP_A_JOB_JOINED] = {
		.name = "joined",
		.type = NL_U32,
	},
	[ATP_A_JOB_RUNNING] = {
		.name = "running",
		.type = NL_U8,
	},
	[ATP_A_JOB_FRONTIER] = {
		.name = "frontier",
		.type = NL_U32,
	},
	[ATP_A_JOB_WAITING] = {
		.name = "waiting",
		.type = NL_U32,
	},
	[ATP_A_JOB_STALL_MS] = {
		.name = "stall_ms",
		.type = NL_U32,
	},
	[ATP_A_JOB_COUNTERS] = {
		.name = "counters",
		.type = NL_NEST,
		.nested = &atp_set_counter,
	},
	[ATP_A_JOB_SOCKETS] = {
		.name = "sockets",
		.type = NL_U32,
	},
	[ATP_A_JOB_MEMORY] = {
		.name = "memory",
		.type = NL_U32,
	},
	[ATP_A_JOB_PAD] = {
		.name = "pad",
		.type = NL_PAD,
	},
	[ATP_A_JOB_PATIENCE] = {
		.name = "patience",
		.type = NL_U32,
	},
	[ATP_A_JOB_SERVER] = {
		.name = "server",
		.type = NL_U8,
	},
	[ATP_A_JOB_SERVER_JOINED] = {
		.name = "server_joined",
		.type = NL_U8,
	},
	[ATP_A_JOB_SERVER_WAITING] = {
		.name = "server_waiting",
		.type = NL_U8,
	},
};

const struct nl_set atp_set_job = {
	.name = "job",
	.attrs = job_attrs,
	.max = ATP_A_JOB_MAX,
};

static const struct nl_attr counter_attrs[] = {
	[ATP_A_COUNTER_NAME] = {
		.name = "name",
		.type = NL_STRING,
	},
	[ATP_A_COUNTER_VALUE] = {
		.name = "value",
		.type = NL_U64,
	},
	[ATP_A_COUNTER_ENTRY] = {
		.name = "entry",
		.type = NL_NEST,
		.multi = true,
		.nested = &atp_set_counter,
	},
	[ATP_A_COUNTER_PAD] = {
		.name = "pad",
		.type = NL_PAD,
	},
};

const struct nl_set atp_set_counter = {
	.name = "counter",
	.attrs = counter_attrs,
	.max = ATP_A_COUNTER_MAX,
};

static const struct nl_attr sock_attrs[] = {
	[ATP_A_SOCK_JOB] = {
		.name = "job",
		.type = NL_U32,
	},
	[ATP_A_SOCK_RANK] = {
		.name = "rank",
		.type = NL_U32,
	},
	[ATP_A_SOCK_INFO] = {
		.name = "info",
		.type = NL_BINARY,
	},
	[ATP_A_SOCK_UID] = {
		.name = "uid",
		.type = NL_U32,
	},
	[ATP_A_SOCK_INODE] = {
		.name = "inode",
		.type = NL_U32,
	},
	[ATP_A_SOCK_RMEM] = {
		.name = "rmem",
		.type = NL_U32,
	},
	[ATP_A_SOCK_WMEM] = {
		.name = "wmem",
		.type = NL_U32,
	},
	[ATP_A_SOCK_SILENCE] = {
		.name = "silence",
		.type = NL_U32,
	},
};

const struct nl_set atp_set_sock = {
	.name = "sock",
	.attrs = sock_attrs,
	.max = ATP_A_SOCK_MAX,
};

static const struct nl_attr family_attrs[] = {
	[ATP_A_FAMILY_NUMBER] = {
		.name = "number",
		.type = NL_U32,
	},
	[ATP_A_FAMILY_PORT] = {
		.name = "port",
		.type = NL_U16,
	},
	[ATP_A_FAMILY_VERSION] = {
		.name = "version",
		.type = NL_U32,
	},
	[ATP_A_FAMILY_COUNTERS] = {
		.name = "counters",
		.type = NL_NEST,
		.nested = &atp_set_counter,
	},
};

const struct nl_set atp_set_family = {
	.name = "family",
	.attrs = family_attrs,
	.max = ATP_A_FAMILY_MAX,
};

static const struct nl_attr event_attrs[] = {
	[ATP_A_EVENT_TYPE] = {
		.name = "type",
		.type = NL_U32,
	},
	[ATP_A_EVENT_JOB] = {
		.name = "job",
		.type = NL_U32,
	},
	[ATP_A_EVENT_EPOCH] = {
		.name = "epoch",
		.type = NL_U32,
	},
	[ATP_A_EVENT_REASON] = {
		.name = "reason",
		.type = NL_U32,
	},
	[ATP_A_EVENT_RANKS] = {
		.name = "ranks",
		.type = NL_U32,
	},
	[ATP_A_EVENT_SEQUENCE] = {
		.name = "sequence",
		.type = NL_U32,
	},
	[ATP_A_EVENT_RANK] = {
		.name = "rank",
		.type = NL_U32,
	},
};

const struct nl_set atp_set_event = {
	.name = "event",
	.attrs = event_attrs,
	.max = ATP_A_EVENT_MAX,
};

static const char * const role_names[] = {
	[ATP_ROLE_WORKER] = "worker",
	[ATP_ROLE_PS] = "ps",
};

const struct nl_enum atp_enum_role = {
	.names = role_names,
	.count = ARRAY_SIZE(role_names),
};

static const char * const event_names[] = {
	[ATP_EVENT_JOB_ADDED] = "job-added",
	[ATP_EVENT_JOB_CHANGED] = "job-changed",
	[ATP_EVENT_JOB_DELETED] = "job-deleted",
	[ATP_EVENT_JOINED] = "joined",
	[ATP_EVENT_ENDED] = "ended",
	[ATP_EVENT_STALLED] = "stalled",
	[ATP_EVENT_FAILED] = "failed",
};

const struct nl_enum atp_enum_event = {
	.names = event_names,
	.count = ARRAY_SIZE(event_names),
};
