// SPDX-License-Identifier: GPL-2.0
/* Unpacks what the kernel answers. */
#include <libmnl/libmnl.h>
#include <linux/atp_netlink.h>
#include <linux/genetlink.h>
#include <string.h>
#include "netlink_gen.h"
#include "nlparse.h"
#include "reply.h"

static uint32_t u32_of(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u32(attr) : 0;
}

static bool flag_of(const struct nlattr *attr)
{
	return attr && mnl_attr_get_u8(attr);
}

static void addr_of(const struct nlattr *attr, struct in6_addr *addr)
{
	memcpy(addr, mnl_attr_get_payload(attr), sizeof(*addr));
}

static int job_parse_workers(const struct nlmsghdr *nlh,
			     struct job_reply *job)
{
	const struct nlattr *tb[ATP_A_WORKER_MAX + 1];
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, GENL_HDRLEN) {
		if (mnl_attr_get_type(attr) != ATP_A_JOB_WORKER)
			continue;
		if (job->workers == ATP_MAX_WORKERS ||
		    nl_parse_nest(attr, &atp_set_worker, tb) ||
		    !tb[ATP_A_WORKER_ADDR])
			return -1;
		addr_of(tb[ATP_A_WORKER_ADDR], &job->worker[job->workers++]);
	}
	return 0;
}

int job_parse(const struct nlmsghdr *nlh, struct job_reply *job)
{
	const struct nlattr *tb[ATP_A_JOB_MAX + 1];

	memset(job, 0, sizeof(*job));
	if (nl_parse_msg(nlh, &atp_set_job, tb) || !tb[ATP_A_JOB_ID])
		return -1;
	job->id = u32_of(tb[ATP_A_JOB_ID]);
	if (tb[ATP_A_JOB_PS])
		addr_of(tb[ATP_A_JOB_PS], &job->ps);
	job->fragment = u32_of(tb[ATP_A_JOB_FRAGMENT]);
	job->window = u32_of(tb[ATP_A_JOB_WINDOW]);
	job->scale = u32_of(tb[ATP_A_JOB_SCALE]);
	job->timeout = u32_of(tb[ATP_A_JOB_TIMEOUT]);
	job->patience = u32_of(tb[ATP_A_JOB_PATIENCE]);
	job->has_uid = tb[ATP_A_JOB_UID];
	job->uid = u32_of(tb[ATP_A_JOB_UID]);
	job->has_gid = tb[ATP_A_JOB_GID];
	job->gid = u32_of(tb[ATP_A_JOB_GID]);
	job->server = flag_of(tb[ATP_A_JOB_SERVER]);
	job->role = u32_of(tb[ATP_A_JOB_ROLE]);
	job->sockets = u32_of(tb[ATP_A_JOB_SOCKETS]);
	job->has_ps = tb[ATP_A_JOB_EPOCH];
	job->epoch = u32_of(tb[ATP_A_JOB_EPOCH]);
	job->joined = u32_of(tb[ATP_A_JOB_JOINED]);
	job->running = flag_of(tb[ATP_A_JOB_RUNNING]);
	job->frontier = u32_of(tb[ATP_A_JOB_FRONTIER]);
	job->waiting = u32_of(tb[ATP_A_JOB_WAITING]);
	job->stall = u32_of(tb[ATP_A_JOB_STALL_MS]);
	job->memory = u32_of(tb[ATP_A_JOB_MEMORY]);
	job->server_joined = flag_of(tb[ATP_A_JOB_SERVER_JOINED]);
	job->server_waiting = flag_of(tb[ATP_A_JOB_SERVER_WAITING]);
	job->counters = tb[ATP_A_JOB_COUNTERS];
	return job_parse_workers(nlh, job);
}

int sock_parse(const struct nlmsghdr *nlh, struct sock_reply *sock)
{
	const struct nlattr *tb[ATP_A_SOCK_MAX + 1];
	const struct nlattr *info;
	size_t len;

	memset(sock, 0, sizeof(*sock));
	if (nl_parse_msg(nlh, &atp_set_sock, tb) || !tb[ATP_A_SOCK_JOB] ||
	    !tb[ATP_A_SOCK_RANK] || !tb[ATP_A_SOCK_INFO])
		return -1;
	sock->job = u32_of(tb[ATP_A_SOCK_JOB]);
	sock->rank = u32_of(tb[ATP_A_SOCK_RANK]);
	sock->uid = u32_of(tb[ATP_A_SOCK_UID]);
	sock->inode = u32_of(tb[ATP_A_SOCK_INODE]);
	sock->rmem = u32_of(tb[ATP_A_SOCK_RMEM]);
	sock->wmem = u32_of(tb[ATP_A_SOCK_WMEM]);
	sock->silence = u32_of(tb[ATP_A_SOCK_SILENCE]);
	info = tb[ATP_A_SOCK_INFO];
	len = mnl_attr_get_payload_len(info);
	if (len > sizeof(sock->info))
		len = sizeof(sock->info);
	memcpy(&sock->info, mnl_attr_get_payload(info), len);
	return 0;
}

int family_parse(const struct nlmsghdr *nlh, struct family_reply *family)
{
	const struct nlattr *tb[ATP_A_FAMILY_MAX + 1];

	memset(family, 0, sizeof(*family));
	if (nl_parse_msg(nlh, &atp_set_family, tb))
		return -1;
	family->number = u32_of(tb[ATP_A_FAMILY_NUMBER]);
	if (tb[ATP_A_FAMILY_PORT])
		family->port = mnl_attr_get_u16(tb[ATP_A_FAMILY_PORT]);
	family->version = u32_of(tb[ATP_A_FAMILY_VERSION]);
	family->counters = tb[ATP_A_FAMILY_COUNTERS];
	return 0;
}

int event_parse(const struct nlmsghdr *nlh, struct event_reply *event)
{
	const struct nlattr *tb[ATP_A_EVENT_MAX + 1];

	memset(event, 0, sizeof(*event));
	if (nl_parse_msg(nlh, &atp_set_event, tb) || !tb[ATP_A_EVENT_TYPE] ||
	    !tb[ATP_A_EVENT_JOB])
		return -1;
	event->type = u32_of(tb[ATP_A_EVENT_TYPE]);
	event->job = u32_of(tb[ATP_A_EVENT_JOB]);
	event->epoch = u32_of(tb[ATP_A_EVENT_EPOCH]);
	event->reason = u32_of(tb[ATP_A_EVENT_REASON]);
	event->ranks = u32_of(tb[ATP_A_EVENT_RANKS]);
	event->sequence = u32_of(tb[ATP_A_EVENT_SEQUENCE]);
	event->has_rank = tb[ATP_A_EVENT_RANK];
	event->rank = u32_of(tb[ATP_A_EVENT_RANK]);
	return 0;
}

void counters_walk(const struct nlattr *counters, counter_fn fn, void *arg)
{
	const struct nlattr *tb[ATP_A_COUNTER_MAX + 1];
	const struct nlattr *entry;

	if (!counters)
		return;
	mnl_attr_for_each_nested(entry, counters) {
		if (mnl_attr_get_type(entry) != ATP_A_COUNTER_ENTRY ||
		    nl_parse_nest(entry, &atp_set_counter, tb) ||
		    !tb[ATP_A_COUNTER_NAME] || !tb[ATP_A_COUNTER_VALUE])
			continue;
		fn(mnl_attr_get_str(tb[ATP_A_COUNTER_NAME]),
		   mnl_attr_get_u64(tb[ATP_A_COUNTER_VALUE]), arg);
	}
}
