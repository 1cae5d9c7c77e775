// SPDX-License-Identifier: GPL-2.0
/* Replies, right and wrong, into structures. */
#include <tap.h>
#include "message.h"
#include "reply.h"

static void add_up(const char *name, uint64_t value, void *arg)
{
	EXPECT_LT(strlen(name), MESSAGE_MAX);
	*(uint64_t *)arg += value;
}

TEST(job__all_fields)
{
	struct nlmsghdr *nlh = seal(job_message());
	struct job_reply job;
	uint64_t sum = 0;

	ASSERT_EQ(job_parse(nlh, &job), 0);
	EXPECT_EQ(job.id, 7);
	EXPECT_EQ(job.ps.s6_addr[15], 9);
	EXPECT_EQ(job.workers, 2);
	EXPECT_EQ(job.worker[0].s6_addr[15], 1);
	EXPECT_EQ(job.worker[1].s6_addr[15], 2);
	EXPECT_EQ(job.fragment, 248);
	EXPECT_EQ(job.timeout, 1500);
	EXPECT_EQ(job.patience, 90000);
	EXPECT_FALSE(job.has_uid);
	EXPECT_TRUE(job.has_gid);
	EXPECT_TRUE(job.has_ps);
	EXPECT_TRUE(job.running);
	EXPECT_EQ(job.waiting, 2);
	counters_walk(job.counters, add_up, &sum);
	EXPECT_EQ(sum, 11 + (1ULL << 40));
	free(nlh);
}

TEST(job__without_id)
{
	struct nlmsghdr *nlh = seal(genl_message(ATP_CMD_JOB_GET));
	struct job_reply job;

	EXPECT_EQ(job_parse(nlh, &job), -1);
	free(nlh);
}

TEST(job__wrong_length)
{
	struct nlmsghdr *nlh = job_message();
	struct job_reply job;

	mnl_attr_put_u16(nlh, ATP_A_JOB_WINDOW, 1);
	nlh = seal(nlh);
	EXPECT_EQ(job_parse(nlh, &job), -1);
	free(nlh);
}

TEST(job__address_of_four_bytes)
{
	struct nlmsghdr *nlh = genl_message(ATP_CMD_JOB_GET);
	struct job_reply job;

	mnl_attr_put_u32(nlh, ATP_A_JOB_ID, 1);
	mnl_attr_put_u32(nlh, ATP_A_JOB_PS, 1);
	nlh = seal(nlh);
	EXPECT_EQ(job_parse(nlh, &job), -1);
	free(nlh);
}

TEST(job__too_many_workers)
{
	struct nlmsghdr *nlh = genl_message(ATP_CMD_JOB_GET);
	struct job_reply job;
	int i;

	mnl_attr_put_u32(nlh, ATP_A_JOB_ID, 1);
	for (i = 0; i < ATP_MAX_WORKERS; i++)
		put_worker(nlh, i);
	EXPECT_EQ(job_parse(nlh, &job), 0);
	EXPECT_EQ(job.workers, ATP_MAX_WORKERS);
	put_worker(nlh, i);
	nlh = seal(nlh);
	EXPECT_EQ(job_parse(nlh, &job), -1);
	free(nlh);
}

TEST(job__newer_kernel)
{
	struct nlmsghdr *nlh = job_message();
	struct job_reply job;

	mnl_attr_put_u64(nlh, ATP_A_JOB_MAX + 1, 1);
	nlh = seal(nlh);
	EXPECT_EQ(job_parse(nlh, &job), 0);
	free(nlh);
}

TEST(job__nests_without_end)
{
	struct nlmsghdr *nlh = genl_message(ATP_CMD_JOB_GET);
	struct job_reply job;
	struct nlattr *nest[100];
	int i;

	mnl_attr_put_u32(nlh, ATP_A_JOB_ID, 1);
	nest[0] = mnl_attr_nest_start(nlh, ATP_A_JOB_COUNTERS);
	for (i = 1; i < 100; i++)
		nest[i] = mnl_attr_nest_start(nlh, ATP_A_COUNTER_ENTRY);
	while (--i >= 0)
		mnl_attr_nest_end(nlh, nest[i]);
	nlh = seal(nlh);
	EXPECT_EQ(job_parse(nlh, &job), -1);
	free(nlh);
}

