// SPDX-License-Identifier: GPL-2.0
/*
 * IPVS sends on what a socket sends, and looks into its owner as if that were
 * one of IP's.
 */
#include <arpa/inet.h>
#include <linux/ip_vs.h>
#include <netinet/in.h>
#include "host.h"

#define VIRTUAL		"10.2.0.1"
#define REAL		"10.1.0.254"

/* Packets to the PS go through a tunnel to another host. */
static void tunnel_to_the_ps(void)
{
	struct {
		struct ip_vs_service_user svc;
		struct ip_vs_dest_user dest;
	} both = {
		.svc = {
			.protocol = IPPROTO_UDP,
			.addr = inet_addr(VIRTUAL),
			.port = htons(ATP_PORT),
			.sched_name = "rr",
			.netmask = ~0,
		},
		.dest = {
			.addr = inet_addr(REAL),
			.port = htons(ATP_PORT),
			.conn_flags = IP_VS_CONN_F_TUNNEL,
			.weight = 1,
		},
	};
	int raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);

	ASSERT_GE(raw, 0);
	ASSERT_EQ(setsockopt(raw, IPPROTO_IP, IP_VS_SO_SET_ADD, &both.svc,
			     sizeof(both.svc)), 0);
	ASSERT_EQ(setsockopt(raw, IPPROTO_IP, IP_VS_SO_SET_ADDDEST, &both,
			     sizeof(both)), 0);
	close(raw);
}

/* Packets that left by the device to which the tunnel leads */
static unsigned long tunnelled(void)
{
	unsigned long n = 0;
	char line[256];
	FILE *f;

	f = fopen("/proc/net/dev", "r");
	ASSERT_TRUE(f);
	/* eight columns of what came, then what left: bytes, packets */
	while (fgets(line, sizeof(line), f))
		sscanf(line, " eth0: %*u %*u %*u %*u %*u %*u %*u %*u %*u %lu",
		       &n);
	fclose(f);
	return n;
}

/* The first packet leaves from connect(), others from the timer. */
TEST(packets_into_a_tunnel)
{
	unsigned int tries = 0;
	unsigned long before;
	int fd;

	host_must("modprobe -a ip_vs ip_vs_rr");
	host_net();
	host_to_nowhere();
	host_must("ip route add " VIRTUAL " via " REAL);
	tunnel_to_the_ps();
	ASSERT_EQ(atp("job add %u ps " VIRTUAL " worker 10.1.0.1", JOB), 0);
	before = tunnelled();
	fd = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_join(fd, JOB, 0), EINPROGRESS);
	while (tunnelled() < before + 3 && ++tries < LIMIT_MS / 100)
		usleep(1000);
	EXPECT_GE(tunnelled(), before + 3);
	/* and not past it */
	EXPECT_EQ(host_run("grep -q UDP /proc/net/ip_vs_conn"), 0);
	close(fd);
	ASSERT_EQ(atp("job del %u", JOB), 0);
}

TAP_MAIN()
