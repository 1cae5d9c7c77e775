// SPDX-License-Identifier: GPL-2.0
/*
 * Random sequences of packets against the oracle: losses, duplicates, resends,
 * collisions down to one aggregator, several jobs, overflow, raw fragments,
 * time-outs, quotas, strangers.
 */
#include "../include/tap.h"
#include "check.h"

#define JOBS	3

/* Few numbers, so that packets meet */
static uint32_t few(uint32_t n)
{
	return tap_below(n);
}

static int32_t value(void)
{
	static const int32_t edge[] = {
		INT32_MAX, INT32_MIN, -1, 0, 1, INT32_MAX - 1, INT32_MIN + 1,
		0x40000000, -0x40000000,
	};

	return tap_chance(4) ? edge[few(9)] : (int32_t)tap_rand() >> few(24);
}

static void disturb(struct f_pkt *p, uint32_t payload)
{
	static const uint16_t flags[] = {
		ATP_F_OVERFLOW, ATP_F_RESEND, ATP_F_RESEND, ATP_F_RESEND,
		ATP_F_COLLISION, ATP_F_ECN, ATP_F_RAW | ATP_F_RESEND,
		ATP_F_LAST, ATP_F_SWITCHED,
	};

	if (tap_chance(3))
		p->flags |= flags[few(9)];
	if (tap_chance(8))
		p->ecn = 3;
	if (tap_chance(8))
		p->cap = (uint16_t)few(100);
	if (tap_chance(16))
		p->epoch += 1 - 2 * few(2);
	if (tap_chance(30))
		p->elements = 1 + few(payload / 4 - 1);
	if (tap_chance(30))
		p->dtype = ATP_FLOAT32;
	if (tap_chance(60) && payload < ATP_FRAGMENT_MAX)
		p->elements = payload / 4 + 1;
	if (tap_chance(60))
		p->fanin++;
}

/* Somebody who is not who he says he is */
static void forge(struct f_pkt *p)
{
	switch (few(6)) {
	case 0:
		p->src[15] ^= 1 << few(3);
		break;
	case 1:
		p->dst[15] ^= 1 << few(3);
		break;
	case 2:
		p->bitmap ^= 1U << few(32);
		break;
	case 3:
		p->job += 1000;
		break;
	case 4:
		p->sport ^= 1;
		break;
	case 5:
		p->flags ^= ATP_F_ACK;
		p->flags &= ~ATP_F_MCAST;
		break;
	}
}

static void random_run(uint32_t aggregators, uint32_t payload, uint32_t steps)
{
	static struct f_pkt p;
	static uint8_t *frame;
	uint32_t epoch[JOBS];
	struct t_job job[JOBS];
	uint16_t lanes[8];
	uint32_t i, k;

	if (!frame)
		frame = f_buffer();
	c_open(aggregators, payload);
	for (i = 0; i < JOBS; i++) {
		memset(&job[i], 0, sizeof(job[i]));
		job[i].id = 5 + i;
		job[i].v6 = i == 1;
		job[i].workers = i == 2 ? 1 + few(2) : 2 + few(5);
		job[i].quota = tap_chance(2) ? aggregators :
			       1 + few(aggregators);
		job[i].ps_port = few(T_PORTS);
		for (k = 0; k < job[i].workers; k++)
			job[i].port[k] = few(T_PORTS);
		c_add_job(&job[i]);
		/* some before they wrap */
		epoch[i] = 1 - few(40);
	}
	for (i = 0; i < 8; i++)
		lanes[i] = 1 + few(payload / 4);
	lanes[0] = payload / 4;

	for (i = 0; i < steps; i++) {
		uint32_t nr = few(JOBS);
		const struct t_job *j = &job[nr];
		uint32_t rank = few(j->workers), seq = few(8);
		int port = j->port[rank];

		if (tap_chance(200)) {
			/* the next run; its beginning may be missed */
			epoch[nr] += tap_chance(10) ? 100000 : 1;
			if (!tap_chance(4))
				c_control(j->ps_port, frame,
					  c_welcome(j, epoch[nr], frame));
		}
		if (tap_chance(10)) {
			c_parameter(&p, j, rank, seq);
			port = j->ps_port;
			if (tap_chance(2))
				p.flags |= ATP_F_MCAST;
			p.bitmap = tap_rand();
		} else {
			c_gradient(&p, j, rank, seq);
		}
		p.epoch = epoch[nr];
		/* a fragment has one length, mostly */
		p.elements = lanes[seq];
		disturb(&p, payload);
		if (p.flags & ATP_F_ACK && tap_chance(6)) {
			p.flags |= ATP_F_OVERFLOW;
			p.elements = 0;
		}
		for (k = 0; k < p.elements; k++)
			p.lane[k] = value();
		if (tap_chance(20))
			forge(&p);
		if (p.elements == 0 && !(p.flags & ATP_F_ACK))
			continue;
		if (tap_chance(30))
			port = few(T_PORTS);
		if (tap_chance(10))
			t_port_mac(port, p.dst_mac);
		if (tap_chance(100))
			c_age();
		if (!c_send(port, &p)) {
			printf("# step %u\n", i);
			break;
		}
	}
	c_close();
}

