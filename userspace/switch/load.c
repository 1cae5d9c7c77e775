// SPDX-License-Identifier: GPL-2.0
/*
 * Loading the programs, pinning them and their maps, and opening them again.
 * When a switch runs already its maps are used again, so that nothing is lost.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "switch.h"
#include "switch_logic.h"

/* The object file is a part of this library */
__asm__(".section .rodata\n"
	".balign 8\n"
	".globl sw_object\n"
	".hidden sw_object\n"
	"sw_object:\n"
	".incbin \"" SW_OBJECT "\"\n"
	".globl sw_object_end\n"
	".hidden sw_object_end\n"
	"sw_object_end:\n"
	".previous\n");

extern const char sw_object[], sw_object_end[];

const char *const sw_map_names[SW_MAPS] = {
	[SW_MAP_AGGREGATORS]	= "aggregators",
	[SW_MAP_JOBS]		= "jobs",
	[SW_MAP_JOB_ROOMS]	= "job_rooms",
	[SW_MAP_STATES]		= "states",
	[SW_MAP_COUNTERS]	= "counters",
	[SW_MAP_OTHERS]		= "others_count",
	[SW_MAP_PORT_INFO]	= "port_info",
	[SW_MAP_PORT_PLACES]	= "port_places",
	[SW_MAP_PORTS]		= "ports",
	[SW_MAP_GROUPS]		= "groups",
	[SW_MAP_SETTINGS]	= "settings",
};

/* What libbpf had to say, kept for the error message */
static char log_tail[4096];

static int keep_log(enum libbpf_print_level level, const char *fmt,
		    va_list args)
{
	char line[1024];
	size_t used = strlen(log_tail), len;

	if (level == LIBBPF_DEBUG)
		return 0;
	if (getenv("ATP_SWITCH_DEBUG"))
		return vfprintf(stderr, fmt, args);
	vsnprintf(line, sizeof(line), fmt, args);
	len = strlen(line);
	if (used + len < sizeof(log_tail))
		memcpy(log_tail + used, line, len + 1);
	return 0;
}

static const char *first_complaint(void)
{
	char *p = strstr(log_tail, "libbpf: ");

	if (!p)
		return "";
	p += strlen("libbpf: ");
	p[strcspn(p, "\n")] = 0;
	return p;
}

static void pin_path(const struct sw_switch *sw, const char *name, char *path,
		     size_t len)
{
	snprintf(path, len, "%s/%s", sw->dir, name);
}

static int open_map(struct sw_switch *sw, int i)
{
	char path[512];

	pin_path(sw, sw_map_names[i], path, sizeof(path));
	sw->map[i] = bpf_obj_get(path);
	if (sw->map[i] < 0)
		return sw_fail("cannot open %s: %s", path, strerror(errno));
	return 0;
}

static void forget(struct sw_switch *sw)
{
	int i;

	memset(sw, 0, sizeof(*sw));
	sw->lock = -1;
	for (i = 0; i < SW_MAPS; i++)
		sw->map[i] = -1;
}

static int read_settings(struct sw_switch *sw)
{
	uint32_t zero = 0;

	if (open_map(sw, SW_MAP_SETTINGS))
		return -1;
	if (bpf_map_lookup_elem(sw->map[SW_MAP_SETTINGS], &zero,
				&sw->settings))
		return sw_fail("cannot read the settings: %s",
			       strerror(errno));
	if (sw->settings.layout != SW_LAYOUT)
		return sw_fail("the running switch is of another version (%u, this is %u): atp switch detach, then attach again",
			       sw->settings.layout, SW_LAYOUT);
	return 0;
}

/* The settings first: another version need not have the same maps */
static int open_maps(struct sw_switch *sw)
{
	struct bpf_map_info info = {};
	uint32_t len = sizeof(info);
	int i;

	if (read_settings(sw))
		return -1;
	for (i = 0; i < SW_MAPS; i++) {
		if (i != SW_MAP_SETTINGS && open_map(sw, i))
			return -1;
	}
	if (bpf_obj_get_info_by_fd(sw->map[SW_MAP_AGGREGATORS], &info, &len))
		return sw_fail("cannot read the map of aggregators: %s",
			       strerror(errno));
	sw->agg_size = info.value_size;
	return 0;
}

/* Does a switch run in this network namespace? */
bool sw_running(void)
{
	char dir[256], path[512];

	if (sw_pin_dir(dir, sizeof(dir), false))
		return false;
	/* the one that is pinned last */
	snprintf(path, sizeof(path), "%s/%s", dir,
		 sw_map_names[SW_MAP_SETTINGS]);
	return !access(path, F_OK);
}

