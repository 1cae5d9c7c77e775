// SPDX-License-Identifier: GPL-2.0
/*
 * The parts of the switch's logic one by one: the table, the additions, the
 * checksum, the quota.
 */
#include <linux/bpf.h>
#include "../../userspace/switch/switch_logic.h"
#include "../include/tap.h"

static struct sw_agg *agg(void)
{
	static uint64_t room[sizeof(struct sw_agg) / 8 + 512];

	return (struct sw_agg *)room;
}

#define MINE	1
#define OTHER	2
#define OTHER_JOB	3

/* A packet of rank 0 of two, an aggregator in one of the states */
static uint32_t decide(int whose, uint32_t in, uint16_t flags, bool old)
{
	struct sw_pkt p = {
		.job = 1, .epoch = 2, .seq = 3, .bitmap = 1, .elements = 2,
		.dtype = 1, .flags = flags,
	};
	struct sw_agg *a = agg();

	*a = (struct sw_agg){ .job = 1, .epoch = 2, .seq = 3, .elements = 2,
			      .dtype = 1 };
	if (whose == OTHER)
		a->seq = 4;
	if (whose == OTHER_JOB)
		a->job = 2;
	if (whose)
		a->bitmap = in;
	return sw_decide(a, &p, 3, old);
}

TEST(table_empty)
{
	EXPECT_EQ(decide(0, 0, 0, false), SW_TAKE);
	EXPECT_EQ(decide(0, 0, ATP_F_RESEND, false), SW_FORWARD);
	EXPECT_EQ(decide(0, 0, ATP_F_RAW | ATP_F_RESEND, false), SW_FORWARD);
	EXPECT_EQ(decide(0, 0, ATP_F_OVERFLOW, false), SW_FORWARD);
	/* the stamp of an empty one says nothing */
	EXPECT_EQ(decide(0, 0, 0, true), SW_TAKE);
}

TEST(table_mine_not_in)
{
	uint32_t out = SW_ADD | SW_OUT | SW_FORWARD;

	EXPECT_EQ(decide(MINE, 2, 0, false), out);
	EXPECT_EQ(decide(MINE, 2, ATP_F_RESEND, false), out | SW_EMPTY);
	EXPECT_EQ(decide(MINE, 2, ATP_F_OVERFLOW, false), out);
	EXPECT_EQ(decide(MINE, 2, ATP_F_RAW | ATP_F_RESEND, false),
		  SW_EMPTY | SW_FORWARD);
	/* one's own is never abandoned */
	EXPECT_EQ(decide(MINE, 2, 0, true), out);
}

TEST(table_mine_in)
{
	EXPECT_EQ(decide(MINE, 1, 0, false), SW_MARK);
	EXPECT_EQ(decide(MINE, 3, 0, false), SW_MARK);
	EXPECT_EQ(decide(MINE, 1, ATP_F_RESEND, false),
		  SW_MARK | SW_OUT | SW_EMPTY | SW_FORWARD);
	EXPECT_EQ(decide(MINE, 3, ATP_F_RESEND, false),
		  SW_MARK | SW_OUT | SW_EMPTY | SW_FORWARD);
	EXPECT_EQ(decide(MINE, 1, ATP_F_RAW | ATP_F_RESEND, false),
		  SW_EMPTY | SW_FORWARD);
	/* other length or type */
	EXPECT_EQ(decide(MINE, 1, ATP_F_LAST, false), SW_FORWARD);
	EXPECT_EQ(decide(MINE, 2, ATP_F_LAST | ATP_F_RESEND, false),
		  SW_FORWARD);
}

TEST(table_anothers)
{
	EXPECT_EQ(decide(OTHER, 1, 0, false), SW_COLLIDE | SW_FORWARD);
	EXPECT_EQ(decide(OTHER, 1, ATP_F_RESEND, false),
		  SW_COLLIDE | SW_FORWARD);
	EXPECT_EQ(decide(OTHER, 1, ATP_F_RAW | ATP_F_RESEND, false),
		  SW_COLLIDE | SW_FORWARD);
	EXPECT_EQ(decide(OTHER, 1, 0, true), SW_EVICT | SW_TAKE);
	EXPECT_EQ(decide(OTHER, 1, ATP_F_RESEND, true),
		  SW_EVICT | SW_FORWARD);
	EXPECT_EQ(decide(OTHER, 1, ATP_F_OVERFLOW, true),
		  SW_EVICT | SW_FORWARD);
}

