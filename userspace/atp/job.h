/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of "atp job" offer each other.
 */
#ifndef _ATP_JOB_H
#define _ATP_JOB_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

/* Job ID out of a command line; ends the program if it is none */
uint32_t job_id(const char *arg);

/* [ ID ] and no more words.  Return: true if there is one */
bool job_optional_id(int argc, char **argv, uint32_t *id);

/* Properties as attributes; @add: those of a new job, else what can be set */
void job_properties(struct nlmsghdr *nlh, int argc, char **argv, bool add);

int job_show(int argc, char **argv);
int job_stall(int argc, char **argv);

#endif /* _ATP_JOB_H */
