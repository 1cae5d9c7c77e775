/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A worker's tensors: which fragment is sent when, what a parameter packet does
 * (paper 3.6, 3.7).  The caller serialises all calls for one worker.
 */
#ifndef _ATP_ENGINE_WORKER_H
#define _ATP_ENGINE_WORKER_H

#include "packet.h"
#include "window.h"

/**
 * struct atp_chunk - what one sendmsg() pushed; belongs to the caller
 * @next: pushed after this one
 * @data: lanes in host order as pushed; a fragment's lanes become the result
 *	when its parameter packet arrives; or NULL
 * @pages: (without @data) pages of %ATP_PAGE_LANES that have them, in order.
 *	Others may write there at any time, and then have the sum of anything
 * @skip: (with @pages) lanes of the first page before those of the chunk
 * @elements: lanes of the chunk, not zero
 * @first: sequence number of the first fragment
 * @frags: number of fragments
 * @done: fragments that are results
 * @dtype: enum atp_data_type
 * @overflow: the integer sum of some lane does not fit
 */
struct atp_chunk {
	struct atp_chunk *next;
	u32	*data;
	u32	**pages;
	u32	skip;
	u32	elements;
	u32	first;
	u32	frags;
	u32	done;
	u8	dtype;
	bool	overflow;
};

/* Lanes in a page of memory */
#define ATP_PAGE_LANES	(PAGE_SIZE / 4)

/**
 * atp_chunk_lanes() - where lanes of a chunk are
 * @chunk: chunk
 * @offset: the first of them
 * @n: (in) how many are wanted, (out) how many are there in a row, at least one
 *
 * Return: the first.
 */
static inline u32 *atp_chunk_lanes(const struct atp_chunk *chunk, u32 offset,
				   u32 *n)
{
	u32 skip;

	if (chunk->data)
		return chunk->data + offset;
	offset += chunk->skip;
	skip = offset % ATP_PAGE_LANES;
	*n = min_t(u32, *n, ATP_PAGE_LANES - skip);
	return chunk->pages[offset / ATP_PAGE_LANES] + skip;
}

/* struct atp_frag.state */
#define ATP_FRAG_SENT	0x01	/* at least once */
#define ATP_FRAG_ACKED	0x02	/* its lanes are the result */
#define ATP_FRAG_LOST	0x04	/* to be sent again */
#define ATP_FRAG_RESENT	0x08	/* more than once: no round trip sample */
#define ATP_FRAG_RAW	0x10	/* to be sent as pushed */

/* No slot: end of the list of fragments in flight */
#define ATP_NO_SLOT	U32_MAX

/* A burst waits for this part of the window, at most */
#define ATP_GATHER_PART		4

/* Times that the oldest fragment is sent again without an answer, at least,
 * before the run is given up
 */
#define ATP_TRIES	64

/* Answered later transmissions that make one lost */
#define ATP_DUP_THRESH	3

/**
 * struct atp_frag - one slot of the window
 * @sent: time of the last transmission
 * @chunk: that the fragment belongs to, valid from its first transmission to
 *	its parameter packet
 * @txno: number of the last transmission
 * @index: aggregatorIndex of this and, unless changed, later fragments here
 * @prev: slot that was sent before this one, of those in flight
 * @next: slot that was sent after this one, of those in flight
 * @state: ATP_FRAG_* of the fragment that has the slot
 */
struct atp_frag {
	u64	sent;
	struct atp_chunk *chunk;
	u32	txno;
	u32	index;
	u32	prev;
	u32	next;
	u8	state;
};

/**
 * struct atp_worker_stats - counted since the run began
 * @sent: fragments sent for the first time
 * @resent: fragments sent again
 * @fast_retransmits: losses seen by answers to later transmissions or because
 *	peers wait
 * @timeouts: losses seen by the timer
 * @spurious: of those that were none: peers were late, not packets lost
 * @ecn: parameter packets that carried a mark
 * @raw: fragments that took the overflow path
 * @duplicates: parameter packets that had been received before
 * @chunks: chunks completed
 */
struct atp_worker_stats {
	u64	sent;
	u64	resent;
	u64	fast_retransmits;
	u64	timeouts;
	u64	spurious;
	u64	ecn;
	u64	raw;
	u64	duplicates;
	u64	chunks;
};

