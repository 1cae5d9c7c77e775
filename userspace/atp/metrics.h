/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Metrics in the text form that Prometheus reads: samples come in any order and
 * are written family by family.
 */
#ifndef _ATP_METRICS_H
#define _ATP_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define METRIC_NAME_MAX		96
#define METRIC_LABELS_MAX	160

/**
 * enum metric_type - what a sample may do
 * @METRIC_COUNTER: grow
 * @METRIC_GAUGE: change
 */
enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE,
};

/**
 * struct metric_family - samples of one name
 * @name: name
 * @help: what it says
 * @type: its type
 * @text: the samples
 * @len: their length
 */
struct metric_family {
	char		name[METRIC_NAME_MAX];
	const char	*help;
	enum metric_type type;
	char		*text;
	size_t		len;
};

/**
 * struct metrics - all of them
 * @family: in the order of their first samples
 * @count: how many
 * @failed: there was no memory
 */
struct metrics {
	struct metric_family *family;
	unsigned int	count;
	bool		failed;
};

/**
 * struct labels - what tells the samples of a family apart
 * @text: without the braces
 */
struct labels {
	char text[METRIC_LABELS_MAX];
};

/* Add a label to those in @labels */
void label_number(struct labels *labels, const char *name, uint32_t value);
void label_text(struct labels *labels, const char *name, const char *value);

/* A sample; @labels may be NULL.  @help is not copied. */
void metric(struct metrics *all, enum metric_type type, const char *name,
	    const char *help, const struct labels *labels, uint64_t value);
/* One of microseconds, which is written in seconds */
void metric_seconds(struct metrics *all, const char *name, const char *help,
		    const struct labels *labels, uint64_t us);

/* Return: 0, or -1 with errno if not all was written */
int metrics_write(const struct metrics *all, FILE *to);
void metrics_free(struct metrics *all);

#endif /* _ATP_METRICS_H */
