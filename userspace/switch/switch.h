/* SPDX-License-Identifier: GPL-2.0 */
/*
 * libatpswitch: loads the XDP programs, attaches them to ports, tells them
 * about jobs, and reads their counters.
 *
 * Functions return zero, or -1 with a text that says what is wrong and what to
 * do about it in sw_error().
 */
#ifndef _ATP_SWITCH_H
#define _ATP_SWITCH_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "switch_types.h"

#define SW_AGGREGATORS_DEFAULT	4096
#define SW_AGGREGATORS_MAX	(1 << 20)
#define SW_TIMEOUT_DEFAULT	4000		/* ms */

/* Maps that are pinned, in the order of sw_map_names[] */
enum sw_map {
	SW_MAP_AGGREGATORS,
	SW_MAP_JOBS,
	SW_MAP_JOB_ROOMS,
	SW_MAP_STATES,
	SW_MAP_COUNTERS,
	SW_MAP_OTHERS,
	SW_MAP_PORT_INFO,
	SW_MAP_PORT_PLACES,
	SW_MAP_PORTS,
	SW_MAP_GROUPS,
	SW_MAP_SETTINGS,
	SW_MAPS,
};

extern const char *const sw_map_names[SW_MAPS];

/**
 * struct sw_switch - a switch that runs in this network namespace
 * @dir: where it is pinned
 * @lock: open while this process may change it
 * @was: it ran before sw_load()
 * @map: descriptors of its maps
 * @settings: how it was loaded
 * @agg: aggregators, mapped on demand
 * @agg_size: distance between two
 * @states: job states, mapped on demand
 */
struct sw_switch {
	char	dir[256];
	int	lock;
	bool	was;
	int	map[SW_MAPS];
	struct sw_settings settings;
	void	*agg;
	size_t	agg_size;
	struct sw_state *states;
};

/**
 * struct sw_options - what `attach` was told; zero: not said
 * @aggregators: their number
 * @payload: bytes of payload that one holds
 * @timeout: milliseconds
 * @generic: do without native mode
 * @dispatcher: share the ports with other XDP programs
 */
struct sw_options {
	uint32_t aggregators;
	uint32_t payload;
	uint32_t timeout;
	bool	generic;
	bool	dispatcher;
};

/**
 * struct sw_where - a host of a job, as the operator says it
 * @addr: its address, IPv4 mapped into IPv6
 * @dev: port behind which it is, zero: find out
 * @mac: its MAC address, if @has_mac
 * @has_mac: there is one
 */
struct sw_where {
	struct in6_addr addr;
	uint32_t dev;
	uint8_t	mac[6];
	bool	has_mac;
};

/* error.c */
const char *sw_error(void);
int sw_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Called with what the user should know but need not act on */
extern void (*sw_note)(const char *text);
void sw_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *sw_addr_text(const void *addr, char *buf, size_t len);

/* pin.c */
int sw_pin_root(char *dir, size_t len, bool make);
int sw_pin_dir(char *dir, size_t len, bool make);
void sw_pin_collect(void);
int sw_pin_remove(const char *dir);
int sw_pin_lock(const char *dir, bool make);

/* load.c */
int sw_load(struct sw_switch *sw, const struct sw_options *opt);
int sw_open(struct sw_switch *sw);
bool sw_running(void);
void sw_release(struct sw_switch *sw);
void sw_close(struct sw_switch *sw);
int sw_program(const struct sw_switch *sw, const char *name);
struct bpf_object *sw_object_open(const struct sw_switch *sw,
				  const char *name);
struct sw_agg *sw_agg_get(struct sw_switch *sw, uint32_t index);
struct sw_state *sw_state_get(struct sw_switch *sw, uint32_t slot);
int sw_see_all(struct sw_switch *sw);
int sw_flush(struct sw_switch *sw, uint32_t slot);
int sw_unlock_all(struct sw_switch *sw);

/* ports.c */
int sw_port_attach(struct sw_switch *sw, uint32_t ifindex);
int sw_port_detach(struct sw_switch *sw, uint32_t ifindex);
int sw_port_rate(struct sw_switch *sw, uint32_t ifindex, uint64_t mbit,
		 uint64_t mark);
