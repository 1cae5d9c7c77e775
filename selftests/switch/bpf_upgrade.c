// SPDX-License-Identifier: GPL-2.0
/*
 * Packets find their job and their port while these are changed.
 *
 * A port is given its programs anew, time and again, while packets leave by it:
 * each finds its way out, by one of the port's two entries.  The moment in
 * which one is not there is short: a switch with a single one would fail in one
 * of three runs, so both are also taken out by hand.
 *
 * Jobs, and ports, of which one has the place that the number of another
 * leads to.
 */
#include <linux/bpf.h>
#include <pthread.h>
#include <string.h>
#include <bpf/bpf.h>
#include "../include/tap.h"
#include "check.h"
#include "target_bpf.h"

#define UPGRADES	500
#define REPLACED	100
#define MANY		64
/* runs of the program by one call of BPF_PROG_RUN */
#define AT_ONCE		64

static struct t_job job = { .id = 1, .workers = 2, .quota = 1, .ps_port = 1 };
static bool stop, failed;

static struct t_job job_nr(uint32_t id)
{
	struct t_job other = job;

	other.id = id;
	return other;
}

/**
 * struct sending - what a thread sends
 * @job: whose packets
 * @sent: how many so far
 * @thread: who
 */
struct sending {
	struct t_job job;
	uint64_t sent;
	pthread_t thread;
};

/* The packet that has left is the next one: the switch passes it on again */
static void *sender(void *arg)
{
	struct xdp_md ctx = { .ingress_ifindex = t_ifindex[0] };
	uint8_t *frame = f_buffer();
	struct sending *s = arg;
	struct f_pkt p;

	LIBBPF_OPTS(bpf_test_run_opts, opts,
		    .data_in = frame, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = AT_ONCE);

	c_gradient(&p, &s->job, 0, 1);
	p.flags |= ATP_F_RAW;
	opts.data_size_in = f_make(&p, frame);
	ctx.data_end = opts.data_size_in;
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		if (bpf_prog_test_run_opts(t_program, &opts)) {
			failed = true;
			break;
		}
		__atomic_add_fetch(&s->sent, AT_ONCE, __ATOMIC_SEQ_CST);
	}
	free(frame - 2);
	return NULL;
}

static void start(struct sending *s, const struct t_job *of)
{
	*s = (struct sending){ .job = *of };
	stop = false;
	pthread_create(&s->thread, NULL, sender, s);
}

static uint64_t sent_by(struct sending *s)
{
	return __atomic_load_n(&s->sent, __ATOMIC_SEQ_CST);
}

static void finish(struct sending *s)
{
	__atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
	pthread_join(s->thread, NULL);
}

static int send_raw_of(const struct t_job *of)
{
	uint8_t *frame = f_buffer();
	struct f_pkt p;
	int verdict;

	c_gradient(&p, of, 0, 1);
	p.flags |= ATP_F_RAW;
	verdict = t_run(0, frame, f_make(&p, frame));
	free(frame - 2);
	return verdict;
}

static int send_raw(void)
{
	return send_raw_of(&job);
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
	struct sw_counters c;
	uint64_t early = 0;
	struct sending s;
	int i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		tap_skip("one CPU");
	c_open(1, ATP_FRAGMENT_MAX);
	c_add_job(&job);
	start(&s, &job);
	for (i = 0; i < UPGRADES; i++) {
		if (i == UPGRADES / 2)
			early = sent_by(&s);
		EXPECT_EQ(sw_port_attach(&t_switch, t_ifindex[1]), 0);
	}
	finish(&s);
	t_counters(1, &c);
	printf("# %llu packets, %llu without a port\n",
	       (unsigned long long)s.sent, (unsigned long long)c.drop_out);
	EXPECT_FALSE(failed);
	EXPECT_GT(early, 0);
	EXPECT_GT(s.sent, early);
	EXPECT_EQ(c.drop_out, 0);
	EXPECT_EQ(c.forwarded, s.sent);
	c_close();
}

