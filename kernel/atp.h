/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects of the kernel side and what its files offer each other.
 *
 *   struct atp_net    a network namespace: jobs, UDP sockets, counters
 *   struct atp_job    a job as this host knows it; may hold a PS and workers
 *   struct atp_ps_host  the PS of a job: engine, lock, timer
 *   struct atp_sock   a worker socket: engine, chunks, timer; or that of the
 *                     application at the PS
 *
 * Locks, outer to inner; Documentation/locking.rst has the reasons:
 *
 *   genl_mutex > atp_net.lock (mutex) > socket spinlock > atp_job.lock
 *                                       socket spinlock > atp_ps_host.lock
 *
 * A user may own a socket for ever: nobody waits for him under a mutex.
 */
#ifndef _ATP_H
#define _ATP_H

#include <linux/hrtimer.h>
#include <linux/in6.h>
#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/uidgid.h>
#include <net/dst_cache.h>
#include <net/inet_sock.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include <linux/atp.h>
#include <linux/atp_netlink.h>
#include "engine/packet.h"
#include "engine/ps.h"
#include "engine/session.h"
#include "engine/worker.h"
#include "mib.h"

#define ATP_JOB_HASH		64
#define ATP_MAX_JOBS		1024

/* Fractions of memory that all PS of a namespace, or of all namespaces that
 * users made, and of the host may hold
 */
#define ATP_PS_MEM_SHARE	8
#define ATP_PS_MEM_ALL		4

/* Bytes of memory of what the PS of a job has built and not sent yet; what
 * several bursts share counts in each
 */
#define ATP_PS_OUT_MAX		(16 << 20)

/* And of what IP has taken of a job's PS, and waits in the queues of devices */
#define ATP_QUEUED_MAX		(16 << 20)

/* What a PS holds at most to write packets into: skb_page_frag_refill() */
#define ATP_PS_ROOM		(PAGE_SIZE << SKB_FRAG_PAGE_ORDER)

/* What packets of one burst may have together, with headers to follow */
#define ATP_BURST_BYTES		60000

/* What jobs and sockets make for themselves: charged to the cgroup of who asks.
 * If there is none left he is told; nobody is killed for it, and the log is not
 * his to fill.
 */
#define ATP_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* Default of SO_SNDBUF: chunks pushed and not pulled */
#define ATP_SNDBUF		(4 << 20)

/**
 * struct atp_net - per network namespace
 * @lock: serialises changes of @jobs and of the UDP sockets
 * @jobs: by atp_job_bucket(); readers use RCU
 * @njobs: jobs in @jobs
 * @ps_mem: bytes of all PS in @jobs
 * @seq: changes with @jobs, for dumps; read without lock
 * @salt: for the hash of @jobs
 * @sock4: UDP socket for IPv4 while there are jobs, else NULL; readers use RCU
 * @sock6: likewise for IPv6, NULL also where IPv6 is off; readers use RCU
 * @mib: counters
 */
struct atp_net {
	struct mutex		lock;	/* jobs, njobs, sock4, sock6 */
	struct hlist_head	jobs[ATP_JOB_HASH];
	unsigned int		njobs;
	u64			ps_mem;
	unsigned int		seq;
	u32			salt;
	struct socket __rcu	*sock4;
	struct socket __rcu	*sock6;
	struct atp_mib __percpu	*mib;
};

/**
 * struct atp_ps_host - the PS of a job in the kernel
 * @job: whose
 * @lock: protects all but @dst and @mem_size; taken with bottom halves off
 * @engine: the protocol
 * @folded: statistics already in the counters
 * @timer: for atp_ps_deadline(), soft
 * @armed: when @timer runs out, 0 if it does not
 * @stopped: there is no run any more, no timer is armed, @mem and
 *	@room are gone
 * @out: bursts to be sent, those to each host in order
 * @open: the last burst in @out to each host, if nothing for all came after it;
 *	by the lowest of its ranks
 * @out_bytes: memory of @out, which is closed to more at ATP_PS_OUT_MAX
 * @room: where packets are written, up to ATP_PS_ROOM bytes
 * @tasklet: sends them, after a batch of gradients
 * @stalled: fragment for which a stall was reported
 * @mem: cells, values and raw slots
 * @mem_size: what @mem takes
 * @server: socket of the application that makes the results, while it waits for
 *	a run or takes part in one, or NULL
 * @dst: routes to the workers
 */
