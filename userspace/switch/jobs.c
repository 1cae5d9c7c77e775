// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs: what the programs know of each, and the groups of its workers' ports.
 *
 * A map of maps is written with a grace period of the kernel's: when writing a
 * group returns, no program still uses what was there before.  Writing the job
 * first and its group second is therefore enough.
 *
 * Programs see a job in a map of its own, which takes the place of the one
 * before it at once; what is read here is another map, from job ID to job.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "rtnl.h"

/* The next job after *@id */
int sw_job_next(const struct sw_switch *sw, uint32_t *id, bool *first)
{
	uint32_t next;

	if (bpf_map_get_next_key(sw->map[SW_MAP_JOBS], *first ? NULL : id,
				 &next))
		return -1;
	*first = false;
	*id = next;
	return 0;
}

int sw_job_get(const struct sw_switch *sw, uint32_t id, struct sw_job *job)
{
	if (bpf_map_lookup_elem(sw->map[SW_MAP_JOBS], &id, job))
		return sw_fail("job %u is not known to this switch: atp switch job add %u ps ADDR worker ADDR ...",
			       id, id);
	return 0;
}

/* The slot by which programs find the job first, or the last one free */
static int free_slot(const struct sw_switch *sw, uint32_t new, uint32_t *slot)
{
	bool used[SW_SLOTS] = { true }, first = true;
	struct sw_job job;
	uint32_t id = 0, i;

	while (!sw_job_next(sw, &id, &first)) {
		if (!sw_job_get(sw, id, &job) && job.slot < SW_SLOTS)
			used[job.slot] = true;
	}
	*slot = new % SW_SLOTS;
	for (i = SW_SLOTS; used[*slot] && i > 0; i--)
		*slot = i - 1;
	if (used[*slot])
		return sw_fail("a switch has room for %d jobs", SW_SLOTS - 1);
	return 0;
}

/* Is the host behind a port of the switch? */
static int check_port(const struct sw_switch *sw, const struct sw_host *host)
{
	char text[INET6_ADDRSTRLEN], name[IFNAMSIZ] = "?";
	struct sw_port port;

	if (!sw_port_find(sw, host->ifindex, &port))
		return 0;
	if_indextoname(host->ifindex, name);
	return sw_fail("%s is behind %s, which is no port of the switch: atp switch attach dev %s",
		       sw_addr_text(host->addr, text, sizeof(text)), name,
		       name);
}

/* What follows from where the hosts are */
static int derive(const struct sw_switch *sw, struct sw_job *job)
{
	uint32_t i, k;

	if (check_port(sw, &job->ps))
		return -1;
	job->copies = 0;
	for (i = 0; i < job->workers; i++) {
		struct sw_host *host = &job->rank[i];

		if (check_port(sw, host))
			return -1;
		host->flags &= ~(SW_HOST_ROUTED | SW_HOST_SHARED);
		if (host->l3 != job->ps.l3)
			host->flags |= SW_HOST_ROUTED;
		for (k = 0; k < i; k++) {
			if (!memcmp(job->rank[k].addr, host->addr,
				    sizeof(host->addr)))
				host->flags |= SW_HOST_SHARED;
		}
		if (!(host->flags & SW_HOST_SHARED))
			job->copies++;
	}
	for (i = 0; i < job->workers; i++) {
		struct sw_host *host = &job->rank[i];

		host->mates = 0;
		for (k = 0; k < job->workers; k++) {
			if (job->rank[k].ifindex == host->ifindex &&
			    !(job->rank[k].flags & SW_HOST_SHARED))
				host->mates |= 1U << k;
		}
	}
	job->cap = job->quota < ATP_NO_CAP ? job->quota : ATP_NO_CAP;
	return 0;
}

/* The group of a job's workers: one entry per host, the lowest of its ranks */
static int write_group(const struct sw_switch *sw, const struct sw_job *job)
{
	int prog, fd, err = 0;
	uint32_t i;

	prog = sw_program(sw, "atp_egress");
	if (prog < 0)
		return -1;
	fd = bpf_map_create(BPF_MAP_TYPE_DEVMAP_HASH, "atp_group",
			    sizeof(uint32_t), sizeof(struct bpf_devmap_val),
			    ATP_MAX_WORKERS, NULL);
	if (fd < 0) {
		close(prog);
		return sw_fail("cannot make the group of job %u: %s", job->id,
			       strerror(errno));
	}
	for (i = 0; i < job->workers; i++) {
		const struct sw_host *host = &job->rank[i];
		struct bpf_devmap_val val = {
			.ifindex = host->ifindex,
			.bpf_prog.fd = prog,
		};
		char name[IFNAMSIZ];

		if (host->flags & SW_HOST_SHARED)
			continue;
		if (!if_indextoname(host->ifindex, name)) {
			/* it gets what it asks for again, once it is back */
			sw_say("job %u: the port of rank %u is gone: when it is back, atp switch refresh",
			       job->id, i);
			continue;
		}
		err = bpf_map_update_elem(fd, &i, &val, BPF_ANY);
		if (err) {
			sw_fail("cannot put rank %u into the group of job %u: %s",
				i, job->id, strerror(errno));
			goto out;
		}
	}
	err = bpf_map_update_elem(sw->map[SW_MAP_GROUPS], &job->slot, &fd,
				  BPF_ANY);
	if (err)
		sw_fail("cannot write the group of job %u: %s", job->id,
			strerror(errno));
out:
	close(prog);
	close(fd);
	return err;
}

