// SPDX-License-Identifier: GPL-2.0
/* atp top for programs: an object for each interval, on a line. */
#include <stdio.h>
#include <string.h>
#include "counters.h"
#include "print.h"
#include "top.h"
#include "utils.h"

static void job_json(const struct top *top, const struct job_reply *job)
{
	static const char * const rates[] = {
		"sent", "resent", "raw", "worker_raw", "collisions", "ecn",
		"worker_ecn", "resends", "switch_fragments", "ps_fragments",
	};
	struct top_job rate;
	unsigned int i;

	top_job(top, job, &rate);
	open_json_object(NULL);
	print_uint(PRINT_JSON, "id", NULL, job->id);
	print_uint(PRINT_JSON, "workers", NULL, job->workers);
	print_uint(PRINT_JSON, "sockets", NULL, job->sockets);
	print_uint(PRINT_JSON, "fragment", NULL, job->fragment);
	if (job->has_ps) {
		print_ranks("joined", job->joined);
		print_bool(PRINT_JSON, "running", NULL, job->running);
		print_uint(PRINT_JSON, "stall_ms", NULL, rate.stall);
	}
	print_u64(PRINT_JSON, "goodput_Bps", NULL, rate.goodput);
	print_ranks("waiting", rate.waiting);
	print_bool(PRINT_JSON, "waiting_server", NULL, rate.server);
	open_json_object("per_second");
	print_u64(PRINT_JSON, "completed", NULL, rate.completed);
	for (i = 0; i < ARRAY_SIZE(rates); i++)
		print_u64(PRINT_JSON, rates[i], NULL,
			  top_job_rate(top, job, rates[i]));
	close_json_object();
	print_counters(job->counters, 0);
	close_json_object();
}

static void sock_json(const struct top *top, const struct sock_reply *sock)
{
	const struct atp_info *info = &sock->info;
	struct top_sock rate;
	unsigned int i;

	top_sock(top, sock, &rate);
	open_json_object(NULL);
	print_uint(PRINT_JSON, "job", NULL, sock->job);
	print_uint(PRINT_JSON, "rank", NULL, sock->rank);
	print_string(PRINT_JSON, "state", NULL, sock_state_text(info->state));
	print_uint(PRINT_JSON, "epoch", NULL, info->epoch);
	print_uint(PRINT_JSON, "fragment", NULL, info->fragment);
	print_uint(PRINT_JSON, "cwnd", NULL, info->cwnd);
	print_uint(PRINT_JSON, "ssthresh", NULL, info->ssthresh);
	print_uint(PRINT_JSON, "srtt_us", NULL, info->srtt_us);
	print_uint(PRINT_JSON, "una", NULL, info->una);
	print_uint(PRINT_JSON, "nxt", NULL, info->nxt);
	print_ranks("ranks", info->ranks);
	print_u64(PRINT_JSON, "goodput_Bps", NULL, rate.goodput);
	open_json_object("per_second");
	print_u64(PRINT_JSON, "answered", NULL, rate.answered);
	print_u64(PRINT_JSON, "sent", NULL, rate.sent);
	print_u64(PRINT_JSON, "resent", NULL, rate.resent);
	close_json_object();
	open_json_object("counters");
	for (i = 0; i < SOCK_COUNTERS; i++)
		print_u64(PRINT_JSON, sock_counters[i].name, NULL,
			  sock_counter_get(info, i));
	close_json_object();
	close_json_object();
}

static void switch_job_json(const struct top *top,
			    const struct sw_job_view *job)
{
	const uint64_t *now = (const uint64_t *)&job->counters;
	const uint64_t *before =
		(const uint64_t *)top_switch_before(top, job->id);
	unsigned int i;

	open_json_object(NULL);
	print_uint(PRINT_JSON, "id", NULL, job->id);
	print_u64(PRINT_JSON, "occupied", NULL, job->state.occupied);
	print_u64(PRINT_JSON, "most", NULL, job->state.most);
	print_uint(PRINT_JSON, "quota", NULL, job->job.quota);
	open_json_object("per_second");
	for (i = 0; i < n_switch_counters; i++)
		print_u64(PRINT_JSON, switch_counters[i].name, NULL,
			  top_per_second(top, now[i], before[i]));
	close_json_object();
	open_json_object("counters");
	for (i = 0; i < n_switch_counters; i++)
		print_u64(PRINT_JSON, switch_counters[i].name, NULL, now[i]);
	close_json_object();
	close_json_object();
}

static void switch_json(const struct top *top)
{
	const struct snapshot *now = &top->now;
	unsigned int i;

	open_json_object("switch");
	print_uint(PRINT_JSON, "aggregators", NULL, now->settings.aggregators);
	print_uint(PRINT_JSON, "occupied", NULL, now->occupied);
	open_json_array(PRINT_JSON, "jobs");
	for (i = 0; i < now->switch_jobs; i++)
		if (top_wanted(top, now->switch_job[i].id))
			switch_job_json(top, &now->switch_job[i]);
	close_json_array(PRINT_JSON, NULL);
	close_json_object();
}

void top_json(const struct top *top)
{
	const struct snapshot *now = &top->now;
	unsigned int i;

	new_json_obj_plain(1);
	open_json_object(NULL);
	print_u64(PRINT_JSON, "interval_ns", NULL, top_interval(top));
	open_json_object("per_second");
	print_u64(PRINT_JSON, "in_packets", NULL,
		  top_host_rate(top, "in_packets"));
	print_u64(PRINT_JSON, "out_packets", NULL,
		  top_host_rate(top, "out_packets"));
	print_u64(PRINT_JSON, "drops", NULL, top_drop_rate(top));
	close_json_object();
	open_json_array(PRINT_JSON, "jobs");
	for (i = 0; i < now->jobs.count; i++)
		if (top_wanted(top, now->jobs.job[i].id))
			job_json(top, &now->jobs.job[i]);
	close_json_array(PRINT_JSON, NULL);
	open_json_array(PRINT_JSON, "sockets");
	for (i = 0; i < now->socks.count; i++)
		if (top_wanted(top, now->socks.sock[i].job))
			sock_json(top, &now->socks.sock[i]);
	close_json_array(PRINT_JSON, NULL);
	if (now->has_switch)
		switch_json(top);
	close_json_object();
	delete_json_obj_plain();
}
