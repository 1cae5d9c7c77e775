// SPDX-License-Identifier: GPL-2.0
/*
 * Random packets for the family's port, and ICMP errors about what it sends:
 * from the other end of a cable, where somebody says to be the PS or a worker.
 * He knows what these have said to each other, as whoever is on their way does:
 * without a nonce of theirs few packets would get far.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "vm_fuzz.h"

#define BURST	40	/* most packets in one */
#define LANES	16	/* most in a packet */
#define PACKET	(ATP_HDR_LEN + ATP_PAYLOAD_LEN(LANES))

_Static_assert(PACKET >= sizeof(struct control), "PACKET");

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static socklen_t address_of(union address *a, bool v6, enum who who,
			    uint16_t port)
{
	memset(a, 0, sizeof(*a));
	if (v6) {
		a->six.sin6_family = AF_INET6;
		a->six.sin6_port = htons(port);
		a->six.sin6_addr = (struct in6_addr){
			.s6_addr = { 0xfd, 9, [15] = who },
		};
		return sizeof(a->six);
	}
	a->four.sin_family = AF_INET;
	a->four.sin_port = htons(port);
	a->four.sin_addr.s_addr = htonl(0x0a090000 | who);
	return sizeof(a->four);
}

static void must(int result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	exit(2);
}

/* Whom it says to be is here and not there, so it must be allowed to. */
static int udp_of(bool v6, enum who who)
{
	const int one = 1, ect0 = 2;
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	union address own, to;
	socklen_t len = address_of(&own, v6, who, ATP_PORT);

	must(fd, "socket");
	must(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)),
	     "SO_REUSEPORT");
	if (v6) {
		must(setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &one,
				sizeof(one)), "IPV6_TRANSPARENT");
		setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &ect0, sizeof(ect0));
	} else {
		must(setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &one,
				sizeof(one)), "IP_TRANSPARENT");
		setsockopt(fd, IPPROTO_IP, IP_TOS, &ect0, sizeof(ect0));
	}
	must(bind(fd, &own.any, len), "bind");
	address_of(&to, v6, who == PS ? WORKER : PS, ATP_PORT);
	must(connect(fd, &to.any, len), "connect");
	return fd;
}

static uint32_t headers(bool v6)
{
	return (v6 ? sizeof(struct ip6_hdr) : sizeof(struct iphdr)) +
	       sizeof(struct udphdr);
}

/* PS and worker are both here, so what they say goes through lo.  Data would be
 * too much to listen to.
 */
static int ear_of(bool v6)
{
	uint16_t protocol = htons(v6 ? ETH_P_IPV6 : ETH_P_IP);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS,
			 headers(v6) + offsetof(struct atp_hdr, type)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ATP_TYPE_DATA, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT16_MAX),
	};
	const struct sock_fprog filter = {
		.len = sizeof(code) / sizeof(code[0]), .filter = code,
	};
	const struct sockaddr_ll lo = {
		.sll_family = AF_PACKET, .sll_protocol = protocol,
		.sll_ifindex = (int)if_nametoindex("lo"),
	};
	/* bound to no protocol, it hears nothing yet */
	int fd = socket(AF_PACKET, SOCK_DGRAM, 0);

	must(fd, "packet socket");
	must(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
			sizeof(filter)), "SO_ATTACH_FILTER");
	must(bind(fd, (const struct sockaddr *)&lo, sizeof(lo)), "bind");
	return fd;
}

void packets_init(struct process *p, const char *netns)
{
	int here = open("/proc/self/ns/net", O_RDONLY);
	int there = open(netns, O_RDONLY), v6;
	enum who who;

	must(here, "own namespace");
	must(there, netns);
	for (v6 = 0; v6 < 2; v6++)
		p->ear[v6] = ear_of(v6);
	must(setns(there, CLONE_NEWNET), netns);
	for (v6 = 0; v6 < 2; v6++) {
		for (who = PS; who <= WORKER; who++)
			p->far[v6][who] = udp_of(v6, who);
		p->icmp[v6] = v6 ?
			socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6) :
			socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
		must(p->icmp[v6], "ICMP socket");
	}
	must(setns(here, CLONE_NEWNET), "own namespace");
	close(here);
	close(there);
}

/* Wrong in some bytes */
static void mutate(struct thread *t, uint8_t *p, uint32_t len)
{
	uint32_t n;

	for (n = below(t, 4); n; n--)
		p[below(t, len)] = rand64(t);
}

