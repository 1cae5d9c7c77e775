// SPDX-License-Identifier: GPL-2.0
/*
 * The rounds of "atp perf ... vs mpi", as mpirun starts them on all hosts.
 *
 * usage: perf-mpi BYTES ROUNDS
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../atp/rounds.h"

static int allreduce(void *arg, float *tensor, size_t lanes)
{
	(void)arg;
	return MPI_Allreduce(MPI_IN_PLACE, tensor, (int)lanes, MPI_FLOAT,
			     MPI_SUM, MPI_COMM_WORLD) ? -1 : 0;
}

/* One rank tells how it goes, and what came out. */
static void be_quiet(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
}

int main(int argc, char **argv)
{
	struct rounds r = { .name = "mpi", .allreduce = allreduce };
	int rank, workers, err;

	if (MPI_Init(&argc, &argv) || argc != 3) {
		fprintf(stderr, "perf-mpi is started by atp perf\n");
		return 1;
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &workers);
	r.rank = rank;
	r.workers = workers;
	r.bytes = strtoul(argv[1], NULL, 10);
	r.count = atoi(argv[2]);
	if (rank)
		be_quiet();
	err = rounds_run(&r);
	if (!err && !rank)
		err = rounds_write(&r);
	rounds_free(&r);
	if (err)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Finalize();
	return 0;
}
