// SPDX-License-Identifier: GPL-2.0
/*
 * Lines over a Unix socket, each answered by one:
 *
 *	fill BYTES NUMBER SEED	ready	has NUMBER tensors of so many bytes
 *	go NANOSECONDS		done T	adds them, beginning at that time of
 *					CLOCK_MONOTONIC; was done at T
 *	check			right	or "wrong", with the first place
 *
 * A member says "hello RANK PID" first.
 *
 * Lanes are multiples of 1/256 in [-1, 1), so every sum of up to 16 is exact in
 * float32, in whatever order it is added, and in ATP's fixed point.  Tensors
 * are cut from one table whose length is a prime: a piece that lands in the
 * wrong place has the wrong values there, and comparing costs little.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "member.h"

#define LANES	65537
#define SHIFT	4099	/* between ranks */
#define STEP	1031	/* between tensors */

static const struct member *me;
static float values[LANES], sums[LANES];
static float **tensors;
static int number;
static size_t count;
static uint32_t seed;

void member_die(const char *what)
{
	perror(what);
	exit(1);
}

int member_number(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < 0 || n > INT32_MAX) {
		fprintf(stderr, "%s is no number\n", text);
		exit(1);
	}
	return n;
}

static uint32_t mix(uint32_t x)
{
	x = (x ^ (x >> 16)) * 0x45d9f3bU;
	x = (x ^ (x >> 16)) * 0x45d9f3bU;
	return x ^ (x >> 16);
}

static void make_tables(void)
{
	uint32_t i;
	int rank;

	for (i = 0; i < LANES; i++)
		values[i] = (float)((int)(mix(i + 1) % 512) - 256) / 256;
	for (i = 0; i < LANES; i++)
		for (rank = 0; rank < me->workers; rank++)
			sums[i] += values[(i + rank * SHIFT) % LANES];
}

/* Where in the tables a tensor begins */
static size_t start_of(int index)
{
	return ((uint64_t)seed + (uint64_t)index * STEP) % LANES;
}

static size_t run_length(size_t left, size_t at)
{
	return left < LANES - at ? left : LANES - at;
}

static void fill_one(float *to, size_t at)
{
	size_t left = count, n;

	for (; left; left -= n, to += n, at = 0) {
		n = run_length(left, at);
		memcpy(to, values + at, n * sizeof(*to));
	}
}

/* Return: the first lane that is wrong, or count */
static size_t check_one(const float *sum, size_t at)
{
	size_t done = 0, n, i;

	for (; done < count; done += n, at = 0) {
		n = run_length(count - done, at);
		if (!memcmp(sum + done, sums + at, n * sizeof(*sum)))
			continue;
		for (i = 0; !memcmp(sum + done + i, sums + at + i, 4); i++)
			;
		return done + i;
	}
	return count;
}

/* One system's turn ends: the next needs the memory. */
static void empty(void)
{
	int i;

	if (me->release)
		me->release();
	for (i = 0; i < number; i++)
		free(tensors[i]);
	free(tensors);
	tensors = NULL;
	number = 0;
}

static void fill(FILE *out)
{
	int i;

	tensors = calloc(number, sizeof(*tensors));
	if (!tensors)
		member_die("calloc");
	for (i = 0; i < number; i++) {
		tensors[i] = malloc(count * sizeof(float));
		if (!tensors[i])
			member_die("malloc");
		fill_one(tensors[i],
			 (start_of(i) + me->rank * SHIFT) % LANES);
	}
	if (me->prepare && me->prepare(tensors, number, count))
		member_die("prepare");
	fprintf(out, "ready\n");
}

static void go(FILE *out, int64_t when)
{
	struct timespec ts = {
		.tv_sec = when / 1000000000,
		.tv_nsec = when % 1000000000,
	};
	int i;

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
	for (i = 0; i < number; i++)
		if (me->allreduce(tensors[i], count, i))
			member_die("allreduce");
	clock_gettime(CLOCK_MONOTONIC, &ts);
	fprintf(out, "done %" PRId64 "\n",
		(int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec);
}

static void check(FILE *out)
{
	size_t lane = count;
	int i;

	for (i = 0; i < number && lane == count; i++)
		lane = check_one(tensors[i], start_of(i));
	if (lane == count)
		fprintf(out, "right\n");
	else
		fprintf(out, "wrong tensor %d lane %zu: %a\n", i - 1, lane,
			tensors[i - 1][lane]);
	empty();
}

static FILE *call(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FILE *file;

	if (fd < 0 || strlen(path) >= sizeof(sun.sun_path))
		member_die(path);
	strcpy(sun.sun_path, path);
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)))
		member_die(path);
	file = fdopen(fd, "r+");
	if (!file)
		member_die(path);
	/* an answer is a line */
	setvbuf(file, NULL, _IOLBF, BUFSIZ);
	return file;
}

int member_serve(const struct member *m, const char *path)
{
	FILE *file = call(path);
	char line[128];
	size_t bytes;
	int64_t when;

	me = m;
	make_tables();
	fprintf(file, "hello %d %d\n", m->rank, getpid());
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "fill ", 5)) {
			if (number)
				break;
			if (sscanf(line, "fill %zu %d %" SCNu32, &bytes,
				   &number, &seed) != 3)
				break;
			count = bytes / sizeof(float);
			fill(file);
		} else if (sscanf(line, "go %" SCNd64, &when) == 1) {
			go(file, when);
		} else if (!strcmp(line, "check\n")) {
			check(file);
		} else {
			break;
		}
	}
	if (feof(file))
		return 0;
	fprintf(stderr, "member: no sense in %s\n", line);
	return 1;
}
