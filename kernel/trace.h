/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM atp

#if !defined(_ATP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _ATP_TRACE_H

#include <linux/tracepoint.h>
#include <net/net_namespace.h>
#include "engine/packet.h"

/* for tools that read the format */
#define ATP_TRACE_ENUM(name, string, help) TRACE_DEFINE_ENUM(ATP_DROP_##name);
ATP_DROP_REASONS(ATP_TRACE_ENUM)

#ifndef _ATP_TRACE_REASONS
#define _ATP_TRACE_REASONS
#define ATP_TRACE_REASON(name, string, help) { ATP_DROP_##name, string },
#define ATP_TRACE_REASONS ATP_DROP_REASONS(ATP_TRACE_REASON) { 0, "ok" }
#endif

/* A fragment leaves a worker for the first time. */
DECLARE_EVENT_CLASS(atp_fragment,
	TP_PROTO(const struct net *net, u32 job, u32 rank, u32 seq, u32 len),
	TP_ARGS(net, job, rank, seq, len),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, job)
		__field(u32, rank)
		__field(u32, seq)
		__field(u32, len)
	),
	TP_fast_assign(
		__entry->netns = net->ns.inum;
		__entry->job = job;
		__entry->rank = rank;
		__entry->seq = seq;
		__entry->len = len;
	),
	TP_printk("netns=%u job=%u rank=%u seq=%u len=%u",
		  __entry->netns, __entry->job, __entry->rank, __entry->seq,
		  __entry->len)
);

DEFINE_EVENT(atp_fragment, atp_send,
	TP_PROTO(const struct net *net, u32 job, u32 rank, u32 seq, u32 len),
	TP_ARGS(net, job, rank, seq, len)
);

/* And again. */
DEFINE_EVENT(atp_fragment, atp_retransmit,
	TP_PROTO(const struct net *net, u32 job, u32 rank, u32 seq, u32 len),
	TP_ARGS(net, job, rank, seq, len)
);

/* A packet of a job that is known here has come in. */
TRACE_EVENT(atp_receive,
	TP_PROTO(const struct net *net, const struct atp_pkt *pkt),
	TP_ARGS(net, pkt),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, job)
		__field(u32, epoch)
		__field(u32, seq)
		__field(u32, bitmap)
		__field(u16, flags)
		__field(u8, type)
		__field(bool, ce)
	),
	TP_fast_assign(
		__entry->netns = net->ns.inum;
		__entry->job = pkt->job;
		__entry->epoch = pkt->epoch;
		__entry->seq = pkt->seq;
		__entry->bitmap = pkt->bitmap0;
		__entry->flags = pkt->flags;
		__entry->type = pkt->type;
		__entry->ce = pkt->ce;
	),
	TP_printk("netns=%u job=%u epoch=%u seq=%u type=%u flags=%#x bitmap=%#x ce=%d",
		  __entry->netns, __entry->job, __entry->epoch, __entry->seq,
		  __entry->type, __entry->flags, __entry->bitmap, __entry->ce)
);

/* A state of a job or of a fragment has changed. */
DECLARE_EVENT_CLASS(atp_progress,
	TP_PROTO(const struct net *net, u32 job, u32 epoch, u32 seq),
	TP_ARGS(net, job, epoch, seq),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, job)
		__field(u32, epoch)
		__field(u32, seq)
	),
	TP_fast_assign(
		__entry->netns = net->ns.inum;
		__entry->job = job;
		__entry->epoch = epoch;
		__entry->seq = seq;
	),
	TP_printk("netns=%u job=%u epoch=%u seq=%u", __entry->netns,
		  __entry->job, __entry->epoch, __entry->seq)
);

/* The PS has completed a fragment. */
DEFINE_EVENT(atp_progress, atp_complete,
	TP_PROTO(const struct net *net, u32 job, u32 epoch, u32 seq),
	TP_ARGS(net, job, epoch, seq)
);

/* A fragment takes the overflow path. */
DEFINE_EVENT(atp_progress, atp_fallback,
	TP_PROTO(const struct net *net, u32 job, u32 epoch, u32 seq),
	TP_ARGS(net, job, epoch, seq)
);

/* A worker has seen a congestion mark. */
DEFINE_EVENT(atp_progress, atp_ecn,
	TP_PROTO(const struct net *net, u32 job, u32 epoch, u32 seq),
	TP_ARGS(net, job, epoch, seq)
);

TRACE_EVENT(atp_drop,
	TP_PROTO(const struct net *net, u32 job, enum atp_drop reason),
	TP_ARGS(net, job, reason),
	TP_STRUCT__entry(
		__field(u32, netns)
		__field(u32, job)
		__field(u32, reason)
	),
	TP_fast_assign(
		__entry->netns = net->ns.inum;
		__entry->job = job;
		__entry->reason = reason;
	),
	TP_printk("netns=%u job=%u reason=%s", __entry->netns, __entry->job,
		  __print_symbolic(__entry->reason, ATP_TRACE_REASONS))
);

#endif /* _ATP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
