// SPDX-License-Identifier: GPL-2.0
/* SO_MARK and SO_PRIORITY are on every packet of a socket, and the route goes
 * by the mark, but not by SO_BINDTODEVICE.
 */
#include <arpa/inet.h>
#include <linux/atp_packet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include "host.h"

#define MARK		7
#define PRIORITY	5

static void set_option(int fd, int option, int value)
{
	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value)),
		  0);
}

/* A program for a socket: only packets with mark and priority. */
static int load_filter(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1,
		  .off = offsetof(struct __sk_buff, mark) },
		{ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 3, .src_reg = 1,
		  .off = offsetof(struct __sk_buff, priority) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 2,
		  .off = 2, .imm = MARK },
		{ .code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 3,
		  .off = 1, .imm = PRIORITY },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0,
		  .imm = 65535 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)insns,
		.insn_cnt = sizeof(insns) / sizeof(insns[0]),
		.license = (uintptr_t)"GPL",
	};
	int fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	ASSERT_GE(fd, 0);
	return fd;
}

/**
 * struct seen - packets out of lo
 * @worker: those of the worker, by enum atp_type
 * @ps: those of the PS
 */
struct seen {
	uint32_t worker[ATP_TYPE_PONG + 1];
	uint32_t ps;
};

static void look(int fd, struct seen *seen)
{
	static uint8_t frame[1 << 16];
	const struct iphdr *ip = (void *)(frame + ETH_HLEN);
	const struct udphdr *udp = (void *)(ip + 1);
	const struct atp_hdr *hdr = (void *)(udp + 1);
	struct sockaddr_ll from;
	socklen_t len;

	for (;;) {
		len = sizeof(from);
		if (recvfrom(fd, frame, sizeof(frame), 0,
			     (struct sockaddr *)&from, &len) < 0)
			break;
		if (from.sll_pkttype != PACKET_OUTGOING ||
		    from.sll_protocol != htons(ETH_P_IP) ||
		    ip->protocol != IPPROTO_UDP ||
		    udp->dest != htons(ATP_PORT))
			continue;
		if (ip->saddr == inet_addr("127.0.0.1")) {
			seen->ps++;
			continue;
		}
		ASSERT_LE(hdr->type, ATP_TYPE_PONG);
		seen->worker[hdr->type]++;
	}
	ASSERT_EQ(errno, EAGAIN);
}

/* Joining, pushing, leaving: nothing goes without, and nothing else with it. */
TEST(mark_and_priority_are_on_every_packet)
{
	struct seen all = {}, marked = {};
	char bytes[14000] = {};
	uint32_t i, tries = 0;
	int everything, some, fd;

	host_net();
	job_add(1, "");
	everything = listen_on_lo(SOCK_RAW, ETH_P_ALL);
	some = listen_on_lo(SOCK_RAW, ETH_P_ALL);
	set_option(some, SO_ATTACH_BPF, load_filter());
	fd = new_socket(0);
	set_option(fd, SO_MARK, MARK);
	set_option(fd, SO_PRIORITY, PRIORITY);
	ASSERT_EQ(do_join(fd, JOB, 0), 0);
	push(fd, bytes, sizeof(bytes));
	pull(fd, bytes, sizeof(bytes));
	close(fd);
	/* one of the copies, too */
	while (all.worker[ATP_TYPE_LEAVE] < 2 && ++tries < LIMIT_MS) {
		look(everything, &all);
		usleep(1000);
	}
	ASSERT_EQ(atp("job del %u", JOB), 0);
	look(everything, &all);
	look(some, &marked);
	EXPECT_GE(all.worker[ATP_TYPE_JOIN], 1);
	EXPECT_GE(all.worker[ATP_TYPE_DATA], 1);
	EXPECT_GE(all.worker[ATP_TYPE_LEAVE], 2);
	EXPECT_GE(all.ps, 2);
	for (i = 0; i <= ATP_TYPE_PONG; i++)
		EXPECT_EQ(marked.worker[i], all.worker[i]);
	EXPECT_EQ(marked.ps, 0);
}

/* Did a packet of the job find no route? */
static bool out_errors(void)
{
	return !host_run("%s -stats job show %u | grep -Eq 'out_errors +[1-9]'",
			 ATP_TOOL, JOB);
}

/* To a host that what is marked cannot reach */
static void unreachable_with_mark(const char *family, const char *ps,
				  const char *worker)
{
	unsigned int tries = 0;
	int fd;

	host_must("ip %s rule add fwmark %u unreachable", family, MARK);
	ASSERT_EQ(atp("job add %u ps %s worker %s timeout 600000", JOB, ps,
		      worker), 0);
	fd = new_socket(SOCK_NONBLOCK);
	set_option(fd, SO_MARK, MARK);
	EXPECT_ERRNO(do_join(fd, JOB, 0), ENETUNREACH);
	set_option(fd, SO_MARK, 0);
	EXPECT_ERRNO(do_join(fd, JOB, 0), EINPROGRESS);
	EXPECT_FALSE(out_errors());
	/* from the next packet on */
	set_option(fd, SO_MARK, MARK);
	while (!out_errors() && ++tries < LIMIT_MS)
		usleep(1000);
	EXPECT_LT(tries, LIMIT_MS);
	close(fd);
	ASSERT_EQ(atp("job del %u", JOB), 0);
}

TEST(device_is_that_of_the_route)
{
	int fd;

	host_net();
	host_to_nowhere();
	job_add(1, "");
	fd = new_socket(0);
	ASSERT_EQ(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "eth0", 5), 0);
	ASSERT_EQ(do_join(fd, JOB, 0), 0);
	sum_works(&fd, 1);
	close(fd);
}

TEST(route_goes_by_the_mark)
{
	host_net();
	host_to_nowhere();
	unreachable_with_mark("", "10.1.0.254", "10.1.0.1");
	host_must("ip addr add fd00::1/64 dev eth0 nodad");
	unreachable_with_mark("-6", "fd00::fe", "fd00::1");
}

TAP_MAIN()
