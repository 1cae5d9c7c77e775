/* SPDX-License-Identifier: GPL-2.0 */
/* Numbers, between the files that convert them */
#ifndef _ATP_ENGINE_QUANTISE_PRIV_H
#define _ATP_ENGINE_QUANTISE_PRIV_H

#include "quantise.h"

/* IEEE 754 binary32 */
#define F32_SIGN	0x80000000u
#define F32_INF		0x7f800000u
#define F32_NAN		0x7fc00000u
#define F32_FRAC	23
#define F32_ONE		0x00800000u		/* the hidden bit */

/* v / 2^s to the nearest, ties to even; 0 < s < 64, v + 2^(s - 1) fits */
static inline u64 shift_round(u64 v, unsigned int s)
{
	u64 odd = (v >> s) & 1;

	return (v + (1ULL << (s - 1)) - 1 + odd) >> s;
}

/* quantise_int.c: any scale, in any context */
bool atp_quantise_int(void *wire, const u32 *data, u32 n, u32 scale);
void atp_dequantise_int(u32 *data, const void *wire, u32 n, u32 scale);

/* quantise_fpu.c: between atp_fpu_begin() and atp_fpu_end(), only where
 * atp_fpu_exact() says so
 */
bool atp_quantise_fpu(void *wire, const u32 *data, u32 n, u32 scale);
void atp_dequantise_fpu(u32 *data, const void *wire, u32 n, u32 scale);

/*
 * To integers: a value has 24 bits; with a scale of 29 the product fits the 53
 * of a double, and is rounded once, by ROUNDER.
 *
 * To values: sum / scale is rounded to 53 bits and then to 24.  That is the
 * same as at once unless the first comes to lie in the middle between two
 * values, while the quotient does not.  That middle is m / 2^k with m of 25
 * bits, and |sum / scale - m / 2^k| is 1 / (scale * 2^k) at least.  Of the
 * middle it is 1 / (scale * m), which is more than 2^-52 up to a scale of 2^27,
 * and a double is off by 2^-53 at most.
 */
static inline bool atp_fpu_exact(u32 scale)
{
	return scale <= 1U << 27;
}

/*
 * A multiplication takes a fraction of a division's time.  sum * (1 / scale) is
 * rounded twice before the 24 bits, and so off by 2^-52 * (1 + 2^-54) at most:
 * less than the distance above, which is 2^-52 * (1 + 2^-25) at least.  But a
 * quotient that is such a middle must come out as that, or the tie is not seen.
 * Then sum * 2^k is scale * m.  Both m, of 25 bits, and the odd part of scale
 * divide the sum, which has 31: that part is below 2^7.  If it is one, the
 * product is exact.
 */
static inline bool atp_fpu_inverse(u32 scale)
{
	u32 odd = scale >> __ffs(scale);

	return odd == 1 || odd > 127;
}

#endif /* _ATP_ENGINE_QUANTISE_PRIV_H */