/* Open the running switch of this network namespace */
int sw_open(struct sw_switch *sw)
{
	forget(sw);
	if (sw_pin_dir(sw->dir, sizeof(sw->dir), false))
		return -1;
	sw->lock = sw_pin_lock(sw->dir, false);
	/* who may not look does not know */
	if (sw->lock < 0 && errno == EACCES)
		return sw_fail("cannot look into %s: be root", sw->dir);
	if (sw->lock < 0 && errno != ENOENT)
		return sw_fail("cannot lock %s: %s", sw->dir, strerror(errno));
	if (sw->lock < 0 || !sw_running()) {
		sw_close(sw);
		return sw_fail("no switch runs in this network namespace: atp switch attach dev IF");
	}
	if (open_maps(sw)) {
		sw_close(sw);
		return -1;
	}
	return 0;
}

/* Let others change the switch: what is read from now on may be so */
void sw_release(struct sw_switch *sw)
{
	close(sw->lock);
	sw->lock = -1;
}

void sw_close(struct sw_switch *sw)
{
	int i;

	if (sw->agg)
		munmap(sw->agg, sw->agg_size * sw->settings.aggregators);
	if (sw->states)
		munmap(sw->states, SW_SLOTS * sizeof(*sw->states));
	for (i = 0; i < SW_MAPS; i++) {
		if (sw->map[i] >= 0)
			close(sw->map[i]);
	}
	if (sw->lock >= 0)
		close(sw->lock);
	forget(sw);
}

/* Options against a running switch: the size of its memory cannot change */
static int settle_running(struct sw_switch *sw, const struct sw_options *opt)
{
	if (open_maps(sw))
		return -1;
	if (opt->aggregators && opt->aggregators != sw->settings.aggregators)
		return sw_fail("the running switch has %u aggregators: leave the option out, or atp switch detach first",
			       sw->settings.aggregators);
	if (opt->payload && opt->payload != sw->settings.payload)
		return sw_fail("the running switch has a payload of %u bytes: leave the option out, or atp switch detach first",
			       sw->settings.payload);
	if (opt->generic && !sw->settings.generic)
		return sw_fail("the running switch is attached in native mode: atp switch detach first");
	if (opt->dispatcher && !sw->settings.dispatcher)
		return sw_fail("the running switch has its ports for itself: atp switch detach first");
	if (opt->timeout)
		sw->settings.timeout = opt->timeout * 1000000ULL;
	return 0;
}

static int settle_new(struct sw_switch *sw, const struct sw_options *opt)
{
	struct sw_settings *set = &sw->settings;

	set->layout = SW_LAYOUT;
	set->aggregators = opt->aggregators ?: SW_AGGREGATORS_DEFAULT;
	set->payload = opt->payload ?: ATP_FRAGMENT_MAX;
	set->generic = opt->generic;
	set->dispatcher = opt->dispatcher;
	set->timeout = (opt->timeout ?: SW_TIMEOUT_DEFAULT) * 1000000ULL;
	if (set->aggregators > SW_AGGREGATORS_MAX)
		return sw_fail("at most %u aggregators", SW_AGGREGATORS_MAX);
	if (set->payload < ATP_FRAGMENT_MIN ||
	    set->payload > ATP_FRAGMENT_MAX || set->payload % 8)
		return sw_fail("payload is a multiple of 8 from %u to %u",
			       ATP_FRAGMENT_MIN, ATP_FRAGMENT_MAX);
	sw->agg_size = sizeof(struct sw_agg) +
		       SW_BLOCKS(set->payload) * SW_BLOCK * 8;
	return 0;
}

static int set_constants(struct bpf_object *obj,
			 const struct sw_settings *set)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, obj) {
		if (strstr(bpf_map__name(map), ".rodata") &&
		    !bpf_map__set_initial_value(map, set, sizeof(*set)))
			return 0;
	}
	return sw_fail("the object file has no settings");
}

/* libbpf 1.1 cannot compare devmaps and so cannot reuse them by name */
static int prepare_maps(struct bpf_object *obj, const struct sw_switch *sw,
			bool running)
{
	struct bpf_map *map;
	int i;

	for (i = 0; i < SW_MAPS; i++) {
		map = bpf_object__find_map_by_name(obj, sw_map_names[i]);
		if (!map)
			return sw_fail("the object file has no map %s",
				       sw_map_names[i]);
		if (running && bpf_map__reuse_fd(map, sw->map[i]))
			return sw_fail("cannot use map %s again: %s",
				       sw_map_names[i], strerror(errno));
		if (!running && i == SW_MAP_AGGREGATORS &&
		    (bpf_map__set_max_entries(map,
					      sw->settings.aggregators) ||
		     bpf_map__set_value_size(map, sw->agg_size)))
			return sw_fail("cannot size the map of aggregators");
	}
	return 0;
}

