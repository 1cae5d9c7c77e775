// SPDX-License-Identifier: GPL-2.0
/*
 * Arrays of numbers by the processor's floating point, which converts several
 * at once.  The results are those of integer arithmetic, to the last bit, for
 * the scales that atp_fpu_exact() lets through; it rounds to nearest, ties to
 * even, as the processor does unless told otherwise.
 *
 * The index is as wide as an address: one that may wrap keeps the compiler from
 * taking several lanes at once.
 *
 * In the kernel the compiler may use those registers in this file alone, for
 * anything: it is entered after atp_fpu_begin() only.
 */
#include "quantise_priv.h"

/* A double of 2^52 and more has no places behind the point: adding it rounds.
 * With a half more than that the result's low bits are a two's complement
 * integer, for results of either sign.
 */
#define ROUNDER		(1.5 * (1ULL << 52))
#define ROUNDER_BITS	0x4338000000000000ULL

/* What does not fit, infinities and NaN show in the upper half of their
 * distance to the least that fits.
 */
bool atp_quantise_fpu(void *wire, const u32 *data, u32 n, u32 scale)
{
	const u64 least = ROUNDER_BITS - (1ULL << 31);
	const double factor = scale;
	u8 *to = wire;
	u64 any = 0;
	double d;
	float f;
	size_t i;
	u64 v;

	for (i = 0; i < n; i++) {
		memcpy(&f, &data[i], sizeof(f));
		d = f * factor + ROUNDER;
		memcpy(&v, &d, sizeof(v));
		any |= (v - least) >> 32;
		put_unaligned_le32(v, to + 4 * i);
	}
	return !any;
}

void atp_dequantise_fpu(u32 *data, const void *wire, u32 n, u32 scale)
{
	const double divisor = scale;
	const u8 *from = wire;
	size_t i;
	float f;

	for (i = 0; i < n; i++) {
		f = (s32)get_unaligned_le32(from + 4 * i) / divisor;
		memcpy(&data[i], &f, sizeof(f));
	}
}
