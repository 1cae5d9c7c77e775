// SPDX-License-Identifier: GPL-2.0
/* Showing a running switch: ports, jobs, counters, and what they hint at. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "json.h"
#include "switch.h"

static const struct {
	const char *name;
	const char *text;
} counter_texts[] = {
#define COUNTER(name, text)	{ #name, text },
	SW_COUNTERS(COUNTER)
}, other_texts[] = {
	SW_OTHERS(COUNTER)
#undef COUNTER
};

#define N_COUNTERS	(sizeof(counter_texts) / sizeof(counter_texts[0]))
#define N_OTHERS	(sizeof(other_texts) / sizeof(other_texts[0]))

/* Add up what each CPU has counted */
static int add_up(int fd, uint32_t slot, uint64_t *sum, size_t n)
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	uint64_t *all;
	size_t i;

	memset(sum, 0, n * sizeof(*sum));
	all = cpus > 0 ? calloc(cpus, n * sizeof(*sum)) : NULL;
	if (!all)
		return sw_fail("out of memory");
	if (bpf_map_lookup_elem(fd, &slot, all)) {
		free(all);
		return sw_fail("cannot read counters: %s", strerror(errno));
	}
	for (cpu = 0; cpu < cpus; cpu++) {
		for (i = 0; i < n; i++)
			sum[i] += all[cpu * n + i];
	}
	free(all);
	return 0;
}

int sw_counters_get(const struct sw_switch *sw, uint32_t slot,
		    struct sw_counters *c)
{
	return add_up(sw->map[SW_MAP_COUNTERS], slot, (uint64_t *)c,
		      sizeof(*c) / sizeof(uint64_t));
}

int sw_others_get(const struct sw_switch *sw, struct sw_others *o)
{
	return add_up(sw->map[SW_MAP_OTHERS], 0, (uint64_t *)o,
		      sizeof(*o) / sizeof(uint64_t));
}

static const char *dev_name(uint32_t ifindex, char *buf)
{
	if (!if_indextoname(ifindex, buf))
		snprintf(buf, IFNAMSIZ, "if%u", ifindex);
	return buf;
}

static const char *mac_text(const uint8_t *mac, char *buf)
{
	sprintf(buf, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		mac[3], mac[4], mac[5]);
	return buf;
}

/* What counters give away */
static const char *const hints[] = {
	"senders leave the checksum to an offload that XDP comes before: ethtool -K DEV tx off on them (veth: on the other end)",
	"a sender makes no UDP checksums: is it AF_ATP?",
	"a host moved to another port, or its address is forged: atp switch refresh",
	"addresses differ from those of job add: wrong order of ranks, another PS, or forged packets",
	"the job has another number of workers than job add said: nothing is aggregated",
	"fragments are longer than the aggregators: attach with a larger payload",
	"the quota is small for the job's window: raise it",
	"many collisions: more aggregators (attach with aggregators N), or quotas for the other jobs",
	"packets had no port to go out by: a port was detached (atp switch attach dev DEV), or a host is a hop too far",
	"the job's run is taken for another one, so nothing is added: atp switch job del, then add",
	"the PS does not answer: if its device is a veth, ethtool -K DEV gro on there (and on the workers'), else packets to it vanish",
};

_Static_assert(sizeof(hints) / sizeof(hints[0]) == SW_HINTS, "SW_HINTS");

const char *sw_hint(const struct sw_counters *c, unsigned int i)
{
	const bool holds[SW_HINTS] = {
		c->drop_csum_partial,
		c->drop_csum_none,
		c->drop_port,
		c->drop_stranger,
		c->mismatch,
		c->oversize,
		c->collision_quota > c->allocated / 10,
		c->collision_busy > c->allocated / 10,
		c->drop_out,
		c->stale > c->forwarded / 2,
		c->forwarded > 64 && !c->parameters,
	};

	return holds[i] ? hints[i] : NULL;
}

int sw_job_view(struct sw_switch *sw, uint32_t id, struct sw_job_view *v)
{
	v->id = id;
	if (sw_job_get(sw, id, &v->job) ||
	    sw_counters_get(sw, v->job.slot, &v->counters))
		return -1;
	if (bpf_map_lookup_elem(sw->map[SW_MAP_STATES], &v->job.slot,
				&v->state))
		return sw_fail("cannot read the state of job %u: %s", id,
			       strerror(errno));
	return 0;
}

