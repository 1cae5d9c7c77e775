// SPDX-License-Identifier: GPL-2.0
/* atp stats: counters of the network namespace, or of a job. */
#include <libmnl/libmnl.h>
#include <linux/atp_netlink.h>
#include <string.h>
#include "atp.h"
#include "fetch.h"
#include "job.h"
#include "netlink_gen.h"
#include "print.h"
#include "prometheus.h"

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp stats [ show ] [ job ID ]\n"
		"       atp stats prometheus [ file PATH ]\n"
		"       atp stats help\n");
}

static int show_family(const struct nlmsghdr *nlh, void *arg)
{
	struct family_reply family;

	(void)arg;
	if (family_parse(nlh, &family))
		return nl_malformed();
	new_json_obj(json);
	open_json_object(NULL);
	print_uint(PRINT_ANY, "family", "family %u", family.number);
	print_field("port", family.port);
	print_field("version", family.version);
	print_text("\n");
	print_counters(family.counters, 4);
	close_json_object();
	delete_json_obj();
	if (!family.counters)
		fputs("The counters are shown to who has CAP_NET_ADMIN.\n",
		      stderr);
	return 0;
}

static int stats_family(struct nl *nl)
{
	nl_begin(nl, ATP_CMD_FAMILY_GET, 0);
	return nl_run(nl, &atp_set_family, show_family, NULL);
}

static int stats_job(struct nl *nl, uint32_t id)
{
	struct job_list list;
	unsigned int i;
	int err;

	err = job_fetch(nl, true, id, &list);
	if (!err) {
		new_json_obj(json);
		for (i = 0; i < list.count; i++) {
			open_json_object(NULL);
			print_uint(PRINT_ANY, "id", "job %u\n",
				   list.job[i].id);
			print_counters(list.job[i].counters, 4);
			close_json_object();
		}
		delete_json_obj();
	}
	job_list_free(&list);
	return err;
}

static int stats_show(int argc, char **argv)
{
	bool has_job = false;
	static struct nl nl;
	uint32_t id = 0;
	int err;

	for (; argc > 0; argc--, argv++) {
		if (strcmp(*argv, "job"))
			invarg("expected \"job\"", *argv);
		NEXT_ARG();
		if (has_job)
			duparg("job", *argv);
		id = job_id(*argv);
		has_job = true;
	}
	err = nl_open(&nl);
	if (err)
		return err;
	err = has_job ? stats_job(&nl, id) : stats_family(&nl);
	nl_close(&nl);
	return err;
}

int do_stats(int argc, char **argv)
{
	if (!argc)
		return stats_show(0, argv);
	if (is_help(*argv)) {
		usage(stdout);
		return 0;
	}
	if (!matches(*argv, "show") || !matches(*argv, "list"))
		return stats_show(argc - 1, argv + 1);
	if (!strcmp(*argv, "job"))
		return stats_show(argc, argv);
	if (!matches(*argv, "prometheus"))
		return stats_prometheus(argc - 1, argv + 1);
	return unknown_command("stats", *argv);
}
