// SPDX-License-Identifier: GPL-2.0
/*
 * The XDP programs in the kernel, loaded as the tool does it, in a network
 * namespace of the test's own; packets go in by BPF_PROG_RUN.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "../../userspace/switch/rtnl.h"
#include "report.h"
#include "target.h"
#include "target_bpf.h"

const bool t_in_kernel = true;

struct sw_switch t_switch;
int t_program = -1;
uint32_t t_ifindex[T_PORTS];
bool t_keep;
static bool loaded;

static void quietly(const char *note)
{
	(void)note;
}

static void run(const char *command)
{
	if (system(command))
		c_fail(__FILE__, __LINE__, "%s", command);
}

void t_unload(void)
{
	char dir[256];

	if (!loaded)
		return;
	loaded = false;
	snprintf(dir, sizeof(dir), "%s", t_switch.dir);
	sw_close(&t_switch);
	sw_pin_remove(dir);
	close(t_program);
}

void t_open(uint32_t aggregators, uint32_t payload)
{
	static struct sw_options opt;
	char name[16];
	int i;

	if (loaded && opt.aggregators == aggregators &&
	    opt.payload == payload)
		return;
	t_unload();
	opt.aggregators = aggregators;
	opt.payload = payload;
	sw_note = quietly;
	if (unshare(CLONE_NEWNET)) {
		c_fail(__FILE__, __LINE__, "unshare: %s", strerror(errno));
		c_give_up();
	}
	run("ip link add br0 type bridge && ip link set br0 up");
	for (i = 0; i < T_PORTS; i++) {
		char command[256];

		snprintf(command, sizeof(command),
			 "ip link add p%d type veth peer name h%d && ip link set p%d %s up && ip link set h%d up",
			 i, i, i, i == T_ROUTED ? "" : "master br0", i);
		run(command);
		snprintf(name, sizeof(name), "p%d", i);
		t_ifindex[i] = if_nametoindex(name);
	}
	if (sw_load(&t_switch, &opt)) {
		c_fail(__FILE__, __LINE__, "%s", sw_error());
		c_give_up();
	}
	loaded = true;
	for (i = 0; i < T_PORTS; i++) {
		if (sw_port_attach(&t_switch, t_ifindex[i])) {
			c_fail(__FILE__, __LINE__, "%s", sw_error());
			t_unload();
			c_give_up();
		}
	}
	t_program = sw_program(&t_switch, "atp_ingress");
}

void t_close(void)
{
	bool first = true;
	uint32_t id;

	if (!t_keep) {
		t_unload();
		return;
	}
	while (loaded && !sw_job_next(&t_switch, &id, &first)) {
		if (sw_job_del(&t_switch, id)) {
			c_fail(__FILE__, __LINE__, "%s", sw_error());
			return;
		}
		first = true;
	}
}

static void fill_where(struct sw_where *where, const struct t_job *job,
		       int nr, int port)
{
	memset(where, 0, sizeof(*where));
	t_addr(job->v6, job->id, nr, where->addr.s6_addr);
	where->dev = t_ifindex[port];
	where->has_mac = true;
	t_mac(nr, where->mac);
}

typedef int tell_fn(struct sw_switch *sw, uint32_t id,
		    const struct sw_where *ps, const struct sw_where *worker,
		    uint32_t workers, uint32_t quota);

static int tell(tell_fn *fn, const struct t_job *job)
{
	struct sw_where ps, worker[ATP_MAX_WORKERS];
	uint32_t i;

	fill_where(&ps, job, T_PS, job->ps_port);
	for (i = 0; i < job->workers; i++)
		fill_where(&worker[i], job, i, job->port[i]);
	return fn(&t_switch, job->id, &ps, worker, job->workers, job->quota);
}

int t_try_job(const struct t_job *job)
{
	return tell(sw_job_add, job);
}

int t_replace_job(const struct t_job *job)
{
	return tell(sw_job_replace, job);
}

void t_add_job(const struct t_job *job)
{
	if (t_try_job(job)) {
		c_fail(__FILE__, __LINE__, "%s", sw_error());
		t_unload();
		c_give_up();
	}
}

int t_prog_run(int prog, int port, uint8_t *frame, uint32_t len)
{
	struct xdp_md ctx = {
		.data_end = len,
		.ingress_ifindex = t_ifindex[port],
	};
	uint8_t out[4096];

	LIBBPF_OPTS(bpf_test_run_opts, opts,
		    .data_in = frame, .data_size_in = len,
		    .data_out = out, .data_size_out = sizeof(out),
		    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx),
		    .repeat = 1);

	if (bpf_prog_test_run_opts(prog, &opts)) {
		c_fail(__FILE__, __LINE__, "BPF_PROG_RUN: %s",
		       strerror(errno));
		return -1;
	}
	memcpy(frame, out, opts.data_size_out);
	return (int)opts.retval;
}

int t_run(int port, uint8_t *frame, uint32_t len)
{
	/* the kernel's own lower limit for a test packet */
	if (len < 14)
		return XDP_PASS;
	return t_prog_run(t_program, port, frame, len);
}

struct sw_agg *t_agg(uint32_t index)
{
	return sw_agg_get(&t_switch, index);
}

static uint32_t slot_of(uint32_t id)
{
	struct sw_job job = {};

	if (sw_job_get(&t_switch, id, &job))
		c_fail(__FILE__, __LINE__, "%s", sw_error());
	return job.slot;
}

uint64_t t_occupied(uint32_t id)
{
	return sw_state_get(&t_switch, slot_of(id))->occupied;
}

void t_forget_runs(uint32_t id)
{
	struct sw_state *state = sw_state_get(&t_switch, slot_of(id));

	state->run = 0;
	state->left = 0;
}

void t_counters(uint32_t id, struct sw_counters *c)
{
	if (sw_counters_get(&t_switch, slot_of(id), c))
		c_fail(__FILE__, __LINE__, "%s", sw_error());
}

void t_others(struct sw_others *o)
{
	if (sw_others_get(&t_switch, o))
		c_fail(__FILE__, __LINE__, "%s", sw_error());
}

void t_port_mac(int port, uint8_t *mac)
{
	struct sw_port info;

	if (sw_port_find(&t_switch, t_ifindex[port], &info))
		c_fail(__FILE__, __LINE__, "no port %d", port);
	memcpy(mac, info.mac, 6);
}

/* BPF_PROG_RUN ends before the redirect does */
int t_copies(void)
{
	return 0;
}

int t_copy_port(int copy)
{
	return copy;
}

int t_copy_rank(int copy)
{
	return copy;
}

int t_make_copy(int copy, uint8_t *frame, uint32_t len)
{
	(void)copy;
	(void)frame;
	(void)len;
	return -1;
}
