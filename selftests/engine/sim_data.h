/* SPDX-License-Identifier: GPL-2.0 */
/* What ranks push, and what everybody must get */
#ifndef _ATP_SELFTESTS_SIM_DATA_H
#define _ATP_SELFTESTS_SIM_DATA_H

#include "sim_net.h"

/* The data: everything follows from data_seed, run, chunk, lane and rank. */
static u64 sim_data(const struct sim *s, u32 run, u32 chunk, u32 lane, u32 rank)
{
	u64 z = s->cfg.data_seed;

	z = sim_mix(z + 0x9e3779b97f4a7c15ULL * (run + 1));
	z = sim_mix(z + 0x9e3779b97f4a7c15ULL * (chunk + 1));
	z = sim_mix(z + 0x9e3779b97f4a7c15ULL * (lane + 1));
	return sim_mix(z + 0x9e3779b97f4a7c15ULL * (rank + 1));
}

static u32 sim_odd_value(u64 z, u32 scale)
{
	static const u32 odd[] = {
		0x7fc00000, 0xffc00001, 0x7f800000, 0xff800000, 0x80000000,
		0x00000001, 0x807fffff, 0x7f800001,
	};
	double v;

	switch (z % 3) {
	case 0:
		return odd[z / 3 % ARRAY_SIZE(odd)];
	case 1:
		/* half way between two integers */
		v = (double)(z / 3 % 1000) - 500 + 0.5;
		return oracle_bits(v / scale);
	}
	return 0;
}

static u32 sim_value(const struct sim *s, u32 run, u32 chunk, u32 lane,
		     u32 rank, u8 dtype)
{
	/* what kind of lane this is, is the same for all ranks; most blocks of
	 * 64 lanes are ordinary, so that most fragments are
	 */
	u64 kind = sim_data(s, run, chunk, lane, 100);
	bool plain = sim_data(s, run, chunk, lane / 64, 101) % 4;
	u64 z = sim_data(s, run, chunk, lane, rank);
	double unit = (double)(s64)z / 9223372036854775808.0;
	double limit = 2147483647.0 / s->cfg.scale;
	u32 data = plain ? 0 : s->cfg.data;

	if (dtype == ATP_INT32) {
		if (data & SIM_SUMS && kind % 8 == 0)
			return (s32)(2147483000.0 * unit);
		/* too much on the way, not in the end */
		if (data & SIM_ODD && kind % 8 == 1)
			return rank % 2 ? -S32_MAX : S32_MAX;
		return (s32)(unit * S32_MAX / s->cfg.workers);
	}
	if (data & SIM_BIG && kind % 8 == 0)
		return oracle_bits(limit * (1 + 1000 * unit));
	if (data & SIM_SUMS && kind % 8 == 1)
		return oracle_bits(limit * unit);
	if (data & SIM_SUMS && kind % 8 == 2)
		return oracle_bits((rank % 2 ? -0.9 : 0.9) * limit);
	if (data & SIM_ODD && kind % 8 == 3)
		return sim_odd_value(z, s->cfg.scale);
	return oracle_bits(unit * limit / s->cfg.workers);
}

/* What the application at the PS makes of a lane's sum: any bits */
static u32 sim_serve(const struct sim *s, u32 sum)
{
	return s->cfg.server ? sim_mix(sum) : sum;
}

/* Compute what everybody must get in this run. */
static void sim_expect(struct sim *s)
{
	u32 types = s->cfg.data & (SIM_INT | SIM_FLOAT);
	u32 in[ATP_MAX_WORKERS];
	struct sim_expect *e;
	u32 c, i, r;
	u64 z;

	for (c = 0; c < s->cfg.chunks; c++) {
		e = &s->expect[c];
		z = sim_data(s, s->run, c, 0, 102);
		e->elements = 1 + z % s->cfg.elements;
		e->dtype = types == SIM_INT ? ATP_INT32 :
			   types == SIM_FLOAT ? ATP_FLOAT32 :
			   z >> 63 ? ATP_INT32 : ATP_FLOAT32;
		e->overflow = false;
		free(e->lanes);
		e->lanes = malloc(4 * e->elements);
		for (i = 0; i < e->elements; i++) {
			for (r = 0; r < s->cfg.workers; r++)
				in[r] = sim_value(s, s->run, c, i, r, e->dtype);
			e->lanes[i] = oracle_lane(in, s->cfg.workers, e->dtype,
						  s->cfg.scale, &e->overflow);
		}
		for (i = 0; i < e->elements; i++)
			e->lanes[i] = sim_serve(s, e->lanes[i]);
	}
}

#endif /* _ATP_SELFTESTS_SIM_DATA_H */
