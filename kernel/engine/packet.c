// SPDX-License-Identifier: GPL-2.0
/* The layout of packets, and what makes one nonsense whatever its job. */
#include "packet.h"

static_assert(sizeof(struct atp_hdr) == ATP_HDR_LEN);
static_assert(sizeof(struct atp_ctl) == ATP_CTL_LEN);
static_assert(ATP_FRAGMENT_MIN % 8 == 0 && ATP_FRAGMENT_MAX % 8 == 0);

/* What a gradient and what a parameter packet may have.  ATP_F_EDGE belongs to
 * the second level, which is not built yet.
 */
#define GRADIENT_FLAGS	(ATP_F_OVERFLOW | ATP_F_RESEND | ATP_F_COLLISION | \
			 ATP_F_ECN | ATP_F_RAW | ATP_F_LAST | ATP_F_SWITCHED)
#define PARAMETER_FLAGS	(ATP_F_ACK | ATP_F_OVERFLOW | ATP_F_COLLISION | \
			 ATP_F_ECN | ATP_F_RAW | ATP_F_LAST | \
			 ATP_F_SWITCHED | ATP_F_MCAST)

static bool flags_ok(const struct atp_pkt *pkt)
{
	u16 flags = pkt->flags;

	if (pkt->type != ATP_TYPE_DATA)
		return !flags;

	/* A sum that did not fit and values that were never summed: one packet
	 * cannot be both, neither up nor down.
	 */
	if ((flags & ATP_F_RAW) && (flags & ATP_F_OVERFLOW))
		return false;

	if (flags & ATP_F_ACK)
		return !(flags & ~PARAMETER_FLAGS);
	return !(flags & ~GRADIENT_FLAGS);
}

static bool is_raw_request(const struct atp_pkt *pkt)
{
	return (pkt->flags & ATP_F_ACK) && (pkt->flags & ATP_F_OVERFLOW) &&
	       !pkt->elements;
}

static enum atp_drop check_data(const struct atp_pkt *pkt, size_t len)
{
	if (pkt->elements > ATP_FRAGMENT_MAX / 4)
		return ATP_DROP_ELEMENTS;
	if (!pkt->elements && !is_raw_request(pkt))
		return ATP_DROP_ELEMENTS;
	if (len != ATP_HDR_LEN + ATP_PAYLOAD_LEN(pkt->elements))
		return ATP_DROP_LENGTH;
	if (pkt->dtype != ATP_INT32 && pkt->dtype != ATP_FLOAT32)
		return ATP_DROP_DTYPE;

	if (pkt->flags & ATP_F_ACK) {
		/* what an int32 sum that fits no lane and a float32 sum that
		 * was not scaled look like; see Numbers
		 */
		if ((pkt->flags & ATP_F_RAW) && pkt->dtype != ATP_FLOAT32)
			return ATP_DROP_FLAGS;
		if ((pkt->flags & ATP_F_OVERFLOW) && pkt->elements &&
		    pkt->dtype != ATP_INT32)
			return ATP_DROP_FLAGS;
		return ATP_OK;
	}

	if (!pkt->fanin0 || pkt->fanin0 > ATP_MAX_WORKERS)
		return ATP_DROP_FANIN;
	if (!pkt->bitmap0 || (u64)pkt->bitmap0 >> pkt->fanin0)
		return ATP_DROP_BITMAP;
	/* a switch adds several workers' values and says so, but never values
	 * as they were pushed
	 */
	if ((pkt->bitmap0 & (pkt->bitmap0 - 1)) &&
	    (pkt->flags & (ATP_F_RAW | ATP_F_SWITCHED)) != ATP_F_SWITCHED)
		return ATP_DROP_BITMAP;
	return ATP_OK;
}

static enum atp_drop check_ctl(const struct atp_pkt *pkt, size_t len)
{
	if (pkt->elements)
		return ATP_DROP_ELEMENTS;
	if (len != ATP_HDR_LEN + ATP_CTL_LEN)
		return ATP_DROP_LENGTH;
	if (pkt->dtype)
		return ATP_DROP_DTYPE;
	return ATP_OK;
}

enum atp_drop atp_pkt_parse(struct atp_pkt *pkt, const void *data, size_t len)
{
	struct atp_hdr h;

	if (len < ATP_HDR_LEN)
		return ATP_DROP_SHORT;
	memcpy(&h, data, ATP_HDR_LEN);

	if (h.version != ATP_VERSION)
		return ATP_DROP_VERSION;
	if (h.type < ATP_TYPE_DATA || h.type > ATP_TYPE_PONG)
		return ATP_DROP_TYPE;

