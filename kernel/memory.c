// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for what a user may have as much of as he likes, as far as he is
 * charged for it: so nothing is taken that is not charged.  kvmalloc() takes up
 * to twice what it is asked for.  The charge is given back first: what is freed
 * by who may not sleep takes until a kernel's worker has been there.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "atp.h"

/* What atp_alloc() takes: as kmalloc() does, above a page whole pages.  What
 * the kernel needs to find them, some 200 bytes, is not in it.
 */
u32 atp_alloc_size(u32 len)
{
	if (len > PAGE_SIZE)
		return PAGE_ALIGN(len);
	return max_t(u32, roundup_pow_of_two(len), KMALLOC_MIN_SIZE);
}

/* To be freed by kvfree(). */
void *atp_alloc(u32 len, gfp_t gfp)
{
	if (is_power_of_2(atp_alloc_size(len)))
		return kvmalloc(len, gfp);
	return __vmalloc(len, gfp);
}
