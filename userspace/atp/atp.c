// SPDX-License-Identifier: GPL-2.0
/* From the name of an object to its function. */
#include <stdlib.h>
#include <string.h>
#include "atp.h"
#include "switch.h"

/* libatpswitch's command line speaks in exit codes */
static int do_switch_object(int argc, char **argv)
{
	return -do_switch(argc, argv);
}

static int do_help(int argc, char **argv);

static const struct {
	const char *name;
	int (*fn)(int argc, char **argv);
} objects[] = {
	{ "job",	do_job },
	{ "sock",	do_sock },
	{ "stats",	do_stats },
	{ "switch",	do_switch_object },
	{ "top",	do_top },
	{ "monitor",	do_monitor },
	{ "check",	do_check },
	{ "perf",	do_perf },
	{ "help",	do_help },
};

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp [ OPTIONS ] OBJECT { COMMAND | help }\n"
		"       ip [ OPTIONS ] atp OBJECT { COMMAND | help }\n"
		"OBJECT := { job | sock | stats | switch | top | monitor | check |\n"
		"            perf | help }\n"
		"OPTIONS := { -j[son] | -p[retty] | -s[tats] | -t[imestamp] |\n"
		"             -n[etns] NAME | -b[atch] FILE | -f[orce] | -4 | -6 |\n"
		"             -h[elp] | -V[ersion] }\n");
}

static int do_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	usage(stdout);
	return 0;
}

bool is_help(const char *word)
{
	return !matches(word, "help") || !strcmp(word, "-h") ||
	       !strcmp(word, "--help");
}

int unknown_command(const char *object, const char *word)
{
	fprintf(stderr, "Error: \"%s\" is no command; try \"atp %s%shelp\".\n",
		word, object, *object ? " " : "");
	return -1;
}

/* Behind the object they would be taken for a misspelt word of its own. */
static void no_options(int argc, char **argv)
{
	static const char *const options[] = {
		"json", "pretty", "stats", "timestamp", "netns",
	};
	const char *word;
	unsigned int i;

	for (; argc > 0; argc--, argv++) {
		if (**argv != '-')
			continue;
		word = *argv + ((*argv)[1] == '-' ? 2 : 1);
		for (i = 0; *word && i < ARRAY_SIZE(options); i++)
			if (!matches(word, options[i]))
				invarg("options come first, before the object",
				       *argv);
	}
}

int do_atp(int argc, char **argv)
{
	unsigned int i;

	if (argc < 1) {
		usage(stderr);
		return -1;
	}
	if (is_help(*argv))
		return do_help(0, NULL);
	for (i = 0; i < ARRAY_SIZE(objects); i++)
		if (!matches(*argv, objects[i].name)) {
			no_options(argc - 1, argv + 1);
			return objects[i].fn(argc - 1, argv + 1);
		}
	return unknown_command("", *argv);
}
