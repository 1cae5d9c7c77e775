/* SPDX-License-Identifier: GPL-2.0 */
/* Since 6.10 <net/proto_memory.h> has what was in <net/sock.h> before. */
#ifndef _ATP_COMPAT_NET_PROTO_MEMORY_H
#define _ATP_COMPAT_NET_PROTO_MEMORY_H

#include <linux/version.h>
#include <net/sock.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#include <net/proto_memory.h>
#endif

#endif /* _ATP_COMPAT_NET_PROTO_MEMORY_H */
