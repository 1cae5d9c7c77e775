// SPDX-License-Identifier: GPL-2.0
/* Arrays of lanes, against a loop over bytes and sums of 64 bits */
#include <tap.h>
#include "lanes_priv.h"

#define MOST	67		/* several registers full, and a rest */

static u8 wire[4 * MOST + 8];
static s32 value[MOST + 2];

static u32 lane_at(const u8 *from, u32 i)
{
	from += 4 * i;
	return from[0] | from[1] << 8 | from[2] << 16 | (u32)from[3] << 24;
}

/* half of them near the ends of the range */
static u32 some_lane(void)
{
	u32 v = tap_rand() >> tap_below(32);

	if (tap_below(2))
		return v;
	return tap_below(2) ? S32_MAX - v % 3 : S32_MIN + v % 3;
}

/* Lanes at every distance from a multiple of the register's length */
TEST(there_and_back)
{
	u32 n, at, i;

	tap_seed(20240);
	for (n = 0; n <= MOST; n++) {
		for (at = 0; at < 8; at++) {
			for (i = 0; i < sizeof(wire); i++)
				wire[i] = tap_rand();
			value[n] = 0x5a5a5a5a;
			atp_lanes_get((u32 *)value, wire + at, n);
			for (i = 0; i < n; i++)
				ASSERT_EQ((u32)value[i], lane_at(wire + at, i));
			ASSERT_EQ(value[n], 0x5a5a5a5a);

			memset(wire, 0x5a, sizeof(wire));
			atp_lanes_put(wire + at, (u32 *)value, n);
			for (i = 0; i < n; i++)
				ASSERT_EQ((u32)value[i], lane_at(wire + at, i));
			for (i = 0; i < at; i++)
				ASSERT_EQ(wire[i], 0x5a);
			for (i = at + 4 * n; i < sizeof(wire); i++)
				ASSERT_EQ(wire[i], 0x5a);
		}
	}
}

/* One way to add: does it say what fits, and add that? */
static void check_add(bool (*add)(s32 *sum, const void *from, u32 n), u32 n,
		      u32 at, bool undoes)
{
	s32 before[MOST + 2], due[MOST];
	bool fits = true;
	s64 sum;
	u32 i;

	memcpy(before, value, sizeof(before));
	for (i = 0; i < n; i++) {
		sum = (s64)value[i] + (s32)lane_at(wire + at, i);
		fits &= sum == (s32)sum;
		due[i] = sum;
	}
	ASSERT_EQ(add(value, wire + at, n), fits);
	if (fits)
		ASSERT_TRUE(!memcmp(value, due, 4 * n));
	else if (undoes)
		ASSERT_TRUE(!memcmp(value, before, 4 * n));
	/* nothing behind the last */
	ASSERT_TRUE(!memcmp(value + n, before + n, 8));
	memcpy(value, before, sizeof(before));
}

static bool add_by_one(s32 *sum, const void *from, u32 n)
{
	return add_lanes(sum, from, n);
}

static void check_all(u32 n, u32 at)
{
	check_add(atp_lanes_add, n, at, true);
	check_add(atp_lanes_add_fpu, n, at, false);
	check_add(add_by_one, n, at, false);
}

TEST(add_random)
{
	u32 round, n, i;

	tap_seed(20241);
	for (round = 0; round < 20; round++) {
		for (n = 0; n <= MOST; n++) {
			for (i = 0; i < n; i++) {
				value[i] = some_lane();
				put_unaligned_le32(some_lane(), wire + 4 * i);
			}
			check_all(n, 0);
		}
	}
}

/* One lane does not fit, wherever it is; or just fits */
TEST(add_one_that_overflows)
{
	u32 n, i, at;

	for (n = 1; n <= MOST; n++) {
		for (i = 0; i < n; i++) {
			at = i % 5;
			memset(value, 0, sizeof(value));
			memset(wire, 0, sizeof(wire));
			value[i] = S32_MAX;
			check_all(n, at);
			put_unaligned_le32(1, wire + at + 4 * i);
			check_all(n, at);
			value[i] = S32_MIN;
			check_all(n, at);
			put_unaligned_le32(-1, wire + at + 4 * i);
			check_all(n, at);
		}
	}
}

TAP_MAIN()
