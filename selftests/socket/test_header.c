// SPDX-License-Identifier: GPL-2.0
/*
 * The IP headers of what leaves: ECN-capable, not to be fragmented, whatever
 * the route says, and alike for worker and PS.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include "host.h"

#define ECT_0		2
#define HOPS		64

/**
 * struct seen - packets of ours
 * @worker: from the worker's address
 * @ps: from the PS's
 * @bursts: longer than any single one can be
 */
struct seen {
	uint32_t worker;
	uint32_t ps;
	uint32_t bursts;
};

static void check_header4(const uint8_t *packet, ssize_t len, struct seen *seen)
{
	const struct iphdr *ip = (const void *)packet;
	const uint16_t *words = (const void *)packet;
	uint32_t i, sum = 0;

	EXPECT_EQ(ip->version, 4);
	EXPECT_EQ(ip->ihl, 5);
	EXPECT_EQ(ip->tos, ECT_0);
	EXPECT_EQ(ntohs(ip->tot_len), len);
	EXPECT_EQ(ntohs(ip->frag_off), IP_DF);
	EXPECT_EQ(ip->ttl, HOPS);
	for (i = 0; i < sizeof(*ip) / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	EXPECT_EQ(sum, 0xffff);
	EXPECT_EQ(ip->daddr ^ ip->saddr, htonl(3));
	if (ip->saddr == htonl(INADDR_LOOPBACK))
		seen->ps++;
	else
		seen->worker++;
}

static void check_header6(const uint8_t *packet, ssize_t len, struct seen *seen)
{
	const struct ip6_hdr *ip6 = (const void *)packet;

	/* version 6, class and no flow label */
	EXPECT_EQ(ntohl(ip6->ip6_flow), 6 << 28 | ECT_0 << 20);
	EXPECT_EQ(ntohs(ip6->ip6_plen), len - sizeof(*ip6));
	EXPECT_EQ(ip6->ip6_nxt, IPPROTO_UDP);
	EXPECT_EQ(ip6->ip6_hlim, HOPS);
	if (ip6->ip6_src.s6_addr[15] == 1)
		seen->ps++;
	else
		seen->worker++;
}

static void check_headers(int fd, uint16_t protocol, uint32_t fragment,
			  struct seen *seen)
{
	static uint8_t packet[1 << 16];
	uint32_t headers = protocol == ETH_P_IP ? sizeof(struct iphdr) :
						  sizeof(struct ip6_hdr);
	const struct udphdr *udp = (const void *)(packet + headers);
	ssize_t len;

	while ((len = recv(fd, packet, sizeof(packet), 0)) >= 0) {
		if (udp->dest != htons(ATP_PORT))
			continue;
		if (protocol == ETH_P_IP)
			check_header4(packet, len, seen);
		else
			check_header6(packet, len, seen);
		if (len > 2 * fragment)
			seen->bursts++;
	}
	ASSERT_EQ(errno, EAGAIN);
}

static void headers_of(uint16_t protocol, const char *ps, const char *worker)
{
	static char chunk[64000], sum[sizeof(chunk)];
	struct seen seen = {};
	int fd, packets;

	ASSERT_EQ(atp("job add %u ps %s worker %s fragment 1000", JOB, ps,
		      worker), 0);
	packets = listen_on_lo(SOCK_DGRAM, protocol);
	fd = new_socket(0);
	ASSERT_EQ(do_join(fd, JOB, 0), 0);
	push(fd, chunk, sizeof(chunk));
	pull(fd, sum, sizeof(sum));
	check_headers(packets, protocol, 1000, &seen);
	EXPECT_GT(seen.worker, 1);
	EXPECT_GT(seen.ps, 1);
	EXPECT_GT(seen.bursts, 0);
	close(packets);
	close(fd);
	ASSERT_EQ(atp("job del %u", JOB), 0);
}

TEST(ipv4)
{
	host_net();
	headers_of(ETH_P_IP, "127.0.0.1", "127.0.0.2");
}

TEST(ipv6)
{
	host_net();
	host_must("ip addr add fd00::1/128 dev lo nodad");
	host_must("ip addr add fd00::2/128 dev lo nodad");
	headers_of(ETH_P_IPV6, "fd00::1", "fd00::2");
}

/* By the route alone IP would let routers fragment. */
TEST(route_with_a_locked_mtu)
{
	host_net();
	host_must("ip route replace local 127.0.0.0/8 dev lo table local src 127.0.0.1 mtu lock 1500");
	headers_of(ETH_P_IP, "127.0.0.1", "127.0.0.2");
}

TAP_MAIN()
