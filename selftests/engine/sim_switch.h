/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A switch of the simulated network, twice: the decision logic of the XDP
 * program, and a plain model of the table in Documentation/protocol.rst.  Both
 * get every packet and must say the same.
 */
#ifndef _ATP_SELFTESTS_SIM_SWITCH_H
#define _ATP_SELFTESTS_SIM_SWITCH_H

#include <tap.h>
#include "packet.h"
#include "../../userspace/switch/switch_logic.h"

/* A gradient or parameter packet in the switch: header and lanes */
struct sim_frame {
	struct atp_pkt pkt;
	u8 buf[ATP_HDR_LEN + ATP_FRAGMENT_MAX];
	u32 len;
};

struct sim_model_agg {
	bool used;
	u32 job, epoch, seq, bitmap;
	u16 flags, elements, cap;
	u8 dtype;
	u64 stamp;
	s32 lanes[ATP_FRAGMENT_MAX / 4];
};

struct sim_switch {
	u32 n;
	u32 cap;
	u32 pass;
	u64 timeout;
	struct sim_model_agg *model;
	struct sw_agg **real;
	bool begun, leapt;
	u32 run, former;
	struct sw_state state;
	u64 collisions, completed;
};

static void sim_switch_forget(struct sim_switch *s)
{
	u32 i;

	for (i = 0; i < s->n; i++) {
		s->model[i].used = false;
		s->real[i]->bitmap = 0;
	}
	s->begun = false;
	s->leapt = false;
	memset(&s->state, 0, sizeof(s->state));
}

/* Of the 256 runs before the last, or before the one from which the PS leapt */
static bool sim_switch_over(struct sim_switch *s, u32 epoch)
{
	bool over = false;
	u32 i;

	for (i = 1; i <= 256; i++)
		over |= (s->begun && epoch + i == s->run) ||
			(s->leapt && epoch + i == s->former);
	ASSERT_EQ(sw_is_over(&s->state, epoch), over);
	return over;
}

/* Known to be none that goes on */
static bool sim_switch_stale(struct sim_switch *s, u32 epoch)
{
	bool stale = s->begun && epoch != s->run &&
		     !(s->leapt && epoch == s->former);

	ASSERT_EQ(sw_is_current(&s->state, epoch), !stale);
	return stale;
}

/* The PS speaks of a run. */
static void sim_switch_begin(struct sim_switch *s, u32 epoch)
{
	bool over = sim_switch_over(s, epoch);

	sw_begin(&s->state, epoch);
	if (over)
		return;
	if (s->begun && epoch - s->run >= 256) {
		s->leapt = true;
		s->former = s->run;
	}
	s->begun = true;
	s->run = epoch;
}

static void sim_switch_init(struct sim_switch *s, u32 n, u32 pass, u32 fragment,
			    u64 timeout, u32 cap)
{
	size_t lanes = DIV_ROUND_UP(fragment, SW_BLOCK * 8) * SW_BLOCK * 8;
	u32 i;

	memset(s, 0, sizeof(*s));
	s->n = n;
	s->pass = pass;
	s->timeout = timeout;
	s->cap = cap;
	s->model = calloc(n, sizeof(*s->model));
	s->real = calloc(n, sizeof(*s->real));
	for (i = 0; i < n; i++)
		s->real[i] = calloc(1, sizeof(struct sw_agg) + lanes);
}

static void sim_switch_free(struct sim_switch *s)
{
	u32 i;

	for (i = 0; i < s->n; i++)
		free(s->real[i]);
	free(s->real);
	free(s->model);
}

/* Another tenant has the aggregator. */
static void sim_switch_occupy(struct sim_switch *s, u32 index, u64 now)
{
	struct sim_model_agg *m = &s->model[index % s->n];
	struct sw_agg *a = s->real[index % s->n];

	if (m->used)
		return;
	memset(m, 0, sizeof(*m));
	m->used = true;
	m->job = 0xffff;
	m->bitmap = 1;
	m->elements = 2;
	m->dtype = ATP_INT32;
	m->stamp = now;
	a->job = 0xffff;
	a->epoch = 0;
	a->seq = 0;
	a->bitmap = 1;
	a->flags = 0;
	a->elements = 2;
	a->cap = 0;
	a->dtype = ATP_INT32;
	a->stamp = now;
}

