// SPDX-License-Identifier: GPL-2.0
/* What atp top makes of two moments: each column is the figure of its head. */
#include <stdio.h>
#include <tap.h>
#include "message.h"
#include "top.h"

#define JOB	7
#define SECOND	1000000000ULL
#define COLUMNS	16

static struct top top;
static struct nlmsghdr *messages[2];
static char *text;

/* The jobs' counters at one of the moments */
static const struct nlattr *counters(int i, const char * const *names,
				     const uint64_t *values, int n)
{
	struct nlmsghdr *nlh = message(NLMSG_MIN_TYPE);
	struct nlattr *nest = mnl_attr_nest_start(nlh, ATP_A_JOB_COUNTERS);
	int k;

	for (k = 0; k < n; k++)
		put_counter(nlh, names[k], values[k]);
	mnl_attr_nest_end(nlh, nest);
	messages[i] = nlh;
	return nest;
}

static void begin(void)
{
	memset(&top, 0, sizeof(top));
	top.before.time = 5 * SECOND;
	top.now.time = 7 * SECOND;
	top.now.has_module = true;
}

static void end(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		free(messages[i]);
		messages[i] = NULL;
	}
	free(text);
	text = NULL;
}

static void show(void)
{
	size_t size;
	FILE *f = open_memstream(&text, &size);

	top_text(&top, f);
	fclose(f);
}

/* The words of the line that follows the one which begins so */
static int row_after(const char *head, char words[COLUMNS][32])
{
	char *line = strstr(text, head);
	int n = 0, len;

	if (!line || !strchr(line, '\n'))
		return 0;
	line = strchr(line, '\n') + 1;
	while (n < COLUMNS && *line && *line != '\n' &&
	       sscanf(line, " %31s%n", words[n], &len) == 1) {
		n++;
		line += len;
	}
	return n;
}

static void expect_row(const char *head, const char * const *want, int n)
{
	char words[COLUMNS][32];
	int i, got = row_after(head, words);

	EXPECT_EQ(got, n);
	for (i = 0; i < n && i < got; i++)
		TAP_CHECK(!strcmp(words[i], want[i]), words[i], (void)0);
}

#define EXPECT_ROW(head, ...) do {					\
	static const char * const want[] = { __VA_ARGS__ };		\
	expect_row(head, want, sizeof(want) / sizeof(*want));		\
} while (0)

/* Two seconds: rates are half of what came */
TEST(a_ps)
{
	static const char * const names[] = {
		"completed", "resent", "raw", "worker_raw", "collisions",
		"ecn", "worker_ecn",
	};
	static const uint64_t then[] = { 100, 10, 4, 1, 8, 2, 0 };
	static const uint64_t now[] = { 1100, 50, 14, 5, 28, 8, 4 };
	struct job_reply old = { .id = JOB }, job = {
		.id = JOB, .workers = 4, .role = ATP_ROLE_PS, .has_ps = true,
		.fragment = 1400, .running = true, .joined = 0xd,
		.waiting = 0xa, .stall = 1500,
	};

	begin();
	old.counters = counters(0, names, then, 7);
	job.counters = counters(1, names, now, 7);
	top.before.jobs = (struct job_list){ .job = &old, .count = 1 };
	top.now.jobs = (struct job_list){ .job = &job, .count = 1 };
	show();
	EXPECT_ROW("       JOB ROLE", "7", "ps", "3/4", "run", "700.0kB/s",
		   "500", "20", "7", "10", "5", "1,3", "for", "1.5s");

	/* of another job nothing is shown */
	free(text);
	top.one = true;
	top.job = JOB + 1;
	show();
	EXPECT_EQ(strstr(text, "700.0kB"), NULL);
	end();
}

TEST(a_socket)
{
	struct sock_reply old = { .job = JOB, .rank = 2, .inode = 99 }, sock;

	begin();
	old.info = (struct atp_info){ .epoch = 3, .una = 400, .resent = 5 };
	sock = old;
	sock.info = (struct atp_info){
		.state = ATP_JOINED, .epoch = 3, .fragment = 1400,
		.una = 1000, .nxt = 1020, .cwnd = 33, .ssthresh = 44,
		.srtt_us = 1500, .resent = 25, .timeouts = 6, .ecn = 9,
		.raw = 11, .ranks = 0x2,
	};
	top.before.socks = (struct sock_list){ .sock = &old, .count = 1 };
	top.now.socks = (struct sock_list){ .sock = &sock, .count = 1 };
	show();
	EXPECT_ROW("       JOB RANK", "7", "2", "joined", "420.0kB/s", "33",
		   "44", "1.5ms", "20", "10", "6", "9", "11", "1");
	end();
}

/* The run goes on in the epoch; una: the results that the socket has */
static struct sock_reply sock_at(uint32_t rank, uint32_t state, uint32_t epoch,
				 uint32_t una)
{
	return (struct sock_reply){
		.job = JOB, .rank = rank, .inode = 90 + rank,
		.info = {
			.state = state, .epoch = epoch, .fragment = 1400,
			.una = una, .nxt = una,
		},
	};
}

