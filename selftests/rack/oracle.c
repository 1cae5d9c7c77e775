// SPDX-License-Identifier: GPL-2.0
/*
 * The numbers of the end-to-end tests, and their sums by other means than the
 * engine's: long double holds every product of a float32 and a 32-bit scale
 * exactly, and a quotient of two 32-bit integers is never so near to a tie of
 * float32 that rounding it to 64 bits first makes a difference.  What does not
 * fit is added in fixed point that spans all of float32.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "oracle.h"

_Static_assert(LDBL_MANT_DIG >= 64, "the oracle needs 64 bits of significand");

/* Lanes that are special together, so that other fragments stay ordinary */
#define BLOCK		512
#define SPECIAL_BLOCKS	4	/* one of these many */
#define SPECIAL_LANES	16	/* one of these many in such a block */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static uint32_t float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static float bits_float(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* Largest magnitude of which all ranks' sum fits for certain */
static float fair_share(const struct tensor *t)
{
	return 2147483648.0f / (float)t->scale / (float)t->workers / 2;
}

static float plain_float(const struct tensor *t, uint64_t h)
{
	float unit = (float)((int32_t)(h >> 32) >> 8) / 8388608.0f;

	switch (h % 16) {
	case 0:		/* at the default scale, odd / 512 is a tie */
		return (float)((int)(h >> 40) % 64 * 2 + 1) / 512.0f *
			(h & 16 ? 1 : -1) * (fair_share(t) <= 0.25f ? 0 : 1);
	case 1:
		return h & 16 ? -0.0f : 0.0f;
	case 2:		/* subnormal, far below one unit */
		return bits_float((uint32_t)(h >> 32) & 0x807fffff);
	case 3:		/* a tie if the scale is a power of two */
		return ((float)((h >> 32) % (1 << 20)) + 0.5f) /
			(float)t->scale;
	default:	/* all magnitudes that training sees */
		return unit * fair_share(t) / (float)(1U << (h >> 8) % 24);
	}
}

static int32_t plain_int(const struct tensor *t, uint64_t h)
{
	return (int32_t)(h >> 32) / (int32_t)t->workers;
}

/* Ranks come in pairs of opposite numbers, all even ranks have one sign. */
static uint32_t edge_lane(const struct tensor *t, uint32_t rank, uint64_t lane,
			  uint64_t h)
{
	uint64_t pair = mix(lane ^ (rank / 2));
	int sign = (lane ^ rank) & 1 ? -1 : 1;
	float limit = 2147483648.0f / (float)t->scale;

	if (rank == (t->workers | 1) - 1 && t->workers & 1)
		return t->is_float ? float_bits(limit / 1024) : h & 1023;
	if (t->is_float)
		return float_bits(sign * limit *
				  (0.75f + (float)(pair % 128) / 1024) +
				  plain_float(t, h));
	return (uint32_t)(sign * (0x7fffffff - (int32_t)(pair % 0x30000000) -
				  (int32_t)(h & 1023)));
}

static uint32_t wild_float(const struct tensor *t, uint32_t rank, uint64_t lane,
			   uint64_t h)
{
	float limit = 2147483648.0f / (float)t->scale;
	uint32_t victim = (lane >> 8) % t->workers;
	uint32_t other = (victim + 1) % t->workers;

	switch (lane % 10) {
	case 0:		/* each fits, the sum does not */
		return float_bits(limit * 0.9375f);
	case 1:		/* one is too large */
		if (rank == victim)
			return float_bits(ldexpf(1.5f, (int)(h >> 8) % 127));
		break;
	case 2:
		if (rank == victim)
			return lane & 0x1000 ? 0x7f800000 : 0xff800000;
		break;
	case 3:		/* infinities of both signs, unless one rank is all */
		if (rank == victim)
			return 0x7f800000;
		if (rank == other)
			return 0xff800000;
		break;
	case 4:		/* NaN with a payload, quiet or signalling */
		if (rank == victim)
			return 0x7f800001 | ((uint32_t)h & 0x807fffff);
		break;
	case 5:		/* any 32 bits */
		return (uint32_t)(h >> 16);
	case 6:		/* the large ones cancel, the rest is the sum */
	case 7:
		if (rank == victim || rank == other)
			return float_bits(ldexpf(rank == victim ? 1 : -1,
						 (int)(lane >> 16) % 128));
		if (lane % 10 == 7)
			return 0;
		break;
	case 8:		/* the last that fits, the first that does not */
		if (rank != victim)
			return 0;
		limit = h & 1 ? limit : -limit;
		return float_bits(limit) + (uint32_t)(h >> 8) % 3 - 1;
	case 9:		/* subnormals beside a number that forces raw */
		if (rank == victim)
			return float_bits(FLT_MAX);
		return (uint32_t)h & 0x807fffff;
	}
	return float_bits(plain_float(t, h));
}

static uint32_t wild_int(uint32_t rank, uint64_t lane, uint64_t h)
{
	switch (lane % 3) {
	case 0:
		return 0x7fffffff - (uint32_t)(h & 7);
	case 1:
		return 0x80000000U + (uint32_t)(h & 7);
	default:	/* just beyond, or just not */
		return rank < 2 ? 0x40000000 - (lane >> 8 & 1) * rank :
			lane >> 9 & 1;
	}
}

