// SPDX-License-Identifier: GPL-2.0
/*
 * atp stats prometheus: everything that can be measured, for a collector.
 *
 * A counter keeps the name that the other commands show: "sent" of a job is
 * atp_job_sent_total.  Families of counters that are alternatives of each other
 * (why something was dropped or not aggregated) are one, with a label "reason".
 */
#include <errno.h>
#include <limits.h>
#include <linux/atp_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "atp.h"
#include "counters.h"
#include "metrics.h"
#include "prometheus.h"
#include "snapshot.h"

/**
 * struct scope - whose counters these are
 * @all: where they go
 * @prefix: their names begin with it
 * @labels: that all of them have
 */
struct scope {
	struct metrics	*all;
	const char	*prefix;
	struct labels	labels;
};

static void put_reason(struct scope *scope, const char *family,
		       const char *help, const char *reason, uint64_t value)
{
	struct labels labels = scope->labels;
	char name[METRIC_NAME_MAX];

	label_text(&labels, "reason", reason);
	snprintf(name, sizeof(name), "%s_%s_total", scope->prefix, family);
	metric(scope->all, METRIC_COUNTER, name, help, &labels, value);
}

static void put_counter(struct scope *scope, const char *counter,
			const char *help, uint64_t value)
{
	char name[METRIC_NAME_MAX];

	snprintf(name, sizeof(name), "%s_%s_total", scope->prefix, counter);
	metric(scope->all, METRIC_COUNTER, name, help,
	       *scope->labels.text ? &scope->labels : NULL, value);
}

static void put_kernel(const char *name, uint64_t value, void *arg)
{
	if (!strncmp(name, "drop_", 5))
		put_reason(arg, "drops", "packets refused, by reason",
			   name + 5, value);
	else
		put_counter(arg, name, counter_help(name), value);
}

static void put_gauge(struct scope *scope, const char *name, const char *help,
		      uint64_t value)
{
	metric(scope->all, METRIC_GAUGE, name, help,
	       *scope->labels.text ? &scope->labels : NULL, value);
}

static void put_family(struct metrics *all, const struct family_reply *family)
{
	struct scope scope = { all, "atp_host", { "" } };
	struct labels labels = { "" };

	label_number(&labels, "family", family->number);
	label_number(&labels, "port", family->port);
	label_number(&labels, "version", family->version);
	metric(all, METRIC_GAUGE, "atp_info",
	       "numbers of the family, always 1", &labels, 1);
	counters_walk(family->counters, put_kernel, &scope);
}

/* What the PS knows */
static void put_run(struct scope *scope, const struct job_reply *job)
{
	struct labels labels;
	unsigned int rank;

	put_gauge(scope, "atp_job_running", "1 while a run goes on",
		  job->running);
	if (job->server)
		put_gauge(scope, "atp_job_waiting_server",
			  "1 if the oldest fragment waits for the application",
			  job->server_waiting);
	put_gauge(scope, "atp_job_epoch", "current or last run", job->epoch);
	put_gauge(scope, "atp_job_memory_bytes", "held by the PS",
		  job->memory);
	metric_seconds(scope->all, "atp_job_stall_seconds",
		       "since the first packet of the oldest fragment",
		       &scope->labels, job->stall * 1000ULL);
	for (rank = 0; rank < job->workers; rank++) {
		labels = scope->labels;
		label_number(&labels, "rank", rank);
		metric(scope->all, METRIC_GAUGE, "atp_job_joined",
		       "1 if the worker has joined", &labels,
		       job->joined >> rank & 1);
		metric(scope->all, METRIC_GAUGE, "atp_job_waiting",
		       "1 if the oldest fragment waits for the worker",
		       &labels, job->waiting >> rank & 1);
	}
}

static void put_job(struct metrics *all, const struct job_reply *job)
{
	struct scope scope = { all, "atp_job", { "" } };

	label_number(&scope.labels, "job_id", job->id);
	put_gauge(&scope, "atp_job_workers", "workers that the job has",
		  job->workers);
	put_gauge(&scope, "atp_job_sockets", "worker sockets on this host",
		  job->sockets);
	put_gauge(&scope, "atp_job_fragment_bytes",
		  "payload of a full fragment", job->fragment);
	if (job->has_ps)
		put_run(&scope, job);
	counters_walk(job->counters, put_kernel, &scope);
}

static void put_sock(struct metrics *all, const struct sock_reply *sock)
{
	struct scope scope = { all, "atp_socket", { "" } };
	const struct atp_info *info = &sock->info;
	unsigned int i;

	label_number(&scope.labels, "job_id", sock->job);
	label_number(&scope.labels, "rank", sock->rank);
	put_gauge(&scope, "atp_socket_joined", "1 while it takes part in a run",
		  info->state == ATP_JOINED);
	put_gauge(&scope, "atp_socket_cwnd_fragments", "congestion window",
		  info->cwnd);
	put_gauge(&scope, "atp_socket_ssthresh_fragments",
		  "slow start threshold", info->ssthresh);
	put_gauge(&scope, "atp_socket_unanswered_fragments",
		  "sent and without a result", info->nxt - info->una);
	metric_seconds(all, "atp_socket_srtt_seconds", "smoothed round trip",
		       &scope.labels, info->srtt_us);
	metric_seconds(all, "atp_socket_rto_seconds",
		       "retransmission timeout", &scope.labels, info->rto_us);
	put_gauge(&scope, "atp_socket_receive_queue_bytes",
		  "that wait to be pulled", sock->rmem);
	put_gauge(&scope, "atp_socket_send_queue_bytes",
		  "pushed and not complete", sock->wmem);
	put_counter(&scope, "answered", "fragments of the run with a result",
		    info->una);
	for (i = 0; i < SOCK_COUNTERS; i++)
		put_counter(&scope, sock_counters[i].name,
			    counter_help(sock_counters[i].job),
			    sock_counter_get(info, i));
}

