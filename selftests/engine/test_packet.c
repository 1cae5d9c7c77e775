// SPDX-License-Identifier: GPL-2.0
/* Packets: layout byte by byte, what is refused, and why. */
#include <tap.h>
#include "packet.h"

#define MAX_LEN	(ATP_HDR_LEN + ATP_FRAGMENT_MAX)

/* Parse from a buffer of exactly this size, at an odd address: the sanitizer
 * sees every byte beyond.
 */
static enum atp_drop parse(struct atp_pkt *pkt, const void *data, size_t len)
{
	static u8 *buf;

	free(buf);
	buf = malloc(len + 1);
	memcpy(buf + 1, data, len);
	return atp_pkt_parse(pkt, buf + 1, len);
}

static struct atp_pkt gradient(void)
{
	struct atp_pkt pkt = {
		.type = ATP_TYPE_DATA,
		.dtype = ATP_INT32,
		.fanin0 = 4,
		.elements = 7,
		.cap = ATP_NO_CAP,
		.bitmap0 = 0x4,
	};

	return pkt;
}

static struct atp_pkt control(u8 type)
{
	struct atp_pkt pkt = { .type = type, .bitmap0 = 1 };

	return pkt;
}

/* The parser's opinion of a packet that is as long as its header says */
static enum atp_drop opinion(const struct atp_pkt *pkt)
{
	u32 payload = ATP_CTL_LEN;
	u8 buf[MAX_LEN + 16] = { 0 };
	struct atp_pkt out;

	if (pkt->type == ATP_TYPE_DATA)
		payload = (pkt->elements + pkt->elements % 2) * 4;
	if (ATP_HDR_LEN + payload > sizeof(buf))
		payload = sizeof(buf) - ATP_HDR_LEN;
	ASSERT_EQ(atp_pkt_write_hdr(buf, pkt), ATP_HDR_LEN);
	return parse(&out, buf, ATP_HDR_LEN + payload);
}

TEST(layout)
{
	EXPECT_EQ(sizeof(struct atp_hdr), 36);
	EXPECT_EQ(sizeof(struct atp_ctl), 32);
	EXPECT_EQ(ATP_HDR_LEN, 36);
	EXPECT_EQ(ATP_CTL_LEN, 32);
	EXPECT_EQ(ATP_PORT, 4797);
	EXPECT_EQ(ATP_PAYLOAD_LEN(0), 0);
	EXPECT_EQ(ATP_PAYLOAD_LEN(1), 8);
	EXPECT_EQ(ATP_PAYLOAD_LEN(2), 8);
	EXPECT_EQ(ATP_PAYLOAD_LEN(3), 16);
	EXPECT_EQ(ATP_PAYLOAD_LEN(62), 248);
}

TEST(flags_are_distinct_bits)
{
	static const u16 flags[] = {
		ATP_F_OVERFLOW, ATP_F_RESEND, ATP_F_COLLISION, ATP_F_ECN,
		ATP_F_EDGE, ATP_F_ACK, ATP_F_RAW, ATP_F_LAST, ATP_F_SWITCHED,
		ATP_F_MCAST,
	};
	u32 all = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		EXPECT_EQ(hweight32(flags[i]), 1);
		EXPECT_EQ(all & flags[i], 0);
		all |= flags[i];
	}
	EXPECT_EQ(all, ATP_F_ALL);
}