/* The job as programs see it */
static int write_room(const struct sw_switch *sw, const struct sw_job *job)
{
	uint32_t zero = 0;
	int fd, err;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "atp_job", sizeof(zero),
			    sizeof(*job), 1, NULL);
	if (fd < 0)
		return -1;
	err = bpf_map_update_elem(fd, &zero, job, BPF_ANY) ||
	      bpf_map_update_elem(sw->map[SW_MAP_JOB_ROOMS], &job->slot, &fd,
				  BPF_ANY);
	close(fd);
	return err ? -1 : 0;
}

static int write_job(const struct sw_switch *sw, const struct sw_job *job)
{
	if (bpf_map_update_elem(sw->map[SW_MAP_JOBS], &job->id, job, BPF_ANY) ||
	    write_room(sw, job))
		return sw_fail("cannot write job %u: %s", job->id,
			       strerror(errno));
	return write_group(sw, job);
}

/* Programs first: a slot that is free is one that none of them looks into */
static int delete_job(const struct sw_switch *sw, const struct sw_job *job)
{
	bpf_map_delete_elem(sw->map[SW_MAP_JOB_ROOMS], &job->slot);
	return bpf_map_delete_elem(sw->map[SW_MAP_JOBS], &job->id);
}

/* A slot that another job had before: nothing of it is left */
static void clear_slot(struct sw_switch *sw, uint32_t slot)
{
	int cpus = libbpf_num_possible_cpus();
	struct sw_counters *none;
	struct sw_state *state;

	sw_flush(sw, slot);
	state = sw_state_get(sw, slot);
	if (state)
		memset(state, 0, sizeof(*state));
	none = cpus > 0 ? calloc(cpus, sizeof(*none)) : NULL;
	if (none)
		bpf_map_update_elem(sw->map[SW_MAP_COUNTERS], &slot, none,
				    BPF_ANY);
	free(none);
}

/* A job as it is told of, but for its slot */
static int describe(const struct sw_switch *sw, uint32_t id,
		    const struct sw_where *ps, const struct sw_where *worker,
		    uint32_t workers, uint32_t quota, struct sw_job *job)
{
	uint32_t i;

	memset(job, 0, sizeof(*job));
	job->id = id;
	if (!workers || workers > ATP_MAX_WORKERS)
		return sw_fail("a job has 1 to %d workers", ATP_MAX_WORKERS);
	job->workers = workers;
	job->full = workers == 32 ? ~0U : (1U << workers) - 1;
	job->quota = quota ?: sw->settings.aggregators;
	if (job->quota > sw->settings.aggregators)
		return sw_fail("quota is at most the number of aggregators, %u",
			       sw->settings.aggregators);
	if (sw_resolve(ps, &job->ps))
		return -1;
	for (i = 0; i < workers; i++) {
		if (sw_resolve(&worker[i], &job->rank[i]))
			return -1;
	}
	return derive(sw, job);
}

/* Put a job where there was none */
static int put_job(struct sw_switch *sw, struct sw_job *job)
{
	if (free_slot(sw, job->id, &job->slot))
		return -1;
	clear_slot(sw, job->slot);
	if (write_job(sw, job)) {
		delete_job(sw, job);
		return -1;
	}
	return 0;
}

/**
 * sw_job_add() - tell the switch of a job
 * @sw: the switch
 * @id: jobID
 * @ps: its PS
 * @worker: its workers in the order of their ranks
 * @workers: how many
 * @quota: most aggregators that it may occupy; zero: all
 */
int sw_job_add(struct sw_switch *sw, uint32_t id, const struct sw_where *ps,
	       const struct sw_where *worker, uint32_t workers, uint32_t quota)
{
	struct sw_job job;

	if (!bpf_map_lookup_elem(sw->map[SW_MAP_JOBS], &id, &job))
		return sw_fail("job %u exists: atp switch job replace, or job del %u",
			       id, id);
	if (describe(sw, id, ps, worker, workers, quota, &job))
		return -1;
	return put_job(sw, &job);
}

