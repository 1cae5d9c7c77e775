// SPDX-License-Identifier: GPL-2.0
/*
 * atp job stall: who is waited for.
 *
 * The PS knows for sure.  Where it is another host, the worker sockets of this
 * one know what the PS has told them last, and when that was.
 */
#include <errno.h>
#include <linux/atp_netlink.h>
#include "atp.h"
#include "fetch.h"
#include "job.h"
#include "print.h"

/* @silence: of the PS, in milliseconds, if it is waited for, too */
static void print_waiting(const struct job_reply *job, uint32_t ranks,
			  bool server, uint32_t silence)
{
	unsigned int rank;

	open_json_array(PRINT_JSON, "waiting");
	for (rank = 0; rank < job->workers; rank++) {
		if (!(ranks >> rank & 1))
			continue;
		open_json_object(NULL);
		print_uint(PRINT_ANY, "rank", "    waits for worker %u", rank);
		print_host(&job->worker[rank]);
		print_text("\n");
		close_json_object();
	}
	close_json_array(PRINT_JSON, NULL);
	if (server)
		print_text("    waits for the server at the PS\n");
	print_bool(PRINT_JSON, "waiting_server", NULL, server);
	if (silence) {
		print_text("    waits for the PS");
		print_ms("silent_ms", "silent", silence);
		print_text("\n");
	}
	print_bool(PRINT_JSON, "waiting_ps", NULL, silence);
}

static void print_head(const struct job_reply *job, const char *state,
		       const char *seen_by)
{
	print_uint(PRINT_ANY, "id", "job %u", job->id);
	print_string(PRINT_ANY, "state", " %s", state);
	print_string(PRINT_JSON, "seen_by", NULL, seen_by);
}

/* Ranks that a job has. */
static uint32_t all_ranks(const struct job_reply *job)
{
	return job->workers < 32 ? (1U << job->workers) - 1 : UINT32_MAX;
}

static void stall_ps(const struct job_reply *job)
{
	uint32_t missing = all_ranks(job) & ~job->joined;
	bool unserved = job->server && !job->server_joined;

	if (!(job->running ? job->waiting || job->server_waiting :
	      job->joined && (missing || unserved)))
		return;
	open_json_object(NULL);
	if (job->running) {
		print_head(job, "stalled", "ps");
		print_field("fragment", job->frontier);
		print_ms("stall_ms", "since", job->stall);
	} else {
		print_head(job, "joining", "ps");
	}
	print_text("\n");
	print_waiting(job, job->running ? job->waiting : missing,
		      job->running ? job->server_waiting : unserved, 0);
	close_json_object();
}

static void stall_sock(const struct job_reply *job,
		       const struct sock_reply *sock)
{
	const struct atp_info *info = &sock->info;
	bool joining = info->state == ATP_JOINING;
	uint32_t missing = info->ranks;
	bool server = info->flags & ATP_INFO_SERVER;
	/* one that lives is heard of several times as often */
	bool silent = sock->silence && sock->silence >= job->timeout / 2;

	/* a joining worker has heard who is there, if anything */
	if (joining && missing)
		missing = all_ranks(job) & ~missing;
	if (!joining && (info->state != ATP_JOINED || info->una == info->nxt ||
			 !(info->ranks || server || silent)))
		return;
	open_json_object(NULL);
	print_head(job, joining ? "joining" : "stalled", "worker");
	print_uint(PRINT_ANY, "rank", " seen by worker %u", sock->rank);
	if (!joining)
		print_field("fragment", info->una);
	print_text("\n");
	print_waiting(job, missing, server, silent ? sock->silence : 0);
	close_json_object();
}

static void print_stalls(const struct job_list *jobs,
			 const struct sock_list *socks)
{
	const struct job_reply *job;
	unsigned int i, j;

	new_json_obj(json);
	for (i = 0; i < jobs->count; i++) {
		job = &jobs->job[i];
		if (job->has_ps) {
			stall_ps(job);
			continue;
		}
		for (j = 0; j < socks->count; j++)
			if (socks->sock[j].job == job->id)
				stall_sock(job, &socks->sock[j]);
	}
	delete_json_obj();
}

/* Is there a job whose PS is another host? */
static bool need_socks(const struct job_list *jobs)
{
	unsigned int i;

	for (i = 0; i < jobs->count; i++)
		if (!jobs->job[i].has_ps && jobs->job[i].sockets)
			return true;
	return false;
}

int job_stall(int argc, char **argv)
{
	struct sock_list socks = { 0 };
	struct job_list jobs;
	static struct nl nl;
	uint32_t id = 0;
	bool one;
	int err;

	one = job_optional_id(argc, argv, &id);
	err = nl_open(&nl);
	if (err)
		return err;
	err = job_fetch(&nl, one, id, &jobs);
	if (!err && need_socks(&jobs)) {
		err = sock_fetch(&nl, &socks);
		if (nl.error == -EPERM) {
			fprintf(stderr,
				"What the workers know is not shown.\n");
			err = 0;
		}
	}
	if (!err)
		print_stalls(&jobs, &socks);
	sock_list_free(&socks);
	job_list_free(&jobs);
	nl_close(&nl);
	return err;
}