	pkt->type = h.type;
	pkt->flags = be16_to_cpu(h.flags);
	pkt->job = be32_to_cpu(h.jobID);
	pkt->epoch = be32_to_cpu(h.epoch);
	pkt->seq = be32_to_cpu(h.sequenceNumber);
	pkt->bitmap0 = be32_to_cpu(h.bitmap0);
	pkt->bitmap1 = be32_to_cpu(h.bitmap1);
	pkt->fanin0 = h.fanInDegree0;
	pkt->fanin1 = h.fanInDegree1;
	pkt->dtype = h.dataType;
	pkt->tree = h.treeID;
	pkt->index = be32_to_cpu(h.aggregatorIndex);
	pkt->elements = be16_to_cpu(h.elements);
	pkt->cap = be16_to_cpu(h.cwndCap);
	pkt->ce = false;
	pkt->payload = (const u8 *)data + ATP_HDR_LEN;

	if (!flags_ok(pkt))
		return ATP_DROP_FLAGS;
	if (pkt->fanin1 || pkt->tree)
		return ATP_DROP_FANIN;
	if (pkt->bitmap1)
		return ATP_DROP_BITMAP;

	/* The padding lane is under the checksum, but nothing depends on it:
	 * it is not looked at.
	 */
	return pkt->type == ATP_TYPE_DATA ? check_data(pkt, len) :
					    check_ctl(pkt, len);
}

u32 atp_pkt_write_hdr(void *buf, const struct atp_pkt *pkt)
{
	struct atp_hdr h = {
		.version = ATP_VERSION,
		.type = pkt->type,
		.flags = cpu_to_be16(pkt->flags),
		.jobID = cpu_to_be32(pkt->job),
		.epoch = cpu_to_be32(pkt->epoch),
		.sequenceNumber = cpu_to_be32(pkt->seq),
		.bitmap0 = cpu_to_be32(pkt->bitmap0),
		.bitmap1 = cpu_to_be32(pkt->bitmap1),
		.fanInDegree0 = pkt->fanin0,
		.fanInDegree1 = pkt->fanin1,
		.dataType = pkt->dtype,
		.treeID = pkt->tree,
		.aggregatorIndex = cpu_to_be32(pkt->index),
		.elements = cpu_to_be16(pkt->elements),
		.cwndCap = cpu_to_be16(pkt->cap),
	};

	memcpy(buf, &h, ATP_HDR_LEN);
	return ATP_HDR_LEN;
}

void atp_ctl_read(struct atp_ctl_host *ctl, const void *payload)
{
	struct atp_ctl c;

	memcpy(&c, payload, ATP_CTL_LEN);
	ctl->nonce = be32_to_cpu(c.nonce);
	ctl->workers = be32_to_cpu(c.workers);
	ctl->fragment = be32_to_cpu(c.fragment);
	ctl->window = be32_to_cpu(c.window);
	ctl->scale = be32_to_cpu(c.scale);
	ctl->reason = be32_to_cpu(c.reason);
	ctl->ranks = be32_to_cpu(c.ranks);
	ctl->server = be32_to_cpu(c.server);
}

u32 atp_ctl_write(void *buf, const struct atp_pkt *pkt,
		  const struct atp_ctl_host *ctl)
{
	struct atp_ctl c = {
		.nonce = cpu_to_be32(ctl->nonce),
		.workers = cpu_to_be32(ctl->workers),
		.fragment = cpu_to_be32(ctl->fragment),
		.window = cpu_to_be32(ctl->window),
		.scale = cpu_to_be32(ctl->scale),
		.reason = cpu_to_be32(ctl->reason),
		.ranks = cpu_to_be32(ctl->ranks),
		.server = cpu_to_be32(ctl->server),
	};
	u32 len = atp_pkt_write_hdr(buf, pkt);

	memcpy((u8 *)buf + len, &c, ATP_CTL_LEN);
	return len + ATP_CTL_LEN;
}

/* Multiplication by an odd number (2^32 by the golden ratio) carries every bit
 * upwards, the shift brings the high ones down again.
 */
static u32 mix(u32 hash, u32 value)
{
	hash = (hash ^ value) * 0x9e3779b1;
	return hash ^ (hash >> 15);
}

u32 atp_index_hash(u32 job, u32 epoch, u32 salt)
{
	/* once more at the end, so that the last input reaches all bits */
	return mix(mix(mix(mix(0, job), epoch), salt), 0);
}
