/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Moving and adding lanes.  Compiles for BPF and for user space.
 *
 * In the packet, lanes begin anywhere; in an aggregator they fill whole blocks.
 * A payload is a whole number of 64-bit words and ends with the frame, so the
 * end of the frame ends every loop; the number of blocks bounds it.
 *
 * From a payload of 1 KiB on, a fragment's time is that of the instructions per
 * word, and BPF has neither vectors nor a carry flag.  So an aggregator keeps
 * its lanes, as long as none is beyond +-2^30, in a form that is added to with
 * few of them, the narrow one:
 *
 *   Each lane is 2^30 more than its value, so that its uppermost bit is clear.
 *   A payload's word is made the number (upper lane) * 2^32 + (lower lane),
 *   both signed, by sw_lane_signed().  Then a plain addition of 64 bits adds
 *   both lanes, and no carry gets from the lower into the upper one: that would
 *   need a sum beyond the range.  Such a sum has its uppermost bit set.  There
 *   is no other way to set it, nor one to leave the range unseen, since a value
 *   of 32 bits does not reach from one end of the range round to the other.  So
 *   the words are ORed on the way, and looked at once.
 *
 * A payload that leaves the range is taken back, which modular arithmetic
 * allows, and the aggregator gets the wide form until it is empty again: plain
 * lanes, added one by one, saturating.  The sum is the same in both.
 */
#ifndef _ATP_SWITCH_LANES_H
#define _ATP_SWITCH_LANES_H

#include "switch_packet.h"

/*
 * Keep the compiler from counting with p + 64 instead of p.  The kernel's
 * verifier remembers of a register that it was found beyond the end of the
 * packet, and still believes it after something was subtracted from it: a
 * comparison below would count as decided and the code behind it as dead.
 */
#ifdef __bpf__
#define sw_opaque(p)		asm volatile("" : "+r"(p))
#else
#define sw_opaque(p)		((void)(p))
#endif

/*
 * One instruction, here.  Left alone the compiler adds up a block's words in
 * another order, for which the registers do not suffice, and makes branches of
 * signs.
 */
#ifdef __bpf__
#define sw_plus(to, x)		asm volatile("%0 += %1" : "+r"(to) : "r"(x))
#define sw_or(to, x)		asm volatile("%0 |= %1" : "+r"(to) : "r"(x))
#define sw_sign(x)		asm volatile("%0 s>>= 63" : "+r"(x))
#else
#define sw_plus(to, x)		((to) += (x))
#define sw_or(to, x)		((to) |= (x))
#define sw_sign(x)		((x) >>= 63)
#endif

/* Both are arguments where a loop has them in registers */
#define SW_LANE_SIGNS		0x8000000080000000ULL
#define SW_LANE_BIAS		0x4000000040000000ULL

/* In what loops over lanes return, beside the folded sum of the payload: a lane
 * has left the narrow form's range
 */
#define SW_LANES_LEFT		0x10000U

/* A payload's word as one number of 64 bits, see above */
static __always_inline __u64 sw_lane_signed(__u64 x, __u64 signs)
{
	return (x ^ signs) - signs;
}

/* Into the narrow form; out of range, an uppermost bit is set */
static __always_inline __u64 sw_lane_in(__u64 x, __u64 signs, __u64 bias)
{
	return (x ^ signs) - bias;
}

/* And out of it */
static __always_inline __u64 sw_lane_out(__u64 t, __u64 signs, __u64 bias)
{
	return (t + bias) ^ signs;
}

/* The nearest to the sum that a lane can be.  Without a branch: the verifier
 * would follow both ways at each of a payload's lanes.  @over gets its
 * uppermost bit set if that is not the sum.
 */
static __always_inline __u32 sw_add1_saturated(__u32 x, __u32 y, __u64 *over)
{
	__s64 sum = (__s64)(__s32)x + (__s32)y;
	__s64 beyond = -((__u64)(sum + 0x80000000LL) >> 32);
	__s64 limit = sum;

	*over |= beyond;
	/* all bits or none */
	sw_sign(beyond);
	sw_sign(limit);
	limit ^= 0x7fffffff;
	return sum ^ ((sum ^ limit) & beyond);
}

/**
 * struct sw_sums - what a loop over lanes gathers
 * @all: sum of the payload's words, modulo 2^64
 * @high: sum of their upper halves
 * @left: words of the aggregator, ORed
 * @signs: SW_LANE_SIGNS, in a register
 * @bias: SW_LANE_BIAS, likewise
 */
struct sw_sums {
	__u64	all;
	__u64	high;
	__u64	left;
	__u64	signs;
	__u64	bias;
};

/*
 * The folded sum of all halves, and SW_LANES_LEFT.  The lower halves' sum is
 * what is left of @all when the upper ones' is taken away: neither has as many
 * as 64 bits.
 */
static __always_inline __u32 sw_sums_end(const struct sw_sums *s)
{
	__u32 sum = sw_fold((s->all - (s->high << 32)) + s->high);

	return sum | (s->left & SW_LANE_SIGNS ? SW_LANES_LEFT : 0);
}

/* What is done with words of a payload, @n known to the compiler.  The upper
 * halves are loaded once more: a load costs less than two instructions that
 * would get them out of the word.
 */
typedef void sw_step(void *p, __u64 *lanes, int n, struct sw_sums *s);

