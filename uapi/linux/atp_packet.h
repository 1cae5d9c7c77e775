/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The ATP packet: what travels behind the UDP header, and who may set what.
 *
 * Everything in the header is in network order.  The payload is an array of
 * 32-bit lanes in little-endian order, padded with zero lanes to a multiple of
 * eight bytes, so that two lanes can be added in one 64-bit word on the
 * machines that train, without a byte swap.
 */
#ifndef _UAPI_LINUX_ATP_PACKET_H
#define _UAPI_LINUX_ATP_PACKET_H

#include <linux/types.h>

/* UDP destination port of every ATP packet */
#define ATP_PORT		4797
#define ATP_VERSION		1

/* One bit of bitmap0 per worker below one switch */
#define ATP_MAX_WORKERS		32

/* Payload bytes of a fragment: the 62 values of the paper, the most that a
 * native XDP program sees in one linear buffer on veth (MTU 3,506)
 */
#define ATP_FRAGMENT_MIN	8
#define ATP_FRAGMENT_MAX	3400

/**
 * enum atp_type - what a packet is
 * @ATP_TYPE_DATA: gradient fragment (worker to PS) or, with %ATP_F_ACK,
 *	parameter packet (PS to workers).  The only type that a switch touches.
 * @ATP_TYPE_JOIN: worker asks the PS to take part in the next run
 * @ATP_TYPE_WELCOME: PS answers: all workers are there, this is the epoch
 * @ATP_TYPE_LEAVE: worker has closed its socket
 * @ATP_TYPE_ABORT: PS ends the run; struct atp_ctl says why and who is missing
 * @ATP_TYPE_STATUS: PS answers a resent fragment that is not complete yet:
 *	bitmap0 holds the workers that it has
 * @ATP_TYPE_PING: worker tells the PS that it is alive
 * @ATP_TYPE_PONG: PS answers %ATP_TYPE_PING, or %ATP_TYPE_JOIN before the run:
 *	what epoch and sequenceNumber are, if the latter is not zero, the next
 *	JOIN has to repeat
 */
enum atp_type {
	ATP_TYPE_DATA = 1,
	ATP_TYPE_JOIN = 2,
	ATP_TYPE_WELCOME = 3,
	ATP_TYPE_LEAVE = 4,
	ATP_TYPE_ABORT = 5,
	ATP_TYPE_STATUS = 6,
	ATP_TYPE_PING = 7,
	ATP_TYPE_PONG = 8,
};

/* atp_hdr.flags.  The first six are the one-bit fields of Figure 5. */
#define ATP_F_OVERFLOW		0x0001	/* a sum did not fit */
#define ATP_F_RESEND		0x0002	/* sent again: flush the aggregator */
#define ATP_F_COLLISION		0x0004	/* the aggregator was another's */
#define ATP_F_ECN		0x0008	/* congestion met on the way here */
#define ATP_F_EDGE		0x0010	/* edgeSwitchIdentifier: to the 2nd */
#define ATP_F_ACK		0x0020	/* isAck: parameter packet */
#define ATP_F_RAW		0x0040	/* payload as pushed, not scaled */
#define ATP_F_LAST		0x0080	/* last fragment of its chunk */
#define ATP_F_SWITCHED		0x0100	/* an ATP switch that knows the job */
#define ATP_F_MCAST		0x0200	/* switch: give it to every worker */
#define ATP_F_ALL		0x03ff

/**
 * enum atp_data_type - what an application pushed
 * @ATP_INT32: lanes are the values
 * @ATP_FLOAT32: lanes are the values times the job's scale, rounded to the
 *	nearest integer; with %ATP_F_RAW they are IEEE 754 bits
 */
enum atp_data_type {
	ATP_INT32 = 1,
	ATP_FLOAT32 = 2,
};