static void print_host(FILE *out, const char *who, const struct sw_host *host)
{
	char addr[INET6_ADDRSTRLEN], dev[IFNAMSIZ], mac[18];

	fprintf(out, "    %s %s dev %s lladdr %s%s\n", who,
		sw_addr_text(host->addr, addr, sizeof(addr)),
		dev_name(host->ifindex, dev), mac_text(host->mac, mac),
		host->flags & SW_HOST_ROUTED ? " routed" : "");
}

static void print_job(FILE *out, const struct sw_job_view *v)
{
	const uint64_t *c = (const uint64_t *)&v->counters;
	const char *text;
	uint32_t i;

	fprintf(out, "job %u: workers %u quota %u occupied %llu most %llu\n",
		v->id, v->job.workers, v->job.quota,
		(unsigned long long)v->state.occupied,
		(unsigned long long)v->state.most);
	print_host(out, "ps", &v->job.ps);
	for (i = 0; i < v->job.workers; i++) {
		char who[24];

		snprintf(who, sizeof(who), "rank %u", i);
		print_host(out, who, &v->job.rank[i]);
	}
	for (i = 0; i < N_COUNTERS; i++) {
		if (c[i])
			fprintf(out, "    %-20s%14llu  %s\n",
				counter_texts[i].name,
				(unsigned long long)c[i],
				counter_texts[i].text);
	}
	for (i = 0; i < SW_HINTS; i++) {
		text = sw_hint(&v->counters, i);
		if (text)
			fprintf(out, "    hint: %s\n", text);
	}
}

static void json_host(struct sw_json *j, const char *name,
		      const struct sw_host *host)
{
	char addr[INET6_ADDRSTRLEN], dev[IFNAMSIZ], mac[18];

	sw_json_open(j, name, '{');
	sw_json_text(j, "address",
		     sw_addr_text(host->addr, addr, sizeof(addr)));
	sw_json_text(j, "dev", dev_name(host->ifindex, dev));
	sw_json_text(j, "lladdr", mac_text(host->mac, mac));
	sw_json_bool(j, "routed", host->flags & SW_HOST_ROUTED);
	sw_json_close(j, '}');
}

static void json_job(struct sw_json *j, const struct sw_job_view *v)
{
	const uint64_t *c = (const uint64_t *)&v->counters;
	const char *text;
	uint32_t i;

	sw_json_open(j, NULL, '{');
	sw_json_number(j, "job", v->id);
	sw_json_number(j, "workers", v->job.workers);
	sw_json_number(j, "quota", v->job.quota);
	sw_json_number(j, "occupied", v->state.occupied);
	sw_json_number(j, "most", v->state.most);
	json_host(j, "ps", &v->job.ps);
	sw_json_open(j, "ranks", '[');
	for (i = 0; i < v->job.workers; i++)
		json_host(j, NULL, &v->job.rank[i]);
	sw_json_close(j, ']');
	sw_json_open(j, "counters", '{');
	for (i = 0; i < N_COUNTERS; i++)
		sw_json_number(j, counter_texts[i].name, c[i]);
	sw_json_close(j, '}');
	sw_json_open(j, "hints", '[');
	for (i = 0; i < SW_HINTS; i++) {
		text = sw_hint(&v->counters, i);
		if (text)
			sw_json_text(j, NULL, text);
	}
	sw_json_close(j, ']');
	sw_json_close(j, '}');
}

uint32_t sw_occupied(struct sw_switch *sw)
{
	uint32_t i, n = 0;

	for (i = 0; i < sw->settings.aggregators; i++) {
		struct sw_agg *a = sw_agg_get(sw, i);

		if (!a)
			break;
		n += a->bitmap != 0;
	}
	return n;
}

static void print_switch(struct sw_switch *sw, FILE *out,
			 const struct sw_others *others)
{
	const uint64_t *o = (const uint64_t *)others;
	uint32_t ifindex = 0, i;

	fprintf(out, "switch: aggregators %u payload %u timeout %llu %s%s occupied %u\n",
		sw->settings.aggregators, sw->settings.payload,
		(unsigned long long)sw->settings.timeout / 1000000,
		sw->settings.generic ? "generic" : "native",
		sw->settings.dispatcher ? " dispatcher" : "", sw_occupied(sw));
	while (!sw_port_next(sw, &ifindex)) {
		struct sw_port port;
		char dev[IFNAMSIZ];

		if (sw_port_find(sw, ifindex, &port))
			continue;
		fprintf(out, "port %s: rate %llu mark %llu sent %llu marked %llu\n",
			dev_name(ifindex, dev),
			(unsigned long long)port.rate,
			(unsigned long long)port.mark / 1000,
			(unsigned long long)port.sent,
			(unsigned long long)port.marked);
	}
	for (i = 0; i < N_OTHERS; i++) {
		if (o[i])
			fprintf(out, "other %-18s%14llu  %s\n",
				other_texts[i].name, (unsigned long long)o[i],
				other_texts[i].text);
	}
}

