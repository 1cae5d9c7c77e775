/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The PS of a job: who has joined, what was added, what is answered
 * (Documentation/protocol.rst, PS; paper 3.6).  The caller serialises all calls
 * for one job.
 */
#ifndef _ATP_ENGINE_PS_H
#define _ATP_ENGINE_PS_H

#include "packet.h"
#include "quantise.h"

/* Fragments on the overflow path at the same time */
#define ATP_PS_RAW_SLOTS	8

/* An ABORT is sent this often without being asked for */
#define ATP_PS_ABORTS		3

enum atp_cell_state {
	ATP_CELL_EMPTY,		/* nothing has come */
	ATP_CELL_SUMMING,	/* value is the sum of bitmap's workers */
	ATP_CELL_RAW,		/* raw request is out, raw slot holds values */
	ATP_CELL_SUMMED,	/* value is the sum, the application's turn */
	ATP_CELL_COMPLETE,	/* value is the answer */
};

/**
 * struct atp_cell - one fragment
 * @first: when its first packet came
 * @value: lanes in host order
 * @seq: fragment
 * @bitmap: workers in @value, or in the raw slot
 * @seen: workers of which anything has come
 * @index: aggregatorIndex that the fragment used
 * @next_index: for the fragment a window later, if a collision was seen
 * @elements: lanes
 * @flags: of the parameter packet: ECN, COLLISION, RAW, OVERFLOW, LAST
 * @cap: least cwndCap
 * @dtype: enum atp_data_type
 * @state: enum atp_cell_state
 * @slot: raw slot
 * @packets: packets that are summed in @value
 */
struct atp_cell {
	u64	first;
	s32	*value;
	u32	seq;
	u32	bitmap;
	u32	seen;
	u32	index;
	u32	next_index;
	u16	elements;
	u16	flags;
	u16	cap;
	u8	dtype;
	u8	state;
	u8	slot;
	u8	packets;
};

/**
 * struct atp_ps_member - one rank
 * @heard: last packet
 * @nonce: of the JOIN that the run was begun with
 * @pending_nonce: of the last JOIN that was taken: it waits for the next run,
 *	or was refused, or is over
 * @ticket: what the next JOIN must repeat, not zero; another one for each
 * @refused: ranks for whose configuration or silence that JOIN was refused
 * @refusal: enum atp_reason for @refused
 * @since: when that JOIN was taken first
 * @odd: its last JOIN was refused for its configuration
 * @joined: takes part in the run, or did when it failed, and has not left
 * @pending: waits for the next run; not @joined then
 * @switched: its last gradient came through a switch
 */
struct atp_ps_member {
	u64	heard;
	u64	since;
	u32	nonce;
	u32	pending_nonce;
	u32	ticket;
	u32	refused;
	u32	refusal;
	bool	odd;
	bool	joined;
	bool	pending;
	bool	switched;
};

/**
 * struct atp_ps_dispute - a fragment that ranks have sent in different shapes
 * @open: there is one
 * @last: it is the last of its chunk, in the packet that differed first
 * @dtype: of that packet
 * @elements: of that packet
 * @seq: fragment
 * @other: ranks that have sent the same as that packet
 * @odd: ranks that have sent neither that nor what the cell holds
 * @until: when it ends with those who have sent anything
 */
struct atp_ps_dispute {
	bool	open;
	bool	last;
	u8	dtype;
	u16	elements;
	u32	seq;
	u32	other;
	u32	odd;
	u64	until;
};

/**
 * struct atp_ps_server - the application that makes the results of the job
 * @joined: takes part in the run
 * @pending: waits for the next run
 * @summed: oldest fragment without its sum
 * @taken: oldest fragment whose sum the application has not taken
 * @ready: lanes from @taken on of one chunk that it may take
 * @whole: they go up to the end of that chunk
 */
struct atp_ps_server {
	bool	joined;
	bool	pending;
	u32	summed;
	u32	taken;
	u32	ready;
	bool	whole;
};

/**
 * struct atp_ps_stats - counted since the job was added
 * @switch_frags: additions that switches saved the PS: of a packet with n
 *	workers, n - 1
 * @ps_frags: additions made here; with @switch_frags, W - 1 per completed
 *	fragment
 * @completed: fragments completed
 * @raw: of those by the overflow path
 * @resends: resent fragments received
 * @cached: answered from a complete cell
 * @collisions: packets with the collision flag
 * @ecn: packets with a mark
 * @runs: runs begun
 * @aborts: runs ended by failure
 */
struct atp_ps_stats {
	u64	switch_frags;
	u64	ps_frags;
	u64	completed;
	u64	raw;
	u64	resends;
	u64	cached;
	u64	collisions;
	u64	ecn;
	u64	runs;
	u64	aborts;
};