static void put_switch_counter(struct scope *scope, unsigned int i,
			       uint64_t value)
{
	const struct switch_counter *counter = &switch_counters[i];

	if (!strncmp(counter->name, "drop_", 5))
		put_reason(scope, "drops", "packets refused, by reason",
			   counter->name + 5, value);
	else if (switch_passed(i))
		put_reason(scope, "passed",
			   "gradients that the PS must add, by reason",
			   counter->name, value);
	else if (!strcmp(counter->name, "bytes_in"))
		put_counter(scope, "in_bytes", counter->help, value);
	else if (!strcmp(counter->name, "bytes_out"))
		put_counter(scope, "out_bytes", counter->help, value);
	else
		put_counter(scope, counter->name, counter->help, value);
}

static void put_switch_job(struct metrics *all, const struct sw_job_view *job)
{
	const uint64_t *value = (const uint64_t *)&job->counters;
	struct scope scope = { all, "atp_switch", { "" } };
	unsigned int i;

	label_number(&scope.labels, "job_id", job->id);
	put_gauge(&scope, "atp_switch_job_occupied_aggregators",
		  "aggregators that the job occupies", job->state.occupied);
	put_gauge(&scope, "atp_switch_job_most_aggregators",
		  "most that it ever occupied", job->state.most);
	put_gauge(&scope, "atp_switch_job_quota_aggregators",
		  "most that it may occupy", job->job.quota);
	for (i = 0; i < n_switch_counters; i++)
		put_switch_counter(&scope, i, value[i]);
}

static void put_port(struct metrics *all, const struct snapshot_port *port)
{
	struct scope scope = { all, "atp_switch_port", { "" } };

	label_text(&scope.labels, "dev", port->name);
	put_counter(&scope, "sent_packets", "packets sent out of the port",
		    port->port.sent);
	put_counter(&scope, "marked_packets",
		    "packets sent with a congestion mark", port->port.marked);
}

static void put_switch(struct metrics *all, const struct snapshot *now)
{
	struct scope scope = { all, "atp_switch", { "" } };
	const uint64_t *other = (const uint64_t *)&now->others;
	unsigned int i;

	put_gauge(&scope, "atp_switch_aggregators",
		  "fragments that can be added at the same time",
		  now->settings.aggregators);
	put_gauge(&scope, "atp_switch_occupied_aggregators",
		  "aggregators that hold a sum", now->occupied);
	for (i = 0; i < n_switch_others; i++)
		put_reason(&scope, "ignored",
			   "packets to the ATP port that are no job's data",
			   switch_others[i].name, other[i]);
	for (i = 0; i < now->switch_jobs; i++)
		put_switch_job(all, &now->switch_job[i]);
	for (i = 0; i < now->ports; i++)
		put_port(all, &now->port[i]);
}

static void put_all(struct metrics *all, const struct snapshot *now)
{
	unsigned int i;

	if (now->has_module)
		put_family(all, &now->family);
	for (i = 0; i < now->jobs.count; i++)
		put_job(all, &now->jobs.job[i]);
	for (i = 0; i < now->socks.count; i++)
		put_sock(all, &now->socks.sock[i]);
	if (now->has_switch)
		put_switch(all, now);
}

static int cannot_write(const char *path)
{
	fprintf(stderr, "Error: %s: %s.\n", path, strerror(errno));
	return -1;
}

/*
 * A collector that looks at any time must find all of it: it is written under
 * another name, which ends in no suffix that it looks for.
 */
static int write_file(const struct metrics *all, const char *path)
{
	char temp[PATH_MAX];
	FILE *to = NULL;
	int fd, err;

	if (snprintf(temp, sizeof(temp), "%s.XXXXXX", path) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return cannot_write(path);
	}
	fd = mkstemp(temp);
	if (fd >= 0)
		to = fdopen(fd, "w");
	if (!to)
		return cannot_write(path);
	/* collectors are other users */
	err = metrics_write(all, to) || fchmod(fd, 0644) || fflush(to) ||
	      fsync(fd) || rename(temp, path);
	if (err) {
		cannot_write(path);
		unlink(temp);
	}
	fclose(to);
	return err ? -1 : 0;
}

static int write_all(struct metrics *all, const char *path)
{
	int err = path ? write_file(all, path) : metrics_write(all, stdout);

	metrics_free(all);
	return err;
}

int stats_prometheus(int argc, char **argv)
{
	struct metrics all = { 0 };
	const char *path = NULL;
	struct snapshot now;
	static struct nl nl;
	int err;

	for (; argc > 0; argc--, argv++) {
		if (strcmp(*argv, "file"))
			invarg("expected \"file\"", *argv);
		NEXT_ARG();
		if (path)
			duparg("file", *argv);
		path = *argv;
	}
	err = snapshot_open(&nl);
	if (err)
		return err;
	err = snapshot_take(&nl, &now);
	if (!err)
		put_all(&all, &now);
	snapshot_free(&now);
	nl_close(&nl);
	return err ? err : write_all(&all, path);
}
