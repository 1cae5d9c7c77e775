/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every worker must get (Documentation/protocol.rst, Numbers), computed
 * in floating point and wide integers by the compiler, from the inputs alone.
 */
#ifndef _ATP_SELFTESTS_ORACLE_H
#define _ATP_SELFTESTS_ORACLE_H

#include <float.h>
#include <math.h>
#include <atp/env.h>
#include <linux/atp_packet.h>

/* 24 bits of a float times 32 bits of a scale are exact, and the quotient of
 * two 32-bit integers is never so near to the middle of two floats that it is
 * rounded twice.
 */
_Static_assert(LDBL_MANT_DIG >= 64, "long double is too short");

__extension__ typedef __int128 oracle_s128;

static inline float oracle_float(u32 bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static inline u32 oracle_bits(float f)
{
	u32 bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static inline bool oracle_quantise(u32 bits, u32 scale, long long *out)
{
	long double v = rintl((long double)oracle_float(bits) * scale);

	if (!(v >= -2147483648.0L && v <= 2147483647.0L))
		return false;
	*out = v;
	return true;
}

/* Exact for magnitudes from 2^-40 to 2^60, which tests keep to */
static inline u32 oracle_fsum(const u32 *bits, u32 n)
{
	double inf = 0;
	oracle_s128 sum = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		if (!isfinite(oracle_float(bits[i])))
			inf += oracle_float(bits[i]);
		else
			sum += (oracle_s128)ldexpl(oracle_float(bits[i]), 64);
	}
	if (isnan(inf))
		return 0x7fc00000;
	if (inf)
		return oracle_bits(inf);
	return oracle_bits(ldexpf((float)sum, -64));
}

/**
 * oracle_lane() - the result of one lane
 * @in: the workers' values
 * @n: how many workers
 * @dtype: enum atp_data_type
 * @scale: of the job
 * @overflow: set if the sum of integers does not fit, else left alone
 */
static inline u32 oracle_lane(const u32 *in, u32 n, u8 dtype, u32 scale,
			      bool *overflow)
{
	long long sum = 0, v;
	u32 i;

	for (i = 0; i < n; i++) {
		if (dtype == ATP_INT32)
			v = (s32)in[i];
		else if (!oracle_quantise(in[i], scale, &v))
			return oracle_fsum(in, n);
		sum += v;
	}
	if (sum >= S32_MIN && sum <= S32_MAX)
		return dtype == ATP_INT32 ? (u32)sum :
			oracle_bits((long double)sum / scale);
	if (dtype == ATP_FLOAT32)
		return oracle_fsum(in, n);
	*overflow = true;
	return sum < 0 ? S32_MIN : S32_MAX;
}

#endif /* _ATP_SELFTESTS_ORACLE_H */
