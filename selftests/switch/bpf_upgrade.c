// SPDX-License-Identifier: GPL-2.0
/*
 * A port is given its programs anew, time and again, while packets leave by it:
 * each finds its way out, by one of the port's two entries.  The moment in
 * which one is not there is short: a switch with a single one would fail in one
 * of three runs, so both are also taken out by hand.
 */
#include <linux/bpf.h>
#include <pthread.h>
#include <bpf/bpf.h>
#include "../include/tap.h"
#include "check.h"
#include "target_bpf.h"

#define UPGRADES	500
/* runs of the program by one call of BPF_PROG_RUN */
#define AT_ONCE		64

static struct t_job job = { .id = 1, .workers = 2, .quota = 1, .ps_port = 1 };
static bool stop, failed;

/* The packet that has left is the next one: the switch passes it on again */
static void *sender(void *arg)
{
	struct xdp_md ctx = { .ingress_ifindex = t_ifindex[0] };
	uint8_t *frame = f_buffer();
	uint64_t *sent = arg;
	struct f_pkt p;

	LIBBPF_OPTS(bpf_test_run_opts, opts,
		    .data_in = frame, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = AT_ONCE);

	c_gradient(&p, &job, 0, 1);
	p.flags |= ATP_F_RAW;
	opts.data_size_in = f_make(&p, frame);
	ctx.data_end = opts.data_size_in;
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		if (bpf_prog_test_run_opts(t_program, &opts)) {
			failed = true;
			break;
		}
		__atomic_add_fetch(sent, AT_ONCE, __ATOMIC_SEQ_CST);
	}
	free(frame - 2);
	return NULL;
}

static int send_raw(void)
{
	uint8_t *frame = f_buffer();
	struct f_pkt p;
	int verdict;

	c_gradient(&p, &job, 0, 1);
	p.flags |= ATP_F_RAW;
	verdict = t_run(0, frame, f_make(&p, frame));
	free(frame - 2);
	return verdict;
}

TEST(either_entry_will_do)
{
	struct sw_counters c;
	uint32_t port, spare;
	int map;

	c_open(1, ATP_FRAGMENT_MAX);
	c_add_job(&job);
	map = t_switch.map[SW_MAP_PORTS];
	port = t_ifindex[job.ps_port];
	spare = port | SW_SPARE;

	EXPECT_EQ(bpf_map_delete_elem(map, &port), 0);
	EXPECT_EQ(send_raw(), XDP_REDIRECT);
	EXPECT_EQ(sw_port_attach(&t_switch, port), 0);
	EXPECT_EQ(bpf_map_delete_elem(map, &spare), 0);
	EXPECT_EQ(send_raw(), XDP_REDIRECT);
	EXPECT_EQ(bpf_map_delete_elem(map, &port), 0);
	EXPECT_EQ(send_raw(), XDP_ABORTED);
	t_counters(1, &c);
	EXPECT_EQ(c.drop_out, 1);
	c_close();
}

TEST(every_packet_finds_its_port)
{
	uint64_t sent = 0, early = 0;
	struct sw_counters c;
	pthread_t thread;
	int i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		tap_skip("one CPU");
	c_open(1, ATP_FRAGMENT_MAX);
	c_add_job(&job);
	pthread_create(&thread, NULL, sender, &sent);
	for (i = 0; i < UPGRADES; i++) {
		if (i == UPGRADES / 2)
			early = __atomic_load_n(&sent, __ATOMIC_SEQ_CST);
		EXPECT_EQ(sw_port_attach(&t_switch, t_ifindex[1]), 0);
	}
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	t_counters(1, &c);
	printf("# %llu packets, %llu without a port\n",
	       (unsigned long long)sent, (unsigned long long)c.drop_out);
	EXPECT_FALSE(failed);
	EXPECT_GT(early, 0);
	EXPECT_GT(sent, early);
	EXPECT_EQ(c.drop_out, 0);
	EXPECT_EQ(c.forwarded, sent);
	c_close();
}

TAP_MAIN()
