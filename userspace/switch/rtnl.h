/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel knows of interfaces, routes and neighbours. */
#ifndef _ATP_SWITCH_RTNL_H
#define _ATP_SWITCH_RTNL_H

#include <libmnl/libmnl.h>
#include "switch.h"

/* What a driver can do for XDP */
#define SW_XDP_BASIC		0x01	/* run a program natively */
#define SW_XDP_REDIRECT		0x02	/* redirect what has come in */
#define SW_XDP_XMIT		0x04	/* send what was redirected to it */

/**
 * struct sw_link - an interface
 * @ifindex: its index
 * @name: its name
 * @kind: veth, bridge, ...; empty for hardware
 * @filters_vlans: a bridge that does
 * @master: interface above it, zero if none
 * @peer: the other end of a veth pair
 * @peer_away: and that is in another network namespace
 * @mtu: MTU
 * @up: it is up
 * @running: and so is its cable
 * @mac: MAC address
 * @xdp: id of the XDP program on it, zero if none
 * @xdp_mode: XDP_ATTACHED_*
 */
struct sw_link {
	uint32_t ifindex;
	char	name[IFNAMSIZ];
	char	kind[16];
	bool	filters_vlans;
	uint32_t master;
	uint32_t peer;
	bool	peer_away;
	uint32_t mtu;
	bool	up;
	bool	running;
	uint8_t	mac[6];
	uint32_t xdp;
	uint8_t	xdp_mode;
};

/**
 * struct sw_route - the way to an address
 * @dev: interface out of which it goes
 * @next: next hop, IPv4 mapped into IPv6: a gateway or the address itself
 * @local: it is our own address
 */
struct sw_route {
	uint32_t dev;
	struct in6_addr next;
	bool	local;
};

int sw_rtnl_ask(int bus, struct nlmsghdr *nlh, mnl_cb_t cb, void *arg);
/* Also says in errno why it cannot tell: ENODEV if the interface is gone */
int sw_rtnl_link(uint32_t ifindex, struct sw_link *link);
bool sw_is_bond(const struct sw_link *link);
int sw_rtnl_route(const struct in6_addr *addr, struct sw_route *route);
int sw_rtnl_neigh(uint32_t dev, const struct in6_addr *addr, uint8_t *mac);
void sw_rtnl_forget(uint32_t dev, const struct in6_addr *addr, uint16_t keep);
int sw_rtnl_fdb(uint32_t bridge, const uint8_t *mac, uint32_t *port);

/* Is a feature of ethtool's (ETHTOOL_G*) on?  -1: cannot tell */
int sw_ethtool(const char *name, uint32_t cmd);
int sw_xdp_features(uint32_t ifindex, uint64_t *features);

#endif /* _ATP_SWITCH_RTNL_H */
