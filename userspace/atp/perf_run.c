// SPDX-License-Identifier: GPL-2.0
/* Who does the rounds of a benchmark: libatp, or another system's program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../lib/atp.h"
#include "addr.h"
#include "perf.h"

/* Where the programs are that were built with the other systems' libraries */
#ifndef ATP_PERF_DIR
#define ATP_PERF_DIR	"/usr/local/lib/atp"
#endif

#define WORD_LEN	24

static int complain(struct atp *atp)
{
	char text[256];
	int error = errno;

	atp_describe(atp, text, sizeof(text));
	fprintf(stderr, "Error: %s (%s).\n", text, strerror(error));
	return -1;
}

static int allreduce(void *arg, float *tensor, size_t lanes)
{
	struct atp *atp = arg;

	return atp_allreduce(atp, tensor, lanes, ATP_FLOAT32) ?
	       complain(atp) : 0;
}

int perf_atp(const struct perf *p, struct rounds *r)
{
	struct atp *atp;
	int err;

	fprintf(stderr, "atp: waiting for all %u ranks of job %u\n",
		p->job->workers, p->job->id);
	atp = atp_join(p->job->id, p->rank, 0);
	if (!atp)
		return complain(NULL);
	r->allreduce = allreduce;
	r->arg = atp;
	err = rounds_run(r);
	atp_leave(atp);
	return err;
}

static const char *perf_dir(void)
{
	const char *dir = getenv("ATP_PERF_DIR");

	return dir ? dir : ATP_PERF_DIR;
}

/* Is the program there?  If not, say what it comes from. */
static int find_program(const char *name, const char *package, char *path,
			size_t size)
{
	snprintf(path, size, "%s/%s", perf_dir(), name);
	if (!access(path, X_OK))
		return 0;
	fprintf(stderr,
		"Error: there is no %s: it is built where %s is installed.\n",
		path, package);
	return -1;
}

/* Let a program do the rounds and write what came out. */
static int run_program(char *const argv[], struct rounds *r)
{
	int out[2], status, err;
	pid_t pid;

	if (pipe(out)) {
		fprintf(stderr, "Error: pipe: %s.\n", strerror(errno));
		return -1;
	}
	pid = fork();
	if (!pid) {
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		close(out[1]);
		execvp(*argv, argv);
		fprintf(stderr, "Error: %s: %s.\n", *argv, strerror(errno));
		_exit(127);
	}
	close(out[1]);
	if (pid < 0) {
		fprintf(stderr, "Error: fork: %s.\n", strerror(errno));
		close(out[0]);
		return -1;
	}
	err = rounds_read(r, out[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status) && !err)
		return 0;
	fprintf(stderr, "Error: %s has failed.\n", r->name);
	return -1;
}

int perf_gloo(const struct perf *p, struct rounds *r)
{
	char path[256], rank[WORD_LEN], workers[WORD_LEN], bytes[WORD_LEN];
	char rounds[WORD_LEN], first[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];
	char *const argv[] = {
		path, rank, workers, bytes, rounds, first, own, NULL
	};

	if (find_program("perf-gloo", "libgloo-dev", path, sizeof(path)))
		return -1;
	snprintf(rank, sizeof(rank), "%u", p->rank);
	snprintf(workers, sizeof(workers), "%u", p->job->workers);
	snprintf(bytes, sizeof(bytes), "%zu", p->bytes);
	snprintf(rounds, sizeof(rounds), "%u", p->rounds);
	addr_text(&p->job->worker[0], first);
	addr_text(&p->job->worker[p->rank], own);
	return run_program(argv, r);
}

/* "10.0.0.1,10.0.0.2": a slot for each */
static void list_hosts(const struct job_reply *job, char *hosts)
{
	char text[INET6_ADDRSTRLEN];
	unsigned int rank;

	*hosts = 0;
	for (rank = 0; rank < job->workers; rank++) {
		if (rank)
			strcat(hosts, ",");
		strcat(hosts, addr_text(&job->worker[rank], text));
	}
}

int perf_mpi(const struct perf *p, struct rounds *r)
{
	char path[256], workers[WORD_LEN], bytes[WORD_LEN], rounds[WORD_LEN];
	char hosts[ATP_MAX_WORKERS * INET6_ADDRSTRLEN];
	char *const argv[] = {
		"mpirun", "--allow-run-as-root", "-n", workers, "--host", hosts,
		"--mca", "btl", "tcp,self", path, bytes, rounds, NULL
	};

	if (find_program("perf-mpi", "libopenmpi-dev", path, sizeof(path)))
		return -1;
	if (!IN6_IS_ADDR_V4MAPPED(&p->job->ps)) {
		fprintf(stderr,
			"Error: mpirun takes no IPv6 addresses of hosts.\n");
		return -1;
	}
	snprintf(workers, sizeof(workers), "%u", p->job->workers);
	snprintf(bytes, sizeof(bytes), "%zu", p->bytes);
	snprintf(rounds, sizeof(rounds), "%u", p->rounds);
	list_hosts(p->job, hosts);
	return run_program(argv, r);
}
