/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs look at: settings, a packet, jobs, aggregators */
#ifndef _ATP_SWITCH_LOOKUP_H
#define _ATP_SWITCH_LOOKUP_H

#include "switch_maps.h"

/* Set by the loader before the program is loaded, and known to the verifier */
#ifndef SW_CONST
#define SW_CONST	const volatile
#endif
SW_CONST struct sw_settings sw_set = { .aggregators = 1, .payload = 8 };

#define sw_blocks	((int)SW_BLOCKS(sw_set.payload))

static __always_inline void *sw_start(struct xdp_md *ctx)
{
	return (void *)(long)ctx->data;
}

static __always_inline void *sw_end(struct xdp_md *ctx)
{
	return (void *)(long)ctx->data_end;
}

static __always_inline struct sw_agg *sw_agg_at(__u32 index)
{
	return bpf_map_lookup_elem(&aggregators, &index);
}

static __always_inline struct sw_job *sw_job_in(__u32 slot, __u32 id)
{
	void *room = bpf_map_lookup_elem(&job_rooms, &slot);
	struct sw_job *job;
	__u32 zero = 0;

	job = room ? bpf_map_lookup_elem(room, &zero) : NULL;
	return job && job->id == id ? job : NULL;
}

/*
 * A job by its number.  The kernel makes a look-up in an array a few
 * instructions, one in a hash map takes a call and 20 ns.  However the slot is
 * found the job comes from the same map, else the verifier would look at all
 * that follows twice.
 */
static __always_inline struct sw_job *sw_job_find(__u32 id)
{
	__u32 slot = id % SW_SLOTS;
	struct sw_job *job, *known;

	job = sw_job_in(slot, id);
	if (job)
		return job;
	known = bpf_map_lookup_elem(&jobs, &id);
	return known ? sw_job_in(known->slot, id) : NULL;
}

#endif /* _ATP_SWITCH_LOOKUP_H */