/* Of two jobs only the first is where its number leads to */
TEST(every_packet_finds_its_job)
{
	struct t_job both[] = { job_nr(1), job_nr(1 + SW_SLOTS) };
	struct sw_counters c;
	struct sw_others o;
	struct sending s;
	int k, i;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		tap_skip("one CPU");
	c_open(1, ATP_FRAGMENT_MAX);
	for (k = 0; k < 2; k++)
		t_add_job(&both[k]);
	for (k = 0; k < 2; k++) {
		uint64_t early = 0;

		start(&s, &both[k]);
		for (i = 0; i < REPLACED; i++) {
			if (i == REPLACED / 2)
				early = sent_by(&s);
			/* its PS moves to and fro */
			both[k].ps_port = 1 + i % 2;
			EXPECT_EQ(t_replace_job(&both[k]), 0);
		}
		finish(&s);
		t_counters(both[k].id, &c);
		EXPECT_FALSE(failed);
		EXPECT_GT(early, 0);
		EXPECT_GT(s.sent, early);
		EXPECT_EQ(c.forwarded, s.sent);
	}
	t_others(&o);
	EXPECT_EQ(o.unknown, 0);
	c_close();
}

static uint32_t slot_of(const struct t_job *of)
{
	struct sw_job found = {};

	EXPECT_EQ(sw_job_get(&t_switch, of->id, &found), 0);
	return found.slot;
}

static void expect_forwarded(const struct t_job *of, uint64_t n)
{
	struct sw_counters c;

	EXPECT_EQ(send_raw_of(of), XDP_REDIRECT);
	t_counters(of->id, &c);
	EXPECT_EQ(c.forwarded, n);
}

TEST(numbers_may_lead_to_one_slot)
{
	struct t_job first = job_nr(1), second = job_nr(1 + SW_SLOTS);
	struct t_job third = job_nr(1 + 2 * SW_SLOTS), zero = job_nr(0);
	struct sw_others o;
	uint32_t slot;

	c_open(1, ATP_FRAGMENT_MAX);
	t_add_job(&first);
	t_add_job(&second);
	t_add_job(&zero);
	EXPECT_EQ(slot_of(&first), 1);
	slot = slot_of(&second);
	EXPECT_NE(slot, 1);
	/* that one is no job's */
	EXPECT_NE(slot_of(&zero), 0);
	expect_forwarded(&first, 1);
	expect_forwarded(&second, 1);
	expect_forwarded(&zero, 1);

	EXPECT_EQ(send_raw_of(&third), XDP_PASS);
	EXPECT_EQ(sw_job_del(&t_switch, first.id), 0);
	EXPECT_EQ(send_raw_of(&first), XDP_PASS);
	t_others(&o);
	EXPECT_EQ(o.unknown, 2);
	expect_forwarded(&second, 2);

	t_add_job(&third);
	EXPECT_EQ(slot_of(&third), 1);
	expect_forwarded(&third, 1);
	EXPECT_EQ(t_replace_job(&second), 0);
	EXPECT_EQ(slot_of(&second), slot);
	expect_forwarded(&second, 3);
	EXPECT_EQ(sw_job_del(&t_switch, second.id), 0);
	EXPECT_EQ(send_raw_of(&second), XDP_PASS);
	expect_forwarded(&third, 2);
	c_close();
}

/* The last slot, wherever it is, and none */
TEST(as_many_jobs_as_slots)
{
	struct t_job last = job_nr(9 * SW_SLOTS), more = job_nr(1);
	struct sw_job other = {};
	uint32_t id;

	c_open(1, ATP_FRAGMENT_MAX);
	for (id = 1; id < SW_SLOTS; id++) {
		other.id = SW_SLOTS + id;
		other.slot = id;
		if (id == 77)
			continue;
		EXPECT_EQ(bpf_map_update_elem(t_switch.map[SW_MAP_JOBS],
					      &other.id, &other, BPF_ANY), 0);
	}
	t_add_job(&last);
	EXPECT_EQ(slot_of(&last), 77);
	expect_forwarded(&last, 1);
	EXPECT_NE(t_try_job(&more), 0);
	EXPECT_TRUE(strstr(sw_error(), "room for 255 jobs"));
	c_close();
}

/* A job that is written anew may be found once more, behind others: as many as
 * make sure that some have the same place in the kernel's map
 */