/* The bytes on the wire, written down by hand */
TEST(golden_bytes)
{
	static const u8 golden[] = {
		0x01, 0x01, 0x01, 0x8e,		/* version, type, flags */
		0x11, 0x22, 0x33, 0x44,		/* jobID */
		0x55, 0x66, 0x77, 0x88,		/* epoch */
		0x99, 0xaa, 0xbb, 0xcc,		/* sequenceNumber */
		0x00, 0x00, 0x05, 0x00,		/* bitmap0 */
		0x00, 0x00, 0x00, 0x00,		/* bitmap1 */
		0x0b, 0x00, 0x02, 0x00,		/* fan-ins, type, tree */
		0xde, 0xad, 0xbe, 0xef,		/* aggregatorIndex */
		0x00, 0x02, 0x12, 0x34,		/* elements, cwndCap */
		0x01, 0x00, 0x00, 0x00,		/* 1 */
		0xfe, 0xff, 0xff, 0xff,		/* -2 */
	};
	u8 out[ATP_HDR_LEN];
	struct atp_pkt pkt;

	ASSERT_EQ(parse(&pkt, golden, sizeof(golden)), ATP_OK);
	EXPECT_EQ(pkt.type, ATP_TYPE_DATA);
	EXPECT_EQ(pkt.flags, ATP_F_RESEND | ATP_F_COLLISION | ATP_F_ECN |
			     ATP_F_LAST | ATP_F_SWITCHED);
	EXPECT_EQ(pkt.job, 0x11223344);
	EXPECT_EQ(pkt.epoch, 0x55667788);
	EXPECT_EQ(pkt.seq, 0x99aabbcc);
	EXPECT_EQ(pkt.bitmap0, 0x500);
	EXPECT_EQ(pkt.bitmap1, 0);
	EXPECT_EQ(pkt.fanin0, 11);
	EXPECT_EQ(pkt.fanin1, 0);
	EXPECT_EQ(pkt.dtype, ATP_FLOAT32);
	EXPECT_EQ(pkt.tree, 0);
	EXPECT_EQ(pkt.index, 0xdeadbeef);
	EXPECT_EQ(pkt.elements, 2);
	EXPECT_EQ(pkt.cap, 0x1234);
	EXPECT_FALSE(pkt.ce);
	EXPECT_EQ(get_unaligned_le32(pkt.payload), 1);
	EXPECT_EQ((s32)get_unaligned_le32(pkt.payload + 4), -2);

	EXPECT_EQ(atp_pkt_write_hdr(out, &pkt), ATP_HDR_LEN);
	EXPECT_TRUE(!memcmp(out, golden, ATP_HDR_LEN));
}

TEST(golden_control)
{
	const struct atp_ctl_host ctl = {
		.nonce = 0x01020304, .workers = 8, .fragment = 1400,
		.window = 4096, .scale = 100000000, .reason = 2, .ranks = 0x81,
	};
	static const u8 payload[] = {
		0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x00, 0x08,
		0x00, 0x00, 0x05, 0x78, 0x00, 0x00, 0x10, 0x00,
		0x05, 0xf5, 0xe1, 0x00, 0x00, 0x00, 0x00, 0x02,
		0x00, 0x00, 0x00, 0x81, 0x00, 0x00, 0x00, 0x00,
	};
	struct atp_pkt pkt = control(ATP_TYPE_ABORT);
	u8 buf[ATP_HDR_LEN + ATP_CTL_LEN];
	struct atp_ctl_host back;

	memset(buf, 0xff, sizeof(buf));
	EXPECT_EQ(atp_ctl_write(buf, &pkt, &ctl), sizeof(buf));
	EXPECT_TRUE(!memcmp(buf + ATP_HDR_LEN, payload, sizeof(payload)));
	ASSERT_EQ(parse(&pkt, buf, sizeof(buf)), ATP_OK);
	EXPECT_EQ(pkt.type, ATP_TYPE_ABORT);
	atp_ctl_read(&back, pkt.payload);
	EXPECT_TRUE(!memcmp(&back, &ctl, sizeof(ctl)));
}

