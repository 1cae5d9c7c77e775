/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Moving and adding lanes.  Compiles for BPF and for user space.
 *
 * In the packet, lanes begin anywhere; in an aggregator they fill whole blocks.
 * A payload is a whole number of 64-bit words and ends with the frame, so the
 * end of the frame ends every loop; the number of blocks bounds it.
 *
 * Two lanes are added in one 64-bit word: the carry from the lower into the
 * upper one is taken back.  Whether a lane has overflowed is found out once, at
 * the end: the bits of all words are gathered on the way.  If any has, the
 * addition is undone, which modular arithmetic allows, and done again lane by
 * lane, saturating.
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

#define SW_LANE_CARRY		(1ULL << 32)
#define SW_LANE_SIGNS		0x8000000080000000ULL

/* Nobody adds two lanes without asking here */
static __always_inline __u64 sw_add2(__u64 x, __u64 y, __u64 *over)
{
	__u64 sum = x + y;

	sum -= (x ^ y ^ sum) & SW_LANE_CARRY;
	*over |= (x ^ sum) & (y ^ sum);
	return sum;
}

static __always_inline __u32 sw_add1_saturated(__u32 x, __u32 y)
{
	__s64 sum = (__s64)(__s32)x + (__s32)y;

	if (sum > 0x7fffffffLL)
		return 0x7fffffff;
	if (sum < -0x80000000LL)
		return 0x80000000;
	return (__u32)sum;
}

/* Sum of the words from @p to the end of the frame, for the checksum */
static __always_inline __u32 sw_lanes_sum(const void *p, const void *end)
{
	__u64 even = 0, odd = 0;
	int i, j;

	for (i = 0; i < SW_MAX_BLOCKS; i++) {
		const sw_half *half;

		sw_opaque(p);
		if (p + SW_BLOCK * 8 > end)
			break;
		half = p;
#pragma GCC unroll 8
		for (j = 0; j < SW_BLOCK; j++) {
			even += half[2 * j];
			odd += half[2 * j + 1];
		}
		p += SW_BLOCK * 8;
	}
	for (i = 0; i < SW_BLOCK; i++) {
		const sw_half *half;

		sw_opaque(p);
		if (p + 8 > end)
			break;
		half = p;
		even += half[0];
		odd += half[1];
		p += 8;
	}
	return sw_fold(even + odd);
}

/* The packet's lanes become the sum */
static __always_inline void sw_lanes_take(const void *p, const void *end,
					  __u64 *lanes, int blocks)
{
	int i, j;

	for (i = 0; i < blocks; i++) {
		const sw_word *word;

		sw_opaque(p);
		if (p + SW_BLOCK * 8 > end)
			break;
		word = p;
#pragma GCC unroll 8
		for (j = 0; j < SW_BLOCK; j++)
			lanes[j] = word[j];
		p += SW_BLOCK * 8;
		lanes += SW_BLOCK;
	}
	if (i == blocks)
		return;
	for (j = 0; j < SW_BLOCK; j++) {
		const sw_word *word;

		sw_opaque(p);
		if (p + 8 > end)
			break;
		word = p;
		lanes[j] = *word;
		p += 8;
	}
}

/*
 * The packet's lanes are added to the sum, each modulo 2^32.  The sign bits of
 * what is returned say whether any has overflowed.
 */
static __always_inline __u64 sw_lanes_add(const void *p, const void *end,
					  __u64 *lanes, int blocks)
{
	__u64 over = 0;
	int i, j;

	for (i = 0; i < blocks; i++) {
		const sw_word *word;

		sw_opaque(p);
		if (p + SW_BLOCK * 8 > end)
			break;
		word = p;
#pragma GCC unroll 8
		for (j = 0; j < SW_BLOCK; j++)
			lanes[j] = sw_add2(lanes[j], word[j], &over);
		p += SW_BLOCK * 8;
		lanes += SW_BLOCK;
	}
	if (i == blocks)
		return over & SW_LANE_SIGNS;
	for (j = 0; j < SW_BLOCK; j++) {
		const sw_word *word;

		sw_opaque(p);
		if (p + 8 > end)
			break;
		word = p;
		lanes[j] = sw_add2(lanes[j], *word, &over);
		p += 8;
	}
	return over & SW_LANE_SIGNS;
}

/* What sw_lanes_add() did, done again with saturation */
static __always_inline void sw_lanes_saturate(const void *p, const void *end,
					      __u64 *lanes, int words)
{
	int i;

	for (i = 0; i < words; i++) {
		sw_half *x = (sw_half *)&lanes[i];
		const sw_half *y;

		sw_opaque(p);
		if (p + 8 > end)
			break;
		y = p;
		x[0] = sw_add1_saturated(x[0] - y[0], y[0]);
		x[1] = sw_add1_saturated(x[1] - y[1], y[1]);
		p += 8;
	}
}

/*
 * The sum goes into the packet.
 *
 * Return: its sum, for the checksum
 */
static __always_inline __u32 sw_lanes_out(void *p, const void *end,
					  const __u64 *lanes, int blocks)
{
	__u64 all = 0, high = 0;
	int i, j;

	for (i = 0; i < blocks; i++) {
		sw_word *word;

		sw_opaque(p);
		if (p + SW_BLOCK * 8 > end)
			break;
		word = p;
#pragma GCC unroll 8
		for (j = 0; j < SW_BLOCK; j++) {
			__u64 v = lanes[j];

			word[j] = v;
			all += v;
			high += v >> 32;
		}
		p += SW_BLOCK * 8;
		lanes += SW_BLOCK;
	}
	for (j = 0; i < blocks && j < SW_BLOCK; j++) {
		sw_word *word;
		__u64 v;

		sw_opaque(p);
		if (p + 8 > end)
			break;
		word = p;
		v = lanes[j];
		*word = v;
		all += v;
		high += v >> 32;
		p += 8;
	}
	/* All lower halves: what is left when the upper ones are taken away.
	 * Neither sum of halves has as many as 64 bits.
	 */
	return sw_fold((all - (high << 32)) + high);
}

#endif /* _ATP_SWITCH_LANES_H */
