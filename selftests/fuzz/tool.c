// SPDX-License-Identifier: GPL-2.0
/* The tool without a kernel behind it. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/atp.h>
#include <linux/atp_netlink.h>
#include <linux/genetlink.h>
#include <sanitizer/asan_interface.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include "../switch/switch.h"
#include "check.h"
#include "checks.h"
#include "json_print.h"
#include "netlink_gen.h"
#include "batch.h"
#include "netns.h"
#include "nlparse.h"
#include "perf.h"
#include "tool.h"
#include "tool_env.h"
#include "utils.h"

#undef getaddrinfo

int atp_main(int argc, char **argv);

FILE *fuzz_sink;
static jmp_buf the_end;
static int status;

/* The socket that is not one */
static struct nlmsghdr *request;
static unsigned int step;
static unsigned int waits;
static void *poisoned;
static size_t poisoned_len;

void fuzz_exit(int code)
{
	status = code;
	longjmp(the_end, 1);
}

/* Numbers only: nobody is asked for a name. */
int fuzz_getaddrinfo(const char *node, const char *service,
		     const struct addrinfo *hints, struct addrinfo **found)
{
	struct addrinfo numeric = *hints;

	numeric.ai_flags |= AI_NUMERICHOST;
	return getaddrinfo(node, service, &numeric, found);
}

struct passwd *fuzz_getpwnam(const char *name)
{
	static struct passwd alice = { .pw_uid = 1000 };

	return strcmp(name, "alice") ? NULL : &alice;
}

struct group *fuzz_getgrnam(const char *name)
{
	static struct group staff = { .gr_gid = 50 };

	return strcmp(name, "staff") ? NULL : &staff;
}

int fuzz_mkstemp(char *name)
{
	CHECK(strlen(name) >= 6);
	errno = EROFS;
	return -1;
}

/* atp top goes on for ever unless it is told a count, which may be large: soon
 * nothing can be sent any more.
 */
int fuzz_poll(struct pollfd *fds, nfds_t n, int ms)
{
	CHECK(!fds && !n && ms > 0);
	waits++;
	return 0;
}

/* No files, no processes: its lines are command lines like others. */
int batch(const char *name, bool force, int (*run)(int argc, char **argv))
{
	(void)name;
	(void)force;
	(void)run;
	return -1;
}

int netns_enter(const char *name)
{
	return *name ? 0 : -1;
}

/* No machine either. */
void check_machine(struct checks *c)
{
	check_warn("machine", "be on one", "there is none");
	c->nl.quiet = true;
	c->module = !nl_open(&c->nl);
}

void check_job(const struct job_reply *job)
{
	CHECK(job->workers <= ATP_MAX_WORKERS);
	check_about("job %u", job->id);
	check_ok("job", "%u workers", job->workers);
}

bool check_switch(const uint32_t *only)
{
	if (only)
		check_bad("switch", "atp switch attach", "there is none");
	return !only;
}

static int perf_none(const struct perf *p, struct rounds *r)
{
	unsigned int i;

	CHECK(p->rank < p->job->workers && p->bytes && !(p->bytes % 4));
	if (r->count > 1000)
		return -1;
	r->ns = calloc(r->count, sizeof(*r->ns));
	for (i = 0; i < r->count; i++)
		r->ns[i] = i + 1;
	return 0;
}

int perf_atp(const struct perf *p, struct rounds *r)
{
	return perf_none(p, r);
}

int perf_gloo(const struct perf *p, struct rounds *r)
{
	return perf_none(p, r);
}

int perf_mpi(const struct perf *p, struct rounds *r)
{
	return perf_none(p, r);
}

void rounds_free(struct rounds *r)
{
	free(r->ns);
}

static void unpoison(void)
{
	if (poisoned)
		ASAN_UNPOISON_MEMORY_REGION(poisoned, poisoned_len);
	poisoned = NULL;
}

int tool_run(int argc, char **argv)
{
	waits = 0;
	preferred_family = 0;
	show_stats = 0;
	json = 0;
	pretty = 0;
	timestamp = 0;
	timestamp_short = 0;
	if (!setjmp(the_end))
		status = atp_main(argc, argv);
	delete_json_obj_plain();
	unpoison();
	free(request);
	request = NULL;
	return status;
}

