// SPDX-License-Identifier: GPL-2.0
/* The socket under io_uring: send, receive, poll, cancel. */
#include <liburing.h>
#include "host.h"

static struct io_uring ring;

static struct io_uring_sqe *sqe_of(uint64_t name)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	ASSERT_TRUE(sqe);
	memset(sqe, 0, sizeof(*sqe));
	sqe->user_data = name;
	return sqe;
}

#define SQE(name, prep, ...) do {					\
	struct io_uring_sqe *__sqe = sqe_of(name);			\
									\
	prep(__sqe, __VA_ARGS__);					\
	__sqe->user_data = name;					\
} while (0)

static void submit(int n)
{
	ASSERT_EQ(io_uring_submit(&ring), n);
}

/* Has nothing completed? */
static bool nothing(void)
{
	struct io_uring_cqe *cqe;

	return io_uring_peek_cqe(&ring, &cqe) == -EAGAIN;
}

/* The next completion, which must be @name's; @flags may be NULL.  Return: its
 * result.
 */
static int completion_of(uint64_t name, uint32_t *flags)
{
	struct __kernel_timespec ts = { .tv_sec = LIMIT_MS / 1000 };
	struct io_uring_cqe *cqe;
	int res;

	ASSERT_EQ(io_uring_wait_cqe_timeout(&ring, &cqe, &ts), 0);
	ASSERT_EQ(cqe->user_data, name);
	res = cqe->res;
	if (flags)
		*flags = cqe->flags;
	io_uring_cqe_seen(&ring, cqe);
	return res;
}

static int result_of(uint64_t name)
{
	return completion_of(name, NULL);
}

/* The next @n completions, in any order, by their names */
static void results_of(int *res, int n)
{
	struct __kernel_timespec ts = { .tv_sec = LIMIT_MS / 1000 };
	struct io_uring_cqe *cqe;

	for (; n; n--) {
		ASSERT_EQ(io_uring_wait_cqe_timeout(&ring, &cqe, &ts), 0);
		res[cqe->user_data] = cqe->res;
		io_uring_cqe_seen(&ring, cqe);
	}
}

static void cancel_of(uint64_t name, uint64_t which)
{
	struct io_uring_sqe *sqe = sqe_of(name);

	io_uring_prep_rw(IORING_OP_ASYNC_CANCEL, sqe, -1,
			 (void *)(uintptr_t)which, 0, 0);
	sqe->user_data = name;
	submit(1);
}

static void start(int *fds)
{
	int i;

	join_pair(fds, "");
	for (i = 0; i < 2; i++)
		set_dtype(fds[i], ATP_INT32);
	ASSERT_EQ(io_uring_queue_init(16, &ring, 0), 0);
}

TEST(send_and_receive)
{
	int32_t lanes[2000], sum[2][2000];
	int fds[2], i, k, res[5] = {};

	start(fds);
	for (k = 0; k < 2000; k++)
		lanes[k] = k;
	/* receiving first: it waits for what is sent behind it */
	for (i = 0; i < 2; i++) {
		SQE(1 + i, io_uring_prep_recv, fds[i], sum[i], sizeof(sum[i]),
		    0);
		SQE(3 + i, io_uring_prep_send, fds[i], lanes, sizeof(lanes), 0);
	}
	submit(4);
	results_of(res, 4);
	for (i = 1; i < 5; i++)
		EXPECT_EQ(res[i], sizeof(lanes));
	for (i = 0; i < 2; i++)
		for (k = 0; k < 2000; k++)
			ASSERT_EQ(sum[i][k], 2 * k);
}

/* One request; a buffer of the kernel's choice and a completion for each result
 * until the run ends
 */
TEST(multishot)
{
	static const uint32_t lengths[] = { 1, 2000, 351 };
	static int32_t lanes[2000], sums[4][2000];
	uint32_t flags, i, k, sum;
	struct io_uring_sqe *sqe;
	int fds[2];

	start(fds);
	for (k = 0; k < 2000; k++)
		lanes[k] = k + 1;
	SQE(1, io_uring_prep_provide_buffers, sums, sizeof(sums[0]), 4, 9, 0);
	submit(1);
	ASSERT_GE(result_of(1), 0);
	sqe = sqe_of(2);
	io_uring_prep_recv_multishot(sqe, fds[0], NULL, 0, 0);
	sqe->user_data = 2;
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = 9;
	submit(1);
	EXPECT_TRUE(nothing());
	for (i = 0; i < 3; i++) {
		push(fds[0], lanes, lengths[i] * 4);
		push(fds[1], lanes, lengths[i] * 4);
	}
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(completion_of(2, &flags), lengths[i] * 4);
		ASSERT_TRUE(flags & IORING_CQE_F_BUFFER);
		EXPECT_TRUE(flags & IORING_CQE_F_MORE);
		sum = flags >> IORING_CQE_BUFFER_SHIFT;
		ASSERT_LT(sum, 4);
		for (k = 0; k < 2000; k++)
			ASSERT_EQ(sums[sum][k],
				  k < lengths[i] ? 2 * lanes[k] : 0);
	}
	EXPECT_TRUE(nothing());
	ASSERT_EQ(atp("job del %u", JOB), 0);
	EXPECT_EQ(completion_of(2, &flags), -EIDRM);
	EXPECT_FALSE(flags & IORING_CQE_F_MORE);
}

