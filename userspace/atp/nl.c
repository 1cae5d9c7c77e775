// SPDX-License-Identifier: GPL-2.0
/* Generic netlink on libmnl. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/atp_netlink.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "nl.h"
#include "nlerror.h"
#include "nlparse.h"

/* What the controller tells about a family */
static const struct nl_attr group_attrs[] = {
	[CTRL_ATTR_MCAST_GRP_NAME] = {
		.name = "name",
		.type = NL_STRING,
	},
	[CTRL_ATTR_MCAST_GRP_ID] = {
		.name = "id",
		.type = NL_U32,
	},
};

static const struct nl_set group_set = {
	.name = "group",
	.attrs = group_attrs,
	.max = CTRL_ATTR_MCAST_GRP_MAX,
};

/* The group's number is its place, so each stands in a nest of its own */
static const struct nl_attr ctrl_attrs[] = {
	[CTRL_ATTR_FAMILY_ID] = {
		.name = "id",
		.type = NL_U16,
	},
	[CTRL_ATTR_FAMILY_NAME] = {
		.name = "name",
		.type = NL_STRING,
	},
	[CTRL_ATTR_MCAST_GROUPS] = {
		.name = "groups",
		.type = NL_BINARY,
	},
};

static const struct nl_set ctrl_set = {
	.name = "ctrl",
	.attrs = ctrl_attrs,
	.max = CTRL_ATTR_MCAST_GROUPS,
};

int nl_malformed(void)
{
	fprintf(stderr, "Error: malformed message from the kernel.\n");
	return -2;
}

static int nl_failed(const char *what)
{
	fprintf(stderr, "Error: %s: %s.\n", what, strerror(errno));
	return -2;
}

static void nl_refused(const struct nl *nl, const char *text)
{
	if (nl->quiet)
		return;
	fprintf(stderr, "Error: %s%s.\n", text, nl->error == -EPERM ?
		" (CAP_NET_ADMIN in the network namespace is needed)" : "");
}

struct nlmsghdr *nl_begin(struct nl *nl, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(nl->request_buf);
	struct genlmsghdr *genl;

	nlh->nlmsg_type = nl->family;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	if ((flags & NLM_F_DUMP) != NLM_F_DUMP)
		nlh->nlmsg_flags |= NLM_F_ACK;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = ATP_GENL_VERSION;
	return nlh;
}

/* Return: bytes in @nl->reply, 0 if some were lost, -1 with errno. */
static ssize_t nl_receive(struct nl *nl)
{
	ssize_t len;

	do {
		len = mnl_socket_recvfrom(nl->sock, nl->reply_buf,
					  sizeof(nl->reply_buf));
	} while (len < 0 && errno == EINTR);
	return len;
}

/* libmnl's own check takes a length of more than 2 GB for a negative one. */
static bool nl_whole(const struct nlmsghdr *nlh, int left)
{
	return mnl_nlmsg_ok(nlh, left) && nlh->nlmsg_len <= (uint32_t)left;
}

static bool nl_ours(const struct nl *nl, const struct nlmsghdr *nlh)
{
	return nlh->nlmsg_seq == nl->seq &&
	       nlh->nlmsg_pid == mnl_socket_get_portid(nl->sock);
}

/**
 * nl_message() - one message of a reply
 * @nl: connection
 * @nlh: message
 * @set: attributes of the request
 * @fn: for replies
 * @arg: for @fn
 * @result: 0, or -2
 *
 * Return: true if it was the last.
 */
static bool nl_message(struct nl *nl, const struct nlmsghdr *nlh,
		       const struct nl_set *set, nl_fn fn, void *arg,
		       int *result)
{
	char text[512];

	if (!nl_ours(nl, nlh))
		return false;
	if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
		fprintf(stderr,
			"Something changed meanwhile: the list may have gaps.\n");
	switch (nlh->nlmsg_type) {
	case NLMSG_NOOP:
	case NLMSG_OVERRUN:
		return false;
	case NLMSG_ERROR:
	case NLMSG_DONE:
		nl->error = nl_error(nlh, &nl->request, set, text,
				     sizeof(text));
		if (nl->error) {
			nl_refused(nl, text);
			*result = -2;
		}
		return true;
	}
	if (fn && !*result)
		*result = fn(nlh, arg);
	return false;
}

/* The number of the family may have been learned since nl_begin(). */
static void nl_stamp(struct nl *nl)
{
	if (nl->request.nlmsg_type != GENL_ID_CTRL)
		nl->request.nlmsg_type = nl->family;
	nl->request.nlmsg_seq = ++nl->seq;
}

int nl_run(struct nl *nl, const struct nl_set *set, nl_fn fn, void *arg)
{
	const struct nlmsghdr *nlh;
	bool done = false;
	int result = 0;
	ssize_t got;
	int left;

	nl->error = 0;
	nl_stamp(nl);
	if (mnl_socket_sendto(nl->sock, nl->request_buf,
			      nl->request.nlmsg_len) < 0) {
		nl->error = -errno;
		return nl_failed("netlink");
	}
	while (!done) {
		got = nl_receive(nl);
		if (got <= 0) {
			nl->error = -errno;
			return nl_failed("netlink");
		}
		nlh = &nl->reply;
		for (left = got; !done && nl_whole(nlh, left);
		     nlh = mnl_nlmsg_next(nlh, &left))
			done = nl_message(nl, nlh, set, fn, arg, &result);
	}
	return result;
}