/**
 * struct atp_hdr - ATP header, names from Figure 5 of the paper
 * @version: %ATP_VERSION
 * @type: enum atp_type
 * @flags: ATP_F_*
 * @jobID: the job, one number in the whole network
 * @epoch: the run of the job: a packet of an earlier run never meets a later
 * @sequenceNumber: the fragment, counted over all chunks of the run, wraps
 * @bitmap0: workers whose values are in the payload, bit = rank.  In a
 *	parameter packet with %ATP_F_COLLISION: the aggregatorIndex that the
 *	fragment one window later is to use
 * @bitmap1: first-level switches in the payload (second level), else zero
 * @fanInDegree0: number of workers below the first-level switch
 * @fanInDegree1: number of workers and switches below the second, else zero
 * @dataType: enum atp_data_type
 * @treeID: aggregation tree of this fragment, zero for a single one
 * @aggregatorIndex: hash; a switch takes it modulo its number of aggregators
 * @elements: lanes that count, without padding
 * @cwndCap: most fragments in flight that switches on the path allow (each
 *	lowers it), 0xffff for no limit
 */
struct atp_hdr {
	__u8	version;
	__u8	type;
	__be16	flags;
	__be32	jobID;
	__be32	epoch;
	__be32	sequenceNumber;
	__be32	bitmap0;
	__be32	bitmap1;
	__u8	fanInDegree0;
	__u8	fanInDegree1;
	__u8	dataType;
	__u8	treeID;
	__be32	aggregatorIndex;
	__be16	elements;
	__be16	cwndCap;
};

#define ATP_HDR_LEN		36
#define ATP_NO_CAP		0xffff

/* Bytes of payload for a number of lanes */
#define ATP_PAYLOAD_LEN(elements)	(((elements) * 4 + 7) & ~7)

/**
 * enum atp_reason - why a run ended, in ABORT and for applications
 * @ATP_REASON_NONE: it has not
 * @ATP_REASON_LEFT: workers in atp_ctl.ranks closed their sockets
 * @ATP_REASON_SILENT: workers in atp_ctl.ranks were not heard of for the job's
 *	timeout
 * @ATP_REASON_REJOIN: workers in atp_ctl.ranks started again
 * @ATP_REASON_DISAGREE: workers in atp_ctl.ranks push other lengths or types
 * @ATP_REASON_EPOCH: the PS does not know this run (it was restarted)
 * @ATP_REASON_MISMATCH: the job is configured differently at the PS
 * @ATP_REASON_REMOVED: the job was removed at the PS
 * @ATP_REASON_MTU: a full fragment no longer fits the path of workers in
 *	atp_ctl.ranks
 * @ATP_REASON_LATE: workers in atp_ctl.ranks live, but others waited longer
 *	than the job's patience for a fragment of theirs; no rank: they waited
 *	for the application at the PS
 * @ATP_REASON_SERVER: the application at the PS has closed its socket
 * @ATP_REASON_PS_SILENT: a worker has not heard of the PS for the job's
 *	timeout
 * @ATP_REASON_UNANSWERED: the PS answers PING, but no fragment of a worker: the
 *	path loses these, or what comes back
 */
enum atp_reason {
	ATP_REASON_NONE = 0,
	ATP_REASON_LEFT = 1,
	ATP_REASON_SILENT = 2,
	ATP_REASON_REJOIN = 3,
	ATP_REASON_DISAGREE = 4,
	ATP_REASON_EPOCH = 5,
	ATP_REASON_MISMATCH = 6,
	ATP_REASON_REMOVED = 7,
	ATP_REASON_MTU = 8,
	ATP_REASON_LATE = 9,
	ATP_REASON_SERVER = 10,
	ATP_REASON_PS_SILENT = 11,
	ATP_REASON_UNANSWERED = 12,
};

/**
 * struct atp_ctl - payload of every type but %ATP_TYPE_DATA
 * @nonce: chosen by the worker per join; answers repeat it
 * @workers: JOIN: number of workers that the sender is configured for
 * @fragment: JOIN: payload bytes of a full fragment
 * @window: JOIN: most fragments in flight
 * @scale: JOIN: factor for float32
 * @reason: ABORT: enum atp_reason
 * @ranks: ABORT: ranks that are to blame; WELCOME, STATUS, PONG: ranks that
 *	the PS has joined; PONG in a run: those, too, that have left and are in
 *	a fragment that is not complete
 * @server: JOIN: 1 if an application at the PS makes the results; PONG in a
 *	run: 1 if it takes part; else 0
 */
struct atp_ctl {
	__be32	nonce;
	__be32	workers;
	__be32	fragment;
	__be32	window;
	__be32	scale;
	__be32	reason;
	__be32	ranks;
	__be32	server;
};

#define ATP_CTL_LEN		32

#endif /* _UAPI_LINUX_ATP_PACKET_H */
