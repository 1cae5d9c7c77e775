// SPDX-License-Identifier: GPL-2.0
/* A rank with nothing in flight, of which others have left. */
#include "host.h"

static void join_two(int *fds, const char *more)
{
	int i;

	join_pair(fds, more);
	for (i = 0; i < 2; i++)
		set_dtype(fds[i], ATP_INT32);
}

/* The one that is left has asked the PS since, and been answered.  A LEAVE
 * comes three times; what comes besides is PING and PONG in turn, so that one
 * PONG is surely of a PING after the first of them.
 */
static void hears_of_it(void)
{
	host_must("count() { %s stats | awk '$1 == \"in_packets\" { print $2 }'; }; n=$(count); until [ $(count) -ge $((n + 7)) ]; do :; done",
		  ATP_TOOL);
}

/* What that one took part in is there, and the end of the own pushing is as
 * quiet as ever.
 */
TEST(with_results)
{
	int32_t lane = 4, result;
	int fds[2], i;

	join_two(fds, "timeout 3s");
	for (i = 0; i < 2; i++) {
		push(fds[i], &lane, 4);
		push(fds[i], &lane, 4);
	}
	for (i = 0; i < 2; i++)
		pull(fds[1], &result, 4);
	close(fds[1]);
	pull(fds[0], &result, 4);
	EXPECT_EQ(result, 8);
	hears_of_it();
	/* as long as there is one, nothing has come to an end */
	EXPECT_EQ(events_of(fds[0], 0), POLLIN | POLLOUT);
	EXPECT_EQ(recv(fds[0], &result, 4, MSG_PEEK), 4);
	EXPECT_EQ(events_of(fds[0], 0), POLLIN | POLLOUT);
	/* a buffer that turns out to be bad: it is there once more */
	EXPECT_ERRNO(recv(fds[0], (void *)8, 4, 0), EFAULT);
	EXPECT_EQ(events_of(fds[0], 0), POLLIN | POLLOUT);
	pull(fds[0], &result, 4);
	EXPECT_EQ(result, 8);
	/* it knew: that was the end, at once */
	EXPECT_EQ(events_of(fds[0], 0), POLLIN | POLLOUT | POLLRDHUP);
	EXPECT_ERRNO(recv(fds[0], &result, 4, 0), ECONNRESET);
	EXPECT_EQ(error_of(fds[0]), 0);
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	EXPECT_EQ(recv(fds[0], &result, 4, 0), 0);
	EXPECT_EQ(error_of(fds[0]), 0);
	EXPECT_EQ(info_of(fds[0]).state, ATP_BOUND);
}

/* What one has pushed before it left can still be added: nobody is told that
 * there is nothing to wait for.
 */
TEST(with_a_part)
{
	int32_t lane = 4, result;
	int fds[2];

	join_two(fds, "timeout 3s");
	push(fds[1], &lane, 4);
	host_must("until %s -j job show %u | grep -q '\"waiting\":.0'; do :; done",
		  ATP_TOOL, JOB);
	close(fds[1]);
	hears_of_it();
	EXPECT_EQ(events_of(fds[0], 0), POLLOUT);
	push(fds[0], &lane, 4);
	pull(fds[0], &result, 4);
	EXPECT_EQ(result, 8);
	wait_events(fds[0], POLLRDHUP);
	EXPECT_ERRNO(recv(fds[0], &result, 4, 0), ECONNRESET);
}

/* The application at the PS is one of the others. */
TEST(without_the_server)
{
	int fds[2], server, lane = 0;

	host_net();
	job_add(2, "server");
	server = new_socket(SOCK_NONBLOCK);
	EXPECT_ERRNO(do_connect(server, JOB, ATP_SERVER), EINPROGRESS);
	join_all(fds, 2);
	wait_events(server, POLLOUT);
	close(server);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), EOWNERDEAD);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINED);
	push(fds[0], &lane, 4);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), EOWNERDEAD);
}

/* Who pulls no more anyway goes on as before, and leaves in peace. */
TEST(after_shutdown)
{
	int fds[2], lane;

	join_pair(fds, "timeout 3s");
	ASSERT_EQ(shutdown(fds[0], SHUT_RD), 0);
	close(fds[1]);
	hears_of_it();
	EXPECT_EQ(recv(fds[0], &lane, 4, 0), 0);
	EXPECT_EQ(info_of(fds[0]).state, ATP_JOINED);
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	wait_state(fds[0], ATP_BOUND);
	EXPECT_EQ(error_of(fds[0]), 0);
}

/* After it was told it joins the next run. */
TEST(and_again)
{
	int fds[2], lane;

	join_pair(fds, "");
	close(fds[1]);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), ECONNRESET);
	ASSERT_EQ(shutdown(fds[0], SHUT_WR), 0);
	fds[1] = new_socket(0);
	connect_all(fds, 2);
	EXPECT_EQ(events_of(fds[0], 0), POLLOUT);
	sum_works(fds, 2);
}

/* The failure of a run counts more. */
TEST(and_removed)
{
	int fds[2], lane;

	join_pair(fds, "");
	close(fds[1]);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), ECONNRESET);
	ASSERT_EQ(atp("job del %u", JOB), 0);
	wait_state(fds[0], ATP_FAILED);
	EXPECT_ERRNO(recv(fds[0], &lane, 4, 0), EIDRM);
}

TAP_MAIN()
