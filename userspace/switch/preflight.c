// SPDX-License-Identifier: GPL-2.0
/* What a switch needs, looked at before it is missed. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <sys/syscall.h>
#include "rtnl.h"

/* MTU up to which veth hands native XDP linear packets */
#define MTU_VETH	3498
#define HEADERS		(20 + 8 + ATP_HDR_LEN)

/**
 * struct check - a run of the checks
 * @fn: whom to tell
 * @arg: its argument
 * @generic: native mode is not wanted
 */
struct check {
	sw_finding_fn fn;
	void	*arg;
	bool	generic;
};

static void tell(const struct check *c, const char *dev, bool bad,
		 const char *what, const char *found, const char *mend)
{
	struct sw_finding f = { .bad = bad };

	snprintf(f.dev, sizeof(f.dev), "%s", dev ?: "");
	snprintf(f.what, sizeof(f.what), "%s", what);
	snprintf(f.found, sizeof(f.found), "%s", found);
	snprintf(f.mend, sizeof(f.mend), "%s", mend);
	c->fn(&f, c->arg);
}

static void fine(const struct check *c, const char *dev, const char *what)
{
	tell(c, dev, false, what, "", "");
}

bool sw_has_cap(int cap)
{
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = {};

	if (syscall(SYS_capget, &hdr, data))
		return false;
	return data[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap);
}

static int read_number(const char *path, int otherwise)
{
	FILE *f = fopen(path, "r");
	int v = otherwise;

	if (f) {
		if (fscanf(f, "%d", &v) != 1)
			v = otherwise;
		fclose(f);
	}
	return v;
}