/* libmnl's socket ---------------------------------------------------------- */

struct mnl_socket *mnl_socket_open2(int bus, int flags)
{
	(void)flags;
	CHECK(bus == NETLINK_GENERIC);
	return (struct mnl_socket *)&step;
}

int mnl_socket_setsockopt(const struct mnl_socket *nl, int type, void *buf,
			  socklen_t len)
{
	(void)nl;
	(void)type;
	(void)buf;
	(void)len;
	return 0;
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	(void)nl;
	(void)groups;
	(void)pid;
	return 0;
}

int mnl_socket_close(struct mnl_socket *nl)
{
	(void)nl;
	return 0;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *nl)
{
	(void)nl;
	return TOOL_PORTID;
}

/* What leaves is one whole message, of which every attribute is of its kind. */
static void check_request(const struct nlmsghdr *nlh, size_t len)
{
	const struct nlattr *tb[32];

	CHECK(len >= NLMSG_HDRLEN + GENL_HDRLEN && nlh->nlmsg_len == len);
	CHECK(nlh->nlmsg_flags & NLM_F_REQUEST);
	if (nlh->nlmsg_type == GENL_ID_CTRL)
		return;
	CHECK(atp_set_job.max < 32);
	CHECK(!nl_parse_msg(nlh, &atp_set_job, tb));
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *buf,
			  size_t len)
{
	(void)nl;
	if (waits > 3) {
		errno = ECONNRESET;
		return -1;
	}
	free(request);
	request = malloc(len);
	memcpy(request, buf, len);
	check_request(request, len);
	step = 0;
	return (ssize_t)len;
}

unsigned int tool_step(void)
{
	return step;
}

/* The tool may not look behind what it got. */
ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t size)
{
	ssize_t len;

	(void)nl;
	unpoison();
	len = tool_answer(request, buf, size);
	step++;
	if (len < 0)
		return len;
	CHECK((size_t)len <= size);
	poisoned = (char *)buf + len;
	poisoned_len = size - len;
	ASAN_POISON_MEMORY_REGION(poisoned, poisoned_len);
	return len;
}

/* Answers ------------------------------------------------------------------ */

static struct nlmsghdr *begin(void *buf, const struct nlmsghdr *to,
			      uint16_t type)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);

	nlh->nlmsg_type = type;
	nlh->nlmsg_seq = to->nlmsg_seq;
	nlh->nlmsg_pid = TOOL_PORTID;
	return nlh;
}

static struct nlmsghdr *begin_genl(void *buf, const struct nlmsghdr *to,
				   uint16_t type, uint8_t cmd)
{
	struct nlmsghdr *nlh = begin(buf, to, type);
	struct genlmsghdr *genl;

	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	return nlh;
}

static void answer_ctrl(struct nlmsghdr *nlh)
{
	struct nlattr *groups, *group;

	mnl_attr_put_u16(nlh, CTRL_ATTR_FAMILY_ID, TOOL_FAMILY);
	groups = mnl_attr_nest_start(nlh, CTRL_ATTR_MCAST_GROUPS);
	group = mnl_attr_nest_start(nlh, 1);
	mnl_attr_put_u32(nlh, CTRL_ATTR_MCAST_GRP_ID, 9);
	mnl_attr_put_strz(nlh, CTRL_ATTR_MCAST_GRP_NAME, ATP_MCGRP_EVENTS);
	mnl_attr_nest_end(nlh, group);
	mnl_attr_nest_end(nlh, groups);
}

static void answer_job(struct nlmsghdr *nlh)
{
	struct in6_addr addr = { .s6_addr = { [15] = 1 } };
	struct nlattr *nest;
	int i;

	mnl_attr_put_u32(nlh, ATP_A_JOB_ID, 7);
	mnl_attr_put(nlh, ATP_A_JOB_PS, sizeof(addr), &addr);
	for (i = 0; i < 3; i++) {
		nest = mnl_attr_nest_start(nlh, ATP_A_JOB_WORKER);
		mnl_attr_put(nlh, ATP_A_WORKER_ADDR, sizeof(addr), &addr);
		mnl_attr_nest_end(nlh, nest);
	}
	mnl_attr_put_u32(nlh, ATP_A_JOB_EPOCH, 3);
	mnl_attr_put_u8(nlh, ATP_A_JOB_RUNNING, 1);
	mnl_attr_put_u32(nlh, ATP_A_JOB_WAITING, 5);
	mnl_attr_put_u32(nlh, ATP_A_JOB_STALL_MS, 70);
}

