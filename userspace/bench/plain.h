/* SPDX-License-Identifier: GPL-2.0 */
/* Loops over lanes in C, beside which the switch is measured. */
#ifndef _BENCH_PLAIN_H
#define _BENCH_PLAIN_H

#include <stdint.h>

void plain_packed(uint64_t *sum, const uint64_t *x, int words);
void plain_vector(int32_t *sum, const int32_t *x, int lanes);

#endif /* _BENCH_PLAIN_H */