static void check_machine(const struct check *c)
{
	char dir[256];
	bool may = (sw_has_cap(CAP_BPF) || sw_has_cap(CAP_SYS_ADMIN)) &&
		   (sw_has_cap(CAP_NET_ADMIN) || sw_has_cap(CAP_SYS_ADMIN));
	int jit = read_number("/proc/sys/net/core/bpf_jit_enable", -1);

	if (may)
		fine(c, NULL, "privileges");
	else
		tell(c, NULL, true, "privileges", "are missing",
		     "be root, or have CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
	if (sw_pin_root(dir, sizeof(dir), false))
		tell(c, NULL, false, "BPF file system", "is not mounted",
		     "attach will, or mount -t bpf none /sys/fs/bpf");
	else
		fine(c, NULL, "BPF file system");
	if (jit > 0)
		fine(c, NULL, "BPF JIT");
	else if (!jit)
		tell(c, NULL, false, "BPF JIT",
		     "is off, aggregating will be slow",
		     "sysctl net.core.bpf_jit_enable=1");
	else
		tell(c, NULL, false, "BPF JIT",
		     "cannot be seen from this network namespace",
		     "in the first one: sysctl net.core.bpf_jit_enable=1");
	if (c->generic)
		tell(c, NULL, false, "generic mode",
		     "older kernels give parameter packets to one worker only",
		     "see uname -r: of the 6.1 series, 6.1.178 or later");
}

/* One word of ethtool's old interface: is a feature on? -1: cannot tell */
int sw_ethtool(const char *name, uint32_t cmd)
{
	struct ethtool_value value = { .cmd = cmd };
	struct ifreq ifr = {};
	int fd, on = -1;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	ifr.ifr_data = (void *)&value;
	if (!ioctl(fd, SIOCETHTOOL, &ifr))
		on = value.data != 0;
	close(fd);
	return on;
}

/*
 * What is redirected out of a veth is received by the other end, and only if
 * that polls: with GRO on, or an XDP program of its own.  Else it vanishes.
 * Newer kernels say it of this end, wherever the other one is.
 */
static void check_peer(const struct check *c, const struct sw_link *link)
{
	struct sw_link peer;
	uint64_t features;
	char mend[256];

	if (!sw_xdp_features(link->ifindex, &features)) {
		if (!(features & SW_XDP_XMIT)) {
			tell(c, link->name, true,
			     "other end receives redirects", "does not",
			     "when it is up, ethtool -K DEV gro off, then gro on, there");
			return;
		}
		if (link->peer_away || !link->peer) {
			fine(c, link->name, "other end receives redirects");
			tell(c, link->name, false, "other end's checksums",
			     "cannot be seen",
			     "ethtool -K DEV tx off there (or what comes from it is dropped, bursts of AF_ATP as well)");
			return;
		}
	}
	if (link->peer_away || !link->peer) {
		tell(c, link->name, false, "other end",
		     "is in another namespace",
		     "there, ethtool -K DEV gro on tx off (or what is sent to it vanishes, and what comes is dropped for its checksum)");
		return;
	}
	if (sw_rtnl_link(link->peer, &peer))
		return;
	if (peer.xdp || sw_ethtool(peer.name, ETHTOOL_GGRO) == 1) {
		fine(c, link->name, "other end receives redirects");
	} else {
		snprintf(mend, sizeof(mend),
			 "ethtool -K %s gro on (or what is sent to it vanishes)",
			 peer.name);
		tell(c, link->name, true, "other end receives redirects",
		     "does not", mend);
	}
	if (sw_ethtool(peer.name, ETHTOOL_GTXCSUM) == 1) {
		snprintf(mend, sizeof(mend),
			 "ethtool -K %s tx off (or what comes from it is dropped, bursts of AF_ATP as well)",
			 peer.name);
		tell(c, link->name, false, "other end's checksums",
		     "leaves them to an offload", mend);
	}
}

static void check_mtu(const struct check *c, const struct sw_link *link)
{
	char what[96], mend[256];

	snprintf(what, sizeof(what), "MTU %u, fragments up to %u bytes",
		 link->mtu,
		 link->mtu > HEADERS + 20 + 8 ?
		 (link->mtu - HEADERS - 20) / 8 * 8 : 0);
	if (!strcmp(link->kind, "veth") && link->mtu > MTU_VETH &&
	    !c->generic) {
		snprintf(mend, sizeof(mend), "ip link set %s mtu %u or less",
			 link->name, MTU_VETH);
		tell(c, link->name, true, what,
		     "native XDP needs packets in one piece", mend);
		return;
	}
	fine(c, link->name, what);
}

/* Does the driver take a native program?  Only an attempt tells. */
static void check_native(const struct check *c, const struct sw_link *link)
{
	struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0,
		  .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = XDP_FLAGS_DRV_MODE);
	char found[96];
	int prog, fd, err;

	if (c->generic)
		return;
	prog = bpf_prog_load(BPF_PROG_TYPE_XDP, "atp_probe", "GPL", pass, 2,
			     NULL);
	if (prog < 0) {
		tell(c, link->name, true, "native XDP",
		     "cannot load a program", "be root");
		return;
	}
	fd = bpf_link_create(prog, link->ifindex, BPF_XDP, &opts);
	err = errno;
	close(prog);
	if (fd >= 0) {
		close(fd);
		fine(c, link->name, "native XDP");
		return;
	}
	if (err == EOPNOTSUPP) {
		tell(c, link->name, true, "native XDP", "the driver has none",
		     "another interface, or generic at half the speed");
		return;
	}
	snprintf(found, sizeof(found), "refused (%s)", strerror(err));
	tell(c, link->name, true, "native XDP", found,
	     "see dmesg, most likely the MTU or the number of queues");
}