static void answer_sock(struct nlmsghdr *nlh)
{
	struct atp_info info = { .state = ATP_JOINED, .workers = 3 };

	mnl_attr_put_u32(nlh, ATP_A_SOCK_JOB, 7);
	mnl_attr_put_u32(nlh, ATP_A_SOCK_RANK, 1);
	mnl_attr_put(nlh, ATP_A_SOCK_INFO, sizeof(info), &info);
}

static void answer_counters(struct nlmsghdr *nlh, int type)
{
	struct nlattr *all = mnl_attr_nest_start(nlh, type), *one;

	one = mnl_attr_nest_start(nlh, ATP_A_COUNTER_ENTRY);
	mnl_attr_put_strz(nlh, ATP_A_COUNTER_NAME, "sent");
	mnl_attr_put_u64(nlh, ATP_A_COUNTER_VALUE, 11);
	mnl_attr_nest_end(nlh, one);
	mnl_attr_nest_end(nlh, all);
}

/* Return: whether the request has an answer besides its end */
static bool answer_family(struct nlmsghdr *nlh, uint8_t cmd)
{
	switch (cmd) {
	case ATP_CMD_JOB_GET:
		answer_job(nlh);
		answer_counters(nlh, ATP_A_JOB_COUNTERS);
		return true;
	case ATP_CMD_SOCK_GET:
		answer_sock(nlh);
		return true;
	case ATP_CMD_FAMILY_GET:
		answer_counters(nlh, ATP_A_FAMILY_COUNTERS);
		return true;
	}
	return false;
}

ssize_t tool_true_answer(const struct nlmsghdr *to, unsigned int at, void *buf,
			 size_t size)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(to);
	bool ctrl = to->nlmsg_type == GENL_ID_CTRL;
	bool dump = (to->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	struct nlmsghdr *nlh;

	CHECK(size >= 4096);
	if (!at) {
		nlh = begin_genl(buf, to, to->nlmsg_type, genl->cmd);
		if (ctrl)
			answer_ctrl(nlh);
		if (ctrl || answer_family(nlh, genl->cmd))
			return nlh->nlmsg_len;
	}
	if (at > 1) {
		/* events will not come */
		errno = ECONNRESET;
		return -1;
	}
	nlh = begin(buf, to, dump && !ctrl ? NLMSG_DONE : NLMSG_ERROR);
	mnl_nlmsg_put_extra_header(nlh, dump && !ctrl ? sizeof(int) :
				   sizeof(struct nlmsgerr));
	return nlh->nlmsg_len;
}

/* libatpswitch: says yes to everything ------------------------------------- */

const char *sw_error(void)
{
	return "no switch";
}

int sw_fail(const char *fmt, ...)
{
	(void)fmt;
	return -1;
}

void sw_say(const char *fmt, ...)
{
	(void)fmt;
}

bool sw_running(void)
{
	return true;
}

int sw_load(struct sw_switch *sw, const struct sw_options *opt)
{
	(void)opt;
	memset(sw, 0, sizeof(*sw));
	return 0;
}

int sw_open(struct sw_switch *sw)
{
	memset(sw, 0, sizeof(*sw));
	return 0;
}

void sw_close(struct sw_switch *sw)
{
	(void)sw;
}

int sw_pin_dir(char *dir, size_t len, bool make)
{
	(void)make;
	snprintf(dir, len, "nowhere");
	return 0;
}

int sw_pin_remove(const char *dir)
{
	(void)dir;
	return 0;
}

int sw_unlock_all(struct sw_switch *sw)
{
	(void)sw;
	return 0;
}

