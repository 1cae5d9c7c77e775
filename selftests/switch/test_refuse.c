// SPDX-License-Identifier: GPL-2.0
/*
 * What must not get through: fields out of range, wrong lengths and checksums,
 * every single flipped bit.  None of it may change an aggregator, and what is
 * left to the kernel is left as it came.
 */
#include "refuse_fixture.h"

static void headers(bool v6)
{
	uint32_t len, i;

	begin(v6);
	expect_left_alone(1, with_byte(0, 2), "version");
	for (i = 0; i < 256; i++) {
		if (i != ATP_TYPE_DATA)
			expect_left_alone(1, with_byte(1, i), "type");
	}
	for (i = 0x04; i < 0x100; i <<= 1)
		expect_drop(1, with_byte(2, i), &count.drop_header,
			    "undefined flag");
	expect_drop(1, with_byte(3, ATP_F_EDGE), &count.drop_header, "edge");
	expect_drop(1, with_byte(2, ATP_F_MCAST >> 8), &count.drop_header,
		    "gradient to all");
	expect_drop(1, with_byte(20, 1), &count.drop_header, "bitmap1");
	expect_drop(1, with_byte(23, 1), &count.drop_header, "bitmap1");
	expect_drop(1, with_byte(25, 1), &count.drop_header, "fanInDegree1");
	expect_drop(1, with_byte(27, 1), &count.drop_header, "treeID");
	expect_drop(1, with_byte(26, 0), &count.drop_header, "dataType");
	expect_drop(1, with_byte(26, 3), &count.drop_header, "dataType");
	expect_drop(1, with_byte(32, 1), &count.drop_length, "elements");
	expect_drop(1, with_byte(33, LANES + 2), &count.drop_length,
		    "elements");
	expect_drop(1, with_byte(33, 0), &count.drop_length, "elements");
	expect_drop(1, with_byte(36 + 4 * LANES, 1), &count.drop_length,
		    "padding");

	expect_drop(1, with_byte(19, 0), &count.drop_bitmap, "no worker");
	expect_drop(1, with_byte(19, 3), &count.drop_bitmap, "two workers");
	expect_drop(1, with_byte(19, 4), &count.drop_bitmap, "third worker");
	expect_drop(1, with_byte(19, 1), &count.drop_stranger, "other rank");
	expect_drop(0, with_byte(19, 2), &count.drop_port, "other port");
	expect_left_alone(1, with_byte(24, 3), "fanInDegree0");
	expect_drop(0, with_byte(24, 3), &count.drop_port,
		    "fanInDegree0 at another port");
	expect_left_alone(1, with_byte(7, 9), "unknown job");

	/* no elements where there must be some */
	pkt.elements = 0;
	len = f_make(&pkt, frame);
	expect_drop(1, len, &count.drop_header, "empty gradient");
	c_close();
}

TEST(header_ipv4)
{
	headers(false);
}

TEST(header_ipv6)
{
	headers(true);
}

/* What hosts would refuse leaves no aggregator and reaches no host. */
static void contradictions(bool v6)
{
	static const uint16_t of_ps[] = {
		ATP_F_RESEND, ATP_F_RAW, ATP_F_RAW | ATP_F_OVERFLOW,
	};
	uint32_t len, i;

	begin(v6);
	expect_drop(1, with_byte(3, ATP_F_RAW | ATP_F_OVERFLOW),
		    &count.drop_header, "raw values and a sum");
	for (i = 0; i < sizeof(of_ps) / sizeof(of_ps[0]); i++) {
		c_parameter(&pkt, &job, 0, 0);
		pkt.flags |= of_ps[i];
		len = f_make(&pkt, frame);
		expect_drop(2, len, &count.drop_header, "parameter packet");
	}
	c_parameter(&pkt, &job, 0, 0);
	pkt.flags |= ATP_F_OVERFLOW;
	pkt.dtype = ATP_FLOAT32;
	len = f_make(&pkt, frame);
	expect_drop(2, len, &count.drop_header, "float32 sum too large");
	c_close();
}

TEST(contradictions_ipv4)
{
	contradictions(false);
}

TEST(contradictions_ipv6)
{
	contradictions(true);
}