TEST(versions_and_types)
{
	struct atp_pkt pkt = gradient(), out;
	u8 buf[ATP_HDR_LEN + 32] = { 0 };
	u32 v;

	atp_pkt_write_hdr(buf, &pkt);
	for (v = 0; v < 256; v++) {
		buf[0] = v;
		EXPECT_EQ(parse(&out, buf, sizeof(buf)),
			  v == 1 ? ATP_OK : ATP_DROP_VERSION);
	}
	for (v = 0; v < 256; v++) {
		pkt = v == ATP_TYPE_DATA ? gradient() : control(v);
		EXPECT_EQ(opinion(&pkt),
			  v >= 1 && v <= 8 ? ATP_OK : ATP_DROP_TYPE);
	}
}

/* Every value of the flags, by rules written otherwise than in the parser */
TEST(all_flags)
{
	struct atp_pkt pkt;
	bool good;
	u32 f;

	for (f = 0; f < 0x10000; f++) {
		pkt = gradient();
		pkt.flags = f;
		good = f <= 0x3ff && !(f & ATP_F_EDGE);
		if ((f & ATP_F_RAW) && (f & ATP_F_OVERFLOW))
			good = false;
		if (f & ATP_F_ACK) {
			if (f & ATP_F_RESEND)
				good = false;
			pkt.dtype = f & ATP_F_RAW ? ATP_FLOAT32 : ATP_INT32;
		} else if (f & ATP_F_MCAST) {
			good = false;
		}
		EXPECT_EQ(opinion(&pkt), good ? ATP_OK : ATP_DROP_FLAGS);

		pkt = control(ATP_TYPE_JOIN + f % 7);
		pkt.flags = f;
		EXPECT_EQ(opinion(&pkt), f ? ATP_DROP_FLAGS : ATP_OK);
	}
}

TEST(parameter_formats)
{
	struct atp_pkt pkt = gradient();

	/* values as pushed are only sent down for float32 */
	pkt.flags = ATP_F_ACK | ATP_F_RAW;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_FLAGS);
	pkt.dtype = ATP_FLOAT32;
	EXPECT_EQ(opinion(&pkt), ATP_OK);
	/* a sum that does not fit only for int32 */
	pkt.flags = ATP_F_ACK | ATP_F_OVERFLOW;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_FLAGS);
	pkt.dtype = ATP_INT32;
	EXPECT_EQ(opinion(&pkt), ATP_OK);
	/* raw request, of either type */
	pkt.elements = 0;
	EXPECT_EQ(opinion(&pkt), ATP_OK);
	pkt.dtype = ATP_FLOAT32;
	EXPECT_EQ(opinion(&pkt), ATP_OK);
	pkt.flags |= ATP_F_MCAST | ATP_F_SWITCHED;
	EXPECT_EQ(opinion(&pkt), ATP_OK);
	/* nothing else is without lanes */
	pkt.flags = ATP_F_ACK;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_ELEMENTS);
	pkt.flags = ATP_F_OVERFLOW;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_ELEMENTS);
	pkt.flags = 0;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_ELEMENTS);
	/* a collision's new index is any number */
	pkt = gradient();
	pkt.flags = ATP_F_ACK | ATP_F_COLLISION;
	pkt.bitmap0 = 0xffffffff;
	EXPECT_EQ(opinion(&pkt), ATP_OK);
}

TEST(one_level)
{
	struct atp_pkt pkt = gradient();

	pkt.bitmap1 = 1;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_BITMAP);
	pkt = gradient();
	pkt.fanin1 = 1;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_FANIN);
	pkt = gradient();
	pkt.tree = 1;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_FANIN);
	pkt = control(ATP_TYPE_PING);
	pkt.tree = 1;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_FANIN);
}

