// SPDX-License-Identifier: GPL-2.0
/* Rounds of a benchmark: a sum that is wrong ends them, the rest is counted. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <tap.h>
#include <unistd.h>
#include "rounds.h"

#define LANES	10

/* A system that knows what the other rank of two would send */
struct system {
	unsigned int	calls;
	unsigned int	wrong_call;
	unsigned int	wrong_lane;
	int		result;
};

static int allreduce(void *arg, float *tensor, size_t lanes)
{
	struct system *s = arg;
	size_t i;

	/* the next rank has what this one has a lane later: -1, 0, 1, -1 ... */
	for (i = 0; i < lanes; i++)
		tensor[i] += tensor[i] == 1 ? -1 : tensor[i] + 1;
	if (s->calls++ == s->wrong_call)
		tensor[s->wrong_lane] += 1;
	return s->result;
}

static int go(struct system *s, struct rounds *r)
{
	*r = (struct rounds) {
		.name = "test",
		.workers = 2,
		.bytes = LANES * sizeof(float),
		.count = 3,
		.allreduce = allreduce,
		.arg = s,
	};
	return rounds_run(r);
}

TEST(rounds__right_sums)
{
	struct system s = { .wrong_call = 99 };
	struct rounds r, again;
	int fds[2], out;
	unsigned int i;

	ASSERT_EQ(go(&s, &r), 0);
	/* one is not counted */
	EXPECT_EQ(s.calls, 4);
	for (i = 0; i < r.count; i++)
		EXPECT_GT(r.ns[i], 0);

	/* what is written can be read */
	again = r;
	again.ns = NULL;
	fflush(stdout);
	out = dup(STDOUT_FILENO);
	ASSERT_EQ(pipe(fds), 0);
	dup2(fds[1], STDOUT_FILENO);
	close(fds[1]);
	EXPECT_EQ(rounds_write(&r), 0);
	dup2(out, STDOUT_FILENO);
	close(out);
	ASSERT_EQ(rounds_read(&again, fds[0]), 0);
	EXPECT_TRUE(!memcmp(r.ns, again.ns, r.count * sizeof(*r.ns)));
	EXPECT_EQ(again.own_ns, r.own_ns);
	rounds_free(&r);
	rounds_free(&again);
}

TEST(rounds__wrong_sums)
{
	struct system s = { .result = 0 };
	struct rounds r;

	for (s.wrong_call = 0; s.wrong_call < 4; s.wrong_call++) {
		s.wrong_lane = s.wrong_call * 3;
		s.calls = 0;
		EXPECT_EQ(go(&s, &r), -1);
		EXPECT_EQ(s.calls, s.wrong_call + 1);
		rounds_free(&r);
	}
}

TEST(rounds__failure)
{
	struct system s = { .wrong_call = 99, .result = -1 };
	struct rounds r;

	EXPECT_EQ(go(&s, &r), -1);
	EXPECT_EQ(s.calls, 1);
	rounds_free(&r);
}

TEST(rounds__no_results)
{
	struct rounds r = { .count = 3 };

	EXPECT_EQ(rounds_read(&r, open("/dev/null", O_RDONLY | O_CLOEXEC)),
		  -1);
	rounds_free(&r);
}

TAP_MAIN()
