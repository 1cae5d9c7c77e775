/* SPDX-License-Identifier: GPL-2.0 */
/* Chunks with memory of their own, in one piece or in pages */
#ifndef _ATP_ENGINE_CHUNK_H
#define _ATP_ENGINE_CHUNK_H

#include <stdlib.h>

#include "worker.h"

/* Pages on their own, so that the sanitizer sees who leaves one */
static struct atp_chunk *chunk_in_pages(u32 elements, u32 skip)
{
	struct atp_chunk *chunk = calloc(1, sizeof(*chunk));
	u32 i, n;

	n = (skip + elements + ATP_PAGE_LANES - 1) / ATP_PAGE_LANES;
	chunk->elements = elements;
	chunk->skip = skip;
	chunk->pages = calloc(n, sizeof(*chunk->pages));
	for (i = 0; i < n; i++)
		chunk->pages[i] = calloc(1, PAGE_SIZE);
	return chunk;
}

static struct atp_chunk *chunk_in_one(u32 elements)
{
	struct atp_chunk *chunk = calloc(1, sizeof(*chunk));

	chunk->elements = elements;
	chunk->data = calloc(elements, 4);
	return chunk;
}

static u32 *chunk_lane(const struct atp_chunk *chunk, u32 i)
{
	u32 n = 1;

	return atp_chunk_lanes(chunk, i, &n);
}

static void chunk_free(struct atp_chunk *chunk)
{
	u32 i, n;

	n = (chunk->skip + chunk->elements + ATP_PAGE_LANES - 1) /
	    ATP_PAGE_LANES;
	for (i = 0; chunk->pages && i < n; i++)
		free(chunk->pages[i]);
	free(chunk->pages);
	free(chunk->data);
	free(chunk);
}

#endif /* _ATP_ENGINE_CHUNK_H */
