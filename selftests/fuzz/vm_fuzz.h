/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the fuzzer in the virtual machine share. */
#ifndef _VM_FUZZ_H
#define _VM_FUZZ_H

#include <linux/atp_packet.h>
#include <stdbool.h>
#include <stdint.h>

#define FDS	12
#define JOBS	4	/* jobs 1 to 4, half of them over IPv6 */
#define RANKS	2

/* What their addresses here end in: 10.9.0.1 and fd09::1 are the PS's */
enum who { PS = 1, WORKER = 2 };

/* A packet of any type but ATP_TYPE_DATA */
struct control {
	struct atp_hdr	hdr;
	struct atp_ctl	ctl;
};

/**
 * struct shared - what all processes see
 * @stop: end
 * @run: of each job, of the last run that somebody looked at, for packets:
 *	its epoch, and the fragment that was due
 * @heard: of each job, of each type the last packet between PS and workers
 * @told: of each job, the last PONG that says what a JOIN has to repeat
 * @nonce: of each job, of the last JOIN that was made up
 * @ops: calls
 * @added: jobs added
 * @joined: sockets that have joined
 * @served: sockets that have joined as the server
 * @pushed: chunks pushed
 * @answered: results pushed by a server
 * @pulled: chunks pulled
 * @packets: packets sent to the port
 * @bursts: of these, several at a time
 * @errors: ICMP errors sent
 * @taken: JOINs from the far host that the PS has taken
 */
struct shared {
	volatile int stop;
	struct {
		volatile uint32_t epoch, due;
	} run[JOBS + 1];
	struct control heard[JOBS + 1][ATP_TYPE_PONG + 1];
	struct control told[JOBS + 1];
	volatile uint32_t nonce[JOBS + 1];
	unsigned int ops, added, joined, served, pushed, answered, pulled,
		     packets, bursts, errors, taken;
};

/**
 * struct process - shared by the threads of one
 * @fd: sockets, -1 for none; any thread may close or replace any
 * @pass: a pair of sockets that descriptors are passed through
 * @epoll: some of the sockets are in it
 * @far: UDP sockets of who is there, and says to be the PS or a worker; by
 *	IP version and enum who
 * @icmp: raw sockets there, by IP version
 * @ear: packet sockets here, by IP version
 */
struct process {
	volatile int fd[FDS];
	int	pass[2];
	int	epoll;
	int	far[2][WORKER + 1];
	int	icmp[2];
	int	ear[2];
};

struct thread {
	struct process *process;
	uint64_t rng;
};

extern struct shared *shared;

static inline uint64_t rand64(struct thread *t)
{
	uint64_t z;

	t->rng += 0x9e3779b97f4a7c15ULL;
	z = (t->rng ^ (t->rng >> 32)) * 0xd6e8feb86659fd93ULL;
	z = (z ^ (z >> 29)) * 0xff51afd7ed558ccdULL;
	return z ^ (z >> 32);
}

static inline uint32_t below(struct thread *t, uint32_t n)
{
	return (uint32_t)((rand64(t) >> 32) * n >> 32);
}

static inline bool chance(struct thread *t, uint32_t n)
{
	return !below(t, n);
}

static inline bool is_v6(uint32_t job)
{
	return job > JOBS / 2;
}

static inline void count(unsigned int *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void sockets_init(struct process *p);
void packets_init(struct process *p, const char *netns);
void do_socket(struct thread *t);
void do_netlink(struct thread *t);
void do_packet(struct thread *t);

#endif /* _VM_FUZZ_H */
