/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers (paper 3.8): float32 to the integers that a switch can add, and back.
 * Results are the same in every context and on every machine.
 */
#ifndef _ATP_ENGINE_QUANTISE_H
#define _ATP_ENGINE_QUANTISE_H

#include <atp/env.h>

/* Most lanes that one raw sum adds */
#define ATP_RAW_MAX	32

/**
 * atp_quantise() - float32 times scale, to nearest integer, ties to even
 * @bits: IEEE 754 binary32
 * @scale: factor, not zero
 * @out: result
 *
 * Return: false if it does not fit s32 or is no number; @out is not written.
 */
bool atp_quantise(u32 bits, u32 scale, s32 *out);

/**
 * atp_dequantise() - integer by scale, to nearest float32, ties to even
 * @sum: integer
 * @scale: divisor, not zero
 *
 * Return: IEEE 754 binary32.  Zero is +0.
 */
u32 atp_dequantise(s32 sum, u32 scale);

/**
 * atp_fsum() - exact sum of float32s, rounded once, ties to even
 * @bits: IEEE 754 binary32 values
 * @n: how many, 1 to %ATP_RAW_MAX
 *
 * The result does not depend on the order.  Infinities and NaN behave as in
 * IEEE 754 addition; every NaN is 0x7fc00000.  An exact zero is +0 unless all
 * values are -0.
 *
 * Return: IEEE 754 binary32.
 */
u32 atp_fsum(const u32 *bits, unsigned int n);

/*
 * Whole arrays.  Lanes on the wire are little-endian; wire may have any
 * alignment and has n lanes, the padding is the caller's.
 */

/**
 * atp_quantise_lanes() - float32s to the payload of a gradient
 * @wire: result, n lanes
 * @data: IEEE 754 binary32 values
 * @n: how many
 * @scale: factor, not zero
 *
 * Return: false if one does not fit; @wire is then undefined.
 */
bool atp_quantise_lanes(void *wire, const u32 *data, u32 n, u32 scale);

/**
 * atp_dequantise_lanes() - payload of a parameter packet to float32s
 * @data: result, IEEE 754 binary32 values
 * @wire: n lanes; may be @data
 * @n: how many
 * @scale: divisor, not zero
 */
void atp_dequantise_lanes(u32 *data, const void *wire, u32 n, u32 scale);

#endif /* _ATP_ENGINE_QUANTISE_H */
