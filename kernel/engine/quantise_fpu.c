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

/* Not memcpy(): where the compiler may not make it its own business, that would
 * be two calls for each lane.
 */
union f32 {
	u32	bits;
	float	value;
};

union f64 {
	u64	bits;
	double	value;
};

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
	union f32 in;
	union f64 out;
	size_t i;

	for (i = 0; i < n; i++) {
		in.bits = data[i];
		out.value = in.value * factor + ROUNDER;
		any |= (out.bits - least) >> 32;
		put_unaligned_le32(out.bits, to + 4 * i);
	}
	return !any;
}

static void divide(u32 *data, const u8 *from, u32 n, double divisor)
{
	union f32 out;
	size_t i;

	for (i = 0; i < n; i++) {
		out.value = (s32)get_unaligned_le32(from + 4 * i) / divisor;
		data[i] = out.bits;
	}
}

static void multiply(u32 *data, const u8 *from, u32 n, double factor)
{
	union f32 out;
	size_t i;

	for (i = 0; i < n; i++) {
		out.value = (s32)get_unaligned_le32(from + 4 * i) * factor;
		data[i] = out.bits;
	}
}

void atp_dequantise_fpu(u32 *data, const void *wire, u32 n, u32 scale)
{
	if (atp_fpu_inverse(scale))
		multiply(data, wire, n, 1.0 / scale);
	else
		divide(data, wire, n, scale);
}
