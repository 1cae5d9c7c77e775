// SPDX-License-Identifier: GPL-2.0
/* atp job */
#include <libmnl/libmnl.h>
#include <linux/atp_netlink.h>
#include <string.h>
#include "atp.h"
#include "job.h"
#include "netlink_gen.h"
#include "nl.h"

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp job add ID ps ADDR worker ADDR [ worker ADDR ]...\n"
		"               [ server ] [ fragment BYTES ] [ window N ]\n"
		"               [ scale N ]\n"
		"               [ timeout TIME ] [ patience TIME ]\n"
		"               [ uid USER ] [ gid GROUP ]\n"
		"       atp job set ID [ timeout TIME ] [ patience TIME ]\n"
		"               [ uid USER ] [ gid GROUP ]\n"
		"       atp job del ID\n"
		"       atp job [ show ] [ ID ]\n"
		"       atp job stall [ ID ]\n"
		"       atp job help\n"
		"ADDR := IPv4 or IPv6 address, or name of a host\n"
		"TIME := milliseconds, or a number with unit: ms, s, min\n"
		"USER, GROUP := name, number, or none\n");
}

uint32_t job_id(const char *arg)
{
	__u32 id;

	if (get_u32(&id, arg, 0))
		invarg("not a job ID (0 to 4294967295)", arg);
	return id;
}

bool job_optional_id(int argc, char **argv, uint32_t *id)
{
	if (!argc)
		return false;
	*id = job_id(*argv);
	if (argc > 1)
		invarg("more than one job ID", argv[1]);
	return true;
}

/* Send a request that changes something. */
static int job_change(int argc, char **argv, uint8_t cmd)
{
	struct nlmsghdr *nlh;
	static struct nl nl;
	int err;

	if (!argc)
		incomplete_command();
	/* a wrong word is told before a missing module */
	nlh = nl_begin(&nl, cmd, 0);
	mnl_attr_put_u32(nlh, ATP_A_JOB_ID, job_id(*argv));
	if (cmd != ATP_CMD_JOB_DEL)
		job_properties(nlh, argc - 1, argv + 1,
			       cmd == ATP_CMD_JOB_ADD);
	else if (argc > 1)
		invarg("nothing may follow the job ID", argv[1]);
	err = nl_open(&nl);
	if (err)
		return err;
	err = nl_run(&nl, &atp_set_job, NULL, NULL);
	nl_close(&nl);
	return err;
}

int do_job(int argc, char **argv)
{
	if (!argc)
		return job_show(0, argv);
	if (is_help(*argv)) {
		usage(stdout);
		return 0;
	}
	if (!matches(*argv, "add"))
		return job_change(argc - 1, argv + 1, ATP_CMD_JOB_ADD);
	if (!matches(*argv, "set") || !strcmp(*argv, "change"))
		return job_change(argc - 1, argv + 1, ATP_CMD_JOB_SET);
	if (!matches(*argv, "delete"))
		return job_change(argc - 1, argv + 1, ATP_CMD_JOB_DEL);
	if (!matches(*argv, "show") || !matches(*argv, "list") ||
	    !strcmp(*argv, "get"))
		return job_show(argc - 1, argv + 1);
	if (!matches(*argv, "stall"))
		return job_stall(argc - 1, argv + 1);
	return unknown_command("job", *argv);
}
