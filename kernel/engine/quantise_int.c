// SPDX-License-Identifier: GPL-2.0
/*
 * Arrays of numbers in integer arithmetic, which is there in every context and
 * exact for every scale.
 */
#include "quantise_priv.h"

/* One lane after the other, until one does not fit. */
static bool quantise_each(u8 *to, const u32 *data, u32 n, u32 scale)
{
	s32 v;
	u32 i;

	for (i = 0; i < n; i++) {
		if (!atp_quantise(data[i], scale, &v))
			return false;
		put_unaligned_le32(v, to + 4 * i);
	}
	return true;
}

/*
 * The same without a branch, for values below 2^23 and results below 2^31.  If
 * one is not, that shows at the end, and all is done again.  A value without
 * the hidden bit gets one here: below 2^-125 it comes to nothing either way.
 */
bool atp_quantise_int(void *wire, const u32 *data, u32 n, u32 scale)
{
	u32 bits, less, neg, i;
	u8 *to = wire;
	u64 any = 0;
	u64 v;

	for (i = 0; i < n; i++) {
		bits = data[i];
		v = mul_u32_u32((bits & (F32_ONE - 1)) | F32_ONE, scale);
		/* the shift, less one: not zero, or it shows */
		less = 149 - ((bits & F32_INF) >> F32_FRAC);
		any |= less;
		/* of 56 bits nothing is left either way */
		v = shift_round(v, min(less, 62U) + 1);
		any |= v;
		neg = (s32)bits >> 31;
		put_unaligned_le32(((u32)v ^ neg) - neg, to + 4 * i);
	}
	if (likely(!(any >> 31)))
		return true;
	return quantise_each(to, data, n, scale);
}

/* 2^95 / d, rounded down, for 2^31 <= d < 2^32; one less if that is 2^64 */
static u64 reciprocal(u32 d)
{
	u64 high = div64_u64(S64_MAX, d);
	u64 rem = S64_MAX - high * d;

	return (high << 32) + div64_u64(rem << 32 | U32_MAX, d);
}

/*
 * A division for the whole array, and a multiplication per lane.  With the
 * highest bit of num set, q has 62 bits or 63, far more than a result's 24.  As
 * the reciprocal is too small by at most one, so is q by less than two: it says
 * how to round unless it is next to the middle.
 */
void atp_dequantise_int(u32 *data, const void *wire, u32 n, u32 scale)
{
	const u32 bits = fls64(scale);
	const u64 recip = reciprocal(scale << (32 - bits));
	const unsigned int extra = 63 - (F32_FRAC + 1);
	const u8 *from = wire;
	u32 sum, neg, num, top, high, i;
	u64 q;

	for (i = 0; i < n; i++) {
		sum = get_unaligned_le32(from + 4 * i);
		if (!sum) {
			data[i] = 0;
			continue;
		}
		neg = (s32)sum >> 31;
		num = (sum ^ neg) - neg;
		top = fls64(num) - 1;
		q = mul_u64_u64_shr((u64)num << (63 - top), recip, 64);
		high = q >> 63;
		/* half of the last place, and one: in the middle q ends in at
		 * most one now
		 */
		q = (q >> high) + (1ULL << (extra - 1)) + 1;
		if (unlikely(q << (64 - extra) <= 1ULL << (64 - extra))) {
			data[i] = atp_dequantise(sum, scale);
			continue;
		}
		/* as above: rounding up carries into the exponent */
		data[i] = (neg << 31) +
			  ((127 - 1 - bits + top + high) << F32_FRAC) +
			  (u32)(q >> extra);
	}
}
