// SPDX-License-Identifier: GPL-2.0
/* Checks of a job: this host's devices, and the ways to the other hosts. */
#include <errno.h>
#include <linux/atp_netlink.h>
#include <linux/atp_packet.h>
#include <linux/ethtool.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include "../switch/rtnl.h"
#include "addr.h"
#include "checks.h"
#include "echo.h"
#include "probe.h"

#define MEND_LEN	256

static bool is_local(const struct in6_addr *addr)
{
	struct sw_route route;

	return !sw_rtnl_route(addr, &route) && route.local;
}

/* Of a full fragment, as IP packet */
static unsigned int packet_len(const struct job_reply *job)
{
	return job->fragment + ATP_HDR_LEN + sizeof(struct udphdr) +
	       (IN6_IS_ADDR_V4MAPPED(&job->ps) ? sizeof(struct iphdr) :
						 sizeof(struct ip6_hdr));
}

/* Has another rank before this one the same address? */
static bool seen_before(const struct job_reply *job, unsigned int rank)
{
	unsigned int i;

	for (i = 0; i < rank; i++)
		if (!memcmp(&job->worker[i], &job->worker[rank],
			    sizeof(struct in6_addr)))
			return true;
	return false;
}

/* The MTU is too small: how to go on */
static void mend_mtu(const struct job_reply *job, const struct sw_link *link,
		     char mend[MEND_LEN])
{
	unsigned int overhead = packet_len(job) - job->fragment;

	snprintf(mend, MEND_LEN,
		 "ip link set %s mtu %u, on the whole path, or atp job add with fragment %u",
		 link->name, packet_len(job),
		 (link->mtu - overhead) / 8 * 8);
}

static void check_route(const struct job_reply *job,
			const struct in6_addr *addr)
{
	char text[INET6_ADDRSTRLEN], mend[MEND_LEN];
	unsigned int need = packet_len(job);
	struct sw_route route;
	struct sw_link link;

	addr_text(addr, text);
	if (sw_rtnl_route(addr, &route) || sw_rtnl_link(route.dev, &link)) {
		check_bad("route", "ip route add, or the right address in atp job add",
			  "there is none to %s", text);
		return;
	}
	if (!link.up || !link.running) {
		snprintf(mend, sizeof(mend),
			 "ip link set %s up; see that its cable is in",
			 link.name);
		check_bad("link", mend, "%s, the way to %s, is down",
			  link.name, text);
	}
	if (link.mtu < need) {
		mend_mtu(job, &link, mend);
		check_bad("MTU", mend, "%s has %u, full fragments to %s need %u",
			  link.name, link.mtu, text, need);
	} else {
		check_ok("MTU", "%s has %u, full fragments to %s need %u",
			 link.name, link.mtu, text, need);
	}
}

/*
 * What a switch redirects to a veth vanishes there unless the veth polls, which
 * matters only behind a switch.  Other devices receive it, but without GRO each
 * packet by itself.
 */
static void check_device(const struct in6_addr *peer, bool switched)
{
	struct sw_route route;
	struct sw_link link;
	char mend[MEND_LEN];
	bool veth;
	int gro;

	if (sw_rtnl_route(peer, &route) || route.local ||
	    sw_rtnl_link(route.dev, &link))
		return;
	veth = !strcmp(link.kind, "veth");
	gro = sw_ethtool(link.name, ETHTOOL_GGRO);
	if (veth && (link.xdp || gro == 1)) {
		check_ok("GRO", "%s receives what a switch redirects",
			 link.name);
		return;
	}
	if (!veth && gro) {
		if (gro == 1)
			check_ok("GRO", "on at %s", link.name);
		return;
	}
	snprintf(mend, sizeof(mend), "ethtool -K %s gro on", link.name);
	if (!veth)
		check_warn("GRO", mend,
			   "off at %s, each packet comes in by itself, which is slow",
			   link.name);
	else if (switched)
		check_bad("GRO", mend,
			  "off at %s, what a switch redirects to it vanishes",
			  link.name);
	else
		check_warn("GRO", mend,
			   "off at %s, what a switch redirects to it would vanish",
			   link.name);
}

/* The PS has not answered.  Is its host there at all? */
static void explain_silence(const struct job_reply *job)
{
	char mend[MEND_LEN], ps[INET6_ADDRSTRLEN];

	addr_text(&job->ps, ps);
	if (echo_ask(&job->ps, 100) == 1) {
		snprintf(mend, sizeof(mend),
			 "there: modprobe atp; atp job add %u in the same words as here; let UDP port %d pass; atp check",
			 job->id, ATP_PORT);
		check_bad("path to the PS", mend,
			  "%s answers ping, but not for this job", ps);
		return;
	}
	check_bad("path to the PS",
		  "see that it is up, the cables, the routes of both ends",
		  "%s does not answer, not even ping", ps);
}

/* Return: whether the PS has answered */
static bool check_answer(const struct job_reply *job,
			 enum probe_result result)
{
	char mend[MEND_LEN], ps[INET6_ADDRSTRLEN];

