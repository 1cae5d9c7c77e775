// SPDX-License-Identifier: GPL-2.0
/*
 * The PS against an oracle that knows every worker's values: whatever subsets
 * come, in whatever order and however often, each answer has the bits that the
 * values themselves determine.
 */
#include "ps_fixture.h"

#define FRAGS	300

/* Everything that workers will ever push: fragment, rank, lane */
static u32 values[FRAGS][ATP_MAX_WORKERS][8];
static u32 shape_elements[FRAGS];
static u8 shape_dtype[FRAGS];
static bool shape_last[FRAGS];

/* What the oracle expects of each fragment */
static u32 due_value[FRAGS][8];
static u16 due_flags[FRAGS];

/* What it knows has been given to the PS, by the rules of protocol.rst */
static u32 model_bits[FRAGS];
static bool model_raw[FRAGS];
static bool model_done[FRAGS];
static u32 model_marks[FRAGS];
static u32 model_cap[FRAGS];
static u32 model_index[FRAGS];
static bool model_answered[FRAGS];

/* What has happened, so that a test that tests nothing is noticed */
static u32 met[ATP_DROP_MAX];
static u32 evicted;

static u32 gradient_bits(u32 wild)
{
	u32 sign = tap_rand() & 0x80000000;

	/* about 10^-5 to 1; seldom 8, 1000, 10^38 or no number */
	if (!tap_chance(wild))
		return sign | (110 + tap_below(17)) << 23 |
		       (tap_rand() & 0x7fffff);
	switch (tap_below(4)) {
	case 0:
		return sign | (127 + tap_below(5)) << 23 |
		       (tap_rand() & 0x7fffff);
	case 1:
		return sign | (132 + tap_below(120)) << 23 |
		       (tap_rand() & 0x7fffff);
	case 2:
		return sign | (tap_rand() & 0x7fffff);
	default:
		return sign | 0x7f800000 | (tap_chance(2) ? 0x400000 : 0);
	}
}

static s32 integer(u32 wild)
{
	if (!tap_chance(wild))
		return (s32)tap_rand() >> 12;
	return (s32)tap_rand() >> tap_below(3);
}

/* The result of a lane from the values alone.  Return: false if it is not a
 * 32-bit sum.
 */
static bool scaled_lane(u32 f, u32 lane, s64 *sum)
{
	u32 r;
	s32 v;

	*sum = 0;
	for (r = 0; r < params.workers; r++) {
		v = values[f][r][lane];
		if (shape_dtype[f] == ATP_FLOAT32 &&
		    !atp_quantise(values[f][r][lane], SCALE, &v))
			return false;
		*sum += v;
	}
	return *sum >= S32_MIN && *sum <= S32_MAX;
}

static void make_values(u32 wild)
{
	u32 f, r, lane, bits[ATP_MAX_WORKERS];
	s64 sum;

	for (f = 0; f < FRAGS; f++) {
		shape_dtype[f] = 1 + tap_below(2);
		shape_last[f] = tap_chance(3);
		shape_elements[f] = shape_last[f] ? 1 + tap_below(8) : 8;
		for (r = 0; r < params.workers; r++)
			for (lane = 0; lane < 8; lane++)
				values[f][r][lane] =
					shape_dtype[f] == ATP_FLOAT32 ?
					gradient_bits(wild) : integer(wild);

		due_flags[f] = ATP_F_ACK | (shape_last[f] ? ATP_F_LAST : 0);
		for (lane = 0; lane < shape_elements[f]; lane++) {
			if (scaled_lane(f, lane, &sum)) {
				due_value[f][lane] = sum;
			} else if (shape_dtype[f] == ATP_INT32) {
				due_flags[f] |= ATP_F_OVERFLOW;
				due_value[f][lane] =
					sum < 0 ? S32_MIN : S32_MAX;
			} else {
				due_flags[f] |= ATP_F_RAW;
			}
		}
		if (!(due_flags[f] & ATP_F_RAW))
			continue;
		for (lane = 0; lane < shape_elements[f]; lane++) {
			for (r = 0; r < params.workers; r++)
				bits[r] = values[f][r][lane];
			due_value[f][lane] = scaled_lane(f, lane, &sum) ?
				atp_dequantise(sum, SCALE) :
				atp_fsum(bits, params.workers);
		}
	}
}

/* A packet with the sum of some workers, as switches would make it: saturated
 * and flagged if it does not fit.
 */