static void note(const struct control *c)
{
	bool tells = c->hdr.type == ATP_TYPE_PONG && c->hdr.sequenceNumber;
	uint32_t job = ntohl(c->hdr.jobID);
	uint8_t type = c->hdr.type;

	if (c->hdr.version != ATP_VERSION || type <= ATP_TYPE_DATA ||
	    type > ATP_TYPE_PONG || job > JOBS)
		return;
	shared->heard[job][type] = *c;
	if (tells)
		shared->told[job] = *c;
	/* it waits for the others, or is in a run */
	if ((type == ATP_TYPE_WELCOME || (type == ATP_TYPE_PONG && !tells)) &&
	    c->ctl.nonce && c->ctl.nonce == shared->nonce[job]) {
		shared->nonce[job] = 0;
		count(&shared->taken);
	}
}

static void listen_to(int fd, bool v6)
{
	uint8_t p[sizeof(struct ip6_hdr) + sizeof(struct udphdr) +
		  sizeof(struct control)];
	size_t len = headers(v6) + sizeof(struct control);
	struct control c;

	while (recv(fd, p, len, MSG_DONTWAIT) == (ssize_t)len) {
		memcpy(&c, p + headers(v6), sizeof(c));
		note(&c);
	}
}

/* As the last of its type, or of another, was; or as a rank joins that has
 * started again.
 */
static void repeat(struct thread *t, uint8_t *p, uint32_t job)
{
	uint8_t type = p[offsetof(struct atp_hdr, type)];
	uint8_t like = chance(t, 4) ? 2 + below(t, 7) : type;
	struct control c = shared->heard[job][like];
	struct control told = shared->told[job];

	if (!c.hdr.version)
		return;
	c.hdr.type = type;
	if (type == ATP_TYPE_JOIN && !chance(t, 4)) {
		c.hdr.epoch = told.hdr.epoch;
		c.hdr.sequenceNumber = told.hdr.sequenceNumber;
		c.hdr.bitmap0 = told.hdr.bitmap0;
		c.ctl.nonce = (uint32_t)rand64(t);
		shared->nonce[job] = c.ctl.nonce;
	}
	memcpy(p, &c, sizeof(c));
}

/* Packets that could be a job's; the length of each */
static uint32_t make(struct thread *t, uint8_t *p, uint32_t job, uint32_t n)
{
	uint32_t seq = shared->run[job].due + below(t, 8), i;
	struct atp_hdr h = {
		.version = ATP_VERSION,
		.type = n > 1 ? ATP_TYPE_DATA : 1 + below(t, 8),
		.jobID = htonl(job),
		.epoch = htonl(shared->run[job].epoch),
		.bitmap0 = htonl(1 + below(t, 3)),
		.fanInDegree0 = 1 + below(t, RANKS),
		.cwndCap = htons(ATP_NO_CAP),
	};
	uint32_t len = sizeof(struct control), lanes;

	if (h.type == ATP_TYPE_DATA) {
		lanes = 1 + below(t, LANES);
		h.flags = htons(rand64(t) & rand64(t) & ATP_F_ALL);
		h.dataType = 1 + below(t, 2);
		h.elements = htons(lanes);
		len = ATP_HDR_LEN + ATP_PAYLOAD_LEN(lanes);
	}
	memset(p, 0, n * len);
	for (i = 0; i < n; i++) {
		h.sequenceNumber = htonl(seq + i);
		memcpy(p + i * len, &h, sizeof(h));
	}
	if (h.type != ATP_TYPE_DATA && chance(t, 2))
		repeat(t, p, job);
	return len;
}

static bool send_burst(int fd, void *data, uint32_t total, uint16_t each)
{
	union {
		char room[CMSG_SPACE(sizeof(each))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = data, .iov_len = total };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = IPPROTO_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(each));
	memcpy(CMSG_DATA(c), &each, sizeof(each));
	return sendmsg(fd, &m, MSG_DONTWAIT) > 0;
}

static uint16_t checksum(const uint8_t *p, uint32_t len)
{
	uint32_t sum = 0, i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum & 0xffff);
}

