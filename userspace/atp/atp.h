/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The objects of atp(8).  Each takes the words behind its name and returns 0,
 * -1 for something wrong here or -2 for a refusal by the kernel, which is what
 * ip(8) wants of its own.
 */
#ifndef _ATP_TOOL_H
#define _ATP_TOOL_H

#include <stdbool.h>
#include <stdio.h>
#include "utils.h"

int do_atp(int argc, char **argv);
int do_job(int argc, char **argv);
int do_sock(int argc, char **argv);
int do_stats(int argc, char **argv);
int do_top(int argc, char **argv);
int do_monitor(int argc, char **argv);
int do_check(int argc, char **argv);
int do_perf(int argc, char **argv);

/* Is @word help, or an abbreviation? */
bool is_help(const char *word);

/* Say that @word is no command.  Return: -1 */
int unknown_command(const char *object, const char *word);

#endif /* _ATP_TOOL_H */
