// SPDX-License-Identifier: GPL-2.0
/*
 * Pins that are left when somebody who was changing a dispatcher by libxdp was
 * killed: of a dispatcher that is not attached yet, or not any more.  They keep
 * our programs, and these our maps.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "rtnl.h"

/* Maps of a program that are looked at; ours use fewer */
#define MAPS	64
/* Programs of a dispatcher */
#define PROGRAMS	16

/**
 * struct known - what tells pins of ours from those of others
 * @map: the id of a map that all of ours in a dispatcher use
 * @prog: the ids of the programs of the dispatcher that runs
 * @n: how many
 */
struct known {
	uint32_t map;
	uint32_t prog[PROGRAMS];
	int	n;
};

static uint32_t map_id(const char *ours)
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", ours, sw_map_names[SW_MAP_JOBS]);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return 0;
	if (bpf_obj_get_info_by_fd(fd, &info, &len))
		info.id = 0;
	close(fd);
	return info.id;
}

/* The program that is pinned, or that the link attaches which is */
static int open_program(const char *pin)
{
	struct bpf_link_info info = {};
	uint32_t len = sizeof(info);
	const char *end = strrchr(pin, '-');
	int fd, link;

	fd = bpf_obj_get(pin);
	if (fd < 0 || !end || strcmp(end, "-link"))
		return fd;
	link = fd;
	fd = -1;
	if (!bpf_obj_get_info_by_fd(link, &info, &len))
		fd = bpf_prog_get_fd_by_id(info.prog_id);
	close(link);
	return fd;
}

static bool knows(const struct known *k, const char *pin)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info), i;
	uint32_t maps[MAPS] = {};
	bool found = false;
	int fd, n;

	fd = open_program(pin);
	if (fd < 0)
		return false;
	info.nr_map_ids = MAPS;
	info.map_ids = (uintptr_t)maps;
	if (!bpf_obj_get_info_by_fd(fd, &info, &len)) {
		for (i = 0; i < info.nr_map_ids && i < MAPS; i++)
			found |= maps[i] == k->map;
		for (n = 0; n < k->n; n++)
			found |= k->prog[n] == info.id;
	}
	close(fd);
	return found;
}

static void learn(struct known *k, const char *pin)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);
	int fd = open_program(pin);

	if (fd < 0)
		return;
	if (k->n < PROGRAMS && !bpf_obj_get_info_by_fd(fd, &info, &len))
		k->prog[k->n++] = info.id;
	close(fd);
}

enum todo { LEARN, LOOK, REMOVE };

/* Go through the pins of a dispatcher.  LOOK: is one of them known? */
static bool go_through(const char *dir, struct known *k, enum todo what)
{
	struct dirent *entry;
	bool found = false;
	char path[1200];
	DIR *d;

	d = opendir(dir);
	if (!d)
		return false;
	while ((entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (what == LEARN)
			learn(k, path);
		else if (what == LOOK)
			found |= knows(k, path);
		else
			unlink(path);
	}
	closedir(d);
	return found;
}

static void clean(const char *root, uint32_t ifindex, struct known *k)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, now);
	struct dirent *entry;
	unsigned int dev, id;
	char path[900];
	DIR *d;

	/* what an interface that cannot be asked has, is not known */
	if (bpf_xdp_query(ifindex, 0, &now))
		return;
	d = opendir(root);
	if (!d)
		return;
	snprintf(path, sizeof(path), "%s/dispatch-%u-%u", root, ifindex,
		 now.prog_id);
	go_through(path, k, LEARN);
	while ((entry = readdir(d))) {
		if (sscanf(entry->d_name, "dispatch-%u-%u", &dev, &id) != 2 ||
		    dev != ifindex || id == now.prog_id ||
		    id == now.drv_prog_id || id == now.skb_prog_id ||
		    id == now.hw_prog_id)
			continue;
		snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
		/* another namespace may have an interface of this index */
		if (go_through(path, k, LOOK))
			go_through(path, k, REMOVE);
		/* refused unless it is empty, which is of use to nobody */
		rmdir(path);
	}
	closedir(d);
}

/**
 * sw_strays_remove() - remove pins of dispatchers that do not run
 * @ours: the switch's directory
 * @ifindex: the interface that they were for
 *
 * Only those that have a program of this switch, or one of the dispatcher that
 * runs.
 */
void sw_strays_remove(const char *ours, uint32_t ifindex)
{
	struct known k = { .map = map_id(ours) };
	char root[600];
	int lock;

	snprintf(root, sizeof(root), "%s/../../xdp", ours);
	lock = k.map ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (lock < 0)
		return;
	/* libxdp takes this lock, too: nobody is about to attach one */
	if (!flock(lock, LOCK_EX))
		clean(root, ifindex, &k);
	close(lock);
}
