// SPDX-License-Identifier: GPL-2.0
/*
 * Loops over lanes in C, beside which the switch is measured: nothing is
 * parsed, verified or locked.
 */
#include "plain.h"

/* What the switch can have: one 64-bit word at a time, two lanes in each */
__attribute__((optimize("no-tree-vectorize")))
void plain_packed(uint64_t *sum, const uint64_t *x, int words)
{
	int i;

	for (i = 0; i < words; i++) {
		uint64_t s = sum[i] + x[i];

		s -= (sum[i] ^ x[i] ^ s) & (1ULL << 32);
		sum[i] = s;
	}
}

/* What the machine can do: all of its vectors, no look at overflow */
__attribute__((target_clones("avx512f", "avx2", "default"),
	       optimize("O3")))
void plain_vector(int32_t *sum, const int32_t *x, int lanes)
{
	int i;

	for (i = 0; i < lanes; i++)
		sum[i] = (int32_t)((uint32_t)sum[i] + (uint32_t)x[i]);
}
