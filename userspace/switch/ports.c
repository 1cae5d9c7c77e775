// SPDX-License-Identifier: GPL-2.0
/* Ports: attaching the program, and what it needs to know of each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include "rtnl.h"

/* Rate of an interface that does not say: that of veth */
#define RATE_DEFAULT	10000

/* Link rate in Mbit/s */
static uint64_t link_rate(const char *name)
{
	union {
		struct ethtool_link_settings s;
		/* and the masks behind it, at their longest */
		char room[sizeof(struct ethtool_link_settings) + 3 * 127 * 4];
	} req = { .s.cmd = ETHTOOL_GLINKSETTINGS };
	struct ifreq ifr = {};
	uint64_t rate = 0;
	int fd, words;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return RATE_DEFAULT;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = (void *)&req;
	/* the first answer says how long the masks are */
	if (!ioctl(fd, SIOCETHTOOL, &ifr) &&
	    req.s.link_mode_masks_nwords < 0) {
		words = -req.s.link_mode_masks_nwords;
		memset(&req, 0, sizeof(req));
		req.s.cmd = ETHTOOL_GLINKSETTINGS;
		req.s.link_mode_masks_nwords = words;
		if (!ioctl(fd, SIOCETHTOOL, &ifr) &&
		    req.s.speed != (uint32_t)SPEED_UNKNOWN)
			rate = req.s.speed;
	}
	close(fd);
	return rate ?: RATE_DEFAULT;
}

static void set_rate(struct sw_port *port, uint64_t mbit)
{
	port->rate = mbit;
	/* a byte takes 8000 / Mbit/s nanoseconds */
	port->cost = mbit ? (8000ULL << SW_COST_SHIFT) / mbit : 0;
}

/* What the program has to know of a port's subnet */
static int describe(const struct sw_link *link, struct sw_port *port)
{
	struct sw_link l3 = *link;

	if (link->master && sw_rtnl_link(link->master, &l3))
		return -1;
	if (sw_is_bond(link))
		return sw_fail("%s is a %s, and what comes in names its links, not it: attach to one interface that is in none, ip link set IF nomaster",
			       link->name, link->kind);
	if (sw_is_bond(&l3))
		return sw_fail("%s is in the %s %s, and its hosts' packets may come by any of its links: use one alone, ip link set %s nomaster",
			       link->name, l3.kind, l3.name, link->name);
	if (l3.filters_vlans)
		return sw_fail("%s filters VLANs, and what XDP redirects passes by that: ip link set %s type bridge vlan_filtering 0",
			       l3.name, l3.name);
	port->ifindex = link->ifindex;
	port->l3 = l3.ifindex;
	memcpy(port->mac, l3.mac, sizeof(port->mac));
	return 0;
}

int sw_port_find(const struct sw_switch *sw, uint32_t ifindex,
		 struct sw_port *port)
{
	uint32_t place;

	if (bpf_map_lookup_elem(sw->map[SW_MAP_PORT_INFO], &ifindex, &place))
		return -1;
	return bpf_map_lookup_elem(sw->map[SW_MAP_PORT_PLACES], &place, port);
}

/* The next port after *@ifindex; begin with zero */
int sw_port_next(const struct sw_switch *sw, uint32_t *ifindex)
{
	uint32_t next;

	if (bpf_map_get_next_key(sw->map[SW_MAP_PORT_INFO],
				 *ifindex ? ifindex : NULL, &next))
		return -1;
	*ifindex = next;
	return 0;
}

/* Where a port that has no place yet is found first, or the last one free */
static int free_place(const struct sw_switch *sw, uint32_t ifindex,
		      uint32_t *place)
{
	bool used[SW_PORTS] = {};
	uint32_t other = 0, i;

	while (!sw_port_next(sw, &other)) {
		if (!bpf_map_lookup_elem(sw->map[SW_MAP_PORT_INFO], &other,
					 &i) && i < SW_PORTS)
			used[i] = true;
	}
	*place = ifindex % SW_PORTS;
	for (i = SW_PORTS; used[*place] && i > 0; i--)
		*place = i - 1;
	if (used[*place])
		return sw_fail("a switch has room for %d ports", SW_PORTS);
	return 0;
}