struct atp_ps_host {
	struct atp_job		*job;
	spinlock_t		lock;	/* all but dst and mem_size */
	struct atp_ps		engine;
	struct atp_ps_stats	folded;
	struct hrtimer		timer;
	u64			armed;
	bool			stopped;
	struct sk_buff_head	out;
	struct sk_buff		*open[ATP_MAX_WORKERS];
	u32			out_bytes;
	struct page_frag	room;
	struct tasklet_struct	tasklet;
	u32			stalled;
	void			*mem;
	u32			mem_size;
	struct sock		*server;
	struct dst_cache	dst[ATP_MAX_WORKERS];
};

/* Sockets of a job: by rank, and the application at the PS */
#define ATP_SLOTS		(ATP_MAX_WORKERS + 1)

/**
 * struct atp_leaver - a worker that has left and says so
 * @session: with it
 * @mark: of its socket
 * @priority: likewise
 */
struct atp_leaver {
	struct atp_session	session;
	u32			mark;
	u32			priority;
};

/**
 * struct atp_job - a job as this host knows it
 * @node: in atp_net.jobs
 * @gone: in a list of those that were removed together
 * @ref: held by the hash and by each socket
 * @rcu: readers may still look
 * @net: namespace; a job goes before its namespace does
 * @params: what is fixed, but for the timeout
 * @ps_addr: address of the PS, v4-mapped for IPv4
 * @addr: address per rank, likewise
 * @alias: per rank, ranks that have the same address
 * @role: ATP_ROLE_*
 * @uid: user that may join, or INVALID_UID; read without lock
 * @gid: group that may join, or INVALID_GID; read without lock
 * @lock: protects @leaving, its timer, and writes of @socks, @dead and the
 *	times in @params
 * @dead: removed, nobody joins any more; read without lock
 * @socks: sockets on this host, by atp_job_slot(); readers use RCU
 * @leaving: per rank, one that has left and says so
 * @leave_timer: for @leaving, soft
 * @ps: if the PS is here, else NULL; stopped once the job is removed
 * @payer: UDP socket that is charged for packets that are no worker socket's,
 *	NULL once the job is removed; readers use RCU
 * @mib: counters
 */
struct atp_job {
	struct hlist_node	node;
	struct list_head	gone;
	refcount_t		ref;
	struct rcu_head		rcu;
	struct net		*net;
	struct atp_params	params;
	struct in6_addr		ps_addr;
	struct in6_addr		addr[ATP_MAX_WORKERS];
	u32			alias[ATP_MAX_WORKERS];
	u32			role;
	kuid_t			uid;
	kgid_t			gid;
	spinlock_t		lock;	/* socks, dead, times, leaving */
	bool			dead;
	struct sock __rcu	*socks[ATP_SLOTS];
	struct atp_leaver	leaving[ATP_MAX_WORKERS];
	struct hrtimer		leave_timer;
	struct atp_ps_host	*ps;
	struct sock		*payer;
	struct atp_mib __percpu	*mib;
};

/* Where atp_job.socks has a rank, or ATP_SERVER */
static inline u32 atp_job_slot(u32 rank)
{
	return min_t(u32, rank, ATP_MAX_WORKERS);
}

/* struct atp_sock.deferred: work for release_cb */
#define ATP_DEFER_TIMER		0
#define ATP_DEFER_PUSH		1
#define ATP_DEFER_REMOVED	2
#define ATP_DEFER_MTU		3

