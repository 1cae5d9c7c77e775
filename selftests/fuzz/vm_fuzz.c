// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls on sockets of the family, random messages to its netlink family
 * and random packets to its port, from several threads of several processes, in
 * a virtual machine: what counts is what the kernel's log says, and that
 * everything can be removed afterwards (vm_test.py looks).
 *
 * usage: vm_fuzz SECONDS SEED NETNS
 *
 * NETNS, a file, is the namespace of the host that packets come from
 * (vm_packet.c).
 *
 * It ends when the time is over and everything has been reached, at the latest
 * after ten times as long: a debug kernel in an emulated machine is slow.  Each
 * thread's choices follow from the seed; how threads meet does not.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "vm_fuzz.h"

#define PROCESSES	3
#define THREADS		2

struct shared *shared;

static const struct {
	void (*fn)(struct thread *t);
	unsigned int weight;
} kinds[] = {
	{ do_socket,	60 },
	{ do_netlink,	6 },
	{ do_packet,	10 },
};

static void *run(void *arg)
{
	struct thread *t = arg;
	unsigned int i, sum = 0, choice;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		sum += kinds[i].weight;
	while (!shared->stop) {
		choice = below(t, sum);
		for (i = 0; choice >= kinds[i].weight; i++)
			choice -= kinds[i].weight;
		kinds[i].fn(t);
		count(&shared->ops);
	}
	return NULL;
}

static void nothing(int sig)
{
	(void)sig;
}

/* A process: its threads share descriptors, on purpose without any lock. */
static void child(uint64_t seed, const char *netns)
{
	/* calls that wait are interrupted */
	const struct itimerval soon = {
		.it_interval.tv_usec = 20000, .it_value.tv_usec = 20000,
	};
	const struct sigaction interrupt = { .sa_handler = nothing };
	static struct process process;
	static struct thread threads[THREADS];
	pthread_t id[THREADS];
	int i;

	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGALRM, &interrupt, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	sockets_init(&process);
	packets_init(&process, netns);
	for (i = 0; i < THREADS; i++) {
		threads[i].process = &process;
		threads[i].rng = seed + i;
		if (pthread_create(&id[i], NULL, run, &threads[i]))
			exit(2);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	exit(0);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Whoever ended by itself must have ended well. */
static int collect(pid_t *pid, bool killed)
{
	int status, bad = 0, i;

	for (i = 0; i < PROCESSES; i++) {
		if (!pid[i] || waitpid(pid[i], &status,
				       killed ? 0 : WNOHANG) != pid[i])
			continue;
		pid[i] = 0;
		if (killed && WIFSIGNALED(status) &&
		    WTERMSIG(status) == SIGKILL)
			continue;
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			printf("# process %d: status %#x\n", i, status);
			bad = 1;
		}
	}
	return bad;
}

/* What has reached nothing has tested nothing. */
static bool reached_all(void)
{
	return shared->added && shared->joined && shared->served &&
	       shared->pushed && shared->answered && shared->pulled &&
	       shared->packets && shared->bursts && shared->errors &&
	       shared->taken;
}

int main(int argc, char **argv)
{
	pid_t pid[PROCESSES] = { 0 };
	double begin, seconds;
	int i, bad = 0;
	uint64_t seed;

	if (argc != 4)
		return 2;
	seed = strtoull(argv[2], NULL, 0);
	printf("# seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	begin = now();
	seconds = atof(argv[1]);
	for (i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		if (!pid[i])
			child(seed * 0x10000 + 0x100 * i, argv[3]);
	}
	while (!bad && (now() < begin + seconds ||
			(!reached_all() && now() < begin + 10 * seconds))) {
		usleep(50000);
		bad = collect(pid, false);
	}
	/* those that hang in a call are killed in the middle of it */
	shared->stop = 1;
	for (i = 0; i < PROCESSES; i++)
		if (pid[i])
			kill(pid[i], SIGKILL);
	bad |= collect(pid, true);
	printf("# %u operations: %u jobs added, %u sockets joined, %u servers, %u chunks pushed, %u answered, %u pulled, %u packets, %u bursts, %u ICMP errors, %u JOINs taken\n",
	       shared->ops, shared->added, shared->joined, shared->served,
	       shared->pushed, shared->answered, shared->pulled,
	       shared->packets, shared->bursts, shared->errors, shared->taken);
	return bad || !reached_all();
}
