// SPDX-License-Identifier: GPL-2.0
/*
 * A member of one rank, whose sums are its own values: nothing to do.  One lane
 * of one tensor it gets wrong, by the last bit.
 *
 * usage: planted SOCKET TENSOR LANE	TENSOR that is not there: all are right
 */
#include <stdint.h>
#include <string.h>

#include "../../userspace/bench/rack/member.h"

static size_t wrong_tensor, wrong_lane;

static int allreduce(float *tensor, size_t count, int index)
{
	uint32_t bits;

	if ((size_t)index != wrong_tensor || wrong_lane >= count)
		return 0;
	memcpy(&bits, tensor + wrong_lane, sizeof(bits));
	bits ^= 1;
	memcpy(tensor + wrong_lane, &bits, sizeof(bits));
	return 0;
}

int main(int argc, char **argv)
{
	const struct member m = { .workers = 1, .allreduce = allreduce };

	if (argc != 4)
		return 2;
	wrong_tensor = member_number(argv[2]);
	wrong_lane = member_number(argv[3]);
	return member_serve(&m, argv[1]);
}
