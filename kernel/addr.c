// SPDX-License-Identifier: GPL-2.0
/* Addresses: IPv6 inside, an IPv4 address is v4-mapped. */
#include <linux/ipv6.h>
#include <net/addrconf.h>
#include <net/ip_fib.h>
#include <net/ipv6.h>
#include <net/route.h>
#include "atp.h"

/* May it name one host? */
bool atp_addr_valid(const struct in6_addr *addr)
{
	__be32 v4 = addr->s6_addr32[3];

	if (ipv6_addr_v4mapped(addr))
		return v4 && !ipv4_is_multicast(v4) && !ipv4_is_lbcast(v4);
	return !ipv6_addr_any(addr) && !ipv6_addr_is_multicast(addr) &&
	       !(ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL);
}

bool atp_addr_local(struct net *net, const struct in6_addr *addr)
{
	if (ipv6_addr_v4mapped(addr))
		return inet_addr_type(net, addr->s6_addr32[3]) == RTN_LOCAL;
	/* Also while duplicate address detection goes on.  If IPv6 is off
	 * since boot there is no table to look into.
	 */
	return IS_ENABLED(CONFIG_IPV6) && ipv6_mod_enabled() &&
	       ipv6_chk_addr_and_flags(net, addr, NULL, true, 0, 0);
}