TEST(bitmaps)
{
	struct atp_pkt pkt = gradient();
	u32 fanin, bit;

	pkt.bitmap0 = 0;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_BITMAP);
	for (fanin = 0; fanin < 256; fanin++) {
		for (bit = 0; bit < 32; bit++) {
			pkt.fanin0 = fanin;
			pkt.bitmap0 = 1U << bit | 1;
			pkt.flags = ATP_F_SWITCHED;
			EXPECT_EQ(opinion(&pkt),
				  !fanin || fanin > 32 ? ATP_DROP_FANIN :
				  bit < fanin ? ATP_OK : ATP_DROP_BITMAP);
			pkt.flags = 0;
			EXPECT_EQ(opinion(&pkt),
				  !fanin || fanin > 32 ? ATP_DROP_FANIN :
				  !bit ? ATP_OK : ATP_DROP_BITMAP);
		}
	}
	/* as pushed: one worker's, wherever it has passed */
	pkt.fanin0 = 4;
	pkt.flags = ATP_F_RAW | ATP_F_RESEND;
	pkt.bitmap0 = 0x5;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_BITMAP);
	pkt.flags |= ATP_F_SWITCHED;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_BITMAP);
	pkt.bitmap0 = 0x4;
	EXPECT_EQ(opinion(&pkt), ATP_OK);
}

TEST(data_types)
{
	struct atp_pkt pkt = gradient();
	u32 t;

	for (t = 0; t < 256; t++) {
		pkt.dtype = t;
		EXPECT_EQ(opinion(&pkt),
			  t == 1 || t == 2 ? ATP_OK : ATP_DROP_DTYPE);
	}
	pkt = control(ATP_TYPE_JOIN);
	pkt.dtype = 1;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_DTYPE);
	pkt.dtype = 0;
	pkt.elements = 1;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_ELEMENTS);
}

/* Every length of every number of lanes */
TEST(lengths)
{
	static u8 buf[MAX_LEN + 64];
	struct atp_pkt pkt = gradient(), out;
	enum atp_drop due;
	u32 n, len;

	for (n = 0; n <= 900; n++) {
		pkt.elements = n;
		atp_pkt_write_hdr(buf, &pkt);
		for (len = 0; len < sizeof(buf); len += n % 61 ? 4 : 1) {
			if (len < 36)
				due = ATP_DROP_SHORT;
			else if (!n || n > 850)
				due = ATP_DROP_ELEMENTS;
			else if (len != 36 + 8 * ((n + 1) / 2))
				due = ATP_DROP_LENGTH;
			else
				due = ATP_OK;
			EXPECT_EQ(atp_pkt_parse(&out, buf, len), due);
		}
	}
	pkt.elements = 0xffff;
	EXPECT_EQ(opinion(&pkt), ATP_DROP_ELEMENTS);

	pkt = control(ATP_TYPE_JOIN);
	atp_pkt_write_hdr(buf, &pkt);
	for (len = 0; len < 200; len++)
		EXPECT_EQ(parse(&out, buf, len), len < 36 ? ATP_DROP_SHORT :
			  len == 68 ? ATP_OK : ATP_DROP_LENGTH);
}

/* Whatever comes: no access beyond, and what is accepted keeps the promises
 * that PS and worker rely on.
 */
TEST(random_bytes)
{
	u8 buf[200];
	u32 i, k, len, accepted = 0;
	struct atp_pkt pkt;

	tap_seed(20211);
	for (i = 0; i < 400000; i++) {
		for (k = 0; k < sizeof(buf); k++)
			buf[k] = tap_rand();
		len = tap_below(sizeof(buf) + 1);
		if (!tap_chance(8)) {
			buf[0] = ATP_VERSION;
			buf[1] = tap_below(10);
			buf[2] &= 3;
			buf[3] &= tap_rand();
			memset(buf + 20, 0, 4);
			buf[24] &= 31;
			buf[25] = 0;
			buf[26] &= 3;
			buf[27] = 0;
			buf[32] = 0;
			buf[33] &= 31;
			len = 36 + ATP_PAYLOAD_LEN(buf[33]);
		}
		if (buf[1] != ATP_TYPE_DATA && tap_chance(2)) {
			memset(buf + 2, 0, 2);
			buf[26] = 0;
			buf[33] = 0;
			len = 68;
		}
		if (parse(&pkt, buf, len) != ATP_OK)
			continue;
		accepted++;
		EXPECT_EQ(pkt.bitmap1 | pkt.fanin1 | pkt.tree, 0);
		EXPECT_EQ(pkt.flags & ~ATP_F_ALL, 0);
		if (pkt.type != ATP_TYPE_DATA) {
			EXPECT_EQ(len, 68);
			EXPECT_EQ(pkt.flags | pkt.dtype | pkt.elements, 0);
			continue;
		}
		EXPECT_EQ(len, 36 + 4 * (pkt.elements + pkt.elements % 2));
		if (pkt.flags & ATP_F_ACK)
			continue;
		EXPECT_GT(pkt.elements, 0);
		EXPECT_NE(pkt.bitmap0, 0);
		EXPECT_LE(pkt.fanin0, 32);
		EXPECT_LE(fls(pkt.bitmap0), pkt.fanin0);
	}
	/* the test is worth something only if some were */
	EXPECT_GT(accepted, 10000);
}