/* What takes nothing has no quota against which it could empty any. */
TEST(table_another_jobs)
{
	EXPECT_EQ(decide(OTHER_JOB, 1, 0, false), SW_COLLIDE | SW_FORWARD);
	EXPECT_EQ(decide(OTHER_JOB, 1, 0, true), SW_EVICT | SW_TAKE);
	EXPECT_EQ(decide(OTHER_JOB, 1, ATP_F_RESEND, true),
		  SW_COLLIDE | SW_FORWARD);
	EXPECT_EQ(decide(OTHER_JOB, 1, ATP_F_RAW | ATP_F_RESEND, true),
		  SW_COLLIDE | SW_FORWARD);
	EXPECT_EQ(decide(OTHER_JOB, 1, ATP_F_OVERFLOW, true),
		  SW_COLLIDE | SW_FORWARD);
}

TEST(identity_is_all_three)
{
	struct sw_pkt p = { .job = 1, .epoch = 2, .seq = 3 };
	struct sw_agg *a = agg();

	*a = (struct sw_agg){ .job = 1, .epoch = 2, .seq = 3, .bitmap = 1 };
	EXPECT_TRUE(sw_is(a, &p));
	EXPECT_TRUE(sw_frees(a, &p, false));
	p.job++;
	EXPECT_FALSE(sw_is(a, &p));
	EXPECT_FALSE(sw_frees(a, &p, true));
	p.job--;
	p.epoch++;
	EXPECT_FALSE(sw_is(a, &p));
	p.epoch--;
	p.seq++;
	EXPECT_FALSE(sw_is(a, &p));
	EXPECT_FALSE(sw_frees(a, &p, false));
	EXPECT_TRUE(sw_frees(a, &p, true));
	a->bitmap = 0;
	EXPECT_FALSE(sw_frees(a, &p, true));
}

TEST(rank_of_bitmap)
{
	struct sw_pkt p;
	uint32_t i;

	for (i = 0; i < 32; i++) {
		EXPECT_EQ(sw_rank(1U << i), i);
		p.bitmap = 1U << i;
		EXPECT_FALSE(sw_bad_bitmap(&p, ~0U));
		EXPECT_EQ(sw_bad_bitmap(&p, 0xff), i >= 8);
		p.bitmap |= 1U << (i + 1) % 32;
		EXPECT_TRUE(sw_bad_bitmap(&p, ~0U));
	}
	p.bitmap = 0;
	EXPECT_TRUE(sw_bad_bitmap(&p, ~0U));
}

static const int32_t edge[] = {
	INT32_MIN, INT32_MIN + 1, INT32_MIN + 2, -0x40000001, -0x40000000,
	-0x3fffffff, -0x10000, -2, -1, 0, 1, 2, 0xffff, 0x10000, 0x3fffffff,
	0x40000000, 0x40000001, INT32_MAX - 1, INT32_MAX,
};

#define EDGES	((int)(sizeof(edge) / sizeof(edge[0])))

