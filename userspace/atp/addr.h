/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Addresses, as people and as netlink write them.
 */
#ifndef _ATP_ADDR_H
#define _ATP_ADDR_H

#include <netinet/in.h>

/**
 * addr_parse() - address of a host
 * @text: IPv4 or IPv6 address, or name
 * @family: AF_UNSPEC, or the one that is wanted
 * @addr: result, an IPv4 address as v4-mapped
 *
 * Return: NULL, or what is wrong.
 */
const char *addr_parse(const char *text, int family, struct in6_addr *addr);

/* Text of an address, a v4-mapped one as IPv4, in @buf.  Return: @buf */
const char *addr_text(const struct in6_addr *addr,
		      char buf[INET6_ADDRSTRLEN]);

#endif /* _ATP_ADDR_H */
