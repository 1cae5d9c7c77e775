/* SPDX-License-Identifier: GPL-2.0 */
/* One loop, compiled for ordinary registers and for those of several lanes */
#ifndef _ATP_ENGINE_LANES_PRIV_H
#define _ATP_ENGINE_LANES_PRIV_H

#include "lanes.h"

/* A sum's sign differs from those of both terms if, and only if, it did not
 * fit.  The index is as wide as an address, see quantise_fpu.c.
 */
static inline bool add_lanes(s32 *sum, const u8 *wire, u32 n)
{
	u32 wrapped = 0;
	u32 a, b;
	size_t i;

	for (i = 0; i < n; i++) {
		a = sum[i];
		b = get_unaligned_le32(wire + 4 * i);
		wrapped |= (a ^ (a + b)) & (b ^ (a + b));
		sum[i] = a + b;
	}
	return !(wrapped >> 31);
}

/* lanes_fpu.c: between atp_fpu_begin() and atp_fpu_end() */
bool atp_lanes_add_fpu(s32 *sum, const void *wire, u32 n);

#endif /* _ATP_ENGINE_LANES_PRIV_H */