static struct grad aggregate(u32 f, u32 bits, s32 *lanes)
{
	struct grad g = grad(f, bits, lanes);
	u32 lane, r;
	s64 sum;
	s32 v;

	g.dtype = shape_dtype[f];
	g.elements = shape_elements[f];
	g.flags = shape_last[f] ? ATP_F_LAST : 0;
	for (lane = 0; lane < g.elements; lane++) {
		sum = 0;
		for (r = 0; r < params.workers; r++) {
			if (!(bits & (1U << r)))
				continue;
			v = values[f][r][lane];
			if (g.dtype == ATP_FLOAT32 &&
			    !atp_quantise(values[f][r][lane], SCALE, &v)) {
				g.flags |= ATP_F_OVERFLOW;
				v = 0;
			}
			sum += v;
		}
		if (sum != (s32)sum)
			g.flags |= ATP_F_OVERFLOW;
		lanes[lane] = clamp_t(s64, sum, S32_MIN, S32_MAX);
	}
	return g;
}

static void check_answer(u32 f)
{
	u32 extra = 0;
	u32 lane;

	ASSERT_EQ(ans.seq, f);
	ASSERT_TRUE(model_done[f]);
	if (model_marks[f] & ATP_F_ECN)
		extra |= ATP_F_ECN;
	if (model_marks[f] & ATP_F_COLLISION)
		extra |= ATP_F_COLLISION;
	EXPECT_EQ(ans.flags & ~ATP_F_MCAST, due_flags[f] | extra);
	EXPECT_EQ(ans.elements, shape_elements[f]);
	EXPECT_EQ(ans.dtype, shape_dtype[f]);
	EXPECT_EQ(ans.cap, model_cap[f]);
	EXPECT_EQ(ans.index, f + 1000);
	if (!model_answered[f])
		model_index[f] = ans.bitmap0;
	model_answered[f] = true;
	EXPECT_EQ(ans.bitmap0, model_index[f]);
	for (lane = 0; lane < shape_elements[f]; lane++)
		EXPECT_EQ((u32)answer_lane(lane), due_value[f][lane]);
	if (shape_elements[f] % 2)
		EXPECT_EQ(answer_lane(shape_elements[f]), 0);
}

static void mark(u32 f, struct grad *g)
{
	g->flags |= tap_chance(6) ? ATP_F_SWITCHED : 0;
	g->flags |= tap_chance(30) ? ATP_F_ECN : 0;
	g->flags |= tap_chance(30) ? ATP_F_COLLISION : 0;
	g->ce = tap_chance(30);
	g->cap = tap_chance(9) ? tap_below(100) : ATP_NO_CAP;
	if (model_done[f])
		return;
	model_marks[f] |= g->flags & (ATP_F_ECN | ATP_F_COLLISION);
	model_marks[f] |= g->ce ? ATP_F_ECN : 0;
	model_cap[f] = min_t(u32, model_cap[f], g->cap);
}

/* Has the PS forgotten fragments in favour of older ones?  The oracle's rule:
 * at most eight are on the overflow path, and they are the oldest of those that
 * wanted to be.
 */
static u32 newest_raw(u32 frontier, u32 *count)
{
	u32 f, newest = 0;

	*count = 0;
	for (f = frontier; f < FRAGS; f++) {
		if (model_raw[f] && !model_done[f]) {
			newest = f;
			++*count;
		}
	}
	return newest;
}

static enum atp_drop model_start_raw(u32 f, u32 frontier)
{
	u32 count, newest = newest_raw(frontier, &count);

	if (count == ATP_PS_RAW_SLOTS) {
		if (newest < f)
			return ATP_DROP_RAWFULL;
		evicted++;
		model_raw[newest] = false;
		model_bits[newest] = 0;
		model_marks[newest] = 0;
		model_cap[newest] = ATP_NO_CAP;
	}
	model_raw[f] = true;
	model_bits[f] = 0;
	return ATP_OK;
}

static bool sums_fit(u32 f, u32 a, u32 b)
{
	s32 one[8], two[8];
	u32 lane;

	aggregate(f, a, one);
	aggregate(f, b, two);
	for (lane = 0; lane < shape_elements[f]; lane++)
		if ((s64)one[lane] + two[lane] !=
		    (s32)((u32)one[lane] + (u32)two[lane]))
			return false;
	return true;
}

/* The rules of protocol.rst once more, on sets */
static enum atp_drop model_rx(u32 f, const struct grad *g, u32 frontier)
{
	u32 known = model_bits[f], new = g->bits;
	enum atp_drop drop;

