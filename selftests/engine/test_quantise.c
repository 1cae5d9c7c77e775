// SPDX-License-Identifier: GPL-2.0
/*
 * Numbers, against two oracles that share nothing with the engine: the
 * processor's floating point where it is exact, and long integers that are
 * compared digit by digit where it is not.
 */
#include <float.h>
#include <math.h>
#include <tap.h>
#include "quantise_priv.h"

static const u32 scales[] = {
	1, 2, 3, 7, 10, 255, 256, 1000, 65535, 65537, 1000000, 8388607,
	16777216, 16777217, 99999999, 100000000, 123456789, 0x7fffffff,
	0x80000000, 0x80000001, 0xfffffffe, 0xffffffff,
};

static float to_float(u32 bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static u32 to_bits(float f)
{
	u32 bits;

	memcpy(&bits, &f, sizeof(f));
	return bits;
}

/*
 * x87 extended: a 24-bit by a 32-bit number is exact in 64 bits, and so is
 * rounding it to an integer.
 */
static bool oracle_quantise(u32 bits, u32 scale, s32 *out)
{
	long double v = (long double)to_float(bits) * scale;
	long double r;

	if (!isfinite(v))
		return false;
	r = rintl(v);
	if (r < -2147483648.0L || r > 2147483647.0L)
		return false;
	*out = (s32)r;
	return true;
}

static void check_quantise(u32 bits, u32 scale)
{
	s32 due = 0, got = 0x5a5a5a5a;
	bool fits = oracle_quantise(bits, scale, &due);
	u8 wire[4];

	if (atp_quantise(bits, scale, &got) != fits ||
	    got != (fits ? due : 0x5a5a5a5a))
		tap_fail(__FILE__, __LINE__,
			 "0x%08x * %u: %d instead of %s%d", bits, scale, got,
			 fits ? "" : "nothing, not ", due);
	/* an array of it has two ways of its own */
	if (atp_quantise_int(wire, &bits, 1, scale) != fits ||
	    (fits && get_unaligned_le32(wire) != (u32)due))
		tap_fail(__FILE__, __LINE__, "0x%08x * %u, as array", bits,
			 scale);
	if (!atp_fpu_exact(scale))
		return;
	if (atp_quantise_fpu(wire, &bits, 1, scale) != fits ||
	    (fits && get_unaligned_le32(wire) != (u32)due))
		tap_fail(__FILE__, __LINE__, "0x%08x * %u, by FPU", bits,
			 scale);
}

/* Every exponent and sign, with the mantissas at the edges and some by lot */
TEST(quantise_all_exponents)
{
	u32 s, top, k, mantissa;

	if (LDBL_MANT_DIG < 64)
		tap_skip("long double is too short for an oracle");
	tap_seed(20221);
	for (s = 0; s < ARRAY_SIZE(scales); s++) {
		for (top = 0; top < 512; top++) {
			for (k = 0; k < 150; k++) {
				if (k < 25)
					mantissa = (1U << k) & 0x7fffff;
				else if (k < 50)
					mantissa = (1U << (k - 25)) - 1;
				else if (k < 75)
					mantissa = -(1U << (k - 50));
				else
					mantissa = tap_rand();
				check_quantise(top << 23 |
					       (mantissa & 0x7fffff),
					       scales[s]);
			}
		}
	}
}

TEST(quantise_random)
{
	u32 i, bits, scale;

	if (LDBL_MANT_DIG < 64)
		tap_skip("long double is too short for an oracle");
	tap_seed(20222);
	for (i = 0; i < 3000000; i++) {
		bits = tap_rand();
		/* gradients: most are small, not all */
		if (i & 1)
			bits = (bits & 0x807fffff) | (90 + tap_below(70)) << 23;
		scale = tap_rand() >> tap_below(31) | 1;
		check_quantise(bits, i & 2 ? 100000000 : scale);
	}
}

TEST(quantise_ties)
{
	s32 v;

	/* 0.5 to 4.5 and back, by scale 1 */
	EXPECT_TRUE(atp_quantise(to_bits(0.5f), 1, &v) && v == 0);
	EXPECT_TRUE(atp_quantise(to_bits(1.5f), 1, &v) && v == 2);
	EXPECT_TRUE(atp_quantise(to_bits(2.5f), 1, &v) && v == 2);
	EXPECT_TRUE(atp_quantise(to_bits(3.5f), 1, &v) && v == 4);
	EXPECT_TRUE(atp_quantise(to_bits(-0.5f), 1, &v) && v == 0);
	EXPECT_TRUE(atp_quantise(to_bits(-1.5f), 1, &v) && v == -2);
	EXPECT_TRUE(atp_quantise(to_bits(-2.5f), 1, &v) && v == -2);
	EXPECT_TRUE(atp_quantise(to_bits(nextafterf(0.5f, 1)), 1, &v) &&
		    v == 1);
	EXPECT_TRUE(atp_quantise(0x80000000, 100000000, &v) && v == 0);
}

TEST(quantise_limits)
{
	s32 v = 5;

	EXPECT_TRUE(atp_quantise(to_bits(2147483520.0f), 1, &v));
	EXPECT_EQ(v, 2147483520);
	EXPECT_FALSE(atp_quantise(to_bits(2147483648.0f), 1, &v));
	EXPECT_EQ(v, 2147483520);
	EXPECT_TRUE(atp_quantise(to_bits(-2147483648.0f), 1, &v));
	EXPECT_EQ(v, S32_MIN);
	/* its neighbour further out */
	EXPECT_FALSE(atp_quantise(to_bits(-2147483648.0f) + 1, 1, &v));
	EXPECT_FALSE(atp_quantise(0x7f800000, 1, &v));
	EXPECT_FALSE(atp_quantise(0xff800000, 1, &v));
	EXPECT_FALSE(atp_quantise(0x7fc00000, 1, &v));
	EXPECT_FALSE(atp_quantise(0x7f800001, U32_MAX, &v));
	EXPECT_FALSE(atp_quantise(0x7f7fffff, 1, &v));
	/* just below the tie between the largest and what does not fit */
	EXPECT_TRUE(atp_quantise(to_bits(0.5f), 0xfffffffe, &v));
	EXPECT_EQ(v, S32_MAX);
	EXPECT_FALSE(atp_quantise(to_bits(0.5f), 0xffffffff, &v));
	EXPECT_TRUE(atp_quantise(to_bits(-0.5f), 0xffffffff, &v));
	EXPECT_EQ(v, S32_MIN);
}

__extension__ typedef __int128 s128;

/* |a / b - f| for finite f > 0, times b * 2^63 */
static s128 distance(u32 a, u32 b, u32 bits)
{
	int shift = (int)((bits >> 23) & 0xff) - 150 + 63;
	u32 mantissa = (bits & 0x7fffff) | 0x800000;
	s128 d;

	if (shift < 0)
		abort();
	d = ((s128)a << 63) - (((s128)mantissa << shift) * b);
	return d < 0 ? -d : d;
}

/* Of a float and its two neighbours none is nearer, and on a tie it is even:
 * that is what rounding means, however it is done.
 */
static void check_dequantise(s32 sum, u32 scale)
{
	u32 got = atp_dequantise(sum, scale);
	u32 mag = sum < 0 ? -(u32)sum : sum;
	u32 bits = got & 0x7fffffff;
	s128 here, below, above;
	u8 wire[4];
	u32 lane;

	/* an array of it has two ways of its own */
	put_unaligned_le32(sum, wire);
	atp_dequantise_int(&lane, wire, 1, scale);
	EXPECT_EQ(lane, got);
	if (atp_fpu_exact(scale)) {
		atp_dequantise_fpu(&lane, wire, 1, scale);
		EXPECT_EQ(lane, got);
	}
	if (!sum) {
		EXPECT_EQ(got, 0);
		return;
	}
	EXPECT_EQ(got >> 31, sum < 0);
	/* between 2^-32 and 2^31, all of them normal */
	if (bits < (127 - 33) << 23 || bits > (127 + 32) << 23) {
		tap_fail(__FILE__, __LINE__, "%d / %u: 0x%08x", sum, scale,
			 got);
		return;
	}
	here = distance(mag, scale, bits);
	below = distance(mag, scale, bits - 1);
	above = distance(mag, scale, bits + 1);
	if (here > below || here > above ||
	    ((here == below || here == above) && (bits & 1)))
		tap_fail(__FILE__, __LINE__, "%d / %u: 0x%08x", sum, scale,
			 got);
}

TEST(dequantise_edges)
{
	u32 s, i, k;

	for (s = 0; s < ARRAY_SIZE(scales); s++) {
		for (i = 0; i < 32; i++) {
			for (k = 0; k < 9; k++) {
				check_dequantise((1U << i) + k - 4, scales[s]);
				check_dequantise(-(1U << i) + k - 4, scales[s]);
			}
		}
		for (i = 0; i < 20000; i++) {
			check_dequantise(i, scales[s]);
			check_dequantise(0x7fffffff - i, scales[s]);
			check_dequantise(0x80000000 + i, scales[s]);
		}
	}
}

TEST(dequantise_random)
{
	u32 i, scale;

	tap_seed(20223);
	for (i = 0; i < 3000000; i++) {
		scale = i & 1 ? 100000000 : tap_rand() >> tap_below(31);
		check_dequantise((s32)tap_rand() >> tap_below(32),
				 scale ? scale : 1);
	}
}

/* Quotients next to the middle m / 2^k between two values, where rounding twice
 * would show: m * scale is a multiple of 2^k but for one, their distance.
 */
TEST(dequantise_middle)
{
	u32 i, k, scale, inverse, m;
	u64 product;

	tap_seed(20230);
	for (i = 0; i < 300000; i++) {
		scale = (tap_rand() >> (5 + tap_below(6))) | 1;
		/* correct to three bits, then to twice as many each time */
		inverse = scale;
		for (k = 0; k < 4; k++)
			inverse *= 2 - scale * inverse;
		for (k = 20; k < 25; k++) {
			m = inverse & ((1U << k) - 1);
			if (i & 1)
				m = (1U << k) - m;
			m |= 1U << 24;
			product = (u64)m * scale;
			if (product >> k > S32_MAX)
				continue;
			check_dequantise(product >> k, scale);
			check_dequantise((product >> k) + 1, scale);
		}
	}
}

/* Quotients in the middle, ties: m * odd / (2^k * odd), for every odd part of a
 * scale that may have any, and some that have none.
 */
TEST(dequantise_ties)
{
	u32 odd, i, k, m;

	tap_seed(20231);
	for (odd = 1; odd < 1 << 10; odd += 2) {
		for (i = 0; i < 2000; i++) {
			m = 1U << 24 | tap_below(1 << 24) | 1;
			k = tap_below(18);
			if ((u64)m * odd > S32_MAX)
				m = S32_MAX / odd;
			check_dequantise(m * odd, odd << k);
			check_dequantise(-(m * odd), odd << k);
		}
	}
}

/* A double holds both numbers, its quotient is rounded to 53 bits before the
 * 24: no tie can be hidden by that if 53 >= 2 * 24 + 2, which holds when both
 * numbers have 24 bits.
 */
TEST(dequantise_float_division)
{
	u32 i, a, b;

	tap_seed(20224);
	for (i = 0; i < 1000000; i++) {
		a = 1 + tap_below((1 << 24) - 1);
		b = 1 + tap_below((1 << 24) - 1);
		EXPECT_EQ(atp_dequantise(a, b), to_bits((float)a / (float)b));
	}
}

/* ----- exact sums: an oracle with one digit per bit ----- */

#define DIGITS	330		/* weight of digit i: 2^(i - 160) */
#define UNIT	(-160)

struct big {
	s64 digit[DIGITS];
};

static void big_add(struct big *b, u32 bits)
{
	int exponent = (bits >> 23) & 0xff;
	u32 mantissa = bits & 0x7fffff;
	int i, at;

	if (exponent)
		mantissa |= 0x800000;
	else
		exponent = 1;
	at = exponent - 150 - UNIT;
	for (i = 0; i < 24; i++)
		if (mantissa & (1U << i))
			b->digit[at + i] += bits >> 31 ? -1 : 1;
}

/* Carry until every digit is 0 or 1, but the highest: that has the sign. */
static int big_sign(struct big *b)
{
	int i, sign = 0;

	for (i = 0; i < DIGITS - 1; i++) {
		while (b->digit[i] < 0) {
			b->digit[i] += 2;
			b->digit[i + 1]--;
		}
		b->digit[i + 1] += b->digit[i] / 2;
		b->digit[i] %= 2;
		if (b->digit[i])
			sign = 1;
	}
	if (b->digit[DIGITS - 1] < 0)
		sign = -1;
	return sign;
}

/* Compare sum with (a + c) / 2 for two neighbouring floats, through 2 * sum. */
static int big_compare_middle(const u32 *bits, unsigned int n, u32 a, u32 c)
{
	struct big d = { 0 };
	unsigned int i;

	for (i = 0; i < n; i++) {
		big_add(&d, bits[i]);
		big_add(&d, bits[i]);
	}
	big_add(&d, a ^ 0x80000000);
	/* beyond the largest there would be 2^128 */
	if (c == 0x7f800000) {
		big_add(&d, 0xff000000);
		big_add(&d, 0xff000000);
	} else {
		big_add(&d, c ^ 0x80000000);
	}
	return big_sign(&d);
}

static bool is_nan(u32 bits)
{
	return (bits & 0x7fffffff) > 0x7f800000;
}

/* The nearest float by halving: no rounding anywhere in it */
static u32 oracle_sum(const u32 *in, unsigned int n)
{
	u32 bits[ATP_RAW_MAX], sign = 0, lo, hi, mid;
	bool plus = false, minus = false, zeros = true;
	struct big b = { 0 };
	unsigned int i;
	int s;

	for (i = 0; i < n; i++) {
		if (is_nan(in[i]))
			return 0x7fc00000;
		plus |= in[i] == 0x7f800000;
		minus |= in[i] == 0xff800000;
		zeros &= in[i] == 0x80000000;
	}
	if (plus || minus)
		return plus && minus ? 0x7fc00000 :
		       plus ? 0x7f800000 : 0xff800000;
	if (zeros)
		return 0x80000000;

	for (i = 0; i < n; i++)
		big_add(&b, in[i]);
	s = big_sign(&b);
	if (!s)
		return 0;
	if (s < 0)
		sign = 0x80000000;
	for (i = 0; i < n; i++)
		bits[i] = in[i] ^ sign;

	/* the least float whose upper middle is not below the sum */
	lo = 0;
	hi = 0x7f800000;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		s = big_compare_middle(bits, n, mid, mid + 1);
		if (s < 0 || (!s && !(mid & 1)))
			hi = mid;
		else
			lo = mid + 1;
	}
	return sign | lo;
}

