/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ATP_BATCH_H
#define _ATP_BATCH_H

/**
 * batch() - run the commands of a file, one per line, until one fails
 * @name: of the file, or "-"
 * @run: runs one
 *
 * An empty line, and what follows "#", is no command.  There are no quotes.
 *
 * Return: as @run for the last command; -1 if the file cannot be read.
 */
int batch(const char *name, int (*run)(int argc, char **argv));

#endif /* _ATP_BATCH_H */