/* In its place, under traffic: what does not change is the same meanwhile, the
 * queue may forget some packets, and counts of that moment are lost.
 */
static int write_port(const struct sw_switch *sw, const struct sw_port *port)
{
	int info = sw->map[SW_MAP_PORT_INFO];
	uint32_t place;

	if (bpf_map_lookup_elem(info, &port->ifindex, &place) &&
	    free_place(sw, port->ifindex, &place))
		return -1;
	if (bpf_map_update_elem(sw->map[SW_MAP_PORT_PLACES], &place, port,
				BPF_ANY) ||
	    bpf_map_update_elem(info, &port->ifindex, &place, BPF_ANY))
		return sw_fail("cannot write port %u: %s", port->ifindex,
			       strerror(errno));
	return 0;
}

/*
 * Wait until no program still uses what a map held before.  The kernel does so
 * for who writes a map of maps, and here one is made for that: membarrier()
 * refuses where CPUs are kept from ticks (nohz_full).
 */
static int wait_for_programs(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	uint32_t zero = 0;
	int outer, inner, err = -1;

	inner = bpf_map_create(BPF_MAP_TYPE_ARRAY, "atp_wait_inner",
			       sizeof(zero), sizeof(zero), 1, NULL);
	opts.inner_map_fd = inner;
	outer = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "atp_wait",
			       sizeof(zero), sizeof(zero), 1, &opts);
	if (inner >= 0 && outer >= 0)
		err = bpf_map_update_elem(outer, &zero, &inner, BPF_ANY);
	if (outer >= 0)
		close(outer);
	if (inner >= 0)
		close(inner);
	return err;
}

/*
 * Make redirects to the port possible, or have them end in the present program.
 * While an entry is replaced programs find the other one, and none still looks
 * for that when its turn comes.
 */
static int write_devmap(const struct sw_switch *sw, uint32_t ifindex, bool was)
{
	struct bpf_devmap_val val = { .ifindex = ifindex };
	uint32_t spare = ifindex | SW_SPARE;
	int map = sw->map[SW_MAP_PORTS];
	int err;

	val.bpf_prog.fd = sw_program(sw, "atp_egress");
	if (val.bpf_prog.fd < 0)
		return -1;
	err = bpf_map_update_elem(map, &ifindex, &val, BPF_ANY);
	if (!err && was)
		err = wait_for_programs();
	if (!err)
		err = bpf_map_update_elem(map, &spare, &val, BPF_ANY);
	if (err)
		sw_fail("cannot redirect to port %u: %s", ifindex,
			strerror(errno));
	close(val.bpf_prog.fd);
	return err;
}

static void link_path(const char *dir, uint32_t ifindex, char *path,
		      size_t len)
{
	snprintf(path, len, "%s/link-%u", dir, ifindex);
}

static int explain_attach(const struct sw_link *link, bool generic, int err)
{
	int there = link->xdp ? sw_dispatcher_there(link->ifindex) : 0;

	if (there < 0)
		return sw_fail("%s has another XDP program (id %u): detach it where it was attached; if it is libxdp's dispatcher, which only CAP_SYS_ADMIN shows, say dispatcher to work beside it",
			       link->name, link->xdp);
	if (there)
		return sw_fail("%s has other XDP programs by libxdp's dispatcher (id %u): say dispatcher to work beside them",
			       link->name, link->xdp);
	if (link->xdp)
		return sw_fail("%s has another XDP program (id %u): ip link set %s xdp off, or detach it where it was attached",
			       link->name, link->xdp, link->name);
	if (!generic && err == EOPNOTSUPP)
		return sw_fail("the driver of %s has no native XDP: use another interface, or say generic and accept about half the speed",
			       link->name);
	if (!generic && (err == ERANGE || err == EINVAL))
		return sw_fail("%s refuses native XDP (%s), most likely for its MTU of %u: ip link set %s mtu 3498 or less",
			       link->name, strerror(err), link->mtu,
			       link->name);
	return sw_fail("cannot attach to %s: %s", link->name, strerror(err));
}

