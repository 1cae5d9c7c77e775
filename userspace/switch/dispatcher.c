// SPDX-License-Identifier: GPL-2.0
/*
 * Ports that other XDP programs share: libxdp's dispatcher is the program of
 * the interface, and calls one after the other until one keeps the packet.  It
 * is replaced as a whole whenever one comes or goes, so no packet is lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>
#include "rtnl.h"

/* By its name it is recognised among others */
#define OURS	"atp_ingress"

/* libxdp says why in its log only */
static char log_tail[1024];

static int keep_log(enum libxdp_print_level level, const char *fmt,
		    va_list args)
{
	char line[sizeof(log_tail)];
	char *p;

	if (level != LIBXDP_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, args);
	p = strstr(line, "libxdp: ");
	p = p ? p + strlen("libxdp: ") : line;
	p[strcspn(p, "\n")] = 0;
	/* the first is the cause */
	if (!*log_tail)
		memmove(log_tail, p, strlen(p) + 1);
	return 0;
}

/* Its pins go where ours are, into the BPF file system that we found */
static void prepare(const char *ours)
{
	char dir[sizeof(((struct sw_switch *)NULL)->dir)], *end;
	int i;

	snprintf(dir, sizeof(dir), "%s", ours);
	for (i = 0; i < 2; i++) {
		end = strrchr(dir, '/');
		if (end)
			*end = 0;
	}
	setenv("LIBXDP_BPFFS", dir, 1);
	libxdp_set_print(keep_log);
	*log_tail = 0;
}

/**
 * sw_dispatcher_may() - may we do what libxdp does?
 *
 * It asks for programs by their ids, which the kernel refuses before it looks.
 * No program has the id zero.
 */
int sw_dispatcher_may(void)
{
	if (bpf_prog_get_fd_by_id(0) >= 0 || errno != EPERM)
		return 0;
	return sw_fail("libxdp's dispatcher takes CAP_SYS_ADMIN, as libxdp asks for programs by their ids: be root; for the service atp-switch there is a drop-in, see atp-switch(8)");
}

static enum xdp_attach_mode mode(const struct sw_switch *sw)
{
	return sw->settings.generic ? XDP_MODE_SKB : XDP_MODE_NATIVE;
}

/* The first program of ours at the interface that is not @keep; it lives as
 * long as *@all.  *@prog is NULL if there is none, or it has the interface for
 * itself.  Return: zero, or a negative errno if that cannot be told.
 */
static int find(uint32_t ifindex, uint32_t keep, struct xdp_multiprog **all,
		struct xdp_program **prog)
{
	int err;

	*prog = NULL;
	*all = xdp_multiprog__get_from_ifindex(ifindex);
	err = (int)libxdp_get_error(*all);
	if (err) {
		*all = NULL;
		/* no program is there at all */
		return err == -ENOENT ? 0 : err;
	}
	if (!*all || xdp_multiprog__is_legacy(*all))
		return 0;
	while ((*prog = xdp_multiprog__next_prog(*prog, *all))) {
		if (!strcmp(xdp_program__name(*prog), OURS) &&
		    xdp_program__id(*prog) != keep)
			break;
	}
	return 0;
}

/* A dispatcher whose pins are gone keeps its programs, and libxdp takes it for
 * one of them.
 */
static bool is_stuck(const struct xdp_multiprog *all)
{
	struct xdp_program *prog;

	if (!all || !xdp_multiprog__is_legacy(all))
		return false;
	prog = xdp_multiprog__main_prog(all);
	return prog && !strcmp(xdp_program__name(prog), "xdp_dispatcher");
}

static int explain_stuck(uint32_t ifindex)
{
	char name[IFNAMSIZ] = "?";

	if_indextoname(ifindex, name);
	return sw_fail("%s: libxdp's dispatcher has lost its pins, and all of its programs go or none: ip link set %s xdp off",
		       name, name);
}

static int explain_unseen(uint32_t ifindex, int err)
{
	char name[IFNAMSIZ] = "?";

	if_indextoname(ifindex, name);
	return sw_fail("%s: cannot see which programs libxdp's dispatcher calls: %s (%s): xdp-loader status %s",
		       name, strerror(-err), log_tail, name);
}

