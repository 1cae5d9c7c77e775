/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Gloo's ring, which is what PyTorch uses: for "atp perf" and "make bench".
 */
#ifndef _PERF_RING_HH
#define _PERF_RING_HH

#include <cstddef>
#include <memory>

#include <gloo/context.h>

/* Replace the tensor by its sum over all ranks; throws. */
void ring_allreduce(const std::shared_ptr<gloo::Context> &context,
		    float *tensor, size_t count);

#endif /* _PERF_RING_HH */
