// SPDX-License-Identifier: GPL-2.0
/*
 * What no job is asked about: other traffic, of which every byte stays as it
 * was; what only looks like ATP, which is counted; and what the kernel or a
 * host would make a good packet of, which is dropped.
 */
#include "refuse_fixture.h"

TEST(not_for_us)
{
	uint32_t len, i;

	begin(false);
	len = f_make(&pkt, frame);
	frame[14] = 0x46; /* options, before a UDP header that makes no sense */
	expect_left_alone(1, len, "IPv4 options");
	f_make(&pkt, frame);
	frame[21] = 0x05;
	f_seal(frame, len);
	expect_left_alone(1, len, "later fragment");
	f_make(&pkt, frame);
	frame[23] = 6;
	expect_left_alone(1, len, "TCP");
	f_make(&pkt, frame);
	frame[12] = 0x81;
	frame[13] = 0;
	expect_left_alone(1, len, "VLAN");
	f_make(&pkt, frame);
	frame[37]++;
	f_seal(frame, len);
	expect_left_alone(1, len, "another port");
	for (i = 0; i < 1000; i++) {
		uint32_t k;

		len = 14 + tap_below(200);
		for (k = 0; k < len; k++)
			frame[k] = tap_rand();
		expect_left_alone(i % T_PORTS, len, "noise");
	}
	c_close();
}

/* How many of each: job unknown, not data, options, truncated */
static bool counted(__u64 unknown, __u64 control, __u64 options,
		    __u64 truncated)
{
	struct sw_others now;

	t_others(&now);
	return now.unknown == unknown && now.control == control &&
	       now.options == options && now.truncated == truncated;
}

TEST(others_are_counted)
{
	uint32_t len;

	begin(false);
	EXPECT_TRUE(counted(0, 0, 0, 0));
	pkt.job = 9;
	len = f_make(&pkt, frame);
	expect_left_alone(1, len, "unknown job");
	EXPECT_TRUE(counted(1, 0, 0, 0));
	pkt.job = 1;
	len = with_byte(1, ATP_TYPE_DATA + 1);
	expect_left_alone(1, len, "not data");
	EXPECT_TRUE(counted(1, 1, 0, 0));
	len = f_make(&pkt, frame);
	frame[14] = 0x46;
	memmove(frame + 38, frame + 34, len - 38);
	EXPECT_EQ(run(1, len), XDP_ABORTED);
	EXPECT_TRUE(counted(1, 1, 1, 0));
	f_make(&pkt, frame);
	frame[20] = 0x20;
	EXPECT_EQ(run(1, len), XDP_ABORTED);
	EXPECT_TRUE(counted(1, 1, 2, 0));
	f_make(&pkt, frame);
	expect_left_alone(1, f_udp(false) + 8 + 4, "half a header");
	EXPECT_TRUE(counted(1, 1, 2, 1));
	c_close();
}

/* Put a fragment header before UDP's.  Return: the frame's length now */
static uint32_t fragment(uint8_t nexthdr, uint16_t offset)
{
	uint32_t len = f_make(&pkt, frame), at = f_udp(true);

	memmove(frame + at + 8, frame + at, len - at);
	memset(frame + at, 0, 8);
	frame[20] = 44;
	frame[at] = nexthdr;
	frame[at + 2] = offset >> 8;
	frame[at + 3] = offset;
	return len + 8;
}

/* One that is all of a packet, and first ones; others are nothing without. */
TEST(fragments_of_ipv6)
{
	uint32_t len;

	begin(true);
	EXPECT_EQ(run(1, fragment(17, 0)), XDP_ABORTED);
	EXPECT_TRUE(counted(0, 0, 1, 0));
	len = fragment(17, 1);
	EXPECT_EQ(run(1, len - 8), XDP_ABORTED);
	EXPECT_TRUE(counted(0, 0, 2, 0));
	/* no more than a UDP header */
	fragment(17, 1);
	EXPECT_EQ(run(1, f_udp(true) + 16), XDP_ABORTED);
	EXPECT_TRUE(counted(0, 0, 3, 0));
	fragment(17, 1);
	expect_left_alone(1, f_udp(true) + 15, "half a UDP header");
	/* in one more, which a second machine would take off */
	EXPECT_EQ(run(1, fragment(44, 0)), XDP_ABORTED);
	EXPECT_EQ(run(1, fragment(44, 1)), XDP_ABORTED);
	EXPECT_TRUE(counted(0, 0, 5, 0));
	expect_left_alone(1, fragment(17, 8), "a later one");
	expect_left_alone(1, fragment(17, 0x8001), "a later one");
	expect_left_alone(1, fragment(6, 0), "TCP");
	expect_left_alone(1, fragment(60, 0), "more headers");
	len = fragment(17, 0);
	frame[f_udp(true) + 11]++;
	expect_left_alone(1, len, "another port");
	EXPECT_TRUE(counted(0, 0, 5, 0));
	c_close();
}

/* Put so many tags before the frame's type.  Return: its length now */
static uint32_t tag(uint32_t len, int tags, uint16_t vlan)
{
	memmove(frame + 12 + 4 * tags, frame + 12, len - 12);
	while (tags--) {
		frame[12 + 4 * tags] = tags % 2 ? 0x88 : 0x81;
		frame[13 + 4 * tags] = tags % 2 ? 0xa8 : 0;
		frame[14 + 4 * tags] = 0xe0 | vlan >> 8;
		frame[15 + 4 * tags] = vlan;
		len += 4;
	}
	return len;
}

