/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The echo of ICMP.
 */
#ifndef _ATP_ECHO_H
#define _ATP_ECHO_H

#include <netinet/in.h>
#include <stdbool.h>

/**
 * echo_ask() - does a host answer, and in one piece?
 * @addr: its address
 * @bytes: of the whole IP packet, there and back
 *
 * Some hosts and firewalls answer nobody, so that silence says little.
 *
 * Return: 1 it has answered, 0 it has not, -1 with errno, EMSGSIZE if that is
 * too long for the way.  Needs CAP_NET_RAW.
 */
int echo_ask(const struct in6_addr *addr, unsigned int bytes);

#endif /* _ATP_ECHO_H */
