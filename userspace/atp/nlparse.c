// SPDX-License-Identifier: GPL-2.0
/* Checks netlink attributes against their tables before anyone uses them. */
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "nlparse.h"

/* Nests within nests; the deepest that exists is three */
#define NL_DEPTH_MAX	8

static int nl_check(const void *buf, size_t len, const struct nl_set *set,
		    const struct nlattr **tb, unsigned int depth);

static bool nl_check_string(const struct nlattr *attr)
{
	size_t len = mnl_attr_get_payload_len(attr);

	return len && !((const char *)mnl_attr_get_payload(attr))[len - 1];
}

/* Return: 0, or -1 if the attribute does not hold what it should. */
static int nl_check_attr(const struct nlattr *attr, const struct nl_attr *want,
			 unsigned int depth)
{
	size_t len = mnl_attr_get_payload_len(attr);
	bool good = true;

	switch (want->type) {
	case NL_U8:
		good = len == sizeof(uint8_t);
		break;
	case NL_U16:
		good = len == sizeof(uint16_t);
		break;
	case NL_U32:
		good = len == sizeof(uint32_t);
		break;
	case NL_U64:
		good = len == sizeof(uint64_t);
		break;
	case NL_STRING:
		good = nl_check_string(attr);
		break;
	case NL_BINARY:
		good = !want->len || len == want->len;
		break;
	case NL_NEST:
		return nl_check(mnl_attr_get_payload(attr), len, want->nested,
				NULL, depth + 1);
	case NL_PAD:
	case NL_UNKNOWN:
		break;
	}
	return good ? 0 : -1;
}

static int nl_check(const void *buf, size_t len, const struct nl_set *set,
		    const struct nlattr **tb, unsigned int depth)
{
	const struct nlattr *attr = buf;
	unsigned int type;
	size_t step;

	if (depth > NL_DEPTH_MAX)
		return -1;
	while (len) {
		if (len < sizeof(*attr) || attr->nla_len < sizeof(*attr) ||
		    attr->nla_len > len)
			return -1;
		type = mnl_attr_get_type(attr);
		if (type && type <= set->max) {
			if (nl_check_attr(attr, &set->attrs[type], depth))
				return -1;
			if (tb && !tb[type])
				tb[type] = attr;
		}
		step = MNL_ALIGN(attr->nla_len);
		if (step > len)
			step = len;
		len -= step;
		attr = (const void *)((const char *)attr + step);
	}
	return 0;
}

int nl_parse(const void *buf, size_t len, const struct nl_set *set,
	     const struct nlattr **tb)
{
	memset(tb, 0, (set->max + 1) * sizeof(*tb));
	return nl_check(buf, len, set, tb, 0);
}

int nl_parse_msg(const struct nlmsghdr *nlh, const struct nl_set *set,
		 const struct nlattr **tb)
{
	const size_t head = NLMSG_HDRLEN + GENL_HDRLEN;

	if (nlh->nlmsg_len < head)
		return -1;
	return nl_parse((const char *)nlh + head, nlh->nlmsg_len - head, set,
			tb);
}

int nl_parse_nest(const struct nlattr *nest, const struct nl_set *set,
		  const struct nlattr **tb)
{
	return nl_parse(mnl_attr_get_payload(nest),
			mnl_attr_get_payload_len(nest), set, tb);
}

const char *nl_attr_name(const struct nl_set *set, unsigned int type)
{
	return type <= set->max ? set->attrs[type].name : NULL;
}

const char *nl_enum_name(const struct nl_enum *names, unsigned int value)
{
	return value < names->count ? names->names[value] : NULL;
}

/* Append to the text in @buf, after a blank unless it is the first. */
static void nl_append(char *buf, size_t size, const char *text)
{
	size_t used = strlen(buf);

	snprintf(buf + used, size - used, "%s%s", used ? " " : "", text);
}

void nl_path(const struct nlmsghdr *nlh, unsigned int offset,
	     const struct nl_set *set, char *buf, size_t size)
{
	const char *start = (const char *)nlh;
	size_t at = NLMSG_HDRLEN + GENL_HDRLEN;
	size_t end = nlh->nlmsg_len;
	const struct nlattr *attr;
	unsigned int type, number;
	char text[16];

	buf[0] = '\0';
	number = 0;
	while (set && at + sizeof(*attr) <= end && at <= offset) {
		attr = (const void *)(start + at);
		if (attr->nla_len < sizeof(*attr) || attr->nla_len > end - at)
			return;
		type = mnl_attr_get_type(attr);
		if (offset >= at + MNL_ALIGN(attr->nla_len)) {
			/* before it; counted if there can be several */
			if (type <= set->max && set->attrs[type].multi)
				number++;
			at += MNL_ALIGN(attr->nla_len);
			continue;
		}
		if (type > set->max || !set->attrs[type].name)
			return;
		nl_append(buf, size, set->attrs[type].name);
		if (set->attrs[type].multi) {
			snprintf(text, sizeof(text), "%u", number);
			nl_append(buf, size, text);
		}
		if (offset < at + sizeof(*attr))
			return;
		end = at + attr->nla_len;
		at += sizeof(*attr);
		set = set->attrs[type].nested;
		number = 0;
	}
}