static void json_switch(struct sw_switch *sw, struct sw_json *j,
			const struct sw_others *others)
{
	const uint64_t *o = (const uint64_t *)others;
	uint32_t ifindex = 0, i;

	sw_json_number(j, "aggregators", sw->settings.aggregators);
	sw_json_number(j, "payload", sw->settings.payload);
	sw_json_number(j, "timeout", sw->settings.timeout / 1000000);
	sw_json_text(j, "mode", sw->settings.generic ? "generic" : "native");
	sw_json_bool(j, "dispatcher", sw->settings.dispatcher);
	sw_json_number(j, "occupied", sw_occupied(sw));
	sw_json_open(j, "ports", '[');
	while (!sw_port_next(sw, &ifindex)) {
		struct sw_port port;
		char dev[IFNAMSIZ];

		if (sw_port_find(sw, ifindex, &port))
			continue;
		sw_json_open(j, NULL, '{');
		sw_json_text(j, "dev", dev_name(ifindex, dev));
		sw_json_number(j, "rate", port.rate);
		sw_json_number(j, "mark", port.mark / 1000);
		sw_json_number(j, "sent", port.sent);
		sw_json_number(j, "marked", port.marked);
		sw_json_close(j, '}');
	}
	sw_json_close(j, ']');
	sw_json_open(j, "others", '{');
	for (i = 0; i < N_OTHERS; i++)
		sw_json_number(j, other_texts[i].name, o[i]);
	sw_json_close(j, '}');
}

/**
 * sw_show() - print a switch and its jobs
 * @sw: the switch
 * @out: where to
 * @json: as JSON
 * @pretty: which is indented
 * @only: this job only, or NULL
 */
int sw_show(struct sw_switch *sw, FILE *out, bool json, bool pretty,
	    const uint32_t *only)
{
	struct sw_json j = { .out = out, .pretty = pretty };
	struct sw_others others;
	struct sw_job_view v;
	bool first = true;
	uint32_t id = 0;

	if (only && sw_job_get(sw, *only, &v.job))
		return -1;
	if (sw_others_get(sw, &others))
		return -1;
	if (json) {
		sw_json_open(&j, NULL, '{');
		if (!only)
			json_switch(sw, &j, &others);
		sw_json_open(&j, "jobs", '[');
	} else if (!only) {
		print_switch(sw, out, &others);
	}
	while (!sw_job_next(sw, &id, &first)) {
		if ((only && id != *only) || sw_job_view(sw, id, &v))
			continue;
		if (json)
			json_job(&j, &v);
		else
			print_job(out, &v);
	}
	if (json) {
		sw_json_close(&j, ']');
		sw_json_close(&j, '}');
	}
	return 0;
}

void sw_job_warn(const struct sw_switch *sw, uint32_t ifindex)
{
	char name[IFNAMSIZ];
	struct sw_job job;
	bool first = true;
	uint32_t i, id = 0;

	if (!if_indextoname(ifindex, name))
		snprintf(name, sizeof(name), "if%u", ifindex);
	while (!sw_job_next(sw, &id, &first)) {
		if (sw_job_get(sw, id, &job))
			continue;
		if (job.ps.ifindex == ifindex)
			sw_say("job %u: its PS is behind %s: its gradients are dropped until that is attached again, or the job deleted here",
			       id, name);
		for (i = 0; i < job.workers; i++) {
			if (job.rank[i].ifindex == ifindex)
				sw_say("job %u: rank %u is behind %s: what it sends is not added, and answers to it alone are dropped, until that is attached again, or the job deleted here",
				       id, i, name);
		}
	}
}

int sw_job_group(const struct sw_switch *sw, uint32_t slot)
{
	uint32_t group, key, next;
	int fd, n = 0;

	if (bpf_map_lookup_elem(sw->map[SW_MAP_GROUPS], &slot, &group))
		return 0;
	fd = bpf_map_get_fd_by_id(group);
	if (fd < 0)
		return -1;
	while (!bpf_map_get_next_key(fd, n ? &key : NULL, &next)) {
		key = next;
		n++;
	}
	close(fd);
	return n;
}
