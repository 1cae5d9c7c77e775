// SPDX-License-Identifier: GPL-2.0
/* Checks of the machine: kernel, module, port, clock, locked memory. */
#include <errno.h>
#include <linux/atp.h>
#include <linux/atp_netlink.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include "../switch/switch.h"
#include "checks.h"
#include "netlink_gen.h"

#define CLOCKSOURCE \
	"/sys/devices/system/clocksource/clocksource0/current_clocksource"

static void check_kernel(void)
{
	unsigned int major, minor;
	struct utsname name;

	if (uname(&name) ||
	    sscanf(name.release, "%u.%u", &major, &minor) != 2)
		check_warn("kernel", "6.1 or later is needed",
			   "its version cannot be told");
	else if (major < 6 || (major == 6 && minor < 1))
		check_bad("kernel", "6.1 or later is needed", "Linux %s",
			  name.release);
	else if (major > 6 || (minor != 1 && minor != 12))
		check_warn("kernel", "6.1 and 6.12 are", "Linux %s is not tested",
			   name.release);
	else
		check_ok("kernel", "Linux %s", name.release);
}

/* Is there a family of our number, though our module is not there? */
static void check_number(void)
{
	int fd = socket(AF_ATP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 && errno == EAFNOSUPPORT) {
		check_ok("family number", "%d is free", AF_ATP);
		return;
	}
	check_bad("family number",
		  "unload the module that has it, then modprobe atp",
		  "%d is taken by another module", AF_ATP);
	if (fd >= 0)
		close(fd);
}

static int read_family(const struct nlmsghdr *nlh, void *arg)
{
	return family_parse(nlh, arg) ? -2 : 0;
}

static void check_family(struct nl *nl)
{
	struct family_reply family = { 0 };
	int fd;

	nl_begin(nl, ATP_CMD_FAMILY_GET, 0);
	if (nl_run(nl, &atp_set_family, read_family, &family)) {
		check_bad("module", "reload it: rmmod atp; modprobe atp",
			  "gives no answer that makes sense");
		return;
	}
	if (family.number != AF_ATP || family.port != ATP_PORT ||
	    family.version != ATP_VERSION)
		check_bad("module", "install module and tools of one version",
			  "speaks family %u, port %u, version %u; the tools %d, %d, %d",
			  family.number, family.port, family.version, AF_ATP,
			  ATP_PORT, ATP_VERSION);
	else
		check_ok("module", "loaded, port %u, version %u", family.port,
			 family.version);
	fd = socket(AF_ATP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		check_bad("family number", "rmmod atp; modprobe atp",
			  "no socket of family %d: %s", AF_ATP,
			  strerror(errno));
		return;
	}
	close(fd);
	check_ok("family number", "%d", AF_ATP);
}

static void check_module(struct checks *c)
{
	c->nl.quiet = true;
	c->module = !nl_open(&c->nl);
	if (c->module) {
		check_family(&c->nl);
		return;
	}
	/* nor has it a use for the number of the family */
	if (c->nl.error == -ENOENT && sw_running()) {
		check_ok("module", "not loaded; a switch needs none");
		return;
	}
	if (c->nl.error == -ENOENT)
		check_bad("module",
			  "modprobe atp; if there is none, install atp-dkms or make install",
			  "is not loaded and does not load by itself");
	else
		check_bad("module", "see dmesg, then rmmod atp; modprobe atp",
			  "netlink: %s",
			  strerror(-c->nl.error));
	check_number();
}

/* Return: 0, or the errno with which the port cannot be had */
static int try_port(int family)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(ATP_PORT),
	};
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(ATP_PORT),
	};
	int fd, one = 1, err = 0;

	fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	if (family == AF_INET) {
		err = bind(fd, (struct sockaddr *)&sin, sizeof(sin));
	} else {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
		err = bind(fd, (struct sockaddr *)&sin6, sizeof(sin6));
	}
	if (err)
		err = errno;
	close(fd);
	return err;
}

/* The kernel holds the port while there is a job. */
static int count_job(const struct nlmsghdr *nlh, void *arg)
{
	(void)nlh;
	++*(unsigned int *)arg;
	return 0;
}

