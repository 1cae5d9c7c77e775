/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * libatp: all-reduce over AF_ATP for applications.
 *
 * One thread at a time may use a struct atp and its requests; different ones
 * are independent.  There are no hidden threads: what does not go on inside
 * the kernel goes on inside the calls below.  See libatp(3).
 */
#ifndef _ATP_LIBATP_H
#define _ATP_LIBATP_H

#include <stddef.h>
#include <stdint.h>

#include <linux/atp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A rank of a job */
struct atp;

/* An all-reduce under way */
struct atp_request;

/* atp_join(): return at once, the other ranks may come later */
#define ATP_NOWAIT	0x01

/**
 * atp_join() - take part in the next run of a job
 * @job: job ID, as in ``atp job add``
 * @rank: own rank, or %ATP_SERVER to make the results at the PS
 * @flags: 0: return when all ranks have joined; or %ATP_NOWAIT
 *
 * Return: the rank, to be given back by atp_leave(); or NULL with errno, and
 * atp_describe(NULL) has words for it.
 */
struct atp *atp_join(uint32_t job, uint32_t rank, unsigned int flags);

/**
 * atp_leave() - close the socket and free everything
 * @atp: rank, or NULL
 *
 * Requests that are not done end with it and their handles become invalid.  A
 * rank whose fragments others still need ends their run, with an error that
 * names it.
 */
void atp_leave(struct atp *atp);

/**
 * atp_joined() - wait until all ranks have joined
 * @atp: rank
 * @timeout: milliseconds; 0 only looks, negative has no limit
 *
 * Only needed after %ATP_NOWAIT, and only by who wants to know.
 *
 * Return: 1 joined, 0 not yet, -1 with errno.
 */
int atp_joined(struct atp *atp, int timeout);

/**
 * atp_allreduce() - replace the values by the sums over all ranks
 * @atp: rank
 * @buf: values, aligned as their type is; then the sums
 * @count: number of values, any
 * @type: %ATP_FLOAT32 or %ATP_INT32
 *
 * All ranks must call it with the same counts and types in the same order.
 * Every rank gets the same bits.
 *
 * Return: 0, or -1 with errno.  EOVERFLOW: a sum of integers does not fit; some
 * of @buf are sums, or the nearest that fit, and some still values; other calls
 * go on.  After any other error some of @buf are sums and some values, too, the
 * run is over, and all calls return it again; but EINVAL and ENOMEM of the
 * start change nothing.
 */
int atp_allreduce(struct atp *atp, void *buf, size_t count,
		  enum atp_data_type type);

/**
 * atp_allreduce_start() - begin an all-reduce and return
 * @atp: rank
 * @buf: values; belongs to the library until the request is done
 * @count: number of values, any
 * @type: %ATP_FLOAT32 or %ATP_INT32
 *
 * Any number may be under way, they are done in the order of their start.
 *
 * Return: handle, to be given back by atp_wait(); or NULL with errno.
 */
struct atp_request *atp_allreduce_start(struct atp *atp, void *buf,
					size_t count, enum atp_data_type type);

/**
 * atp_wait() - wait until an all-reduce is done
 * @request: handle; invalid after any return value but 0
 * @timeout: milliseconds; 0 only looks, negative has no limit
 *
 * Return: 1 done, 0 not yet, -1 with errno as atp_allreduce().
 */
int atp_wait(struct atp_request *request, int timeout);

/* atp_wait() that does not wait */
int atp_test(struct atp_request *request);

/**
 * atp_progress() - do what can be done without waiting
 * @atp: rank
 *
 * atp_wait(), atp_test() and atp_allreduce_start() do this, too.
 *
 * Return: number of requests that are not done yet, or -1 with errno.
 */
int atp_progress(struct atp *atp);

/**
 * atp_fd() - descriptor for poll(), select() and epoll
 * @atp: rank
 *
 * It is readable when atp_progress() has something to do, or to tell: that the
 * run has ended; and when a request is done and atp_wait() was not called yet.
 * Do not read it, do not close it.
 *
 * Return: descriptor, or -1 with errno.
 */
int atp_fd(struct atp *atp);

/**
 * atp_get_info() - what the socket knows
 * @atp: rank
 * @info: result; after a failure as it was then
 *
 * Return: 0, or -1 with errno.
 */
int atp_get_info(struct atp *atp, struct atp_info *info);

/**
 * atp_describe() - how things stand, in words
 * @atp: rank; NULL: the last atp_join() of this thread that failed
 * @text: result, "job 7: ranks 2,5 are silent"
 * @size: of @text
 *
 * Return: length of the words without the final zero, even if @size is less.
 */
int atp_describe(struct atp *atp, char *text, size_t size);

/*
 * For bindings of languages in which an exception, which a signal raises, say,
 * may come between the return of a call and the use of what it returned: the
 * same, but what must not be lost is in memory before they return.
 */

/**
 * atp_join_at() - atp_join()
 * @handle: (out) rank, or NULL
 * @job: as there
 * @rank: as there
 * @flags: as there
 *
 * Return: 0, or -1 with errno.
 */
int atp_join_at(struct atp **handle, uint32_t job, uint32_t rank,
		unsigned int flags);

/**
 * atp_leave_at() - atp_leave()
 * @handle: rank, or NULL; then NULL
 */
void atp_leave_at(struct atp **handle);

/**
 * atp_allreduce_start_at() - atp_allreduce_start()
 * @handle: (out) handle, or NULL
 * @atp: as there
 * @buf: as there
 * @count: as there
 * @type: as there
 *
 * Return: 0, or -1 with errno.
 */
int atp_allreduce_start_at(struct atp_request **handle, struct atp *atp,
			   void *buf, size_t count, enum atp_data_type type);

/**
 * atp_wait_at() - atp_wait()
 * @handle: handle; NULL as soon as the return value is not 0
 * @timeout: as there
 * @error: (out) errno, or 0, when @handle is NULL
 *
 * With NULL in @handle it returns what @error says, once more.
 *
 * Return: as atp_wait().
 */
int atp_wait_at(struct atp_request **handle, int timeout, int *error);

/**
 * struct atp_sum - sums of consecutive values, from atp_pull_sum()
 * @first: values that came before in this run
 * @count: number of values, 0 for the end of the run
 * @type: of the values
 * @last: they are the end of what the workers have pushed as one chunk
 */
struct atp_sum {
	uint64_t first;
	size_t count;
	enum atp_data_type type;
	int last;
};

/**
 * atp_pull_sum() - (with %ATP_SERVER) get the next sums over all ranks
 * @atp: from atp_join(job, ATP_SERVER, flags)
 * @buf: the sums
 * @count: values that fit into it; at least a fragment of the job
 * @sum: (out) what they are
 * @timeout: milliseconds; 0 only looks, negative has no limit
 *
 * They come as they are complete, in the order in which workers push values.
 * More may only come when atp_push_result() has answered these.
 *
 * Return: 1 with sums, or with none when all workers have left; 0 not yet; -1
 * with errno.
 */
int atp_pull_sum(struct atp *atp, void *buf, size_t count, struct atp_sum *sum,
		 int timeout);

/**
 * atp_push_result() - (with %ATP_SERVER) give all workers the results
 * @atp: from atp_join(job, ATP_SERVER, flags)
 * @buf: one result for each value of the oldest sums that have none
 * @count: as many as one or several pulls gave
 *
 * Return: 0, or -1 with errno.
 */
int atp_push_result(struct atp *atp, const void *buf, size_t count);

#ifdef __cplusplus
}
#endif

#endif /* _ATP_LIBATP_H */
