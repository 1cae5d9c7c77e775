// SPDX-License-Identifier: GPL-2.0
/*
 * The PS of a job between its engine and Linux.
 *
 * Packets come in softirq, the timer is soft; both take the lock, let the
 * engine decide and build what it wants sent.  A tasklet sends it, in bursts
 * where consecutive packets go the same way.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/udp.h>
#include "atp.h"
#include "trace.h"

/**
 * struct atp_ps_burst - control block of a burst in atp_ps_host.out
 * @rank: whose address it goes to
 * @mcast: for a switch to multiply
 * @gso_size: length of its packets
 * @last: length of its last packet, which may be shorter
 * @n: packets
 */
struct atp_ps_burst {
	u32	rank;
	bool	mcast;
	u32	gso_size;
	u32	last;
	u32	n;
};

/* Bursts that leave in one go */
#define ATP_PS_BUDGET	64

static struct atp_ps_burst *atp_ps_burst(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct atp_ps_burst) > sizeof(skb->cb));
	return (struct atp_ps_burst *)skb->cb;
}

static void atp_ps_fold(struct atp_job *job)
	__must_hold(&job->ps->lock)
{
	const u64 *now = (const u64 *)&job->ps->engine.stats;
	u64 *then = (u64 *)&job->ps->folded;
	int i;

	lockdep_assert_held(&job->ps->lock);

	BUILD_BUG_ON(sizeof(job->ps->folded) / sizeof(u64) !=
		     ATP_MIB_IN_PACKETS - ATP_MIB_SWITCH_FRAGS);
	for (i = 0; i < sizeof(job->ps->folded) / sizeof(u64); i++) {
		if (now[i] == then[i])
			continue;
		atp_count(job->net, job, ATP_MIB_SWITCH_FRAGS + i,
			  now[i] - then[i]);
		then[i] = now[i];
	}
}

/* The burst that waits last for the host of this rank, or for the switch, if
 * one more packet may join it.  Each completed fragment goes to all ranks in
 * turn, so the burst of a host is rarely the last of all.
 */
static struct sk_buff *atp_ps_open_burst(struct atp_job *job, u32 len,
					 u32 rank, bool mcast)
	__must_hold(&job->ps->lock)
{
	struct atp_ps_host *ps = job->ps;
	struct atp_ps_burst *b;
	struct sk_buff *skb;

	lockdep_assert_held(&ps->lock);

	skb = mcast ? skb_peek_tail(&ps->out) :
		      ps->open[__ffs(job->alias[rank])];
	if (!skb)
		return NULL;
	b = atp_ps_burst(skb);
	if (b->mcast != mcast || (mcast && b->rank != rank) ||
	    b->last != b->gso_size ||
	    len > b->gso_size || b->n == UDP_MAX_SEGMENTS ||
	    skb->len + len > ATP_BURST_BYTES)
		return NULL;
	return skb;
}

/* What the switch multiplies is for any rank, which must get what comes later
 * behind it.
 */
static void atp_ps_add_burst(struct atp_job *job, struct sk_buff *skb,
			     u32 rank, bool mcast)
	__must_hold(&job->ps->lock)
{
	struct atp_ps_host *ps = job->ps;

	lockdep_assert_held(&ps->lock);

	__skb_queue_tail(&ps->out, skb);
	if (mcast)
		memset(ps->open, 0, sizeof(ps->open));
	else
		ps->open[__ffs(job->alias[rank])] = skb;
}

static struct sk_buff *atp_ps_new_burst(u32 len, u32 rank, bool mcast)
{
	struct sk_buff *skb = atp_alloc_burst(GFP_ATOMIC);

	if (skb)
		*atp_ps_burst(skb) = (struct atp_ps_burst){
			.rank = rank,
			.mcast = mcast,
			.gso_size = len,
		};
	return skb;
}

/* Write a packet behind the last one, so that a burst is in few pieces.
 * Return: its length, or 0 if there is no memory.
 */
