// SPDX-License-Identifier: GPL-2.0
/* The numbers that come back: integers, floating point, overflow. */
#include <limits.h>
#include <math.h>
#include "host.h"

TEST(int32)
{
	static const int32_t a[] = { 0, 1, -1, INT_MAX, INT_MIN, INT_MAX,
				     INT_MIN, 0x12345678 };
	static const int32_t b[] = { 0, -1, -1, 0, 0, INT_MIN, INT_MAX, -1 };
	int32_t sum[8];
	int fds[2], i, k;

	join_pair(fds, "");
	for (i = 0; i < 2; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], i ? a : b, sizeof(a));
	}
	for (i = 0; i < 2; i++) {
		pull(fds[i], sum, sizeof(sum));
		for (k = 0; k < 8; k++)
			EXPECT_EQ(sum[k], (int64_t)a[k] + b[k]);
	}
}

TEST(overflow_is_of_its_chunk)
{
	int32_t fine[1000], over[1000], sum[1000];
	struct iovec iov = { sum, sizeof(sum) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[3], i, k;

	host_net();
	job_add(3, "");
	join_all(fds, 3);
	for (k = 0; k < 1000; k++) {
		fine[k] = k;
		over[k] = k;
	}
	/* one lane in the middle, of two ranks; a third compensates nothing */
	over[777] = 0x60000000;
	for (i = 0; i < 3; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], fine, sizeof(fine));
		push(fds[i], over, sizeof(over));
		push(fds[i], fine, sizeof(fine));
		push(fds[i], over, 777 * 4);
	}
	for (i = 0; i < 3; i++) {
		pull(fds[i], sum, sizeof(sum));
		EXPECT_EQ(sum[999], 3 * 999);
		wait_events(fds[i], POLLIN);
		EXPECT_FALSE(events_of(fds[i], 0) & POLLERR);
		EXPECT_ERRNO(recvmsg(fds[i], &msg, MSG_PEEK), EOVERFLOW);
		EXPECT_ERRNO(recvmsg(fds[i], &msg, 0), EOVERFLOW);
		pull(fds[i], sum, sizeof(sum));
		EXPECT_EQ(sum[999], 3 * 999);
		pull(fds[i], sum, 777 * 4);
		EXPECT_EQ(sum[776], 3 * 776);
		EXPECT_EQ(error_of(fds[i]), 0);
		EXPECT_EQ(info_of(fds[i]).state, ATP_JOINED);
		EXPECT_EQ(info_of(fds[i]).chunks, 4);
		/* the fragment with lane 777 and no other */
		EXPECT_EQ(info_of(fds[i]).raw, 1);
	}
	sum_works(fds, 3);
}

/* Partial sums that do not fit are no overflow if the sum does. */
TEST(int32_sum_fits_in_the_end)
{
	static const int32_t lane[] = { INT_MAX, INT_MAX, INT_MIN, INT_MIN };
	int32_t sum;
	int fds[4], i;

	host_net();
	job_add(4, "");
	join_all(fds, 4);
	for (i = 0; i < 4; i++) {
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &lane[i], 4);
	}
	for (i = 0; i < 4; i++) {
		pull(fds[i], &sum, 4);
		EXPECT_EQ(sum, -2);
	}
}

/* One unit of the default scale, and what rounds to none */
#define TINY	(1 / 1e8f)
#define LESS	(3 / 1e9f)

TEST(float32)
{
	static const float a[] = { 0.5f, -1.25f, TINY, 1e10f, INFINITY,
				   LESS, 20.0f, -0.0f };
	static const float b[] = { 0.25f, 1.25f, TINY, 1e10f, 1.0f,
				   0.0f, 20.0f, -0.0f };
	float sum[8], again[8];
	int fds[2], i;

	join_pair(fds, "fragment 8");
	for (i = 0; i < 2; i++)
		push(fds[i], i ? b : a, sizeof(a));
	for (i = 0; i < 2; i++)
		pull(fds[i], i ? again : sum, sizeof(sum));
	EXPECT_EQ(memcmp(sum, again, sizeof(sum)), 0);
	EXPECT_TRUE(sum[0] == 0.75f);
	EXPECT_TRUE(sum[1] == 0.0f);
	EXPECT_TRUE(sum[2] == 2 * TINY);
	/* beyond 2^31 / scale: as floating point, with those beside it */
	EXPECT_TRUE(sum[3] == 2e10f);
	EXPECT_TRUE(sum[4] == INFINITY);
	EXPECT_TRUE(sum[5] == 0.0f || sum[5] == LESS);
	EXPECT_TRUE(sum[6] == 40.0f);
	EXPECT_TRUE(sum[7] == 0.0f);
	EXPECT_EQ(info_of(fds[0]).chunks, 1);
}

TEST(float32_nan)
{
	float a[2] = { NAN, INFINITY }, b[2] = { 1.0f, -INFINITY }, sum[2];
	int fds[2];

	join_pair(fds, "");
	push(fds[0], a, sizeof(a));
	push(fds[1], b, sizeof(b));
	pull(fds[0], sum, sizeof(sum));
	EXPECT_TRUE(isnan(sum[0]));
	EXPECT_TRUE(isnan(sum[1]));
}

TEST(scale_of_the_job)
{
	float a = 0.3f, b = 0.3f, sum;
	int fds[2];

	join_pair(fds, "scale 10");
	push(fds[0], &a, 4);
	push(fds[1], &b, 4);
	pull(fds[0], &sum, 4);
	EXPECT_TRUE(sum == 0.6f);
	a = 0.04f;
	push(fds[0], &a, 4);
	push(fds[1], &a, 4);
	pull(fds[0], &sum, 4);
	EXPECT_TRUE(sum == 0.0f);
}

/* The type is the chunk's, from the next sendmsg() on. */
TEST(types_alternate)
{
	int32_t whole = 1 << 30, isum;
	float real = 0.5f, fsum;
	int fds[2], i;

	join_pair(fds, "");
	for (i = 0; i < 2; i++) {
		push(fds[i], &real, 4);
		set_dtype(fds[i], ATP_INT32);
		push(fds[i], &whole, 4);
		set_dtype(fds[i], ATP_FLOAT32);
		push(fds[i], &real, 4);
		set_dtype(fds[i], ATP_INT32);
	}
	whole = 5;
	for (i = 0; i < 2; i++) {
		pull(fds[i], &fsum, 4);
		EXPECT_TRUE(fsum == 1.0f);
		EXPECT_ERRNO(recv(fds[i], &isum, 4, 0), EOVERFLOW);
		pull(fds[i], &fsum, 4);
		EXPECT_TRUE(fsum == 1.0f);
		push(fds[i], &whole, 4);
	}
	for (i = 0; i < 2; i++) {
		pull(fds[i], &isum, 4);
		EXPECT_EQ(isum, 10);
	}
}

TAP_MAIN()
