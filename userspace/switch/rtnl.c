// SPDX-License-Identifier: GPL-2.0
/* Questions to rtnetlink, one socket each: they are asked rarely. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include "rtnl.h"

/* Ask, and let @cb see each answer.  Zero, or an errno. */
int sw_rtnl_ask(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg)
{
	char buf[32768];
	struct mnl_socket *nl;
	unsigned int seq, port;
	int len, err = 0;

	nl = mnl_socket_open2(bus, SOCK_CLOEXEC);
	if (!nl)
		return errno;
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0)
		goto fail;
	seq = (unsigned int)time(NULL);
	port = mnl_socket_get_portid(nl);
	nlh->nlmsg_seq = seq;
	if (!(nlh->nlmsg_flags & NLM_F_DUMP))
		nlh->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0)
		goto fail;
	do {
		len = mnl_socket_recvfrom(nl, buf, sizeof(buf));
		if (len < 0)
			goto fail;
		len = mnl_cb_run(buf, len, seq, port, cb, arg);
	} while (len > 0);
	if (len < 0)
fail:
		err = errno;
	mnl_socket_close(nl);
	return err;
}

static int ask(struct nlmsghdr *nlh, mnl_cb_t cb, void *arg)
{
	return sw_rtnl_ask(NETLINK_ROUTE, nlh, cb, arg);
}

static struct nlmsghdr *message(void *buf, size_t size, uint16_t type,
				uint16_t flags)
{
	struct nlmsghdr *nlh;

	memset(buf, 0, size);
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	return nlh;
}

static void read_bridge(const struct nlattr *data, struct sw_link *link)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, data) {
		if (mnl_attr_get_type(attr) == IFLA_BR_VLAN_FILTERING)
			link->filters_vlans = mnl_attr_get_u8(attr);
	}
}

static void read_info(const struct nlattr *info, struct sw_link *link)
{
	const struct nlattr *attr, *data = NULL;

	mnl_attr_for_each_nested(attr, info) {
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND)
			snprintf(link->kind, sizeof(link->kind), "%s",
				 mnl_attr_get_str(attr));
		else if (mnl_attr_get_type(attr) == IFLA_INFO_DATA)
			data = attr;
	}
	if (data && !strcmp(link->kind, "bridge"))
		read_bridge(data, link);
}

static void read_xdp(const struct nlattr *xdp, struct sw_link *link)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, xdp) {
		if (mnl_attr_get_type(attr) == IFLA_XDP_PROG_ID)
			link->xdp = mnl_attr_get_u32(attr);
		else if (mnl_attr_get_type(attr) == IFLA_XDP_ATTACHED)
			link->xdp_mode = mnl_attr_get_u8(attr);
	}
}

static int on_link(const struct nlmsghdr *nlh, void *arg)
{
	const struct ifinfomsg *ifm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	struct sw_link *link = arg;

	link->ifindex = ifm->ifi_index;
	link->up = ifm->ifi_flags & IFF_UP;
	link->running = ifm->ifi_flags & IFF_RUNNING;
	mnl_attr_for_each(attr, nlh, sizeof(*ifm)) {
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			snprintf(link->name, sizeof(link->name), "%s",
				 mnl_attr_get_str(attr));
			break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(attr) == 6)
				memcpy(link->mac, mnl_attr_get_payload(attr),
				       6);
			break;
		case IFLA_MTU:
			link->mtu = mnl_attr_get_u32(attr);
			break;
		case IFLA_MASTER:
			link->master = mnl_attr_get_u32(attr);
			break;
		case IFLA_LINK:
			link->peer = mnl_attr_get_u32(attr);
			break;
		case IFLA_LINK_NETNSID:
			link->peer_away = true;
			break;
		case IFLA_LINKINFO:
			read_info(attr, link);
			break;
		case IFLA_XDP:
			read_xdp(attr, link);
			break;
		}
	}
	return MNL_CB_OK;
}

int sw_rtnl_link(uint32_t ifindex, struct sw_link *link)
{
	char buf[256];
	struct nlmsghdr *nlh = message(buf, sizeof(buf), RTM_GETLINK, 0);
	struct ifinfomsg *ifm;
	int err;

	ifm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifm));
	ifm->ifi_index = ifindex;
	memset(link, 0, sizeof(*link));
	err = ask(nlh, on_link, link);
	if (!err)
		return 0;
	sw_fail("interface %u: %s", ifindex, strerror(err));
	errno = err;
	return -1;
}

/*
 * A bond or a team: what comes in says that it came by a link, where the kernel
 * puts a bond's program, and the link is behind no port.  Nor can one of its
 * links be a port, as what its hosts send comes by any.
 */
bool sw_is_bond(const struct sw_link *link)
{
	return !strcmp(link->kind, "bond") || !strcmp(link->kind, "team");
}

/* An address in netlink's form: family, and four or sixteen bytes */
static int put_addr(struct nlmsghdr *nlh, uint16_t type,
		    const struct in6_addr *addr)
{
	if (IN6_IS_ADDR_V4MAPPED(addr)) {
		mnl_attr_put(nlh, type, 4, &addr->s6_addr[12]);
		return AF_INET;
	}
	mnl_attr_put(nlh, type, 16, addr);
	return AF_INET6;
}

static bool get_addr(const struct nlattr *attr, struct in6_addr *addr)
{
	if (mnl_attr_get_payload_len(attr) == 4) {
		memset(addr, 0, sizeof(*addr));
		addr->s6_addr[10] = 0xff;
		addr->s6_addr[11] = 0xff;
		memcpy(&addr->s6_addr[12], mnl_attr_get_payload(attr), 4);
		return true;
	}
	if (mnl_attr_get_payload_len(attr) != 16)
		return false;
	memcpy(addr, mnl_attr_get_payload(attr), 16);
	return true;
}

