// SPDX-License-Identifier: GPL-2.0
/*
 * The ranks of a job on bare sockets: each pushes tensors that only the oracle
 * knows and compares every lane that it gets back.
 *
 * Every rank is a process, by default in a network namespace of its own; the
 * expected sums are computed once and shared.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/atp.h>
#include <linux/errqueue.h>

#include "worker.h"

/**
 * struct result - what a rank leaves to its parent
 * @done: it ended as it should
 * @bytes: pushed and pulled
 * @joined: when the last run began, in seconds
 * @ended: when its last chunk came
 * @info: of its last socket
 * @told: what the error queue said
 */
struct result {
	bool done;
	uint64_t bytes;
	double joined;
	double ended;
	struct atp_info info;
	struct atp_error told;
};

/* Shared by all ranks */
static struct result *results;
static uint32_t *expected;
static bool *fails;

/* Of this rank's process */
static uint32_t rank;
static int sock = -1;
static int to_parent[2], from_parent[2];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void get_info(struct atp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	getsockopt(sock, SOL_ATP, ATP_INFO, info, &len);
}

static void __attribute__((noreturn, format(printf, 1, 2)))
die(const char *fmt, ...)
{
	struct atp_info info;
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (sock < 0) {
		printf("rank %u: %s\n", rank, text);
	} else {
		get_info(&info);
		printf("rank %u: %s (state %u, reason %u, ranks %#x, epoch %#x, una %u, nxt %u, end %u, cwnd %u, rto %u us, sent %llu, resent %llu, fast %llu, timeouts %llu, raw %llu, chunks %llu)\n",
		       rank, text, info.state, info.reason, info.ranks,
		       info.epoch, info.una, info.nxt, info.end, info.cwnd,
		       info.rto_us, info.sent, info.resent,
		       info.fast_retransmits, info.timeouts, info.raw,
		       info.chunks);
	}
	fflush(stdout);
	_exit(1);
}

/* What the error queue says of it must be the same. */
static void read_error_queue(int error, const struct atp_info *info)
{
	struct {
		struct sock_extended_err ee;
		struct atp_error error;
	} told;
	char control[CMSG_SPACE(sizeof(told))];
	struct msghdr msg = {
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;

	if (recvmsg(sock, &msg, MSG_ERRQUEUE) < 0)
		die("error queue: %s", strerror(errno));
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_level != SOL_ATP ||
	    cmsg->cmsg_type != ATP_RECVERR ||
	    cmsg->cmsg_len != CMSG_LEN(sizeof(told)))
		die("error queue: no message");
	memcpy(&told, CMSG_DATA(cmsg), sizeof(told));
	if ((int)told.ee.ee_errno != error || told.error.job != opt.job ||
	    told.error.rank != rank || told.error.epoch != info->epoch ||
	    told.error.reason != info->reason ||
	    told.error.ranks != info->ranks ||
	    told.error.sequence != info->una)
		die("error queue: errno %u, job %u, rank %u, epoch %#x, reason %u, ranks %#x, sequence %u",
		    told.ee.ee_errno, told.error.job, told.error.rank,
		    told.error.epoch, told.error.reason, told.error.ranks,
		    told.error.sequence);
	results[rank].told = told.error;
}

/* The run ended with an error: as asked for, or not? */
static void __attribute__((noreturn)) ended(const char *what)
{
	int error = errno;
	struct atp_info info;

	if (!opt.expect_errno)
		die("%s: %s", what, strerror(error));
	if (error != opt.expect_errno)
		die("%s: %s, expected %s", what, strerror(error),
		    strerror(opt.expect_errno));
	get_info(&info);
	if (opt.expect_ranks != ANY_RANKS && info.ranks != opt.expect_ranks)
		die("blames %#x, expected %#llx", info.ranks,
		    (unsigned long long)opt.expect_ranks);
	read_error_queue(error, &info);
	results[rank].info = info;
	results[rank].ended = now();
	results[rank].done = true;
	_exit(0);
}

static bool chunk_is_float(uint32_t chunk)
{
	return !strcmp(opt.dtype, "float32") ||
	       (!strcmp(opt.dtype, "mixed") && chunk % 2 == 0);
}

static void tensor_of(struct tensor *t, uint32_t chunk)
{
	t->seed = opt.seed;
	t->workers = opt.workers;
	t->scale = opt.scale;
	t->values = opt.values;
	t->is_float = chunk_is_float(chunk);
}

/* With --tails every length from one lane on, many just off a boundary */
static uint32_t chunk_lanes(uint32_t chunk)
{
	uint32_t h = (chunk + 1) * 2654435761U + (uint32_t)opt.seed;

	if (!opt.tails)
		return opt.lanes;
	switch (h >> 30) {
	case 0:
		return 1 + (h >> 8) % (opt.lanes < 8 ? opt.lanes : 8);
	default:
		return 1 + (h >> 8) % opt.lanes;
	}
}