/**
 * struct atp_sock - a socket; all fields under the socket lock
 * @sk: first, as for every family
 * @inet: what the output of IP, and others there, ask the owner of a packet
 *	for, whatever family that is
 * @job: held from bind() to release(), NULL before; read without lock
 * @rank: rank in @job, or ATP_SERVER
 * @server: that of the application at the PS; no worker, timer or protocol runs
 *	then, and of @session only the state counts
 * @attached: in @job->socks
 * @dead: released; nothing is sent, armed or queued any more
 * @session: membership
 * @worker: tensors, valid once joined
 * @running: @worker is valid; read without lock
 * @run: changes with every join and when the socket leaves a run; read without
 *	lock
 * @ready: bytes of the oldest chunk if it is complete, server: of sums that the
 *	next pull may give; read without lock
 * @idle: every chunk that was pushed is complete; read without lock
 * @eof: shut down, no result comes any more; read without lock
 * @alone: others have left and nothing of this one is in flight, so no result
 *	comes; read without lock
 * @failed: a run has ended by failure; read without lock
 * @frags: window slots of @worker, charged to the socket
 * @folded: statistics of @worker already in the counters
 * @timer: for the engine's deadlines, soft
 * @armed: when @timer runs out, 0 if it does not
 * @retry: a burst found no memory or a full send buffer: try again then, 0 for
 *	no
 * @tasklet: sends after a batch of parameter packets; server: the PS has news
 * @deferred: ATP_DEFER_* bits, set while a user owns the socket
 * @dtype: data type of the next chunk; server: of the last sum
 * @memory: what all of its chunks are charged
 * @wanted: bytes that the last refused sendmsg() needed; read without lock
 * @nospace: somebody waits for room; poll sets it without lock
 * @sums: (server) that were looked at, or could not be copied; oldest first
 * @pulled: (server) first fragment that was not pulled; the PS may count more:
 *	those in @sums; read without lock
 * @unasked: (server) a result was refused, as no sum was pulled for it; read
 *	without lock
 * @dst: route to the PS
 * @mark: (SO_MARK) that @dst is for
 */
struct atp_sock {
	union {
		struct sock		sk;
		struct inet_sock	inet;
	};
	struct atp_job		*job;
	u32			rank;
	bool			server;
	bool			attached;
	bool			dead;
	struct atp_session	session;
	struct atp_worker	worker;
	bool			running;
	u32			run;
	u32			ready;
	bool			idle;
	bool			eof;
	bool			alone;
	bool			failed;
	struct atp_frag		*frags;
	struct atp_worker_stats	folded;
	struct hrtimer		timer;
	u64			armed;
	u64			retry;
	struct tasklet_struct	tasklet;
	unsigned long		deferred;
	u8			dtype;
	u64			memory;
	u32			wanted;
	bool			nospace;
	struct atp_chunk	*sums;
	u32			pulled;
	bool			unasked;
	struct dst_cache	dst;
	u32			mark;
};

/**
 * struct atp_push - a chunk and who looks at it
 * @chunk: for the engine
 * @users: the engine or who has pulled it, and who peeks; socket lock
 * @cost: what it counts in the send buffer
 * @memory: what the socket is charged for it
 * @pin: (MSG_ZEROCOPY) what keeps @chunk.pages, or NULL
 * @part: (server) it is not the end of what workers pushed as one
 */
struct atp_push {
	struct atp_chunk	chunk;
	u32			users;
	u32			cost;
	u32			memory;
	struct atp_pin		*pin;
	bool			part;
};

/* How long to sleep before another look at what nobody is told of: whether
 * others have the descriptor still
 */
static inline long atp_nap(long timeo)
{
	return min_t(long, timeo, HZ);
}

static inline void atp_woke(long *timeo, long nap, long left)
{
	if (*timeo != MAX_SCHEDULE_TIMEOUT)
		*timeo -= nap - left;
}

static inline struct atp_sock *atp_sk(const struct sock *sk)
{
	return (struct atp_sock *)sk;
}

/**
 * struct atp_skb_cb - what a received skb carries in its control block
 * @pkt: parsed header of the (first) packet; payload points into the skb
 */
struct atp_skb_cb {
	struct atp_pkt pkt;
};

static inline struct atp_pkt *atp_skb_pkt(const struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct atp_skb_cb) > sizeof(skb->cb));
	return &((struct atp_skb_cb *)skb->cb)->pkt;
}

/* One, or those of a burst that came in whole */
static inline u32 atp_skb_packets(const struct sk_buff *skb)
{
	u32 size = skb_shinfo(skb)->gso_size;

	return size ? DIV_ROUND_UP(skb->len, size) : 1;
}

/**
 * struct atp_rcv - where a look at the packets of a received skb has come to
 * @skb: with what is left of it behind the UDP header
 * @part: @skb, or one of the list that hangs on it
 * @frag: page of @part, or -1 for its head
 * @start: offset in @skb of that
 * @next: offset of the next packet
 */
struct atp_rcv {
	const struct sk_buff	*skb;
	const struct sk_buff	*part;
	int			frag;
	u32			start;
	u32			next;
};

