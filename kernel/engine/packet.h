/* SPDX-License-Identifier: GPL-2.0 */
/* Packets in host order, and the only place that knows their layout. */
#ifndef _ATP_ENGINE_PACKET_H
#define _ATP_ENGINE_PACKET_H

#include <atp/env.h>
#include <linux/atp_packet.h>
#include "drop.h"

/**
 * struct atp_pkt - a packet, header in host order
 * @type: enum atp_type
 * @dtype: enum atp_data_type, zero for control packets
 * @fanin0: fanInDegree0
 * @fanin1: fanInDegree1
 * @tree: treeID
 * @ce: the IP header carried Congestion Experienced
 * @flags: ATP_F_*
 * @elements: lanes in @payload
 * @cap: cwndCap
 * @job: jobID
 * @epoch: run
 * @seq: sequenceNumber
 * @bitmap0: see struct atp_hdr
 * @bitmap1: see struct atp_hdr
 * @index: aggregatorIndex
 * @payload: little-endian lanes, padded; or struct atp_ctl; any alignment
 */
struct atp_pkt {
	u8	type;
	u8	dtype;
	u8	fanin0;
	u8	fanin1;
	u8	tree;
	bool	ce;
	u16	flags;
	u16	elements;
	u16	cap;
	u32	job;
	u32	epoch;
	u32	seq;
	u32	bitmap0;
	u32	bitmap1;
	u32	index;
	const void *payload;
};

/**
 * struct atp_ctl_host - struct atp_ctl in host order
 * @nonce: see struct atp_ctl
 * @workers: see struct atp_ctl
 * @fragment: see struct atp_ctl
 * @window: see struct atp_ctl
 * @scale: see struct atp_ctl
 * @reason: see struct atp_ctl
 * @ranks: see struct atp_ctl
 * @server: see struct atp_ctl
 */
struct atp_ctl_host {
	u32	nonce;
	u32	workers;
	u32	fragment;
	u32	window;
	u32	scale;
	u32	reason;
	u32	ranks;
	u32	server;
};

/**
 * struct atp_params - what is fixed for all runs of a job
 * @job: jobID
 * @workers: W, 1 to %ATP_MAX_WORKERS
 * @fragment: payload bytes of a full fragment, a multiple of 8
 * @window: most fragments in flight per worker, a power of two
 * @scale: factor for float32, not zero
 * @timeout: nanoseconds of silence after which a party is dead
 * @patience: nanoseconds that the PS's oldest fragment waits for ranks that are
 *	alive, 0 for ever
 * @server: an application at the PS makes the results
 */
struct atp_params {
	u32	job;
	u32	workers;
	u32	fragment;
	u32	window;
	u32	scale;
	u64	timeout;
	u64	patience;
	bool	server;
};

/* Lanes of a full fragment */
static inline u32 atp_lanes(const struct atp_params *p)
{
	return p->fragment / 4;
}

/* All ranks of a job */
static inline u32 atp_all_ranks(const struct atp_params *p)
{
	return p->workers == 32 ? ~0U : (1U << p->workers) - 1;
}

/* Serial number arithmetic: a is before b */
static inline bool atp_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/**
 * atp_pkt_parse() - look at a UDP payload
 * @pkt: result; @pkt->payload points into @data, @pkt->ce is false: the IP
 *	header is the caller's
 * @data: UDP payload, any alignment
 * @len: its length
 *
 * What can be said of a packet without knowing its job is checked here, in the
 * order of the members of enum atp_drop: version, type, flags, length and so
 * on.  That fan-in, bitmap and elements are the job's is for the PS and the
 * worker to check.
 *
 * Return: %ATP_OK, or why the packet is refused; @pkt is then undefined, but
 * for job, epoch and type from %ATP_DROP_FLAGS on.
 */
enum atp_drop atp_pkt_parse(struct atp_pkt *pkt, const void *data, size_t len);

/**
 * atp_pkt_write_hdr() - write a header
 * @buf: at least %ATP_HDR_LEN bytes, any alignment
 * @pkt: what to write; ce and payload are not used
 *
 * Return: %ATP_HDR_LEN.
 */
u32 atp_pkt_write_hdr(void *buf, const struct atp_pkt *pkt);

/**
 * atp_ctl_read() - control payload to host order
 * @ctl: result
 * @payload: %ATP_CTL_LEN bytes, any alignment
 */
void atp_ctl_read(struct atp_ctl_host *ctl, const void *payload);

/**
 * atp_ctl_write() - write a control packet, header and payload
 * @buf: at least %ATP_HDR_LEN + %ATP_CTL_LEN bytes, any alignment
 * @pkt: the header; flags, dtype and elements are zero
 * @ctl: the payload
 *
 * Return: %ATP_HDR_LEN + %ATP_CTL_LEN.
 */
u32 atp_ctl_write(void *buf, const struct atp_pkt *pkt,
		  const struct atp_ctl_host *ctl);

/**
 * atp_index_hash() - where in a switch a slot is added
 * @job: jobID
 * @epoch: run
 * @salt: 0 for the first slot, or the PS's counter after a collision
 *
 * Part of the protocol: all workers must come to the same number.
 *
 * Return: aggregatorIndex.
 */
u32 atp_index_hash(u32 job, u32 epoch, u32 salt);

#endif /* _ATP_ENGINE_PACKET_H */
