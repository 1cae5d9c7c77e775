/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Everything that this host knows at one moment: jobs, sockets and counters of
 * the namespace, of the module; and the switch if one runs here, which needs no
 * module.
 */
#ifndef _ATP_SNAPSHOT_H
#define _ATP_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include "../switch/switch.h"
#include "fetch.h"

/**
 * struct snapshot_port - a port of the switch
 * @name: of the interface
 * @port: what the switch knows of it
 */
struct snapshot_port {
	char		name[IFNAMSIZ];
	struct sw_port	port;
};

/**
 * struct snapshot - what is known
 * @time: nanoseconds of CLOCK_MONOTONIC
 * @has_module: it is there, and @jobs to @family are known
 * @jobs: jobs
 * @socks: worker sockets, those of the user if no others may be seen
 * @raw: message that @family points into
 * @family: numbers and counters of the namespace
 * @has_switch: what follows is known, a switch runs here
 * @settings: how it was loaded
 * @occupied: aggregators that hold a sum
 * @others: packets that it left alone
 * @switch_job: its jobs
 * @switch_jobs: how many
 * @port: its ports
 * @ports: how many
 */
struct snapshot {
	uint64_t		time;
	bool			has_module;
	struct job_list		jobs;
	struct sock_list	socks;
	struct nl_list		raw;
	struct family_reply	family;
	bool			has_switch;
	struct sw_settings	settings;
	uint32_t		occupied;
	struct sw_others	others;
	struct sw_job_view	*switch_job;
	unsigned int		switch_jobs;
	struct snapshot_port	*port;
	unsigned int		ports;
};

/* Connect as nl_open() does; where there is no module but a switch, @nl stays
 * closed.
 */
int snapshot_open(struct nl *nl);

/* Return: 0 or -2; free it in either case */
int snapshot_take(struct nl *nl, struct snapshot *now);
void snapshot_free(struct snapshot *now);

#endif /* _ATP_SNAPSHOT_H */
