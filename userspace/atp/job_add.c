// SPDX-License-Identifier: GPL-2.0
/* atp job add, set: from words to attributes. */
#include <grp.h>
#include <libmnl/libmnl.h>
#include <linux/atp.h>
#include <linux/atp_netlink.h>
#include <pwd.h>
#include <string.h>
#include "addr.h"
#include "atp.h"
#include "job.h"
#include "units.h"

static void put_addr(struct nlmsghdr *nlh, int type, const char *arg)
{
	struct in6_addr addr;
	const char *wrong;

	wrong = addr_parse(arg, preferred_family, &addr);
	if (wrong)
		invarg(wrong, arg);
	mnl_attr_put(nlh, type, sizeof(addr), &addr);
}

static void put_worker(struct nlmsghdr *nlh, const char *arg)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, ATP_A_JOB_WORKER);

	put_addr(nlh, ATP_A_WORKER_ADDR, arg);
	mnl_attr_nest_end(nlh, nest);
}

static uint32_t parse_number(const char *arg)
{
	__u32 value;

	if (get_u32(&value, arg, 0))
		invarg("not a number", arg);
	return value;
}

static uint32_t parse_scale(const char *arg)
{
	uint32_t value;

	if (scale_parse(arg, &value))
		invarg("not a whole number from 1 to 4294967295", arg);
	return value;
}

static uint32_t parse_time(const char *arg)
{
	uint32_t ms;

	if (duration_parse(arg, &ms))
		invarg("not a time, like 1500, 1500ms, 1.5s or 2min", arg);
	return ms;
}

static uint32_t parse_user(const char *arg)
{
	const struct passwd *user;
	__u32 uid;

	if (!strcmp(arg, "none"))
		return UINT32_MAX;
	if (!get_u32(&uid, arg, 10))
		return uid;
	user = getpwnam(arg);
	if (!user)
		invarg("no such user", arg);
	return user->pw_uid;
}

static uint32_t parse_group(const char *arg)
{
	const struct group *group;
	__u32 gid;

	if (!strcmp(arg, "none"))
		return UINT32_MAX;
	if (!get_u32(&gid, arg, 10))
		return gid;
	group = getgrnam(arg);
	if (!group)
		invarg("no such group", arg);
	return group->gr_gid;
}

static const struct property {
	const char *name;
	int type;
	bool set;	/* can be set later */
	uint32_t (*parse)(const char *arg);
} properties[] = {
	{ "ps",		ATP_A_JOB_PS,		false,	NULL },
	{ "worker",	ATP_A_JOB_WORKER,	false,	NULL },
	{ "server",	ATP_A_JOB_SERVER,	false,	NULL },
	{ "fragment",	ATP_A_JOB_FRAGMENT,	false,	parse_number },
	{ "window",	ATP_A_JOB_WINDOW,	false,	parse_number },
	{ "scale",	ATP_A_JOB_SCALE,	false,	parse_scale },
	{ "timeout",	ATP_A_JOB_TIMEOUT,	true,	parse_time },
	{ "patience",	ATP_A_JOB_PATIENCE,	true,	parse_time },
	{ "uid",	ATP_A_JOB_UID,		true,	parse_user },
	{ "gid",	ATP_A_JOB_GID,		true,	parse_group },
};

static const struct property *find(const char *word)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(properties); i++)
		if (!strcmp(word, properties[i].name))
			return &properties[i];
	return NULL;
}

static void put(struct nlmsghdr *nlh, const struct property *p,
		const char *arg)
{
	if (p->type == ATP_A_JOB_PS)
		put_addr(nlh, p->type, arg);
	else if (p->type == ATP_A_JOB_WORKER)
		put_worker(nlh, arg);
	else if (p->type == ATP_A_JOB_SERVER)
		mnl_attr_put_u8(nlh, p->type, 1);
	else
		mnl_attr_put_u32(nlh, p->type, p->parse(arg));
}

void job_properties(struct nlmsghdr *nlh, int argc, char **argv, bool add)
{
	const struct property *p;
	unsigned int workers = 0;
	unsigned long seen = 0;

	if (!argc)
		incomplete_command();
	for (; argc > 0; argc--, argv++) {
		p = find(*argv);
		if (!p)
			invarg("no property of a job", *argv);
		if (!add && !p->set)
			invarg("cannot be changed; delete the job and add it",
			       *argv);
		if (p->type != ATP_A_JOB_SERVER)
			NEXT_ARG();
		if (p->type == ATP_A_JOB_WORKER) {
			if (++workers > ATP_MAX_WORKERS)
				invarg("more than 32 workers", *argv);
		} else if (seen & 1UL << p->type) {
			duparg(p->name, *argv);
		}
		seen |= 1UL << p->type;
		put(nlh, p, *argv);
	}
	if (add && !(seen & 1UL << ATP_A_JOB_PS))
		missarg("ps");
	if (add && !workers)
		missarg("worker");
}
