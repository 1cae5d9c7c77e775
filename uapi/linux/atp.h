/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * AF_ATP for applications: address, socket options, what an error says.
 */
#ifndef _UAPI_LINUX_ATP_H
#define _UAPI_LINUX_ATP_H

#include <linux/types.h>
#include <linux/atp_packet.h>

/* sock_register() takes no number above the last family that Linux knows, so
 * this is one that was given away and never implemented (AF_ASH).  This line
 * is the only place that knows it; the netlink family reports it.
 */
#define ATP_FAMILY_NUMBER	18

#ifndef AF_ATP
#define AF_ATP			ATP_FAMILY_NUMBER
#define PF_ATP			AF_ATP
#endif

#define SOL_ATP			299

/**
 * struct sockaddr_atp - one worker of one job
 * @satp_family: AF_ATP
 * @satp_rank: 0 to number of workers - 1, or %ATP_SERVER
 * @satp_job: job ID as in ``ip atp job add``
 * @satp_zero: zero
 *
 * bind() takes the rank without joining; connect() joins, and with a blocking
 * socket returns when all workers of the job have joined.  After bind() a
 * connect() must name the same job and rank.
 */
struct sockaddr_atp {
	__u16	satp_family;
	__u16	satp_rank;
	__u32	satp_job;
	__u32	satp_zero[2];
};

/* In place of a rank: the application on the PS host, which pulls the sums of
 * all workers and pushes what they get, in a job that was added with ``server``
 */
#define ATP_SERVER		0xffff

/**
 * struct atp_join - value of the socket option %ATP_JOIN
 * @job: job ID
 * @rank: rank, or %ATP_SERVER
 *
 * setsockopt(SOL_ATP, ATP_JOIN) is connect() for languages that cannot build
 * a struct sockaddr_atp.
 */
struct atp_join {
	__u32	job;
	__u32	rank;
};

/* Socket options at level SOL_ATP */
#define ATP_JOIN	1	/* set: struct atp_join */
#define ATP_DTYPE	2	/* set, get: int, enum atp_data_type of the next
				 * sendmsg(); float32 unless set.  With
				 * ATP_SERVER: of the last sum
				 */
#define ATP_INFO	3	/* get: struct atp_info */

/* Control message at level SOL_ATP, from recvmsg(MSG_ERRQUEUE): struct
 * sock_extended_err of linux/errqueue.h, and struct atp_error behind it
 */
#define ATP_RECVERR	4

/**
 * enum atp_state - state of a worker socket
 * @ATP_UNBOUND: no job yet
 * @ATP_BOUND: has a rank and takes no part in a run: bind() was called, or
 *	shutdown() has ended its part
 * @ATP_JOINING: waiting for the other workers
 * @ATP_JOINED: tensors can be pushed and pulled
 * @ATP_FAILED: the run has ended, atp_info.reason says why
 */
enum atp_state {
	ATP_UNBOUND = 0,
	ATP_BOUND = 1,
	ATP_JOINING = 2,
	ATP_JOINED = 3,
	ATP_FAILED = 4,
};

/* atp_info.flags */
#define ATP_INFO_SERVER		0x1	/* all that @una waits for is the
					 * application at the PS
					 */

/**
 * struct atp_info - what a socket knows, from %ATP_INFO
 * @state: enum atp_state
 * @reason: enum atp_reason when failed
 * @ranks: bit per rank: joining: who the PS has; joined: who the PS still
 *	waits for at @una, as far as it has said; failed: who is to blame
 * @job: job ID
 * @rank: own rank
 * @workers: number of workers
 * @epoch: run
 * @fragment: payload bytes of a full fragment
 * @window: most fragments in flight
 * @scale: factor for float32
 * @una: oldest fragment without a parameter packet
 * @nxt: next fragment to be sent for the first time
 * @end: first fragment not pushed yet
 * @cwnd: congestion window in fragments
 * @ssthresh: slow start threshold in fragments
 * @srtt_us: smoothed round trip in microseconds
 * @rto_us: retransmission timeout in microseconds
 * @flags: ATP_INFO_*
 * @sent: fragments sent for the first time
 * @resent: fragments sent again
 * @fast_retransmits: losses seen by later parameter packets
 * @timeouts: losses seen by the timer
 * @ecn: parameter packets that carried a mark
 * @raw: fragments that took the overflow path
 * @duplicates: parameter packets that had been received before
 * @chunks: chunks completed
 *
 * With %ATP_SERVER for a rank, @una is the oldest fragment without a result,
 * @nxt the first whose sum was not pulled, @end the first without its sum,
 * @ranks who is waited for there, and all about sending is zero; after the run
 * the first three are, too.
 */
struct atp_info {
	__u32	state;
	__u32	reason;
	__u32	ranks;
	__u32	job;
	__u32	rank;
	__u32	workers;
	__u32	epoch;
	__u32	fragment;
	__u32	window;
	__u32	scale;
	__u32	una;
	__u32	nxt;
	__u32	end;
	__u32	cwnd;
	__u32	ssthresh;
	__u32	srtt_us;
	__u32	rto_us;
	__u32	flags;
	__u64	sent;
	__u64	resent;
	__u64	fast_retransmits;
	__u64	timeouts;
	__u64	ecn;
	__u64	raw;
	__u64	duplicates;
	__u64	chunks;
};

/**
 * struct atp_error - how a run ended, in the control message %ATP_RECVERR
 * @job: job ID
 * @rank: own rank
 * @epoch: run; zero if it never began
 * @reason: enum atp_reason
 * @ranks: bit per rank: who is to blame
 * @sequence: oldest fragment without a result
 * @missing: bit per rank: who the PS still waited for at @sequence, as far as
 *	it had said
 * @reserved: zero
 *
 * With %ATP_SERVER for a rank @sequence and @missing are zero.
 *
 * The struct sock_extended_err before it has the errno, %SO_EE_ORIGIN_LOCAL,
 * @reason in ee_code, @ranks in ee_info and @sequence in ee_data.
 */
struct atp_error {
	__u32	job;
	__u32	rank;
	__u32	epoch;
	__u32	reason;
	__u32	ranks;
	__u32	sequence;
	__u32	missing;
	__u32	reserved;
};

#endif /* _UAPI_LINUX_ATP_H */
