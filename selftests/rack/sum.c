// SPDX-License-Identifier: GPL-2.0
/*
 * The example of libatp(3): this rank's numbers, and those of all.
 *
 * usage: sum JOB RANK
 */
#include <stdio.h>
#include <stdlib.h>

#include <atp.h>

int main(int argc, char **argv)
{
	unsigned int rank;
	struct atp *atp;
	float v[2];
	char text[256];

	if (argc != 3)
		return 2;
	rank = atoi(argv[2]);
	v[0] = rank + 1;
	v[1] = (rank + 1) * 10;
	atp = atp_join(atoi(argv[1]), rank, 0);
	if (!atp || atp_allreduce(atp, v, 2, ATP_FLOAT32)) {
		atp_describe(atp, text, sizeof(text));
		fprintf(stderr, "%s\n", text);
		return 1;
	}
	atp_leave(atp);
	printf("%g %g\n", v[0], v[1]);
	return 0;
}