static int on_route(const struct nlmsghdr *nlh, void *arg)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct sw_route *route = arg;
	const struct nlattr *attr;

	route->local = rtm->rtm_type == RTN_LOCAL;
	mnl_attr_for_each(attr, nlh, sizeof(*rtm)) {
		switch (mnl_attr_get_type(attr)) {
		case RTA_OIF:
			route->dev = mnl_attr_get_u32(attr);
			break;
		case RTA_GATEWAY:
			get_addr(attr, &route->next);
			break;
		case RTA_VIA: {
			const struct rtvia *via = mnl_attr_get_payload(attr);

			/* an IPv6 router on the way to an IPv4 address */
			if (via->rtvia_family == AF_INET6)
				memcpy(&route->next, via->rtvia_addr, 16);
			break;
		}
		}
	}
	return MNL_CB_OK;
}

/* The way to an address */
int sw_rtnl_route(const struct in6_addr *addr, struct sw_route *route)
{
	char buf[256], text[INET6_ADDRSTRLEN];
	struct nlmsghdr *nlh = message(buf, sizeof(buf), RTM_GETROUTE, 0);
	struct rtmsg *rtm;
	int err;

	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	rtm->rtm_family = put_addr(nlh, RTA_DST, addr);
	rtm->rtm_dst_len = rtm->rtm_family == AF_INET ? 32 : 128;
	memset(route, 0, sizeof(*route));
	route->next = *addr;
	err = ask(nlh, on_route, route);
	sw_addr_text(addr, text, sizeof(text));
	if (err)
		return sw_fail("no route to %s (%s): give the switch an address in its subnet or a route, or say where it is: %s dev IF lladdr MAC",
			       text, strerror(err), text);
	if (!route->dev)
		return sw_fail("the route to %s leads nowhere", text);
	return 0;
}

/* What a dump of neighbours or forwarding entries is searched for */
struct search {
	uint32_t dev;			/* neighbours of this interface */
	uint32_t master;		/* or entries of this bridge */
	const struct in6_addr *addr;	/* key of a neighbour */
	const uint8_t *key;		/* key of an entry */
	uint8_t	mac[6];			/* results */
	uint32_t port;
	uint16_t state;
	bool	found;
};

static int on_neigh(const struct nlmsghdr *nlh, void *arg)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr, *lladdr = NULL;
	struct search *s = arg;
	struct in6_addr addr;
	uint32_t master = 0;
	bool same = false;

	mnl_attr_for_each(attr, nlh, sizeof(*ndm)) {
		switch (mnl_attr_get_type(attr)) {
		case NDA_DST:
			same = s->addr && get_addr(attr, &addr) &&
			       !memcmp(&addr, s->addr, sizeof(addr));
			break;
		case NDA_LLADDR:
			if (mnl_attr_get_payload_len(attr) == 6)
				lladdr = attr;
			break;
		case NDA_MASTER:
			master = mnl_attr_get_u32(attr);
			break;
		}
	}
	if (!lladdr)
		return MNL_CB_OK;
	if (s->addr) {
		if (!same || (uint32_t)ndm->ndm_ifindex != s->dev ||
		    ndm->ndm_state & (NUD_FAILED | NUD_INCOMPLETE))
			return MNL_CB_OK;
		memcpy(s->mac, mnl_attr_get_payload(lladdr), 6);
		s->state = ndm->ndm_state;
		s->found = true;
	} else if (master == s->master &&
		   (uint32_t)ndm->ndm_ifindex != s->master &&
		   !memcmp(mnl_attr_get_payload(lladdr), s->key, 6)) {
		s->port = ndm->ndm_ifindex;
		s->found = true;
	}
	return MNL_CB_OK;
}

static bool search_neighbours(int family, struct search *s)
{
	char buf[256];
	struct nlmsghdr *nlh = message(buf, sizeof(buf), RTM_GETNEIGH,
				       NLM_F_DUMP);
	struct ndmsg *ndm;

	ndm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ndm));
	ndm->ndm_family = family;
	return !ask(nlh, on_neigh, s) && s->found;
}

/* The MAC address of a neighbour, if it is known */
int sw_rtnl_neigh(uint32_t dev, const struct in6_addr *addr, uint8_t *mac)
{
	struct search s = { .dev = dev, .addr = addr };
	int family = IN6_IS_ADDR_V4MAPPED(addr) ? AF_INET : AF_INET6;

	if (!search_neighbours(family, &s))
		return -1;
	memcpy(mac, s.mac, 6);
	return 0;
}

/*
 * Forget a neighbour, so that whoever has the address now is asked for.  What
 * the operator has entered stays, and what is in one of the states @keep.
 */
void sw_rtnl_forget(uint32_t dev, const struct in6_addr *addr, uint16_t keep)
{
	char buf[256];
	struct nlmsghdr *nlh = message(buf, sizeof(buf), RTM_DELNEIGH, 0);
	struct search s = { .dev = dev, .addr = addr };
	struct ndmsg *ndm;

	ndm = mnl_nlmsg_put_extra_header(nlh, sizeof(*ndm));
	ndm->ndm_ifindex = dev;
	ndm->ndm_family = put_addr(nlh, NDA_DST, addr);
	if (search_neighbours(ndm->ndm_family, &s) &&
	    !(s.state & (NUD_PERMANENT | NUD_NOARP | keep)))
		ask(nlh, NULL, NULL);
}

/* The port of a bridge behind which a MAC address is */
int sw_rtnl_fdb(uint32_t bridge, const uint8_t *mac, uint32_t *port)
{
	struct search s = { .master = bridge, .key = mac };

	if (!search_neighbours(AF_BRIDGE, &s))
		return -1;
	*port = s.port;
	return 0;
}
