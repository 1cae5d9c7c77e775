// SPDX-License-Identifier: GPL-2.0
/*
 * Nanoseconds that the switch's program takes for a fragment, by what happens
 * to it and by the bytes of its payload, beside loops in C over as many bytes.
 *
 * The kernel runs the program REPEAT times in a row and says how long a run
 * took; again.bpf.c puts back what a run changes.  Packet and aggregator are
 * in the caches, as they are in a busy switch whose driver polls.  Everything
 * is measured in turn, ROUNDS times, so that what else the machine does falls
 * on all alike; shown are median and quartiles.
 *
 * usage: switch FILE [ROUNDS]	rows as JSON go to FILE
 */
#include <linux/bpf.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include "actions.h"
#include "plain.h"

#define REPEAT		256

static const int payload[] = { 248, 1400, 3072, ATP_FRAGMENT_MAX };

#define PAYLOADS	((int)(sizeof(payload) / sizeof(payload[0])))

static int fd_again[AGAIN_PROGS], fd_before;
static uint8_t *frame;
static int rounds = 301;
static double *times[ACTIONS][PAYLOADS];

void die(const char *what)
{
	fprintf(stderr, "switch: %s: %s\n", what, strerror(errno));
	t_close();
	exit(EXIT_FAILURE);
}

static int program(struct bpf_object *obj, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(obj, name));
}

/* Not loaded yet, with those of the switch's maps that it has, too */
static struct bpf_object *open_object(const char *path)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_map *map;
	int i;

	if (!obj)
		die(path);
	for (i = 0; i < SW_MAPS; i++) {
		map = bpf_object__find_map_by_name(obj, sw_map_names[i]);
		if (map && bpf_map__reuse_fd(map, t_switch.map[i]))
			die(sw_map_names[i]);
	}
	return obj;
}

/* What runs where a packet leaves, see copy.bpf.c */
static int load_copy(void)
{
	struct bpf_object *obj = open_object(COPY_OBJECT);
	struct bpf_program *prog, *copy;

	copy = bpf_object__find_program_by_name(obj, "atp_egress");
	bpf_object__for_each_program(prog, obj)
		bpf_program__set_autoload(prog, prog == copy);
	bpf_program__set_expected_attach_type(copy, BPF_XDP);
	if (bpf_object__load(obj))
		die("cannot load " COPY_OBJECT);
	return bpf_program__fd(copy);
}

static void load(void)
{
	struct bpf_object *obj = open_object(BENCH_OBJECT);
	int next, to[AGAIN_PROGS], i;
	char device[16];

	if (bpf_object__load(obj))
		die("cannot load " BENCH_OBJECT);
	fd_before = bpf_object__find_map_fd_by_name(obj, "before");
	next = bpf_object__find_map_fd_by_name(obj, "next");
	to[AGAIN_SWITCH] = t_program;
	to[AGAIN_NOTHING] = program(obj, "nothing");
	to[AGAIN_COPY] = load_copy();
	fd_again[AGAIN_SWITCH] = program(obj, "again_switch");
	fd_again[AGAIN_NOTHING] = program(obj, "again_nothing");
	fd_again[AGAIN_COPY] = program(obj, "again_copy");
	if (system("ip link add b0 type veth peer name b1") ||
	    system("ip link add b2 type veth"))
		die("cannot add devices");
	for (i = 0; i < AGAIN_PROGS; i++) {
		if (bpf_map_update_elem(next, &i, &to[i], BPF_ANY))
			die("next");
		/* A program that is attached somewhere, here to a device that
		 * is down, need not be made known for each BPF_PROG_RUN, which
		 * takes long.
		 */
		snprintf(device, sizeof(device), "b%d", i);
		if (bpf_xdp_attach(if_nametoindex(device), fd_again[i],
				   XDP_FLAGS_DRV_MODE, NULL))
			die("cannot attach");
	}
}

/* Which of again.bpf.c's programs runs what is measured */
static int again_of(enum action action)
{
	if (action == EMPTY)
		return AGAIN_NOTHING;
	return action >= COPY ? AGAIN_COPY : AGAIN_SWITCH;
}