static void enter(uint32_t r)
{
	char path[128];
	int fd;

	if (!*opt.netns)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s%u", opt.netns, r);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("%s: %s", path, strerror(errno));
	close(fd);
}

static void wait_for(short events, const char *what)
{
	struct pollfd p = { .fd = sock, .events = events };
	int ret;

	do {
		ret = poll(&p, 1, opt.limit * 1000);
	} while (ret < 0 && errno == EINTR);
	if (ret < 0)
		die("poll: %s", strerror(errno));
	if (!ret)
		die("%s: nothing in %u s", what, opt.limit);
}

static void join(void)
{
	struct timeval limit = { .tv_sec = opt.limit };
	struct sockaddr_atp addr = {
		.satp_family = AF_ATP,
		.satp_rank = rank,
		.satp_job = opt.job,
	};
	struct atp_join option = { .job = opt.job, .rank = rank };
	int error, flags = opt.blocking ? 0 : SOCK_NONBLOCK;
	socklen_t len = sizeof(error);

	sock = socket(AF_ATP, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
	if (sock < 0)
		die("socket: %s", strerror(errno));
	if (opt.blocking &&
	    (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit,
			sizeof(limit)) ||
	     setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit))))
		die("SO_RCVTIMEO: %s", strerror(errno));

	if (opt.join_option)
		error = setsockopt(sock, SOL_ATP, ATP_JOIN, &option,
				   sizeof(option));
	else
		error = connect(sock, (struct sockaddr *)&addr, sizeof(addr));
	if (error && (opt.blocking || errno != EINPROGRESS))
		ended("join");
	if (!opt.blocking) {
		wait_for(POLLOUT, "join");
		if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &error, &len))
			die("SO_ERROR: %s", strerror(errno));
		if (error) {
			errno = error;
			ended("join");
		}
	}
}

static void set_dtype(uint32_t chunk)
{
	int dtype = chunk_is_float(chunk) ? ATP_FLOAT32 : ATP_INT32;

	if (setsockopt(sock, SOL_ATP, ATP_DTYPE, &dtype, sizeof(dtype)))
		ended("ATP_DTYPE");
}

/* A call that has a timeout is not restarted after the process was stopped, one
 * that has none is (signal(7)).
 */
static bool interrupted(ssize_t ret)
{
	return ret < 0 && errno == EINTR && opt.limit;
}

/* Return: false if it would block */
static bool push(uint32_t chunk, const uint32_t *lanes)
{
	ssize_t want = chunk_lanes(chunk) * 4, ret;

	do {
		ret = send(sock, lanes, want, MSG_NOSIGNAL);
	} while (interrupted(ret));
	if (ret < 0 && errno == EAGAIN && !opt.blocking)
		return false;
	if (ret < 0)
		ended("send");
	if (ret != want)
		die("send: %zd of %zd bytes", ret, want);
	results[rank].bytes += want;
	return true;
}

static void compare(uint32_t chunk, const uint32_t *got)
{
	const uint32_t *want = expected + (size_t)chunk * opt.lanes;
	uint32_t i, n = chunk_lanes(chunk), wrong = 0, at = 0;

	for (i = n; i-- > 0;) {
		if (got[i] != want[i]) {
			wrong++;
			at = i;
		}
	}
	if (!wrong)
		return;
	for (i = 0; i < opt.workers; i++) {
		struct tensor t;
		uint32_t *lanes = calloc(n, 4);

		tensor_of(&t, chunk);
		tensor_fill(&t, i, chunk, lanes, n);
		printf("  rank %u pushed %#010x\n", i, lanes[at]);
		free(lanes);
	}
	die("chunk %u: %u of %u lanes are wrong, the first is %u: got %#010x, expected %#010x",
	    chunk, wrong, n, at, got[at], want[at]);
}