/* By a link of the kernel's, which nobody else can replace */
static int attach_link(const struct sw_switch *sw, const struct sw_link *link)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = sw->settings.generic ? XDP_FLAGS_SKB_MODE :
						    XDP_FLAGS_DRV_MODE);
	int prog, fd, err = 0;
	char path[512];

	prog = sw_program(sw, "atp_ingress");
	if (prog < 0)
		return -1;
	link_path(sw->dir, link->ifindex, path, sizeof(path));
	fd = bpf_obj_get(path);
	if (fd >= 0) {
		struct bpf_link_info info = {};
		uint32_t len = sizeof(info);

		if (!bpf_obj_get_info_by_fd(fd, &info, &len) &&
		    info.xdp.ifindex == link->ifindex) {
			err = bpf_link_update(fd, prog, NULL);
			if (err)
				sw_fail("cannot upgrade %s: %s", link->name,
					strerror(errno));
			goto out;
		}
		/* an interface that is gone, its index was given again */
		close(fd);
		unlink(path);
	}
	fd = bpf_link_create(prog, link->ifindex, BPF_XDP, &opts);
	if (fd < 0)
		err = explain_attach(link, sw->settings.generic, errno);
	else if (bpf_obj_pin(fd, path))
		err = sw_fail("cannot pin %s: %s", path, strerror(errno));
out:
	if (fd >= 0)
		close(fd);
	close(prog);
	return err;
}

static void forget_port(const struct sw_switch *sw, uint32_t ifindex)
{
	uint32_t spare = ifindex | SW_SPARE, place;
	int info = sw->map[SW_MAP_PORT_INFO];
	const struct sw_port none = {};

	bpf_map_delete_elem(sw->map[SW_MAP_PORTS], &ifindex);
	bpf_map_delete_elem(sw->map[SW_MAP_PORTS], &spare);
	if (bpf_map_lookup_elem(info, &ifindex, &place))
		return;
	bpf_map_update_elem(sw->map[SW_MAP_PORT_PLACES], &place, &none,
			    BPF_ANY);
	bpf_map_delete_elem(info, &ifindex);
}

/**
 * sw_port_attach() - make an interface a port, or give it the present program
 * @sw: the switch
 * @ifindex: the interface
 */
int sw_port_attach(struct sw_switch *sw, uint32_t ifindex)
{
	struct sw_port port = { .mark = SW_MARK_DEFAULT };
	struct sw_link link;
	bool was;
	int err;

	if (sw_rtnl_link(ifindex, &link))
		return -1;
	if (!strcmp(link.kind, "bridge"))
		return sw_fail("%s is a bridge: attach to its ports",
			       link.name);
	was = !sw_port_find(sw, ifindex, &port);
	if (!was)
		set_rate(&port, link_rate(link.name));
	if (describe(&link, &port) || write_port(sw, &port))
		return -1;
	err = sw->settings.dispatcher ? sw_dispatcher_attach(sw, &link) :
					attach_link(sw, &link);
	if (!err)
		err = write_devmap(sw, ifindex, was);
	if (err && !was && sw_port_detach(sw, ifindex))
		forget_port(sw, ifindex);
	return err;
}

/**
 * sw_port_detach() - an interface is no port any more
 * @sw: the switch
 * @ifindex: the interface, which may be gone
 */
int sw_port_detach(struct sw_switch *sw, uint32_t ifindex)
{
	char path[512];
	int fd, err;

	if (sw->settings.dispatcher) {
		/* while the program runs there it is a port */
		err = sw_dispatcher_detach(sw->dir, ifindex);
		if (err)
			return err;
	} else {
		link_path(sw->dir, ifindex, path, sizeof(path));
		fd = bpf_obj_get(path);
		if (fd >= 0) {
			bpf_link_detach(fd);
			close(fd);
		}
		unlink(path);
	}
	forget_port(sw, ifindex);
	return 0;
}