/* A host of two ranks; they are in the run both times unless changed */
static struct sock_reply earlier[2], later[2];
static struct job_reply two = {
	.id = JOB, .workers = 2, .role = ATP_ROLE_WORKER, .fragment = 1400,
};

static void two_ranks(uint32_t then0, uint32_t then1, uint32_t now0,
		      uint32_t now1)
{
	begin();
	earlier[0] = sock_at(0, ATP_JOINED, 3, then0);
	earlier[1] = sock_at(1, ATP_JOINED, 3, then1);
	later[0] = sock_at(0, ATP_JOINED, 3, now0);
	later[1] = sock_at(1, ATP_JOINED, 3, now1);
	top.before.socks = (struct sock_list){ .sock = earlier, .count = 2 };
	top.now.socks = (struct sock_list){ .sock = later, .count = 2 };
	top.now.jobs = (struct job_list){ .job = &two, .count = 1 };
}

/* Fragments per second */
static uint64_t rate_of_two(void)
{
	struct top_job rate;

	top_job(&top, &two, &rate);
	EXPECT_EQ(rate.goodput, rate.completed * 1400);
	return rate.completed;
}

/* Both get the same results, which count once, when the last has them. */
TEST(two_ranks_of_a_host)
{
	two_ranks(400, 300, 1000, 920);
	show();
	EXPECT_ROW("       JOB ROLE", "7", "worker", "-/2", "-", "434.0kB/s",
		   "310", "0", "0", "0", "0");
	end();
	two_ranks(400, 300, 1000, 300);
	EXPECT_EQ(rate_of_two(), 0);
	two_ranks(1000, 300, 1000, 1000);
	EXPECT_EQ(rate_of_two(), 350);
	two_ranks(UINT32_MAX - 9, UINT32_MAX - 4, 20, 10);
	EXPECT_EQ(rate_of_two(), 10);
}

TEST(a_rank_comes_or_goes)
{
	/* it has left, and is still open or not */
	two_ranks(400, 300, 500, 920);
	later[0].info.state = ATP_FAILED;
	EXPECT_EQ(rate_of_two(), 310);
	later[0] = later[1];
	top.now.socks.count = 1;
	EXPECT_EQ(rate_of_two(), 310);
	top.now.socks.count = 0;
	EXPECT_EQ(rate_of_two(), 0);

	/* it was not seen before, and is behind */
	two_ranks(400, 0, 410, 390);
	top.before.socks.count = 1;
	EXPECT_EQ(rate_of_two(), 0);

	/* a run begins, and there was none or another */
	two_ranks(0, 0, 20, 10);
	top.before.socks.count = 0;
	EXPECT_EQ(rate_of_two(), 5);
	two_ranks(400, 300, 20, 10);
	later[0].info.epoch = 4;
	later[1].info.epoch = 4;
	EXPECT_EQ(rate_of_two(), 5);

	/* one has not heard yet that the run before has ended */
	two_ranks(900, 980, 20, 1000);
	later[0].info.epoch = 4;
	EXPECT_EQ(rate_of_two(), 10);
}

/* It has left the run, but not the socket. */
TEST(a_socket_begins_again)
{
	struct top_sock rate;

	two_ranks(400, 300, 0, 300);
	later[0].info.state = ATP_BOUND;
	top_sock(&top, &later[0], &rate);
	EXPECT_EQ(rate.answered, 0);
	EXPECT_EQ(rate.goodput, 0);
}

TEST(a_switch)
{
	struct sw_job_view old = { .id = JOB }, job = { .id = JOB };

	begin();
	old.counters.aggregated = 100;
	old.counters.collision_busy = 10;
	job.counters.aggregated = 300;
	job.counters.collision_busy = 30;
	job.counters.drop_csum = 8;
	job.state.occupied = 3;
	job.state.most = 9;
	job.job.quota = 12;
	top.before.switch_job = &old;
	top.before.switch_jobs = 1;
	top.now.has_switch = true;
	top.now.settings.aggregators = 64;
	top.now.occupied = 5;
	top.now.switch_job = &job;
	top.now.switch_jobs = 1;
	show();
	EXPECT_NE(strstr(text, "switch: 5 of 64 aggregators hold a sum"), NULL);
	EXPECT_ROW("       JOB OCCUPIED", "7", "3", "9", "12", "100", "10",
		   "collision_busy", "10", "drop_csum", "4");

	/* it is all that there is where there is no module */
	EXPECT_NE(strstr(text, "GOODPUT"), NULL);
	free(text);
	top.now.has_module = false;
	show();
	EXPECT_NE(strstr(text, ": the module is not loaded\n\nswitch: 5 of"),
		  NULL);
	EXPECT_EQ(strstr(text, "GOODPUT"), NULL);
	end();
}

TAP_MAIN()
