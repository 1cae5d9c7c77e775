// SPDX-License-Identifier: GPL-2.0
/*
 * Where a host is: route, next hop, its MAC address, and if the route leads
 * into a bridge the bridge's port.  The kernel keeps all of this; a host that
 * it has not spoken to yet is sent a datagram, so that it has to find out.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/neighbour.h>
#include "rtnl.h"

#define DISCARD_PORT	9
#define WAIT_MS		3000
#define STEP_MS		20

/* Make the kernel ask who has an address */
static void prime(const struct in6_addr *addr)
{
	struct sockaddr_in6 to = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(DISCARD_PORT),
		.sin6_addr = *addr,
	};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 && IN6_IS_ADDR_V4MAPPED(addr)) {
		/* a machine without IPv6 */
		struct sockaddr_in to4 = {
			.sin_family = AF_INET,
			.sin_port = htons(DISCARD_PORT),
		};

		memcpy(&to4.sin_addr, &addr->s6_addr[12], 4);
		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			return;
		sendto(fd, "", 1, MSG_DONTWAIT, (struct sockaddr *)&to4,
		       sizeof(to4));
	} else if (fd >= 0) {
		sendto(fd, "", 1, MSG_DONTWAIT, (struct sockaddr *)&to,
		       sizeof(to));
	}
	if (fd >= 0)
		close(fd);
}

static void pause_ms(int ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000L };

	nanosleep(&t, NULL);
}

/* MAC address and port of the next hop, as far as the operator did not say */
static int find_hop(const struct sw_where *where, const struct sw_route *route,
		    const struct sw_link *l3, struct sw_host *host)
{
	char text[INET6_ADDRSTRLEN];
	bool bridge = !strcmp(l3->kind, "bridge");
	int waited;

	sw_addr_text(&where->addr, text, sizeof(text));
	for (waited = 0; ; waited += STEP_MS) {
		bool mac = where->has_mac ||
			   !sw_rtnl_neigh(route->dev, &route->next, host->mac);
		bool port = true;

		if (where->has_mac)
			memcpy(host->mac, where->mac, 6);
		if (where->dev)
			host->ifindex = where->dev;
		else if (!bridge)
			host->ifindex = l3->ifindex;
		else
			port = mac && !sw_rtnl_fdb(l3->ifindex, host->mac,
						   &host->ifindex);
		if (mac && port)
			return 0;
		if (waited >= WAIT_MS)
			return sw_fail("%s does not answer on %s: is it up? Or say where it is: %s dev IF lladdr MAC",
				       text, l3->name, text);
		if (waited == 5 * STEP_MS)
			sw_say("waiting for %s to answer on %s", text,
			       l3->name);
		/* a host that has got another card or has moved */
		if (waited == 25 * STEP_MS)
			sw_rtnl_forget(route->dev, &route->next, 0);
		if (waited % (25 * STEP_MS) == 0)
			prime(&where->addr);
		pause_ms(STEP_MS);
	}
}

/* @again: what the kernel has not made sure of lately is not to be believed */
static int resolve(const struct sw_where *where, bool again,
		   struct sw_host *host)
{
	char text[INET6_ADDRSTRLEN];
	struct sw_route route = {};
	struct sw_link l3;

	sw_addr_text(&where->addr, text, sizeof(text));
	memset(host, 0, sizeof(*host));
	memcpy(host->addr, &where->addr, sizeof(host->addr));
	if (where->dev)
		host->flags |= SW_HOST_FIXED_DEV;
	if (where->has_mac)
		host->flags |= SW_HOST_FIXED_MAC;

	if (where->dev && where->has_mac) {
		/* a bridge without an address has no route to ask for */
		if (sw_rtnl_link(where->dev, &l3))
			return -1;
		if (l3.master && sw_rtnl_link(l3.master, &l3))
			return -1;
		route.dev = l3.ifindex;
		route.next = where->addr;
	} else {
		if (sw_rtnl_route(&where->addr, &route))
			return -1;
		if (route.local)
			return sw_fail("%s is an address of this machine: a switch aggregates between hosts, the PS and the workers are elsewhere",
				       text);
		if (sw_rtnl_link(route.dev, &l3))
			return -1;
	}
	host->l3 = l3.ifindex;
	memcpy(host->src, l3.mac, 6);
	if (again && !where->has_mac)
		sw_rtnl_forget(route.dev, &route.next, NUD_REACHABLE);
	return find_hop(where, &route, &l3, host);
}

/**
 * sw_resolve() - find out where a host is
 * @where: its address, and what the operator said
 * @host: filled in, apart from SW_HOST_ROUTED and _SHARED
 */
int sw_resolve(const struct sw_where *where, struct sw_host *host)
{
	return resolve(where, false, host);
}

int sw_resolve_again(struct sw_host *host)
{
	struct sw_where where = {};

	memcpy(&where.addr, host->addr, sizeof(where.addr));
	if (host->flags & SW_HOST_FIXED_DEV)
		where.dev = host->ifindex;
	if (host->flags & SW_HOST_FIXED_MAC) {
		where.has_mac = true;
		memcpy(where.mac, host->mac, sizeof(where.mac));
	}
	return resolve(&where, true, host);
}
