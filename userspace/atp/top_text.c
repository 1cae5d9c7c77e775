// SPDX-License-Identifier: GPL-2.0
/* atp top as a table. */
#include <inttypes.h>
#include <linux/atp_netlink.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "counters.h"
#include "print.h"
#include "top.h"
#include "units.h"

#define SIZE_LEN	24

/* "12.3MB", in powers of ten as links have them */
static const char *size_text(uint64_t bytes, char buf[SIZE_LEN])
{
	static const char units[] = " kMGTPE";
	unsigned int unit = 0;
	uint64_t tenths;

	if (bytes < 1000) {
		snprintf(buf, SIZE_LEN, "%" PRIu64 "B", bytes);
		return buf;
	}
	while (bytes >= 1000000) {
		bytes /= 1000;
		unit++;
	}
	tenths = bytes / 100;
	snprintf(buf, SIZE_LEN, "%" PRIu64 ".%" PRIu64 "%cB", tenths / 10,
		 tenths % 10, units[unit + 1]);
	return buf;
}

static void host_text(const struct top *top, FILE *to)
{
	char text[16] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(text, sizeof(text), "%T", &tm);
	fprintf(to, "atp top %s: ", text);
	if (!top->now.has_module) {
		fprintf(to, "the module is not loaded\n");
		return;
	}
	fprintf(to, "packets in %" PRIu64 "/s out %" PRIu64 "/s refused %"
		PRIu64 "/s\n", top_host_rate(top, "in_packets"),
		top_host_rate(top, "out_packets"), top_drop_rate(top));
}

static const char *role_text(uint32_t role)
{
	switch (role) {
	case ATP_ROLE_WORKER:
		return "worker";
	case ATP_ROLE_PS:
		return "ps";
	case ATP_ROLE_WORKER | ATP_ROLE_PS:
		return "both";
	default:
		return "none";
	}
}

static void waits_text(uint32_t ranks, bool server, uint32_t ms, FILE *to)
{
	char list[RANKS_LEN], since[DURATION_LEN];

	if (ranks)
		fprintf(to, " %s", ranks_text(ranks, list));
	if (server)
		fprintf(to, " server");
	if ((ranks || server) && ms)
		fprintf(to, " for %s", duration_text(ms * 1000ULL, since));
}

static void job_text(const struct top *top, const struct job_reply *job,
		     FILE *to)
{
	char joined[16] = "-", size[SIZE_LEN];
	struct top_job rate;

	top_job(top, job, &rate);
	if (job->has_ps)
		snprintf(joined, sizeof(joined), "%d",
			 __builtin_popcount(job->joined));
	fprintf(to, "%10u %-6s %4s/%-2u %-4s %8s/s %9" PRIu64 " %8" PRIu64
		" %8" PRIu64 " %8" PRIu64 " %8" PRIu64, job->id,
		role_text(job->role), joined, job->workers,
		!job->has_ps ? "-" : job->running ? "run" : "idle",
		size_text(rate.goodput, size), rate.completed,
		top_job_rate(top, job, "resent"),
		top_job_rate(top, job, "raw") +
		top_job_rate(top, job, "worker_raw"),
		top_job_rate(top, job, "collisions"),
		top_job_rate(top, job, "ecn") +
		top_job_rate(top, job, "worker_ecn"));
	waits_text(rate.waiting, rate.server, rate.stall, to);
	fprintf(to, "\n");
}

static void sock_text(const struct top *top, const struct sock_reply *sock,
		      FILE *to)
{
	const struct atp_info *info = &sock->info;
	char srtt[DURATION_LEN], size[SIZE_LEN];
	struct top_sock rate;
	bool waits;

	top_sock(top, sock, &rate);
	waits = info->state == ATP_JOINED && info->una != info->nxt;
	fprintf(to, "%10u %4u %-8s %8s/s %5u %8u %9s %6u %8" PRIu64
		" %8llu %6llu %6llu", sock->job, sock->rank,
		sock_state_text(info->state), size_text(rate.goodput, size),
		info->cwnd, info->ssthresh, duration_text(info->srtt_us, srtt),
		info->nxt - info->una, rate.resent, info->timeouts, info->ecn,
		info->raw);
	waits_text(waits ? info->ranks : 0,
		   waits && info->flags & ATP_INFO_SERVER, 0, to);
	fprintf(to, "\n");
}

static void switch_job_text(const struct top *top,
			    const struct sw_job_view *job, FILE *to)
{
	const uint64_t *now = (const uint64_t *)&job->counters;
	const struct sw_counters *old = top_switch_before(top, job->id);
	const uint64_t *before = (const uint64_t *)old;
	uint64_t rate, passed = 0;
	unsigned int i;

	for (i = 0; i < n_switch_counters; i++)
		if (switch_passed(i))
			passed += top_per_second(top, now[i], before[i]);
	fprintf(to, "%10u %8llu %8llu %8u %9" PRIu64 " %9" PRIu64, job->id,
		job->state.occupied, job->state.most, job->job.quota,
		top_per_second(top, job->counters.aggregated,
			       old->aggregated), passed);
	for (i = 0; i < n_switch_counters; i++) {
		if (!switch_passed(i) && strncmp(switch_counters[i].name,
						 "drop_", 5))
			continue;
		rate = top_per_second(top, now[i], before[i]);
		if (rate)
			fprintf(to, " %s %" PRIu64, switch_counters[i].name,
				rate);
	}
	fprintf(to, "\n");
}

static void switch_text(const struct top *top, FILE *to)
{
	const struct snapshot *now = &top->now;
	unsigned int i;

	fprintf(to, "\nswitch: %u of %u aggregators hold a sum\n",
		now->occupied, now->settings.aggregators);
	fprintf(to, "%10s %8s %8s %8s %9s %9s %s\n", "JOB", "OCCUPIED",
		"MOST", "QUOTA", "ADDED/S", "PASSED/S", "REASONS/S");
	for (i = 0; i < now->switch_jobs; i++)
		if (top_wanted(top, now->switch_job[i].id))
			switch_job_text(top, &now->switch_job[i], to);
}

static void jobs_text(const struct top *top, FILE *to)
{
	const struct snapshot *now = &top->now;
	unsigned int i;

	fprintf(to, "%10s %-6s %7s %-4s %10s %9s %8s %8s %8s %8s %s\n", "JOB",
		"ROLE", "JOINED", "", "GOODPUT", "FRAGS/S", "RESENT/S",
		"RAW/S", "COLL/S", "ECN/S", "WAITS FOR");
	for (i = 0; i < now->jobs.count; i++)
		if (top_wanted(top, now->jobs.job[i].id))
			job_text(top, &now->jobs.job[i], to);
	if (now->socks.count)
		fprintf(to, "\n%10s %4s %-8s %10s %5s %8s %9s %6s %8s %8s %6s %6s %s\n",
			"JOB", "RANK", "STATE", "GOODPUT", "CWND", "SSTHRESH",
			"SRTT", "FLIGHT", "RESENT/S", "TIMEOUTS", "ECN", "RAW",
			"WAITS FOR");
	for (i = 0; i < now->socks.count; i++)
		if (top_wanted(top, now->socks.sock[i].job))
			sock_text(top, &now->socks.sock[i], to);
}

void top_text(const struct top *top, FILE *to)
{
	host_text(top, to);
	if (top->now.has_module)
		jobs_text(top, to);
	if (top->now.has_switch)
		switch_text(top, to);
}
