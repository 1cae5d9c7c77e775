/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What counters say.  The kernel gives their names; these texts come from the
 * files that it has the names from.
 */
#ifndef _ATP_TOOL_COUNTERS_H
#define _ATP_TOOL_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/atp.h>

/* Return: what the counter or drop reason is, never NULL */
const char *counter_help(const char *name);

/**
 * struct sock_counter - a counter of a socket
 * @name: name
 * @job: name of the job's counter of the same
 * @offset: in struct atp_info
 */
struct sock_counter {
	const char	*name;
	const char	*job;
	size_t		offset;
};

#define SOCK_COUNTERS	8

extern const struct sock_counter sock_counters[SOCK_COUNTERS];

uint64_t sock_counter_get(const struct atp_info *info, unsigned int i);

/**
 * struct switch_counter - a counter of the switch
 * @name: name
 * @help: what it counts
 */
struct switch_counter {
	const char	*name;
	const char	*help;
};

/* In the order of struct sw_counters and struct sw_others */
extern const struct switch_counter switch_counters[];
extern const unsigned int n_switch_counters;
extern const struct switch_counter switch_others[];
extern const unsigned int n_switch_others;

/* Does this counter of the switch say that it left additions to the PS? */
bool switch_passed(unsigned int i);

#endif /* _ATP_TOOL_COUNTERS_H */
