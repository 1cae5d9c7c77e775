// SPDX-License-Identifier: GPL-2.0
/* A worker of tcp_ps.	usage: tcp SOCKET RANK WORKERS ADDRESS */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "member.h"
#include "tcp.h"

static int sock;

/* The result of a call that moves bytes without waiting.
 * Return: bytes, or -1 with errno
 */
static ssize_t moved(ssize_t ret)
{
	if (ret < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return ret;
}

/* Sums come while the rest is still being sent; one never overtakes the values
 * that it is made of.
 */
static int allreduce(float *tensor, size_t count, int index)
{
	size_t size = count * sizeof(*tensor), sent = 0, got = 0;
	struct pollfd p = { .fd = sock };
	char *bytes = (char *)tensor;
	uint64_t length = size;
	ssize_t n;

	(void)index;
	if (send(sock, &length, sizeof(length), MSG_MORE) != sizeof(length))
		return -1;
	while (got < size) {
		p.events = POLLIN | (sent < size ? POLLOUT : 0);
		if (poll(&p, 1, -1) < 0 && errno != EINTR)
			return -1;
		if (p.revents & POLLOUT) {
			n = moved(send(sock, bytes + sent, size - sent,
				       MSG_DONTWAIT | MSG_NOSIGNAL));
			if (n < 0)
				return -1;
			sent += n;
		}
		if (p.revents & (POLLIN | POLLHUP | POLLERR)) {
			n = recv(sock, bytes + got, size - got, MSG_DONTWAIT);
			if (!n)
				errno = ECONNRESET;
			if (!n || moved(n) < 0)
				return -1;
			got += moved(n);
		}
	}
	return 0;
}

/* The server may still be starting. */
static void dial(const char *address)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(TCP_PORT),
	};
	struct timespec pause = { .tv_nsec = 20000000 };
	int on = 1;

	if (!inet_aton(address, &to.sin_addr)) {
		fprintf(stderr, "%s is no address\n", address);
		exit(1);
	}
	for (;;) {
		sock = socket(AF_INET, SOCK_STREAM, 0);
		if (sock < 0)
			member_die("socket");
		if (!connect(sock, (struct sockaddr *)&to, sizeof(to)))
			break;
		if (errno != ECONNREFUSED)
			member_die(address);
		close(sock);
		nanosleep(&pause, NULL);
	}
	if (setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		member_die("TCP_NODELAY");
}

int main(int argc, char **argv)
{
	struct member m = { .allreduce = allreduce };

	if (argc != 5)
		return 2;
	m.rank = member_number(argv[2]);
	m.workers = member_number(argv[3]);
	dial(argv[4]);
	return member_serve(&m, argv[1]);
}
