// SPDX-License-Identifier: GPL-2.0
/* atp check: what is fine here and what is not. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include "atp.h"
#include "checks.h"
#include "fetch.h"
#include "job.h"
#include "print.h"

#define LINE_LEN	256

static char about[64];
static bool something_bad;

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp check [ job ID ]\n"
		"       atp check help\n");
}

void check_about(const char *fmt, ...)
{
	va_list args;

	*about = 0;
	if (!fmt)
		return;
	va_start(args, fmt);
	vsnprintf(about, sizeof(about), fmt, args);
	va_end(args);
}

static void __attribute__((format(printf, 4, 0)))
print_line(const char *state, const char *what, const char *mend,
	   const char *fmt, va_list args)
{
	char found[LINE_LEN];

	vsnprintf(found, sizeof(found), fmt, args);
	open_json_object(NULL);
	print_string(PRINT_ANY, "state", "%-4s ", state);
	if (*about)
		print_string(PRINT_ANY, "about", "%s: ", about);
	print_string(PRINT_ANY, "what", "%s", what);
	print_string(PRINT_ANY, "found", ": %s", found);
	if (mend)
		print_string(PRINT_ANY, "mend", ": %s", mend);
	print_text("\n");
	close_json_object();
	/* some lines take a while */
	fflush(stdout);
}

void check_ok(const char *what, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_line("ok", what, NULL, fmt, args);
	va_end(args);
}

void check_warn(const char *what, const char *mend, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_line("warn", what, mend, fmt, args);
	va_end(args);
}

void check_bad(const char *what, const char *mend, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_line("bad", what, mend, fmt, args);
	va_end(args);
	something_bad = true;
}

static int check_jobs(struct checks *c, const uint32_t *only,
		      unsigned int *jobs)
{
	struct job_list list;
	unsigned int i;
	int err;

	err = job_fetch(&c->nl, only, only ? *only : 0, &list);
	if (err && only && c->nl.error == -ENOENT)
		err = 0;
	for (i = 0; !err && i < list.count; i++)
		check_job(&list.job[i]);
	*jobs = list.count;
	check_about(NULL);
	job_list_free(&list);
	return err;
}

static int check_all(const uint32_t *only)
{
	static struct checks c;
	unsigned int jobs = 0;
	bool has_switch;
	int err = 0;

	check_machine(&c);
	if (c.module) {
		err = check_jobs(&c, only, &jobs);
		nl_close(&c.nl);
	}
	has_switch = check_switch(only);
	check_about(NULL);
	if (!err && only && !jobs && !has_switch)
		check_bad("jobs", "atp job add, in the same words on all hosts",
			  "there is no job %u here", *only);
	else if (!err && !jobs && !has_switch && c.module)
		check_warn("jobs",
			   "atp job add; or atp switch check and attach dev IF...",
			   "there is neither a job nor a switch here");
	return err;
}

int do_check(int argc, char **argv)
{
	bool has_job = false;
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
		if (has_job)
			duparg("job", *argv);
		id = job_id(*argv);
		has_job = true;
	}
	something_bad = false;
	new_json_obj(json);
	err = check_all(has_job ? &id : NULL);
	delete_json_obj();
	if (err)
		return err;
	return something_bad ? -1 : 0;
}
