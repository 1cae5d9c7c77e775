// SPDX-License-Identifier: GPL-2.0
/* atp sock */
#include <linux/atp_netlink.h>
#include <string.h>
#include "atp.h"
#include "counters.h"
#include "fetch.h"
#include "job.h"
#include "print.h"

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp sock [ show ] [ job ID ] [ rank RANK ]\n"
		"       atp sock help\n");
}

/* Which sockets are wanted */
struct filter {
	bool		has_job;
	bool		has_rank;
	uint32_t	job;
	uint32_t	rank;
};

/* What atp_info.ranks means. */
static const char *ranks_name(uint32_t state)
{
	switch (state) {
	case ATP_JOINING:
		return "joined";
	case ATP_FAILED:
		return "blamed";
	default:
		return "waiting";
	}
}

static void print_state(const struct atp_info *info)
{
	print_word("state", sock_state_text(info->state));
	if (info->state == ATP_FAILED)
		print_reason(info->reason);
	if (info->ranks || is_json_context())
		print_ranks(ranks_name(info->state), info->ranks);
}

static void print_space(const struct atp_info *info)
{
	print_field("epoch", info->epoch);
	print_field("una", info->una);
	print_field("nxt", info->nxt);
	print_field("end", info->end);
	print_field("cwnd", info->cwnd);
	print_field("ssthresh", info->ssthresh);
	print_us("srtt_us", "srtt", info->srtt_us);
	print_us("rto_us", "rto", info->rto_us);
}

static void print_stats(const struct atp_info *info)
{
	unsigned int i;

	open_json_object("counters");
	print_text("   ");
	for (i = 0; i < SOCK_COUNTERS; i++)
		print_field64(sock_counters[i].name,
			      sock_counter_get(info, i));
	print_text("\n");
	close_json_object();
}

static void print_sock(const struct sock_reply *sock)
{
	const struct atp_info *info = &sock->info;

	open_json_object(NULL);
	print_uint(PRINT_ANY, "job", "job %u", sock->job);
	print_field("rank", sock->rank);
	print_field("workers", info->workers);
	print_state(info);
	print_field("uid", sock->uid);
	print_field("inode", sock->inode);
	print_text("\n   ");
	print_space(info);
	print_text("\n   ");
	print_field("fragment", info->fragment);
	print_field("window", info->window);
	print_field("scale", info->scale);
	print_field("rmem", sock->rmem);
	print_field("wmem", sock->wmem);
	print_text("\n");
	if (show_stats)
		print_stats(info);
	close_json_object();
}

static bool wanted(const struct sock_reply *sock, const struct filter *filter)
{
	return (!filter->has_job || filter->job == sock->job) &&
	       (!filter->has_rank || filter->rank == sock->rank);
}

static void parse_filter(int argc, char **argv, struct filter *filter)
{
	__u32 rank;

	for (; argc > 0; argc--, argv++) {
		if (!strcmp(*argv, "job")) {
			NEXT_ARG();
			filter->job = job_id(*argv);
			filter->has_job = true;
		} else if (!strcmp(*argv, "rank")) {
			NEXT_ARG();
			if (get_u32(&rank, *argv, 0))
				invarg("not a rank", *argv);
			filter->rank = rank;
			filter->has_rank = true;
		} else {
			invarg("expected \"job\" or \"rank\"", *argv);
		}
	}
}

static int sock_show(int argc, char **argv)
{
	struct filter filter = { 0 };
	struct sock_list list;
	static struct nl nl;
	unsigned int i;
	int err;

	parse_filter(argc, argv, &filter);
	err = nl_open(&nl);
	if (err)
		return err;
	err = sock_fetch(&nl, &list);
	if (!err) {
		new_json_obj(json);
		for (i = 0; i < list.count; i++)
			if (wanted(&list.sock[i], &filter))
				print_sock(&list.sock[i]);
		delete_json_obj();
	}
	sock_list_free(&list);
	nl_close(&nl);
	return err;
}

int do_sock(int argc, char **argv)
{
	if (!argc)
		return sock_show(0, argv);
	if (is_help(*argv)) {
		usage(stdout);
		return 0;
	}
	if (!matches(*argv, "show") || !matches(*argv, "list"))
		return sock_show(argc - 1, argv + 1);
	if (!strcmp(*argv, "job") || !strcmp(*argv, "rank"))
		return sock_show(argc, argv);
	return unknown_command("sock", *argv);
}