int sw_port_attach(struct sw_switch *sw, uint32_t ifindex)
{
	(void)sw;
	CHECK(ifindex);
	return 0;
}

int sw_port_detach(struct sw_switch *sw, uint32_t ifindex)
{
	(void)sw;
	CHECK(ifindex);
	return 0;
}

int sw_port_rate(struct sw_switch *sw, uint32_t ifindex, uint64_t mbit,
		 uint64_t mark)
{
	(void)sw;
	(void)mbit;
	(void)mark;
	CHECK(ifindex);
	return 0;
}

int sw_port_next(const struct sw_switch *sw, uint32_t *ifindex)
{
	(void)sw;
	(void)ifindex;
	return -1;
}

int sw_port_refresh(struct sw_switch *sw)
{
	(void)sw;
	return 0;
}

int sw_port_upgrade(struct sw_switch *sw)
{
	(void)sw;
	return 0;
}

int sw_port_detach_all(struct sw_switch *sw)
{
	(void)sw;
	return 0;
}

int sw_port_abandon(const char *dir)
{
	(void)dir;
	return 0;
}

/* A host is somewhere; what is said of it was said. */
static void check_where(const struct sw_where *where)
{
	bool mac = where->mac[0] | where->mac[1] | where->mac[2] |
		   where->mac[3] | where->mac[4] | where->mac[5];

	CHECK(where->has_mac || !mac);
}

int sw_job_add(struct sw_switch *sw, uint32_t id, const struct sw_where *ps,
	       const struct sw_where *worker, uint32_t workers,
	       uint32_t quota)
{
	(void)sw;
	(void)id;
	(void)quota;
	CHECK(workers && workers <= ATP_MAX_WORKERS);
	check_where(ps);
	while (workers--)
		check_where(&worker[workers]);
	return 0;
}

int sw_job_replace(struct sw_switch *sw, uint32_t id,
		   const struct sw_where *ps, const struct sw_where *worker,
		   uint32_t workers, uint32_t quota)
{
	return sw_job_add(sw, id, ps, worker, workers, quota);
}

void sw_job_warn(const struct sw_switch *sw, uint32_t ifindex)
{
	(void)sw;
	(void)ifindex;
}

int sw_job_del(struct sw_switch *sw, uint32_t id)
{
	(void)sw;
	(void)id;
	return 0;
}

int sw_job_refresh(struct sw_switch *sw, uint32_t id)
{
	(void)sw;
	(void)id;
	return 0;
}

int sw_job_refresh_all(struct sw_switch *sw)
{
	(void)sw;
	return 0;
}

int sw_job_regroup_all(struct sw_switch *sw)
{
	(void)sw;
	return 0;
}

int sw_preflight(const uint32_t *dev, int n, bool generic, sw_finding_fn fn,
		 void *arg)
{
	struct sw_finding good = { .what = "all" };

	(void)generic;
	CHECK(n >= 0 && n <= SW_PORTS);
	while (n--)
		CHECK(dev[n]);
	fn(&good, arg);
	return 0;
}

int sw_job_next(const struct sw_switch *sw, uint32_t *id, bool *first)
{
	bool was = *first;

	(void)sw;
	*id = 7;
	*first = false;
	return was ? 0 : -1;
}

int sw_job_view(struct sw_switch *sw, uint32_t id, struct sw_job_view *v)
{
	(void)sw;
	memset(v, 0, sizeof(*v));
	v->id = id;
	return 0;
}

int sw_port_find(const struct sw_switch *sw, uint32_t ifindex,
		 struct sw_port *port)
{
	(void)sw;
	(void)ifindex;
	memset(port, 0, sizeof(*port));
	return 0;
}

int sw_others_get(const struct sw_switch *sw, struct sw_others *o)
{
	(void)sw;
	memset(o, 0, sizeof(*o));
	return 0;
}

uint32_t sw_occupied(struct sw_switch *sw)
{
	(void)sw;
	return 1;
}

int sw_show(struct sw_switch *sw, FILE *out, bool as_json, bool nice,
	    const uint32_t *job)
{
	(void)sw;
	(void)out;
	(void)as_json;
	(void)nice;
	(void)job;
	return 0;
}