TEST(round_trip)
{
	u8 buf[MAX_LEN + 1];
	struct atp_pkt in, out;
	u32 i;

	tap_seed(20212);
	for (i = 0; i < 100000; i++) {
		memset(&in, 0, sizeof(in));
		memset(&out, 0, sizeof(out));
		in.type = ATP_TYPE_DATA;
		in.dtype = 1 + tap_below(2);
		in.fanin0 = 32;
		in.flags = tap_rand() & (ATP_F_RESEND | ATP_F_COLLISION |
					 ATP_F_ECN | ATP_F_LAST |
					 ATP_F_SWITCHED);
		in.elements = 1 + tap_below(850);
		in.cap = tap_rand();
		in.job = tap_rand();
		in.epoch = tap_rand();
		in.seq = tap_rand();
		in.bitmap0 = tap_rand() | 1;
		if (!(in.flags & ATP_F_SWITCHED))
			in.bitmap0 = 1U << tap_below(32);
		in.index = tap_rand();
		in.payload = buf + 1 + ATP_HDR_LEN;
		atp_pkt_write_hdr(buf + 1, &in);
		ASSERT_EQ(atp_pkt_parse(&out, buf + 1, ATP_HDR_LEN +
					ATP_PAYLOAD_LEN(in.elements)), ATP_OK);
		ASSERT_TRUE(!memcmp(&in, &out, sizeof(in)));
	}
}

/* Documentation/protocol.rst has the same numbers. */
TEST(index_vectors)
{
	EXPECT_EQ(atp_index_hash(0, 0, 0), 0);
	EXPECT_EQ(atp_index_hash(1, 0, 0), 0x4c819ebd);
	EXPECT_EQ(atp_index_hash(1, 1, 1), 0xe9ded033);
	EXPECT_EQ(atp_index_hash(7, 0x12345678, 4095), 0x6edd8204);
	EXPECT_EQ(atp_index_hash(U32_MAX, U32_MAX, U32_MAX), 0xb5274b78);
}

/* New indexes spread over a switch's aggregators about as well as if they were
 * drawn by lot, whatever number of aggregators, job and epoch.
 */
TEST(index_spread)
{
	static const u32 sizes[] = { 256, 1000, 1024, 4096, 40000, 65536 };
	static u16 used[65536];
	u32 job, epoch, s, i, n, twice;
	double due;

	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		for (job = 1; job < 10; job++) {
			for (epoch = 0; epoch < 10; epoch++) {
				n = sizes[s];
				memset(used, 0, sizeof(used));
				twice = 0;
				for (i = 0; i < n; i++)
					twice += !!used[atp_index_hash(job,
						epoch * 77777, i) % n]++;
				/* of n throws into n cells 1 / e meet one */
				due = n / 2.718281828;
				EXPECT_LT(twice, due * 1.25);
			}
		}
	}
}

TAP_MAIN()