/* The headers that a packet of ours has; their length */
static uint32_t quote(uint8_t *p, bool v6, enum who from, uint32_t len)
{
	struct udphdr udp = {
		.source = htons(ATP_PORT), .dest = htons(ATP_PORT),
		.len = htons(sizeof(udp) + len),
	};
	union address a, b;
	struct ip6_hdr six = {
		.ip6_vfc = 6 << 4, .ip6_plen = udp.len,
		.ip6_nxt = IPPROTO_UDP, .ip6_hlim = 64,
	};
	struct iphdr four = {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
		.tot_len = htons(sizeof(four) + sizeof(udp) + len),
	};

	address_of(&a, v6, from, 0);
	address_of(&b, v6, from == PS ? WORKER : PS, 0);
	if (v6) {
		six.ip6_src = a.six.sin6_addr;
		six.ip6_dst = b.six.sin6_addr;
		memcpy(p, &six, sizeof(six));
		memcpy(p + sizeof(six), &udp, sizeof(udp));
		return sizeof(six) + sizeof(udp);
	}
	four.saddr = a.four.sin_addr.s_addr;
	four.daddr = b.four.sin_addr.s_addr;
	memcpy(p, &four, sizeof(four));
	memcpy(p + sizeof(four), &udp, sizeof(udp));
	return sizeof(four) + sizeof(udp);
}

/* Mostly that it is too big for a path */
static void header(struct thread *t, uint8_t *p, bool v6)
{
	static const uint8_t others[2][3] = {
		{ ICMP_DEST_UNREACH, ICMP_TIME_EXCEEDED, ICMP_PARAMETERPROB },
		{ ICMP6_DST_UNREACH, ICMP6_TIME_EXCEEDED, ICMP6_PARAM_PROB },
	};
	uint16_t mtu = rand64(t) >> below(t, 16);

	memset(p, 0, 8);
	if (chance(t, 3)) {
		p[0] = others[v6][below(t, 3)];
		p[1] = below(t, 16);
	} else {
		p[0] = v6 ? ICMP6_PACKET_TOO_BIG : ICMP_DEST_UNREACH;
		p[1] = v6 ? 0 : ICMP_FRAG_NEEDED;
	}
	p[6] = (uint8_t)(mtu >> 8);
	p[7] = (uint8_t)mtu;
}

static void do_error(struct thread *t, uint32_t job, enum who from)
{
	uint8_t p[8 + sizeof(struct ip6_hdr) + sizeof(struct udphdr) + PACKET];
	uint8_t packet[PACKET];
	uint32_t n = make(t, packet, job, 1), len = 8;
	bool v6 = is_v6(job);
	union address to;
	socklen_t to_len = address_of(&to, v6, from, 0);
	uint16_t sum;

	header(t, p, v6);
	len += quote(p + len, v6, from, n);
	memcpy(p + len, packet, n);
	len += n;
	if (chance(t, 3))
		mutate(t, p + 8, len - 8);
	if (chance(t, 6))
		len -= below(t, len - 8);
	sum = checksum(p, len);
	if (!v6)
		memcpy(p + 2, &sum, sizeof(sum));
	if (sendto(t->process->icmp[v6], p, len, MSG_DONTWAIT, &to.any,
		   to_len) > 0)
		count(&shared->errors);
}

/* Who says such things? */
static enum who speaker(struct thread *t, uint8_t type)
{
	switch (type) {
	case ATP_TYPE_DATA:
		return chance(t, 2) ? PS : WORKER;
	case ATP_TYPE_JOIN:
	case ATP_TYPE_LEAVE:
	case ATP_TYPE_PING:
		return chance(t, 8) ? PS : WORKER;
	default:
		return chance(t, 8) ? WORKER : PS;
	}
}

void do_packet(struct thread *t)
{
	uint32_t job = 1 + below(t, JOBS), n = 1, len;
	uint8_t p[BURST * PACKET];
	bool v6 = is_v6(job);
	int fd;

	listen_to(t->process->ear[v6], v6);
	if (chance(t, 4)) {
		do_error(t, job, chance(t, 2) ? PS : WORKER);
		return;
	}
	if (chance(t, 3))
		n = 2 + below(t, BURST - 1);
	len = make(t, p, job, n);
	fd = t->process->far[v6][speaker(t, p[offsetof(struct atp_hdr, type)])];
	if (chance(t, 2))
		mutate(t, p, n * len);
	if (n > 1 && send_burst(fd, p, n * len, (uint16_t)len))
		count(&shared->bursts);
	else if (n > 1 || send(fd, p, len, MSG_DONTWAIT) <= 0)
		return;
	count(&shared->packets);
}
