// SPDX-License-Identifier: GPL-2.0
/* Somebody else's XDP program: counts packets, and runs before ours. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <xdp/xdp_helpers.h>

struct {
	__uint(priority, 10);
	__uint(XDP_PASS, 1);
} XDP_RUN_CONFIG(pass);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} passed SEC(".maps");

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	__u64 *count;
	__u32 zero = 0;

	(void)ctx;
	count = bpf_map_lookup_elem(&passed, &zero);
	if (count)
		__sync_fetch_and_add(count, 1);
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
