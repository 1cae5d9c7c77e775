// SPDX-License-Identifier: GPL-2.0
/* What others are told: errnos to applications, events to netlink listeners. */
#include <net/genetlink.h>
#include "atp.h"
#include "netlink_gen.h"

/* Errno of an enum atp_reason. */
int atp_reason_errno(u32 reason)
{
	switch (reason) {
	case ATP_REASON_LEFT:
	case ATP_REASON_REJOIN:
		return -ECONNRESET;
	case ATP_REASON_SILENT:
		return -ETIMEDOUT;
	case ATP_REASON_LATE:
		return -ETIME;
	case ATP_REASON_DISAGREE:
	case ATP_REASON_MISMATCH:
		return -EPROTO;
	case ATP_REASON_EPOCH:
		return -ESTALE;
	case ATP_REASON_MTU:
		return -EMSGSIZE;
	case ATP_REASON_REMOVED:
		return -EIDRM;
	case ATP_REASON_SERVER:
		return -EOWNERDEAD;
	case ATP_REASON_PS_SILENT:
		return -EHOSTDOWN;
	case ATP_REASON_UNANSWERED:
		return -ECOMM;
	default:
		return -ECONNABORTED;
	}
}

/**
 * atp_event() - tell the listeners of the namespace
 * @net: namespace
 * @type: what happened
 * @job: job ID
 * @epoch: run
 * @reason: enum atp_reason
 * @ranks: bit per rank to blame or waited for
 * @seq: fragment
 * @rank: own rank, U32_MAX for none
 * @gfp: allocation flags
 *
 * An event that finds no memory is counted and lost.  Listeners are told, as
 * when their receive buffer is full, and see the state by job-get.
 */
void atp_event(struct net *net, enum atp_event type, u32 job, u32 epoch,
	       u32 reason, u32 ranks, u32 seq, u32 rank, gfp_t gfp)
{
	struct sk_buff *skb;
	void *hdr;

	if (!genl_has_listeners(&atp_nl_family, net, ATP_NLGRP_EVENTS))
		return;
	skb = genlmsg_new(8 * nla_total_size(sizeof(u32)), gfp);
	if (!skb)
		goto lost;
	hdr = genlmsg_put(skb, 0, 0, &atp_nl_family, 0, ATP_CMD_EVENT_NTF);
	if (!hdr)
		goto free;
	if (nla_put_u32(skb, ATP_A_EVENT_TYPE, type) ||
	    nla_put_u32(skb, ATP_A_EVENT_JOB, job) ||
	    nla_put_u32(skb, ATP_A_EVENT_EPOCH, epoch) ||
	    nla_put_u32(skb, ATP_A_EVENT_REASON, reason) ||
	    nla_put_u32(skb, ATP_A_EVENT_RANKS, ranks) ||
	    nla_put_u32(skb, ATP_A_EVENT_SEQUENCE, seq) ||
	    (rank != U32_MAX && nla_put_u32(skb, ATP_A_EVENT_RANK, rank)))
		goto free;
	genlmsg_end(skb, hdr);
	genlmsg_multicast_netns(&atp_nl_family, net, skb, 0, ATP_NLGRP_EVENTS,
				gfp);
	return;

free:
	nlmsg_free(skb);
lost:
	atp_count(net, NULL, ATP_MIB_EVENT_NOMEM, 1);
	genl_set_err(&atp_nl_family, net, 0, ATP_NLGRP_EVENTS, -ENOBUFS);
}
