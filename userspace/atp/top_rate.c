// SPDX-License-Identifier: GPL-2.0
/* From counters at two moments to rates. */
#include <string.h>
#include "counters.h"
#include "top.h"

#define NS_PER_S	1000000000

struct find {
	const char	*name;
	uint64_t	sum;
};

static void find_counter(const char *name, uint64_t value, void *arg)
{
	struct find *find = arg;

	if (!strcmp(name, find->name))
		find->sum += value;
}

static void find_drops(const char *name, uint64_t value, void *arg)
{
	struct find *find = arg;

	if (!strncmp(name, "drop_", 5))
		find->sum += value;
}

static uint64_t counter(const struct nlattr *counters, const char *name)
{
	struct find find = { name, 0 };

	counters_walk(counters, name ? find_counter : find_drops, &find);
	return find.sum;
}

static const struct job_reply *job_before(const struct top *top, uint32_t id)
{
	unsigned int i;

	for (i = 0; i < top->before.jobs.count; i++)
		if (top->before.jobs.job[i].id == id)
			return &top->before.jobs.job[i];
	return NULL;
}

/* The same socket: a rank may have opened another one. */
static const struct sock_reply *sock_before(const struct top *top,
					    const struct sock_reply *sock)
{
	const struct sock_reply *old;
	unsigned int i;

	for (i = 0; i < top->before.socks.count; i++) {
		old = &top->before.socks.sock[i];
		if (old->job == sock->job && old->rank == sock->rank &&
		    old->inode == sock->inode)
			return old;
	}
	return NULL;
}

uint64_t top_interval(const struct top *top)
{
	return top->now.time - top->before.time;
}

/* What began again from zero has come as far as it is. */
uint64_t top_per_second(const struct top *top, uint64_t now, uint64_t before)
{
	uint64_t interval = top_interval(top);
	uint64_t count = now >= before ? now - before : now;

	if (!interval)
		return 0;
	/* the product may not fit */
	return (__uint128_t)count * NS_PER_S / interval;
}

uint64_t top_job_rate(const struct top *top, const struct job_reply *job,
		      const char *name)
{
	const struct job_reply *old = job_before(top, job->id);

	return top_per_second(top, counter(job->counters, name),
			      old ? counter(old->counters, name) : 0);
}

uint64_t top_host_rate(const struct top *top, const char *name)
{
	return top_per_second(top, counter(top->now.family.counters, name),
			      counter(top->before.family.counters, name));
}

uint64_t top_drop_rate(const struct top *top)
{
	return top_host_rate(top, NULL);
}

/* Is a fragment or run older than another?  Both numbers may wrap around. */
static bool is_older(uint32_t number, uint32_t than)
{
	return (int32_t)(number - than) < 0;
}

/* Fragments that got their result in the interval.  A run begins at zero, and a
 * socket that has left one is there again.
 */
static uint32_t sock_answered(const struct top *top,
			      const struct sock_reply *sock)
{
	const struct sock_reply *old = sock_before(top, sock);

	if (!old || old->info.epoch != sock->info.epoch ||
	    is_older(sock->info.una, old->info.una))
		return sock->info.una;
	return sock->info.una - old->info.una;
}

void top_sock(const struct top *top, const struct sock_reply *sock,
	      struct top_sock *rate)
{
	const struct sock_reply *old = sock_before(top, sock);
	uint64_t answered = sock_answered(top, sock);

	rate->sent = top_per_second(top, sock->info.sent,
				    old ? old->info.sent : 0);
	rate->resent = top_per_second(top, sock->info.resent,
				      old ? old->info.resent : 0);
	rate->answered = top_per_second(top, answered, 0);
	rate->goodput = top_per_second(top, answered * sock->info.fragment, 0);
}

static bool has_joined(const struct sock_reply *sock, uint32_t job)
{
	return sock->job == job && sock->info.state == ATP_JOINED;
}

/* The run of a job that its sockets have joined, zero for none; some may not
 * have heard yet that the one before has ended.
 */
static uint32_t job_epoch(const struct sock_list *list, uint32_t job)
{
	const struct sock_reply *sock;
	uint32_t epoch = 0;
	bool found = false;
	unsigned int i;

	for (i = 0; i < list->count; i++) {
		sock = &list->sock[i];
		if (!has_joined(sock, job))
			continue;
		if (!found || is_older(epoch, sock->info.epoch))
			epoch = sock->info.epoch;
		found = true;
	}
	return epoch;
}

/* The oldest fragment of a run that a socket here has no result of.  Zero if
 * none has joined it: there it begins.
 */
static uint32_t job_una(const struct sock_list *list, uint32_t job,
			uint32_t epoch)
{
	const struct sock_reply *sock;
	bool found = false;
	uint32_t una = 0;
	unsigned int i;

	for (i = 0; i < list->count; i++) {
		sock = &list->sock[i];
		if (!has_joined(sock, job) || sock->info.epoch != epoch)
			continue;
		if (!found || is_older(sock->info.una, una))
			una = sock->info.una;
		found = true;
	}
	return una;
}

/* Fragments of which the last worker here got the result.  One that leaves does
 * not make them less; one that was not seen before may be behind.
 */
static uint32_t job_answered(const struct top *top, uint32_t job)
{
	uint32_t epoch = job_epoch(&top->now.socks, job);
	uint32_t now = job_una(&top->now.socks, job, epoch);
	uint32_t before = job_una(&top->before.socks, job, epoch);

	return is_older(now, before) ? 0 : now - before;
}

/* What the worker sockets of this host know of a job */
static void job_of_socks(const struct top *top, const struct job_reply *job,
			 struct top_job *rate)
{
	uint64_t answered = job_answered(top, job->id);
	const struct sock_reply *sock;
	unsigned int i;

	for (i = 0; i < top->now.socks.count; i++) {
		sock = &top->now.socks.sock[i];
		if (has_joined(sock, job->id) &&
		    sock->info.una != sock->info.nxt) {
			rate->waiting |= sock->info.ranks;
			if (sock->info.flags & ATP_INFO_SERVER)
				rate->server = true;
		}
	}
	rate->completed = top_per_second(top, answered, 0);
	rate->goodput = top_per_second(top, answered * job->fragment, 0);
}

void top_job(const struct top *top, const struct job_reply *job,
	     struct top_job *rate)
{
	const struct job_reply *old = job_before(top, job->id);
	uint64_t now, before;

	memset(rate, 0, sizeof(*rate));
	if (!job->has_ps) {
		job_of_socks(top, job, rate);
		return;
	}
	now = counter(job->counters, "completed");
	before = old ? counter(old->counters, "completed") : 0;
	rate->completed = top_per_second(top, now, before);
	rate->goodput = top_per_second(top, now * job->fragment,
				       before * job->fragment);
	rate->waiting = job->running ? job->waiting : 0;
	rate->server = job->running && job->server_waiting;
	rate->stall = job->running ? job->stall : 0;
}

const struct sw_counters *top_switch_before(const struct top *top, uint32_t id)
{
	static const struct sw_counters none;
	unsigned int i;

	for (i = 0; i < top->before.switch_jobs; i++)
		if (top->before.switch_job[i].id == id)
			return &top->before.switch_job[i].counters;
	return &none;
}

bool top_wanted(const struct top *top, uint32_t id)
{
	return !top->one || top->job == id;
}