/* One more dropped for its tags? */
static void expect_tagged(uint32_t len, const char *what)
{
	struct sw_others was, now;
	int verdict;

	t_others(&was);
	verdict = run(1, len);
	t_others(&now);
	if (verdict != XDP_ABORTED || now.tagged != was.tagged + 1)
		tap_fail(__FILE__, __LINE__, "%s: verdict %d", what, verdict);
	EXPECT_TRUE(unchanged());
}

static void priority_tags(bool v6)
{
	uint32_t len, i;

	begin(v6);
	for (i = 1; i <= 5; i++) {
		expect_tagged(tag(f_make(&pkt, frame), i, 0), "gradient");
		len = with_byte(1, ATP_TYPE_DATA + 1);
		expect_tagged(tag(len, i, 0), "control");
	}
	/* others' traffic behind up to four, and what is cut short */
	for (i = 1; i <= 4; i++) {
		len = f_make(&pkt, frame);
		frame[f_udp(v6) + 3]++;
		expect_left_alone(1, tag(len, i, 0), "another port");
		f_make(&pkt, frame);
		expect_left_alone(1, tag(len, i, 0) - len + 13, "no type");
	}
	/* a VLAN that is one, in whatever place */
	for (i = 0; i < 12; i++) {
		len = tag(f_make(&pkt, frame), 1, 1 << i);
		expect_left_alone(1, len, "a VLAN");
		expect_left_alone(1, tag(len, 1, 0), "a VLAN in a tag");
		len = tag(f_make(&pkt, frame), 1, 0);
		expect_left_alone(1, tag(len, 1, 1 << i), "a tag in a VLAN");
	}
	expect_tagged(tag(f_make(&pkt, frame), 5, 1), "five tags");
	c_close();
}

TEST(priority_tags_ipv4)
{
	priority_tags(false);
}

TEST(priority_tags_ipv6)
{
	priority_tags(true);
}

/* What pkt says, as data and as control, from where its sender is not */
static void vlan_from(int port, uint16_t vlan)
{
	uint32_t len = tag(f_make(&pkt, frame), 1, vlan);

	expect_drop(port, len, &count.drop_port, "forged in a VLAN");
	len = tag(with_byte(1, ATP_TYPE_DATA + 1), 1, vlan);
	expect_drop(port, len, &count.drop_port, "forged control in a VLAN");
	len = tag(tag(f_make(&pkt, frame), 1, vlan), 1, 0);
	expect_drop(port, len, &count.drop_port, "forged behind two tags");
	len = tag(tag(f_make(&pkt, frame), 3, 0), 1, vlan);
	expect_drop(port, len, &count.drop_port, "forged behind four");
}

/* A host that has a device for it takes the tag off. */
static void vlans(bool v6)
{
	uint32_t len;
	int i;

	begin(v6);
	for (i = 0; i < 12; i++)
		vlan_from(0, 1 << i);
	c_parameter(&pkt, &job, 0, 0);
	vlan_from(1, 5);
	expect_left_alone(2, tag(f_make(&pkt, frame), 1, 5), "of the PS");
	len = f_make(&pkt, frame);
	expect_left_alone(1, tag(len, 1, 5) - (len - f_udp(v6) - 43),
			  "half a header");
	len = with_byte(7, 9);
	expect_left_alone(1, tag(len, 1, 5), "unknown job");
	t_addr(v6, 1, 9, pkt.src);
	len = f_make(&pkt, frame);
	expect_left_alone(1, tag(len, 1, 5), "a stranger");
	EXPECT_TRUE(counted(0, 0, 0, 0));
	/* the kernel of this machine may have a device for the VLAN */
	if (v6) {
		len = fragment(17, 0);
	} else {
		len = f_make(&pkt, frame);
		frame[20] = 0x20;
	}
	EXPECT_EQ(run(1, tag(len, 1, 5)), XDP_ABORTED);
	EXPECT_TRUE(counted(0, 0, 1, 0));
	c_close();
}

TEST(vlans_ipv4)
{
	vlans(false);
}

TEST(vlans_ipv6)
{
	vlans(true);
}

/* The job goes when a parameter packet's copies are on their way */
TEST(copies_of_no_job)
{
	struct sw_others others;
	uint32_t len;

	begin(false);
	c_parameter(&pkt, &job, 0, 0);
	pkt.flags |= ATP_F_MCAST;
	len = f_make(&pkt, frame);
	EXPECT_EQ(run(2, len), XDP_REDIRECT);
	if (t_copies()) {
		frame[f_udp(false) + 8 + 7] = 9;
		memcpy(before, frame, len);
		EXPECT_EQ(t_make_copy(0, frame, len), XDP_ABORTED);
		EXPECT_EQ(memcmp(frame, before, len), 0);
		EXPECT_TRUE(counted(0, 0, 0, 0));
		t_others(&others);
		EXPECT_EQ(others.gone, 1);
	}
	c_close();
}

TAP_MAIN()