/* main.c */
struct atp_net *atp_pernet(const struct net *net);

/* Count in the namespace and, if there is one, in the job. */
static inline void atp_count(struct net *net, struct atp_job *job, int item,
			     unsigned long n)
{
	this_cpu_add(atp_pernet(net)->mib->item[item], n);
	if (job)
		this_cpu_add(job->mib->item[item], n);
}

/* limits.c */
extern long atp_mem[3];
extern int atp_wmem[2];
extern int atp_rmem;
int atp_limits_register(void);
void atp_limits_unregister(void);

/* af_atp.c */
extern struct proto atp_prot;
int atp_family_register(void);
void atp_family_unregister(void);
int atp_sk_join(struct sock *sk, u32 job, u32 rank, bool nonblock);

/* memory.c */
u32 atp_alloc_size(u32 len);
void *atp_alloc(u32 len, gfp_t gfp);

/* sendmsg.c */
int atp_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
bool atp_sk_writeable(const struct sock *sk);
void atp_write_space(struct sock *sk);
void atp_sk_refused(struct sock *sk);
struct atp_push *atp_push_new(struct sock *sk, u32 len);
void atp_chunk_put(struct sock *sk, struct atp_chunk *chunk);

/* zerocopy.c */
u32 atp_pin_cost(u32 len);
struct atp_pin *atp_pin_chunk(struct atp_chunk *chunk,
			      const struct iov_iter *iter, gfp_t gfp);
void atp_pin_put(struct atp_pin *pin);
int atp_zerocopy_init(void);
void atp_zerocopy_exit(void);

/* recvmsg.c */
int atp_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
		int flags);

/* errqueue.c */
void atp_errqueue_add(struct sock *sk);
int atp_errqueue_recv(struct sock *sk, struct msghdr *msg);

/* ioctl.c */
int atp_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg);

/* worker.c */
void atp_sk_init(struct atp_sock *as);
void atp_sk_fold(struct atp_sock *as);
void atp_sk_arm(struct sock *sk);
void atp_sk_update(struct sock *sk);
void atp_sk_shutdown(struct sock *sk, u8 how);
void atp_sk_fail(struct sock *sk, u32 reason, u32 ranks);
void atp_sk_remove(struct sock *sk);
int atp_sk_rcv(struct sock *sk, struct sk_buff *skb);
bool atp_sk_icmp(struct sock *sk, u32 epoch, bool too_big);
void atp_sk_release_cb(struct sock *sk);
int atp_sk_errno(const struct sock *sk);

/* worker_send.c */
void atp_sk_push(struct sock *sk);
void atp_sk_send_ctl(struct atp_sock *as, u8 type);
void atp_sk_give_up(struct sock *sk, u32 reason);
void atp_sk_too_big(struct sock *sk);

/* worker_run.c */
int atp_sk_start(struct sock *sk);
void atp_sk_reset(struct sock *sk);
void atp_sk_disconnect(struct sock *sk);
void atp_sk_stop(struct sock *sk);
void atp_sk_purge(struct sock *sk);
void atp_sk_free_frags(struct sock *sk);

/* info.c */
u32 atp_sk_silence(const struct sock *sk);
void atp_sk_info(const struct sock *sk, struct atp_info *info);

/* leave.c */
void atp_leave_init(struct atp_job *job);
void atp_leave(const struct atp_sock *as);
void atp_leave_cancel(struct atp_job *job, u32 rank);
void atp_leave_stop(struct atp_job *job);

/* server.c */
void atp_server_news(struct sock *sk);
int atp_server_start(struct sock *sk);
void atp_server_leave(struct sock *sk);
void atp_server_seen(struct sock *sk);
void atp_server_shutdown(struct sock *sk);
struct atp_chunk *atp_server_pull(struct sock *sk, u32 elements, bool peek,
				  int *err);
void atp_server_put_back(struct sock *sk, struct atp_chunk *chunk);
int atp_server_answer(struct sock *sk, const struct atp_chunk *chunk);
bool atp_server_owes(const struct atp_sock *as);
void atp_server_info(const struct atp_sock *as, struct atp_info *info);

/* ps.c */
void atp_ps_act(struct atp_job *job, const struct atp_ps_out *out)
	__must_hold(&job->ps->lock);