/**
 * struct atp_ps - the PS of a job
 * @params: of the job
 * @timeout: what @params will have
 * @epoch: current or last run
 * @running: a run goes on
 * @cells: 2 * window
 * @raw: raw slots' lanes: slot, rank, lane
 * @raw_seq: fragment that has the raw slot
 * @raw_used: bit per raw slot
 * @frontier: oldest incomplete fragment
 * @progress: when a fragment was summed or completed last
 * @salt: of the last new aggregator index
 * @members: per rank
 * @dispute: what ranks disagree about
 * @server: the application, in a job that has one
 * @reason: why the last run ended
 * @blame: ranks for @reason
 * @aborts: ABORTs still to be sent
 * @next_abort: when
 * @stats: counters
 */
struct atp_ps {
	struct atp_params params;
	u64	timeout;
	u32	epoch;
	bool	running;
	struct atp_cell *cells;
	s32	*raw;
	u32	raw_seq[ATP_PS_RAW_SLOTS];
	u32	raw_used;
	u32	frontier;
	u64	progress;
	u32	salt;
	struct atp_ps_member members[ATP_MAX_WORKERS];
	struct atp_ps_dispute dispute;
	struct atp_ps_server server;
	u32	reason;
	u32	blame;
	u32	aborts;
	u64	next_abort;
	struct atp_ps_stats stats;
};

/* struct atp_ps_out.events */
#define ATP_PS_EV_RUN		0x01	/* a run has begun */
#define ATP_PS_EV_ENDED		0x02	/* a run has ended: reason, ranks */
#define ATP_PS_EV_COMPLETE	0x04	/* fragment seq is complete */
#define ATP_PS_EV_RAW		0x08	/* seq took the overflow path */
#define ATP_PS_EV_SUM		0x10	/* the application may take a sum */

/**
 * struct atp_ps_out - what to send now, and what happened
 * @type: enum atp_type of the packet, 0 for none
 * @ranks: send it to each of these ranks, one by one
 * @mcast: and with ATP_F_MCAST to rank @mcast_rank's address
 * @mcast_rank: see @mcast
 * @seq: (data, STATUS) fragment
 * @epoch: of the packet
 * @reason: (ABORT, %ATP_PS_EV_ENDED) enum atp_reason
 * @blame: (ABORT, %ATP_PS_EV_ENDED) ranks
 * @nonce: (control) of the packet that is answered; zero: the member's own
 * @events: ATP_PS_EV_*
 * @ended_epoch: (%ATP_PS_EV_ENDED) the run; the next may have begun
 * @ended_seq: (%ATP_PS_EV_ENDED) its oldest incomplete fragment
 *
 * type == 0 with events set is possible.  @ranks may be zero with @mcast set.
 */
struct atp_ps_out {
	u8	type;
	bool	mcast;
	u32	mcast_rank;
	u32	ranks;
	u32	seq;
	u32	epoch;
	u32	reason;
	u32	blame;
	u32	nonce;
	u32	events;
	u32	ended_epoch;
	u32	ended_seq;
};

/**
 * atp_ps_mem() - bytes that atp_ps_init() wants
 * @params: of the job
 *
 * Return: size of cells, their values and the raw slots.
 */
size_t atp_ps_mem(const struct atp_params *params);

/**
 * atp_ps_init() - a PS that waits for its workers
 * @ps: everything in it is set
 * @params: of the job
 * @epoch: random; the first run has the next one
 * @mem: atp_ps_mem() bytes, zeroed, aligned to 8
 */
void atp_ps_init(struct atp_ps *ps, const struct atp_params *params, u32 epoch,
		 void *mem);

/**
 * atp_ps_set_times() - other times of the job from now on
 * @ps: PS
 * @timeout: as in struct atp_params
 * @patience: likewise
 *
 * Workers that have joined ask as often as their timeout of then wants it, so a
 * shorter one has to wait until none of them takes part in a run, or waits for
 * one.
 */
void atp_ps_set_times(struct atp_ps *ps, u64 timeout, u64 patience);

/**
 * atp_ps_rx() - a packet for this job came to the PS
 * @ps: PS
 * @now: monotonic, nanoseconds
 * @pkt: parsed, checksum verified
 * @sender: ranks whose configured address is the packet's source, zero for a
 *	stranger
 * @out: what to do now, whatever is returned: a refused packet may have an
 *	answer
 *
 * Return: %ATP_OK, or why nothing was taken from the packet.
 */
enum atp_drop atp_ps_rx(struct atp_ps *ps, u64 now, const struct atp_pkt *pkt,
			u32 sender, struct atp_ps_out *out);

/**
 * atp_ps_len() - length of the packet that atp_ps_build() will write
 * @ps: PS
 * @out: as for atp_ps_build()
 *
 * Return: bytes.
 */
u32 atp_ps_len(const struct atp_ps *ps, const struct atp_ps_out *out);

/**
 * atp_ps_build() - write a packet that @out asks for
 * @ps: PS; nothing was called for it since @out was made
 * @out: with a type
 * @rank: one of @out->ranks, or @out->mcast_rank with @mcast; all ranks get the
 *	same data
 * @mcast: write the one for all workers behind the switch
 * @buf: %ATP_HDR_LEN and the larger of the job's fragment and %ATP_CTL_LEN
 *	bytes, any alignment
 *
 * Return: length.
 */
