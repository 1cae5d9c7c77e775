// SPDX-License-Identifier: GPL-2.0
/*
 * The XDP programs in user space, between an oracle that knows what a good
 * packet does (switch/check.c) and a rule for all others: what is not a good
 * packet changes no aggregator and goes no further.  Good is what the hosts'
 * own parser takes, so that switch and hosts cannot disagree.
 */
#include <atp/env.h>
#include <linux/bpf.h>
#include "packet.h"
#include "bytes.h"
#include "check.h"
#include "switch/check.h"

#define JOBS	2
#define MOST	4	/* aggregators */

static struct t_job job[JOBS];
static uint32_t payload;
static uint8_t *frame, *shadow;
static size_t agg_size;

static void check_oracle(void)
{
	if (c_failures)
		abort();
}

/* Aggregators and all, for what must not change them */
static void remember(uint8_t *to)
{
	uint32_t i;

	for (i = 0; i < c_aggregators(); i++)
		memcpy(to + i * agg_size, t_agg(i), agg_size);
}

static bool unchanged(const uint8_t *was)
{
	uint32_t i;

	for (i = 0; i < c_aggregators(); i++)
		if (memcmp(was + i * agg_size, t_agg(i), agg_size))
			return false;
	return true;
}

/* The hosts' view of a frame: is it a data packet in good order? */
static bool good(const uint8_t *f, uint32_t len)
{
	struct atp_pkt pkt;
	uint32_t at;

	if (!f_valid(f, len))
		return false;
	/* fragments of IP are for hosts to put together */
	if (f[12] == 0x08 && (f[20] & 0x3f || f[21]))
		return false;
	at = f_udp(f[12] == 0x86) + 8;
	return atp_pkt_parse(&pkt, f + at, len - at) == ATP_OK &&
	       pkt.type == ATP_TYPE_DATA;
}

/* The padding lane is under the checksum, but hosts do not look at it. */
static bool padded_with_zero(const uint8_t *f, uint32_t len)
{
	uint32_t at = f_udp(f[12] == 0x86) + 8;

	return f[at + 33] % 2 == 0 || !get_unaligned_le32(f + len - 4);
}

/* @mac: who the frame is for, if not for the switch itself */
static void any_frame(int port, uint32_t len, const uint8_t *mac)
{
	static struct f_pkt p;
	uint8_t own[6];
	int verdict;

	if (good(frame, len) && padded_with_zero(frame, len)) {
		if (!f_read(&p, frame, len))
			abort();
		/* what is to be routed and cannot is the kernel's, a rule that
		 * the oracle does not have
		 */
		p.ttl = p.ttl < 2 ? 64 : p.ttl;
		/* nor does it know hosts that nobody is */
		t_port_mac(port, own);
		if (memcmp(p.dst_mac, own, 6))
			memcpy(p.dst_mac, mac, 6);
		c_send(port, &p);
		check_oracle();
		return;
	}
	remember(shadow);
	verdict = t_run(port, frame, len);
	CHECK(verdict == XDP_PASS || verdict == XDP_ABORTED);
	CHECK(unchanged(shadow));
	o_control(port, frame, len);
}

/* Change bytes; the checksums are right again, or not. */
static void mutate(struct bytes *in, struct f_pkt *p, int port)
{
	uint32_t len = f_make(p, frame), n = byte(in), at;

	for (at = n >> 2 & 7; at; at--) {
		uint32_t where = word(in) % len;

		frame[where] = byte(in);
	}
	if (n & 0x40)
		len = 14 + word(in) % (F_ROOM - 256);
	if (n & 1 && len >= f_udp(true) + 8)
		f_seal(frame, len);
	any_frame(port, len, p->dst_mac);
}

static void forge(struct bytes *in, struct f_pkt *p)
{
	uint8_t what = byte(in), v = byte(in);

	switch (what % 12) {
	case 0:
		p->src[15] = v;
		break;
	case 1:
		p->dst[15] = v;
		break;
	case 2:
		p->bitmap = dword(in);
		break;
	case 3:
		p->job += v;
		break;
	case 4:
		p->sport += v;
		break;
	case 5:
		p->fanin = v;
		break;
	case 6:
		p->epoch = v;
		break;
	case 7:
		p->dtype = v & 1 ? ATP_INT32 : ATP_FLOAT32;
		break;
	case 8:
		p->cap = v;
		break;
	case 9:
		p->ecn = v & 3;
		break;
	case 10:
		p->elements = (v << 8 | byte(in)) % (F_MAX_LANES + 1);
		break;
	case 11:
		p->index = v;
		break;
	}
}

static void packet(struct bytes *in, uint8_t op)
{
	static struct f_pkt p;
	const struct t_job *j = &job[op >> 7];
	uint32_t rank = (op >> 4 & 7) % j->workers;
	uint8_t a = byte(in), mods = byte(in);
	uint32_t seq = a & 7, value, step, k;
	int port = j->port[rank];

	if (op & 4) {
		c_parameter(&p, j, rank, seq);
		port = j->ps_port;
	} else {
		c_gradient(&p, j, rank, seq);
	}
	/* a fragment has one length, unless forge() has other ideas */
	p.elements = 1 + (seq * 7 + 1) % (payload / 4);
	p.flags |= (uint16_t)(a >> 3 & 1 ? ATP_F_LAST : 0);
	if (mods & 1)
		p.flags ^= word(in);
	if (mods & 2)
		forge(in, &p);
	if (mods & 4)
		forge(in, &p);
	if (mods & 8)
		port = below(in, T_PORTS);
	if (mods & 16)
		t_port_mac(port, p.dst_mac);
	value = a & 0x40 ? dword(in) : byte(in);
	step = a & 0x80 ? dword(in) : 1;
	for (k = 0; k < p.elements; k++)
		p.lane[k] = value + k * step;
	if (mods & 32)
		mutate(in, &p, port);
	else
		any_frame(port, f_make(&p, frame), p.dst_mac);
}

static void configure(struct bytes *in)
{
	static const uint32_t payloads[] = { 8, 64, 248, 1400 };
	uint8_t a = byte(in);
	uint32_t i, k;

	payload = payloads[a >> 2 & 3];
	agg_size = sizeof(struct sw_agg) + SW_BLOCKS(payload) * SW_BLOCK * 8;
	c_open(1 + a % MOST, payload);
	for (i = 0; i < JOBS; i++) {
		uint8_t b = byte(in), c = byte(in);

		memset(&job[i], 0, sizeof(job[i]));
		job[i].id = 5 + i;
		job[i].v6 = a >> 4 & 1 ? i : !i;
		job[i].workers = 1 + b % 5;
		job[i].quota = 1 + (b >> 4) % c_aggregators();
		job[i].ps_port = c & 3;
		for (k = 0; k < job[i].workers; k++)
			job[i].port[k] = (c >> k) % T_PORTS;
		c_add_job(&job[i]);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	frame = f_buffer();
	shadow = malloc(MOST * (sizeof(struct sw_agg) +
				SW_BLOCKS(1400) * SW_BLOCK * 8));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };

	configure(&in);
	while (in.left) {
		uint8_t op = byte(&in);

		if ((op & 15) == 15)
			c_age();
		else
			packet(&in, op);
	}
	t_close();
	return 0;
}