static struct nlmsghdr *sock_message(size_t info_len)
{
	struct nlmsghdr *nlh = genl_message(ATP_CMD_SOCK_GET);
	struct {
		struct atp_info info;
		char more[64];
	} data;

	memset(&data, 0, sizeof(data));
	data.info.state = ATP_JOINED;
	data.info.chunks = 5;
	mnl_attr_put_u32(nlh, ATP_A_SOCK_JOB, 7);
	mnl_attr_put_u32(nlh, ATP_A_SOCK_RANK, 1);
	mnl_attr_put(nlh, ATP_A_SOCK_INFO, info_len, &data);
	return seal(nlh);
}

TEST(sock__info_of_any_age)
{
	const size_t now = sizeof(struct atp_info);
	struct sock_reply sock;
	struct nlmsghdr *nlh;

	nlh = sock_message(now);
	EXPECT_EQ(sock_parse(nlh, &sock), 0);
	EXPECT_EQ(sock.rank, 1);
	EXPECT_EQ(sock.info.chunks, 5);
	free(nlh);
	nlh = sock_message(4);
	EXPECT_EQ(sock_parse(nlh, &sock), 0);
	EXPECT_EQ(sock.info.state, ATP_JOINED);
	EXPECT_EQ(sock.info.chunks, 0);
	free(nlh);
	nlh = sock_message(now + 64);
	EXPECT_EQ(sock_parse(nlh, &sock), 0);
	EXPECT_EQ(sock.info.chunks, 5);
	free(nlh);
}

TEST(event__fields)
{
	struct nlmsghdr *nlh = genl_message(ATP_CMD_EVENT_NTF);
	struct event_reply event;

	mnl_attr_put_u32(nlh, ATP_A_EVENT_TYPE, ATP_EVENT_FAILED);
	EXPECT_EQ(event_parse(nlh, &event), -1);
	mnl_attr_put_u32(nlh, ATP_A_EVENT_JOB, 7);
	EXPECT_EQ(event_parse(nlh, &event), 0);
	EXPECT_FALSE(event.has_rank);
	mnl_attr_put_u32(nlh, ATP_A_EVENT_RANK, 0);
	EXPECT_EQ(event_parse(nlh, &event), 0);
	EXPECT_TRUE(event.has_rank);
	free(nlh);
}

/* Every parser on whatever this is; what counts is the sanitizers. */
static void parse_all(const struct nlmsghdr *nlh)
{
	struct family_reply family;
	struct event_reply event;
	struct sock_reply sock;
	struct job_reply job;
	uint64_t sum = 0;

	if (!job_parse(nlh, &job))
		counters_walk(job.counters, add_up, &sum);
	sock_parse(nlh, &sock);
	if (!family_parse(nlh, &family))
		counters_walk(family.counters, add_up, &sum);
	event_parse(nlh, &event);
}

TEST(any__truncated)
{
	struct nlmsghdr *whole = job_message();
	struct nlmsghdr *nlh;
	uint32_t len;

	for (len = NLMSG_HDRLEN; len <= whole->nlmsg_len; len++) {
		nlh = malloc(len);
		memcpy(nlh, whole, len);
		nlh->nlmsg_len = len;
		parse_all(nlh);
		free(nlh);
	}
	free(whole);
}

TEST(any__mutated)
{
	struct nlmsghdr *whole = job_message();
	struct nlmsghdr *nlh;
	uint32_t len, n;
	int round;

	tap_seed(4797);
	for (round = 0; round < 200000; round++) {
		len = whole->nlmsg_len;
		nlh = malloc(len);
		memcpy(nlh, whole, len);
		for (n = tap_below(6) + 1; n; n--)
			((uint8_t *)nlh)[NLMSG_HDRLEN +
					 tap_below(len - NLMSG_HDRLEN)] =
				tap_chance(2) ? tap_below(40) : tap_rand();
		parse_all(nlh);
		free(nlh);
	}
	free(whole);
}

TAP_MAIN()
