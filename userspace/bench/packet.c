// SPDX-License-Identifier: GPL-2.0
/* The packets of the switch's benchmark, by what is to happen to them. */
#include <string.h>
#include "actions.h"

static uint8_t *put16(uint8_t *at, uint16_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
	return at + 2;
}

/* Is the sum the packet's payload in the end? */
static bool sends_sum(enum action action)
{
	return action == COMPLETE || action == RESENT || action == FLUSH;
}

/**
 * packet_of() - the packet of a rank, as it is added
 * @action: what is to happen at last
 * @rank: whose
 * @bytes: of payload
 * @frame: filled in
 *
 * The values are small enough for many additions.  What gets the sum as its
 * payload must fit the checksum that is put back into it: so everything is zero
 * there.  No instruction's time depends on values.
 *
 * Return: the frame's length
 */
uint32_t packet_of(enum action action, uint32_t rank, int bytes,
		   uint8_t *frame)
{
	static struct f_pkt p;
	int i;

	c_gradient(&p, &bench_job, rank, 0);
	p.elements = bytes / 4;
	for (i = 0; i < p.elements; i++)
		p.lane[i] = sends_sum(action) ? 0 : i * (i & 1 ? -1 : 1);
	if (action == SATURATE)
		p.lane[1] = INT32_MAX;
	return f_make(&p, frame);
}

/* Of a control packet of a worker the switch looks at the addresses only */
static uint32_t make_control(enum action action, uint8_t *frame)
{
	static struct f_pkt p;
	uint32_t len;

	if (action == BEGIN)
		return c_welcome(&bench_job, 1, frame);
	c_gradient(&p, &bench_job, 0, 0);
	p.elements = ATP_CTL_LEN / 4;
	len = f_make(&p, frame);
	frame[f_udp(false) + 8 + 1] = ATP_TYPE_PING;
	return len;
}

/* From the PS, or a copy of that */
static bool is_parameter(enum action action)
{
	switch (action) {
	case UNICAST:
	case PARAMETER:
	case KEPT:
	case COPY:
	case NO_HOP:
	case GONE:
		return true;
	default:
		return false;
	}
}

/* What header fields say, if not what packet_of() makes them say */
static void change(struct f_pkt *p, enum action action)
{
	uint16_t elements = p->elements;

	if (action == SINGLE)
		c_gradient(p, &bench_job_of_one, 0, 0);
	if (is_parameter(action))
		c_parameter(p, &bench_job, 0, 0);
	if (is_parameter(action) && action != UNICAST)
		p->flags |= ATP_F_MCAST;
	if (action == UNKNOWN || action == GONE)
		p->job = bench_job_of_one.id + 1;
	if (action == STRANGER)
		t_addr(false, bench_job_of_one.id, 0, p->src);
	if (action == COLLISION || action == EVICT)
		p->seq = 1;
	if (action == RAW || action == ROUTED)
		p->flags |= ATP_F_RAW;
	if (action == DISAGREE)
		p->flags ^= ATP_F_LAST;
	if (action == RESENT || action == FLUSH || action == PASSED)
		p->flags |= ATP_F_RESEND;
	if (action == DUPLICATE || action == FLUSH) {
		p->bitmap = 2;
		t_addr(false, bench_job.id, 1, p->src);
	}
	if (action == HEADER)
		p->flags |= ATP_F_EDGE;
	if (action == BITMAP)
		p->bitmap = 3;
	if (action == MISMATCH)
		p->fanin++;
	/* what is sent to the port's own address is to be routed, and so is a
	 * copy of it, which has none then
	 */
	if (action == ROUTED || action == NO_TTL)
		t_port_mac(0, p->dst_mac);
	if (action == NO_HOP)
		memset(p->dst_mac, 0, sizeof(p->dst_mac));
	if (action == NO_TTL || action == NO_HOP)
		p->ttl = 1;
	/* all of IPv4's headers would be shorter than what is put back; its
	 * addresses are not looked at
	 */
	p->v6 = action == TRUNCATED;
	p->elements = elements;
	p->index = 0;
}

/* Put @more bytes before @at.  Return: the frame's length then */
static uint32_t insert(uint8_t *frame, uint32_t len, uint32_t at,
		       uint32_t more)
{
	memmove(frame + at + more, frame + at, len - at);
	memset(frame + at, 0, more);
	return len + more;
}

/* Bytes that are not what f_make() makes them.  Return: the frame's length */
static uint32_t spoil(enum action action, uint8_t *frame, uint32_t len)
{
	uint8_t *udp = frame + f_udp(action == TRUNCATED);

	switch (action) {
	case OTHER:	/* to another port */
		udp[2] ^= 0x10;
		return len;
	case VLAN:
	case TAGGED:
		len = insert(frame, len, 12, 4);
		put16(put16(frame + 12, 0x8100), action == VLAN ? 5 : 0);
		return len;
	case OPTIONS:
		frame[14]++;
		return insert(frame, len, f_udp(false), 4);
	case VERSION:
		udp[8]++;
		return len;
	case TRUNCATED:
		return f_udp(true) + 8 + ATP_HDR_LEN - 1;
	case LENGTH:
		udp[5]++;
		return len;
	case NO_SUM:
		put16(udp + 6, 0);
		return len;
	case PARTIAL:
		put16(udp + 6, f_pseudo(frame, len));
		return len;
	case REFUSED:
		frame[len / 2] ^= 0x10;
		return len;
	default:
		return len;
	}
}

/**
 * packet_last() - the packet that is measured, of rank zero or the PS
 * @action: what is to happen to it
 * @bytes: of payload; control packets have a length of their own
 * @frame: filled in
 *
 * Return: the frame's length
 */
uint32_t packet_last(enum action action, int bytes, uint8_t *frame)
{
	static struct f_pkt p;
	uint32_t len;

	if (action == CONTROL || action == BEGIN)
		return make_control(action, frame);
	len = packet_of(action, 0, bytes, frame);
	if (!f_read(&p, frame, len))
		die("cannot read a packet");
	change(&p, action);
	return spoil(action, frame, f_make(&p, frame));
}