TEST(one_aggregator)
{
	tap_seed(1);
	random_run(1, 248, 20000);
}

TEST(few_aggregators)
{
	tap_seed(2);
	random_run(4, 248, 20000);
}

TEST(enough_aggregators)
{
	tap_seed(3);
	random_run(64, 248, 5000);
}

TEST(payload_of_an_mtu_of_1500)
{
	tap_seed(4);
	random_run(3, 1400, 8000);
}

TEST(largest_payload)
{
	tap_seed(5);
	random_run(2, ATP_FRAGMENT_MAX, 5000);
}

TEST(smallest_payload)
{
	tap_seed(6);
	random_run(2, ATP_FRAGMENT_MIN, 5000);
}

/* Every length from one lane to the most, two workers and a parameter packet */
TEST(every_length)
{
	static struct f_pkt p;
	struct t_job job = { .id = 1, .workers = 3, .quota = 2 };
	uint32_t n, k, rank;
	int v6;

	tap_seed(7);
	c_open(2, ATP_FRAGMENT_MAX);
	c_add_job(&job);
	job.v6 = true;
	job.id = 2;
	c_add_job(&job);
	for (n = 1; n <= F_MAX_LANES && !(tap_failures + c_failures); n++) {
		for (v6 = 0; v6 < 2; v6++) {
			job.v6 = v6;
			job.id = v6 + 1;
			for (rank = 0; rank < 3; rank++) {
				c_gradient(&p, &job, rank, n);
				p.elements = n;
				for (k = 0; k < n; k++)
					p.lane[k] = value();
				c_send(0, &p);
			}
			c_parameter(&p, &job, 0, n);
			p.elements = n;
			p.flags |= ATP_F_MCAST;
			c_send(0, &p);
		}
	}
	c_close();
}

/* As many workers as there can be */
TEST(thirty_two_workers)
{
	static struct f_pkt p;
	struct t_job job = { .id = 1, .workers = 32, .quota = 8 };
	uint32_t seq, i, k, sent;

	tap_seed(8);
	for (i = 0; i < 32; i++)
		job.port[i] = i % T_PORTS;
	c_open(8, 248);
	c_add_job(&job);
	for (seq = 0; seq < 100 && !(tap_failures + c_failures); seq++) {
		for (sent = 0; sent != ~0U; ) {
			uint32_t rank = few(32);

			c_gradient(&p, &job, rank, seq);
			p.elements = 62;
			for (k = 0; k < 62; k++)
				p.lane[k] = (int32_t)tap_rand() >> 6;
			c_send(job.port[rank], &p);
			sent |= 1U << rank;
		}
		c_parameter(&p, &job, 3, seq);
		p.elements = 62;
		p.flags |= ATP_F_MCAST;
		c_send(0, &p);
	}
	EXPECT_EQ(t_occupied(1), 0);
	c_close();
}

