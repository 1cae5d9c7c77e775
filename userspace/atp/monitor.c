// SPDX-License-Identifier: GPL-2.0
/* atp monitor: events as they happen, in JSON one object per line. */
#include <linux/atp_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include "atp.h"
#include "job.h"
#include "netlink_gen.h"
#include "nl.h"
#include "nlparse.h"
#include "print.h"
#include "reply.h"

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp monitor [ job ID ]\n"
		"       atp monitor help\n");
}

static void print_time(void)
{
	struct timeval now;
	char text[64];
	struct tm tm;

	gettimeofday(&now, NULL);
	if (!localtime_r(&now.tv_sec, &tm))
		return;
	strftime(text, sizeof(text), timestamp_short ? "%T" : "%F %T", &tm);
	if (is_json_context()) {
		snprintf(text, sizeof(text), "%lld.%06ld",
			 (long long)now.tv_sec, (long)now.tv_usec);
		print_string(PRINT_JSON, "time", NULL, text);
	} else {
		printf("[%s.%06ld] ", text, (long)now.tv_usec);
	}
}

static bool about_run(uint32_t type)
{
	return type == ATP_EVENT_JOINED || type == ATP_EVENT_ENDED ||
	       type == ATP_EVENT_STALLED || type == ATP_EVENT_FAILED;
}

static void print_event(const struct event_reply *event)
{
	const char *name = nl_enum_name(&atp_enum_event, event->type);
	char number[16];

	if (!name) {
		snprintf(number, sizeof(number), "%u", event->type);
		name = number;
	}
	if (timestamp)
		print_time();
	print_string(PRINT_ANY, "event", "%s", name);
	print_field("job", event->job);
	if (event->has_rank)
		print_field("rank", event->rank);
	if (!about_run(event->type))
		return;
	print_field("epoch", event->epoch);
	if (event->type != ATP_EVENT_JOINED)
		print_field("fragment", event->sequence);
	if (event->reason)
		print_reason(event->reason);
	if (event->ranks || is_json_context())
		print_ranks("ranks", event->ranks);
}

/* Who only reads standard output must know of it, too, where that is JSON. */
static int show_lost(void)
{
	fprintf(stderr, "Some events were lost.\n");
	if (!json)
		return 0;
	new_json_obj_plain(json);
	open_json_object(NULL);
	if (timestamp)
		print_time();
	print_string(PRINT_JSON, "event", NULL, "lost");
	close_json_object();
	delete_json_obj_plain();
	fflush(stdout);
	return ferror(stdout) ? -1 : 0;
}

static int show_event(const struct nlmsghdr *nlh, void *arg)
{
	const uint32_t *job = arg;
	struct event_reply event;

	if (!nlh)
		return show_lost();
	if (event_parse(nlh, &event))
		return nl_malformed();
	if (job && *job != event.job)
		return 0;
	new_json_obj_plain(json);
	open_json_object(NULL);
	print_event(&event);
	print_text("\n");
	close_json_object();
	delete_json_obj_plain();
	fflush(stdout);
	return ferror(stdout) ? -1 : 0;
}

int do_monitor(int argc, char **argv)
{
	bool has_job = false;
	static struct nl nl;
	uint32_t id = 0;
	int err;

	if (argc && is_help(*argv)) {
		usage(stdout);
		return 0;
	}
	for (; argc > 0; argc--, argv++) {
		if (strcmp(*argv, "job"))
			invarg("expected \"job\"", *argv);
		NEXT_ARG();
		id = job_id(*argv);
		has_job = true;
	}
	err = nl_open(&nl);
	if (err)
		return err;
	err = nl_listen(&nl, show_event, has_job ? &id : NULL);
	nl_close(&nl);
	return err;
}