	if (model_done[f])
		return g->flags & ATP_F_RESEND ? ATP_OK : ATP_DROP_DUPLICATE;
	if (model_raw[f] && !(g->flags & ATP_F_RAW))
		return (g->sender & new & ~known) ? ATP_OK : ATP_DROP_DUPLICATE;
	if (g->flags & ATP_F_RAW) {
		if (!model_raw[f]) {
			drop = model_start_raw(f, frontier);
			if (drop)
				return drop;
		}
		if (model_bits[f] & new)
			return ATP_DROP_DUPLICATE;
		model_bits[f] |= new;
	} else {
		if ((known | new) == known)
			return ATP_DROP_DUPLICATE;
		if (g->flags & ATP_F_OVERFLOW)
			return model_start_raw(f, frontier);
		if ((known & new) && (known & new) != known)
			return ATP_DROP_OVERLAP;
		if (known && !(known & new) && !sums_fit(f, known, new))
			return model_start_raw(f, frontier);
		model_bits[f] |= new;
	}
	if (model_bits[f] == all_ranks())
		model_done[f] = true;
	return ATP_OK;
}

static u32 random_subset(u32 mood)
{
	u32 bits;

	if (mood == 0 || params.workers == 1)
		return 1U << tap_below(params.workers);
	if (mood == 1 && tap_chance(2))
		return all_ranks();
	bits = tap_rand() & all_ranks();
	if (tap_chance(2))
		bits &= tap_rand();
	return bits ? bits : 1U << tap_below(params.workers);
}

static void one_packet(u32 frontier, u32 mood)
{
	u32 window = params.window;
	u32 bits, r, sender, k;
	enum atp_drop due, got;
	s32 lanes[8];
	struct grad g;
	bool was_done;
	u32 asked;
	s32 f;

	f = (s32)frontier - (s32)window - 2 + (s32)tap_below(2 * window + 4);
	if (!tap_chance(3))
		f = frontier + tap_below(2);
	if (f < 0 || f >= FRAGS)
		return;
	bits = random_subset(mood);
	/* otherwise large jobs would never complete by chance */
	if (tap_chance(2) && (all_ranks() & ~model_bits[f]))
		bits &= ~model_bits[f];
	if (!bits)
		bits = all_ranks() & ~model_bits[f];
	if (model_raw[f] || tap_chance(40)) {
		do {
			r = tap_below(params.workers);
		} while (!(bits & (1U << r)));
		if (!tap_chance(10)) {
			g = grad(f, 1U << r, (s32 *)values[f][r]);
			g.dtype = shape_dtype[f];
			g.elements = shape_elements[f];
			g.flags = ATP_F_RAW |
				  (shape_last[f] ? ATP_F_LAST : 0);
		} else {
			g = aggregate(f, bits, lanes);
		}
	} else {
		g = aggregate(f, bits, lanes);
	}
	do {
		sender = tap_below(params.workers);
	} while (!(g.bits & (1U << sender)));
	g.sender = ranks_at(address[sender]);
	if (tap_chance(2))
		g.flags |= ATP_F_RESEND;

	if (f < (s32)(frontier - window)) {
		EXPECT_EQ(rx(&g), ATP_DROP_OLD);
		return;
	}
	if (f >= (s32)(frontier + window)) {
		EXPECT_EQ(rx(&g), ATP_DROP_FUTURE);
		return;
	}

	was_done = model_done[f];
	mark(f, &g);
	due = model_rx(f, &g, frontier);
	met[due]++;
	got = rx(&g);
	asked = g.bits & g.sender;
	/* a question gets an answer, and then it is not a useless packet; who
	 * holds up all is asked as well
	 */
	if (due == ATP_DROP_DUPLICATE && (g.flags & ATP_F_RESEND)) {
		due = ATP_OK;
		if (f == frontier)
			asked |= all_ranks() & ~model_bits[f];
	}
	ASSERT_EQ(got, due);

	EXPECT_EQ(!!(out.events & ATP_PS_EV_COMPLETE),
		  model_done[f] && !was_done);
	if (model_done[f]) {
		if (!was_done)
			EXPECT_EQ(out.ranks |
				  (out.mcast ? all_ranks() : 0), all_ranks());
		else if (g.flags & ATP_F_RESEND)
			EXPECT_EQ(out.ranks, g.bits & g.sender);
		for (k = 0; k < params.workers; k++) {
			if (out.type && (out.ranks & (1U << k))) {
				read_answer(k, false);
				check_answer(f);
			}
		}
		if (out.mcast) {
			read_answer(out.mcast_rank, true);
			EXPECT_TRUE(ans.flags & ATP_F_MCAST);
			check_answer(f);
		}
		return;
	}
	if (out.type == ATP_TYPE_STATUS) {
		read_answer(__ffs(out.ranks), false);
		EXPECT_EQ(ans.bitmap0, model_bits[f]);
		EXPECT_EQ(out.ranks, asked);
	}
	EXPECT_TRUE(out.type || !(g.flags & ATP_F_RESEND));
}