/* From one byte to too many, with headers that say the whole length */
static void lengths(bool v6)
{
	uint32_t len, full, drops = 0;

	begin(v6);
	full = f_make(&pkt, frame);
	for (len = 14; len < full + 16; len++) {
		int verdict;

		memset(frame, 0, F_ROOM - 2);
		f_make(&pkt, frame);
		if (len == full)
			continue;
		verdict = run(1, len);
		EXPECT_TRUE(unchanged());
		EXPECT_FALSE(verdict == XDP_REDIRECT);
		drops += verdict == XDP_ABORTED;
		/* as soon as the ATP header is there it is our business */
		EXPECT_EQ(verdict, len < f_udp(v6) + 44 ? XDP_PASS :
							  XDP_ABORTED);
	}
	t_counters(1, &count);
	EXPECT_EQ(count.drop_length, drops);

	/* lengths that disagree with each other, checksums right */
	f_make(&pkt, frame);
	frame[f_udp(v6) + 5] += 8;
	f_seal(frame, full);
	expect_drop(1, full, &count.drop_length, "UDP length");
	f_make(&pkt, frame);
	frame[v6 ? 19 : 17] += 8;
	f_seal(frame, full);
	expect_drop(1, full, &count.drop_length, "IP length");
	f_make(&pkt, frame);
	f_seal(frame, full + 8);
	expect_drop(1, full + 8, &count.drop_length, "trailing bytes");
	c_close();
}

TEST(length_ipv4)
{
	lengths(false);
}

TEST(length_ipv6)
{
	lengths(true);
}

static void checksums(bool v6)
{
	uint32_t len, at;
	uint16_t pseudo;

	begin(v6);
	at = f_udp(v6) + 6;
	len = f_make(&pkt, frame);
	frame[at] = 0;
	frame[at + 1] = 0;
	expect_drop(1, len, &count.drop_csum_none, "no checksum");

	f_make(&pkt, frame);
	pseudo = f_pseudo(frame, len);
	frame[at] = pseudo >> 8;
	frame[at + 1] = pseudo & 0xff;
	expect_drop(1, len, &count.drop_csum_partial, "partial checksum");

	f_make(&pkt, frame);
	frame[at] ^= 0x40;
	expect_drop(1, len, &count.drop_csum, "wrong checksum");
	if (!v6) {
		f_make(&pkt, frame);
		frame[24] ^= 1;
		expect_drop(1, len, &count.drop_csum, "IP checksum");
	}
	/* two changes whose ones' complement sums cancel out are not seen by
	 * any checksum; the padding at least is
	 */
	c_close();
}

TEST(checksum_ipv4)
{
	checksums(false);
}

TEST(checksum_ipv6)
{
	checksums(true);
}

/* What leaves may have any sum, zero for example, which is sent as ones */
TEST(checksum_of_every_value)
{
	uint32_t i, ones = 0;

	begin(false);
	for (i = 0; i < 0x10000 && !(tap_failures + c_failures); i++) {
		c_gradient(&pkt, &job, 1, 1);
		pkt.flags |= ATP_F_RESEND;
		pkt.elements = 2;
		pkt.lane[0] = i;
		f_make(&pkt, frame);
		EXPECT_EQ(t_run(1, frame, f_udp(false) + 52), XDP_REDIRECT);
		EXPECT_TRUE(f_valid(frame, f_udp(false) + 52));
		ones += frame[40] == 0xff && frame[41] == 0xff;
	}
	EXPECT_GE(ones, 1);
	c_close();
}

/* Does rank 1's gradient of a run go on because that is another run?  Else it
 * meets the aggregator, which is another fragment's.
 */
static bool goes_on(uint32_t epoch)
{
	struct f_pkt got;
	uint32_t len;
	__u64 stale;

	c_gradient(&pkt, &job, 1, 7);
	pkt.index = 0;
	pkt.epoch = epoch;
	len = f_make(&pkt, frame);
	stale = count.stale;
	EXPECT_EQ(run(1, len), XDP_REDIRECT);
	EXPECT_TRUE(unchanged());
	ASSERT_TRUE(f_read(&got, frame, len));
	t_counters(1, &count);
	EXPECT_EQ(got.flags, ATP_F_SWITCHED |
			     (count.stale == stale ? ATP_F_COLLISION : 0));
	EXPECT_EQ(got.bitmap, 2);
	return count.stale == stale + 1;
}