/* Each that goes leaves another dispatcher behind */
static int take_off(uint32_t ifindex, uint32_t keep)
{
	struct xdp_multiprog *all;
	enum xdp_attach_mode as;
	struct xdp_program *prog;
	struct sw_link link;
	bool stuck;
	int err = 0;

	if (sw_rtnl_link(ifindex, &link))
		return errno == ENODEV ? 0 : -1;
	/* what we may not see is not gone */
	if (link.xdp && sw_dispatcher_may())
		return -1;
	while (!err) {
		err = find(ifindex, keep, &all, &prog);
		if (err)
			return explain_unseen(ifindex, err);
		stuck = is_stuck(all);
		if (prog) {
			as = xdp_multiprog__attach_mode(all);
			err = xdp_program__detach(prog, ifindex, as, 0);
		}
		xdp_multiprog__close(all);
		if (!prog)
			return stuck ? explain_stuck(ifindex) : 0;
	}
	return sw_fail("cannot detach from interface %u: %s (%s)", ifindex,
		       strerror(-err), log_tail);
}

/* *@id is zero if there is none */
static int first_of_ours(uint32_t ifindex, uint32_t *id)
{
	struct xdp_multiprog *all;
	struct xdp_program *prog;
	int err;

	err = find(ifindex, 0, &all, &prog);
	*id = prog ? xdp_program__id(prog) : 0;
	xdp_multiprog__close(all);
	return err;
}

/* Loaders that were killed may each have left one */
static int leave_one(uint32_t ifindex)
{
	uint32_t first;
	int err;

	err = first_of_ours(ifindex, &first);
	if (err)
		return explain_unseen(ifindex, err);
	return first ? take_off(ifindex, first) : 0;
}

/**
 * sw_dispatcher_attach() - have the dispatcher call our program, as it is now
 * @sw: the switch
 * @link: the interface
 *
 * A former one of ours goes when the new one is there.
 */
int sw_dispatcher_attach(const struct sw_switch *sw,
			 const struct sw_link *link)
{
	struct xdp_program *prog;
	struct bpf_object *obj;
	int err;

	prepare(sw->dir);
	/* a dispatcher has places for ten */
	if (leave_one(link->ifindex))
		return -1;
	/* a program that is loaded for a dispatcher is of another type */
	obj = sw_object_open(sw, OURS);
	if (!obj)
		return -1;
	prog = xdp_program__from_bpf_obj(obj, "xdp");
	err = (int)libxdp_get_error(prog);
	if (err) {
		bpf_object__close(obj);
		return sw_fail("libxdp refuses the program: %s",
			       strerror(-err));
	}
	err = xdp_program__attach(prog, link->ifindex, mode(sw), 0);
	if (err)
		sw_fail("cannot attach to %s by libxdp's dispatcher: %s (%s)",
			link->name, strerror(-err), log_tail);
	else
		err = take_off(link->ifindex, xdp_program__id(prog));
	xdp_program__close(prog);
	/* libxdp does not close what it was given */
	bpf_object__close(obj);
	sw_strays_remove(sw->dir, link->ifindex);
	return err ? -1 : 0;
}

/**
 * sw_dispatcher_detach() - leave the interface to the other programs
 * @dir: the switch's directory
 * @ifindex: the interface, which may be gone
 */
int sw_dispatcher_detach(const char *dir, uint32_t ifindex)
{
	int err;

	prepare(dir);
	err = take_off(ifindex, 0);
	sw_strays_remove(dir, ifindex);
	return err;
}

/**
 * sw_dispatcher_there() - is it a dispatcher, so that we can attach beside?
 * @ifindex: the interface, which has an XDP program
 *
 * Return: is it; -1 if we may not know (sw_dispatcher_may())
 */
int sw_dispatcher_there(uint32_t ifindex)
{
	struct xdp_multiprog *all;
	bool there;

	if (sw_dispatcher_may())
		return -1;
	all = xdp_multiprog__get_from_ifindex(ifindex);
	if (libxdp_get_error(all))
		return 0;
	there = !xdp_multiprog__is_legacy(all);
	xdp_multiprog__close(all);
	return there;
}

/**
 * sw_dispatcher_program() - what does the dispatcher of a port call of ours?
 * @sw: the switch
 * @ifindex: the interface
 *
 * Return: the program's id; zero if there is none, or if we may not know
 * (sw_dispatcher_may())
 */
uint32_t sw_dispatcher_program(const struct sw_switch *sw, uint32_t ifindex)
{
	uint32_t id;

	prepare(sw->dir);
	first_of_ours(ifindex, &id);
	return id;
}
