// SPDX-License-Identifier: GPL-2.0
/* A rank of Open MPI.	usage: mpirun ... mpi SOCKET */
#include <mpi.h>

#include "member.h"

static int allreduce(float *tensor, size_t count, int index)
{
	(void)index;
	return MPI_Allreduce(MPI_IN_PLACE, tensor, count, MPI_FLOAT, MPI_SUM,
			     MPI_COMM_WORLD) == MPI_SUCCESS ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct member m = { .allreduce = allreduce };
	int ret;

	if (argc != 2 || MPI_Init(&argc, &argv) != MPI_SUCCESS)
		return 2;
	MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &m.workers);
	ret = member_serve(&m, argv[1]);
	MPI_Finalize();
	return ret;
}