/* The ring's own descriptors, when the process has none any more */
TEST(fixed_files)
{
	int32_t lanes[2][2] = { { 1, 2 }, { 30, 40 } }, sums[2][2] = {};
	int fds[2], res[5] = {}, i;
	struct io_uring_sqe *sqe;

	start(fds);
	ASSERT_EQ(io_uring_register_files(&ring, fds, 2), 0);
	for (i = 0; i < 2; i++) {
		close(fds[i]);
		sqe = sqe_of(0);
		io_uring_prep_recv(sqe, i, sums[i], 8, 0);
		sqe->user_data = 1 + i;
		sqe->flags |= IOSQE_FIXED_FILE;
		sqe = sqe_of(0);
		io_uring_prep_send(sqe, i, lanes[i], 8, 0);
		sqe->user_data = 3 + i;
		sqe->flags |= IOSQE_FIXED_FILE;
	}
	submit(4);
	results_of(res, 4);
	for (i = 1; i < 5; i++)
		EXPECT_EQ(res[i], 8);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(sums[i][0], 31);
		EXPECT_EQ(sums[i][1], 42);
	}
}

TEST(messages)
{
	int32_t lanes[4] = { 1, 2, 3, 4 }, sum[2] = {};
	struct iovec iov[2] = { { lanes, 4 }, { lanes + 1, 12 } };
	struct iovec back = { sum, 8 };
	struct msghdr out = { .msg_iov = iov, .msg_iovlen = 2 };
	struct msghdr in = { .msg_iov = &back, .msg_iovlen = 1 };
	int fds[2];

	start(fds);
	SQE(1, io_uring_prep_sendmsg, fds[0], &out, 0);
	submit(1);
	EXPECT_EQ(result_of(1), 16);
	push(fds[1], lanes, 16);
	SQE(2, io_uring_prep_recvmsg, fds[0], &in, 0);
	submit(1);
	EXPECT_EQ(result_of(2), 8);
	EXPECT_EQ(sum[1], 4);
	EXPECT_TRUE(in.msg_flags & MSG_TRUNC);
}

TEST(join)
{
	struct sockaddr_atp addr[2];
	int fds[2], i;

	host_net();
	job_add(2, "");
	ASSERT_EQ(io_uring_queue_init(16, &ring, 0), 0);
	for (i = 0; i < 2; i++) {
		addr[i] = (struct sockaddr_atp){
			.satp_family = AF_ATP,
			.satp_rank = i,
			.satp_job = JOB,
		};
		fds[i] = new_socket(0);
	}
	SQE(1, io_uring_prep_connect, fds[0], (struct sockaddr *)&addr[0],
	    sizeof(addr[0]));
	submit(1);
	wait_state(fds[0], ATP_JOINING);
	EXPECT_TRUE(nothing());
	ASSERT_EQ(do_connect(fds[1], JOB, 1), 0);
	EXPECT_EQ(result_of(1), 0);
	sum_works(fds, 2);
}

/* A send that finds no room goes when there is enough. */
static void send_and_wait(int flags)
{
	static char bytes[8192], large[60000];
	struct io_uring_sqe *sqe;
	int fds[2], n, i;

	start(fds);
	set_sndbuf(fds[0], 32768);
	n = fill(fds[0], bytes, sizeof(bytes));
	sqe = sqe_of(1);
	io_uring_prep_send(sqe, fds[0], large, sizeof(large), 0);
	sqe->user_data = 1;
	sqe->flags |= flags;
	submit(1);
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	for (i = 0; i < n; i++) {
		EXPECT_TRUE(nothing());
		pull(fds[0], bytes, sizeof(bytes));
		pull(fds[1], bytes, sizeof(bytes));
	}
	EXPECT_EQ(result_of(1), sizeof(large));
}

TEST(send_waits_for_room)
{
	send_and_wait(0);
}

/* A thread of the kernel, which sleeps in sendmsg() */
TEST(thread_waits_for_room)
{
	send_and_wait(IOSQE_ASYNC);
}

