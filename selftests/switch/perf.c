// SPDX-License-Identifier: GPL-2.0
/*
 * How long the program takes per packet, by what an aggregator does with it: a
 * report, not a test.  The kernel times each run; between two runs packet and
 * aggregator are put back, so each run starts with what a system call leaves in
 * the caches.  Shown are medians, less that of a packet that is none of ours.
 */
#include <linux/bpf.h>
#include <stdlib.h>
#include <time.h>
#include <bpf/bpf.h>
#include "check.h"
#include "target_bpf.h"

#define RUNS	4001

static struct t_job job = { .id = 1, .workers = 4, .quota = 1 };
static struct f_pkt pkt;
static uint8_t *frame;

enum action {
	OTHER,			/* another EtherType */
	COLLISION,
	DUPLICATE,
	ALLOCATE,
	AGGREGATE,
	SATURATE,
	COMPLETE,
	FLUSH,
	PARAMETER,
	ACTIONS,
};

static const char *const names[ACTIONS] = {
	"other", "collide", "dup", "alloc", "add", "saturate", "complete",
	"flush", "param",
};

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The aggregator as the action wants to find it, and the packet */
static uint32_t prepare(enum action action, int lanes)
{
	struct sw_agg *a = t_agg(0);
	struct sw_state *state = sw_state_get(&t_switch, 1);
	uint32_t len;
	int i;

	memset(a, 0, sizeof(*a) + lanes * 4);
	a->slot = 1;
	a->job = 1;
	a->epoch = 1;
	a->elements = lanes;
	a->dtype = ATP_INT32;
	a->cap = 4;
	a->stamp = t_now();
	state->occupied = action != ALLOCATE;

	if (action == PARAMETER)
		c_parameter(&pkt, &job, 0, 0);
	else
		c_gradient(&pkt, &job, 0, 0);
	pkt.elements = lanes;
	pkt.index = 0;
	for (i = 0; i < lanes; i++)
		pkt.lane[i] = i;

	switch (action) {
	case COLLISION:
		a->seq = 1;
		a->bitmap = 2;
		break;
	case DUPLICATE:
		a->bitmap = 3;
		break;
	case SATURATE:
		((int32_t *)a->lanes)[1] = INT32_MAX;
		a->bitmap = 2;
		break;
	case AGGREGATE:
		a->bitmap = 2;
		break;
	case COMPLETE:
		a->bitmap = 14;
		break;
	case FLUSH:
		a->bitmap = 2;
		pkt.flags |= ATP_F_RESEND;
		break;
	case PARAMETER:
		a->bitmap = 15;
		pkt.flags |= ATP_F_MCAST;
		break;
	default:
		break;
	}
	len = f_make(&pkt, frame);
	if (action == OTHER)
		frame[12] = 0x99;
	return len;
}

static uint32_t measure(enum action action, int lanes, uint32_t want)
{
	static uint32_t ns[RUNS];
	struct xdp_md ctx = {
		.ingress_ifindex = t_ifindex[0],
	};
	uint8_t out[F_ROOM];

	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx), .repeat = 1);
	int i;

	for (i = 0; i < RUNS; i++) {
		opts.data_size_in = prepare(action, lanes);
		opts.data_out = out;
		opts.data_size_out = sizeof(out);
		opts.ctx_size_out = 0;
		ctx.data_end = opts.data_size_in;
		if (bpf_prog_test_run_opts(t_program, &opts) ||
		    opts.retval != want) {
			printf("# %s: verdict %u\n", names[action],
			       opts.retval);
			return 0;
		}
		ns[i] = opts.duration;
	}
	qsort(ns, RUNS, sizeof(ns[0]), compare);
	return ns[RUNS / 2];
}

/* Nanoseconds of a plain loop that adds as many lanes, saturating */
static double plain(int lanes)
{
	static int32_t x[F_MAX_LANES], y[F_MAX_LANES];
	struct timespec from, to;
	int i, k;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (k = 0; k < RUNS; k++) {
		for (i = 0; i < lanes; i++) {
			int64_t s = (int64_t)x[i] + y[i];

			x[i] = s > INT32_MAX ? INT32_MAX :
			       s < INT32_MIN ? INT32_MIN : s;
		}
		__asm__ volatile("" : : "r"(x), "r"(y) : "memory");
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	return ((to.tv_sec - from.tv_sec) * 1e9 + to.tv_nsec - from.tv_nsec) /
	       RUNS;
}

static void row(int lanes)
{
	static const uint32_t verdict[ACTIONS] = {
		[OTHER] = XDP_PASS, [COLLISION] = XDP_REDIRECT,
		[DUPLICATE] = XDP_DROP, [ALLOCATE] = XDP_DROP,
		[AGGREGATE] = XDP_DROP, [SATURATE] = XDP_DROP,
		[COMPLETE] = XDP_REDIRECT, [FLUSH] = XDP_REDIRECT,
		[PARAMETER] = XDP_REDIRECT,
	};
	int action, base = 0;

	printf("%7d", lanes * 4);
	for (action = 0; action < ACTIONS; action++) {
		int ns = measure(action, lanes, verdict[action]);

		if (action == OTHER)
			base = ns;
		printf("%9d", action == OTHER ? ns : ns - base);
	}
	printf("%9.0f\n", plain(lanes));
}

int main(void)
{
	static const int lanes[] = { 2, 62, 350, 768, F_MAX_LANES };
	unsigned int i;

	frame = f_buffer();
	c_open(1, ATP_FRAGMENT_MAX);
	c_add_job(&job);
	printf("# nanoseconds per packet by payload; other: all of it\n");
	printf("%7s", "bytes");
	for (i = 0; i < ACTIONS; i++)
		printf("%9s", names[i]);
	printf("%9s\n", "plain C");
	for (i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
		row(lanes[i]);
	t_close();
	return 0;
}
