// SPDX-License-Identifier: GPL-2.0
/* Addresses: names and numbers, IPv4 as v4-mapped. */
#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include "addr.h"

#define V4_OFFSET	12

static void addr_map(const struct in_addr *v4, struct in6_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	memset(&addr->s6_addr[V4_OFFSET - 2], 0xff, 2);
	memcpy(&addr->s6_addr[V4_OFFSET], v4, sizeof(*v4));
}

const char *addr_parse(const char *text, int family, struct in6_addr *addr)
{
	struct addrinfo hints = {
		.ai_family = family == AF_INET || family == AF_INET6 ?
			     family : AF_UNSPEC,
		.ai_socktype = SOCK_DGRAM,
	};
	const struct sockaddr_in6 *sin6;
	struct addrinfo *found;
	int err;

	err = getaddrinfo(text, NULL, &hints, &found);
	if (err)
		return gai_strerror(err);
	if (found->ai_family == AF_INET) {
		addr_map(&((struct sockaddr_in *)found->ai_addr)->sin_addr,
			 addr);
	} else {
		sin6 = (const struct sockaddr_in6 *)found->ai_addr;
		*addr = sin6->sin6_addr;
	}
	freeaddrinfo(found);
	if (IN6_IS_ADDR_LINKLOCAL(addr))
		return "a link-local address does not name a host";
	return NULL;
}

const char *addr_text(const struct in6_addr *addr,
		      char buf[INET6_ADDRSTRLEN])
{
	if (IN6_IS_ADDR_V4MAPPED(addr))
		inet_ntop(AF_INET, &addr->s6_addr[V4_OFFSET], buf,
			  INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, addr, buf, INET6_ADDRSTRLEN);
	return buf;
}
