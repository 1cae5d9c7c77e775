// SPDX-License-Identifier: GPL-2.0
/* The packets that everybody refuses (../vectors/packets), at a switch. */
#include <linux/bpf.h>
#include "../include/tap.h"
#include "../vectors/vectors.h"
#include "check.h"

static struct t_job job;
static uint8_t *frame, *before;

static const char *drop_of(const struct sw_counters *now,
			   const struct sw_counters *then)
{
#define DROP(name) do {							\
	if (now->drop_##name != then->drop_##name)			\
		return #name;						\
} while (0)
	DROP(header);
	DROP(length);
	DROP(bitmap);
	DROP(stranger);
	DROP(port);
	DROP(csum);
	DROP(csum_none);
	DROP(csum_partial);
#undef DROP
	return "no counter";
}

/* Where it is in this test */
static int host_of(int host)
{
	return host == VECTOR_PS ? T_PS : host;
}

/* What a stranger sends comes in where rank 0 is. */
static int port_of(int host)
{
	if (host == VECTOR_PS)
		return job.ps_port;
	return host == VECTOR_STRANGER ? 0 : job.port[host];
}

/* The vector's bytes behind its sender's headers, checksums right */
static uint32_t wrap(const struct vector *v)
{
	uint32_t at = f_udp(job.v6), len = at + 8 + (uint32_t)v->len;
	uint32_t l4 = 8 + (uint32_t)v->len, ip = l4 + (job.v6 ? 0 : 20);
	uint8_t *field = frame + (job.v6 ? 18 : 16);
	static struct f_pkt p;

	c_gradient(&p, &job, 0, 0);
	t_addr(job.v6, job.id, host_of(v->from), p.src);
	t_addr(job.v6, job.id, host_of(v->to), p.dst);
	t_mac(host_of(v->from), p.src_mac);
	t_mac(host_of(v->to), p.dst_mac);
	f_make(&p, frame);
	field[0] = ip >> 8;
	field[1] = ip & 0xff;
	frame[at + 4] = l4 >> 8;
	frame[at + 5] = l4 & 0xff;
	memcpy(frame + at + 8, v->data, v->len);
	/* checksums are made of pairs of bytes; behind the frame is zero */
	frame[len] = 0;
	f_seal(frame, len);
	return len;
}

/* f_seal() sums whole words: the last byte of an odd length is not in it */
static bool odd(const struct vector *v)
{
	return v->len % 2;
}

/* What was taken is abandoned, and an answer frees it. */
static void empty(void)
{
	static struct f_pkt p;
	uint32_t len;

	c_age();
	c_parameter(&p, &job, 0, 0);
	len = f_make(&p, frame);
	EXPECT_EQ(t_run(job.ps_port, frame, len), XDP_REDIRECT);
	EXPECT_EQ(t_occupied(job.id), 0);
}

static void one(const struct vector *v)
{
	struct sw_counters then, now;
	const char *what;
	uint32_t len;
	int verdict;

	t_counters(job.id, &then);
	len = wrap(v);
	memcpy(before, frame, len);
	verdict = t_run(port_of(v->from), frame, len);
	t_counters(job.id, &now);
	if (verdict == XDP_PASS)
		what = memcmp(frame, before, len) ? "changed" : "pass";
	else if (verdict == XDP_REDIRECT)
		what = "sent";
	else if (verdict == XDP_ABORTED)
		what = drop_of(&now, &then);
	else if (verdict == XDP_DROP && t_occupied(job.id))
		what = "taken";	/* or was there already */
	else
		what = "an error";
	if (strcmp(what, v->on_switch) && !odd(v))
		tap_fail(__FILE__, __LINE__, "%s: %s, not %s", v->name, what,
			 v->on_switch);
	if (odd(v))
		EXPECT_FALSE(t_occupied(job.id));
}

/* A switch without anything in it */
static void begin(const struct vector *v)
{
	if (job.workers == v->workers) {
		if (t_occupied(job.id))
			empty();
		t_forget_runs(job.id);
		return;
	}
	if (job.workers)
		c_close();
	job.workers = v->workers;
	job.ps_port = (int)v->workers;
	c_open(1, ATP_FRAGMENT_MAX);
	c_add_job(&job);
}

static void all(bool v6)
{
	FILE *f = fopen("../vectors/packets", "r");
	struct vector v = {};
	uint32_t n = 0;

	frame = f_buffer();
	before = f_buffer();
	job = (struct t_job){ .id = 7, .v6 = v6, .quota = 1,
			      .port = { 0, 1, 2 } };
	ASSERT_TRUE(f);
	for (; vector_read(f, &v); n++) {
		if (!v.goes_on)
			begin(&v);
		one(&v);
	}
	fclose(f);
	c_close();
	EXPECT_GT(n, 100);
	printf("# %u packets\n", n);
}

TEST(vectors_ipv4)
{
	all(false);
}

TEST(vectors_ipv6)
{
	all(true);
}

TAP_MAIN()
