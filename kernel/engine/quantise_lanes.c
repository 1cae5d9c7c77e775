// SPDX-License-Identifier: GPL-2.0
/*
 * Arrays of numbers: by floating point where that is exact and the context has
 * it, else in integers.  Nobody can tell by the result.
 */
#include <atp/fpu.h>
#include "quantise_priv.h"

bool atp_quantise_lanes(void *wire, const u32 *data, u32 n, u32 scale)
{
	bool fits;

	if (!atp_fpu_exact(scale) || !atp_fpu_begin())
		return atp_quantise_int(wire, data, n, scale);
	fits = atp_quantise_fpu(wire, data, n, scale);
	atp_fpu_end();
	return fits;
}

void atp_dequantise_lanes(u32 *data, const void *wire, u32 n, u32 scale)
{
	if (!atp_fpu_exact(scale) || !atp_fpu_begin()) {
		atp_dequantise_int(data, wire, n, scale);
		return;
	}
	atp_dequantise_fpu(data, wire, n, scale);
	atp_fpu_end();
}
