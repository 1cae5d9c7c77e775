// SPDX-License-Identifier: GPL-2.0
/* The XDP programs in user space: maps are arrays, a redirect is a note. */
#include <stdlib.h>
#include <string.h>
#include "../../userspace/switch/atp_switch.bpf.c"
#include "target.h"

#define MAX_JOBS	8
/* The last port would have the place of the first */
#define IFINDEX(port)	(11 + ((port) == T_PORTS - 1 ? SW_PORTS : (port)))
#define PLACE(port)	(11 + (port))
#define BRIDGE		20

const bool t_in_kernel;

static char *aggs;
static size_t agg_size;
static struct sw_state all_states[SW_SLOTS];
static struct sw_counters all_counters[SW_SLOTS];
static struct sw_others all_others;
static struct sw_fan all_fans[SW_SLOTS * ATP_MAX_WORKERS];
static struct sw_port all_ports[T_PORTS];
static uint32_t places[T_PORTS];
static struct sw_job all_jobs[MAX_JOBS];
static int n_jobs;
static uint64_t clock_ns;

/* The last redirect */
static const void *to_map;
static uint32_t to_key;

static struct sw_job *find_job(uint32_t id)
{
	int i;

	for (i = 0; i < n_jobs; i++) {
		if (all_jobs[i].id == id)
			return &all_jobs[i];
	}
	return NULL;
}

/* A job is the map that it is in, and its group */
static struct sw_job *job_in(uint32_t slot)
{
	int i;

	for (i = 0; i < n_jobs; i++) {
		if (all_jobs[i].slot == slot)
			return &all_jobs[i];
	}
	return NULL;
}

static int port_of(uint32_t ifindex)
{
	int i;

	for (i = 0; i < T_PORTS; i++) {
		if (ifindex == (uint32_t)IFINDEX(i))
			return i;
	}
	return -1;
}

void *shim_lookup(const void *map, const void *key)
{
	uint32_t k = *(const uint32_t *)key;

	if (map == &aggregators)
		return k < sw_set.aggregators ? aggs + agg_size * k : NULL;
	if (map == &jobs)
		return find_job(k);
	if (map == &job_rooms || map == &groups)
		return job_in(k);
	if (map >= (void *)all_jobs && map < (void *)&all_jobs[MAX_JOBS])
		return (void *)map;
	if (map == &states)
		return k < SW_SLOTS ? &all_states[k] : NULL;
	if (map == &counters)
		return k < SW_SLOTS ? &all_counters[k] : NULL;
	if (map == &fans)
		return k < SW_SLOTS * ATP_MAX_WORKERS ? &all_fans[k] : NULL;
	if (map == &others_count)
		return &all_others;
	if (map == &port_info)
		return port_of(k) < 0 ? NULL : &places[port_of(k)];
	if (map == &port_places)
		return k >= PLACE(0) && k < PLACE(T_PORTS) ?
		       &all_ports[k - PLACE(0)] : NULL;
	abort();
}

long shim_redirect(const void *map, __u64 key, __u64 flags)
{
	to_map = map;
	to_key = key;
	if (map != &ports && flags != BPF_F_BROADCAST)
		abort();
	return XDP_REDIRECT;
}

/* Nanoseconds, and ticks of one */
__u64 shim_now(void)
{
	/* time goes on, a little */
	return clock_ns += 100;
}

void t_open(uint32_t aggregators_wanted, uint32_t payload)
{
	int i;

	sw_set.aggregators = aggregators_wanted;
	sw_set.payload = payload;
	sw_set.ticks = 4000000000ULL;
	agg_size = sizeof(struct sw_agg) + SW_BLOCKS(payload) * SW_BLOCK * 8;
	aggs = calloc(aggregators_wanted, agg_size);
	memset(all_states, 0, sizeof(all_states));
	memset(all_counters, 0, sizeof(all_counters));
	memset(&all_others, 0, sizeof(all_others));
	memset(all_fans, 0, sizeof(all_fans));
	n_jobs = 0;
	clock_ns = 1000000000000ULL;
	for (i = 0; i < T_PORTS; i++) {
		places[i] = PLACE(i);
		memset(&all_ports[i], 0, sizeof(all_ports[i]));
		all_ports[i].ifindex = IFINDEX(i);
		all_ports[i].l3 = i == T_ROUTED ? IFINDEX(i) : BRIDGE;
		all_ports[i].mac[0] = 0x0a;
		all_ports[i].mac[5] = all_ports[i].l3;
	}
}

