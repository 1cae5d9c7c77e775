// SPDX-License-Identifier: GPL-2.0
/*
 * Questions to a PS.  The kernel holds the port that they must come from, so
 * they leave by a raw socket, and that gets a copy of each answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/atp_packet.h>
#include <linux/filter.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "probe.h"
#include "units.h"

#define TRIES		3
#define SHORT		8
#define ECT0		2

/* An answer to an earlier try counts, too */
static const int try_ms[TRIES] = { 200, 800, 2000 };

/* A fragment with its UDP header */
struct question {
	struct udphdr	udp;
	struct atp_hdr	atp;
	uint8_t		payload[ATP_FRAGMENT_MAX];
};

static bool is_v4(const struct probe *p)
{
	return IN6_IS_ADDR_V4MAPPED(&p->job->ps);
}

/* What a raw socket takes for an address; the port must be zero */
static socklen_t name(const struct in6_addr *addr, struct sockaddr_in6 *sin6)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)sin6;

	memset(sin6, 0, sizeof(*sin6));
	if (IN6_IS_ADDR_V4MAPPED(addr)) {
		sin->sin_family = AF_INET;
		memcpy(&sin->sin_addr, &addr->s6_addr[12], 4);
		return sizeof(*sin);
	}
	sin6->sin6_family = AF_INET6;
	sin6->sin6_addr = *addr;
	return sizeof(*sin6);
}

/*
 * Only what may be an ABORT: a run that goes on brings more than there is room
 * for.  What is read of IPv4 begins with its header, of IPv6 behind it.
 */
