// SPDX-License-Identifier: GPL-2.0
/*
 * Lets the kernel run the switch's program many times over one packet.  Before
 * each run the packet's headers, the head of its aggregator and the job's count
 * are put back, which the program has changed; then the program is entered by a
 * tail call, as it was loaded.  What this costs is measured by itself, with an
 * empty program at the end of the tail call.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "again.h"

/* Both are the switch's own, put in here by the loader */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sw_agg);
} aggregators SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SW_SLOTS);
	__type(key, __u32);
	__type(value, struct sw_state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct again);
} before SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, AGAIN_PROGS);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

static __always_inline int again(struct xdp_md *ctx, __u32 program)
{
	__u64 *data = (void *)(long)ctx->data;
	__u32 zero = 0, slot = AGAIN_SLOT;
	struct sw_state *state;
	struct again *b;
	__u64 *agg;
	int i;

	b = bpf_map_lookup_elem(&before, &zero);
	agg = bpf_map_lookup_elem(&aggregators, &zero);
	state = bpf_map_lookup_elem(&states, &slot);
	if (!b || !agg || !state ||
	    (void *)(data + AGAIN_HEAD) > (void *)(long)ctx->data_end)
		return AGAIN_FAILED;
#pragma GCC unroll 16
	for (i = 0; i < AGAIN_HEAD; i++)
		data[i] = b->head[i];
#pragma GCC unroll 8
	for (i = 0; i < AGAIN_AGG; i++)
		agg[i] = b->agg[i];
	state->occupied = b->occupied;
	bpf_tail_call(ctx, &next, program);
	return AGAIN_FAILED;
}

SEC("xdp")
int again_switch(struct xdp_md *ctx)
{
	return again(ctx, AGAIN_SWITCH);
}

SEC("xdp")
int again_nothing(struct xdp_md *ctx)
{
	return again(ctx, AGAIN_NOTHING);
}

SEC("xdp")
int again_copy(struct xdp_md *ctx)
{
	return again(ctx, AGAIN_COPY);
}

SEC("xdp")
int nothing(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