static u32 atp_ps_write(struct atp_ps_host *ps, const struct atp_ps_out *out,
			u32 rank, bool mcast)
	__must_hold(&ps->lock)
{
	u32 len = atp_ps_len(&ps->engine, out);

	lockdep_assert_held(&ps->lock);

	/* one page is all that it gets when memory is short */
	BUILD_BUG_ON(ATP_HDR_LEN + ATP_FRAGMENT_MAX > PAGE_SIZE);
	/* and none of the last reserves, which it would keep */
	if (!skb_page_frag_refill(len, &ps->room,
				  GFP_ATOMIC | __GFP_NOMEMALLOC))
		return 0;
	atp_ps_build(&ps->engine, out, rank, mcast,
		     page_address(ps->room.page) + ps->room.offset);
	return len;
}

/* What was written last goes to this rank's host, or to the switch.
 * Return: false if there is no memory, or too much waits already.
 */
static bool atp_ps_attach(struct atp_job *job, u32 len, u32 rank, bool mcast)
	__must_hold(&job->ps->lock)
{
	struct atp_ps_host *ps = job->ps;
	struct page_frag *room = &ps->room;
	struct atp_ps_burst *b;
	struct sk_buff *skb;
	u32 truesize;

	lockdep_assert_held(&ps->lock);

	skb = atp_ps_open_burst(job, len, rank, mcast);
	truesize = skb ? skb->truesize : 0;
	if (!skb || !atp_burst_attach(skb, room->page, room->offset, len)) {
		if (ps->out_bytes + len > ATP_PS_OUT_MAX)
			return false;
		skb = atp_ps_new_burst(len, rank, mcast);
		if (!skb)
			return false;
		/* there is place for a first one */
		atp_burst_attach(skb, room->page, room->offset, len);
		atp_ps_add_burst(job, skb, rank, mcast);
		truesize = 0;
	}
	b = atp_ps_burst(skb);
	b->last = len;
	b->n++;
	/* a packet costs more than what is in it, a short one much more */
	ps->out_bytes += skb->truesize - truesize;
	return true;
}

/* One packet to each host of these ranks: all get the same bytes, which are
 * written once.
 */
static void atp_ps_build_one(struct atp_job *job, const struct atp_ps_out *out,
			     u32 ranks, bool mcast)
	__must_hold(&job->ps->lock)
{
	u32 rank, len;

	lockdep_assert_held(&job->ps->lock);

	if (!ranks)
		return;
	len = atp_ps_write(job->ps, out, __ffs(ranks), mcast);
	for (; ranks; ranks &= ~job->alias[rank]) {
		rank = __ffs(ranks);
		if (!len || !atp_ps_attach(job, len, rank, mcast))
			atp_count(job->net, job, ATP_MIB_OUT_NOMEM, 1);
	}
	job->ps->room.offset += len;
}

/* A host gets one copy of what is for all its ranks: each copy would reach each
 * of them.
 */
static void atp_ps_build_out(struct atp_job *job, const struct atp_ps_out *out)
	__must_hold(&job->ps->lock)
{
	u32 ranks = out->ranks;
	u32 rank;

	lockdep_assert_held(&job->ps->lock);

	if (!out->type)
		return;
	if (out->mcast)
		atp_ps_build_one(job, out, BIT(out->mcast_rank), true);
	if (out->type == ATP_TYPE_DATA) {
		atp_ps_build_one(job, out, ranks, false);
		return;
	}
	while (ranks) {
		rank = __ffs(ranks);
		atp_ps_build_one(job, out, BIT(rank), false);
		/* others name theirs */
		if (out->type == ATP_TYPE_STATUS)
			ranks &= ~job->alias[rank];
		ranks &= ~BIT(rank);
	}
}

/* When others have waited for half the timeout and nothing was completed for so
 * long, or U64_MAX; @wait: whom for.  Once per fragment.
 */