/**
 * struct atp_worker - a worker in a run
 * @params: of the job
 * @rank: own rank
 * @epoch: run
 * @frags: window slots, params.window of them, of the caller
 * @head: oldest chunk that was not popped
 * @tail: newest chunk
 * @unsent: chunk of @nxt, NULL if @nxt is @end
 * @una: oldest fragment without parameter packet
 * @nxt: next fragment to be sent for the first time
 * @end: first fragment not pushed yet
 * @pending: lanes of chunks that are not complete
 * @inflight: fragments sent, neither acked nor lost
 * @oldest: slot of the one in flight that was sent first, or ATP_NO_SLOT
 * @newest: slot of the one in flight that was sent last, or ATP_NO_SLOT
 * @lost: fragments to be sent again
 * @rtx: no fragment before it is marked lost
 * @txno: number of the next transmission
 * @answered: highest transmission numbers that were answered, falling
 * @loss: after a timeout, until una passes @loss_end
 * @holes: something behind una had been answered then, so una was lost
 * @asked: STATUS has had una sent again since the timer ran
 * @told: STATUS has named who is missing at una since the timer ran
 * @tries: times that una was sent again since the PS last said that it has it,
 *	or anything was answered
 * @trying: when the first of these was
 * @loss_end: nxt at the time of the timeout
 * @waiting: ranks that the PS waits for at una, as far as it has said
 * @server: the PS waits for its application at una, as far as it has said
 * @fresh: what was sent before then was held up by loss or by late peers: no
 *	round trip samples
 * @timer: when the timer for una runs out, 0 for none
 * @heard: when the PS was heard of last, 0 if it was not
 * @cong: window
 * @rtt: round trip
 * @stats: counters
 */
struct atp_worker {
	struct atp_params params;
	u32	rank;
	u32	epoch;
	struct atp_frag *frags;
	struct atp_chunk *head;
	struct atp_chunk *tail;
	struct atp_chunk *unsent;
	u32	una;
	u32	nxt;
	u32	end;
	u32	pending;
	u32	inflight;
	u32	oldest;
	u32	newest;
	u32	lost;
	u32	rtx;
	u32	txno;
	u32	answered[ATP_DUP_THRESH];
	bool	loss;
	bool	holes;
	bool	asked;
	bool	told;
	u32	tries;
	u64	trying;
	u32	loss_end;
	u32	waiting;
	bool	server;
	u64	fresh;
	u64	timer;
	u64	heard;
	struct atp_cong cong;
	struct atp_rtt rtt;
	struct atp_worker_stats stats;
};

/* frags: params->window entries, need not be zeroed; all else is set */
void atp_worker_init(struct atp_worker *w, const struct atp_params *params,
		     u32 rank, u32 epoch, struct atp_frag *frags);

/* Queue a chunk; data, elements and dtype are set by the caller.  Return: false
 * if the queue would span half the sequence space (nothing is queued then).
 */
bool atp_worker_push(struct atp_worker *w, struct atp_chunk *chunk);

/* Take the oldest chunk if it is complete, else NULL. */
struct atp_chunk *atp_worker_pop(struct atp_worker *w);
/* Undo that, in the order of pushing: several may come back in any order. */
void atp_worker_put_back(struct atp_worker *w, struct atp_chunk *chunk);
bool atp_worker_readable(const struct atp_worker *w);

/* The fragment that may be sent now: lost ones first, then new ones. */
bool atp_worker_next(const struct atp_worker *w, u32 *seq);

/**
 * atp_worker_gathers() - should a burst wait for more room in the window?
 * @w: worker that may send fragments
 * @most: as many as fit a burst
 *
 * If each answer let one fragment go, all packets of all workers would be on
 * their own from then on, and so would the answers to them.  So a worker whose
 * window is nearly full waits until a quarter of it, or a burst, has room; the
 * answers to what is in flight make that.  It does not wait while something is
 * lost or may be, as later fragments were answered, nor if there is room for
 * all that is left.
 *
 * To be asked once before all that is sent in a row.
 *
 * Return: whether to send nothing now.
 */
bool atp_worker_gathers(const struct atp_worker *w, u32 most);

/* UDP payload length of that fragment's packet */
u32 atp_worker_len(const struct atp_worker *w, u32 seq);
/* Write the packet of the fragment that atp_worker_next() named and account it
 * as sent now.  Return: its length, as atp_worker_len().  Flags and format are
 * decided here (RESEND, RAW, LAST).  buf: any alignment.
 */
u32 atp_worker_build(struct atp_worker *w, u32 seq, u64 now, void *buf);

/* Parameter packet, raw request or STATUS for this job; parsed, checksum and
 * sender (the PS) verified.
 */
enum atp_drop atp_worker_rx(struct atp_worker *w, u64 now,
			    const struct atp_pkt *pkt);

/* What the timer would be if it were started now, with its back-off */
u64 atp_worker_rto(const struct atp_worker *w, u64 now);
/* When atp_worker_timeout() wants to be called; U64_MAX for never */
u64 atp_worker_deadline(const struct atp_worker *w);
/* Harmless if called early */
void atp_worker_timeout(struct atp_worker *w, u64 now);
/* Is the PS, which may well answer PING, deaf or mute for fragments?  Then the
 * caller ends the run (%ATP_REASON_UNANSWERED).  To be asked now and then.
 */
bool atp_worker_unanswered(const struct atp_worker *w, u64 now);

#endif /* _ATP_ENGINE_WORKER_H */
