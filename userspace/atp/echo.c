// SPDX-License-Identifier: GPL-2.0
/* Asks for an echo. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/ip6.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "echo.h"
#include "units.h"

#define TRIES		3
#define MOST		4096

/* An answer to an earlier try counts, too */
static const int try_ms[TRIES] = { 200, 800, 2000 };

/* The same in ICMP and ICMPv6, but for the type and who adds it up */
struct echo {
	uint8_t		type;
	uint8_t		code;
	uint16_t	check;
	uint32_t	token;
	uint8_t		fill[MOST];
};

static uint16_t checksum(const void *data, size_t len)
{
	const uint8_t *byte = data;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? byte[i] : byte[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum & 0xffff);
}

static int open_v4(const struct in6_addr *addr)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	int fd, probe = IP_PMTUDISC_PROBE;

	memcpy(&to.sin_addr, &addr->s6_addr[12], 4);
	fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	if (fd >= 0 &&
	    (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe,
			sizeof(probe)) ||
	     connect(fd, (struct sockaddr *)&to, sizeof(to)))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_v6(const struct in6_addr *addr)
{
	struct sockaddr_in6 to = {
		.sin6_family = AF_INET6,
		.sin6_addr = *addr,
	};
	int fd, probe = IPV6_PMTUDISC_PROBE;

	fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6);
	if (fd >= 0 &&
	    (setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe,
			sizeof(probe)) ||
	     connect(fd, (struct sockaddr *)&to, sizeof(to)))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Return: 1 that answer, 0 none in time, -1 with errno */
static int wait_for(int fd, int ms, bool v4, uint32_t token)
{
	int64_t end = clock_ms() + ms, left;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	uint8_t buf[128];
	ssize_t len;
	size_t skip;

	for (;;) {
		left = end - clock_ms();
		if (left < 0 || !poll(&pfd, 1, left))
			return 0;
		len = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (len < 0)
			return -1;
		skip = v4 ? (buf[0] & 0xf) * 4 : 0;
		if ((size_t)len < skip + 8)
			continue;
		if (buf[skip] == (v4 ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY) &&
		    !memcmp(buf + skip + 4, &token, sizeof(token)))
			return 1;
	}
}

int echo_ask(const struct in6_addr *addr, unsigned int bytes)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(addr);
	struct echo echo = {
		.type = v4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST,
	};
	size_t headers = v4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr);
	size_t len = bytes - headers;
	int fd, i, error, ret = 0;

	if (bytes < headers + 8 || len > sizeof(echo)) {
		errno = EINVAL;
		return -1;
	}
	if (getrandom(&echo.token, sizeof(echo.token), 0) < 0)
		echo.token = getpid();
	if (v4)
		echo.check = checksum(&echo, len);
	fd = v4 ? open_v4(addr) : open_v6(addr);
	if (fd < 0)
		return -1;
	for (i = 0; i < TRIES && !ret; i++) {
		ret = send(fd, &echo, len, 0) < 0 ? -1 :
						    wait_for(fd, try_ms[i], v4,
							     echo.token);
	}
	error = errno;
	close(fd);
	errno = error;
	return ret;
}