static s32 sim_lane(const struct sim_frame *f, u32 i)
{
	return get_unaligned_le32(f->buf + ATP_HDR_LEN + 4 * i);
}

static void sim_model_out(const struct sim_model_agg *m, struct sim_frame *f)
{
	u32 i;

	f->pkt.bitmap0 = m->bitmap;
	f->pkt.flags |= m->flags;
	f->pkt.cap = min(f->pkt.cap, m->cap);
	for (i = 0; i < m->elements; i++)
		put_unaligned_le32(m->lanes[i], f->buf + ATP_HDR_LEN + 4 * i);
}

/* The table, row by row.  Return: forwarded? */
static bool sim_model_gradient(struct sim_switch *s, struct sim_frame *f,
			       u64 now, bool locked)
{
	static const u16 kept = ATP_F_ECN | ATP_F_COLLISION | ATP_F_OVERFLOW;
	struct sim_model_agg *m = &s->model[f->pkt.index % s->n];
	struct atp_pkt *p = &f->pkt;
	u16 marks = p->flags & kept;
	bool mine, full, takes;
	s64 sum;
	u32 i;

	if (p->ce)
		marks |= ATP_F_ECN;
	mine = m->used && m->job == p->job && m->epoch == p->epoch &&
	       m->seq == p->seq;
	takes = !(p->flags & (ATP_F_RESEND | ATP_F_RAW | ATP_F_OVERFLOW));
	if (!locked && m->used && !mine && now - m->stamp > s->timeout &&
	    (takes || m->job == p->job))
		m->used = false;
	if (locked || (m->used && !mine)) {
		p->flags |= ATP_F_COLLISION;
		return true;
	}

	if (!m->used) {
		if (!takes)
			return true;
		m->used = true;
		m->job = p->job;
		m->epoch = p->epoch;
		m->seq = p->seq;
		m->bitmap = p->bitmap0;
		m->flags = marks;
		m->elements = p->elements;
		m->cap = p->cap;
		m->dtype = p->dtype;
		m->stamp = now;
		for (i = 0; i < m->elements; i++)
			m->lanes[i] = sim_lane(f, i);
		return false;
	}

	if (p->flags & ATP_F_RAW) {
		m->used = false;
		return true;
	}
	if (m->elements != p->elements || m->dtype != p->dtype)
		return true;

	if (m->bitmap & p->bitmap0) {
		m->flags |= marks & ATP_F_ECN;
		if (!(p->flags & ATP_F_RESEND))
			return false;
		sim_model_out(m, f);
		m->used = false;
		return true;
	}

	for (i = 0; i < m->elements; i++) {
		sum = (s64)m->lanes[i] + sim_lane(f, i);
		if (sum != (s32)sum)
			marks |= ATP_F_OVERFLOW;
		m->lanes[i] = clamp_t(s64, sum, S32_MIN, S32_MAX);
	}
	m->flags |= marks;
	m->bitmap |= p->bitmap0;
	m->cap = min(m->cap, p->cap);
	m->stamp = now;
	full = (m->bitmap & s->pass) == s->pass;
	if (!full && !(p->flags & ATP_F_RESEND))
		return false;
	if (full && !(p->flags & ATP_F_RESEND))
		s->completed++;
	sim_model_out(m, f);
	if (p->flags & ATP_F_RESEND)
		m->used = false;
	return true;
}

static void sim_sw_pkt(struct sw_pkt *p, const struct atp_pkt *pkt)
{
	memset(p, 0, sizeof(*p));
	p->ce = pkt->ce;
	p->dtype = pkt->dtype;
	p->fanin = pkt->fanin0;
	p->flags = pkt->flags;
	p->elements = pkt->elements;
	p->cap = pkt->cap;
	p->job = pkt->job;
	p->epoch = pkt->epoch;
	p->seq = pkt->seq;
	p->bitmap = pkt->bitmap0;
	p->index = pkt->index;
}

