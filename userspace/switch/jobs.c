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
	char text[INET6_ADDRSTRLEN];
	struct sw_port port;
	struct sw_link link;

	if (!sw_port_find(sw, host->ifindex, &port))
		return 0;
	sw_addr_text(host->addr, text, sizeof(text));
	if (sw_rtnl_link(host->ifindex, &link))
		return -1;
	if (sw_is_bond(&link))
		return sw_fail("%s is behind %s, a %s, which cannot be a port of the switch: connect it by one interface that is in none",
			       text, link.name, link.kind);
	return sw_fail("%s is behind %s, which is no port of the switch: atp switch attach dev %s",
		       text, link.name, link.name);
}

static bool same_host(const struct sw_host *a, const struct sw_host *b)
{
	return !memcmp(a->addr, b->addr, sizeof(a->addr));
}

/* Do gradients come by here?  Not on the PS's own host, nor from one to another
 * behind the same port in the same subnet.
 */
static bool passes(const struct sw_host *host, const struct sw_host *ps)
{
	return !same_host(host, ps) &&
	       (host->ifindex != ps->ifindex || host->l3 != ps->l3);
}

/* What follows from where the hosts are */
static void derive(struct sw_job *job)
{
	uint32_t i, k;

	job->copies = 0;
	job->pass = 0;
	for (i = 0; i < job->workers; i++) {
		struct sw_host *host = &job->rank[i];

		host->flags &= ~(SW_HOST_ROUTED | SW_HOST_SHARED);
		if (host->l3 != job->ps.l3)
			host->flags |= SW_HOST_ROUTED;
		if (same_host(host, &job->ps))
			host->flags |= SW_HOST_SHARED;
		if (passes(host, &job->ps))
			job->pass |= 1U << i;
		for (k = 0; k < i; k++) {
			if (same_host(&job->rank[k], host))
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
static int clear_slot(struct sw_switch *sw, uint32_t slot)
{
	int cpus = libbpf_num_possible_cpus();
	struct sw_counters *none;

	if (sw_flush(sw, slot))
		return -1;
	memset(sw_state_get(sw, slot), 0, sizeof(struct sw_state));
	none = cpus > 0 ? calloc(cpus, sizeof(*none)) : NULL;
	if (none)
		bpf_map_update_elem(sw->map[SW_MAP_COUNTERS], &slot, none,
				    BPF_ANY);
	free(none);
	return 0;
}

/* A parameter packet's copies are all of the same kind as it is */
static int check_family(const struct in6_addr *ps,
			const struct in6_addr *worker)
{
	char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];

	if (IN6_IS_ADDR_V4MAPPED(ps) == IN6_IS_ADDR_V4MAPPED(worker))
		return 0;
	return sw_fail("%s and %s: the hosts of a job have addresses of one family, all IPv4 or all IPv6",
		       sw_addr_text(ps, a, sizeof(a)),
		       sw_addr_text(worker, b, sizeof(b)));
}

static int find_host(const struct sw_switch *sw, const struct sw_where *where,
		     struct sw_host *host)
{
	return sw_resolve(where, host) || check_port(sw, host) ? -1 : 0;
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
	for (i = 0; i < workers; i++) {
		if (check_family(&ps->addr, &worker[i].addr))
			return -1;
	}
	if (find_host(sw, ps, &job->ps))
		return -1;
	for (i = 0; i < workers; i++) {
		if (find_host(sw, &worker[i], &job->rank[i]))
			return -1;
	}
	derive(job);
	return 0;
}

/* Put a job where there was none */
static int put_job(struct sw_switch *sw, struct sw_job *job)
{
	if (free_slot(sw, job->id, &job->slot))
		return -1;
	if (clear_slot(sw, job->slot))
		return -1;
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

	if (sw_job_get(sw, id, &job) || sw_see_all(sw))
		return -1;
	if (delete_job(sw, &job))
		return sw_fail("cannot delete job %u: %s", id,
			       strerror(errno));
	/* waits until no program uses the job any more */
	bpf_map_delete_elem(sw->map[SW_MAP_GROUPS], &job.slot);
	return clear_slot(sw, job.slot);
}

/**
 * struct missed - what a refresh has left as it was
 * @host: hosts that were not found: each is waited for once
 * @hosts: how many
 * @names: of hosts and jobs
 */
struct missed {
	struct sw_addr host[ATP_MAX_WORKERS];
	int	hosts;
	char	names[256];
};

static bool is_missed(const struct missed *missed, const struct sw_host *host)
{
	int i;

	for (i = 0; i < missed->hosts; i++) {
		if (!memcmp(&missed->host[i], host->addr, sizeof(host->addr)))
			return true;
	}
	return false;
}

/* The reason is said now, and the name once more at the end */
static void miss(struct missed *missed, uint32_t id, const char *name)
{
	size_t used = strlen(missed->names);

	sw_say("job %u: %s", id, sw_error());
	snprintf(missed->names + used, sizeof(missed->names) - used, "%s%s",
		 used ? ", " : "", name);
}

/* A host that is not found stays where it was: it may be down for a while */
static void find_again(const struct sw_switch *sw, uint32_t id,
		       struct sw_host *host, struct missed *missed)
{
	char text[INET6_ADDRSTRLEN];
	struct sw_host now = *host;

	if (is_missed(missed, host))
		return;
	if (!sw_resolve_again(&now) && !check_port(sw, &now)) {
		*host = now;
		return;
	}
	miss(missed, id, sw_addr_text(host->addr, text, sizeof(text)));
	if (missed->hosts < ATP_MAX_WORKERS)
		memcpy(&missed->host[missed->hosts++], host->addr,
		       sizeof(host->addr));
}

static void refresh(struct sw_switch *sw, uint32_t id, struct missed *missed)
{
	struct sw_job job;
	char text[16];
	uint32_t i;

	snprintf(text, sizeof(text), "job %u", id);
	if (sw_job_get(sw, id, &job)) {
		miss(missed, id, text);
		return;
	}
	find_again(sw, id, &job.ps, missed);
	for (i = 0; i < job.workers; i++)
		find_again(sw, id, &job.rank[i], missed);
	derive(&job);
	if (write_job(sw, &job))
		miss(missed, id, text);
}

static int explain_missed(const struct missed *missed)
{
	if (!*missed->names)
		return 0;
	return sw_fail("left as it was: %s; when what was said of it is mended, atp switch refresh",
		       missed->names);
}

/**
 * sw_job_refresh() - find out again where the hosts of a job are
 * @sw: the switch
 * @id: jobID
 *
 * What is found counts, whatever is not.
 */
int sw_job_refresh(struct sw_switch *sw, uint32_t id)
{
	struct missed missed = {};
	struct sw_job job;

	if (sw_job_get(sw, id, &job))
		return -1;
	refresh(sw, id, &missed);
	return explain_missed(&missed);
}

/* All jobs.  First their numbers: one that is written anew may come once more
 * behind others.
 */
static int list_jobs(const struct sw_switch *sw, uint32_t all[SW_SLOTS])
{
	bool first = true;
	uint32_t id = 0;
	int n = 0;

	while (n < SW_SLOTS && !sw_job_next(sw, &id, &first))
		all[n++] = id;
	return n;
}

int sw_job_refresh_all(struct sw_switch *sw)
{
	struct missed missed = {};
	uint32_t all[SW_SLOTS];
	int n = list_jobs(sw, all), i;

	for (i = 0; i < n; i++)
		refresh(sw, all[i], &missed);
	return explain_missed(&missed);
}

static int regroup(struct sw_switch *sw, uint32_t id)
{
	struct sw_job job;

	return sw_job_get(sw, id, &job) || write_group(sw, &job) ? -1 : 0;
}

/* After an upgrade: the groups end in the new programs */
int sw_job_regroup_all(struct sw_switch *sw)
{
	uint32_t all[SW_SLOTS];
	int n = list_jobs(sw, all), i, err = 0;

	for (i = 0; i < n; i++)
		err |= regroup(sw, all[i]);
	return err ? -1 : 0;
}
