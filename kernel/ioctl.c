// SPDX-License-Identifier: GPL-2.0
/* How much is on its way, and how much is to be pulled next. */
#include <linux/sockios.h>
#include <linux/uaccess.h>
#include <asm/ioctls.h>
#include "atp.h"

/* Bytes pushed whose result is not complete.  Context: socket lock. */
static int atp_outq(const struct atp_sock *as)
{
	sock_owned_by_me(&as->sk);

	return as->running ? as->worker.pending * 4 : 0;
}

/* Bytes of the result that recvmsg() would give.  Context: socket lock. */
static int atp_inq(const struct atp_sock *as)
{
	sock_owned_by_me(&as->sk);

	return as->ready;
}

/* An int has one layout: 32-bit programs on a 64-bit kernel come here, too. */
int atp_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct sock *sk = sock->sk;
	int value;

	lock_sock(sk);
	switch (cmd) {
	case SIOCOUTQ:
		value = atp_outq(atp_sk(sk));
		break;
	case SIOCINQ:
		value = atp_inq(atp_sk(sk));
		break;
	default:
		release_sock(sk);
		return -ENOIOCTLCMD;
	}
	release_sock(sk);
	return put_user(value, (int __user *)arg);
}
