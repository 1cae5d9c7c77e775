// SPDX-License-Identifier: GPL-2.0
/* The parameter server of tcp.h.	usage: tcp_ps WORKERS ADDRESS */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "member.h"
#include "tcp.h"

#define MAX_WORKERS	32
#define BLOCK_LANES	(TCP_BLOCK / sizeof(float))

static int sock[MAX_WORKERS], workers;
static float sum[BLOCK_LANES], block[BLOCK_LANES];

/* Return: false at the end of what is sent */
static int get(int fd, void *to, size_t size)
{
	size_t got = 0;
	ssize_t n;

	while (got < size) {
		n = recv(fd, (char *)to + got, size - got, MSG_WAITALL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			member_die("recv");
		if (!n)
			return 0;
		got += n;
	}
	return 1;
}

static void put(int fd, const void *from, size_t size)
{
	size_t sent = 0;
	ssize_t n;

	while (sent < size) {
		n = send(fd, (const char *)from + sent, size - sent,
			 MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			member_die("send");
		sent += n;
	}
}

static void add_block(size_t size)
{
	size_t lanes = size / sizeof(float), k;
	int i;

	for (i = 0; i < workers; i++) {
		if (!get(sock[i], i ? block : sum, size))
			member_die("a worker left early");
		for (k = 0; i && k < lanes; k++)
			sum[k] += block[k];
	}
	for (i = 0; i < workers; i++)
		put(sock[i], sum, size);
}

/* Return: false when the workers are gone */
static int add_tensor(void)
{
	uint64_t left = 0, length;
	size_t size;
	int i;

	for (i = 0; i < workers; i++) {
		if (!get(sock[i], &length, sizeof(length)))
			return 0;
		if (i && length != left) {
			fprintf(stderr, "tcp_ps: lengths differ\n");
			exit(1);
		}
		left = length;
	}
	for (; left; left -= size) {
		size = left < TCP_BLOCK ? left : TCP_BLOCK;
		add_block(size);
	}
	return 1;
}

static void wait_for_workers(const char *address)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(TCP_PORT),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, i;

	if (fd < 0 || !inet_aton(address, &to.sin_addr) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    listen(fd, MAX_WORKERS))
		member_die(address);
	for (i = 0; i < workers; i++) {
		sock[i] = accept(fd, NULL, NULL);
		if (sock[i] < 0 || setsockopt(sock[i], IPPROTO_TCP, TCP_NODELAY,
					      &on, sizeof(on)))
			member_die("accept");
	}
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	workers = member_number(argv[1]);
	if (workers < 1 || workers > MAX_WORKERS)
		return 2;
	wait_for_workers(argv[2]);
	while (add_tensor())
		;
	return 0;
}
