// SPDX-License-Identifier: GPL-2.0
/* Checks of the switch that runs here: ports, programs, groups, hosts. */
#include <linux/if_link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "../switch/rtnl.h"
#include "addr.h"
#include "checks.h"

static void on_finding(const struct sw_finding *f, void *arg)
{
	(void)arg;
	if (*f->dev)
		check_about("port %s", f->dev);
	else
		check_about("switch");
	if (f->bad)
		check_bad(f->what, f->mend, "%s", f->found);
	else if (*f->mend)
		check_warn(f->what, f->mend, "%s", f->found);
	else
		check_ok(f->what, "fine");
}

/**
 * struct running - the program that ports run
 * @id: of one of them; zero if none was seen
 * @tag: of its instructions
 * @same: all are alike
 */
struct running {
	uint32_t id;
	uint8_t	tag[BPF_TAG_SIZE];
	bool	same;
};

static bool program_info(uint32_t id, struct bpf_prog_info *info)
{
	uint32_t len = sizeof(*info);
	int fd = bpf_prog_get_fd_by_id(id);
	bool seen;

	memset(info, 0, sizeof(*info));
	if (fd < 0)
		return false;
	seen = !bpf_obj_get_info_by_fd(fd, info, &len);
	close(fd);
	return seen;
}

/* Ports share one program, but for those with a dispatcher: each has a copy */
static void check_program(const struct sw_switch *sw, uint32_t id,
			  struct running *running)
{
	struct bpf_prog_info info;

	if (!program_info(id, &info)) {
		check_warn("program", "run this as root", "cannot be seen");
		return;
	}
	if (strncmp(info.name, "atp_ingress", sizeof(info.name))) {
		check_bad("program",
			  "ip link set it xdp off, or take that off as it was put there; atp switch attach dev, again",
			  "\"%s\" runs here, not ours", info.name);
		return;
	}
	if (running->id && (sw->settings.dispatcher ?
			    memcmp(running->tag, info.tag, sizeof(info.tag)) :
			    running->id != id))
		running->same = false;
	running->id = id;
	memcpy(running->tag, info.tag, sizeof(info.tag));
}

static void check_port(const struct sw_switch *sw, uint32_t ifindex,
		       struct running *running)
{
	struct sw_link link;
	uint32_t id;

	if (sw_rtnl_link(ifindex, &link)) {
		check_about("port %u", ifindex);
		check_bad("interface", "atp switch refresh forgets it",
			  "is gone");
		return;
	}
	check_about("port %s", link.name);
	if (!link.xdp) {
		check_bad("program", "atp switch attach dev, again",
			  "none runs here");
		return;
	}
	id = link.xdp;
	if (sw->settings.dispatcher && !sw_dispatcher_may())
		id = sw_dispatcher_program(sw, ifindex);
	if (id)
		check_program(sw, id, running);
	else
		check_bad("program", "atp switch attach dev, again",
			  "the dispatcher calls none of ours");
	if (!link.running)
		check_warn("cable", "see that it is in, and the other end up",
			   "nobody is at the other end");
	if (link.xdp_mode == XDP_ATTACHED_DRV)
		check_ok("mode", "native");
	else if (sw->settings.generic)
		check_warn("mode",
			   "if the driver can: atp switch detach; attach without generic",
			   "generic, as was asked for, at about half the speed");
	else
		check_bad("mode", "atp switch detach; attach",
			  "generic, though native was asked for");
}

/* The ports, and whether they are fit.  Return: how many there are, or -1 */
static int check_fitness(uint32_t dev[SW_PORTS])
{
	struct sw_switch sw;
	uint32_t ifindex = 0;
	bool generic;
	int n = 0;

	if (sw_open(&sw))
		return -1;
	generic = sw.settings.generic;
	while (n < SW_PORTS && !sw_port_next(&sw, &ifindex))
		dev[n++] = ifindex;
	/* which opens it itself, one at a time */
	sw_close(&sw);
	sw_preflight(dev, n, generic, on_finding, NULL);
	return n;
}

static void check_ports(const struct sw_switch *sw, const uint32_t *dev, int n)
{
	struct running now = { .same = true };
	const uint8_t *tag = now.tag;
	int i;

	for (i = 0; i < n; i++)
		check_port(sw, dev[i], &now);
	check_about("switch");
	if (!n)
		check_bad("ports", "atp switch attach dev", "there are none");
	if (!now.same)
		check_bad("program", "atp switch attach dev, again",
			  "not the same at all ports");
	else if (now.id)
		check_ok("program",
			 "id %u, tag %02x%02x%02x%02x%02x%02x%02x%02x, the same at all ports",
			 now.id, tag[0], tag[1], tag[2], tag[3], tag[4], tag[5],
			 tag[6], tag[7]);
}