TEST(a_refresh_of_many_jobs_ends)
{
	struct t_job one;
	uint32_t id;

	c_open(1, ATP_FRAGMENT_MAX);
	for (id = 1; id <= MANY; id++) {
		one = job_nr(id);
		t_add_job(&one);
	}
	EXPECT_EQ(sw_job_refresh_all(&t_switch), 0);
	EXPECT_EQ(sw_job_regroup_all(&t_switch), 0);
	one = job_nr(MANY);
	expect_forwarded(&one, 1);
	c_close();
}

TEST(locks_of_a_killed_loader_are_freed)
{
	c_open(1, ATP_FRAGMENT_MAX);
	t_agg(0)->lock = SW_LOCK_USER;
	sw_unlock_all(&t_switch);
	EXPECT_EQ(t_agg(0)->lock, SW_LOCK_FREE);
	c_close();
}

/* ... and no other is waited for or taken, as fragments would go on alone */
TEST(locks_of_programs_are_left_alone)
{
	c_open(1, ATP_FRAGMENT_MAX);
	t_agg(0)->lock = SW_LOCK_XDP;
	EXPECT_EQ(sw_unlock_all(&t_switch), 0);
	EXPECT_EQ(t_agg(0)->lock, SW_LOCK_XDP);
	t_agg(0)->lock = SW_LOCK_FREE;
	c_close();
}

static uint32_t place_of(uint32_t ifindex)
{
	uint32_t place = SW_PORTS;

	bpf_map_lookup_elem(t_switch.map[SW_MAP_PORT_INFO], &ifindex, &place);
	return place;
}

static uint32_t new_port(const char *name, uint32_t ifindex)
{
	char command[80];

	snprintf(command, sizeof(command),
		 "ip link add name %s index %u type veth", name, ifindex);
	EXPECT_EQ(system(command), 0);
	return ifindex;
}

TEST(as_many_ports_as_places)
{
	uint32_t first, second, third, place, other = 0;
	bool used[SW_PORTS] = {};
	struct sw_port port;

	c_open(1, ATP_FRAGMENT_MAX);
	first = new_port("a", 1000);
	second = new_port("b", 1000 + SW_PORTS);
	third = new_port("c", 1000 + 2 * SW_PORTS);
	EXPECT_EQ(sw_port_attach(&t_switch, first), 0);
	EXPECT_EQ(sw_port_attach(&t_switch, second), 0);
	EXPECT_EQ(place_of(first), 1000 % SW_PORTS);
	place = place_of(second);
	EXPECT_NE(place, place_of(first));
	EXPECT_EQ(sw_port_rate(&t_switch, second, 77, 0), 0);
	EXPECT_EQ(sw_port_find(&t_switch, second, &port), 0);
	EXPECT_EQ(port.ifindex, second);
	EXPECT_EQ(port.rate, 77);

	/* what is attached keeps its place, another one gets the one left */
	EXPECT_EQ(sw_port_detach(&t_switch, first), 0);
	EXPECT_NE(sw_port_find(&t_switch, first, &port), 0);
	EXPECT_EQ(sw_port_attach(&t_switch, second), 0);
	EXPECT_EQ(place_of(second), place);
	EXPECT_EQ(sw_port_find(&t_switch, second, &port), 0);
	EXPECT_EQ(port.rate, 77);
	EXPECT_EQ(sw_port_attach(&t_switch, third), 0);
	EXPECT_EQ(place_of(third), 1000 % SW_PORTS);

	/* no port is looked at here, only who has which place */
	while (!sw_port_next(&t_switch, &other))
		used[place_of(other) % SW_PORTS] = true;
	for (place = 0; place < SW_PORTS; place++) {
		other = 5000 + place;
		if (used[place])
			continue;
		EXPECT_EQ(bpf_map_update_elem(t_switch.map[SW_MAP_PORT_INFO],
					      &other, &place, BPF_ANY), 0);
	}
	EXPECT_NE(sw_port_attach(&t_switch, first), 0);
	EXPECT_TRUE(strstr(sw_error(), "room for 256 ports"));
	EXPECT_NE(sw_port_find(&t_switch, first, &port), 0);
	c_close();
}

TAP_MAIN()
