// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers in integer arithmetic (paper 3.8, Documentation/protocol.rst,
 * Numbers).  Every result is the exact one, rounded once.
 */
#include "quantise_priv.h"

/* A finite value is mantissa * 2^(shift - 149). */
static u32 f32_mantissa(u32 bits)
{
	u32 frac = bits & (F32_ONE - 1);

	return (bits & F32_INF) ? frac | F32_ONE : frac;
}

static u32 f32_shift(u32 bits)
{
	u32 exponent = (bits & F32_INF) >> F32_FRAC;

	return exponent ? exponent - 1 : 0;
}

bool atp_quantise(u32 bits, u32 scale, s32 *out)
{
	u32 limit = bits & F32_SIGN ? 1u << 31 : (1u << 31) - 1;
	u64 v = mul_u32_u32(f32_mantissa(bits), scale);
	int shift = (int)f32_shift(bits) - 149;

	if (shift < -57) {
		/* v has 56 bits: less than a half */
		v = 0;
	} else if (shift < 0) {
		v = shift_round(v, -shift);
	} else if (v && shift > 31) {
		/* infinities and NaN come here, too */
		return false;
	} else if (v) {
		if (v > limit >> shift)
			return false;
		v <<= shift;
	}
	if (v > limit)
		return false;
	*out = bits & F32_SIGN ? (s32)-(u32)v : (s32)v;
	return true;
}

u32 atp_dequantise(s32 sum, u32 scale)
{
	u32 sign = sum < 0 ? F32_SIGN : 0;
	u64 num = sum < 0 ? -(u64)sum : sum;
	unsigned int lz, top;
	u64 q, rem;

	if (!sum)
		return 0;

	/* With the highest bit of num set, q has 32 bits at least: the 24 of
	 * the result and enough for the rounding.
	 */
	lz = 64 - fls64(num);
	num <<= lz;
	q = div64_u64(num, scale);
	rem = num - q * scale;

	/* What is behind the quotient only matters for being there or not, and
	 * q has bits to spare at its end for that.
	 */
	q |= rem != 0;
	top = fls64(q);
	/* q / 2^lz; rounding up to the next power of two carries into the
	 * exponent as it should.  Results are between 2^-32 and 2^31: normal.
	 * A q of 64 bits is halved, so that rounding has room.
	 */
	if (top == 64) {
		q = (q >> 1) | (q & 1);
		top--;
		lz--;
	}
	return sign + ((127 + top - 2 - lz) << F32_FRAC) +
	       (u32)shift_round(q, top - 1 - F32_FRAC);
}

/*
 * The exact sum, as a two's complement integer in units of 2^-149: 24 bits,
 * shifted by at most 253, times 32 values, and a sign are 283 bits.
 */
#define LIMBS	5

static_assert(24 + 253 + 5 + 1 <= 64 * LIMBS);
static_assert(ATP_RAW_MAX <= 32);

static void wide_add(u64 *acc, u32 mantissa, u32 shift, bool negative)
{
	unsigned int off = shift % 64, limb = shift / 64;
	u64 part[2] = { (u64)mantissa << off, 0 };
	bool carry = false;
	unsigned int i;

	if (off)
		part[1] = (u64)mantissa >> (64 - off);

	for (i = limb; i < LIMBS; i++) {
		u64 v = i - limb < 2 ? part[i - limb] : 0;
		u64 old = acc[i];

		/* the borrow, or the carry; 24 bits do not fill a limb, so v
		 * and a carry are less than 2^64
		 */
		if (negative) {
			acc[i] = old - v - carry;
			carry = old < v || (old == v && carry);
		} else {
			acc[i] = old + v + carry;
			carry = acc[i] < old;
		}
	}
}

static void wide_negate(u64 *acc)
{
	bool carry = true;
	unsigned int i;

	for (i = 0; i < LIMBS; i++) {
		acc[i] = ~acc[i] + carry;
		carry = carry && !acc[i];
	}
}

/* Bits pos and up, at most 64 of them */
static u64 wide_bits(const u64 *acc, unsigned int pos)
{
	unsigned int off = pos % 64, limb = pos / 64;
	u64 v = acc[limb] >> off;

	if (off && limb + 1 < LIMBS)
		v |= acc[limb + 1] << (64 - off);
	return v;
}

static bool wide_any_below(const u64 *acc, unsigned int pos)
{
	unsigned int i;

	for (i = 0; i < pos / 64; i++)
		if (acc[i])
			return true;
	return pos % 64 && (acc[i] & ((1ULL << pos % 64) - 1));
}

/* A positive number to the nearest float32, ties to even */
static u32 wide_round(const u64 *acc)
{
	unsigned int i, top = 0, shift;
	u64 q, bits;

	for (i = 0; i < LIMBS; i++)
		if (acc[i])
			top = 64 * i + fls64(acc[i]);

	/* The unit is the smallest subnormal: what fits 24 bits is the result,
	 * exactly; the hidden bit makes the exponent one.
	 */
	if (top <= F32_FRAC + 1)
		return acc[0];

	/* two bits more than the result: the half, and all that is below */
	shift = top - (F32_FRAC + 1);
	q = wide_bits(acc, shift - 1) << 1;
	q |= wide_any_below(acc, shift - 1);
	bits = ((u64)shift << F32_FRAC) + shift_round(q, 2);
	return min_t(u64, bits, F32_INF);
}

u32 atp_fsum(const u32 *bits, unsigned int n)
{
	bool plus_inf = false, minus_inf = false, all_minus_zero = true;
	u64 acc[LIMBS] = { 0 };
	unsigned int i;
	u32 sign = 0;

	if (WARN_ON_ONCE(n > ATP_RAW_MAX))
		return F32_NAN;

	for (i = 0; i < n; i++) {
		u32 magnitude = bits[i] & ~F32_SIGN;
		bool negative = bits[i] & F32_SIGN;

		if (magnitude > F32_INF)
			return F32_NAN;
		if (bits[i] != F32_SIGN)
			all_minus_zero = false;
		if (magnitude == F32_INF) {
			plus_inf |= !negative;
			minus_inf |= negative;
			continue;
		}
		wide_add(acc, f32_mantissa(bits[i]), f32_shift(bits[i]),
			 negative);
	}
	if (plus_inf && minus_inf)
		return F32_NAN;
	if (plus_inf)
		return F32_INF;
	if (minus_inf)
		return F32_INF | F32_SIGN;
	if (all_minus_zero)
		return F32_SIGN;

	if (acc[LIMBS - 1] >> 63) {
		sign = F32_SIGN;
		wide_negate(acc);
	}
	return sign | wide_round(acc);
}
