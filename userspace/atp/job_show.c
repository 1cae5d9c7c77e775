// SPDX-License-Identifier: GPL-2.0
/* atp job show */
#include <grp.h>
#include <linux/atp_netlink.h>
#include <pwd.h>
#include <string.h>
#include "atp.h"
#include "fetch.h"
#include "job.h"
#include "print.h"

static void print_user(uint32_t uid)
{
	const struct passwd *user = is_json_context() ? NULL : getpwuid(uid);

	if (user)
		print_word("uid", user->pw_name);
	else
		print_field("uid", uid);
}

static void print_group(uint32_t gid)
{
	const struct group *group = is_json_context() ? NULL : getgrgid(gid);

	if (group)
		print_word("gid", group->gr_name);
	else
		print_field("gid", gid);
}

static void print_roles(const struct job_reply *job)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} roles[] = {
		{ ATP_ROLE_WORKER, "worker" },
		{ ATP_ROLE_PS, "ps" },
	};
	const char *comma = "";
	unsigned int i;

	print_text(" role ");
	open_json_array(PRINT_JSON, "role");
	for (i = 0; i < ARRAY_SIZE(roles); i++) {
		if (!(job->role & roles[i].bit))
			continue;
		print_text(comma);
		print_string(PRINT_ANY, NULL, "%s", roles[i].name);
		comma = ",";
	}
	if (!*comma)
		print_text("none");
	close_json_array(PRINT_JSON, NULL);
}

static void print_config(const struct job_reply *job)
{
	print_uint(PRINT_ANY, "id", "job %u", job->id);
	print_addr("ps", &job->ps);
	print_field("fragment", job->fragment);
	print_field("window", job->window);
	print_field("scale", job->scale);
	print_ms("timeout_ms", "timeout", job->timeout);
	print_ms("patience_ms", "patience", job->patience);
	if (job->has_uid)
		print_user(job->uid);
	if (job->has_gid)
		print_group(job->gid);
	print_text("\n   ");
	print_roles(job);
	print_bool(PRINT_JSON, "server", NULL, job->server);
	print_field("sockets", job->sockets);
	print_text("\n");
}

static void print_workers(const struct job_reply *job)
{
	unsigned int rank;

	open_json_array(PRINT_JSON, "workers");
	for (rank = 0; rank < job->workers; rank++) {
		open_json_object(NULL);
		print_uint(PRINT_ANY, "rank", "    worker %u", rank);
		print_host(&job->worker[rank]);
		if (job->has_ps) {
			print_bool(PRINT_JSON, "joined", NULL,
				   job->joined >> rank & 1);
			if (job->joined >> rank & 1)
				print_text(" joined");
		}
		print_text("\n");
		close_json_object();
	}
	close_json_array(PRINT_JSON, NULL);
}

static void print_ps(const struct job_reply *job)
{
	print_text("   ");
	print_field("epoch", job->epoch);
	print_text(job->running ? " running" : " idle");
	print_bool(PRINT_JSON, "running", NULL, job->running);
	print_field("frontier", job->frontier);
	if (job->server) {
		print_text(job->server_joined ? " server joined" :
						" server not joined");
		print_bool(PRINT_JSON, "server_joined", NULL,
			   job->server_joined);
		print_bool(PRINT_JSON, "server_waiting", NULL,
			   job->server_waiting);
	}
	if (job->server_waiting)
		print_text(" waiting server");
	if (job->waiting || is_json_context())
		print_ranks("waiting", job->waiting);
	if (job->waiting || job->server_waiting || is_json_context())
		print_ms("stall_ms", "since", job->stall);
	print_field("memory", job->memory);
	print_text("\n");
}

static void print_job(const struct job_reply *job)
{
	open_json_object(NULL);
	print_config(job);
	print_workers(job);
	if (job->has_ps)
		print_ps(job);
	if (show_stats)
		print_counters(job->counters, 4);
	close_json_object();
}

int job_show(int argc, char **argv)
{
	struct job_list list;
	static struct nl nl;
	uint32_t id = 0;
	unsigned int i;
	bool one;
	int err;

	one = job_optional_id(argc, argv, &id);
	err = nl_open(&nl);
	if (err)
		return err;
	err = job_fetch(&nl, one, id, &list);
	if (!err) {
		new_json_obj(json);
		for (i = 0; i < list.count; i++)
			print_job(&list.job[i]);
		delete_json_obj();
	}
	job_list_free(&list);
	nl_close(&nl);
	return err;
}
