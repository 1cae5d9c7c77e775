// SPDX-License-Identifier: GPL-2.0
/* Enters a network namespace. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "netns.h"

int netns_enter(const char *name)
{
	char path[PATH_MAX];
	int fd, err;

	if (*name == '/')
		snprintf(path, sizeof(path), "%s", name);
	else
		snprintf(path, sizeof(path), "/var/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "Error: network namespace \"%s\": %s.\n", name,
			strerror(errno));
		return -1;
	}
	err = setns(fd, CLONE_NEWNET);
	if (err)
		fprintf(stderr, "Error: network namespace \"%s\": %s.\n", name,
			strerror(errno));
	close(fd);
	return err;
}
