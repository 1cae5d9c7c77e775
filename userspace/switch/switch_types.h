/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the XDP programs, the loader and the tests share: the layout of the
 * maps.  A change here needs a new SW_LAYOUT, since the maps of a running
 * switch outlive the program that made them.
 */
#ifndef _ATP_SWITCH_TYPES_H
#define _ATP_SWITCH_TYPES_H

#include <linux/types.h>
#include <linux/atp_packet.h>

#define SW_LAYOUT		8

/*
 * Job slots of a switch; slot zero is no job's.  A job has the slot that is its
 * number modulo their count, and a port the place that is its interface's index
 * modulo theirs, so that programs find them by an array; if another one has it,
 * it has any other, and is found by a hash map, which takes longer.
 */
#define SW_SLOTS		256
#define SW_PORTS		256

/* Of the two keys that a port has in the map of ports, its interface's index is
 * one; the other has this bit, too.
 */
#define SW_SPARE		0x80000000U

/* Lanes are moved in blocks of so many 64-bit words (two lanes each) */
#define SW_BLOCK		8
#define SW_BLOCKS(bytes)	(((bytes) + SW_BLOCK * 8 - 1) / (SW_BLOCK * 8))
#define SW_MAX_BLOCKS		SW_BLOCKS(ATP_FRAGMENT_MAX)

/* sw_agg.lock.  A loader that was killed may leave SW_LOCK_USER behind; the
 * next one frees it.
 */
#define SW_LOCK_FREE		0
#define SW_LOCK_XDP		1
#define SW_LOCK_USER		2

/**
 * struct sw_agg - aggregator: the sum of one fragment
 * @lock: SW_LOCK_*; whoever holds it owns every other field
 * @slot: slot of the job that occupies it
 * @job: jobID
 * @epoch: run
 * @seq: sequenceNumber
 * @bitmap: ranks that are in the sum; zero says that the aggregator is empty
 * @flags: ATP_F_ECN, _COLLISION, _OVERFLOW of all that was merged, _LAST
 * @elements: lanes that count
 * @cap: least cwndCap of what was merged
 * @dtype: enum atp_data_type
 * @wide: form of the lanes: zero is the narrow one, see switch_lanes.h
 * @stamp: when a value was last added, in ticks of the kernel
 * @reserved: rest of the cache line
 * @lanes: the sum, two lanes in a word, a whole number of SW_BLOCK words
 */
struct sw_agg {
	__u32	lock;
	__u32	slot;
	__u32	job;
	__u32	epoch;
	__u32	seq;
	__u32	bitmap;
	__u16	flags;
	__u16	elements;
	__u16	cap;
	__u8	dtype;
	__u8	wide;
	__u64	stamp;
	__u64	reserved[3];
	__u64	lanes[];
};

/* An address as an argument: the verifier knows its length */
struct sw_addr {
	__u32	word[4];
};

/* sw_host.flags */
#define SW_HOST_ROUTED		0x01	/* another subnet than the PS's */
#define SW_HOST_FIXED_DEV	0x02	/* the operator said which port */
#define SW_HOST_FIXED_MAC	0x04	/* and which MAC address */
#define SW_HOST_SHARED		0x08	/* the address of a lower rank or PS */

/**
 * struct sw_host - a worker or the PS of a job, as the switch sees it
 * @addr: IPv6 address, or IPv4 address mapped into IPv6
 * @ifindex: port behind which it is
 * @l3: interface that has its subnet: the port, or the bridge of the port
 * @mac: where frames for it go: it, or the router on the way to it
 * @src: address of @l3, the source of frames that were routed
 * @flags: SW_HOST_*
 * @mates: ranks behind the same port, each host's lowest only
 */
struct sw_host {
	__u32	addr[4];
	__u32	ifindex;
	__u32	l3;
	__u8	mac[6];
	__u8	src[6];
	__u32	flags;
	__u32	mates;
};

/**
 * struct sw_job - a job, written by the loader only
 * @id: jobID
 * @slot: its index in all maps of slots
 * @workers: W
 * @full: bitmap of all ranks
 * @pass: of those whose gradients come by here
 * @quota: most aggregators that it may occupy
 * @cap: what cwndCap is lowered to
 * @copies: copies that a multicast makes
 * @ps: its PS
 * @rank: its workers
 */
struct sw_job {
	__u32	id;
	__u32	slot;
	__u32	workers;
	__u32	full;
	__u32	pass;
	__u32	quota;
	__u32	cap;
	__u32	copies;
	struct sw_host ps;
	struct sw_host rank[ATP_MAX_WORKERS];
};

/**
 * struct sw_state - what changes of a job and all CPUs share
 * @occupied: aggregators that the job occupies
 * @most: most that it ever occupied, roughly
 * @hand: aggregator at which the search for abandoned ones goes on
 * @run: epoch of which the PS spoke last, with SW_RUN; zero if it did not
 * @left: likewise, the one from which the PS last leapt to others
 * @reserved: rest of the cache line
 */
struct sw_state {
	__u64	occupied;
	__u64	most;
	__u64	hand;
	__u64	run;
	__u64	left;
	__u64	reserved[3];
};

#define SW_RUN			(1ULL << 32)

