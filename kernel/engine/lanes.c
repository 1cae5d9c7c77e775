// SPDX-License-Identifier: GPL-2.0
/* Arrays of lanes between the wire and the engine */
#include <atp/fpu.h>
#include "lanes_priv.h"

/* The wire's order of bytes is the host's: then lanes are copied as they are */
#define SAME_ORDER	(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

void atp_lanes_get(u32 *to, const void *wire, u32 n)
{
	const u8 *from = wire;
	u32 i;

	if (SAME_ORDER) {
		memcpy(to, wire, 4 * (size_t)n);
		return;
	}
	for (i = 0; i < n; i++)
		to[i] = get_unaligned_le32(from + 4 * i);
}

void atp_lanes_put(void *wire, const u32 *from, u32 n)
{
	u8 *to = wire;
	u32 i;

	if (SAME_ORDER) {
		memcpy(wire, from, 4 * (size_t)n);
		return;
	}
	for (i = 0; i < n; i++)
		put_unaligned_le32(from[i], to + 4 * i);
}

bool atp_lanes_add(s32 *sum, const void *wire, u32 n)
{
	const u8 *from = wire;
	bool fits;
	u32 i;

	if (atp_fpu_begin()) {
		fits = atp_lanes_add_fpu(sum, wire, n);
		atp_fpu_end();
	} else {
		fits = add_lanes(sum, wire, n);
	}
	if (likely(fits))
		return true;

	/* modulo 2^32 there is a way back */
	for (i = 0; i < n; i++)
		sum[i] = (u32)sum[i] - get_unaligned_le32(from + 4 * i);
	return false;
}