static void check_sum(const u32 *bits, unsigned int n)
{
	u32 got = atp_fsum(bits, n), due = oracle_sum(bits, n);

	if (got != due)
		tap_fail(__FILE__, __LINE__,
			 "sum of %u (0x%08x, ...): 0x%08x, not 0x%08x",
			 n, bits[0], got, due);
}

static u32 sum3(u32 a, u32 b, u32 c)
{
	u32 bits[] = { a, b, c };

	return atp_fsum(bits, 3);
}

TEST(sum_special)
{
	const u32 inf = 0x7f800000, nan = 0x7fc00000, neg = 0x80000000;
	u32 many[ATP_RAW_MAX], i;

	EXPECT_EQ(sum3(0, 0, 0), 0);
	EXPECT_EQ(sum3(neg, neg, neg), neg);
	EXPECT_EQ(sum3(neg, 0, neg), 0);
	EXPECT_EQ(sum3(0x3f800000, 0xbf800000, neg), 0);
	EXPECT_EQ(sum3(inf, 0x3f800000, 0xff7fffff), inf);
	EXPECT_EQ(sum3(1, inf | neg, 0x7f7fffff), inf | neg);
	EXPECT_EQ(sum3(inf, 0, inf | neg), nan);
	EXPECT_EQ(sum3(inf, 0x7f800001, 0), nan);
	EXPECT_EQ(sum3(0, 0xffc12345, 0), nan);
	/* 1 + 2^-24 is a tie; the smallest number breaks it, far away */
	EXPECT_EQ(sum3(0x3f800000, 0x33800000, 0), 0x3f800000);
	EXPECT_EQ(sum3(0x3f800000, 0x33800000, 1), 0x3f800001);
	EXPECT_EQ(sum3(0x3f800000, 0x33800000, neg | 1), 0x3f800000);
	EXPECT_EQ(sum3(0x3f800001, 0x33800000, 0), 0x3f800002);
	/* what is lost when added in this order */
	EXPECT_EQ(sum3(0x7f7fffff, 1, 0xff7fffff), 1);
	/* the largest, and half a unit more */
	EXPECT_EQ(sum3(0x7f7fffff, 0x72ffffff, 0), 0x7f7fffff);
	EXPECT_EQ(sum3(0x7f7fffff, 0x73000000, 0), inf);
	EXPECT_EQ(sum3(0x7f7fffff, 0x73000000, neg | 1), 0x7f7fffff);
	/* subnormals are exact, up to the first normal */
	EXPECT_EQ(sum3(0x007fffff, 1, 0), 0x00800000);
	EXPECT_EQ(sum3(0x00800000, neg | 1, 0), 0x007fffff);

	for (i = 0; i < ATP_RAW_MAX; i++)
		many[i] = 0xff7fffff;
	EXPECT_EQ(atp_fsum(many, ATP_RAW_MAX), inf | neg);
	EXPECT_EQ(atp_fsum(many, 1), 0xff7fffff);
}

