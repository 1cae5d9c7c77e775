/* SPDX-License-Identifier: GPL-2.0 */
/* 6.6 took the length of a sysctl table as an argument; before, and only then,
 * an empty entry had to end it.
 */
#ifndef _ATP_COMPAT_NET_SYSCTL_H
#define _ATP_COMPAT_NET_SYSCTL_H

#include <linux/version.h>
#include <net/net_namespace.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define register_net_sysctl_sz(net, path, table, size) \
	register_net_sysctl(net, path, table)
#endif

#endif /* _ATP_COMPAT_NET_SYSCTL_H */