	addr_text(&job->ps, ps);
	switch (result) {
	case PROBE_ANSWER:
		check_ok("path to the PS", "%s answers for this job", ps);
		return true;
	case PROBE_SILENCE:
		explain_silence(job);
		return false;
	case PROBE_REFUSED:
		snprintf(mend, sizeof(mend),
			 "there: atp job add %u in the same words as here",
			 job->id);
		check_bad("path to the PS", mend,
			  "%s has no job at all, its port is closed", ps);
		return false;
	case PROBE_TOO_LONG:
	case PROBE_FAILED:
		check_bad("path to the PS",
			  "see the link and the routes to it",
			  "%s cannot be asked: %s", ps, strerror(errno));
		return false;
	}
	return false;
}

/* Return: whether a full fragment arrives */
static bool check_fragment(struct probe *probe)
{
	const struct job_reply *job = probe->job;
	unsigned int need = packet_len(job);
	char mend[MEND_LEN];

	snprintf(mend, sizeof(mend),
		 "an MTU of %u on the whole path and the same fragment on all hosts, or a smaller one",
		 need);
	switch (probe_ask(probe, job->fragment)) {
	case PROBE_ANSWER:
		check_ok("full fragments", "%u bytes arrive at the PS",
			 job->fragment);
		return true;
	case PROBE_TOO_LONG:
		check_bad("full fragments", mend,
			  "%u bytes do not fit the path to the PS",
			  job->fragment);
		return false;
	default:
		check_bad("full fragments", mend,
			  "%u bytes do not arrive at the PS, 8 do",
			  job->fragment);
		return false;
	}
}

/* Return: whether there is a switch that adds */
static bool check_held(struct probe *probe)
{
	const struct job_reply *job = probe->job;
	char mend[MEND_LEN];
	bool held = false;

	if (job->workers == 1) {
		check_ok("switch", "there is nothing to add, with one worker");
		return false;
	}
	if (probe_held(probe, &held) != PROBE_ANSWER) {
		check_warn("switch", "try again",
			   "cannot be told, packets were lost");
		return false;
	}
	snprintf(mend, sizeof(mend),
		 "if one should: there atp switch job add %u; atp check",
		 job->id);
	if (held)
		check_ok("switch", "one on the way adds");
	else
		check_warn("switch", mend,
			   "none on the way has added, the PS does it alone");
	return held;
}

/* As a rank that is here */
static void check_worker(const struct job_reply *job, unsigned int rank)
{
	struct probe probe;
	bool held = false;

	check_about("job %u rank %u", job->id, rank);
	check_route(job, &job->ps);
	if (probe_open(&probe, job, rank)) {
		check_warn("path to the PS", errno == EPERM ?
			   "run this as root" :
			   "see the link and the routes to it",
			   "cannot be looked at: %s", strerror(errno));
	} else {
		if (check_answer(job, probe_ask(&probe, 8)) &&
		    check_fragment(&probe))
			held = check_held(&probe);
		probe_close(&probe);
	}
	check_device(&job->ps, held);
}

/* From the PS's host.  Workers answer nobody but ping. */
static void check_way_to(const struct job_reply *job, unsigned int rank)
{
	const struct in6_addr *addr = &job->worker[rank];
	char text[INET6_ADDRSTRLEN], what[40], mend[MEND_LEN];
	unsigned int need = packet_len(job);

	addr_text(addr, text);
	snprintf(what, sizeof(what), "path to rank %u", rank);
	check_route(job, addr);
	if (echo_ask(addr, need) == 1) {
		check_ok(what, "%s answers ping with packets of %u bytes", text,
			 need);
	} else if (errno == EPERM) {
		check_warn(what, "run this as root", "cannot be looked at");
	} else if (echo_ask(addr, 100) == 1) {
		snprintf(mend, sizeof(mend), "an MTU of %u on the whole path, or a smaller fragment",
			 need);
		check_bad(what, mend,
			  "%s answers ping, but not with packets of %u bytes",
			  text, need);
	} else {
		check_warn(what,
			   "if it should: see that it is up, the cables, the routes; there: atp check",
			   "%s does not answer ping", text);
	}
}

static void check_ps(const struct job_reply *job)
{
	unsigned int rank;

	check_about("job %u PS", job->id);
	for (rank = 0; rank < job->workers; rank++)
		if (!seen_before(job, rank) && !is_local(&job->worker[rank]))
			check_way_to(job, rank);
	/* which nobody here knows, but with a switch nothing would come */
	for (rank = 0; rank < job->workers; rank++) {
		if (is_local(&job->worker[rank]))
			continue;
		check_device(&job->worker[rank], true);
		break;
	}
}

/* The job was added when the address was there. */
static void check_gone(const struct job_reply *job, const char *of)
{
	check_about("job %u %s", job->id, of);
	check_bad("address", "ip address add, or atp job del and add",
		  "this host does not have it any more");
}

/* Return: whether a rank's address is here */
static bool check_ranks(const struct job_reply *job)
{
	bool here = false;
	unsigned int rank;

	for (rank = 0; rank < job->workers; rank++) {
		if (!is_local(&job->worker[rank]))
			continue;
		here = true;
		if (!seen_before(job, rank))
			check_worker(job, rank);
	}
	return here;
}

void check_job(const struct job_reply *job)
{
	if (job->role & ATP_ROLE_PS) {
		if (is_local(&job->ps))
			check_ps(job);
		else
			check_gone(job, "PS");
	}
	if (job->role & ATP_ROLE_WORKER && !check_ranks(job))
		check_gone(job, "worker");
}