static void play(u32 workers, u32 window, u32 mood, u32 wild)
{
	u32 i, frontier = 0, f;

	make_ps(workers, 8, window);
	/* some ranks share a host */
	if (tap_chance(3))
		address[workers - 1] = 0;
	start_run();
	make_values(wild);
	memset(model_bits, 0, sizeof(model_bits));
	memset(model_raw, 0, sizeof(model_raw));
	memset(model_done, 0, sizeof(model_done));
	memset(model_marks, 0, sizeof(model_marks));
	memset(model_answered, 0, sizeof(model_answered));
	for (f = 0; f < FRAGS; f++)
		model_cap[f] = ATP_NO_CAP;

	for (i = 0; frontier < FRAGS; i++) {
		ASSERT_LT(i, 3000000);
		one_packet(frontier, mood);
		while (frontier < FRAGS && model_done[frontier])
			frontier++;
		ASSERT_EQ(ps.frontier, frontier);
		ASSERT_TRUE(ps.running);
	}
	EXPECT_EQ(ps.raw_used, 0);
	EXPECT_EQ(ps.stats.completed, FRAGS);
	EXPECT_EQ(ps.stats.switch_frags + ps.stats.ps_frags,
		  (u64)FRAGS * (workers - 1));
}

TEST(tame)
{
	u32 w;

	tap_seed(20241);
	for (w = 1; w <= 60; w++)
		play(1 + w % 9, 8, w % 3, 1000000000);
	EXPECT_GT(ps.stats.switch_frags, 0);
}

TEST(some_overflows)
{
	u32 w;

	tap_seed(20242);
	for (w = 1; w <= 120; w++)
		play(1 + w % 9, 1U << (w % 6), w % 3, w & 1 ? 60 : 300);
}

TEST(many_overflows)
{
	u32 w;

	tap_seed(20243);
	for (w = 1; w <= 120; w++)
		play(1 + w % 9, 16, w % 3, 6);
	EXPECT_GT(met[ATP_DROP_DUPLICATE], 1000);
	EXPECT_GT(met[ATP_DROP_OVERLAP], 1000);
	EXPECT_GT(met[ATP_DROP_RAWFULL], 50);
	EXPECT_GT(evicted, 50);
	printf("# %u duplicates, %u overlaps, %u without room, %u evicted\n",
	       met[ATP_DROP_DUPLICATE], met[ATP_DROP_OVERLAP],
	       met[ATP_DROP_RAWFULL], evicted);
}

TEST(many_workers)
{
	tap_seed(20244);
	play(31, 16, 0, 2000);
	play(32, 16, 1, 500);
	play(32, 32, 2, 100);
}

/* The same values, in other orders and with overflows seen in other places */
TEST(same_bits_every_time)
{
	static u32 first[40][8];
	u32 round, f, r, i, k, other, order[6], start;
	struct grad g;

	tap_seed(20245);
	make_ps(6, 8, 64);
	make_values(30);
	for (round = 0; round < 60; round++) {
		start_run();
		for (f = 0; f < 40; f++) {
			for (i = 0; i < 6; i++)
				order[i] = i;
			for (i = 0; i < 6; i++) {
				other = tap_below(6);
				swap(order[i], order[other]);
			}
			start = tap_below(12);
			for (i = 0; i < 12 && !(out.seq == f && out.events &
						ATP_PS_EV_COMPLETE); i++) {
				s32 lanes[8];

				r = order[i % 6];
				g = aggregate(f, 1U << r, lanes);
				if (i == start)
					g.flags |= ATP_F_OVERFLOW;
				if (ps.cells[f].state == ATP_CELL_RAW ||
				    (g.flags & ATP_F_OVERFLOW)) {
					rx(&g);
					g.flags &= ~ATP_F_OVERFLOW;
					g.flags |= ATP_F_RAW;
					g.lanes = (s32 *)values[f][r];
				}
				rx(&g);
			}
			ASSERT_EQ(ps.cells[f].state, ATP_CELL_COMPLETE);
			g = aggregate(f, 1, (s32[8]) { 0 });
			g.flags = (g.flags & ATP_F_LAST) | ATP_F_RESEND;
			ASSERT_EQ(rx(&g), ATP_OK);
			read_answer(0, false);
			for (k = 0; k < shape_elements[f]; k++) {
				if (!round)
					first[f][k] = answer_lane(k);
				EXPECT_EQ((u32)answer_lane(k), first[f][k]);
				EXPECT_EQ((u32)answer_lane(k), due_value[f][k]);
			}
			EXPECT_EQ(ans.flags, due_flags[f]);
		}
	}
}

