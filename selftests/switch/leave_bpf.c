// SPDX-License-Identifier: GPL-2.0
/* A frame leaves by a port, in the kernel: copy.bpf.c, which is loaded here. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "report.h"
#include "target.h"
#include "target_bpf.h"

static struct bpf_object *open_object(void)
{
	struct bpf_object *obj = bpf_object__open_file(COPY_OBJECT, NULL);
	struct bpf_program *prog;
	struct bpf_map *map;
	int i;

	if (!obj)
		return NULL;
	for (i = 0; i < SW_MAPS; i++) {
		map = bpf_object__find_map_by_name(obj, sw_map_names[i]);
		if (map)
			bpf_map__reuse_fd(map, t_switch.map[i]);
	}
	bpf_object__for_each_program(prog, obj) {
		if (strcmp(bpf_program__name(prog), "atp_egress"))
			bpf_program__set_autoload(prog, false);
		else
			bpf_program__set_expected_attach_type(prog, BPF_XDP);
	}
	return obj;
}

/* Of the switch that runs; there is one in a process */
static int program(void)
{
	static int fd = -1;
	struct bpf_object *obj;
	cpu_set_t one;

	if (fd >= 0)
		return fd;
	/* what it remembers of a packet it does on a CPU */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	obj = open_object();
	if (!obj || bpf_object__load(obj)) {
		c_fail(__FILE__, __LINE__, "cannot load " COPY_OBJECT ": %s",
		       strerror(errno));
		c_give_up();
	}
	fd = bpf_program__fd(bpf_object__find_program_by_name(obj,
							      "atp_egress"));
	return fd;
}

int t_leave(int port, uint8_t *frame, uint32_t len)
{
	/* it leaves where it seems to come in, as copy.bpf.c says */
	return t_prog_run(program(), port, frame, len);
}