static u64 atp_ps_stall(struct atp_ps_host *ps, struct atp_ps_wait *wait)
	__must_hold(&ps->lock)
{
	lockdep_assert_held(&ps->lock);

	if (!atp_ps_waiting(&ps->engine, wait) ||
	    ps->stalled == ps->engine.frontier + 1)
		return U64_MAX;
	return max(wait->since, ps->engine.progress) +
	       ps->engine.params.timeout / 2;
}

static void atp_ps_arm(struct atp_ps_host *ps)
	__must_hold(&ps->lock)
{
	u64 when = atp_ps_deadline(&ps->engine);
	struct atp_ps_wait wait;

	lockdep_assert_held(&ps->lock);

	when = min(when, atp_ps_stall(ps, &wait));

	if (ps->stopped || when == U64_MAX || (ps->armed && ps->armed <= when))
		return;
	ps->armed = when;
	hrtimer_start(&ps->timer, ns_to_ktime(when), HRTIMER_MODE_ABS_SOFT);
}

static void atp_ps_events(struct atp_job *job, const struct atp_ps_out *out)
	__must_hold(&job->ps->lock)
{
	u32 id = job->params.job;

	lockdep_assert_held(&job->ps->lock);

	if (out->events & ATP_PS_EV_COMPLETE)
		trace_atp_complete(job->net, id, job->ps->engine.epoch,
				   out->seq);
	if (out->events & ATP_PS_EV_RAW)
		trace_atp_fallback(job->net, id, job->ps->engine.epoch,
				   out->seq);
	/* who joins last may end a run and begin the next */
	if (out->events & ATP_PS_EV_ENDED)
		atp_event(job->net, ATP_EVENT_ENDED, id, out->ended_epoch,
			  out->reason, out->blame, out->ended_seq, U32_MAX,
			  GFP_ATOMIC);
	if (out->events & ATP_PS_EV_RUN) {
		job->ps->stalled = 0;
		atp_event(job->net, ATP_EVENT_JOINED, id, out->epoch, 0,
			  atp_all_ranks(&job->params), 0, U32_MAX, GFP_ATOMIC);
	}
}

/* After what the engine has wanted: @events of all of it. */
static void atp_ps_acted(struct atp_job *job, u32 events)
	__must_hold(&job->ps->lock)
{
	lockdep_assert_held(&job->ps->lock);

	atp_ps_fold(job);
	atp_ps_arm(job->ps);
	if (!skb_queue_empty(&job->ps->out))
		tasklet_schedule(&job->ps->tasklet);
	if (job->ps->server && events &
	    (ATP_PS_EV_RUN | ATP_PS_EV_ENDED | ATP_PS_EV_SUM))
		tasklet_schedule(&atp_sk(job->ps->server)->tasklet);
}

/* Carry out what the engine wants. */
void atp_ps_act(struct atp_job *job, const struct atp_ps_out *out)
	__must_hold(&job->ps->lock)
{
	lockdep_assert_held(&job->ps->lock);

	atp_ps_build_out(job, out);
	atp_ps_events(job, out);
	atp_ps_acted(job, out->events);
}

/* Parameter packets no longer fit the path to these ranks, and never will. */
static void atp_ps_mtu(struct atp_job *job, u32 ranks)
	__must_hold(&job->ps->lock)
{
	struct atp_ps_host *ps = job->ps;
	struct atp_ps_out out;

	lockdep_assert_held(&ps->lock);

	if (ps->stopped)
		return;
	atp_ps_fail(&ps->engine, ktime_get_ns(), ATP_REASON_MTU, ranks, &out);
	atp_ps_act(job, &out);
}

/* ICMP quotes a fragment to these ranks.  Is it of this run?  Then @too_big,
 * that it does not fit, is true.  Context: softirq under RCU.
 */
bool atp_ps_icmp(struct atp_job *job, u32 ranks, u32 epoch, bool too_big)
{
	struct atp_ps_host *ps = job->ps;
	bool known;

	lockdep_assert_in_softirq();

	spin_lock(&ps->lock);
	known = ps->engine.running && ps->engine.epoch == epoch;
	if (known && too_big)
		atp_ps_mtu(job, ranks);
	spin_unlock(&ps->lock);
	return known;
}