/**
 * sw_port_rate() - tell the rate of a port's link
 * @sw: the switch
 * @ifindex: the port
 * @mbit: Mbit/s; zero: never mark
 * @mark: microseconds of backlog above which packets are marked, zero: as is
 */
int sw_port_rate(struct sw_switch *sw, uint32_t ifindex, uint64_t mbit,
		 uint64_t mark)
{
	struct sw_port port;

	if (sw_port_find(sw, ifindex, &port))
		return sw_fail("interface %u is no port of the switch: atp switch attach dev IF",
			       ifindex);
	set_rate(&port, mbit);
	if (mark)
		port.mark = mark * 1000;
	port.clear = 0;
	return write_port(sw, &port);
}

/* Do something to all ports, whether or not it works for each; those whose
 * interface is gone are forgotten.
 */
static int for_all(struct sw_switch *sw,
		   int (*fn)(struct sw_switch *sw, uint32_t ifindex))
{
	uint32_t all[SW_PORTS], ifindex = 0;
	struct sw_link link;
	int n = 0, i, err = 0;

	while (n < SW_PORTS && !sw_port_next(sw, &ifindex))
		all[n++] = ifindex;
	for (i = 0; i < n; i++) {
		if (!sw_rtnl_link(all[i], &link))
			err |= fn(sw, all[i]);
		else if (errno == ENODEV)
			sw_port_detach(sw, all[i]);
		else
			err = -1;
	}
	return err ? -1 : 0;
}

/* Give all ports the programs that were loaded last */
int sw_port_upgrade(struct sw_switch *sw)
{
	return for_all(sw, sw_port_attach);
}

int sw_port_detach_all(struct sw_switch *sw)
{
	return for_all(sw, sw_port_detach);
}

/* All interfaces of a map of ports: only the keys are looked at */
static int abandon(const char *dir, int map)
{
	struct bpf_map_info info = {};
	uint32_t ifindex, len = sizeof(info);
	char path[512];
	int end, err = 0;

	if (bpf_obj_get_info_by_fd(map, &info, &len))
		return sw_fail("cannot read the map of ports: %s",
			       strerror(errno));
	if (info.key_size != sizeof(ifindex))
		return sw_fail("the running switch's ports are not known by their interfaces: reboot, or take the programs off with xdp-loader");
	end = bpf_map_get_next_key(map, NULL, &ifindex);
	while (!end) {
		/* a port of its own goes with its link */
		link_path(dir, ifindex, path, sizeof(path));
		if (access(path, F_OK) && sw_dispatcher_detach(dir, ifindex))
			err = -1;
		end = bpf_map_get_next_key(map, &ifindex, &ifindex);
	}
	return err;
}

/**
 * sw_port_abandon() - leave all interfaces of a switch of another version
 * @dir: its directory, which goes with it
 *
 * Its settings mean nothing to us, but its ports are known by their interfaces
 * in every version.
 */
int sw_port_abandon(const char *dir)
{
	int lock, map, err = 0;
	char path[512];

	lock = sw_pin_lock(dir, false);
	if (lock < 0)
		return sw_fail("cannot lock %s: %s", dir, strerror(errno));
	snprintf(path, sizeof(path), "%s/%s", dir,
		 sw_map_names[SW_MAP_PORT_INFO]);
	map = bpf_obj_get(path);
	if (map >= 0) {
		err = abandon(dir, map);
		close(map);
	} else if (errno != ENOENT) {
		err = sw_fail("cannot open %s: %s", path, strerror(errno));
	}
	if (!err && sw_pin_remove(dir))
		err = sw_fail("cannot remove %s: %s", dir, strerror(errno));
	close(lock);
	return err;
}

static int refresh(struct sw_switch *sw, uint32_t ifindex)
{
	struct sw_port port;
	struct sw_link link;

	if (sw_port_find(sw, ifindex, &port) || sw_rtnl_link(ifindex, &link))
		return 0;
	if (describe(&link, &port))
		return -1;
	return write_port(sw, &port);
}

/* Interfaces may have got another bridge or MAC address */
int sw_port_refresh(struct sw_switch *sw)
{
	return for_all(sw, refresh);
}