/* A thread of the kernel submits. */
TEST(submitted_by_a_thread)
{
	int32_t lanes[2] = { 3, -4 }, sums[2][2] = {};
	int fds[2], res[5] = {}, i;

	join_pair(fds, "");
	for (i = 0; i < 2; i++)
		set_dtype(fds[i], ATP_INT32);
	ASSERT_EQ(io_uring_queue_init(16, &ring, IORING_SETUP_SQPOLL), 0);
	for (i = 0; i < 2; i++) {
		SQE(1 + i, io_uring_prep_recv, fds[i], sums[i], 8, 0);
		SQE(3 + i, io_uring_prep_send, fds[i], lanes, 8, 0);
	}
	submit(4);
	results_of(res, 4);
	for (i = 1; i < 5; i++)
		EXPECT_EQ(res[i], 8);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(sums[i][0], 6);
		EXPECT_EQ(sums[i][1], -8);
	}
}

/* The socket's own way, from the caller and from a thread; io_uring's way is
 * refused, and takes nothing.
 */
TEST(zero_copy)
{
	static const int flags[] = { 0, IOSQE_ASYNC };
	struct io_uring_sqe *sqe;
	int32_t lanes[3000], sum;
	uint32_t cqe_flags;
	int fds[2], i, k;

	start(fds);
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 3000; k++)
			lanes[k] = k - i;
		SQE(1, io_uring_prep_send_zc, fds[0], lanes, 4, 0, 0);
		submit(1);
		EXPECT_EQ(completion_of(1, &cqe_flags), -EOPNOTSUPP);
		/* a second one says that the memory is not used any more */
		if (cqe_flags & IORING_CQE_F_MORE)
			result_of(1);
		sqe = sqe_of(2);
		io_uring_prep_send(sqe, fds[0], lanes, sizeof(lanes),
				   MSG_ZEROCOPY);
		sqe->user_data = 2;
		sqe->flags |= flags[i];
		submit(1);
		EXPECT_EQ(result_of(2), sizeof(lanes));
		push(fds[1], lanes, sizeof(lanes));
		EXPECT_EQ(recv(fds[0], NULL, 0, MSG_TRUNC), sizeof(lanes));
		for (k = 0; k < 3000; k++)
			ASSERT_EQ(lanes[k], 2 * (k - i));
		EXPECT_EQ(recv(fds[1], &sum, 4, MSG_TRUNC), sizeof(lanes));
		EXPECT_EQ(sum, -2 * i);
	}
}

TEST(poll_both)
{
	int32_t lane = 1;
	int fds[2];

	start(fds);
	SQE(1, io_uring_prep_poll_add, fds[0], POLLOUT);
	submit(1);
	EXPECT_EQ(result_of(1), POLLOUT);
	SQE(2, io_uring_prep_poll_add, fds[0], POLLIN);
	submit(1);
	push(fds[0], &lane, 4);
	EXPECT_TRUE(nothing());
	push(fds[1], &lane, 4);
	EXPECT_EQ(result_of(2), POLLIN);
	pull(fds[0], &lane, 4);
	EXPECT_EQ(lane, 2);
}

/* Cancelled before it got anything: the result is the next one's. */
static void cancel(int flags, int error)
{
	int32_t lane = 21, unused = 0;
	int fds[2], res[3] = {}, i;
	struct io_uring_sqe *sqe;

	start(fds);
	push(fds[0], &lane, 4);
	sqe = sqe_of(1);
	io_uring_prep_recv(sqe, fds[0], &unused, 4, 0);
	sqe->user_data = 1;
	sqe->flags |= flags;
	submit(1);
	EXPECT_TRUE(nothing());
	cancel_of(2, 1);
	results_of(res, 2);
	/* -EALREADY: it was running, and was interrupted */
	EXPECT_TRUE(res[2] == 0 || res[2] == -EALREADY);
	EXPECT_TRUE(res[1] == -ECANCELED || res[1] == error);
	push(fds[1], &lane, 4);
	for (i = 0; i < 2; i++) {
		pull(fds[i], &lane, 4);
		EXPECT_EQ(lane, 42);
	}
	EXPECT_EQ(unused, 0);
}

TEST(cancel_of_one_that_polls)
{
	cancel(0, -ECANCELED);
}

/* Given to a thread of the kernel, which may sleep in recvmsg() */
TEST(cancel_of_one_in_a_thread)
{
	cancel(IOSQE_ASYNC, -EINTR);
}

TEST(cancel_of_a_send)
{
	static char bytes[8192];
	int fds[2], n, i, res[4] = {};

	start(fds);
	set_sndbuf(fds[0], 32768);
	n = fill(fds[0], bytes, sizeof(bytes));
	SQE(1, io_uring_prep_send, fds[0], bytes, 4, 0);
	SQE(2, io_uring_prep_send, fds[0], bytes, sizeof(bytes), 0);
	submit(2);
	EXPECT_EQ(result_of(1), 4);
	EXPECT_TRUE(nothing());
	cancel_of(3, 2);
	results_of(res, 2);
	EXPECT_EQ(res[2], -ECANCELED);
	EXPECT_EQ(res[3], 0);
	/* it was not pushed */
	for (i = 0; i < n; i++)
		push(fds[1], bytes, sizeof(bytes));
	push(fds[1], bytes, 4);
	for (i = 0; i < n; i++)
		pull(fds[0], bytes, sizeof(bytes));
	EXPECT_EQ(recv(fds[0], bytes, sizeof(bytes), 0), 4);
	EXPECT_ERRNO(recv(fds[0], bytes, 4, MSG_DONTWAIT), EAGAIN);
}