/* Any packet that the parser lets through, from anybody: no step outside the
 * memory, no answer that cannot be built, no frontier that goes back.
 */
TEST(any_packet)
{
	u32 i, k, frontier, r, len, epoch;
	u8 buf[36 + 32];
	struct atp_pkt pkt;

	tap_seed(20246);
	make_ps(3, 8, 8);
	for (i = 0; i < 1000000; i++) {
		for (k = 0; k < sizeof(buf); k++)
			buf[k] = tap_rand();
		now += tap_below(2) * MS;
		memset(&pkt, 0, sizeof(pkt));
		pkt.type = 1;
		pkt.flags = tap_rand() & tap_rand() & tap_rand() & ATP_F_ALL;
		if (!tap_chance(10))
			pkt.flags &= ~(ATP_F_EDGE | ATP_F_ACK | ATP_F_MCAST);
		pkt.job = tap_chance(100) ? 78 : 77;
		pkt.epoch = ps.epoch - tap_chance(50);
		pkt.seq = ps.frontier + tap_below(20) - 10;
		pkt.bitmap0 = tap_below(tap_chance(50) ? 10 : 8);
		if ((pkt.bitmap0 & (pkt.bitmap0 - 1)) && !tap_chance(50))
			pkt.flags |= ATP_F_SWITCHED;
		pkt.fanin0 = tap_chance(50) ? 4 : 3;
		pkt.dtype = 1;
		pkt.elements = tap_chance(5000) ? tap_below(9) : 8;
		if (!tap_chance(20000))
			pkt.flags &= ~ATP_F_LAST;
		pkt.cap = tap_rand();
		atp_pkt_write_hdr(buf, &pkt);
		len = 36 + ATP_PAYLOAD_LEN(pkt.elements);
		if (tap_chance(500)) {
			struct atp_ctl_host c = {
				.nonce = tap_below(6), .workers = 3,
				.fragment = 32, .window = 8, .scale = SCALE,
			};

			pkt.type = 2 + tap_below(7);
			pkt.flags = 0;
			pkt.dtype = 0;
			pkt.elements = 0;
			r = tap_below(3);
			pkt.bitmap0 = 1U << r;
			if (pkt.type == ATP_TYPE_JOIN && tap_chance(2)) {
				pkt.epoch = ps.epoch;
				pkt.seq = ps.members[r].ticket;
			}
			len = atp_ctl_write(buf, &pkt, &c);
		}
		epoch = ps.epoch;
		frontier = ps.frontier;
		deliver(buf, len, tap_chance(2), tap_below(8));
		if (tap_chance(10))
			atp_ps_timeout(&ps, now, &out);
		if (tap_chance(50) && !ps.running) {
			for (r = 0; r < 3; r++)
				ps.members[r].pending = false;
			start_run();
			continue;
		}
		if (epoch == ps.epoch)
			EXPECT_GE((s32)(ps.frontier - frontier), 0);
		for (r = 0; out.type && r < 3; r++)
			if (out.ranks & (1U << r))
				read_answer(r, false);
		if (out.mcast)
			read_answer(out.mcast_rank, true);
		EXPECT_EQ(out.ranks & ~7, 0);
	}
	EXPECT_GT(ps.stats.completed, 1000);
	EXPECT_GT(ps.stats.raw, 100);
	EXPECT_GT(ps.stats.runs, 50);
	printf("# %llu fragments, %llu raw, %llu runs\n",
	       (unsigned long long)ps.stats.completed,
	       (unsigned long long)ps.stats.raw,
	       (unsigned long long)ps.stats.runs);
}

TAP_MAIN()