static int pin_maps(struct bpf_object *obj, struct sw_switch *sw)
{
	struct bpf_map *map;
	char path[512];
	int i;

	for (i = 0; i < SW_MAPS; i++) {
		map = bpf_object__find_map_by_name(obj, sw_map_names[i]);
		pin_path(sw, sw_map_names[i], path, sizeof(path));
		unlink(path);
		if (bpf_obj_pin(bpf_map__fd(map), path))
			return sw_fail("cannot pin %s: %s", path,
				       strerror(errno));
		sw->map[i] = dup(bpf_map__fd(map));
	}
	return 0;
}

static int pin_programs(struct bpf_object *obj, struct sw_switch *sw)
{
	struct bpf_program *prog;
	char path[512], name[80];

	bpf_object__for_each_program(prog, obj) {
		snprintf(name, sizeof(name), "prog-%s",
			 bpf_program__name(prog));
		pin_path(sw, name, path, sizeof(path));
		unlink(path);
		if (bpf_obj_pin(bpf_program__fd(prog), path))
			return sw_fail("cannot pin %s: %s", path,
				       strerror(errno));
	}
	return 0;
}

/* A descriptor of a pinned program */
int sw_program(const struct sw_switch *sw, const char *name)
{
	char path[512], file[80];
	int fd;

	snprintf(file, sizeof(file), "prog-%s", name);
	pin_path(sw, file, path, sizeof(path));
	fd = bpf_obj_get(path);
	if (fd < 0)
		return sw_fail("cannot open %s: %s", path, strerror(errno));
	return fd;
}

static void explain_load(int err)
{
	const char *hint = "";

	if (err == EPERM)
		hint = ": be root, or have CAP_BPF and CAP_NET_ADMIN";
	else if (err == ENOMEM)
		hint = ": ask for fewer aggregators";
	sw_fail("cannot load the XDP program: %s (%s)%s", strerror(err),
		first_complaint(), hint);
}

/* The resolution of this clock is a tick, which nothing else tells */
static uint64_t to_ticks(uint64_t ns)
{
	struct timespec tick;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return (ns + tick.tv_nsec - 1) / tick.tv_nsec;
}

/* Not loaded yet: with @sw's settings, and with its maps if it is @running */
static struct bpf_object *open_object(const struct sw_switch *sw, bool running)
{
	LIBBPF_OPTS(bpf_object_open_opts, open_opts,
		    .object_name = "atp_switch");
	struct bpf_object *obj;

	obj = bpf_object__open_mem(sw_object, sw_object_end - sw_object,
				   &open_opts);
	if (!obj) {
		sw_fail("cannot read the object file: %s", strerror(errno));
		return NULL;
	}
	if (set_constants(obj, &sw->settings) ||
	    prepare_maps(obj, sw, running)) {
		bpf_object__close(obj);
		return NULL;
	}
	return obj;
}

/**
 * sw_object_open() - a program of the switch for somebody else to load
 * @sw: the switch, whose maps the program uses
 * @name: of the program
 *
 * Return: the object, in which no other program will be loaded, or NULL
 */
struct bpf_object *sw_object_open(const struct sw_switch *sw, const char *name)
{
	struct bpf_object *obj = open_object(sw, true);
	struct bpf_program *prog;

	if (!obj)
		return NULL;
	bpf_object__for_each_program(prog, obj) {
		if (strcmp(bpf_program__name(prog), name))
			bpf_program__set_autoload(prog, false);
	}
	return obj;
}

static int load_object(struct sw_switch *sw, bool running)
{
	uint32_t zero = 0;
	struct bpf_object *obj;
	int err = -1;

	sw->settings.ticks = to_ticks(sw->settings.timeout);
	obj = open_object(sw, running);
	if (!obj)
		return -1;
	if (bpf_object__load(obj)) {
		explain_load(errno);
		goto out;
	}
	if (!running) {
		struct bpf_map *map;

		map = bpf_object__find_map_by_name(obj, "settings");
		if (bpf_map_update_elem(bpf_map__fd(map), &zero, &sw->settings,
					BPF_ANY)) {
			sw_fail("cannot write the settings: %s",
				strerror(errno));
			goto out;
		}
		/* programs first: a switch is there when its maps are */
		if (pin_programs(obj, sw) || pin_maps(obj, sw))
			goto out;
	} else if (bpf_map_update_elem(sw->map[SW_MAP_SETTINGS], &zero,
				       &sw->settings, BPF_ANY) ||
		   pin_programs(obj, sw)) {
		goto out;
	}
	err = 0;
out:
	bpf_object__close(obj);
	return err;
}