static uint32_t lane_value(const struct tensor *t, uint32_t rank,
			   uint32_t chunk, uint32_t i)
{
	uint64_t base = mix(t->seed ^ ((uint64_t)chunk << 32));
	uint64_t lane = mix(base ^ i);
	uint64_t h = mix(lane + 0x10001 * (rank + 1ULL));
	bool special = t->values != VALUES_PLAIN &&
		       (i / BLOCK + chunk) % SPECIAL_BLOCKS == 0 &&
		       lane % SPECIAL_LANES == 0;
	uint64_t kind = mix(lane);

	if (special && t->values == VALUES_WILD && t->is_float)
		return wild_float(t, rank, kind, h);
	/* Leave some integer chunks whole: one lane fails all of a chunk. */
	if (special && t->values == VALUES_WILD && chunk % 3 == 1)
		return wild_int(rank, kind, h);
	if (special)
		return edge_lane(t, rank, kind, h);
	if (t->is_float)
		return float_bits(plain_float(t, h));
	return (uint32_t)plain_int(t, h);
}

void tensor_fill(const struct tensor *t, uint32_t rank, uint32_t chunk,
		 uint32_t *lanes, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		lanes[i] = lane_value(t, rank, chunk, i);
}

/* 2^-149 to 2^128, and room for the carries of 32 numbers */
#define LIMBS	10

/* Exact sum of finite float32s, rounded once */
static uint32_t fixed_sum(const uint32_t *bits, uint32_t n)
{
	int64_t limb[LIMBS] = { 0 };
	bool negative, all_minus = true;
	int top, i, low;
	uint64_t mant;
	float result;

	for (i = 0; i < (int)n; i++) {
		uint32_t exp = bits[i] >> 23 & 255;
		int64_t sign = bits[i] >> 31 ? -1 : 1;
		uint64_t m = bits[i] & 0x7fffff;
		uint32_t shift = exp ? exp - 1 : 0;

		if (exp)
			m |= 0x800000;
		m <<= shift % 32;
		limb[shift / 32] += sign * (int64_t)(m & 0xffffffff);
		limb[shift / 32 + 1] += sign * (int64_t)(m >> 32);
		all_minus &= bits[i] == 0x80000000;
	}
	if (all_minus)
		return 0x80000000;

	for (i = 0; i < LIMBS - 1; i++) {
		limb[i + 1] += limb[i] >> 32;
		limb[i] &= 0xffffffff;
	}
	negative = limb[LIMBS - 1] < 0;
	if (negative) {
		int64_t carry = 0;

		for (i = 0; i < LIMBS - 1; i++) {
			carry -= limb[i];
			limb[i] = carry & 0xffffffff;
			carry >>= 32;
		}
		limb[LIMBS - 1] = carry - limb[LIMBS - 1];
	}

	for (top = LIMBS * 32 - 1; top >= 0; top--)
		if (limb[top / 32] >> top % 32 & 1)
			break;
	if (top < 0)
		return 0;

	/* The leading 40 bits, the last of them sticky, in a double are exact
	 * and leave the rounding to the conversion.
	 */
	low = top >= 39 ? top - 39 : 0;
	mant = 0;
	for (i = top; i >= low; i--)
		mant = mant << 1 | (limb[i / 32] >> i % 32 & 1);
	for (i = low - 1; i >= 0; i--)
		mant |= limb[i / 32] >> i % 32 & 1;
	result = (float)ldexp((double)mant, low - 149);
	return float_bits(negative ? -result : result);
}

static uint32_t ieee_sum(const uint32_t *bits, uint32_t n)
{
	bool plus = false, minus = false, nan = false;
	uint32_t i;

	for (i = 0; i < n; i++) {
		nan |= (bits[i] & 0x7fffffff) > 0x7f800000;
		plus |= bits[i] == 0x7f800000;
		minus |= bits[i] == 0xff800000;
	}
	if (nan || (plus && minus))
		return 0x7fc00000;
	if (plus || minus)
		return plus ? 0x7f800000 : 0xff800000;
	return fixed_sum(bits, n);
}

static bool fits(long double v)
{
	return v >= -2147483648.0L && v <= 2147483647.0L;
}

/* Return: false if there is none, which only integers have */
static bool lane_sum(const struct tensor *t, const uint32_t *bits,
		     uint32_t *sum)
{
	long double total = 0, v;
	uint32_t rank;

	for (rank = 0; rank < t->workers; rank++) {
		v = t->is_float ? rintl((long double)bits_float(bits[rank]) *
					t->scale) : (int32_t)bits[rank];
		if (!fits(v))
			break;
		total += v;
	}
	if (rank == t->workers && fits(total)) {
		int32_t integer = (int32_t)total;

		*sum = t->is_float ?
			float_bits((float)((long double)integer / t->scale)) :
			(uint32_t)integer;
		return true;
	}
	if (!t->is_float)
		return false;
	*sum = ieee_sum(bits, t->workers);
	return true;
}

bool tensor_expect(const struct tensor *t, uint32_t chunk, uint32_t *lanes,
		   uint32_t count)
{
	uint32_t bits[32];
	uint32_t rank, i;

	for (i = 0; i < count; i++) {
		for (rank = 0; rank < t->workers; rank++)
			bits[rank] = lane_value(t, rank, chunk, i);
		if (!lane_sum(t, bits, &lanes[i]))
			return false;
	}
	return true;
}
