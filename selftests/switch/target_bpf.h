/* SPDX-License-Identifier: GPL-2.0 */
/* What is to be had only of the switch in the kernel. */
#ifndef _SWITCH_TARGET_BPF_H
#define _SWITCH_TARGET_BPF_H

#include "../../userspace/switch/switch.h"
#include "target.h"

extern struct sw_switch t_switch;
extern int t_program;
extern uint32_t t_ifindex[T_PORTS];
/* t_close() leaves the switch loaded, without jobs, for the next that is as
 * large; t_unload() ends it
 */
extern bool t_keep;
void t_unload(void);
/* What the program says of a frame that comes in there, and makes of it; -1: it
 * did not run
 */
int t_prog_run(int prog, int port, uint8_t *frame, uint32_t len);
/* As t_add_job(), but what the switch says of it is returned */
int t_try_job(const struct t_job *job);
int t_replace_job(const struct t_job *job);

#endif /* _SWITCH_TARGET_BPF_H */
