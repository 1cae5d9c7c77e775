// SPDX-License-Identifier: GPL-2.0
/*
 * The switch: XDP programs.
 *
 * atp_ingress runs on every port.  What is not ATP, and not of a job that it
 * knows, it leaves to the kernel.  What it sends on leaves by a redirect, at
 * whose end atp_egress runs.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "switch_aggregate.h"
#include "switch_forward.h"
#include "switch_way.h"

/* Is there nothing to which a gradient could be added? */
static __always_inline bool sw_single(const struct sw_job *job)
{
	return !(job->pass & (job->pass - 1));
}

/* Is it a gradient that an aggregator might have room for? */
static __always_inline bool sw_adds(const struct sw_pkt *p,
				    const struct sw_job *job)
{
	return !(p->flags & ATP_F_ACK) && !sw_single(job) &&
	       sw_payload_len(p) <= sw_set.payload;
}

static __always_inline int sw_gradient(struct xdp_md *ctx, struct sw_pkt *p,
				       const struct sw_job *job,
				       struct sw_counters *c,
				       const struct sw_way *way)
{
	__u64 bytes = sw_end(ctx) - sw_start(ctx);
	__u32 plan = SW_FORWARD;

	if (sw_adds(p, job))
		plan = sw_aggregate(ctx, p, job, c);
	else if (sw_single(job))
		c->single++;
	else
		c->oversize++;
	if (plan & SW_WRONG)
		return sw_refuse(c, sw_wrong(sw_start(ctx), sw_end(ctx), p));
	c->bytes_in += bytes;
	/* without an aggregator to look at there is no plan */
	if (!(plan & SW_FORWARD))
		return plan ? XDP_DROP : XDP_ABORTED;

	if (plan & SW_COLLIDE)
		p->flags |= ATP_F_COLLISION;
	sw_pass_on(p, job->cap);
	if (sw_unicast(ctx, p, c, way->to, way->routed) != XDP_REDIRECT)
		return XDP_ABORTED;
	c->forwarded++;
	c->bytes_out += bytes;
	return XDP_REDIRECT;
}

static __always_inline int sw_parameter(struct xdp_md *ctx, struct sw_pkt *p,
					const struct sw_job *job,
					struct sw_counters *c,
					const struct sw_way *way)
{
	struct sw_state *state;
	__u32 slot = job->slot;

	c->parameters++;
	/* whatever began before this switch was there */
	state = bpf_map_lookup_elem(&states, &slot);
	if (state)
		sw_begin(state, p->epoch);
	sw_deallocate(p, c);
	sw_pass_on(p, job->cap);
	if (p->flags & ATP_F_MCAST)
		return sw_multicast(ctx, p, job, c, way);
	return sw_unicast(ctx, p, c, way->to, way->routed);
}

/* The packet with which a run begins, if it is in order; returns whether */
__noinline int sw_do_begin(struct xdp_md *ctx, __u32 slot)
{
	struct sw_state *state = bpf_map_lookup_elem(&states, &slot);
	void *data = sw_start(ctx), *end = sw_end(ctx);
	struct sw_pkt p = {};

	if (!state || sw_parse(data, end, &p) != SW_CLASS_CONTROL)
		return 0;
	p.elements = ATP_CTL_LEN / 4;
	if (sw_check(data, end, &p) != SW_CLASS_ATP || !sw_verify(ctx, &p))
		return 0;
	sw_begin(state, p.epoch);
	return 1;
}

/* The host of the job whose address it has, or NULL */
static __always_inline const struct sw_host *
sw_sender(const struct sw_pkt *p, const struct sw_job *job)
{
	struct sw_addr src;
	int rank;

	if (sw_same_addr(p->src, job->ps.addr))
		return &job->ps;
	__builtin_memcpy(&src, p->src, sizeof(src));
	rank = sw_do_find(job, &src);
	if (rank < 0 || rank >= ATP_MAX_WORKERS)
		return NULL;
	return &job->rank[rank];
}

/*
 * A control packet is the kernel's to forward, and so are data of another
 * number of workers and any in a VLAN.  But who has the address of one of the
 * job's hosts is behind that one's port, or is another.  Addresses that are
 * nobody's are for PS and workers to refuse.
 */
static __always_inline bool sw_forged(const struct xdp_md *ctx,
				      const struct sw_host *from)
{
	return from && ctx->ingress_ifindex != from->ifindex;
}

static __always_inline int sw_control(struct xdp_md *ctx,
				      const struct sw_pkt *p,
				      const struct sw_job *job,
				      struct sw_counters *c,
				      enum sw_class class)
{
	const struct sw_host *from = sw_sender(p, job);

	if (sw_forged(ctx, from))
		return sw_refuse(c, SW_CLASS_PORT);
	if (class == SW_CLASS_CONTROL && from == &job->ps &&
	    p->type == ATP_TYPE_WELCOME && p->sport == ATP_PORT)
		sw_do_begin(ctx, job->slot);
	return sw_leave(class);
}

SEC("xdp")
int atp_ingress(struct xdp_md *ctx)
{
	void *data = sw_start(ctx), *end = sw_end(ctx);
	struct sw_counters *c;
	struct sw_pkt p = {};
	struct sw_way way = {};
	struct sw_job *job;
	enum sw_class class;
	__u32 slot;

	class = sw_parse(data, end, &p);
	if (class > SW_CLASS_VLAN)
		return sw_leave(class);
	job = sw_job_find(p.job);
	if (!job)
		return sw_leave(class);
	slot = job->slot;
	c = bpf_map_lookup_elem(&counters, &slot);
	if (!c)
		return XDP_PASS;
	if (class != SW_CLASS_ATP)
		return sw_control(ctx, &p, job, c, class);

	class = sw_check(data, end, &p);
	if (class != SW_CLASS_ATP)
		return sw_refuse(c, class);
	class = sw_admit(ctx, &p, job, &way);
	/* Whatever is done with a packet, its checksum is verified first; only
	 * sw_aggregate() has a faster way to do it.
	 */
	if ((class != SW_CLASS_ATP || !sw_adds(&p, job)) &&
	    !sw_verify(ctx, &p))
		class = sw_wrong(data, end, &p);
	if (class == SW_CLASS_MISMATCH && sw_forged(ctx, sw_sender(&p, job)))
		class = SW_CLASS_PORT;
	if (class != SW_CLASS_ATP)
		return sw_refuse(c, class);
	if (p.flags & ATP_F_ACK)
		return sw_parameter(ctx, &p, job, c, &way);
	return sw_gradient(ctx, &p, job, c, &way);
}

#include "switch_egress.h"

char _license[] SEC("license") = "GPL";