/**
 * sw_load() - load the programs, around the running switch's maps if one runs
 * @sw: filled in
 * @opt: what the user asks for
 */
int sw_load(struct sw_switch *sw, const struct sw_options *opt)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	forget(sw);
	setrlimit(RLIMIT_MEMLOCK, &all);
	libbpf_set_print(keep_log);
	log_tail[0] = 0;
	sw_pin_collect();
	if (sw_pin_dir(sw->dir, sizeof(sw->dir), true))
		return -1;
	sw->lock = sw_pin_lock(sw->dir, true);
	if (sw->lock < 0)
		return sw_fail("cannot lock %s: %s", sw->dir, strerror(errno));
	/* nobody else can begin or end one any more */
	sw->was = sw_running();
	if (sw->was ? settle_running(sw, opt) : settle_new(sw, opt))
		goto fail;
	if (sw->settings.dispatcher && sw_dispatcher_may())
		goto fail;
	if (load_object(sw, sw->was))
		goto fail;
	if (sw->was && sw_unlock_all(sw))
		goto fail;
	return 0;
fail:
	if (!sw->was)
		sw_pin_remove(sw->dir);
	sw_close(sw);
	return -1;
}

static void *map_all(int fd, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

struct sw_agg *sw_agg_get(struct sw_switch *sw, uint32_t index)
{
	if (!sw->agg)
		sw->agg = map_all(sw->map[SW_MAP_AGGREGATORS],
				  sw->agg_size * sw->settings.aggregators);
	return sw->agg ? sw->agg + sw->agg_size * index : NULL;
}

struct sw_state *sw_state_get(struct sw_switch *sw, uint32_t slot)
{
	if (!sw->states)
		sw->states = map_all(sw->map[SW_MAP_STATES],
				     SW_SLOTS * sizeof(*sw->states));
	return sw->states ? sw->states + slot : NULL;
}

/* Can aggregators be emptied?  If not, there is no memory to see them. */
int sw_see_all(struct sw_switch *sw)
{
	if (sw_state_get(sw, 0) && sw_agg_get(sw, 0))
		return 0;
	return sw_fail("cannot map the aggregators: %s", strerror(errno));
}

/**
 * sw_flush() - empty all aggregators of a job
 * @sw: the switch
 * @slot: the job's slot; no program may still take one for it
 *
 * The lock is the one that the programs use.  They hold it for a microsecond; a
 * loader that was killed may have held it for ever.
 *
 * Return: 0, or -1 as sw_see_all()
 */
int sw_flush(struct sw_switch *sw, uint32_t slot)
{
	struct sw_state *state;
	uint32_t i;

	if (sw_see_all(sw))
		return -1;
	state = sw_state_get(sw, slot);
	for (i = 0; i < sw->settings.aggregators; i++) {
		struct sw_agg *a = sw_agg_get(sw, i);

		__sync_val_compare_and_swap(&a->lock, SW_LOCK_USER,
					    SW_LOCK_FREE);
		while (__sync_val_compare_and_swap(&a->lock, SW_LOCK_FREE,
						   SW_LOCK_USER))
			;
		if (a->bitmap && a->slot == slot) {
			a->bitmap = 0;
			sw_quota_give(state);
		}
		sw_unlock(a);
	}
	return 0;
}

/**
 * sw_unlock_all() - free the locks that a killed loader has left
 * @sw: the switch, locked: no other loader can hold one
 *
 * Takes none itself.  This process may be stopped at any point, and a fragment
 * that meets a lock goes on alone.
 *
 * Return: 0, or -1 as sw_see_all()
 */
int sw_unlock_all(struct sw_switch *sw)
{
	uint32_t i;

	if (sw_see_all(sw))
		return -1;
	for (i = 0; i < sw->settings.aggregators; i++)
		__sync_val_compare_and_swap(&sw_agg_get(sw, i)->lock,
					    SW_LOCK_USER, SW_LOCK_FREE);
	return 0;
}
