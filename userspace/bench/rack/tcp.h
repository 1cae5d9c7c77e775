/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A plain parameter server over TCP.  A worker sends the length of a tensor in
 * bytes, eight of them in host order, and the tensor; as soon as the server has
 * a block of all workers it sends its sum to each.
 */
#ifndef _BENCH_TCP_H
#define _BENCH_TCP_H

#define TCP_PORT	4798
#define TCP_BLOCK	65536

#endif /* _BENCH_TCP_H */
