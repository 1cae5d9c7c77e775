// SPDX-License-Identifier: GPL-2.0
/* Asks the kernel and the switch's maps for all they know. */
#include <errno.h>
#include <linux/atp_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "netlink_gen.h"
#include "snapshot.h"

static int no_memory(void)
{
	fprintf(stderr, "Error: no memory.\n");
	return -2;
}

int snapshot_open(struct nl *nl)
{
	int err;

	nl->quiet = true;
	err = nl_open(nl);
	nl->quiet = false;
	/* what a switch knows is in its maps */
	if (err && nl->error == -ENOENT && sw_running())
		return 0;
	if (err)
		nl_no_family(nl);
	return err;
}

static int take_family(struct nl *nl, struct snapshot *now)
{
	int err;

	nl_begin(nl, ATP_CMD_FAMILY_GET, 0);
	err = nl_run(nl, &atp_set_family, nl_keep, &now->raw);
	if (err)
		return err;
	if (!now->raw.count || family_parse(now->raw.msg[0], &now->family))
		return nl_malformed();
	return 0;
}

static int take_switch_jobs(struct sw_switch *sw, struct snapshot *now)
{
	struct sw_job_view *grown;
	bool first = true;
	uint32_t id = 0;

	while (!sw_job_next(sw, &id, &first)) {
		grown = realloc(now->switch_job,
				(now->switch_jobs + 1) * sizeof(*grown));
		if (!grown)
			return no_memory();
		now->switch_job = grown;
		/* it may have been removed since */
		if (!sw_job_view(sw, id, &grown[now->switch_jobs]))
			now->switch_jobs++;
	}
	return 0;
}

static int take_ports(struct sw_switch *sw, struct snapshot *now)
{
	struct snapshot_port *grown;
	uint32_t ifindex = 0;

	while (!sw_port_next(sw, &ifindex)) {
		grown = realloc(now->port, (now->ports + 1) * sizeof(*grown));
		if (!grown)
			return no_memory();
		now->port = grown;
		if (!if_indextoname(ifindex, grown[now->ports].name) ||
		    sw_port_find(sw, ifindex, &grown[now->ports].port))
			continue;
		now->ports++;
	}
	return 0;
}

static int take_switch(struct snapshot *now)
{
	struct sw_switch sw;
	int err;

	if (!sw_running())
		return 0;
	if (sw_open(&sw) || sw_others_get(&sw, &now->others)) {
		fprintf(stderr, "The switch is not shown: %s\n", sw_error());
		/* which others wait for; it may not even be open */
		sw_close(&sw);
		/* without the module there is nothing else */
		return now->has_module ? 0 : -2;
	}
	now->has_switch = true;
	now->settings = sw.settings;
	now->occupied = sw_occupied(&sw);
	err = take_switch_jobs(&sw, now);
	if (!err)
		err = take_ports(&sw, now);
	sw_close(&sw);
	return err;
}

static int take_module(struct nl *nl, struct snapshot *now)
{
	int err;

	err = job_fetch(nl, false, 0, &now->jobs);
	if (!err)
		err = sock_fetch(nl, &now->socks);
	if (!err)
		err = take_family(nl, now);
	return err;
}

int snapshot_take(struct nl *nl, struct snapshot *now)
{
	struct timespec ts;
	int err = 0;

	memset(now, 0, sizeof(*now));
	clock_gettime(CLOCK_MONOTONIC, &ts);
	now->time = ts.tv_sec * 1000000000ULL + ts.tv_nsec;
	now->has_module = nl->sock;
	if (now->has_module)
		err = take_module(nl, now);
	if (!err)
		err = take_switch(now);
	return err;
}

void snapshot_free(struct snapshot *now)
{
	job_list_free(&now->jobs);
	sock_list_free(&now->socks);
	nl_list_free(&now->raw);
	free(now->switch_job);
	free(now->port);
	memset(now, 0, sizeof(*now));
}
