// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel says that a driver can do for XDP, by the generic netlink
 * family "netdev" of Linux 6.3 and later.
 */
#include <errno.h>
#include <string.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include "rtnl.h"

/* Numbers of a header that is younger than those that we are built with */
#define CMD_DEV_GET		1
#define A_DEV_IFINDEX		1
#define A_DEV_XDP_FEATURES	3

static int on_family(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			*(uint16_t *)arg = mnl_attr_get_u16(attr);
	}
	return MNL_CB_OK;
}

static int on_dev(const struct nlmsghdr *nlh, void *arg)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) == A_DEV_XDP_FEATURES)
			*(uint64_t *)arg = mnl_attr_get_u64(attr);
	}
	return MNL_CB_OK;
}

static struct nlmsghdr *message(void *buf, size_t len, uint16_t type,
				uint8_t cmd)
{
	struct genlmsghdr *genl;
	struct nlmsghdr *nlh;

	memset(buf, 0, len);
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = 1;
	return nlh;
}

/**
 * sw_xdp_features() - ask for the XDP features of an interface
 * @ifindex: the interface
 * @features: SW_XDP_* bits
 *
 * Return: 0, or -1 if this kernel does not tell
 */
int sw_xdp_features(uint32_t ifindex, uint64_t *features)
{
	uint16_t family = 0;
	struct nlmsghdr *nlh;
	char buf[256];

	nlh = message(buf, sizeof(buf), GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, "netdev");
	if (sw_rtnl_ask(NETLINK_GENERIC, nlh, on_family, &family) || !family)
		return -1;
	nlh = message(buf, sizeof(buf), family, CMD_DEV_GET);
	mnl_attr_put_u32(nlh, A_DEV_IFINDEX, ifindex);
	*features = 0;
	return sw_rtnl_ask(NETLINK_GENERIC, nlh, on_dev, features) ? -1 : 0;
}