static void earlier_runs(bool v6)
{
	static const uint16_t flags[] = {
		0, ATP_F_RESEND, ATP_F_RAW | ATP_F_RESEND,
	};
	struct f_pkt last, got;
	uint32_t len, i;

	begin(v6);
	last = pkt;
	EXPECT_FALSE(goes_on(0));
	/* who is not the PS, or not the PS's kernel, begins none */
	len = c_welcome(&job, 2, frame);
	frame[f_udp(v6) + 1] ^= 1;
	f_seal(frame, len);
	expect_left_alone(2, len, "another's port");
	c_welcome(&job, 2, frame);
	frame[f_udp(v6) - 1 - (v6 ? 16 : 4)] ^= 0x40;
	f_seal(frame, len);
	expect_left_alone(2, len, "another's address");
	c_welcome(&job, 2, frame);
	expect_drop(1, len, &count.drop_port, "at a worker's port");
	EXPECT_FALSE(goes_on(1));
	/* nor does one with a wrong bit */
	for (i = f_udp(v6) * 8; i < len * 8; i++) {
		c_welcome(&job, 2, frame);
		frame[i / 8] ^= 1 << i % 8;
		/* or it is no control packet any more */
		if (t_run(2, frame, len) != XDP_PASS)
			EXPECT_EQ(frame[f_udp(v6) + 8 + 1], ATP_TYPE_DATA);
	}
	EXPECT_FALSE(goes_on(1));
	c_welcome(&job, 2, frame);
	expect_left_alone(2, len - 1, "cut off");
	EXPECT_FALSE(goes_on(1));

	c_welcome(&job, 2, frame);
	expect_left_alone(2, len, "a run begins");
	EXPECT_TRUE(goes_on(1));
	EXPECT_FALSE(goes_on(2));
	EXPECT_TRUE(goes_on(3));
	/* what would complete a sum of the run before, or take it out */
	for (i = 0; i < 3; i++) {
		pkt = last;
		pkt.flags = flags[i];
		pkt.dtype = ATP_FLOAT32;
		len = f_make(&pkt, frame);
		EXPECT_EQ(run(1, len), XDP_REDIRECT);
		EXPECT_TRUE(unchanged());
		ASSERT_TRUE(f_read(&got, frame, len));
		EXPECT_EQ(got.flags, flags[i] | ATP_F_SWITCHED);
		EXPECT_EQ(memcmp(got.lane, last.lane, 4 * LANES), 0);
		frame[f_udp(v6) + 8 + 36] ^= 1;
		expect_drop(1, len, &count.drop_csum, "checksum");
	}
	EXPECT_EQ(t_occupied(1), 1);

	/* the job was added anew at the PS, or somebody says so */
	len = c_welcome(&job, 0x80000000, frame);
	expect_left_alone(2, len, "another PS");
	EXPECT_TRUE(goes_on(1));
	EXPECT_FALSE(goes_on(2));
	EXPECT_TRUE(goes_on(0x7fffffff));
	EXPECT_FALSE(goes_on(0x80000000));
	c_close();
}

TEST(gradients_of_earlier_runs)
{
	earlier_runs(false);
	earlier_runs(true);
}

/* Time to live: what is to be routed and has none left is the kernel's */
TEST(time_to_live)
{
	uint32_t len;

	begin(false);
	pkt.ttl = 1;
	t_port_mac(1, pkt.dst_mac);
	len = f_make(&pkt, frame);
	expect_left_alone(1, len, "routed with a time to live of one");
	t_counters(1, &count);
	EXPECT_EQ(count.ttl, 1);
	t_mac(T_PS, pkt.dst_mac);
	len = f_make(&pkt, frame);
	EXPECT_EQ(run(1, len), XDP_REDIRECT);
	EXPECT_TRUE(f_valid(frame, len));
	c_close();
}

/* A user's socket on a worker's host has its address, but not its UDP port */
TEST(false_worker)
{
	uint32_t len;

	begin(false);
	pkt.sport++;
	len = f_make(&pkt, frame);
	expect_drop(1, len, &count.drop_stranger, "from another UDP port");
	pkt.sport--;
	EXPECT_TRUE(c_send(1, &pkt));
	/* with the one that begin() has left there */
	EXPECT_EQ(t_agg(0)->bitmap, 3);
	c_close();
}