/**
 * struct sw_fan - which copies of a multicast were made for a port, on this CPU
 * @epoch: run of the last copy, as it is in the packet
 * @seq: its sequenceNumber, likewise
 * @done: ranks that have got it
 * @reserved: zero
 */
struct sw_fan {
	__u32	epoch;
	__u32	seq;
	__u32	done;
	__u32	reserved;
};

/**
 * struct sw_port - a port of the switch
 * @ifindex: its interface; zero: there is none in this place
 * @l3: interface that has the port's subnet: itself, or its bridge
 * @mac: address of @l3; what is sent to it is to be routed
 * @pad: zero
 * @cost: nanoseconds of the link's time per byte, times 2^20; zero: no marks
 * @mark: backlog in nanoseconds above which packets are marked
 * @clear: when the phantom queue will be empty
 * @seen: what the clock said last
 * @sent: packets sent out of the port
 * @marked: of these, marked
 * @rate: link rate in Mbit/s, for show
 * @reserved: rest of the cache line
 */
struct sw_port {
	__u32	ifindex;
	__u32	l3;
	__u8	mac[6];
	__u16	pad;
	__u64	cost;
	__u64	mark;
	__u64	clear;
	__u64	seen;
	__u64	sent;
	__u64	marked;
	__u64	rate;
	__u64	reserved[7];
};

#define SW_COST_SHIFT		20
#define SW_MARK_DEFAULT		200000		/* ns */

/**
 * struct sw_settings - how the switch was loaded
 * @layout: SW_LAYOUT
 * @aggregators: their number
 * @payload: most bytes of payload that one holds
 * @generic: attached in generic mode
 * @dispatcher: attached by libxdp's dispatcher, beside other programs
 * @timeout: nanoseconds after which an aggregator counts as abandoned
 * @ticks: the same in ticks of the kernel, rounded up
 */
struct sw_settings {
	__u32	layout;
	__u32	aggregators;
	__u32	payload;
	__u16	generic;
	__u16	dispatcher;
	__u64	timeout;
	__u64	ticks;
};

/*
 * Counters of a job: name of the member and what it says.  All count packets,
 * but for the two of bytes.
 */
#define SW_COUNTERS(X)							\
	X(allocated, "fragments that got an aggregator")		\
	X(aggregated, "added to an aggregator")				\
	X(completed, "of these, the last one: sum sent to the PS")	\
	X(duplicate, "worker was in the sum, dropped")			\
	X(resend_added, "resent, added, sum so far sent to the PS")	\
	X(resend_flushed, "resent, in the sum, which was sent to the PS") \
	X(resend_passed, "resent, no aggregator, passed on")		\
	X(raw, "overflow path, passed on")				\
	X(single, "of the only worker that is to pass, passed on")	\
	X(collision_busy, "aggregator was another fragment's, passed on") \
	X(collision_locked, "aggregator was locked, passed on")		\
	X(collision_quota, "job's quota was used up, passed on")	\
	X(oversize, "longer than the aggregators, passed on")		\
	X(disagree, "length or type differs from the sum's, passed on")	\
	X(overflow, "sums that were saturated")				\
	X(forwarded, "sent to the PS")					\
	X(timeouts, "aggregators that it abandoned, emptied")		\
	X(deallocated, "aggregators emptied by a parameter packet")	\
	X(kept, "aggregator stayed locked, left to its time-out")	\
	X(parameters, "parameter packets")				\
	X(multicast, "of these, given to every worker")			\
	X(copies, "copies that were made for that")			\
	X(mismatch, "says another number of workers, left alone")	\
	X(ttl, "time to live is over, left to the kernel")		\
	X(drop_header, "undefined bits or values out of range")		\
	X(drop_length, "not as long as the header says")		\
	X(drop_bitmap, "not of one worker of the job")			\
	X(drop_csum, "wrong checksum")					\
	X(drop_csum_none, "no UDP checksum")				\
	X(drop_csum_partial, "checksum left to an offload")		\
	X(drop_stranger, "not from or not to an address of the job")	\
	X(drop_port, "came in on another port than its sender's")	\
	X(drop_out, "no port to go out by, or no hop left for a copy")	\
	X(bytes_in, "bytes of gradients, from the workers")		\
	X(bytes_out, "bytes of gradients, to the PS")			\
	X(stale, "of another run, passed on")

#define SW_COUNTER_MEMBER(name, text)	name,

struct sw_counters {
	__u64	SW_COUNTERS(SW_COUNTER_MEMBER)
		end[0];
};

/* Counters of slot zero: packets to the ATP port that were left alone, or that
 * are dropped whatever job they are of
 */
#define SW_OTHERS(X)							\
	X(unknown, "job is not known here")				\
	X(control, "not a gradient or parameter packet")		\
	X(options, "IP options or a fragment, dropped")			\
	X(truncated, "too short for a header")				\
	X(tagged, "in a tag of VLAN 0 or many tags, dropped")		\
	X(gone, "copies whose job was deleted meanwhile, dropped")

struct sw_others {
	__u64	SW_OTHERS(SW_COUNTER_MEMBER)
		end[0];
};

#endif /* _ATP_SWITCH_TYPES_H */