u32 atp_ps_build(const struct atp_ps *ps, const struct atp_ps_out *out,
		 u32 rank, bool mcast, void *buf);

/**
 * atp_ps_deadline() - when atp_ps_timeout() wants to be called
 * @ps: PS
 *
 * Return: time, U64_MAX for never.
 */
u64 atp_ps_deadline(const struct atp_ps *ps);

/**
 * atp_ps_timeout() - silence of a rank, end of a dispute or of patience,
 *	repetition of ABORT
 * @ps: PS
 * @now: monotonic, nanoseconds; harmless if early
 * @out: what to do now
 */
void atp_ps_timeout(struct atp_ps *ps, u64 now, struct atp_ps_out *out);

/**
 * atp_ps_fail() - end the run for a reason that only the caller can know
 * @ps: PS
 * @now: time
 * @reason: enum atp_reason
 * @blame: ranks
 * @out: (out) what to send
 */
void atp_ps_fail(struct atp_ps *ps, u64 now, u32 reason, u32 blame,
		 struct atp_ps_out *out);

/**
 * atp_ps_stop() - the job is removed: end the run, refuse who waits for one
 * @ps: PS
 * @out: what to do now
 */
void atp_ps_stop(struct atp_ps *ps, struct atp_ps_out *out);

/**
 * atp_ps_pending() - who waits for the next run
 * @ps: PS
 *
 * Return: ranks.
 */
u32 atp_ps_pending(const struct atp_ps *ps);

/**
 * struct atp_ps_wait - whom the oldest fragment waits for
 * @since: when its first packet came
 * @ranks: ranks that it lacks while others have sent it
 * @server: all have, it is the application's turn
 */
struct atp_ps_wait {
	u64	since;
	u32	ranks;
	bool	server;
};

/**
 * atp_ps_waiting() - whom the oldest fragment waits for
 * @ps: PS
 * @wait: (out) whom and how long
 *
 * Return: whether it waits for anybody.
 */
bool atp_ps_waiting(const struct atp_ps *ps, struct atp_ps_wait *wait);

/*
 * The application, if the job has one (ps_server.c).  It takes sums in the
 * order of fragments and answers them in that order; it may take several before
 * it answers the first.
 */

/**
 * atp_ps_server_join() - the application waits for the next run
 * @ps: PS
 * @now: monotonic, nanoseconds
 * @out: what to do now
 */
void atp_ps_server_join(struct atp_ps *ps, u64 now, struct atp_ps_out *out);

/**
 * atp_ps_server_leave() - the application waits no more, or has left the run
 * @ps: PS
 * @now: monotonic, nanoseconds
 * @out: what to do now
 */
void atp_ps_server_leave(struct atp_ps *ps, u64 now, struct atp_ps_out *out);

/**
 * struct atp_ps_sum - sums of consecutive fragments of a chunk
 * @first: first fragment
 * @frags: fragments
 * @elements: lanes
 * @dtype: enum atp_data_type
 * @last: they are the end of their chunk
 */
struct atp_ps_sum {
	u32	first;
	u32	frags;
	u32	elements;
	u8	dtype;
	bool	last;
};

/**
 * atp_ps_sum() - what the application may take next
 * @ps: PS
 * @elements: most lanes that it wants, but a fragment is not divided
 * @sum: (out) what there is
 *
 * Return: false if there is nothing.
 */
bool atp_ps_sum(const struct atp_ps *ps, u32 elements, struct atp_ps_sum *sum);

/**
 * atp_ps_sum_take() - the application takes that
 * @ps: PS
 * @sum: from atp_ps_sum()
 */
void atp_ps_sum_take(struct atp_ps *ps, const struct atp_ps_sum *sum);

/**
 * atp_ps_sum_read() - the values of a fragment, as workers would have got them
 * @ps: PS; the application has joined
 * @seq: fragment of what atp_ps_sum() has found
 * @lanes: (out) values in host order
 *
 * Until the application answers, or the next run begins, they stay.
 *
 * Return: lanes that the fragment has.
 */
u32 atp_ps_sum_read(const struct atp_ps *ps, u32 seq, u32 *lanes);

/**
 * atp_ps_due() - which of the fragments that were taken is a result for?
 * @ps: PS
 * @end: those before it count
 * @elements: lanes of the result
 *
 * Return: fragments from the oldest without a result on that have together as
 * many lanes; zero if no number of them has.
 */
u32 atp_ps_due(const struct atp_ps *ps, u32 end, u32 elements);

/**
 * atp_ps_answer() - the application's result for the oldest fragment
 * @ps: PS; a fragment was taken and not answered
 * @now: monotonic, nanoseconds
 * @lanes: values in host order, which workers get bit for bit
 * @out: what to send now
 *
 * Return: lanes that the fragment has.
 */
u32 atp_ps_answer(struct atp_ps *ps, u64 now, const u32 *lanes,
		  struct atp_ps_out *out);

#endif /* _ATP_ENGINE_PS_H */
