/* SPDX-License-Identifier: GPL-2.0 */
/* Since 6.5 FOLL_LONGTERM refuses what is shared with a file on a file system:
 * that would write pages back without knowing that they change meanwhile, and
 * may keep who lets go of them waiting for as long as it likes.
 */
#ifndef _ATP_COMPAT_LINUX_MM_H
#define _ATP_COMPAT_LINUX_MM_H

#include <linux/mm.h>
#include <linux/version.h>

/* May a page that was pinned stay so? */
static inline bool atp_page_may_stay(struct page *page)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
	return PageAnon(page) || PageSwapBacked(page) || PageHuge(page);
#else
	return true;
#endif
}

#endif /* _ATP_COMPAT_LINUX_MM_H */
