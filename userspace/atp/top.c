// SPDX-License-Identifier: GPL-2.0
/* atp top: who works, how fast, and who is waited for, again and again. */
#include <ctype.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "atp.h"
#include "job.h"
#include "top.h"
#include "units.h"

/**
 * struct plan - what the user wants
 * @batch: lines on standard output instead of a terminal
 * @interval: milliseconds
 * @count: so many times, zero for ever
 */
struct plan {
	bool		batch;
	uint32_t	interval;
	uint32_t	count;
};

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp top [ batch ] [ interval TIME ] [ count N ] [ [ job ] ID ]\n"
		"       atp top help\n");
}

static void parse(int argc, char **argv, struct plan *plan, struct top *top)
{
	__u32 count;

	for (; argc > 0; argc--, argv++) {
		if (!strcmp(*argv, "batch") || !strcmp(*argv, "-b") ||
		    !strcmp(*argv, "--batch")) {
			plan->batch = true;
		} else if (!strcmp(*argv, "interval")) {
			NEXT_ARG();
			if (duration_parse(*argv, &plan->interval) ||
			    !plan->interval || plan->interval > INT_MAX)
				invarg("not an interval", *argv);
		} else if (!strcmp(*argv, "count")) {
			NEXT_ARG();
			if (get_u32(&count, *argv, 0) || !count)
				invarg("not a count", *argv);
			plan->count = count;
		} else if (!strcmp(*argv, "job") || isdigit(**argv)) {
			if (!isdigit(**argv))
				NEXT_ARG();
			top->job = job_id(*argv);
			top->one = true;
		} else {
			invarg("expected \"batch\", \"interval\", \"count\", \"job\" or its number",
			       *argv);
		}
	}
}

/* The end of an interval is the begin of the next. */
static int next(struct nl *nl, struct top *top)
{
	snapshot_free(&top->before);
	top->before = top->now;
	return snapshot_take(nl, &top->now);
}

/* Whoever reads it may have gone. */
static int print(const struct top *top)
{
	if (json)
		top_json(top);
	else
		top_text(top, stdout);
	fflush(stdout);
	return ferror(stdout) ? -1 : 0;
}

static int run_batch(struct nl *nl, const struct plan *plan, struct top *top)
{
	uint32_t i;
	int err;

	for (i = 0; !plan->count || i < plan->count; i++) {
		if (i && !json)
			printf("\n");
		poll(NULL, 0, plan->interval);
		err = next(nl, top);
		if (!err)
			err = print(top);
		if (err)
			return err;
	}
	return 0;
}

static int run_screen(struct nl *nl, const struct plan *plan, struct top *top)
{
	uint32_t i;
	int err;

	if (top_screen_open()) {
		fprintf(stderr,
			"Error: the terminal cannot be used; try \"atp top batch\".\n");
		return -1;
	}
	/* at once, if only what is there */
	err = next(nl, top);
	for (i = 0; !err && (!plan->count || i < plan->count); i++) {
		top_screen_draw(top);
		if (top_screen_wait(plan->interval))
			break;
		err = next(nl, top);
	}
	top_screen_close();
	return err;
}

int do_top(int argc, char **argv)
{
	struct plan plan = { .interval = 1000 };
	struct top top = { 0 };
	static struct nl nl;
	int err;

	if (argc && is_help(*argv)) {
		usage(stdout);
		return 0;
	}
	parse(argc, argv, &plan, &top);
	err = snapshot_open(&nl);
	if (err)
		return err;
	err = snapshot_take(&nl, &top.now);
	if (!err) {
		if (plan.batch || json || !isatty(STDIN_FILENO) ||
		    !isatty(STDOUT_FILENO))
			err = run_batch(&nl, &plan, &top);
		else
			err = run_screen(&nl, &plan, &top);
	}
	snapshot_free(&top.before);
	snapshot_free(&top.now);
	nl_close(&nl);
	return err;
}