/* Is a host where the switch sends what is for it? */
static bool check_host(const struct sw_host *host)
{
	struct in6_addr addr;
	char text[INET6_ADDRSTRLEN];
	struct sw_host now = *host;
	struct sw_link link;

	memcpy(&addr, host->addr, sizeof(addr));
	addr_text(&addr, text);
	if (sw_rtnl_link(host->ifindex, &link) || !link.up || !link.running) {
		check_bad("host",
			  "ip link set it up, at both ends; see that the cable is in",
			  "%s is behind a port that is down", text);
		return false;
	}
	if (sw_resolve_again(&now)) {
		check_bad("host", sw_error(), "%s is not found", text);
		return false;
	}
	if (now.ifindex != host->ifindex ||
	    memcmp(now.mac, host->mac, sizeof(now.mac))) {
		check_bad("host", "atp switch refresh",
			  "%s has moved or got another card", text);
		return false;
	}
	return true;
}

static void check_hosts(const struct sw_job_view *v)
{
	bool fine = check_host(&v->job.ps);
	uint32_t i;

	for (i = 0; i < v->job.workers; i++)
		if (!(v->job.rank[i].flags & SW_HOST_SHARED) &&
		    !check_host(&v->job.rank[i]))
			fine = false;
	if (fine)
		check_ok("hosts", "%u workers and the PS are where they were",
			 v->job.workers);
}

/**
 * struct seen - a job as it was while nobody could change it
 * @view: it
 * @group: how many hosts its group has, or -1
 * @read: false if no more than its number is known
 */
struct seen {
	struct sw_job_view view;
	int	group;
	bool	read;
};

static void check_group(const struct seen *seen)
{
	if (seen->group < 0)
		check_warn("multicast", "run this as root",
			   "its group cannot be read");
	else if ((uint32_t)seen->group != seen->view.job.copies)
		check_bad("multicast", "atp switch refresh",
			  "%d of %u hosts get parameter packets", seen->group,
			  seen->view.job.copies);
	else
		check_ok("multicast", "%d hosts get parameter packets",
			 seen->group);
}

static void check_counters(const struct sw_job_view *v)
{
	const char *text;
	unsigned int i;

	for (i = 0; i < SW_HINTS; i++) {
		text = sw_hint(&v->counters, i);
		if (text)
			check_warn("counters", text,
				   "something has happened since job add");
	}
}

static void check_switch_job(const struct seen *seen)
{
	const struct sw_job_view *v = &seen->view;

	check_about("switch job %u", v->id);
	if (!seen->read) {
		check_bad("job", "try again", "cannot be read");
		return;
	}
	check_hosts(v);
	check_group(seen);
	check_counters(v);
	check_ok("aggregators", "%llu of at most %u in use",
		 (unsigned long long)v->state.occupied, v->job.quota);
}

/* All jobs, or one; nothing is printed for them, as the switch is locked */
static struct seen *look(struct sw_switch *sw, const uint32_t *only,
			 uint32_t *jobs)
{
	struct seen *seen = NULL, *more;
	bool first = true;
	uint32_t id = 0;

	*jobs = 0;
	while (!sw_job_next(sw, &id, &first)) {
		if (only && id != *only)
			continue;
		more = realloc(seen, (*jobs + 1) * sizeof(*seen));
		if (!more) {
			check_bad("jobs", "try again", "no memory");
			break;
		}
		seen = more;
		more = &seen[(*jobs)++];
		more->read = !sw_job_view(sw, id, &more->view);
		if (more->read)
			more->group = sw_job_group(sw, more->view.job.slot);
	}
	return seen;
}

bool check_switch(const uint32_t *only)
{
	uint32_t dev[SW_PORTS], jobs, i;
	struct sw_switch sw;
	struct seen *seen;
	int n;

	check_about("switch");
	if (!sw_running())
		return false;
	n = check_fitness(dev);
	if (n < 0 || sw_open(&sw)) {
		check_bad("maps", "atp switch detach; attach, with these tools",
			  "%s", sw_error());
		return true;
	}
	check_about("switch");
	seen = look(&sw, only, &jobs);
	/* A host that is gone is waited for, and so is who reads this */
	sw_release(&sw);
	check_ports(&sw, dev, n);
	for (i = 0; i < jobs; i++)
		check_switch_job(&seen[i]);
	check_about("switch");
	if (!jobs)
		check_warn("jobs", "atp switch job add",
			   "it knows none that it could add for");
	free(seen);
	sw_close(&sw);
	return true;
}
