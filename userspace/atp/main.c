// SPDX-License-Identifier: GPL-2.0
/* atp by itself: the options that ip(8) takes before its objects. */
#include <sys/socket.h>
#include "atp.h"
#include "batch.h"
#include "netns.h"

#ifndef ATP_TOOL_VERSION
#define ATP_TOOL_VERSION	"0.1"
#endif

/* A batch goes on behind a command that fails. */
static int force;

static const char *option_arg(int *argc, char ***argv)
{
	if (*argc < 2)
		incomplete_command();
	(*argc)--;
	(*argv)++;
	return **argv;
}

static int show_version(void)
{
	printf("atp " ATP_TOOL_VERSION "\n");
	return 0;
}

static int show_help(void)
{
	return do_atp(1, &(char *){ "help" });
}

/* Options that set a variable; the first that a word abbreviates counts. */
static bool option_flag(const char *word)
{
	static const struct {
		const char *name;
		int *flag;
		int value;
	} flags[] = {
		{ "4",		&preferred_family,	AF_INET },
		{ "6",		&preferred_family,	AF_INET6 },
		{ "ts",		&timestamp_short,	1 },
		{ "tshort",	&timestamp_short,	1 },
		{ "timestamp",	&timestamp,		1 },
		{ "json",	&json,			1 },
		{ "pretty",	&pretty,		1 },
		{ "stats",	&show_stats,		1 },
		{ "statistics",	&show_stats,		1 },
		{ "force",	&force,			1 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		if (matches(word, flags[i].name))
			continue;
		*flags[i].flag = flags[i].value;
		return true;
	}
	return false;
}

/* Run the command behind the options.  Return: as the objects do */
static int run(int argc, char **argv)
{
	const char *word, *file = NULL;

	for (; argc > 0 && **argv == '-'; argc--, argv++) {
		word = *argv + 1;
		if (*word == '-')
			word++;
		if (option_flag(word))
			continue;
		if (!matches(word, "Version"))
			return show_version();
		if (!matches(word, "help"))
			return show_help();
		if (!matches(word, "batch")) {
			file = option_arg(&argc, &argv);
			continue;
		}
		if (matches(word, "netns")) {
			fprintf(stderr,
				"Error: \"%s\" is unknown; try \"atp help\".\n",
				*argv);
			return -1;
		}
		if (netns_enter(option_arg(&argc, &argv)))
			return -1;
	}
	timestamp |= timestamp_short;
	return file ? batch(file, force, do_atp) : do_atp(argc, argv);
}

int main(int argc, char **argv)
{
	int err = run(argc - 1, argv + 1);

	if (fflush(stdout) || ferror(stdout)) {
		perror("Error: standard output");
		return 1;
	}
	return -err;
}
