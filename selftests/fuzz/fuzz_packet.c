// SPDX-License-Identifier: GPL-2.0
/*
 * Any bytes as a UDP payload.  What the parser takes is written again and must
 * be the same bytes; what it refuses must have the fault that it names, and
 * what it takes must have none.  The faults are looked for here a second time,
 * in the bytes, one by one and in no order.
 */
#include <atp/env.h>
#include "check.h"
#include "packet.h"

#define BIT_OF(reason)	(1ULL << ATP_DROP_##reason)

static u32 get16(const u8 *p)
{
	return p[0] << 8 | p[1];
}

static u32 get32(const u8 *p)
{
	return get16(p) << 16 | get16(p + 2);
}

static bool one_bit(u32 v)
{
	return v && !(v & (v - 1));
}

/* Faults of a data packet, beyond those of any packet */
static u64 data_faults(const u8 *p, size_t len)
{
	u32 flags = get16(p + 2), bitmap = get32(p + 16), fanin = p[24];
	u32 elements = get16(p + 32), dtype = p[26];
	bool ack = flags & ATP_F_ACK, raw = flags & ATP_F_RAW;
	bool overflow = flags & ATP_F_OVERFLOW;
	u64 faults = 0;

	if (flags & ~ATP_F_ALL || flags & ATP_F_EDGE || (raw && overflow))
		faults |= BIT_OF(FLAGS);
	if (flags & (ack ? ATP_F_RESEND : ATP_F_MCAST))
		faults |= BIT_OF(FLAGS);
	if (ack && raw && dtype != ATP_FLOAT32)
		faults |= BIT_OF(FLAGS);
	if (ack && overflow && elements && dtype != ATP_INT32)
		faults |= BIT_OF(FLAGS);
	if (dtype != ATP_INT32 && dtype != ATP_FLOAT32)
		faults |= BIT_OF(DTYPE);
	if (elements > ATP_FRAGMENT_MAX / 4 || (!elements &&
						!(ack && overflow)))
		faults |= BIT_OF(ELEMENTS);
	if (len != 36 + (elements + 1) / 2 * 8)
		faults |= BIT_OF(LENGTH);
	if (ack)
		return faults;
	if (fanin < 1 || fanin > 32)
		faults |= BIT_OF(FANIN);
	if (!bitmap || (fanin < 32 && bitmap >> fanin) ||
	    ((raw || !(flags & ATP_F_SWITCHED)) && !one_bit(bitmap)))
		faults |= BIT_OF(BITMAP);
	return faults;
}

static u64 control_faults(const u8 *p, size_t len)
{
	u64 faults = 0;

	if (get16(p + 2))
		faults |= BIT_OF(FLAGS);
	if (get16(p + 32))
		faults |= BIT_OF(ELEMENTS);
	if (len != 36 + 32)
		faults |= BIT_OF(LENGTH);
	if (p[26])
		faults |= BIT_OF(DTYPE);
	return faults;
}

static u64 faults_of(const u8 *p, size_t len)
{
	u64 faults = 0;

	if (len < 36)
		return BIT_OF(SHORT);
	if (p[0] != 1)
		faults |= BIT_OF(VERSION);
	if (p[1] < 1 || p[1] > 8)
		faults |= BIT_OF(TYPE);
	if (get32(p + 20))
		faults |= BIT_OF(BITMAP);
	if (p[25] || p[27])
		faults |= BIT_OF(FANIN);
	return faults | (p[1] == ATP_TYPE_DATA ? data_faults(p, len) :
						 control_faults(p, len));
}

static void check_rebuilt(const struct atp_pkt *pkt, const u8 *data, size_t len)
{
	u8 *again = malloc(len + 1);
	struct atp_ctl_host ctl, ctl2;
	struct atp_pkt pkt2;

	memset(&pkt2, 0, sizeof(pkt2));
	if (pkt->type == ATP_TYPE_DATA) {
		CHECK(atp_pkt_write_hdr(again + 1, pkt) == ATP_HDR_LEN);
		memcpy(again + 1 + ATP_HDR_LEN, pkt->payload,
		       len - ATP_HDR_LEN);
		CHECK(!memcmp(again + 1, data, len));
	} else {
		atp_ctl_read(&ctl, pkt->payload);
		CHECK(atp_ctl_write(again + 1, pkt, &ctl) == len);
		CHECK(!memcmp(again + 1, data, len));
		atp_ctl_read(&ctl2, again + 1 + ATP_HDR_LEN);
		CHECK(!memcmp(&ctl, &ctl2, sizeof(ctl)));
	}
	CHECK(atp_pkt_parse(&pkt2, again + 1, len) == ATP_OK);
	CHECK(pkt2.payload == again + 1 + ATP_HDR_LEN);
	CHECK(pkt2.type == pkt->type && pkt2.dtype == pkt->dtype &&
	      pkt2.flags == pkt->flags && pkt2.elements == pkt->elements &&
	      pkt2.cap == pkt->cap && pkt2.fanin0 == pkt->fanin0 &&
	      pkt2.job == pkt->job && pkt2.epoch == pkt->epoch &&
	      pkt2.seq == pkt->seq && pkt2.bitmap0 == pkt->bitmap0 &&
	      pkt2.index == pkt->index && pkt2.ce == pkt->ce);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u64 faults = faults_of(data, size);
	/* at an odd address, and the sanitizer watches its end */
	u8 *packet = malloc(size + 1);
	struct atp_pkt pkt;
	enum atp_drop drop;

	if (size)
		memcpy(packet + 1, data, size);
	memset(&pkt, 0, sizeof(pkt));
	drop = atp_pkt_parse(&pkt, packet + 1, size);
	if (drop == ATP_OK) {
		CHECK(!faults);
		CHECK(!pkt.ce);
		CHECK(pkt.payload == packet + 1 + ATP_HDR_LEN);
		check_rebuilt(&pkt, packet + 1, size);
	} else {
		CHECK(drop < ATP_DROP_MAX);
		CHECK(faults & 1ULL << drop);
	}
	if (size >= 36 && drop != ATP_DROP_VERSION && drop != ATP_DROP_TYPE)
		CHECK(pkt.job == get32(data + 4) &&
		      pkt.epoch == get32(data + 8) && pkt.type == data[1]);
	free(packet);
	return 0;
}