/* One number is its own sum: every exponent, and the edges of the mantissa */
TEST(sum_of_one)
{
	u32 top, k, bits;

	for (top = 0; top < 512; top++) {
		if ((top & 0xff) == 0xff)
			continue;
		for (k = 0; k < 24; k++) {
			bits = top << 23 | ((1U << k) & 0x7fffff);
			EXPECT_EQ(atp_fsum(&bits, 1), bits);
			bits = top << 23 | ((1U << k) - 1);
			EXPECT_EQ(atp_fsum(&bits, 1), bits);
		}
	}
}

/* Two numbers: the processor rounds their sum just so. */
TEST(sum_of_two)
{
	u32 i, bits[2], due;

	tap_seed(20225);
	for (i = 0; i < 2000000; i++) {
		bits[0] = tap_rand();
		bits[1] = tap_rand();
		if (i % 3)
			bits[1] = (bits[1] & 0x807fffff) |
				  ((bits[0] + (tap_below(60) << 23)) &
				   0x7f800000);
		due = to_bits(to_float(bits[0]) + to_float(bits[1]));
		if (is_nan(due))
			due = 0x7fc00000;
		EXPECT_EQ(atp_fsum(bits, 2), due);
	}
}

TEST(sum_random)
{
	u32 i, k, n, bits[ATP_RAW_MAX], base, spread;

	tap_seed(20226);
	for (i = 0; i < 6000; i++) {
		n = 1 + tap_below(ATP_RAW_MAX);
		base = tap_below(255);
		spread = 1 + tap_below(i & 1 ? 40 : 255);
		for (k = 0; k < n; k++) {
			bits[k] = tap_rand() & 0x807fffff;
			bits[k] |= ((base + tap_below(spread)) % 255) << 23;
			/* mantissas of few bits make ties */
			if (i & 2)
				bits[k] &= 0xfff00000;
			/* and equal numbers cancel */
			if (k && tap_chance(4))
				bits[k] = bits[tap_below(k)] ^ 0x80000000;
			if (tap_chance(2000))
				bits[k] |= 0x7f800000;
		}
		check_sum(bits, n);
	}
}

