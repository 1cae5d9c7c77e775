/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rounds of all-reduce, timed and checked, whoever does them: the tool itself
 * and the programs that it is compared with.
 */
#ifndef _ATP_ROUNDS_H
#define _ATP_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct rounds - what to do, and how it went
 * @name: of the system that does it
 * @rank: own rank
 * @workers: number of ranks
 * @bytes: of a tensor, a multiple of four
 * @count: number of rounds, besides one that is not timed
 * @allreduce: does one, in place, and tells what is wrong; returns 0, or -1
 * @arg: for it
 * @ns: result: nanoseconds of each round
 * @host_ns: result: CPU time of the whole machine in all of them
 * @own_ns: result: CPU time of this process in all of them
 */
struct rounds {
	const char	*name;
	unsigned int	rank;
	unsigned int	workers;
	size_t		bytes;
	unsigned int	count;
	int		(*allreduce)(void *arg, float *tensor, size_t lanes);
	void		*arg;
	uint64_t	*ns;
	uint64_t	host_ns;
	uint64_t	own_ns;
};

/* Progress goes to standard error.  Return: 0, or -1 after it was told why */
int rounds_run(struct rounds *r);
void rounds_free(struct rounds *r);

/*
 * The results on standard output, for the tool, and read from there.
 * Return: 0, or -1 if they are not there.
 */
int rounds_write(const struct rounds *r);
int rounds_read(struct rounds *r, int fd);

#ifdef __cplusplus
}
#endif

#endif /* _ATP_ROUNDS_H */