/* The same ranks at the same addresses, wherever those are by now? */
static bool same_members(const struct sw_job *a, const struct sw_job *b)
{
	uint32_t i;

	if (a->workers != b->workers ||
	    memcmp(a->ps.addr, b->ps.addr, sizeof(a->ps.addr)))
		return false;
	for (i = 0; i < a->workers; i++) {
		if (memcmp(a->rank[i].addr, b->rank[i].addr,
			   sizeof(a->rank[i].addr)))
			return false;
	}
	return true;
}

/**
 * sw_job_replace() - a job is to be like this, whether it is known or not
 * @sw: the switch
 * @id: jobID
 * @ps: its PS
 * @worker: its workers in the order of their ranks
 * @workers: how many
 * @quota: most aggregators that it may occupy; zero: all
 *
 * A job of the same members keeps its sums and its counters, and no packet of
 * it is lost.  What is refused changes nothing.
 */
int sw_job_replace(struct sw_switch *sw, uint32_t id,
		   const struct sw_where *ps, const struct sw_where *worker,
		   uint32_t workers, uint32_t quota)
{
	struct sw_job job, old;

	if (describe(sw, id, ps, worker, workers, quota, &job))
		return -1;
	if (bpf_map_lookup_elem(sw->map[SW_MAP_JOBS], &id, &old))
		return put_job(sw, &job);
	if (!same_members(&old, &job))
		return sw_job_del(sw, id) || put_job(sw, &job) ? -1 : 0;
	job.slot = old.slot;
	return write_job(sw, &job);
}

/* The switch forgets a job and forwards its packets like any other */
int sw_job_del(struct sw_switch *sw, uint32_t id)
{
	struct sw_job job;

	if (sw_job_get(sw, id, &job))
		return -1;
	if (delete_job(sw, &job))
		return sw_fail("cannot delete job %u: %s", id,
			       strerror(errno));
	/* waits until no program uses the job any more */
	bpf_map_delete_elem(sw->map[SW_MAP_GROUPS], &job.slot);
	clear_slot(sw, job.slot);
	return 0;
}

/* Find out again where the hosts of a job are */
int sw_job_refresh(struct sw_switch *sw, uint32_t id)
{
	struct sw_job job;
	uint32_t i;

	if (sw_job_get(sw, id, &job) || sw_resolve_again(&job.ps))
		return -1;
	for (i = 0; i < job.workers; i++) {
		if (sw_resolve_again(&job.rank[i]))
			return -1;
	}
	return derive(sw, &job) || write_job(sw, &job) ? -1 : 0;
}

static int for_all(struct sw_switch *sw,
		   int (*fn)(struct sw_switch *sw, uint32_t id))
{
	bool first = true;
	uint32_t id = 0;

	while (!sw_job_next(sw, &id, &first)) {
		if (fn(sw, id))
			return -1;
	}
	return 0;
}

int sw_job_refresh_all(struct sw_switch *sw)
{
	return for_all(sw, sw_job_refresh);
}

static int regroup(struct sw_switch *sw, uint32_t id)
{
	struct sw_job job;

	return sw_job_get(sw, id, &job) || write_group(sw, &job) ? -1 : 0;
}

/* After an upgrade: the groups end in the new programs */
int sw_job_regroup_all(struct sw_switch *sw)
{
	return for_all(sw, regroup);
}

void sw_job_warn(const struct sw_switch *sw, uint32_t ifindex)
{
	char name[IFNAMSIZ];
	struct sw_job job;
	bool first = true;
	uint32_t i, id = 0;

	if (!if_indextoname(ifindex, name))
		snprintf(name, sizeof(name), "if%u", ifindex);
	while (!sw_job_next(sw, &id, &first)) {
		if (sw_job_get(sw, id, &job))
			continue;
		if (job.ps.ifindex == ifindex)
			sw_say("job %u: its PS is behind %s: its gradients are dropped until that is attached again, or the job deleted here",
			       id, name);
		for (i = 0; i < job.workers; i++) {
			if (job.rank[i].ifindex == ifindex)
				sw_say("job %u: rank %u is behind %s: what it sends is not added, and answers to it alone are dropped, until that is attached again, or the job deleted here",
				       id, i, name);
		}
	}
}

int sw_job_group(const struct sw_switch *sw, uint32_t slot)
{
	uint32_t group, key, next;
	int fd, n = 0;

	if (bpf_map_lookup_elem(sw->map[SW_MAP_GROUPS], &slot, &group))
		return 0;
	fd = bpf_map_get_fd_by_id(group);
	if (fd < 0)
		return -1;
	while (!bpf_map_get_next_key(fd, n ? &key : NULL, &next)) {
		key = next;
		n++;
	}
	close(fd);
	return n;
}