/* The PS is known by address, UDP port and port of the switch */
TEST(false_ps)
{
	uint32_t len;

	begin(false);
	c_parameter(&pkt, &job, 0, 0);
	len = f_make(&pkt, frame);
	expect_drop(0, len, &count.drop_port, "PS at another port");
	pkt.sport++;
	len = f_make(&pkt, frame);
	expect_drop(2, len, &count.drop_stranger, "from another UDP port");
	c_parameter(&pkt, &job, 0, 0);
	t_addr(false, 1, 1, pkt.src);
	len = f_make(&pkt, frame);
	expect_drop(1, len, &count.drop_stranger, "a worker plays the PS");
	c_parameter(&pkt, &job, 9, 0);
	len = f_make(&pkt, frame);
	expect_drop(2, len, &count.drop_stranger, "to a stranger");
	/* and the real one */
	c_parameter(&pkt, &job, 0, 0);
	EXPECT_TRUE(c_send(2, &pkt));
	EXPECT_EQ(t_agg(0)->bitmap, 0);
	c_close();
}

/* Addresses of IPv4 in a header of IPv6 are nobody's */
TEST(mapped_addresses)
{
	uint32_t len;

	begin(false);
	c_gradient(&pkt, &job, 1, 0);
	pkt.v6 = true;
	len = f_make(&pkt, frame);
	expect_drop(1, len, &count.drop_stranger, "a gradient");
	c_parameter(&pkt, &job, 0, 0);
	pkt.v6 = true;
	len = f_make(&pkt, frame);
	expect_drop(2, len, &count.drop_stranger, "parameters");
	c_close();
}

/* Control packets go to the kernel, from where their sender is */
static void controls(bool v6)
{
	uint32_t i;

	begin(v6);
	for (i = ATP_TYPE_JOIN; i <= ATP_TYPE_PONG; i++) {
		expect_left_alone(1, with_byte(1, i), "control packet");
		expect_drop(0, with_byte(1, i), &count.drop_port,
			    "plays another worker");
		c_parameter(&pkt, &job, 0, 0);
		expect_left_alone(2, with_byte(1, i), "control packet of PS");
		expect_drop(0, with_byte(1, i), &count.drop_port,
			    "plays the PS");
		/* who that is, PS and workers know better */
		t_addr(v6, 1, 9, pkt.src);
		expect_left_alone(0, with_byte(1, i), "stranger");
		c_gradient(&pkt, &job, 1, 0);
		pkt.elements = LANES;
		expect_left_alone(0, with_byte(7, 9), "unknown job");
	}
	c_close();
}

TEST(control_ipv4)
{
	controls(false);
}

TEST(control_ipv6)
{
	controls(true);
}

/* Which bits no checksum covers: MAC addresses; and IPv6's first words */
static bool covered(bool v6, uint32_t bit)
{
	uint32_t byte = bit / 8;

	if (byte < 12)
		return false;
	if (v6 && byte == 14)
		return bit % 8 >= 4; /* version, not the traffic class */
	if (v6 && (byte == 15 || byte == 16 || byte == 17 || byte == 21))
		return false;
	return true;
}

/*
 * The packet that completes the sum, each bit of it flipped in turn: the sum
 * is not touched, and if the packet is left to the kernel at all, no host takes
 * it.
 */
static void flips(bool v6, int elements)
{
	struct sw_agg *a;
	uint32_t bit, len, i;

	begin(v6);
	if (elements != LANES) {
		a = t_agg(0);
		a->elements = elements;
		pkt.elements = elements;
		for (i = 0; i < pkt.elements; i++)
			pkt.lane[i] = (int32_t)tap_rand() >> 4;
	}
	len = f_make(&pkt, frame);
	for (bit = 0; bit < len * 8 && tap_failures + c_failures < 5; bit++) {
		int verdict;

		if (!covered(v6, bit))
			continue;
		f_make(&pkt, frame);
		frame[bit / 8] ^= 1 << bit % 8;
		verdict = run(1, len);
		if (verdict != XDP_ABORTED && verdict != XDP_PASS)
			tap_fail(__FILE__, __LINE__, "bit %u: verdict %d",
				 bit, verdict);
		if (!unchanged())
			tap_fail(__FILE__, __LINE__, "bit %u: sum changed",
				 bit);
		if (verdict == XDP_PASS &&
		    (memcmp(frame, before, len) || f_valid(frame, len)))
			tap_fail(__FILE__, __LINE__, "bit %u: passes", bit);
	}
	/* and without a flip it does complete it */
	f_make(&pkt, frame);
	EXPECT_EQ(run(1, len), XDP_REDIRECT);
	EXPECT_TRUE(f_valid(frame, len));
	c_close();
}

TEST(bit_flips_ipv4)
{
	tap_seed(11);
	flips(false, LANES);
	flips(false, 62);
}

TEST(bit_flips_ipv6)
{
	tap_seed(12);
	flips(true, LANES);
	flips(true, 62);
}

TAP_MAIN()