int sw_port_find(const struct sw_switch *sw, uint32_t ifindex,
		 struct sw_port *port);
int sw_port_next(const struct sw_switch *sw, uint32_t *ifindex);
int sw_port_refresh(struct sw_switch *sw);
int sw_port_upgrade(struct sw_switch *sw);
int sw_port_detach_all(struct sw_switch *sw);
int sw_port_abandon(const char *dir);

/* dispatcher.c */
struct sw_link;
int sw_dispatcher_attach(const struct sw_switch *sw,
			 const struct sw_link *link);
int sw_dispatcher_detach(const char *dir, uint32_t ifindex);
int sw_dispatcher_may(void);
int sw_dispatcher_there(uint32_t ifindex);
uint32_t sw_dispatcher_program(const struct sw_switch *sw, uint32_t ifindex);

/* strays.c */
void sw_strays_remove(const char *ours, uint32_t ifindex);

/* jobs.c */
int sw_job_add(struct sw_switch *sw, uint32_t id, const struct sw_where *ps,
	       const struct sw_where *worker, uint32_t workers,
	       uint32_t quota);
int sw_job_replace(struct sw_switch *sw, uint32_t id,
		   const struct sw_where *ps, const struct sw_where *worker,
		   uint32_t workers, uint32_t quota);
int sw_job_del(struct sw_switch *sw, uint32_t id);
int sw_job_refresh(struct sw_switch *sw, uint32_t id);
int sw_job_refresh_all(struct sw_switch *sw);
int sw_job_regroup_all(struct sw_switch *sw);
int sw_job_next(const struct sw_switch *sw, uint32_t *id, bool *first);
int sw_job_get(const struct sw_switch *sw, uint32_t id, struct sw_job *job);

/* resolve.c */
int sw_resolve(const struct sw_where *where, struct sw_host *host);
/* The same of a host that was resolved before, as far as that may change */
int sw_resolve_again(struct sw_host *host);

/* preflight.c */
/**
 * struct sw_finding - what a check found
 * @dev: about which interface, or empty
 * @what: what was looked at
 * @bad: it does not work like this; else it does, or may
 * @found: what is to be said of it, empty if it is fine
 * @mend: and what to do; never empty if there is something to be said
 */
struct sw_finding {
	char	dev[IFNAMSIZ];
	char	what[96];
	bool	bad;
	char	found[96];
	char	mend[256];
};

typedef void (*sw_finding_fn)(const struct sw_finding *f, void *arg);
/* May this process do what a capability (CAP_*) is for? */
bool sw_has_cap(int cap);
int sw_preflight(const uint32_t *dev, int n, bool generic,
		 sw_finding_fn fn, void *arg);

/* show.c */
/**
 * struct sw_job_view - a job, with everything that is to be said of it
 * @id: job ID
 * @job: where its hosts are
 * @state: what it occupies
 * @counters: what was done for it
 */
struct sw_job_view {
	uint32_t id;
	struct sw_job job;
	struct sw_state state;
	struct sw_counters counters;
};

int sw_job_view(struct sw_switch *sw, uint32_t id, struct sw_job_view *v);
/* Aggregators that hold a sum */
uint32_t sw_occupied(struct sw_switch *sw);
/* What the counters give away, by number, or NULL; there are SW_HINTS */
#define SW_HINTS	11
const char *sw_hint(const struct sw_counters *c, unsigned int i);
int sw_counters_get(const struct sw_switch *sw, uint32_t slot,
		    struct sw_counters *c);
int sw_others_get(const struct sw_switch *sw, struct sw_others *o);
int sw_show(struct sw_switch *sw, FILE *out, bool json, bool pretty,
	    const uint32_t *job);
/* Say which jobs have a host behind a port that was detached */
void sw_job_warn(const struct sw_switch *sw, uint32_t ifindex);
/* Hosts in the group that gets the parameter packets of the job of a slot; -1:
 * cannot tell
 */
int sw_job_group(const struct sw_switch *sw, uint32_t slot);

#endif /* _ATP_SWITCH_H */