static uint64_t pair(int32_t high, int32_t low)
{
	return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

/* What the narrow form has room for */
static bool fits(int64_t v)
{
	return v >= -0x40000000 && v < 0x40000000;
}

/* Into the narrow form, added to, and out: two lanes against each alone */
static void narrow(int32_t a, int32_t b, int32_t c, int32_t d)
{
	int64_t high = (int64_t)a + c, low = (int64_t)b + d;
	uint64_t t = sw_lane_in(pair(a, b), SW_LANE_SIGNS, SW_LANE_BIAS), sum;

	ASSERT_EQ(!(t & SW_LANE_SIGNS), fits(a) && fits(b));
	if (t & SW_LANE_SIGNS)
		return;
	ASSERT_EQ(sw_lane_out(t, SW_LANE_SIGNS, SW_LANE_BIAS), pair(a, b));
	sum = t + sw_lane_signed(pair(c, d), SW_LANE_SIGNS);
	/* whatever came of it can be taken back */
	ASSERT_EQ(sum - sw_lane_signed(pair(c, d), SW_LANE_SIGNS), t);
	ASSERT_EQ(!(sum & SW_LANE_SIGNS), fits(high) && fits(low));
	if (!(sum & SW_LANE_SIGNS))
		ASSERT_EQ(sw_lane_out(sum, SW_LANE_SIGNS, SW_LANE_BIAS),
			  pair((int32_t)high, (int32_t)low));
}

/* All pairs of pairs of edge values */
TEST(two_lanes_at_once)
{
	int i;

	for (i = 0; i < EDGES * EDGES * EDGES * EDGES; i++)
		narrow(edge[i % EDGES], edge[i / EDGES % EDGES],
		       edge[i / EDGES / EDGES % EDGES],
		       edge[i / EDGES / EDGES / EDGES]);
}

TEST(random_lanes_at_once)
{
	int i;

	tap_seed(21);
	for (i = 0; i < 5000000; i++) {
		uint64_t x = tap_rand64(), y = tap_rand64();
		int by = tap_below(4);

		narrow((int32_t)x >> by, (int32_t)(x >> 32) >> by, (int32_t)y,
		       (int32_t)(y >> 32));
	}
}

TEST(saturated_lane)
{
	int a, b;

	for (a = 0; a < EDGES; a++) {
		for (b = 0; b < EDGES; b++) {
			int64_t sum = (int64_t)edge[a] + edge[b], want;
			__u64 over = 0;

			want = sum > INT32_MAX ? INT32_MAX :
			       sum < INT32_MIN ? INT32_MIN : sum;
			EXPECT_EQ((int32_t)sw_add1_saturated(edge[a], edge[b],
							     &over), want);
			EXPECT_EQ(over >> 63, sum != want);
		}
	}
}

static uint32_t sum16(const uint8_t *p, int bytes)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < bytes; i += 2) {
		sum += p[i] | p[i + 1] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

/* 0 and 0xffff are the same number in ones' complement */
#define EXPECT_SUM(got, p, bytes)					\
	EXPECT_EQ(((got) & 0xffff) % 0xffff, sum16(p, bytes) % 0xffff)

/*
 * All loops over lanes, for every number of words, with the packet at an odd
 * address, exactly as long as it is (the sanitizer sees one byte more).  The
 * first value or the sum leaves the narrow range, or the range of a lane, in
 * one lane, the last perhaps; or nothing does.
 */
static void check_loops(int words, int32_t first, int32_t second)
{
	const int blocks = SW_MAX_BLOCKS;
	uint8_t *p = malloc(words * 8 + 1), *q = p + 1;
	uint64_t *lanes = calloc(blocks * SW_BLOCK, 8);
	uint64_t *before = malloc(blocks * SW_BLOCK * 8);
	int64_t want = (int64_t)first + second;
	uint8_t *end = q + words * 8;
	int32_t x[2 * 425], y[2 * 425];
	bool over = false, wide;
	uint32_t sum;
	int i, at;

	for (i = 0; i < 2 * words; i++) {
		x[i] = (int32_t)tap_rand() >> 2;
		y[i] = (int32_t)tap_rand() >> 2;
	}
	at = tap_chance(2) ? 2 * words - 1 : (int)tap_below(2 * words);
	x[at] = first;
	y[at] = second;

	memcpy(q, x, words * 8);
	sum = sw_lanes(q, end, (__u64 *)lanes, blocks, sw_step_take);
	wide = sum & SW_LANES_LEFT;
	EXPECT_EQ(wide, !fits(first));
	if (wide) {
		sw_lanes(q, end, (__u64 *)lanes, blocks, sw_step_copy);
		EXPECT_FALSE(memcmp(lanes, x, words * 8));
	}
	for (i = words; i < blocks * SW_BLOCK; i++)
		EXPECT_EQ(lanes[i], 0);

	memcpy(q, y, words * 8);
	sum = sw_lanes(q, end, (__u64 *)lanes, blocks, sw_step_sum);
	EXPECT_SUM(sum, q, words * 8);
	if (!wide) {
		memcpy(before, lanes, blocks * SW_BLOCK * 8);
		sum = sw_lanes(q, end, (__u64 *)lanes, blocks, sw_step_add);
		EXPECT_SUM(sum, q, words * 8);
		EXPECT_EQ(!!(sum & SW_LANES_LEFT), !fits(want));
		sw_lanes(q, end, (__u64 *)lanes, blocks, sw_step_undo);
		EXPECT_FALSE(memcmp(lanes, before, blocks * SW_BLOCK * 8));
		sw_lanes(q, end, (__u64 *)lanes, blocks, sw_step_add);
	}
	if (wide || sum & SW_LANES_LEFT) {
		if (!wide)
			sw_lanes(q, end, (__u64 *)lanes, blocks, sw_step_widen);
		wide = true;
		over = sw_lanes_saturate(q, end, (__u64 *)lanes,
					 blocks * SW_BLOCK);
	}
	EXPECT_EQ(over, want != (int32_t)want);

	sum = sw_lanes(q, end, (__u64 *)lanes, blocks,
		       wide ? sw_step_out_wide : sw_step_out);
	EXPECT_SUM(sum, q, words * 8);
	for (i = 0; i < 2 * words; i++) {
		int64_t v = (int64_t)x[i] + y[i];
		int32_t got;

		memcpy(&got, q + 4 * i, 4);
		EXPECT_EQ(got, v < INT32_MIN ? INT32_MIN :
			       v > INT32_MAX ? INT32_MAX : v);
	}
	free(p);
	free(lanes);
	free(before);
}

TEST(all_loops)
{
	static const int32_t value[][2] = {
		{ 0, 0 }, { 0x3fffffff, -1 }, { -0x40000000, 0 },
		{ 0x3fffffff, 1 }, { -0x40000000, -1 }, { 0x40000000, 0 },
		{ -0x40000001, 5 }, { 0x3fffffff, INT32_MAX },
		{ -0x40000000, INT32_MIN }, { INT32_MAX, 1 },
		{ INT32_MIN, -1 }, { INT32_MAX, INT32_MIN },
	};
	unsigned int i;
	int words;

	tap_seed(22);
	for (words = 1; words <= ATP_FRAGMENT_MAX / 8; words++) {
		for (i = 0; i < sizeof(value) / sizeof(value[0]); i++)
			check_loops(words, value[i][0], value[i][1]);
	}
}

/* All bits set is where sums of halves are greatest */
TEST(checksum_of_ones)
{
	const int blocks = SW_MAX_BLOCKS;
	uint64_t *lanes = malloc(blocks * SW_BLOCK * 8);
	uint8_t *p = malloc(blocks * SW_BLOCK * 8);
	uint8_t *end = p + ATP_FRAGMENT_MAX;

	memset(p, 0xff, ATP_FRAGMENT_MAX);
	EXPECT_EQ(sw_lanes(p, end, (__u64 *)lanes, blocks, sw_step_sum),
		  0xffff);
	memset(lanes, 0xff, blocks * SW_BLOCK * 8);
	EXPECT_EQ(sw_lanes(p, end, (__u64 *)lanes, blocks, sw_step_out_wide) &
		  0xffff, 0xffff);
	sw_lanes(p, end, (__u64 *)lanes, blocks, sw_step_take);
	EXPECT_EQ(sw_lanes(p, end, (__u64 *)lanes, blocks, sw_step_add),
		  0xffff);
	EXPECT_EQ(sw_fold(~0ULL), 0xffff);
	EXPECT_EQ(sw_fold(0), 0);
	EXPECT_EQ(sw_fold(0x0001000100010001ULL), 4);
	free(p);
	free(lanes);
}

TEST(runs_that_are_over)
{
	struct sw_state state = {};
	uint32_t i;

	EXPECT_FALSE(sw_is_over(&state, 0));
	EXPECT_FALSE(sw_is_over(&state, ~0U));
	/* around the end of the numbers */
	for (i = -3; i != 4; i++) {
		sw_begin(&state, i);
		EXPECT_FALSE(sw_is_over(&state, i));
		EXPECT_TRUE(sw_is_over(&state, i - 1));
		EXPECT_TRUE(sw_is_over(&state, i - 256));
		EXPECT_FALSE(sw_is_over(&state, i - 257));
		EXPECT_FALSE(sw_is_over(&state, i + 1));
		/* late, or once more */
		sw_begin(&state, i - 1);
		EXPECT_TRUE(sw_is_over(&state, i - 1));
		sw_begin(&state, i);
		EXPECT_FALSE(sw_is_over(&state, i));
	}
	EXPECT_EQ(state.left, 0);
	/* a leap, which may be somebody's lie, and then the next run */
	sw_begin(&state, 0x80000000);
	EXPECT_FALSE(sw_is_over(&state, 0x80000000));
	EXPECT_TRUE(sw_is_over(&state, 0x7fffffff));
	EXPECT_FALSE(sw_is_over(&state, 3));
	EXPECT_TRUE(sw_is_over(&state, 2));
	sw_begin(&state, 4);
	EXPECT_FALSE(sw_is_over(&state, 4));
	EXPECT_TRUE(sw_is_over(&state, 3));
	EXPECT_FALSE(sw_is_over(&state, 0x80000000));
	EXPECT_TRUE(sw_is_over(&state, 0x7fffffff));
}

TEST(runs_that_go_on)
{
	struct sw_state state = {};
	uint32_t i;

	/* nothing is known yet */
	EXPECT_TRUE(sw_is_current(&state, 0));
	EXPECT_TRUE(sw_is_current(&state, ~0U));
	for (i = -3; i != 4; i++) {
		sw_begin(&state, i);
		EXPECT_TRUE(sw_is_current(&state, i));
		EXPECT_FALSE(sw_is_current(&state, i - 1));
		EXPECT_FALSE(sw_is_current(&state, i + 1));
		EXPECT_FALSE(sw_is_current(&state, i ^ 1U << 31));
		EXPECT_FALSE(sw_is_current(&state, ~i));
		/* late */
		sw_begin(&state, i - 1);
		EXPECT_TRUE(sw_is_current(&state, i));
		EXPECT_FALSE(sw_is_current(&state, i - 1));
	}
	/* a lie, and what the PS says of the run that goes on */
	sw_begin(&state, 0x80000000);
	EXPECT_TRUE(sw_is_current(&state, 0x80000000));
	EXPECT_TRUE(sw_is_current(&state, 3));
	sw_begin(&state, 3);
	EXPECT_TRUE(sw_is_current(&state, 3));
	sw_begin(&state, 0x1000);
	sw_begin(&state, 0x8000);
	EXPECT_FALSE(sw_is_current(&state, 3));
	sw_begin(&state, 3);
	EXPECT_TRUE(sw_is_current(&state, 3));
}

TEST(quota)
{
	struct sw_state state = {};
	int i;

	for (i = 0; i < 3; i++)
		EXPECT_TRUE(sw_quota_take(&state, 3));
	EXPECT_FALSE(sw_quota_take(&state, 3));
	EXPECT_EQ(state.occupied, 3);
	EXPECT_EQ(state.most, 3);
	sw_quota_give(&state);
	EXPECT_TRUE(sw_quota_take(&state, 3));
	EXPECT_FALSE(sw_quota_take(&state, 3));
}

TEST(lock)
{
	struct sw_agg *a = agg();

	a->lock = SW_LOCK_FREE;
	EXPECT_TRUE(sw_lock(a, 1));
	EXPECT_FALSE(sw_lock(a, 100));
	sw_unlock(a);
	EXPECT_TRUE(sw_lock(a, 1));
	a->lock = SW_LOCK_USER;
	EXPECT_FALSE(sw_lock(a, 100));
	a->lock = SW_LOCK_FREE;
}

/* The clock may have been read before the one that stamped it */
TEST(age)
{
	struct sw_agg *a = agg();

	a->stamp = 1000;
	EXPECT_FALSE(sw_is_old(a, 999, 10));
	EXPECT_FALSE(sw_is_old(a, 1010, 10));
	EXPECT_TRUE(sw_is_old(a, 1011, 10));
}

TAP_MAIN()
