/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The switch under test: the XDP programs, built for user space with sanitizers
 * (target_user.c) or loaded into the kernel (target_bpf.c).  The tests do not
 * know which.
 *
 * It has four ports: 0 to 2 are ports of a bridge, 3 has a subnet of its own,
 * so that what goes from one side to the other is routed.
 */
#ifndef _SWITCH_TARGET_H
#define _SWITCH_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include "../../userspace/switch/switch_types.h"

#define T_PORTS		4
#define T_ROUTED	3

/* Is it the one that runs in the kernel? */
extern const bool t_in_kernel;

/**
 * struct t_job - a job as a test wants it
 * @id: jobID
 * @v6: IPv6
 * @workers: W
 * @quota: aggregators
 * @ps_port: port of the PS
 * @port: of each rank
 */
struct t_job {
	uint32_t id;
	bool	v6;
	uint32_t workers;
	uint32_t quota;
	int	ps_port;
	int	port[ATP_MAX_WORKERS];
};

void t_open(uint32_t aggregators, uint32_t payload);
void t_close(void);
void t_add_job(const struct t_job *job);
/* An XDP verdict; the frame is changed in place */
int t_run(int port, uint8_t *frame, uint32_t len);
struct sw_agg *t_agg(uint32_t index);
uint64_t t_occupied(uint32_t id);
/* The runs that have begun were never seen */
void t_forget_runs(uint32_t id);
void t_counters(uint32_t id, struct sw_counters *c);
void t_others(struct sw_others *o);
/* MAC address of the machine at a port */
void t_port_mac(int port, uint8_t *mac);

/*
 * Where the last redirect leads to, if the target can tell: ports of the
 * copies.  A copy can then be made from the frame.
 */
int t_copies(void);
int t_copy_port(int copy);
int t_copy_rank(int copy);
int t_make_copy(int copy, uint8_t *frame, uint32_t len);
/* A frame leaves by a port (in the kernel: leave_bpf.c) */
int t_leave(int port, uint8_t *frame, uint32_t len);

/* Addresses that the tests give to hosts */
void t_addr(bool v6, uint32_t job, int host, uint8_t *addr);
void t_mac(int host, uint8_t *mac);
#define T_PS	100

#endif /* _SWITCH_TARGET_H */
