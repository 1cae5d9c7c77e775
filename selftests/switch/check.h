/* SPDX-License-Identifier: GPL-2.0 */
/* Sending packets through target and oracle, and comparing. */
#ifndef _SWITCH_CHECK_H
#define _SWITCH_CHECK_H

#include "oracle.h"
#include "report.h"

void c_open(uint32_t aggregators, uint32_t payload);
void c_add_job(const struct t_job *job);
void c_gradient(struct f_pkt *p, const struct t_job *job, uint32_t rank,
		uint32_t seq);
void c_parameter(struct f_pkt *p, const struct t_job *job, uint32_t rank,
		 uint32_t seq);
uint32_t c_welcome(const struct t_job *job, uint32_t epoch, uint8_t *frame);
void c_control(int port, uint8_t *frame, uint32_t len);
bool c_same_cell(uint32_t index);
bool c_send(int port, const struct f_pkt *p);
void c_age(void);
uint32_t c_aggregators(void);

/* The end of every test: what failed elsewhere fails the test */
#define c_close() do {							\
	t_close();							\
	EXPECT_EQ(c_failures, 0);					\
} while (0)

#endif /* _SWITCH_CHECK_H */