int nl_listen(struct nl *nl, nl_fn fn, void *arg)
{
	const struct nlmsghdr *nlh;
	int left, err;
	ssize_t got;

	if (mnl_socket_setsockopt(nl->sock, NETLINK_ADD_MEMBERSHIP,
				  &nl->events, sizeof(nl->events)) < 0)
		return nl_failed("events");
	for (;;) {
		got = nl_receive(nl);
		if (got < 0 && errno == ENOBUFS) {
			err = fn(NULL, arg);
			if (err)
				return err;
			continue;
		}
		if (got <= 0)
			return nl_failed("netlink");
		nlh = &nl->reply;
		for (left = got; nl_whole(nlh, left);
		     nlh = mnl_nlmsg_next(nlh, &left)) {
			if (nlh->nlmsg_type != nl->family)
				continue;
			err = fn(nlh, arg);
			if (err)
				return err;
		}
	}
}

/* Number of the events' group out of the controller's list. */
static int nl_group(struct nl *nl, const struct nlattr *groups)
{
	const struct nlattr *tb[CTRL_ATTR_MCAST_GRP_MAX + 1];
	const struct nlattr *group, *name, *id;

	mnl_attr_for_each_nested(group, groups) {
		if (nl_parse_nest(group, &group_set, tb))
			return nl_malformed();
		name = tb[CTRL_ATTR_MCAST_GRP_NAME];
		id = tb[CTRL_ATTR_MCAST_GRP_ID];
		if (name && id &&
		    !strcmp(mnl_attr_get_str(name), ATP_MCGRP_EVENTS))
			nl->events = mnl_attr_get_u32(id);
	}
	return 0;
}

static int nl_found(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *tb[CTRL_ATTR_MCAST_GROUPS + 1];
	struct nl *nl = arg;

	if (nl_parse_msg(nlh, &ctrl_set, tb) || !tb[CTRL_ATTR_FAMILY_ID])
		return nl_malformed();
	nl->family = mnl_attr_get_u16(tb[CTRL_ATTR_FAMILY_ID]);
	if (!tb[CTRL_ATTR_MCAST_GROUPS])
		return 0;
	return nl_group(nl, tb[CTRL_ATTR_MCAST_GROUPS]);
}

void nl_no_family(const struct nl *nl)
{
	if (nl->error == -ENOENT)
		fprintf(stderr,
			"Error: this kernel does not speak ATP; load the module: modprobe atp\n");
	else if (nl->error)
		fprintf(stderr, "Error: family \"%s\": %s.\n", ATP_GENL_NAME,
			strerror(-nl->error));
}

/* Asking for the family also lets the kernel load the module. */
static int nl_resolve(struct nl *nl)
{
	static struct nl ctrl;
	struct nlmsghdr *nlh;
	int err;

	ctrl.sock = nl->sock;
	ctrl.family = GENL_ID_CTRL;
	ctrl.quiet = true;
	nlh = nl_begin(&ctrl, CTRL_CMD_GETFAMILY, 0);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, ATP_GENL_NAME);
	err = nl_run(&ctrl, &ctrl_set, nl_found, nl);
	nl->seq = ctrl.seq;
	nl->error = ctrl.error;
	if (!nl->quiet)
		nl_no_family(nl);
	return err;
}

int nl_open(struct nl *nl)
{
	int one = 1;

	nl->sock = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!nl->sock)
		return nl_failed("netlink");
	/* without these the kernel still says no, but not why */
	mnl_socket_setsockopt(nl->sock, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(nl->sock, NETLINK_CAP_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(nl->sock, NETLINK_GET_STRICT_CHK, &one,
			      sizeof(one));
	if (mnl_socket_bind(nl->sock, 0, MNL_SOCKET_AUTOPID) < 0) {
		nl_failed("netlink");
		nl_close(nl);
		return -2;
	}
	if (nl_resolve(nl)) {
		nl_close(nl);
		return -2;
	}
	return 0;
}

void nl_close(struct nl *nl)
{
	if (nl->sock)
		mnl_socket_close(nl->sock);
	nl->sock = NULL;
}

int nl_keep(const struct nlmsghdr *nlh, void *arg)
{
	struct nl_list *list = arg;
	struct nlmsghdr **msg;
	struct nlmsghdr *copy;

	msg = realloc(list->msg, (list->count + 1) * sizeof(*msg));
	if (!msg)
		return nl_failed("memory");
	list->msg = msg;
	copy = malloc(nlh->nlmsg_len);
	if (!copy)
		return nl_failed("memory");
	memcpy(copy, nlh, nlh->nlmsg_len);
	list->msg[list->count++] = copy;
	return 0;
}

void nl_list_free(struct nl_list *list)
{
	unsigned int i;

	for (i = 0; i < list->count; i++)
		free(list->msg[i]);
	free(list->msg);
	memset(list, 0, sizeof(*list));
}
