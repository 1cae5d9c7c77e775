// SPDX-License-Identifier: GPL-2.0
/* atp -batch: commands from a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "batch.h"

/* More words than any command has: 32 workers with device and address each */
#define BATCH_WORDS	1024

/* Return: number of words, which @line is cut into, or -1 */
static int cut(char *line, char **words)
{
	static const char blank[] = " \t\n";
	int count = 0;
	char *word;

	line[strcspn(line, "#")] = '\0';
	for (word = strtok(line, blank); word; word = strtok(NULL, blank)) {
		if (count == BATCH_WORDS)
			return -1;
		words[count++] = word;
	}
	return count;
}

/* A command may end its process, and leaves options behind: give each one its
 * own.  Return: its exit status.
 */
static int run_apart(int (*run)(int argc, char **argv), int argc, char **argv)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		status = -run(argc, argv);
		exit(fflush(stdout) || ferror(stdout) ? 1 : status);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		perror("Error: cannot start a command");
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_line(char *line, int (*run)(int argc, char **argv))
{
	char *words[BATCH_WORDS];
	int count = cut(line, words);

	if (count < 0) {
		fprintf(stderr, "Error: too many words\n");
		return 1;
	}
	return count ? run_apart(run, count, words) : 0;
}

static int run_lines(FILE *file, const char *name, bool force,
		     int (*run)(int argc, char **argv))
{
	int number = 0, status = 0, failed;
	char *line = NULL;
	size_t size = 0;

	while ((force || !status) && getline(&line, &size, file) >= 0) {
		number++;
		failed = run_line(line, run);
		if (failed)
			fprintf(stderr, "Command failed %s:%d\n", name, number);
		if (!status)
			status = failed;
	}
	free(line);
	return -status;
}

int batch(const char *name, bool force, int (*run)(int argc, char **argv))
{
	FILE *file = strcmp(name, "-") ? fopen(name, "re") : stdin;
	int err;

	if (!file) {
		fprintf(stderr, "Error: cannot open \"%s\": %s\n", name,
			strerror(errno));
		return -1;
	}
	/* What it had read beyond a line, the exit of a command's process would
	 * give back to the file: it would be read again.
	 */
	setvbuf(file, NULL, _IONBF, 0);
	err = run_lines(file, name, force, run);
	if (ferror(file)) {
		fprintf(stderr, "Error: cannot read \"%s\"\n", name);
		err = -1;
	}
	if (file != stdin)
		fclose(file);
	return err;
}
