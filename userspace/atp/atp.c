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
	{ "help",	do_help },
};

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp [ OPTIONS ] OBJECT { COMMAND | help }\n"
		"       ip [ OPTIONS ] atp OBJECT { COMMAND | help }\n"
		"OBJECT := { job | sock | stats | switch | top | monitor | check |\n"
		"            help }\n"
		"OPTIONS := { -j[son] | -p[retty] | -s[tats] | -t[imestamp] |\n"
		"             -n[etns] NAME | -4 | -6 | -h[elp] | -V[ersion] }\n");
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
		if (!matches(*argv, objects[i].name))
			return objects[i].fn(argc - 1, argv + 1);
	return unknown_command("", *argv);
}
