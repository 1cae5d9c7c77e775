/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the ranks push and what each of them must get back, by arithmetic that
 * shares nothing with the engine's.
 */
#ifndef _RACK_ORACLE_H
#define _RACK_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * enum values - what kind of numbers the ranks push
 * @VALUES_PLAIN: all sums fit
 * @VALUES_EDGE: partial sums saturate, sums fit
 * @VALUES_WILD: besides, sums and values that do not fit, infinities, NaN
 */
enum values {
	VALUES_PLAIN,
	VALUES_EDGE,
	VALUES_WILD,
};

/**
 * struct tensor - what kind of lanes
 * @seed: of all numbers
 * @workers: number of ranks
 * @scale: factor of float32
 * @is_float: float32, else int32
 * @values: kind of numbers
 */
struct tensor {
	uint64_t seed;
	uint32_t workers;
	uint32_t scale;
	bool is_float;
	enum values values;
};

/* The lanes that a rank pushes as this chunk */
void tensor_fill(const struct tensor *t, uint32_t rank, uint32_t chunk,
		 uint32_t *lanes, uint32_t count);

/* The lanes that every rank gets back.  Return: false if the chunk fails with
 * EOVERFLOW instead.
 */
bool tensor_expect(const struct tensor *t, uint32_t chunk, uint32_t *lanes,
		   uint32_t count);

#endif /* _RACK_ORACLE_H */