/* Send some of what was built, and then more: what IP does with a packet may
 * take long, and the host is to get on.  Gradients of several workers come in
 * on several CPUs; a tasklet runs on one at a time, so parameter packets leave
 * in the order in which fragments were completed: out of order they look like
 * losses.
 */
static void atp_ps_send(struct tasklet_struct *t)
{
	struct atp_ps_host *ps = from_tasklet(ps, t, tasklet);
	struct atp_job *job = ps->job;
	struct atp_ps_burst b;
	struct sk_buff_head list;
	struct sk_buff *skb;
	u32 too_big = 0;
	bool more;

	__skb_queue_head_init(&list);
	spin_lock(&ps->lock);
	while (skb_queue_len(&list) < ATP_PS_BUDGET) {
		skb = __skb_dequeue(&ps->out);
		if (!skb)
			break;
		ps->out_bytes -= skb->truesize;
		__skb_queue_tail(&list, skb);
	}
	memset(ps->open, 0, sizeof(ps->open));
	more = !skb_queue_empty(&ps->out);
	spin_unlock(&ps->lock);

	while ((skb = __skb_dequeue(&list))) {
		b = *atp_ps_burst(skb);
		memset(skb->cb, 0, sizeof(skb->cb));
		if (b.mcast)
			atp_count(job->net, job, ATP_MIB_OUT_MULTICAST, b.n);
		if (atp_xmit(job, skb, b.n > 1 ? b.gso_size : 0, &job->ps_addr,
			     &job->addr[b.rank],
			     &ps->dst[b.rank]) == -EMSGSIZE)
			too_big |= b.mcast ? atp_all_ranks(&job->params) :
					     job->alias[b.rank];
	}
	if (more)
		tasklet_schedule(t);
	if (!too_big)
		return;
	spin_lock(&ps->lock);
	atp_ps_mtu(job, too_big);
	spin_unlock(&ps->lock);
}

/* Context: softirq under RCU.  @sender: ranks that have the source address. */
void atp_ps_receive(struct atp_job *job, struct sk_buff *skb, u32 sender)
{
	struct atp_ps_host *ps = job->ps;
	struct atp_ps_out out = {};
	enum atp_drop reason;
	struct atp_rcv rcv;
	struct atp_pkt pkt;
	bool good = false;
	u32 events = 0;
	u64 now;

	lockdep_assert_in_softirq();

	atp_rcv_begin(&rcv, skb);
	spin_lock(&ps->lock);
	now = ktime_get_ns();
	while (atp_rcv_next(&rcv, &pkt, &reason)) {
		if (!reason) {
			reason = atp_ps_rx(&ps->engine, now, &pkt, sender,
					   &out);
			atp_ps_build_out(job, &out);
			atp_ps_events(job, &out);
			events |= out.events;
		}
		if (reason)
			atp_drop_packets(job->net, job, 1, reason);
		else
			good = true;
	}
	atp_ps_acted(job, events);
	spin_unlock(&ps->lock);
	atp_rcv_end(skb, good);
}

static void atp_ps_check_stall(struct atp_job *job, u64 now)
	__must_hold(&job->ps->lock)
{
	struct atp_ps_host *ps = job->ps;
	struct atp_ps_wait wait;

	lockdep_assert_held(&ps->lock);

	if (now < atp_ps_stall(ps, &wait))
		return;
	ps->stalled = ps->engine.frontier + 1;
	atp_event(job->net, ATP_EVENT_STALLED, job->params.job,
		  ps->engine.epoch, 0, wait.ranks, ps->engine.frontier, U32_MAX,
		  GFP_ATOMIC);
}

static enum hrtimer_restart atp_ps_timer(struct hrtimer *timer)
{
	struct atp_ps_host *ps = container_of(timer, struct atp_ps_host, timer);
	struct atp_job *job = ps->job;
	struct atp_ps_out out = {};
	u64 now = ktime_get_ns();

