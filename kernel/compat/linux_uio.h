/* SPDX-License-Identifier: GPL-2.0 */
/* iter_iov_addr(), where the first segment is, came with 6.4. */
#ifndef _ATP_COMPAT_LINUX_UIO_H
#define _ATP_COMPAT_LINUX_UIO_H

#include <linux/version.h>
#include <linux/uio.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
static inline void __user *iter_iov_addr(const struct iov_iter *iter)
{
	if (iter_is_ubuf(iter))
		return iter->ubuf + iter->iov_offset;
	return iter->iov->iov_base + iter->iov_offset;
}
#endif

#endif /* _ATP_COMPAT_LINUX_UIO_H */
