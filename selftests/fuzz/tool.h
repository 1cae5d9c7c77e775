/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tool as a function, between a command line and a netlink socket that is
 * not one.
 */
#ifndef _FUZZ_TOOL_H
#define _FUZZ_TOOL_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Number that the controller gives to the family */
#define TOOL_FAMILY	0x20
#define TOOL_PORTID	4797

/**
 * tool_run() - the program from main() to its end
 * @argc: words, the first is the program's name
 * @argv: words
 *
 * Return: exit status.
 */
int tool_run(int argc, char **argv);

/* The target answers the controller and the family: the next datagram into
 * @buf, or -1 with errno when there is none.
 */
ssize_t tool_answer(const struct nlmsghdr *request, void *buf, size_t size);

/* Answers as the kernel gives them: family, one job or socket, end.  @step is
 * how many datagrams came before for this request.
 */
ssize_t tool_true_answer(const struct nlmsghdr *request, unsigned int step,
			 void *buf, size_t size);

/* Datagrams since the last request */
unsigned int tool_step(void);

#endif /* _FUZZ_TOOL_H */