/* What waits is ended with the run, and with the ring. */
TEST(run_ends)
{
	int32_t lane = 1;
	int fds[2];

	start(fds);
	push(fds[0], &lane, 4);
	SQE(1, io_uring_prep_recv, fds[0], &lane, 4, 0);
	submit(1);
	close(fds[1]);
	EXPECT_EQ(result_of(1), -ECONNRESET);
	EXPECT_EQ(info_of(fds[0]).ranks, 1 << 1);
}

/* The application at the PS takes sums and gives results in the same way. */
TEST(application_at_the_ps)
{
	int32_t lanes[3] = { 1, -2, 3 }, sums[3] = {}, results[3] = {};
	int fds[2], res[5] = {}, rank, server, i;

	join_with_server(fds);
	rank = fds[0];
	server = fds[1];
	wait_state(server, ATP_JOINED);
	set_nonblock(server, false);
	set_dtype(rank, ATP_INT32);
	ASSERT_EQ(io_uring_queue_init(16, &ring, 0), 0);

	SQE(1, io_uring_prep_poll_add, server, POLLIN);
	submit(1);
	EXPECT_TRUE(nothing());
	push(rank, lanes, sizeof(lanes));
	EXPECT_EQ(result_of(1), POLLIN);
	SQE(2, io_uring_prep_recv, server, sums, sizeof(sums), 0);
	submit(1);
	EXPECT_EQ(result_of(2), sizeof(sums));
	EXPECT_EQ(memcmp(sums, lanes, sizeof(sums)), 0);

	SQE(3, io_uring_prep_recv, rank, results, sizeof(results), 0);
	for (i = 0; i < 3; i++)
		sums[i] = 100 - sums[i];
	SQE(4, io_uring_prep_send, server, sums, sizeof(sums), 0);
	submit(2);
	results_of(res, 2);
	EXPECT_EQ(res[3], sizeof(results));
	EXPECT_EQ(res[4], sizeof(sums));
	EXPECT_EQ(memcmp(results, sums, sizeof(sums)), 0);
}

/* What waits there ends with the run; if it is cancelled, nothing is lost. */
TEST(application_at_the_ps_waits)
{
	int32_t lane = 5, unused = 0;
	int fds[2], res[3] = {};

	join_with_server(fds);
	wait_state(fds[1], ATP_JOINED);
	set_nonblock(fds[1], false);
	set_dtype(fds[0], ATP_INT32);
	ASSERT_EQ(io_uring_queue_init(16, &ring, 0), 0);

	SQE(1, io_uring_prep_recv, fds[1], &unused, 4, 0);
	submit(1);
	EXPECT_TRUE(nothing());
	cancel_of(2, 1);
	results_of(res, 2);
	EXPECT_EQ(res[1], -ECANCELED);
	EXPECT_EQ(res[2], 0);
	push(fds[0], &lane, 4);
	EXPECT_EQ(recv(fds[1], &lane, 4, 0), 4);
	EXPECT_EQ(lane, 5);
	EXPECT_EQ(unused, 0);
	push(fds[1], &lane, 4);
	pull(fds[0], &lane, 4);

	SQE(1, io_uring_prep_recv, fds[1], &unused, 4, 0);
	submit(1);
	ASSERT_EQ(atp("job del %u", JOB), 0);
	EXPECT_EQ(result_of(1), -EIDRM);
}

/* Of one that has pushed nothing, too */
TEST(peer_leaves)
{
	int32_t lane;
	int fds[2];

	start(fds);
	SQE(1, io_uring_prep_recv, fds[0], &lane, 4, 0);
	submit(1);
	close(fds[1]);
	EXPECT_EQ(result_of(1), -ECONNRESET);
}

TEST(ring_closed)
{
	int32_t lane = 1, unused;
	int fds[2];

	start(fds);
	SQE(1, io_uring_prep_recv, fds[0], &unused, 4, 0);
	SQE(2, io_uring_prep_poll_add, fds[0], POLLIN);
	submit(2);
	io_uring_queue_exit(&ring);
	push(fds[0], &lane, 4);
	push(fds[1], &lane, 4);
	pull(fds[0], &lane, 4);
	EXPECT_EQ(lane, 2);
}

TAP_MAIN()
