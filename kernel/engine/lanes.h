/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arrays of lanes.  On the wire they are little-endian and have any alignment;
 * the padding that an odd number of them has there is the caller's.
 */
#ifndef _ATP_ENGINE_LANES_H
#define _ATP_ENGINE_LANES_H

#include <atp/env.h>

/**
 * atp_lanes_get() - payload of a packet to lanes
 * @to: result
 * @wire: n lanes
 * @n: how many
 */
void atp_lanes_get(u32 *to, const void *wire, u32 n);

/**
 * atp_lanes_put() - lanes to the payload of a packet
 * @wire: result, n lanes
 * @from: lanes
 * @n: how many
 */
void atp_lanes_put(void *wire, const u32 *from, u32 n);

/**
 * atp_lanes_add() - add the payload of a gradient to a sum
 * @sum: two's complement integers
 * @wire: likewise, n lanes
 * @n: how many
 *
 * Return: false if a lane does not fit; @sum is then as before.
 */
bool atp_lanes_add(s32 *sum, const void *wire, u32 n);

#endif /* _ATP_ENGINE_LANES_H */
