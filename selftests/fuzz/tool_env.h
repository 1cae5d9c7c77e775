/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before every file of the tool in a fuzzer: the end of the program is
 * the end of an input, complaints are not shown, and names are not looked up.
 */
#ifndef _FUZZ_TOOL_ENV_H
#define _FUZZ_TOOL_ENV_H

#include <grp.h>
#include <net/if.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>

extern FILE *fuzz_sink;

void fuzz_exit(int status) __attribute__((noreturn));
int fuzz_getaddrinfo(const char *node, const char *service,
		     const struct addrinfo *hints, struct addrinfo **found);
struct passwd *fuzz_getpwnam(const char *name);
struct group *fuzz_getgrnam(const char *name);

#undef stderr
#define stderr fuzz_sink
#define exit fuzz_exit
#define getaddrinfo fuzz_getaddrinfo
#define getpwnam fuzz_getpwnam
#define getgrnam fuzz_getgrnam

#endif /* _FUZZ_TOOL_ENV_H */
