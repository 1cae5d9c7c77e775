/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of iproute2's utils.h that the objects use, for atp without
 * iproute2.  In a build of iproute2 its own header is found in this place.
 */
#ifndef _ATP_COMPAT_UTILS_H
#define _ATP_COMPAT_UTILS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif

/* Options that come before the object */
extern int preferred_family;
extern int show_stats;
extern int json;
extern int pretty;
extern int timestamp;
extern int timestamp_short;

/* Go on to the next argument: it must be there */
#define NEXT_ARG() do {							\
	argv++;								\
	if (--argc <= 0)						\
		incomplete_command();					\
} while (0)

/* Is there another one */
#define NEXT_ARG_OK()		(argc > 1)

/* Go on to the next argument, there may be none */
#define NEXT_ARG_FWD() do {						\
	argv++;								\
	argc--;								\
} while (0)

/* What is wrong with the command line; these end the program */
void incomplete_command(void) __attribute__((noreturn));
void missarg(const char *key) __attribute__((noreturn));
void invarg(const char *msg, const char *arg) __attribute__((noreturn));
void duparg(const char *key, const char *arg) __attribute__((noreturn));

/* Return: false if @prefix abbreviates @string, as strcmp() would */
bool matches(const char *prefix, const char *string);

/* Return: 0, or -1 if @arg is no number of this size */
int get_u32(__u32 *val, const char *arg, int base);

#endif /* _ATP_COMPAT_UTILS_H */
