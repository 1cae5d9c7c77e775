/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the benchmark's programs share, whatever adds their tensors: a member is
 * one rank, does what bench.py tells it, and looks at every sum it gets.
 */
#ifndef _BENCH_MEMBER_H
#define _BENCH_MEMBER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct member - a rank of a system that is measured
 * @rank: own rank
 * @workers: number of ranks
 * @prepare: called before the clock starts, with the tensors that @allreduce
 *	will get, one after the other; may be NULL
 * @allreduce: replace tensor number @index by its sum over all ranks
 * @release: called before the tensors are freed; may be NULL
 *
 * Those that return an int return 0, or -1 with errno.
 */
struct member {
	int rank;
	int workers;
	int (*prepare)(float **tensors, int number, size_t count);
	int (*allreduce)(float *tensor, size_t count, int index);
	void (*release)(void);
};

/**
 * member_serve() - do what is asked for until nobody asks any more
 * @m: the rank, ready
 * @path: Unix socket of who asks
 *
 * Return: exit status.
 */
int member_serve(const struct member *m, const char *path);

/* Number in an argument, or the end with a message */
int member_number(const char *text);
/* The end, with errno */
void member_die(const char *what) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#endif /* _BENCH_MEMBER_H */
