// SPDX-License-Identifier: GPL-2.0
/*
 * Several lanes at once, in the registers of the processor's floating point.
 * What quantise_fpu.c says of them is true here, too.
 */
#include "lanes_priv.h"

bool atp_lanes_add_fpu(s32 *sum, const void *wire, u32 n)
{
	return add_lanes(sum, wire, n);
}