static double run_program(enum action action, int bytes)
{
	int prog = fd_again[again_of(action)];
	uint64_t due = kinds[action].counted ? REPEAT : 0, count;
	struct again again = {};
	uint32_t zero = 0;
	struct xdp_md ctx = {
		.ingress_ifindex = t_ifindex[kinds[action].port],
	};
	static uint8_t out[F_ROOM];

	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .ctx_in = &ctx, .ctx_size_in = sizeof(ctx),
		    .repeat = REPEAT, .data_out = out,
		    .data_size_out = sizeof(out));

	opts.data_size_in = action_prepare(action, bytes, frame, &again);
	ctx.data_end = opts.data_size_in;
	if (bpf_map_update_elem(fd_before, &zero, &again, BPF_ANY))
		die("before");
	count = action_count(action);
	if (bpf_prog_test_run_opts(prog, &opts))
		die("BPF_PROG_RUN");
	count = action_count(action) - count;
	if (opts.retval != kinds[action].verdict || count != due) {
		fprintf(stderr, "switch: %s, %d bytes: verdict %u, counted %llu times\n",
			kinds[action].name, bytes, opts.retval,
			(unsigned long long)count);
		t_close();
		exit(EXIT_FAILURE);
	}
	return opts.duration;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double run_plain(enum action action, int bytes)
{
	static uint64_t sum[ATP_FRAGMENT_MAX / 8], x[ATP_FRAGMENT_MAX / 8];
	double from = now();
	int i;

	for (i = 0; i < REPEAT; i++) {
		if (action == PACKED)
			plain_packed(sum, x, bytes / 8);
		else
			plain_vector((int32_t *)sum, (int32_t *)x, bytes / 4);
		__asm__ volatile("" : : "r"(sum), "r"(x) : "memory");
	}
	return (now() - from) / REPEAT;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* What was measured of an action, sorted; @part of it was less */
static double quantile(int action, int k, double part)
{
	return times[action][k][(int)(part * (rounds - 1) + 0.5)];
}

/* Without the harness */
static double net(int action, int k, double part)
{
	double base = action < PROGRAMS ? quantile(EMPTY, k, 0.5) : 0;

	return quantile(action, k, part) - base;
}

static void measure(void)
{
	int action, k, i;

	for (action = 0; action < ACTIONS; action++)
		for (k = 0; k < PAYLOADS; k++) {
			times[action][k] = calloc(rounds, sizeof(double));
			if (!times[action][k])
				die("memory");
		}
	for (i = 0; i < rounds; i++)
		for (k = 0; k < PAYLOADS; k++)
			for (action = 0; action < ACTIONS; action++)
				times[action][k][i] = action < PROGRAMS ?
					run_program(action, payload[k]) :
					run_plain(action, payload[k]);
	for (action = 0; action < ACTIONS; action++)
		for (k = 0; k < PAYLOADS; k++)
			qsort(times[action][k], rounds, sizeof(double),
			      compare);
}

static void print(void)
{
	int action, k;

	printf("The switch alone: nanoseconds per fragment (quartiles), without the harness.\n");
	printf("%-12s", "bytes");
	for (k = 0; k < PAYLOADS; k++)
		printf("%20d", payload[k]);
	for (action = 0; action < ACTIONS; action++) {
		printf("\n%-12s", action == EMPTY ? "harness" :
						    kinds[action].name);
		for (k = 0; k < PAYLOADS; k++) {
			double base = quantile(EMPTY, k, 0.5);

			if (action != EMPTY)
				base = 0;
			printf("%8.0f (%4.0f-%4.0f)",
			       base + net(action, k, 0.5),
			       base + net(action, k, 0.25),
			       base + net(action, k, 0.75));
		}
	}
	printf("\n");
}

static void write_rows(const char *path)
{
	FILE *f = fopen(path, "w");
	const char *comma = "";
	int action, k;

	if (!f)
		die(path);
	fprintf(f, "[");
	for (action = EMPTY + 1; action < ACTIONS; action++) {
		for (k = 0; k < PAYLOADS; k++) {
			/* times have a resolution of a nanosecond */
			double ns = fmax(net(action, k, 0.5), 1);

			fprintf(f, "%s\n {\"bed\": \"BPF_PROG_RUN\", \"system\": \"%s\", \"action\": \"%s\", \"workers\": %d, \"bytes\": %d, \"ns_per_fragment\": %.1f, \"ns_quartiles\": [%.1f, %.1f], \"ns_harness\": %.1f, \"median_Bps\": %.0f, \"limit_Bps\": null, \"cpu_s_per_GB\": %.3f}",
				comma, action < PROGRAMS ? "switch" : "plain C",
				kinds[action].name, WORKERS, payload[k], ns,
				net(action, k, 0.25), net(action, k, 0.75),
				action < PROGRAMS ? quantile(EMPTY, k, 0.5) : 0,
				payload[k] / ns * 1e9, ns / payload[k]);
			comma = ",";
		}
	}
	fprintf(f, "\n]\n");
	if (fclose(f))
		die(path);
}

int main(int argc, char **argv)
{
	cpu_set_t cpu;

	if (argc == 3)
		rounds = atoi(argv[2]);
	if (argc < 2 || argc > 3 || rounds < 1) {
		fprintf(stderr, "usage: switch FILE [ROUNDS]\n");
		return 2;
	}
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);

	frame = f_buffer();
	actions_open();
	load();
	measure();
	print();
	write_rows(argv[1]);
	t_close();
	return 0;
}