TEST(sum_any_order)
{
	u32 i, k, n, other, due, bits[ATP_RAW_MAX];

	tap_seed(20227);
	for (i = 0; i < 20000; i++) {
		n = 2 + tap_below(ATP_RAW_MAX - 1);
		for (k = 0; k < n; k++)
			bits[k] = tap_rand() & ~0x40000000;
		due = atp_fsum(bits, n);
		for (k = 0; k < n; k++) {
			other = tap_below(n);
			swap(bits[k], bits[other]);
		}
		EXPECT_EQ(atp_fsum(bits, n), due);
	}
}

/* All lengths up to a fragment's.  Values of 2^-27 to 8 fit with a scale of up
 * to 2^28, which is too much for the FPU.
 */
static void check_lanes(u32 scale)
{
	u32 data[850], back[850], n, i, bad;
	u8 wire[850 * 4 + 2];
	s32 v;

	for (n = 1; n <= 850; n += 7) {
		for (i = 0; i < n; i++)
			data[i] = (tap_rand() & 0x807fffff) |
				  (100 + tap_below(30)) << 23;
		memset(wire, 0x77, sizeof(wire));
		ASSERT_TRUE(atp_quantise_lanes(wire + 1, data, n, scale));
		EXPECT_EQ(wire[0], 0x77);
		EXPECT_EQ(wire[1 + 4 * n], 0x77);
		atp_dequantise_lanes(back, wire + 1, n, scale);
		for (i = 0; i < n; i++) {
			ASSERT_TRUE(atp_quantise(data[i], scale, &v));
			EXPECT_EQ((s32)(wire[1 + 4 * i] | wire[2 + 4 * i] << 8 |
					wire[3 + 4 * i] << 16 |
					(u32)wire[4 + 4 * i] << 24), v);
			EXPECT_EQ(back[i], atp_dequantise(v, scale));
		}
		memcpy(data, wire + 1, n * sizeof(*data));
		atp_dequantise_lanes(data, data, n, scale);
		EXPECT_EQ(memcmp(data, back, n * sizeof(*data)), 0);
		/* one that does not fit, anywhere */
		bad = tap_below(n);
		data[bad] = to_bits(22.0f);
		EXPECT_FALSE(atp_quantise_lanes(wire, data, n, scale));
	}
}

TEST(lanes)
{
	tap_seed(20228);
	check_lanes(100000000);
	check_lanes((1U << 27) + 1);
	check_lanes(1U << 28);
}

/* A value that is a multiple of 1 / scale and fits 24 bits survives. */
TEST(there_and_back)
{
	s32 i, v;

	for (i = -(1 << 24); i <= 1 << 24; i += 997) {
		ASSERT_TRUE(atp_quantise(atp_dequantise(i, 65536), 65536, &v));
		EXPECT_EQ(v, i);
	}
}

TAP_MAIN()
