/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames for tests, made and read byte by byte, so that nothing is shared with
 * the code under test but the numbers of the protocol.
 */
#ifndef _SWITCH_FRAME_H
#define _SWITCH_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/atp_packet.h>

#define F_MAX_LANES	(ATP_FRAGMENT_MAX / 4)
#define F_ROOM		4096

/**
 * struct f_pkt - a data packet
 * @v6: IPv6
 * @src: address, IPv4 mapped
 * @dst: address, IPv4 mapped
 * @src_mac: source MAC address
 * @dst_mac: destination MAC address
 * @ttl: time to live
 * @ecn: ECN bits of the IP header
 * @sport: UDP source port
 * @fanin: fanInDegree0
 * @flags: ATP_F_*
 * @cap: cwndCap
 * @elements: lanes
 * @dtype: dataType
 * @job: jobID
 * @epoch: run
 * @seq: sequenceNumber
 * @bitmap: bitmap0
 * @index: aggregatorIndex
 * @lane: values
 */
struct f_pkt {
	bool	v6;
	uint8_t	src[16];
	uint8_t	dst[16];
	uint8_t	src_mac[6];
	uint8_t	dst_mac[6];
	uint8_t	ttl;
	uint8_t	ecn;
	uint16_t sport;
	uint8_t	fanin;
	uint16_t flags;
	uint16_t cap;
	uint16_t elements;
	uint8_t	dtype;
	uint32_t job;
	uint32_t epoch;
	uint32_t seq;
	uint32_t bitmap;
	uint32_t index;
	int32_t	lane[F_MAX_LANES];
};

/* Where things are in a frame */
static inline uint32_t f_udp(bool v6)
{
	return v6 ? 54 : 34;
}

uint32_t f_make(const struct f_pkt *p, uint8_t *frame);
void f_seal(uint8_t *frame, uint32_t len);
uint16_t f_pseudo(const uint8_t *frame, uint32_t len);
bool f_valid(const uint8_t *frame, uint32_t len);
bool f_read(struct f_pkt *p, const uint8_t *frame, uint32_t len);
uint8_t *f_buffer(void);

#endif /* _SWITCH_FRAME_H */
