// SPDX-License-Identifier: GPL-2.0
/* A rank of a job, by libatp.	usage: atp SOCKET RANK WORKERS JOB */
#include <stdio.h>
#include <stdlib.h>

#include <atp.h>

#include "member.h"

static struct atp *atp;

static int allreduce(float *tensor, size_t count, int index)
{
	char text[256];

	(void)index;
	if (!atp_allreduce(atp, tensor, count, ATP_FLOAT32))
		return 0;
	atp_describe(atp, text, sizeof(text));
	fprintf(stderr, "atp: %s\n", text);
	return -1;
}

int main(int argc, char **argv)
{
	struct member m = { .allreduce = allreduce };
	int ret;

	if (argc != 5)
		return 2;
	m.rank = member_number(argv[2]);
	m.workers = member_number(argv[3]);
	atp = atp_join(member_number(argv[4]), m.rank, 0);
	if (!atp)
		member_die("atp_join");
	ret = member_serve(&m, argv[1]);
	atp_leave(atp);
	return ret;
}
