// SPDX-License-Identifier: GPL-2.0
/*
 * The error queue: what recvmsg(MSG_ERRQUEUE) tells of a run that has failed.
 *
 * A run fails once, and joining the next one empties the queue, so it never
 * holds more than one message; that is charged to the receive buffer.  Besides,
 * a queueing discipline that refuses one of the socket's packets leaves that
 * here, if SO_TXTIME asks for it.
 */
#include <linux/errqueue.h>
#include "atp.h"

/* As the control message holds it */
struct atp_errmsg {
	struct sock_extended_err ee;
	struct atp_error	error;
};

/* A message that finds no memory is counted and lost; SO_ERROR and ATP_INFO say
 * the same but for the fragment.  Context: socket lock, the session has failed.
 */
void atp_errqueue_add(struct sock *sk)
{
	const struct atp_sock *as = atp_sk(sk);
	const struct atp_session *s = &as->session;
	struct atp_error *error;
	struct atp_errmsg *msg;
	struct sk_buff *skb;

	sock_owned_by_me(sk);

	skb = alloc_skb(sizeof(*msg), GFP_ATOMIC);
	if (!skb)
		goto nomem;
	msg = skb_put_zero(skb, sizeof(*msg));
	error = &msg->error;
	error->job = as->job->params.job;
	error->rank = as->rank;
	error->epoch = s->epoch;
	error->reason = s->reason;
	error->ranks = s->ranks;
	if (as->running) {
		error->sequence = as->worker.una;
		error->missing = as->worker.waiting;
	}
	msg->ee.ee_errno = -atp_reason_errno(s->reason);
	msg->ee.ee_origin = SO_EE_ORIGIN_LOCAL;
	msg->ee.ee_code = s->reason;
	msg->ee.ee_info = s->ranks;
	msg->ee.ee_data = error->sequence;

	/* the queue's own functions look there */
	memset(skb->cb, 0, sizeof(skb->cb));
	SKB_EXT_ERR(skb)->ee = msg->ee;
	if (!sock_queue_err_skb(sk, skb))
		return;
	/* no room in the receive buffer */
	kfree_skb(skb);
nomem:
	atp_count(sock_net(sk), as->job, ATP_MIB_ERR_NOMEM, 1);
}

/* Is it from atp_errqueue_add()?  A packet may be long, and not in one piece;
 * what IPsec says of one that is too big for it has no data.
 */
static bool atp_errqueue_ours(const struct sk_buff *skb)
{
	return SKB_EXT_ERR(skb)->ee.ee_origin == SO_EE_ORIGIN_LOCAL &&
	       skb->len == sizeof(struct atp_errmsg);
}

static struct sk_buff *atp_errqueue_next(struct sock *sk)
{
	struct sk_buff *skb;

	for (;;) {
		skb = sock_dequeue_err_skb(sk);
		if (!skb || atp_errqueue_ours(skb))
			return skb;
		kfree_skb(skb);
	}
}

/* As for every family it never sleeps, and MSG_PEEK makes no difference.
 * Context: process; the queue has a lock of its own.
 */
int atp_errqueue_recv(struct sock *sk, struct msghdr *msg)
{
	struct sk_buff *skb;

	skb = atp_errqueue_next(sk);
	if (!skb)
		return -EAGAIN;
	put_cmsg(msg, SOL_ATP, ATP_RECVERR, skb->len, skb->data);
	msg->msg_flags |= MSG_ERRQUEUE;
	consume_skb(skb);
	return 0;
}
