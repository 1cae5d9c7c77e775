/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before every file of the tool in a fuzzer: the end of the program is
 * the end of an input, complaints are not shown, names are not looked up, no
 * file is made, and no time passes.
 */
#ifndef _FUZZ_TOOL_ENV_H
#define _FUZZ_TOOL_ENV_H

#include <grp.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

extern FILE *fuzz_sink;

void fuzz_exit(int status) __attribute__((noreturn));
int fuzz_getaddrinfo(const char *node, const char *service,
		     const struct addrinfo *hints, struct addrinfo **found);
struct passwd *fuzz_getpwnam(const char *name);
struct group *fuzz_getgrnam(const char *name);
int fuzz_mkstemp(char *name);
int fuzz_poll(struct pollfd *fds, nfds_t n, int ms);

#undef stderr
#define stderr fuzz_sink
#define exit fuzz_exit
#define getaddrinfo fuzz_getaddrinfo
#define getpwnam fuzz_getpwnam
#define getgrnam fuzz_getgrnam
#define mkstemp fuzz_mkstemp
#define poll(fds, n, ms) fuzz_poll(fds, n, ms)
#define isatty(fd) false

#endif /* _FUZZ_TOOL_ENV_H */