/* A run ended and left the whole quota taken: the next, which meets none of
 * that, has it as soon as it is abandoned, and the job beside it keeps its own.
 */
TEST(quota_of_an_earlier_run)
{
	const struct t_job job = { .id = 1, .workers = 2, .quota = 6,
				   .ps_port = 1 };
	const struct t_job other = { .id = 2, .workers = 2, .quota = 6,
				     .ps_port = 1 };
	static struct f_pkt p;
	uint32_t i;

	c_open(64, 248);
	c_add_job(&job);
	c_add_job(&other);
	for (i = 0; i < 6; i++) {
		c_gradient(&p, &job, 0, 7 * i);
		EXPECT_TRUE(c_send(0, &p));
		c_gradient(&p, &other, 0, 7 * i + 1);
		EXPECT_TRUE(c_send(0, &p));
	}
	EXPECT_EQ(t_occupied(1), 6);
	/* not yet: it may live */
	for (i = 0; i < 20; i++) {
		c_gradient(&p, &job, 0, 7 * (i % 6) + 2);
		p.epoch = 2;
		EXPECT_TRUE(c_send(0, &p));
	}
	EXPECT_EQ(t_occupied(1), 6);
	EXPECT_EQ(t_agg(2)->bitmap, 0);
	c_age();
	/* four are looked at for each that is refused: 16 would see all */
	for (i = 0; i < 6 * 16; i++) {
		c_gradient(&p, &job, 0, 7 * (i % 6) + 2);
		p.epoch = 2;
		EXPECT_TRUE(c_send(0, &p));
	}
	EXPECT_EQ(t_occupied(1), 6);
	for (i = 0; i < 6; i++) {
		EXPECT_EQ(t_agg(7 * i)->bitmap, 0);
		EXPECT_EQ(t_agg(7 * i + 2)->epoch, 2);
	}
	EXPECT_EQ(t_occupied(2), 6);
	c_close();
}

/* A rank lets the others wait for long.  What they have in the switch goes to
 * who takes it within a quota, and to nothing else of another job.
 */
TEST(sums_of_another_job)
{
	const struct t_job job = { .id = 1, .workers = 2, .quota = 6,
				   .ps_port = 1 };
	const struct t_job other = { .id = 2, .workers = 2, .quota = 1,
				     .ps_port = 1 };
	struct sw_counters mine, others;
	static struct f_pkt p;

	c_open(64, 248);
	c_add_job(&job);
	c_add_job(&other);
	c_gradient(&p, &job, 0, 5);
	EXPECT_TRUE(c_send(0, &p));
	c_gradient(&p, &job, 0, 6);
	EXPECT_TRUE(c_send(0, &p));
	c_age();
	c_gradient(&p, &other, 0, 5);
	p.flags |= ATP_F_RESEND;
	EXPECT_TRUE(c_send(0, &p));
	c_gradient(&p, &other, 0, 5);
	p.flags |= ATP_F_OVERFLOW;
	EXPECT_TRUE(c_send(0, &p));
	c_parameter(&p, &other, 0, 5);
	EXPECT_TRUE(c_send(1, &p));
	EXPECT_EQ(t_occupied(1), 2);
	c_gradient(&p, &other, 0, 5);
	EXPECT_TRUE(c_send(0, &p));
	EXPECT_EQ(t_occupied(1), 1);
	EXPECT_EQ(t_occupied(2), 1);
	/* its quota is used up */
	c_gradient(&p, &other, 0, 6);
	EXPECT_TRUE(c_send(0, &p));
	EXPECT_EQ(t_occupied(1), 1);
	EXPECT_EQ(t_agg(6)->job, 1);
	t_counters(1, &mine);
	t_counters(2, &others);
	EXPECT_EQ(mine.timeouts, 1);
	EXPECT_EQ(others.timeouts, 0);
	EXPECT_EQ(others.collision_quota, 1);
	c_close();
}

TAP_MAIN()
