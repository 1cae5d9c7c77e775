/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* Generated from Documentation/netlink/specs/atp.yaml by "make netlink-gen". */
/*
 * Jobs of the aggregation transport, the sockets that work for them, counters
 * and events. Addresses are IPv6; an IPv4 address is given as v4-mapped
 * (::ffff:a.b.c.d). All state belongs to the network namespace of the socket
 * that asks.
 */
#ifndef _UAPI_LINUX_ATP_NETLINK_H
#define _UAPI_LINUX_ATP_NETLINK_H

#define ATP_GENL_NAME		"atp"
#define ATP_GENL_VERSION	1
#define ATP_MCGRP_EVENTS	"events"

/**
 * enum atp_role - What this host is for a job; follows from its addresses.
 * @ATP_ROLE_WORKER: one of the job's worker addresses is local
 * @ATP_ROLE_PS: the job's PS address is local
 */
enum atp_role {
	ATP_ROLE_WORKER = 1,
	ATP_ROLE_PS = 2,
};

/**
 * enum atp_event - What an event-ntf tells.
 * @ATP_EVENT_JOB_ADDED: a job was added
 * @ATP_EVENT_JOB_CHANGED: a property was set
 * @ATP_EVENT_JOB_DELETED: a job was removed
 * @ATP_EVENT_JOINED: (PS) all workers have joined, a run begins
 * @ATP_EVENT_ENDED: (PS) a run ended; reason and ranks say why
 * @ATP_EVENT_STALLED: (PS) a fragment waits longer than half of the job's
 *	timeout
 * @ATP_EVENT_FAILED: (worker) a socket's run, or joining one, failed; reason
 *	and ranks say why
 */
enum atp_event {
	ATP_EVENT_JOB_ADDED = 1,
	ATP_EVENT_JOB_CHANGED = 2,
	ATP_EVENT_JOB_DELETED = 3,
	ATP_EVENT_JOINED = 4,
	ATP_EVENT_ENDED = 5,
	ATP_EVENT_STALLED = 6,
	ATP_EVENT_FAILED = 7,
};

/* Attributes "worker" */
enum {
	ATP_A_WORKER_ADDR = 1,

	__ATP_A_WORKER_MAX,
	ATP_A_WORKER_MAX = (__ATP_A_WORKER_MAX - 1)
};

/* Attributes "job" */
enum {
	ATP_A_JOB_ID = 1,
	ATP_A_JOB_PS,
	ATP_A_JOB_WORKER,
	ATP_A_JOB_FRAGMENT,
	ATP_A_JOB_WINDOW,
	ATP_A_JOB_SCALE,
	ATP_A_JOB_TIMEOUT,
	ATP_A_JOB_UID,
	ATP_A_JOB_GID,
	ATP_A_JOB_ROLE,
	ATP_A_JOB_EPOCH,
	ATP_A_JOB_JOINED,
	ATP_A_JOB_RUNNING,
	ATP_A_JOB_FRONTIER,
	ATP_A_JOB_WAITING,
	ATP_A_JOB_STALL_MS,
	ATP_A_JOB_COUNTERS,
	ATP_A_JOB_SOCKETS,
	ATP_A_JOB_MEMORY,
	ATP_A_JOB_PAD,
	ATP_A_JOB_PATIENCE,
	ATP_A_JOB_SERVER,
	ATP_A_JOB_SERVER_JOINED,
	ATP_A_JOB_SERVER_WAITING,

	__ATP_A_JOB_MAX,
	ATP_A_JOB_MAX = (__ATP_A_JOB_MAX - 1)
};

/* Attributes "counter" */
enum {
	ATP_A_COUNTER_NAME = 1,
	ATP_A_COUNTER_VALUE,
	ATP_A_COUNTER_ENTRY,
	ATP_A_COUNTER_PAD,

	__ATP_A_COUNTER_MAX,
	ATP_A_COUNTER_MAX = (__ATP_A_COUNTER_MAX - 1)
};

/* Attributes "sock" */
enum {
	ATP_A_SOCK_JOB = 1,
	ATP_A_SOCK_RANK,
	ATP_A_SOCK_INFO,
	ATP_A_SOCK_UID,
	ATP_A_SOCK_INODE,
	ATP_A_SOCK_RMEM,
	ATP_A_SOCK_WMEM,
	ATP_A_SOCK_SILENCE,

	__ATP_A_SOCK_MAX,
	ATP_A_SOCK_MAX = (__ATP_A_SOCK_MAX - 1)
};

/* Attributes "family" */
enum {
	ATP_A_FAMILY_NUMBER = 1,
	ATP_A_FAMILY_PORT,
	ATP_A_FAMILY_VERSION,
	ATP_A_FAMILY_COUNTERS,

	__ATP_A_FAMILY_MAX,
	ATP_A_FAMILY_MAX = (__ATP_A_FAMILY_MAX - 1)
};

/* Attributes "event" */
enum {
	ATP_A_EVENT_TYPE = 1,
	ATP_A_EVENT_JOB,
	ATP_A_EVENT_EPOCH,
	ATP_A_EVENT_REASON,
	ATP_A_EVENT_RANKS,
	ATP_A_EVENT_SEQUENCE,
	ATP_A_EVENT_RANK,

	__ATP_A_EVENT_MAX,
	ATP_A_EVENT_MAX = (__ATP_A_EVENT_MAX - 1)
};

/* Commands */
enum {
	ATP_CMD_JOB_ADD = 1,
	ATP_CMD_JOB_SET,
	ATP_CMD_JOB_DEL,
	ATP_CMD_JOB_GET,
	ATP_CMD_SOCK_GET,
	ATP_CMD_FAMILY_GET,
	ATP_CMD_EVENT_NTF,

	__ATP_CMD_MAX,
	ATP_CMD_MAX = (__ATP_CMD_MAX - 1)
};

#endif /* _UAPI_LINUX_ATP_NETLINK_H */
