/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Since 6.5 what is spliced to a socket comes with MSG_SPLICE_PAGES, which can
 * be refused.  Before, it comes page by page, and without an operation for
 * those each would be a message.
 */
#ifndef _ATP_COMPAT_NET_SENDPAGE_H
#define _ATP_COMPAT_NET_SENDPAGE_H

#include <linux/net.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
static inline ssize_t atp_no_sendpage(struct socket *sock, struct page *page,
				      int offset, size_t size, int flags)
{
	return -EOPNOTSUPP;
}

#define ATP_NO_SENDPAGE	.sendpage = atp_no_sendpage,
#else
#define ATP_NO_SENDPAGE
#endif

#endif /* _ATP_COMPAT_NET_SENDPAGE_H */