	spin_lock(&ps->lock);
	ps->armed = 0;
	if (!ps->stopped) {
		atp_ps_timeout(&ps->engine, now, &out);
		atp_ps_check_stall(job, now);
		atp_ps_act(job, &out);
	}
	spin_unlock(&ps->lock);
	return HRTIMER_NORESTART;
}

/* Context: atp_ps_host.lock, or nobody else has it any more. */
static void atp_ps_purge(struct atp_ps_host *ps)
{
	struct atp_job *job = ps->job;
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(&ps->out))) {
		atp_count(job->net, job, ATP_MIB_OUT_ERRORS,
			  atp_ps_burst(skb)->n);
		kfree_skb(skb);
	}
	memset(ps->open, 0, sizeof(ps->open));
	ps->out_bytes = 0;
}

/* Memory and routes go; what is left is for those who still look at it. */
static void atp_ps_empty(struct atp_ps_host *ps)
{
	u32 rank;

	atp_ps_purge(ps);
	for (rank = 0; rank < ps->job->params.workers; rank++)
		dst_cache_destroy(&ps->dst[rank]);
	kvfree(ps->mem);
	ps->mem = NULL;
	if (ps->room.page)
		put_page(ps->room.page);
	ps->room.page = NULL;
}

/* What a PS takes, all but ATP_PS_ROOM. */
u32 atp_ps_mem_size(const struct atp_params *params)
{
	return atp_alloc_size(atp_ps_mem(params));
}

/* Context: process; the job is not in the table yet.  The PS goes with it, also
 * if this fails.
 */
int atp_ps_start(struct atp_job *job)
{
	struct atp_ps_host *ps;
	u32 rank;
	int err;

	ps = kzalloc(sizeof(*ps), ATP_GFP);
	if (!ps)
		return -ENOMEM;
	job->ps = ps;
	ps->job = job;
	spin_lock_init(&ps->lock);
	__skb_queue_head_init(&ps->out);
	tasklet_setup(&ps->tasklet, atp_ps_send);
	hrtimer_init(&ps->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	ps->timer.function = atp_ps_timer;
	ps->mem_size = atp_ps_mem_size(&job->params);
	ps->mem = atp_alloc(atp_ps_mem(&job->params), ATP_GFP | __GFP_ZERO);
	err = ps->mem ? 0 : -ENOMEM;
	for (rank = 0; !err && rank < job->params.workers; rank++)
		err = dst_cache_init(&ps->dst[rank], ATP_GFP);
	if (err) {
		atp_ps_empty(ps);
		return err;
	}
	atp_ps_init(&ps->engine, &job->params, get_random_u32(), ps->mem);
	return 0;
}

void atp_ps_change_times(struct atp_ps_host *ps, u64 timeout, u64 patience)
{
	spin_lock_bh(&ps->lock);
	atp_ps_set_times(&ps->engine, timeout, patience);
	atp_ps_arm(ps);
	spin_unlock_bh(&ps->lock);
}

/* End the run and the timer, and free all but the PS itself: the socket of its
 * application may look at it as long as it holds the job, and finds no run.
 *
 * Context: process; no packet finds the job.
 */
void atp_ps_shutdown(struct atp_job *job)
{
	struct atp_ps_host *ps = job->ps;
	struct atp_ps_out out = {};

	/* one run of the tasklet sends the end of the run to all */
	BUILD_BUG_ON(ATP_PS_BUDGET < ATP_MAX_WORKERS);
	spin_lock_bh(&ps->lock);
	/* that leaves at once, and no result is needed then */
	atp_ps_purge(ps);
	atp_ps_stop(&ps->engine, &out);
	ps->stopped = true;
	atp_ps_act(job, &out);
	ps->server = NULL;
	spin_unlock_bh(&ps->lock);
	hrtimer_cancel(&ps->timer);
	/* waits until the last packets are out */
	tasklet_kill(&ps->tasklet);
	atp_ps_empty(ps);
}
