// SPDX-License-Identifier: GPL-2.0
/* atp perf: all-reduce on the hosts of a job, and how fast that was. */
#include <stdlib.h>
#include <string.h>
#include "atp.h"
#include "fetch.h"
#include "job.h"
#include "perf.h"
#include "print.h"

#define BYTES_DEFAULT	(4 << 20)
#define BYTES_MAX	(1U << 30)
#define ROUNDS_DEFAULT	20
#define ROUNDS_MAX	1000000

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp perf job ID rank RANK [ bytes N ] [ rounds N ]\n"
		"               [ vs { gloo | mpi } ]...\n"
		"       atp perf help\n");
}

/* Rank 0 alone starts MPI, and its results are those of all ranks. */
static const struct peer {
	const char *name;
	int (*run)(const struct perf *p, struct rounds *r);
	bool first_only;
} peers[] = {
	{ "gloo",	perf_gloo,	false },
	{ "mpi",	perf_mpi,	true },
};

static uint32_t number(const char *arg, uint32_t min, uint32_t max)
{
	__u32 value;

	if (get_u32(&value, arg, 0) || value < min || value > max)
		invarg("out of range", arg);
	return value;
}

static unsigned int peer(const char *arg)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(peers); i++)
		if (!strcmp(arg, peers[i].name))
			return i;
	invarg("expected gloo or mpi", arg);
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* Bytes of tensor per second, at so many quarters of all rounds */
static uint64_t rate(const struct rounds *r, unsigned int quarters)
{
	/* the fastest round is the first */
	unsigned int at = (r->count - 1) * (4 - quarters) / 4;

	return (uint64_t)(1e9 * r->bytes / r->ns[at]);
}

/* CPU time per gigabyte that was reduced */
static uint64_t ms_per_gb(const struct rounds *r, uint64_t ns)
{
	return (uint64_t)(1e3 * ns / ((double)r->bytes * r->count));
}

static void print_speed(const char *key, const char *name, uint64_t value)
{
	print_u64(PRINT_JSON, key, NULL, value);
	if (!is_json_context())
		printf(" %s %.1f", name, value / 1e6);
}

static void print_cpu(const char *key, const char *name, uint64_t ms)
{
	print_u64(PRINT_JSON, key, NULL, ms);
	if (!is_json_context())
		printf(" %s %.2f", name, ms / 1e3);
}

static void print_result(const struct perf *p, struct rounds *r)
{
	qsort(r->ns, r->count, sizeof(*r->ns), compare);
	open_json_object(NULL);
	print_string(PRINT_ANY, "system", "%s:", r->name);
	print_field("job", p->job->id);
	print_field("rank", p->rank);
	print_field("workers", r->workers);
	print_field64("bytes", r->bytes);
	print_field("rounds", r->count);
	print_text("\n    MB/s:");
	print_speed("median_Bps", "median", rate(r, 2));
	print_speed("low_Bps", "quartiles", rate(r, 1));
	print_speed("high_Bps", "to", rate(r, 3));
	print_text("\n    CPU s/GB:");
	print_cpu("host_cpu_ms_per_GB", "host", ms_per_gb(r, r->host_ns));
	print_cpu("own_cpu_ms_per_GB", "of it this program",
		  ms_per_gb(r, r->own_ns));
	print_text("\n");
	close_json_object();
	fflush(stdout);
}

static int perf_one(const struct perf *p, const char *name,
		    int (*run)(const struct perf *p, struct rounds *r))
{
	struct rounds r = {
		.name = name,
		.rank = p->rank,
		.workers = p->job->workers,
		.bytes = p->bytes,
		.count = p->rounds,
	};
	int err = run(p, &r);

	if (!err)
		print_result(p, &r);
	rounds_free(&r);
	return err;
}

static int perf_all(const struct perf *p, uint32_t vs)
{
	unsigned int i;
	int err;

	err = perf_one(p, "atp", perf_atp);
	for (i = 0; i < ARRAY_SIZE(peers) && !err; i++) {
		if (!(vs >> i & 1))
			continue;
		if (peers[i].first_only && p->rank)
			fprintf(stderr, "%s: rank 0 starts it.\n",
				peers[i].name);
		else
			err = perf_one(p, peers[i].name, peers[i].run);
	}
	return err;
}

static int perf_job(struct perf *p, uint32_t id, uint32_t vs)
{
	struct job_list list;
	static struct nl nl;
	int err;

	err = nl_open(&nl);
	if (err)
		return err;
	err = job_fetch(&nl, true, id, &list);
	nl_close(&nl);
	if (!err && list.count == 1) {
		p->job = &list.job[0];
		if (p->rank >= p->job->workers) {
			fprintf(stderr, "Error: job %u has ranks 0 to %u.\n",
				id, p->job->workers - 1);
			err = -1;
		} else {
			new_json_obj(json);
			err = perf_all(p, vs);
			delete_json_obj();
		}
	}
	job_list_free(&list);
	return err;
}

int do_perf(int argc, char **argv)
{
	struct perf p = {
		.bytes = BYTES_DEFAULT,
		.rounds = ROUNDS_DEFAULT,
	};
	bool has_job = false, has_rank = false;
	uint32_t id = 0, vs = 0;

	if (argc && is_help(*argv)) {
		usage(stdout);
		return 0;
	}
	for (; argc > 0; argc--, argv++) {
		const char *word = *argv;

		NEXT_ARG();
		if (!strcmp(word, "job")) {
			id = job_id(*argv);
			has_job = true;
		} else if (!strcmp(word, "rank")) {
			p.rank = number(*argv, 0, ATP_MAX_WORKERS - 1);
			has_rank = true;
		} else if (!strcmp(word, "bytes")) {
			p.bytes = number(*argv, 4, BYTES_MAX) & ~3U;
		} else if (!strcmp(word, "rounds")) {
			p.rounds = number(*argv, 1, ROUNDS_MAX);
		} else if (!strcmp(word, "vs")) {
			vs |= 1U << peer(*argv);
		} else {
			invarg("unknown", word);
		}
	}
	if (!has_job)
		missarg("job");
	if (!has_rank)
		missarg("rank");
	return perf_job(&p, id, vs);
}
