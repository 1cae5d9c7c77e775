/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel answers, checked and unpacked.
 *
 * The parsers return 0, or -1 if a message makes no sense.  Counters stay where
 * they are in the message.
 */
#ifndef _ATP_REPLY_H
#define _ATP_REPLY_H

#include <linux/atp.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct nlattr;

/**
 * struct job_reply - a job
 * @id: job ID
 * @ps: address of the PS
 * @worker: addresses by rank
 * @workers: number of workers
 * @fragment: payload bytes of a full fragment
 * @window: most fragments in flight
 * @scale: factor for float32
 * @timeout: milliseconds
 * @patience: milliseconds, 0 for ever
 * @has_uid: @uid may join
 * @has_gid: @gid may join
 * @uid: user
 * @gid: group
 * @server: an application on the PS host makes the results
 * @role: bits of enum atp_role
 * @sockets: open worker sockets on this host
 * @has_ps: what follows is known, this host is the PS
 * @running: a run goes on
 * @epoch: current or last run
 * @joined: bit per rank that has joined
 * @frontier: oldest fragment that is not complete
 * @waiting: ranks that it waits for
 * @stall: milliseconds since its first packet
 * @memory: bytes
 * @server_joined: the application has joined
 * @server_waiting: it waits for the application
 * @counters: nest of counters, or NULL
 */
struct job_reply {
	uint32_t	id;
	struct in6_addr	ps;
	struct in6_addr	worker[ATP_MAX_WORKERS];
	unsigned int	workers;
	uint32_t	fragment;
	uint32_t	window;
	uint32_t	scale;
	uint32_t	timeout;
	uint32_t	patience;
	bool		has_uid;
	bool		has_gid;
	uint32_t	uid;
	uint32_t	gid;
	bool		server;
	uint32_t	role;
	uint32_t	sockets;
	bool		has_ps;
	bool		running;
	uint32_t	epoch;
	uint32_t	joined;
	uint32_t	frontier;
	uint32_t	waiting;
	uint32_t	stall;
	uint32_t	memory;
	bool		server_joined;
	bool		server_waiting;
	const struct nlattr *counters;
};

/**
 * struct sock_reply - a worker socket
 * @job: job ID
 * @rank: rank
 * @uid: owner
 * @inode: inode
 * @rmem: bytes that wait for recvmsg()
 * @wmem: bytes that are pushed and not complete
 * @silence: milliseconds since the PS was heard of, 0 outside a run
 * @info: as from getsockopt(); what an older kernel does not know is zero
 */
struct sock_reply {
	uint32_t	job;
	uint32_t	rank;
	uint32_t	uid;
	uint32_t	inode;
	uint32_t	rmem;
	uint32_t	wmem;
	uint32_t	silence;
	struct atp_info	info;
};

/**
 * struct family_reply - numbers of the family
 * @number: address family
 * @port: UDP port
 * @version: packet version
 * @counters: nest of counters, or NULL
 */
struct family_reply {
	uint32_t	number;
	uint16_t	port;
	uint32_t	version;
	const struct nlattr *counters;
};

/**
 * struct event_reply - something happened
 * @type: enum atp_event
 * @job: job ID
 * @epoch: run
 * @reason: enum atp_reason
 * @ranks: bit per rank to blame or waited for
 * @sequence: fragment that is waited for
 * @has_rank: it happened to the socket of @rank
 * @rank: rank
 */
struct event_reply {
	uint32_t	type;
	uint32_t	job;
	uint32_t	epoch;
	uint32_t	reason;
	uint32_t	ranks;
	uint32_t	sequence;
	bool		has_rank;
	uint32_t	rank;
};

int job_parse(const struct nlmsghdr *nlh, struct job_reply *job);
int sock_parse(const struct nlmsghdr *nlh, struct sock_reply *sock);
int family_parse(const struct nlmsghdr *nlh, struct family_reply *family);
int event_parse(const struct nlmsghdr *nlh, struct event_reply *event);

/* Called for each counter */
typedef void (*counter_fn)(const char *name, uint64_t value, void *arg);

void counters_walk(const struct nlattr *counters, counter_fn fn, void *arg);

#endif /* _ATP_REPLY_H */
