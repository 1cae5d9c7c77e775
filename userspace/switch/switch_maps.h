/* SPDX-License-Identifier: GPL-2.0 */
/* The maps of the switch.  Sizes that are one here are set by the loader. */
#ifndef _ATP_SWITCH_MAPS_H
#define _ATP_SWITCH_MAPS_H

#include "switch_types.h"

/* Aggregators; user space empties those of a deleted job through mmap() */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct sw_agg) + SW_BLOCK * 8);
} aggregators SEC(".maps");

/* Job ID to job, as user space knows it; programs look for its slot only */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SW_SLOTS);
	__type(key, __u32);
	__type(value, struct sw_job);
} jobs SEC(".maps");

/* One job.  Without types: for Linux 6.1 a map that has some is not of the kind
 * of those that the loader makes.
 */
struct sw_job_room {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct sw_job));
};

/* Slot to job, as programs see it: each in a map of its own, so that another
 * one takes its place at once
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SW_SLOTS);
	__type(key, __u32);
	__array(values, struct sw_job_room);
} job_rooms SEC(".maps");

/* Slot to what changes of a job */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SW_SLOTS);
	__type(key, __u32);
	__type(value, struct sw_state);
} states SEC(".maps");

/* Slot to counters */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SW_SLOTS);
	__type(key, __u32);
	__type(value, struct sw_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sw_others);
} others_count SEC(".maps");

/* Slot, and the lowest rank behind a port, to the last copies that were made
 * for the job there.  A job has no more ports than ranks, so that this takes
 * less than a note for each port: 128 KiB per CPU.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SW_SLOTS * ATP_MAX_WORKERS);
	__type(key, __u32);
	__type(value, struct sw_fan);
} fans SEC(".maps");

/* ifindex to the port's place */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SW_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} port_info SEC(".maps");

/* Place to what is known of the port.  What can be mapped begins with a page,
 * so that no two ports share a cache line.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SW_PORTS);
	__type(key, __u32);
	__type(value, struct sw_port);
} port_places SEC(".maps");

/*
 * ifindex to the port, for packets to one host.  The kernel takes the old entry
 * out before it puts a new one in: a second one is there meanwhile.
 */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 2 * SW_PORTS);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} ports SEC(".maps");

/* A job's group: rank to port; a port may be there for several ranks */
struct sw_group {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, ATP_MAX_WORKERS);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
};

/* Slot to the job's group */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SW_SLOTS);
	__type(key, __u32);
	__array(values, struct sw_group);
} groups SEC(".maps");

/* One element: what the loader needs to know of a running switch */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sw_settings);
} settings SEC(".maps");

#endif /* _ATP_SWITCH_MAPS_H */