u32 atp_ps_mem_size(const struct atp_params *params);
int atp_ps_start(struct atp_job *job);
void atp_ps_shutdown(struct atp_job *job);
void atp_ps_change_times(struct atp_ps_host *ps, u64 timeout, u64 patience);
void atp_ps_receive(struct atp_job *job, struct sk_buff *skb, u32 sender);
bool atp_ps_icmp(struct atp_job *job, u32 ranks, u32 epoch, bool too_big);

/* job.c */
struct atp_job *atp_job_find(struct atp_net *an, u32 id);
struct atp_job *atp_job_get(struct atp_net *an, u32 id);
void atp_job_put(struct atp_job *job);
int atp_job_add(struct net *net, struct atp_job *job,
		struct netlink_ext_ack *extack);
struct atp_job *atp_job_alloc(struct net *net, u32 id);
int atp_job_del(struct net *net, u32 id, struct netlink_ext_ack *extack);
void atp_job_del_all(struct net *net);
int atp_job_attach(struct atp_job *job, struct sock *sk, u32 rank);
void atp_job_detach(struct atp_job *job, struct sock *sk, u32 rank);
void atp_job_params(struct atp_job *job, struct atp_params *params);
void atp_job_set_times(struct atp_job *job, u64 timeout, u64 patience);
u32 atp_job_ranks_of(const struct atp_job *job, const struct in6_addr *addr);

/* permission.c */
bool atp_job_may_join(const struct atp_job *job, const struct net *net);
bool atp_nl_may_see_job(const struct sk_buff *skb, const struct atp_job *job);
bool atp_nl_may_see_sock(const struct sk_buff *skb, struct sock *sk);

/* udp.c */
int atp_payer_open(struct atp_job *job);
void atp_payer_close(struct atp_job *job);
int atp_udp_open(struct net *net);
void atp_udp_close(struct net *net);
void atp_drop_packets(struct net *net, struct atp_job *job, u32 packets,
		      enum atp_drop reason);
void atp_drop(struct net *net, struct atp_job *job, struct sk_buff *skb,
	      enum atp_drop reason);
void atp_addresses(const struct sk_buff *skb, struct in6_addr *src,
		   struct in6_addr *dst, bool *ce);

enum atp_drop atp_way(const struct atp_job *job, const struct atp_pkt *pkt,
		      const struct in6_addr *src, const struct in6_addr *dst,
		      u32 *ranks);
void atp_deliver(struct atp_job *job, struct sk_buff *skb, u32 ranks);

/* rcv_burst.c */
int atp_rcv_open(struct net *net);
void atp_rcv_close(struct net *net);
void atp_rcv_begin(struct atp_rcv *rcv, const struct sk_buff *skb);
bool atp_rcv_next(struct atp_rcv *rcv, struct atp_pkt *pkt,
		  enum atp_drop *reason);
void atp_rcv_end(struct sk_buff *skb, bool good);
enum atp_drop atp_rcv_one(struct sk_buff *skb);

/* icmp.c */
int atp_icmp_lookup(struct sock *usk, struct sk_buff *skb);

/* xmit.c */
struct sk_buff *atp_alloc_ctl(void **data, gfp_t gfp);
struct sk_buff *atp_alloc_burst(gfp_t gfp);
void *atp_burst_room(struct sk_buff *skb, u32 len, u32 *room);
void atp_burst_add(struct sk_buff *skb, u32 bytes);
bool atp_burst_attach(struct sk_buff *skb, struct page *page, u32 off, u32 len);
int atp_xmit(struct atp_job *job, struct sk_buff *skb, u32 gso_size,
	     const struct in6_addr *src, const struct in6_addr *dst,
	     struct dst_cache *cache);
int atp_path_mtu(struct net *net, const struct in6_addr *src,
		 const struct in6_addr *dst, u32 mark);

/* addr.c */
bool atp_addr_local(struct net *net, const struct in6_addr *addr);
bool atp_addr_valid(const struct in6_addr *addr);

/* event.c */
int atp_reason_errno(u32 reason);
void atp_event(struct net *net, enum atp_event type, u32 job, u32 epoch,
	       u32 reason, u32 ranks, u32 seq, u32 rank, gfp_t gfp);

/* netlink.c */
extern struct genl_family atp_nl_family;
int atp_netlink_register(void);
void atp_netlink_unregister(void);

#endif /* _ATP_H */
