// SPDX-License-Identifier: GPL-2.0
/* Frames for tests. */
#include <stdlib.h>
#include <string.h>
#include "frame.h"

static uint8_t *put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, v >> 16), v);
}

static uint32_t get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) << 16 | get16(p + 2);
}

/* Ones' complement sum, as RFC 1071 has it, of an even number of bytes */
static uint32_t sum16(const uint8_t *p, uint32_t len, uint32_t sum)
{
	uint32_t i;

	for (i = 0; i + 1 < len; i += 2) {
		sum += get16(p + i);
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

static bool is_v6(const uint8_t *frame)
{
	return frame[12] == 0x86;
}

uint16_t f_pseudo(const uint8_t *frame, uint32_t len)
{
	bool v6 = is_v6(frame);
	uint32_t sum = 17 + len - f_udp(v6);

	return (uint16_t)(v6 ? sum16(frame + 22, 32, sum) :
			       sum16(frame + 26, 8, sum));
}

/* Both checksums */
void f_seal(uint8_t *frame, uint32_t len)
{
	bool v6 = is_v6(frame);
	uint32_t at = f_udp(v6), sum;

	if (!v6) {
		put16(frame + 24, 0);
		put16(frame + 24, ~sum16(frame + 14, 20, 0) & 0xffff);
	}
	put16(frame + at + 6, 0);
	sum = sum16(frame + at, len - at, f_pseudo(frame, len));
	put16(frame + at + 6, (~sum & 0xffff) ?: 0xffff);
}

uint32_t f_make(const struct f_pkt *p, uint8_t *frame)
{
	uint32_t payload = (p->elements * 4 + 7) / 8 * 8;
	uint32_t len = 8 + 36 + payload;
	uint8_t *at = frame;
	int i;

	memset(frame, 0, f_udp(p->v6) + len);
	memcpy(at, p->dst_mac, 6);
	memcpy(at + 6, p->src_mac, 6);
	at = put16(at + 12, p->v6 ? 0x86dd : 0x0800);
	if (p->v6) {
		at = put32(at, 0x60000000 | (uint32_t)p->ecn << 20);
		at = put16(at, len);
		*at++ = 17;
		*at++ = p->ttl;
		memcpy(at, p->src, 16);
		memcpy(at + 16, p->dst, 16);
		at += 32;
	} else {
		*at++ = 0x45;
		*at++ = p->ecn;
		at = put16(at, len + 20);
		at = put32(at, 0x12344000);
		*at++ = p->ttl;
		*at++ = 17;
		at += 2;
		memcpy(at, p->src + 12, 4);
		memcpy(at + 4, p->dst + 12, 4);
		at += 8;
	}
	at = put16(at, p->sport);
	at = put16(at, ATP_PORT);
	at = put16(at, len);
	at += 2;
	*at++ = ATP_VERSION;
	*at++ = ATP_TYPE_DATA;
	at = put16(at, p->flags);
	at = put32(at, p->job);
	at = put32(at, p->epoch);
	at = put32(at, p->seq);
	at = put32(at, p->bitmap);
	at = put32(at, 0);
	*at++ = p->fanin;
	*at++ = 0;
	*at++ = p->dtype;
	*at++ = 0;
	at = put32(at, p->index);
	at = put16(at, p->elements);
	at = put16(at, p->cap);
	for (i = 0; i < p->elements; i++) {
		uint32_t v = (uint32_t)p->lane[i];

		*at++ = (uint8_t)v;
		*at++ = (uint8_t)(v >> 8);
		*at++ = (uint8_t)(v >> 16);
		*at++ = (uint8_t)(v >> 24);
	}
	len += f_udp(p->v6);
	f_seal(frame, len);
	return len;
}

/* Is it an ATP packet, of the right length, with right checksums? */
bool f_valid(const uint8_t *frame, uint32_t len)
{
	uint32_t at;
	bool v6;

	if (len < 14 + 20 + 8 + 36)
		return false;
	v6 = is_v6(frame);
	at = f_udp(v6);
	if (get16(frame + 12) != (v6 ? 0x86dd : 0x0800) || len < at + 44)
		return false;
	if (v6 && (frame[14] >> 4 != 6 || frame[20] != 17 ||
		   get16(frame + 18) != len - at))
		return false;
	if (!v6 && (frame[14] != 0x45 || frame[23] != 17 ||
		    get16(frame + 16) != len - 14 ||
		    sum16(frame + 14, 20, 0) != 0xffff))
		return false;
	if (get16(frame + at + 2) != ATP_PORT ||
	    get16(frame + at + 4) != len - at || !get16(frame + at + 6))
		return false;
	return sum16(frame + at, len - at, f_pseudo(frame, len)) == 0xffff;
}

bool f_read(struct f_pkt *p, const uint8_t *frame, uint32_t len)
{
	const uint8_t *at;
	int i;

	if (!f_valid(frame, len))
		return false;
	memset(p, 0, sizeof(*p));
	memcpy(p->dst_mac, frame, 6);
	memcpy(p->src_mac, frame + 6, 6);
	p->v6 = is_v6(frame);
	if (p->v6) {
		p->ecn = frame[15] >> 4 & 3;
		p->ttl = frame[21];
		memcpy(p->src, frame + 22, 16);
		memcpy(p->dst, frame + 38, 16);
	} else {
		p->ecn = frame[15] & 3;
		p->ttl = frame[22];
		p->src[10] = 0xff;
		p->src[11] = 0xff;
		memcpy(p->dst, p->src, 12);
		memcpy(p->src + 12, frame + 26, 4);
		memcpy(p->dst + 12, frame + 30, 4);
	}
	at = frame + f_udp(p->v6);
	p->sport = (uint16_t)get16(at);
	at += 8;
	p->flags = (uint16_t)get16(at + 2);
	p->job = get32(at + 4);
	p->epoch = get32(at + 8);
	p->seq = get32(at + 12);
	p->bitmap = get32(at + 16);
	p->fanin = at[24];
	p->dtype = at[26];
	p->index = get32(at + 28);
	p->elements = (uint16_t)get16(at + 32);
	p->cap = (uint16_t)get16(at + 34);
	at += 36;
	if (len != f_udp(p->v6) + 44 + (p->elements * 4U + 7) / 8 * 8)
		return false;
	for (i = 0; i < p->elements; i++, at += 4)
		p->lane[i] = (int32_t)((uint32_t)at[0] | at[1] << 8 |
				       at[2] << 16 | (uint32_t)at[3] << 24);
	return true;
}

/* Room for a frame, aligned as a network driver does: the IP header is */
uint8_t *f_buffer(void)
{
	return (uint8_t *)aligned_alloc(64, F_ROOM) + 2;
}