/* Return: false if it would block */
static bool pull(uint32_t chunk, uint32_t *lanes)
{
	struct iovec iov = { .iov_base = lanes, .iov_len = opt.lanes * 4 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t want = chunk_lanes(chunk) * 4, ret;

	/* What is not written must not look right. */
	memset(lanes, 0xa5, want);
	do {
		ret = recvmsg(sock, &msg, 0);
	} while (interrupted(ret));
	if (ret < 0 && errno == EAGAIN && !opt.blocking)
		return false;
	if (ret < 0 && errno == EOVERFLOW && fails[chunk])
		return true;
	if (ret < 0)
		ended("recv");
	if (!ret)
		die("recv: end of file");
	if (fails[chunk])
		die("chunk %u: expected EOVERFLOW", chunk);
	if (ret != want || msg.msg_flags & MSG_TRUNC)
		die("chunk %u: %zd bytes, flags %#x, expected %zd", chunk, ret,
		    msg.msg_flags, want);
	compare(chunk, lanes);
	return true;
}

/* The parent is in the namespace where the commands belong. */
static void fire(uint32_t pulled)
{
	unsigned int i;
	uint8_t b;

	for (i = 0; i < opt.triggers; i++) {
		if (opt.at[i].chunk != pulled || rank != opt.first)
			continue;
		b = i;
		if (write(to_parent[1], &b, 1) != 1 ||
		    read(from_parent[0], &b, 1) != 1)
			die("lost the parent");
		if (b)
			die("failed: %s", opt.at[i].command);
	}
	if (opt.dies && rank == opt.die_rank && pulled == opt.die_chunk) {
		results[rank].done = true;
		_exit(0);
	}
}

static void run(uint32_t begin, uint32_t *out, uint32_t *in)
{
	uint32_t pushed = begin, pulled = begin, end = begin + opt.chunks;
	bool filled = false, full = false;

	while (pulled < end) {
		while (pushed < end && pushed - pulled < opt.depth) {
			if (!filled) {
				struct tensor t;

				tensor_of(&t, pushed);
				tensor_fill(&t, rank, pushed, out,
					    chunk_lanes(pushed));
				set_dtype(pushed);
				filled = true;
			}
			full = !push(pushed, out);
			if (full)
				break;
			filled = false;
			pushed++;
		}
		if (pull(pulled, in)) {
			pulled++;
			fire(pulled);
		} else {
			wait_for(POLLIN | (full ? POLLOUT : 0), "recv");
		}
	}
}

static void __attribute__((noreturn)) rank_main(void)
{
	uint32_t *out = malloc(opt.lanes * 4);
	uint32_t *in = malloc(opt.lanes * 4);
	uint32_t i;

	if (!out || !in)
		die("no memory");
	enter(rank);
	for (i = 0; i < opt.runs; i++) {
		join();
		results[rank].joined = now();
		fire(0);
		run(i * opt.chunks, out, in);
		results[rank].ended = now();
		get_info(&results[rank].info);
		close(sock);
		sock = -1;
	}
	if (opt.expect_errno && !opt.dies)
		die("expected %s", strerror(opt.expect_errno));
	results[rank].done = true;
	_exit(0);
}

static void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return p;
}

static void prepare(void)
{
	uint32_t chunks = opt.chunks * opt.runs, i;
	struct tensor t;

	results = shared(ATP_MAX_WORKERS * sizeof(*results));
	expected = shared((size_t)chunks * opt.lanes * 4);
	fails = shared(chunks);
	for (i = 0; i < chunks; i++) {
		tensor_of(&t, i);
		fails[i] = !tensor_expect(&t, i,
					  expected + (size_t)i * opt.lanes,
					  chunk_lanes(i));
	}
}

static int summary(void)
{
	struct atp_info sum = { 0 };
	double begin = 0, end = 0;
	uint64_t bytes = 0;
	uint32_t i, bad = 0, chunks = opt.chunks * opt.runs, overflows = 0;

	for (i = opt.first; i <= opt.last; i++) {
		struct result *r = &results[i];

		bad += !r->done;
		bytes += r->bytes;
		if (r->joined && (!begin || r->joined < begin))
			begin = r->joined;
		if (r->ended > end)
			end = r->ended;
		sum.sent += r->info.sent;
		sum.resent += r->info.resent;
		sum.fast_retransmits += r->info.fast_retransmits;
		sum.timeouts += r->info.timeouts;
		sum.ecn += r->info.ecn;
		sum.raw += r->info.raw;
		sum.duplicates += r->info.duplicates;
	}
	for (i = 0; i < chunks; i++)
		overflows += fails[i];
	printf("%s ranks %u-%u of %u, chunks %u, overflowed %u, bytes %llu, seconds %.3f, sent %llu, resent %llu, fast %llu, timeouts %llu, ecn %llu, raw %llu, duplicates %llu\n",
	       bad ? "FAILED" : "right", opt.first, opt.last, opt.workers,
	       chunks, overflows, (unsigned long long)bytes,
	       end > begin ? end - begin : 0,
	       sum.sent, sum.resent, sum.fast_retransmits, sum.timeouts,
	       sum.ecn, sum.raw, sum.duplicates);
	for (i = opt.first; opt.expect_errno && i <= opt.last; i++) {
		const struct atp_error *told = &results[i].told;

		printf("told rank %u reason %u ranks %#x sequence %u missing %#x\n",
		       told->rank, told->reason, told->ranks, told->sequence,
		       told->missing);
	}
	return bad ? 1 : 0;
}

int main(int argc, char **argv)
{
	uint8_t b;
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv);
	prepare();
	if (pipe2(to_parent, O_CLOEXEC) || pipe2(from_parent, O_CLOEXEC)) {
		perror("pipe");
		return 1;
	}
	for (rank = opt.first; rank <= opt.last; rank++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (!pid) {
			/* Whoever ends the test ends all of it. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			rank_main();
		}
	}
	close(to_parent[1]);
	/* Ends when the last rank has ended. */
	while (read(to_parent[0], &b, 1) == 1) {
		status = system(opt.at[b].command);
		b = status ? 1 : 0;
		if (write(from_parent[1], &b, 1) != 1)
			break;
	}
	while (wait(&status) > 0)
		;
	return summary();
}
