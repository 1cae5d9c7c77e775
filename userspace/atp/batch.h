/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ATP_BATCH_H
#define _ATP_BATCH_H

#include <stdbool.h>

/**
 * batch() - run the commands of a file, one per line, until one fails
 * @name: of the file, or "-"
 * @force: also those behind one that fails
 * @run: runs one
 *
 * An empty line, and what follows "#", is no command.  There are no quotes.
 *
 * Return: as @run for the first command that has failed, else zero; -1 if the
 * file cannot be read.
 */
int batch(const char *name, bool force, int (*run)(int argc, char **argv));

#endif /* _ATP_BATCH_H */