static void check_port(struct checks *c)
{
	unsigned int jobs = 0;

	nl_begin(&c->nl, ATP_CMD_JOB_GET, NLM_F_DUMP);
	if (nl_run(&c->nl, &atp_set_job, count_job, &jobs))
		return;
	if (jobs)
		check_ok("UDP port", "%d is the kernel's", ATP_PORT);
	else if (try_port(AF_INET) == EADDRINUSE ||
		 try_port(AF_INET6) == EADDRINUSE)
		check_bad("UDP port",
			  "end the program that ss -ulp names, then atp job add",
			  "%d is taken", ATP_PORT);
	else
		check_ok("UDP port", "%d is free", ATP_PORT);
}

/* Timers count from two milliseconds; the clock is read for each packet. */
static void check_clock(void)
{
	char name[64] = "";
	struct timespec res;
	FILE *f;

	f = fopen(CLOCKSOURCE, "r");
	if (f) {
		if (fscanf(f, "%63s", name) != 1)
			*name = 0;
		fclose(f);
	}
	if (clock_getres(CLOCK_MONOTONIC, &res) || res.tv_sec ||
	    res.tv_nsec > 1000000)
		check_bad("clock",
			  "boot without highres=off and nohz=off",
			  "%s, without timers of high resolution", name);
	else if (strcmp(name, "tsc") && strcmp(name, "kvm-clock") &&
		 strcmp(name, "arch_sys_counter"))
		check_warn("clock",
			   "see dmesg for why it is not tsc",
			   "%s is slow to read", *name ? name : "unknown");
	else
		check_ok("clock", "%s", name);
}

/* Bytes that a socket may have in flight, or 0 */
static int send_buffer(void)
{
	int fd = socket(AF_ATP, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(int);
	int size;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &len))
		size = 0;
	if (fd >= 0)
		close(fd);
	return size;
}

/* The kernel asks for the capability where no namespace gives it. */
static bool may_lock_all(void)
{
	unsigned long inside, outside, count = 0;
	FILE *f;

	if (!sw_has_cap(CAP_IPC_LOCK))
		return false;
	f = fopen("/proc/self/uid_map", "r");
	if (!f)
		return false;
	if (fscanf(f, "%lu %lu %lu", &inside, &outside, &count) != 3)
		count = 0;
	fclose(f);
	return count == UINT32_MAX;
}

/*
 * Chunks stay in the memory of who pushes them as far as that may be locked, by
 * all sockets of a user together.
 */
static void check_locked(void)
{
	int buffer = send_buffer();
	struct rlimit limit;

	if (!buffer || getrlimit(RLIMIT_MEMLOCK, &limit))
		check_warn("locked memory", "see dmesg",
			   "the limit cannot be told");
	else if (limit.rlim_cur == RLIM_INFINITY)
		check_ok("locked memory", "no limit");
	else if (may_lock_all())
		check_ok("locked memory",
			 "no limit for this user; see as who trains");
	else if (limit.rlim_cur < (rlim_t)buffer)
		check_warn("locked memory",
			   "raise ulimit -l: limits.conf(5), or LimitMEMLOCK= of a unit",
			   "%lu KiB, and a socket may have %d in flight: the rest is copied",
			   (unsigned long)limit.rlim_cur / 1024, buffer / 1024);
	else
		check_ok("locked memory",
			 "%lu KiB for all sockets of a user, of up to %d each",
			 (unsigned long)limit.rlim_cur / 1024, buffer / 1024);
}

/* A user namespace gives capabilities that are none in the network's. */
static bool may_look(void)
{
	int fd;

	if (!sw_has_cap(CAP_NET_ADMIN))
		return false;
	fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* Who sees only some jobs would take the kernel's port for another's. */
static bool check_privileges(void)
{
	if (may_look())
		return true;
	check_warn("privileges", "run this as root",
		   "not everything can be looked at");
	return false;
}

void check_machine(struct checks *c)
{
	bool all = check_privileges();

	check_kernel();
	check_module(c);
	if (c->module && all)
		check_port(c);
	check_clock();
	if (c->module)
		check_locked();
}