/* The XDP program's logic with its driver left out: no maps, no quota */
static bool sim_real_gradient(struct sim_switch *s, struct sim_frame *f,
			      u64 now, bool locked)
{
	struct sw_agg *a = s->real[f->pkt.index % s->n];
	void *lanes = f->buf + ATP_HDR_LEN;
	void *end = f->buf + f->len;
	struct sw_pkt p;
	int words, blocks;
	u32 plan, sum;
	bool over;

	sim_sw_pkt(&p, &f->pkt);
	words = sw_payload_len(&p) / 8;
	blocks = DIV_ROUND_UP(words, SW_BLOCK);
	plan = locked ? SW_COLLIDE | SW_FORWARD :
	       sw_decide(a, &p, s->pass, sw_is_old(a, now, s->timeout));

	if (plan & SW_EVICT)
		a->bitmap = 0;
	if (plan & SW_TAKE) {
		sw_take(a, &p, 1, now);
		sum = sw_lanes(lanes, end, a->lanes, blocks, sw_step_take);
		a->wide = !!(sum & SW_LANES_LEFT);
		if (a->wide)
			sw_lanes(lanes, end, a->lanes, blocks, sw_step_copy);
	}
	if (plan & SW_ADD) {
		sum = a->wide ? SW_LANES_LEFT :
		      sw_lanes(lanes, end, a->lanes, blocks, sw_step_add);
		over = false;
		if (sum & SW_LANES_LEFT) {
			if (!a->wide)
				sw_lanes(lanes, end, a->lanes, blocks,
					 sw_step_widen);
			a->wide = 1;
			over = sw_lanes_saturate(lanes, end, a->lanes, words);
		}
		sw_add(a, &p, over, now);
	}
	if (plan & SW_MARK)
		a->flags |= sw_mark(&p);
	if (plan & SW_OUT) {
		sw_out(a, &p);
		sw_lanes(lanes, end, a->lanes, blocks,
			 a->wide ? sw_step_out_wide : sw_step_out);
	}
	if (plan & SW_EMPTY)
		a->bitmap = 0;
	if (plan & SW_COLLIDE)
		p.flags |= ATP_F_COLLISION;
	f->pkt.flags = p.flags;
	f->pkt.bitmap0 = p.bitmap;
	f->pkt.cap = p.cap;
	return plan & SW_FORWARD;
}

/* Return: is the packet forwarded?  It is then what leaves. */
static bool sim_switch_gradient(struct sim_switch *s, struct sim_frame *f,
				u64 now, bool locked)
{
	u32 i = f->pkt.index % s->n;
	struct sim_frame other = *f;
	bool forward;

	/* a single worker's fragment is complete as it is */
	if (!(s->pass & (s->pass - 1)))
		goto out;
	if (sim_switch_stale(s, f->pkt.epoch))
		goto out;

	forward = sim_model_gradient(s, &other, now, locked);
	ASSERT_EQ(sim_real_gradient(s, f, now, locked), forward);
	ASSERT_EQ(s->real[i]->bitmap,
		  s->model[i].used ? s->model[i].bitmap : 0);
	if (!forward)
		return false;
	ASSERT_EQ(f->pkt.flags, other.pkt.flags);
	ASSERT_EQ(f->pkt.bitmap0, other.pkt.bitmap0);
	ASSERT_EQ(f->pkt.cap, other.pkt.cap);
	ASSERT_FALSE(memcmp(f->buf + ATP_HDR_LEN, other.buf + ATP_HDR_LEN,
			    4 * f->pkt.elements));
	s->collisions += !!(f->pkt.flags & ATP_F_COLLISION);
out:
	f->pkt.flags |= ATP_F_SWITCHED;
	f->pkt.cap = min_t(u32, f->pkt.cap, s->cap);
	return true;
}

static void sim_switch_parameter(struct sim_switch *s, struct sim_frame *f,
				 u64 now)
{
	struct sim_model_agg *m = &s->model[f->pkt.index % s->n];
	struct sw_agg *a = s->real[f->pkt.index % s->n];
	struct sw_pkt p;
	bool frees;

	sim_switch_begin(s, f->pkt.epoch);
	sim_sw_pkt(&p, &f->pkt);
	frees = m->used && m->job == f->pkt.job &&
		((m->epoch == f->pkt.epoch && m->seq == f->pkt.seq) ||
		 now - m->stamp > s->timeout);
	ASSERT_EQ(sw_frees(a, &p, sw_is_old(a, now, s->timeout)), frees);
	if (frees) {
		m->used = false;
		a->bitmap = 0;
	}
	f->pkt.flags |= ATP_F_SWITCHED;
	f->pkt.cap = min_t(u32, f->pkt.cap, s->cap);
}

#endif /* _ATP_SELFTESTS_SIM_SWITCH_H */