static int only_aborts(const struct probe *p)
{
	const unsigned int at = sizeof(struct udphdr) +
				offsetof(struct atp_hdr, type);
	struct sock_filter v4[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_IND, at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ATP_TYPE_ABORT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_filter v6[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ATP_TYPE_ABORT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = {
		.len = is_v4(p) ? sizeof(v4) / sizeof(*v4) :
				  sizeof(v6) / sizeof(*v6),
		.filter = is_v4(p) ? v4 : v6,
	};

	return setsockopt(p->fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
			  sizeof(prog));
}

/* In one piece, whatever the kernel believes of the path, and as ATP's own */
static int set_options(const struct probe *p)
{
	int probe = IP_PMTUDISC_PROBE, ect = ECT0, at;

	if (is_v4(p))
		return setsockopt(p->fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe,
				  sizeof(probe)) ||
		       setsockopt(p->fd, IPPROTO_IP, IP_TOS, &ect,
				  sizeof(ect)) ? -1 : 0;
	at = offsetof(struct udphdr, check);
	return setsockopt(p->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe,
			  sizeof(probe)) ||
	       setsockopt(p->fd, IPPROTO_IPV6, IPV6_TCLASS, &ect,
			  sizeof(ect)) ||
	       setsockopt(p->fd, IPPROTO_IPV6, IPV6_CHECKSUM, &at,
			  sizeof(at)) ? -1 : 0;
}

int probe_open(struct probe *p, const struct job_reply *job,
	       unsigned int rank)
{
	struct sockaddr_in6 addr;
	socklen_t len;

	p->job = job;
	p->rank = rank;
	p->fd = socket(is_v4(p) ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC,
		       IPPROTO_UDP);
	if (p->fd < 0)
		return -1;
	if (only_aborts(p) || set_options(p))
		goto fail;
	len = name(&job->worker[rank], &addr);
	if (bind(p->fd, (struct sockaddr *)&addr, len))
		goto fail;
	len = name(&job->ps, &addr);
	if (connect(p->fd, (struct sockaddr *)&addr, len))
		goto fail;
	return 0;
fail:
	probe_close(p);
	return -1;
}

void probe_close(struct probe *p)
{
	int error = errno;

	close(p->fd);
	errno = error;
}

static uint32_t add_up(const void *data, size_t len, uint32_t sum)
{
	const uint8_t *byte = data;
	size_t i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? byte[i] : byte[i] << 8;
	return sum;
}

/* Of IPv6 the kernel does it. */
static uint16_t checksum(const struct probe *p, const struct question *q,
			 size_t len)
{
	uint32_t sum = IPPROTO_UDP + len;

	sum = add_up(&p->job->worker[p->rank].s6_addr[12], 4, sum);
	sum = add_up(&p->job->ps.s6_addr[12], 4, sum);
	sum = add_up(q, len, sum);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum & 0xffff;
	return htons(sum ? sum : 0xffff);
}

/* A run that there is not: one of four billion is */
static void new_epoch(struct probe *p)
{
	if (getrandom(&p->epoch, sizeof(p->epoch), 0) < 0)
		p->epoch ^= (uint32_t)time(NULL);
}

static int ask(const struct probe *p, uint16_t flags, unsigned int bytes)
{
	struct question q = {
		.udp.source = htons(ATP_PORT),
		.udp.dest = htons(ATP_PORT),
		.atp.version = ATP_VERSION,
		.atp.type = ATP_TYPE_DATA,
		/* only the last of a chunk may be short */
		.atp.flags = htons(flags | ATP_F_LAST),
		.atp.jobID = htonl(p->job->id),
		.atp.epoch = htonl(p->epoch),
		.atp.bitmap0 = htonl(1U << p->rank),
		.atp.fanInDegree0 = p->job->workers,
		.atp.dataType = ATP_INT32,
		/* any; not always the same one */
		.atp.aggregatorIndex = htonl(p->epoch),
		.atp.elements = htons(bytes / 4),
		.atp.cwndCap = htons(ATP_NO_CAP),
	};
	size_t len = sizeof(q.udp) + ATP_HDR_LEN + bytes;

	q.udp.len = htons(len);
	if (is_v4(p))
		q.udp.check = checksum(p, &q, len);
	return send(p->fd, &q, len, 0) < 0 ? -1 : 0;
}

/* Is there an answer to @epoch in what was read? */
static bool answers(const struct probe *p, const uint8_t *buf, size_t len,
		    uint32_t epoch)
{
	size_t skip = is_v4(p) ? (buf[0] & 0xf) * 4 : 0;
	struct udphdr udp;
	struct atp_hdr atp;

	if (len < skip + sizeof(udp) + sizeof(atp))
		return false;
	memcpy(&udp, buf + skip, sizeof(udp));
	memcpy(&atp, buf + skip + sizeof(udp), sizeof(atp));
	return udp.source == htons(ATP_PORT) && udp.dest == htons(ATP_PORT) &&
	       atp.type == ATP_TYPE_ABORT &&
	       atp.jobID == htonl(p->job->id) &&
	       atp.bitmap0 == htonl(1U << p->rank) &&
	       atp.epoch == htonl(epoch);
}

static enum probe_result why(void)
{
	if (errno == ECONNREFUSED)
		return PROBE_REFUSED;
	return errno == EMSGSIZE ? PROBE_TOO_LONG : PROBE_FAILED;
}

/* Until @p->epoch is answered; answers to @other are counted in @others */
static enum probe_result wait_for(const struct probe *p, int ms,
				  uint32_t other, unsigned int *others)
{
	int64_t end = clock_ms() + ms, left;
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	uint8_t buf[256];
	ssize_t len;

	for (;;) {
		left = end - clock_ms();
		if (left < 0 || !poll(&pfd, 1, left))
			return PROBE_SILENCE;
		len = recv(p->fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (len < 0)
			return why();
		if (answers(p, buf, len, p->epoch))
			return PROBE_ANSWER;
		if (others && answers(p, buf, len, other))
			++*others;
	}
}

/* Ask until there is an answer; sent again, it passes every switch */
static enum probe_result insist(struct probe *p, unsigned int bytes,
				uint32_t other, unsigned int *others)
{
	enum probe_result result = PROBE_SILENCE;
	int i;

	for (i = 0; i < TRIES && result == PROBE_SILENCE; i++) {
		if (ask(p, ATP_F_RESEND, bytes))
			return why();
		result = wait_for(p, try_ms[i], other, others);
	}
	return result;
}

enum probe_result probe_ask(struct probe *p, unsigned int bytes)
{
	new_epoch(p);
	return insist(p, bytes, 0, NULL);
}

/*
 * A fragment that is sent for the first time stays in a switch that adds; sent
 * again, it leaves it.  So of two questions about one run a switch lets one
 * through.  Another question after them tells when there will be no more
 * answers, as what takes the same way stays in order.
 */
enum probe_result probe_held(struct probe *p, bool *held)
{
	unsigned int answered = 0;
	enum probe_result result;
	uint32_t epoch;

	new_epoch(p);
	epoch = p->epoch;
	if (ask(p, 0, SHORT) || ask(p, ATP_F_RESEND, SHORT))
		return why();
	new_epoch(p);
	result = insist(p, SHORT, epoch, &answered);
	*held = answered < 2;
	return result;
}
