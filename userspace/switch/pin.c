// SPDX-License-Identifier: GPL-2.0
/*
 * Where a switch lives while no process has it open: a directory of the BPF
 * file system, named after the network namespace's cookie, which unlike its
 * inode number is never used again.
 *
 * "ip netns exec" mounts a fresh /sys and so hides /sys/fs/bpf.  The processes
 * above us still see it, and it is reached through them.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/magic.h>
#include "switch.h"

#define BPFFS		"/sys/fs/bpf"
#define HOW_TO_MOUNT	"mount -t bpf none " BPFFS

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE	71
#endif

static bool is_bpffs(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && (uint32_t)fs.f_type == BPF_FS_MAGIC;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], line[512], *p;
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	/* the name in parentheses may hold anything */
	if (fgets(line, sizeof(line), f)) {
		p = strrchr(line, ')');
		if (!p || sscanf(p + 1, " %*c %d", &parent) != 1)
			parent = 0;
	}
	fclose(f);
	return parent;
}

/* Mount it where whoever started us sees it, not only we */
static int mount_bpffs(void)
{
	char path[64];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", getppid());
	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		int ns = open(path, O_RDONLY | O_CLOEXEC);

		if (ns >= 0 && setns(ns, CLONE_NEWNS))
			_exit(1);
		_exit(mount("bpf", BPFFS, "bpf", 0, "mode=0700") ? 1 : 0);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return -1;
	sw_say("mounted the BPF file system at " BPFFS);
	return 0;
}

static bool find_bpffs(char *dir, size_t len)
{
	pid_t pid;

	snprintf(dir, len, BPFFS);
	if (is_bpffs(dir))
		return true;
	for (pid = getppid(); pid > 0; pid = parent_of(pid)) {
		snprintf(dir, len, "/proc/%d/root" BPFFS, pid);
		if (is_bpffs(dir))
			return true;
	}
	snprintf(dir, len, "/proc/1/root" BPFFS);
	return is_bpffs(dir);
}

static int make_dir(const char *dir)
{
	if (!mkdir(dir, 0700) || errno == EEXIST)
		return 0;
	return sw_fail("cannot make %s: %s%s", dir, strerror(errno),
		       errno == EACCES ? ": be root" : "");
}

/**
 * sw_pin_root() - the directory above those of all switches of this machine
 * @dir: filled in
 * @len: its size
 * @make: mount the file system and make the directory if need be
 */
int sw_pin_root(char *dir, size_t len, bool make)
{
	size_t used;

	if (!find_bpffs(dir, len)) {
		if (!make)
			return sw_fail("no BPF file system at %s: %s", BPFFS,
				       HOW_TO_MOUNT);
		if (mount_bpffs() || !find_bpffs(dir, len))
			return sw_fail("cannot mount the BPF file system: as root, %s",
				       HOW_TO_MOUNT);
	}
	used = strlen(dir);
	snprintf(dir + used, len - used, "/atp");
	return make ? make_dir(dir) : 0;
}

static int netns_cookie(uint64_t *cookie)
{
	socklen_t len = sizeof(*cookie);
	int fd, err;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sw_fail("socket: %s", strerror(errno));
	err = getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &len);
	close(fd);
	if (err)
		return sw_fail("SO_NETNS_COOKIE: %s (Linux 5.14 or later is needed)",
			       strerror(errno));
	return 0;
}

/* The directory of the switch of this network namespace */
int sw_pin_dir(char *dir, size_t len, bool make)
{
	uint64_t cookie;
	size_t used;

	if (sw_pin_root(dir, len, make) || netns_cookie(&cookie))
		return -1;
	used = strlen(dir);
	snprintf(dir + used, len - used, "/netns-%llu",
		 (unsigned long long)cookie);
	return make ? make_dir(dir) : 0;
}

/* Is that what has this name?  Who waited for a lock may have got that of a
 * directory that was removed meanwhile.
 */
static bool is_at(int fd, const char *dir)
{
	struct stat ours, there;

	return !fstat(fd, &ours) && !stat(dir, &there) &&
	       ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/**
 * sw_pin_lock() - one process at a time changes a switch
 * @dir: its directory
 * @make: make the directory if need be
 *
 * Return: the lock, which goes with the process; -1 and errno, ENOENT if there
 * is no directory
 */
int sw_pin_lock(const char *dir, bool make)
{
	int fd;

	for (;;) {
		if (make && mkdir(dir, 0700) && errno != EEXIST)
			return -1;
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && !(make && errno == ENOENT))
			return -1;
		if (fd < 0)
			continue;
		if (flock(fd, LOCK_EX)) {
			close(fd);
			return -1;
		}
		if (is_at(fd, dir))
			return fd;
		close(fd);
	}
}

/* Else the kernel takes a program off a moment after its last pin is gone */
static void detach_link(const char *path)
{
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return;
	bpf_link_detach(fd);
	close(fd);
}

/* Remove a switch's directory and with it the switch */
int sw_pin_remove(const char *dir)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	char path[1024];

	if (!d)
		return -1;
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (!strncmp(entry->d_name, "link-", 5))
			detach_link(path);
		unlinkat(dirfd(d), entry->d_name, 0);
	}
	closedir(d);
	return rmdir(dir);
}

/* The kernel forgets a port whose interface is gone, like its whole namespace
 * perhaps.  A switch that has none is of no use.
 */
static bool is_dead(const char *dir)
{
	char path[1024];
	uint32_t port;
	int map, err;

	snprintf(path, sizeof(path), "%s/%s", dir, sw_map_names[SW_MAP_PORTS]);
	map = bpf_obj_get(path);
	if (map < 0)
		return false;
	err = bpf_map_get_next_key(map, NULL, &port);
	close(map);
	return err;
}

/* Unless somebody changes it.  Who comes now waits until it is gone, and makes
 * another one: sw_pin_lock().
 */
static void remove_dead(const char *dir)
{
	int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (lock < 0)
		return;
	if (!flock(lock, LOCK_EX | LOCK_NB) && is_at(lock, dir) &&
	    is_dead(dir))
		sw_pin_remove(dir);
	close(lock);
}

/* Remove what namespaces that are gone have left behind */
void sw_pin_collect(void)
{
	struct dirent *entry;
	char root[256];
	DIR *d;

	if (sw_pin_root(root, sizeof(root), false))
		return;
	d = opendir(root);
	if (!d)
		return;
	while ((entry = readdir(d))) {
		char dir[600];

		if (strncmp(entry->d_name, "netns-", 6))
			continue;
		snprintf(dir, sizeof(dir), "%s/%s", root, entry->d_name);
		remove_dead(dir);
	}
	closedir(d);
}
