// SPDX-License-Identifier: GPL-2.0
/*
 * A socket that is in use for long: what comes in meanwhile waits in its
 * backlog, which is bounded; what finds no room is dropped and counted.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <linux/atp_packet.h>
#include "host.h"
#include "slow.h"

#define LEN	(sizeof(struct udphdr) + ATP_HDR_LEN + ATP_CTL_LEN)

static uint32_t sum16(const uint8_t *p, size_t len, uint32_t sum)
{
	size_t i;

	for (i = 0; i < len; i += 2)
		sum += p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* A PONG of the PS for rank 0, in UDP: it says nothing new. */
static void make_pong(uint8_t *packet, uint32_t epoch)
{
	const uint32_t ps = INADDR_LOOPBACK, worker = INADDR_LOOPBACK + 1;
	struct udphdr udp = {
		.source = htons(ATP_PORT), .dest = htons(ATP_PORT),
		.len = htons(LEN),
	};
	const struct atp_hdr hdr = {
		.version = ATP_VERSION, .type = ATP_TYPE_PONG,
		.jobID = htonl(JOB), .epoch = htonl(epoch),
		.bitmap0 = htonl(1), .fanInDegree0 = 2,
		.cwndCap = htons(ATP_NO_CAP),
	};
	uint32_t sum = IPPROTO_UDP + LEN;

	memset(packet, 0, LEN);
	memcpy(packet, &udp, sizeof(udp));
	memcpy(packet + sizeof(udp), &hdr, sizeof(hdr));
	sum += (ps >> 16) + (ps & 0xffff) + (worker >> 16) + (worker & 0xffff);
	sum = ~sum16(packet, LEN, sum) & 0xffff;
	udp.check = htons(sum ? sum : 0xffff);
	memcpy(packet, &udp, sizeof(udp));
}

/* From the port that only a kernel has, so through a raw socket */
static int raw_socket(void)
{
	const struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);

	ASSERT_GE(fd, 0);
	ASSERT_EQ(bind(fd, (const void *)&from, sizeof(from)), 0);
	return fd;
}

static void send_some(int raw, const uint8_t *packet)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1),
	};
	int i;

	for (i = 0; i < 20; i++)
		ASSERT_EQ(sendto(raw, packet, LEN, 0, (const void *)&to,
				 sizeof(to)), LEN);
}

static bool dropped(void)
{
	return !atp("-s job show %u | grep -q 'drop_backlog [1-9]'", JOB);
}

TEST(backlog_is_bounded)
{
	struct owner owner;
	uint8_t packet[LEN];
	int fds[2], raw, tries;
	int least = 0;

	/* a machine that is slow is not dead */
	join_pair(fds, "timeout 100s");
	make_pong(packet, info_of(fds[0]).epoch);
	raw = raw_socket();
	/* it takes what comes */
	send_some(raw, packet);
	EXPECT_FALSE(dropped());

	set_sndbuf(fds[0], 0);
	ASSERT_EQ(setsockopt(fds[0], SOL_SOCKET, SO_RCVBUF, &least,
			     sizeof(least)), 0);
	own(&owner, fds[0]);
	for (tries = 0; !dropped(); tries++) {
		ASSERT_LT(tries, 100);
		send_some(raw, packet);
	}
	disown(&owner);

	/* nothing else has happened to it */
	set_sndbuf(fds[0], 1 << 20);
	sum_works(fds, 2);
	close(raw);
	close(fds[0]);
	close(fds[1]);
}

TAP_MAIN()
