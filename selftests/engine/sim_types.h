/* SPDX-License-Identifier: GPL-2.0 */
/* What a simulated network is made of, and its state */
#ifndef _ATP_SELFTESTS_SIM_TYPES_H
#define _ATP_SELFTESTS_SIM_TYPES_H

#include <tap.h>
#include "oracle.h"
#include "ps.h"
#include "session.h"
#include "sim_switch.h"
#include "worker.h"

#define SIM_JOB		7
/* fragments that leave a worker as one */
#define SIM_BURST	41
#define USEC		1000ULL
#define MSEC		1000000ULL
#define SEC		1000000000ULL

/* sim_cfg.data */
#define SIM_INT		0x01	/* int32 chunks */
#define SIM_FLOAT	0x02	/* float32 chunks */
#define SIM_BIG		0x04	/* values that do not fit */
#define SIM_SUMS	0x08	/* sums that do not fit, or only on the way */
#define SIM_ODD		0x10	/* NaN, infinities, ties, zeros, denormals */

/**
 * struct sim_cfg - what is simulated
 * @net_seed: seed of the network
 * @data_seed: seed of chunk lengths, types and values
 * @workers: W
 * @fragment: payload bytes
 * @window: of the job
 * @scale: of the job
 * @timeout: of the job
 * @patience: of the job
 * @chunks: chunks per run
 * @elements: most lanes of a chunk
 * @data: SIM_* of values
 * @ahead: chunks that an application pushes before it pulls
 * @runs: runs one after the other
 * @start: first sequence number
 * @epoch: that the PS counts from
 * @aggregators: of the switch, zero for a network without one
 * @agg_timeout: when an aggregator counts as abandoned
 * @cap: cwndCap of the switch
 * @behind: ranks whose packets pass the switch
 * @foreign: another tenant takes the aggregator, per million gradients
 * @locked: the aggregator is locked, per million gradients
 * @forget: the switch forgets everything so often, 0 for never
 * @absent: the switch is a plain one from here to @present
 * @present: see @absent
 * @loss: per million packets and leg
 * @dup: copies, per million packets and leg
 * @mark: CE, per million packets and leg
 * @delay: of each leg
 * @jitter: most that is added to it
 * @serve: time that a shared leg needs for a packet, 0 for none
 * @queue: packets that wait at a shared leg before it drops
 * @knee: packets that wait before it marks
 * @links: the workers' legs, too, serve one packet after the other
 * @slow: ranks that are slow
 * @wait: what they do between chunks
 * @dead: ranks that die at @dies
 * @dead_ps: the PS does
 * @dies: see @dead
 * @hole_up: ranks whose data are lost on the way from them, from @hole_from on;
 *	control packets pass
 * @hole_down: the same of ranks on the way to them
 * @hole_fits: bytes of a packet that is not lost there
 * @hole_from: see @hole_up
 * @few: ranks that push @most chunks and then none
 * @most: see @few
 * @limit: virtual time within which all must be done, or have failed
 * @server: an application at the PS makes the results, and looks up to @think
 *	after there is something
 * @think: see @server
 * @by_epoch: the data of a run follow from its epoch: for runs that begin by
 *	themselves
 */
struct sim_cfg {
	u64 net_seed, data_seed;
	u32 workers, fragment, window, scale;
	u64 timeout, patience;
	u32 chunks, elements, data, ahead, runs, start, epoch;
	u32 aggregators;
	u64 agg_timeout;
	u32 cap, behind, foreign, locked;
	u64 forget, absent, present;
	u32 loss, dup, mark;
	u64 delay, jitter, serve;
	u32 queue, knee;
	u32 slow;
	u64 wait;
	u32 dead;
	bool dead_ps;
	u64 dies;
	u32 hole_up, hole_down, hole_fits;
	u64 hole_from;
	u32 few, most;
	u64 limit;
	bool server;
	u64 think;
	bool by_epoch, links;
};

enum sim_kind {
	SIM_AT_SWITCH_UP,	/* packet from worker .rank */
	SIM_AT_SWITCH_DOWN,	/* packet for worker .rank */
	SIM_AT_PS,
	SIM_AT_WORKER,
	SIM_WORKER_TIMER,
	SIM_PS_TIMER,
	SIM_SERVER,		/* the application at the PS goes on */
	SIM_APP,		/* the application of .rank goes on */
	SIM_FORGET,
};

struct sim_event {
	u64 time, order;
	enum sim_kind kind;
	u32 rank, len;
	bool ce;
	u8 *mem;	/* the packet is at mem + 1: at odd addresses */
};

struct sim_worker {
	struct atp_session session;
	struct atp_worker worker;
	struct atp_frag *frags;
	bool running;
	u32 pushed, popped, run;
	u64 armed, ready, failed, up_busy, down_busy;
	u32 overflows;
};

struct sim_expect {
	u32 elements;
	u8 dtype;
	bool overflow;
	u32 *lanes;
};

struct sim {
	struct sim_cfg cfg;
	struct atp_params params;
	u64 now, order, rng;
	struct sim_event *heap;
	u32 heap_len, heap_size;
	struct sim_worker w[ATP_MAX_WORKERS];
	struct atp_ps ps;
	void *ps_mem;
	u64 ps_armed, up_busy, down_busy;
	bool thinking;
	u32 *owed, n_owed;	/* lanes that the application has taken */
	struct sim_switch sw;
	struct sim_expect *expect;
	u64 events, packets, digest;
	u32 run;
	struct atp_worker_stats sum;
};

#endif /* _ATP_SELFTESTS_SIM_TYPES_H */
