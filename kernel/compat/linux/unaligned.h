/* SPDX-License-Identifier: GPL-2.0 */
/* 6.12 moved <asm/unaligned.h> here. */
#ifndef _ATP_COMPAT_LINUX_UNALIGNED_H
#define _ATP_COMPAT_LINUX_UNALIGNED_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include_next <linux/unaligned.h>
#endif

#endif /* _ATP_COMPAT_LINUX_UNALIGNED_H */
