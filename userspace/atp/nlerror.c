// SPDX-License-Identifier: GPL-2.0
/* Error messages and their extended part. */
#include <errno.h>
#include <inttypes.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <string.h>
#include "nlerror.h"
#include "nlparse.h"

static const struct nl_attr policy_attrs[] = {
	[NL_POLICY_TYPE_ATTR_MIN_VALUE_U] = {
		.name = "min",
		.type = NL_U64,
	},
	[NL_POLICY_TYPE_ATTR_MAX_VALUE_U] = {
		.name = "max",
		.type = NL_U64,
	},
};

static const struct nl_set policy_set = {
	.name = "policy",
	.attrs = policy_attrs,
	.max = ARRAY_SIZE(policy_attrs) - 1,
};

static const struct nl_attr extack_attrs[] = {
	[NLMSGERR_ATTR_MSG] = {
		.name = "msg",
		.type = NL_STRING,
	},
	[NLMSGERR_ATTR_OFFS] = {
		.name = "offs",
		.type = NL_U32,
	},
	[NLMSGERR_ATTR_POLICY] = {
		.name = "policy",
		.type = NL_NEST,
		.nested = &policy_set,
	},
	[NLMSGERR_ATTR_MISS_TYPE] = {
		.name = "miss-type",
		.type = NL_U32,
	},
	[NLMSGERR_ATTR_MISS_NEST] = {
		.name = "miss-nest",
		.type = NL_U32,
	},
};

#define EXTACK_MAX	(ARRAY_SIZE(extack_attrs) - 1)

static const struct nl_set extack_set = {
	.name = "extack",
	.attrs = extack_attrs,
	.max = EXTACK_MAX,
};

/* Like " (8 to 3400)" if the kernel has told the limits. */
static void nl_error_range(const struct nlattr *policy, char *buf, size_t size)
{
	const struct nlattr *tb[ARRAY_SIZE(policy_attrs)];
	const struct nlattr *min, *max;

	buf[0] = '\0';
	if (!policy || nl_parse_nest(policy, &policy_set, tb))
		return;
	min = tb[NL_POLICY_TYPE_ATTR_MIN_VALUE_U];
	max = tb[NL_POLICY_TYPE_ATTR_MAX_VALUE_U];
	if (min && max)
		snprintf(buf, size, " (%" PRIu64 " to %" PRIu64 ")",
			 mnl_attr_get_u64(min), mnl_attr_get_u64(max));
}

static void nl_error_text(const struct nlattr **tb, int error,
			  const struct nlmsghdr *request,
			  const struct nl_set *set, char *buf, size_t size)
{
	const struct nlattr *msg = tb[NLMSGERR_ATTR_MSG];
	const struct nlattr *offs = tb[NLMSGERR_ATTR_OFFS];
	const struct nlattr *miss = tb[NLMSGERR_ATTR_MISS_TYPE];
	const char *missing = NULL;
	char path[64] = "";
	char range[64];

	if (offs)
		nl_path(request, mnl_attr_get_u32(offs), set, path,
			sizeof(path));
	if (miss && !tb[NLMSGERR_ATTR_MISS_NEST])
		missing = nl_attr_name(set, mnl_attr_get_u32(miss));
	nl_error_range(tb[NLMSGERR_ATTR_POLICY], range, sizeof(range));
	if (!msg && missing)
		snprintf(buf, size, "%s: is required", missing);
	else
		snprintf(buf, size, "%s%s%s%s", path, path[0] ? ": " : "",
			 msg ? mnl_attr_get_str(msg) : strerror(-error), range);
}

/* Where the attributes of an answer begin, or -1. */
static long nl_error_attrs(const struct nlmsghdr *reply)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(reply);
	size_t at;

	if (reply->nlmsg_type == NLMSG_DONE)
		return NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(int));
	at = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(*err));
	if (!(reply->nlmsg_flags & NLM_F_CAPPED)) {
		if (err->msg.nlmsg_len < NLMSG_HDRLEN ||
		    err->msg.nlmsg_len > reply->nlmsg_len)
			return -1;
		at += NLMSG_ALIGN(err->msg.nlmsg_len) - NLMSG_HDRLEN;
	}
	return at;
}

int nl_error(const struct nlmsghdr *reply, const struct nlmsghdr *request,
	     const struct nl_set *set, char *buf, size_t size)
{
	const struct nlattr *tb[EXTACK_MAX + 1] = { NULL };
	size_t len = reply->nlmsg_len;
	int error;
	long at;

	snprintf(buf, size, "%s", strerror(EBADMSG));
	if (len < NLMSG_HDRLEN + sizeof(error)) {
		/* the end of a dump need not say more */
		if (reply->nlmsg_type == NLMSG_DONE)
			return 0;
		return -EBADMSG;
	}
	memcpy(&error, mnl_nlmsg_get_payload(reply), sizeof(error));
	if (reply->nlmsg_type == NLMSG_ERROR &&
	    len < NLMSG_HDRLEN + sizeof(struct nlmsgerr))
		return -EBADMSG;
	if (error >= 0)
		return 0;
	if (error < -4095)
		return -EBADMSG;
	if (reply->nlmsg_flags & NLM_F_ACK_TLVS) {
		at = nl_error_attrs(reply);
		if (at < 0 || (size_t)at > len ||
		    nl_parse((const char *)reply + at, len - at, &extack_set,
			     tb))
			memset(tb, 0, sizeof(tb));
	}
	nl_error_text(tb, error, request, set, buf, size);
	return error;
}
