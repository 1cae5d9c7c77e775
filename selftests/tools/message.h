/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Messages as the kernel would send them.
 */
#ifndef _TOOLS_MESSAGE_H
#define _TOOLS_MESSAGE_H

#include <libmnl/libmnl.h>
#include <linux/atp.h>
#include <linux/atp_netlink.h>
#include <linux/genetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_MAX	8192

/* Begin a message; it is one allocation, so that sanitizers know its end. */
static struct nlmsghdr *message(uint16_t type)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(calloc(1, MESSAGE_MAX));

	nlh->nlmsg_type = type;
	return nlh;
}

static struct nlmsghdr __attribute__((unused)) *genl_message(uint8_t cmd)
{
	struct nlmsghdr *nlh = message(NLMSG_MIN_TYPE);
	struct genlmsghdr *genl;

	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	return nlh;
}

/* The message in an allocation of its length. */
static struct nlmsghdr __attribute__((unused)) *seal(struct nlmsghdr *nlh)
{
	return realloc(nlh, nlh->nlmsg_len);
}

static void __attribute__((unused)) put_v4(struct nlmsghdr *nlh, int type,
					   uint32_t host)
{
	struct in6_addr addr = { 0 };

	addr.s6_addr[10] = 0xff;
	addr.s6_addr[11] = 0xff;
	host = htonl(host);
	memcpy(&addr.s6_addr[12], &host, sizeof(host));
	mnl_attr_put(nlh, type, sizeof(addr), &addr);
}

static void __attribute__((unused)) put_worker(struct nlmsghdr *nlh,
					       uint32_t host)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, ATP_A_JOB_WORKER);

	put_v4(nlh, ATP_A_WORKER_ADDR, host);
	mnl_attr_nest_end(nlh, nest);
}

static void __attribute__((unused)) put_counter(struct nlmsghdr *nlh,
						const char *name, uint64_t v)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, ATP_A_COUNTER_ENTRY);

	mnl_attr_put_strz(nlh, ATP_A_COUNTER_NAME, name);
	mnl_attr_put_u64(nlh, ATP_A_COUNTER_VALUE, v);
	mnl_attr_nest_end(nlh, nest);
}

/* A job of two workers with its PS here */
static struct nlmsghdr __attribute__((unused)) *job_message(void)
{
	struct nlmsghdr *nlh = genl_message(ATP_CMD_JOB_GET);
	struct nlattr *nest;

	mnl_attr_put_u32(nlh, ATP_A_JOB_ID, 7);
	put_v4(nlh, ATP_A_JOB_PS, 0x0a000009);
	put_worker(nlh, 0x0a000001);
	put_worker(nlh, 0x0a000002);
	mnl_attr_put_u32(nlh, ATP_A_JOB_FRAGMENT, 248);
	mnl_attr_put_u32(nlh, ATP_A_JOB_TIMEOUT, 1500);
	mnl_attr_put_u32(nlh, ATP_A_JOB_PATIENCE, 90000);
	mnl_attr_put_u32(nlh, ATP_A_JOB_GID, 0);
	mnl_attr_put_u32(nlh, ATP_A_JOB_ROLE, ATP_ROLE_PS);
	mnl_attr_put_u32(nlh, ATP_A_JOB_EPOCH, 3);
	mnl_attr_put_u32(nlh, ATP_A_JOB_JOINED, 3);
	mnl_attr_put_u8(nlh, ATP_A_JOB_RUNNING, 1);
	mnl_attr_put_u32(nlh, ATP_A_JOB_WAITING, 2);
	nest = mnl_attr_nest_start(nlh, ATP_A_JOB_COUNTERS);
	put_counter(nlh, "sent", 11);
	put_counter(nlh, "resent", 1ULL << 40);
	mnl_attr_nest_end(nlh, nest);
	return nlh;
}

#endif /* _TOOLS_MESSAGE_H */