static void check_forwarding(const struct check *c,
			     const struct sw_link *link)
{
	char path[96], mend[256];
	struct sw_link bridge;
	int v4, v6;

	if (link->master && !sw_rtnl_link(link->master, &bridge) &&
	    !strcmp(bridge.kind, "bridge")) {
		snprintf(mend, sizeof(mend),
			 "ip link set %s type bridge vlan_filtering 0",
			 bridge.name);
		if (bridge.filters_vlans)
			tell(c, link->name, true, "port of a bridge",
			     "which filters VLANs", mend);
		else if (bridge.up)
			fine(c, link->name, "port of a bridge");
		else
			tell(c, link->name, true, "port of a bridge",
			     "which is down", "ip link set it up");
		return;
	}
	snprintf(path, sizeof(path),
		 "/proc/sys/net/ipv4/conf/%s/forwarding", link->name);
	v4 = read_number(path, 0);
	snprintf(path, sizeof(path),
		 "/proc/sys/net/ipv6/conf/%s/forwarding", link->name);
	v6 = read_number(path, 0);
	if (v4 || v6)
		fine(c, link->name, "routed");
	else
		tell(c, link->name, true, "forwarding",
		     "neither a bridge's port nor a router's: control packets will not pass",
		     "ip link set it master BRIDGE, or sysctl net.ipv4.ip_forward=1");
}

/* A bond or a team, or one of its links: no port, whatever else is in order */
static bool is_bonded(const struct check *c, const struct sw_link *link)
{
	char found[96], mend[256];
	struct sw_link bond;

	if (sw_is_bond(link)) {
		snprintf(found, sizeof(found),
			 "is a %s: what comes in names its links, not it",
			 link->kind);
		tell(c, link->name, true, "port", found,
		     "attach to one interface that is in none, ip link set IF nomaster");
		return true;
	}
	if (!link->master || sw_rtnl_link(link->master, &bond) ||
	    !sw_is_bond(&bond))
		return false;
	snprintf(found, sizeof(found), "is in the %s %s", bond.kind, bond.name);
	snprintf(mend, sizeof(mend),
		 "use it alone, ip link set %s nomaster (its hosts' packets may come by any link of a %s)",
		 link->name, bond.kind);
	tell(c, link->name, true, "port", found, mend);
	return true;
}

static void check_dev(const struct check *c, uint32_t ifindex)
{
	struct sw_link link;
	struct sw_switch sw;
	struct sw_port port;
	char found[96], mend[256];
	bool ours = false;
	int there;

	if (sw_rtnl_link(ifindex, &link)) {
		tell(c, NULL, true, "interface", sw_error(),
		     "ip link shows which there are");
		return;
	}
	if (is_bonded(c, &link))
		return;
	if (link.up)
		fine(c, link.name, "up");
	else
		tell(c, link.name, true, "up", "no", "ip link set it up");
	if (sw_running() && !sw_open(&sw)) {
		ours = !sw_port_find(&sw, ifindex, &port);
		sw_close(&sw);
	}
	there = link.xdp && !ours ? sw_dispatcher_there(ifindex) : 0;
	if (ours) {
		fine(c, link.name, "is a port of the running switch");
	} else if (there < 0) {
		snprintf(found, sizeof(found), "id %u is there", link.xdp);
		tell(c, link.name, true, "another XDP program", found,
		     "check with CAP_SYS_ADMIN, which shows whether it is libxdp's dispatcher");
	} else if (there) {
		tell(c, link.name, true, "other XDP programs",
		     "libxdp's dispatcher calls them",
		     "attach with the word dispatcher");
	} else if (link.xdp) {
		snprintf(found, sizeof(found), "id %u is there", link.xdp);
		snprintf(mend, sizeof(mend), "ip link set %s xdp off",
			 link.name);
		tell(c, link.name, true, "another XDP program", found, mend);
	} else {
		check_native(c, &link);
	}
	check_mtu(c, &link);
	if (!strcmp(link.kind, "veth") && !c->generic)
		check_peer(c, &link);
	check_forwarding(c, &link);
}

/**
 * sw_preflight() - look whether a switch could run here
 * @dev: interfaces that are to be its ports
 * @n: how many
 * @generic: native mode is not wanted
 * @fn: is told what is found
 * @arg: and gets this
 */
int sw_preflight(const uint32_t *dev, int n, bool generic,
		 sw_finding_fn fn, void *arg)
{
	struct check c = { fn, arg, generic };
	int i;

	check_machine(&c);
	for (i = 0; i < n; i++)
		check_dev(&c, dev[i]);
	return 0;
}