void t_close(void)
{
	free(aggs);
	aggs = NULL;
}

static void fill_host(struct sw_host *host, const struct t_job *job, int nr,
		      int port)
{
	t_addr(job->v6, job->id, nr, (uint8_t *)host->addr);
	host->ifindex = IFINDEX(port);
	host->l3 = all_ports[port].l3;
	t_mac(nr, host->mac);
	memcpy(host->src, all_ports[port].mac, 6);
}

void t_add_job(const struct t_job *t)
{
	struct sw_job *job = &all_jobs[n_jobs];
	uint32_t i;

	memset(job, 0, sizeof(*job));
	job->id = t->id;
	job->slot = n_jobs + 1;
	job->workers = t->workers;
	job->full = t->workers == 32 ? ~0U : (1U << t->workers) - 1;
	job->quota = t->quota;
	job->cap = t->quota < ATP_NO_CAP ? t->quota : ATP_NO_CAP;
	fill_host(&job->ps, t, T_PS, t->ps_port);
	for (i = 0; i < t->workers; i++) {
		fill_host(&job->rank[i], t, i, t->port[i]);
		if (t->port[i] != t->ps_port)
			job->pass |= 1U << i;
		if (job->rank[i].l3 != job->ps.l3)
			job->rank[i].flags |= SW_HOST_ROUTED;
	}
	for (i = 0; i < t->workers * t->workers; i++) {
		if (t->port[i / t->workers] == t->port[i % t->workers])
			job->rank[i / t->workers].mates |=
				1U << i % t->workers;
	}
	n_jobs++;
}

/* In a buffer that ends where the frame does, for the sanitizer to watch */
static int run_in_place(int (*program)(struct xdp_md *ctx), uint8_t *frame,
			uint32_t len, uint32_t in, uint32_t out)
{
	uint8_t *copy = malloc(len + 2);
	struct xdp_md ctx = {
		.data = (unsigned long)copy + 2,
		.data_end = (unsigned long)copy + 2 + len,
		.ingress_ifindex = in,
		.egress_ifindex = out,
	};
	int verdict;

	memcpy(copy + 2, frame, len);
	verdict = program(&ctx);
	memcpy(frame, copy + 2, len);
	free(copy);
	return verdict;
}

int t_run(int port, uint8_t *frame, uint32_t len)
{
	to_map = NULL;
	return run_in_place(atp_ingress, frame, len, IFINDEX(port), 0);
}

struct sw_agg *t_agg(uint32_t index)
{
	return (void *)(aggs + agg_size * index);
}

uint64_t t_occupied(uint32_t id)
{
	return all_states[find_job(id)->slot].occupied;
}

void t_forget_runs(uint32_t id)
{
	all_states[find_job(id)->slot].run = 0;
	all_states[find_job(id)->slot].left = 0;
}

void t_counters(uint32_t id, struct sw_counters *c)
{
	*c = all_counters[find_job(id)->slot];
}

void t_others(struct sw_others *o)
{
	*o = all_others;
}

void t_port_mac(int port, uint8_t *mac)
{
	memcpy(mac, all_ports[port].mac, 6);
}

int t_copies(void)
{
	if (!to_map)
		return 0;
	if (to_map == &ports)
		return 1;
	return (int)((const struct sw_job *)to_map)->workers;
}

int t_copy_port(int copy)
{
	if (to_map == &ports)
		return port_of(to_key);
	return port_of(((const struct sw_job *)to_map)->rank[copy].ifindex);
}

int t_copy_rank(int copy)
{
	return to_map == &ports ? -1 : copy;
}

int t_make_copy(int copy, uint8_t *frame, uint32_t len)
{
	return t_leave(t_copy_port(copy), frame, len);
}

int t_leave(int port, uint8_t *frame, uint32_t len)
{
	return run_in_place(atp_egress, frame, len, 0, IFINDEX(port));
}