static __always_inline void sw_step_sum(void *p, __u64 *lanes, int n,
					struct sw_sums *s)
{
	const volatile sw_half *half = p;
	const sw_word *word = p;
	int j;

	(void)lanes;
#pragma GCC unroll 8
	for (j = 0; j < n; j++) {
		sw_plus(s->all, word[j]);
		sw_plus(s->high, (__u64)half[2 * j + 1]);
	}
}

static __always_inline void sw_step_take(void *p, __u64 *lanes, int n,
					 struct sw_sums *s)
{
	const sw_word *word = p;
	int j;

#pragma GCC unroll 8
	for (j = 0; j < n; j++) {
		__u64 t = sw_lane_in(word[j], s->signs, s->bias);

		sw_or(s->left, t);
		lanes[j] = t;
	}
}

static __always_inline void sw_step_copy(void *p, __u64 *lanes, int n,
					 struct sw_sums *s)
{
	const sw_word *word = p;
	int j;

	(void)s;
#pragma GCC unroll 8
	for (j = 0; j < n; j++)
		lanes[j] = word[j];
}

static __always_inline void sw_step_add(void *p, __u64 *lanes, int n,
					struct sw_sums *s)
{
	const volatile sw_half *half = p;
	const sw_word *word = p;
	int j;

#pragma GCC unroll 8
	for (j = 0; j < n; j++) {
		__u64 x = word[j];

		sw_plus(s->all, x);
		x = sw_lane_signed(x, s->signs);
		sw_plus(x, lanes[j]);
		sw_or(s->left, x);
		lanes[j] = x;
		sw_plus(s->high, (__u64)half[2 * j + 1]);
	}
}

static __always_inline void sw_step_undo(void *p, __u64 *lanes, int n,
					 struct sw_sums *s)
{
	const sw_word *word = p;
	int j;

	(void)s;
#pragma GCC unroll 8
	for (j = 0; j < n; j++)
		lanes[j] -= sw_lane_signed(word[j], s->signs);
}

/* The payload was added to a narrow sum: it is taken back, the sum is wide */
static __always_inline void sw_step_widen(void *p, __u64 *lanes, int n,
					  struct sw_sums *s)
{
	const sw_word *word = p;
	int j;

#pragma GCC unroll 8
	for (j = 0; j < n; j++)
		lanes[j] = sw_lane_out(lanes[j] -
				       sw_lane_signed(word[j], s->signs),
				       s->signs, s->bias);
}

static __always_inline void sw_step_out(void *p, __u64 *lanes, int n,
					struct sw_sums *s)
{
	sw_word *word = p;
	int j;

#pragma GCC unroll 8
	for (j = 0; j < n; j++) {
		__u64 x = sw_lane_out(lanes[j], s->signs, s->bias);

		word[j] = x;
		sw_plus(s->all, x);
		sw_plus(s->high, x >> 32);
	}
}

static __always_inline void sw_step_out_wide(void *p, __u64 *lanes, int n,
					     struct sw_sums *s)
{
	sw_word *word = p;
	int j;

#pragma GCC unroll 8
	for (j = 0; j < n; j++) {
		__u64 x = lanes[j];

		word[j] = x;
		sw_plus(s->all, x);
		sw_plus(s->high, x >> 32);
	}
}

/*
 * A step over all words from @p to the end of the frame: whole blocks, as many
 * as @blocks, then what is left, in parts whose number of words is a power of
 * two, so that there are no more than three comparisons.
 */
static __always_inline __u32 sw_lanes(void *p, const void *end, __u64 *lanes,
				      int blocks, sw_step *step)
{
	struct sw_sums s = { .signs = SW_LANE_SIGNS, .bias = SW_LANE_BIAS };
	int i, n;

	sw_opaque(s.signs);
	sw_opaque(s.bias);

	for (i = 0; i < blocks; i++) {
		sw_opaque(p);
		if (p + SW_BLOCK * 8 > end)
			break;
		step(p, lanes, SW_BLOCK, &s);
		p += SW_BLOCK * 8;
		lanes += SW_BLOCK;
	}
	if (i == blocks)
		return sw_sums_end(&s);
#pragma GCC unroll 4
	for (n = SW_BLOCK / 2; n; n /= 2) {
		sw_opaque(p);
		if (p + n * 8 > end)
			continue;
		step(p, lanes, n, &s);
		p += n * 8;
		lanes += n;
	}
	return sw_sums_end(&s);
}

/*
 * The payload is added to a wide sum lane by lane, saturating.  One word at a
 * time: unrolled it was more than the verifier of 6.18 looks at.
 *
 * Return: has a lane been saturated?
 */
static __always_inline bool sw_lanes_saturate(const void *p, const void *end,
					      __u64 *lanes, int words)
{
	__u64 over = 0;
	int i;

	for (i = 0; i < words; i++) {
		sw_half *x = (sw_half *)&lanes[i];
		const sw_half *y;

		sw_opaque(p);
		if (p + 8 > end)
			break;
		y = p;
		x[0] = sw_add1_saturated(x[0], y[0], &over);
		x[1] = sw_add1_saturated(x[1], y[1], &over);
		p += 8;
	}
	return over >> 63;
}

#endif /* _ATP_SWITCH_LANES_H */
