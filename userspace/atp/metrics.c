// SPDX-License-Identifier: GPL-2.0
/* Collects samples and writes them family by family. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "../switch/utf8.h"
#include "metrics.h"

static size_t put(char *text, size_t at, char c)
{
	if (at < METRIC_LABELS_MAX - 1)
		text[at++] = c;
	return at;
}

/* The name of an interface may hold what ends a value, and what is no text. */
void label_text(struct labels *labels, const char *name, const char *value)
{
	char *text = labels->text;
	size_t at = strlen(text);
	int len;

	at += snprintf(text + at, METRIC_LABELS_MAX - at, "%s%s=\"",
		       at ? "," : "", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\' || *value == '\n')
			at = put(text, at, '\\');
		if (!sw_utf8_len(value)) {
			at = put(text, at, '?');
			continue;
		}
		for (len = sw_utf8_len(value); len > 1; len--)
			at = put(text, at, *value++);
		at = put(text, at, *value == '\n' ? 'n' : *value);
	}
	at = put(text, at, '"');
	text[at] = 0;
}

void label_number(struct labels *labels, const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%" PRIu32, value);
	label_text(labels, name, text);
}

/* What newer kernels count may have any name. */
static void clean(char *name)
{
	for (; *name; name++) {
		if ((*name < 'a' || *name > 'z') &&
		    (*name < '0' || *name > '9'))
			*name = '_';
	}
}

/* Return: the family of this name, or NULL if there is no memory */
static struct metric_family *find_family(struct metrics *all,
					 enum metric_type type,
					 const char *name, const char *help)
{
	struct metric_family *family;
	char buf[METRIC_NAME_MAX];
	unsigned int i;

	snprintf(buf, sizeof(buf), "%s", name);
	clean(buf);
	for (i = 0; i < all->count; i++)
		if (!strcmp(all->family[i].name, buf))
			return &all->family[i];
	family = realloc(all->family, (all->count + 1) * sizeof(*family));
	if (!family)
		return NULL;
	all->family = family;
	family += all->count++;
	memset(family, 0, sizeof(*family));
	strcpy(family->name, buf);
	family->type = type;
	family->help = help;
	return family;
}

static void add_sample(struct metrics *all, enum metric_type type,
		       const char *name, const char *help,
		       const struct labels *labels, const char *value)
{
	struct metric_family *family = find_family(all, type, name, help);
	char line[METRIC_NAME_MAX + METRIC_LABELS_MAX + 40];
	char *grown;
	int len;

	if (!family)
		goto failed;
	if (labels)
		len = sprintf(line, "%s{%s} %s\n", family->name, labels->text,
			      value);
	else
		len = sprintf(line, "%s %s\n", family->name, value);
	grown = realloc(family->text, family->len + len);
	if (!grown)
		goto failed;
	family->text = grown;
	memcpy(grown + family->len, line, len);
	family->len += len;
	return;

failed:
	all->failed = true;
}

void metric(struct metrics *all, enum metric_type type, const char *name,
	    const char *help, const struct labels *labels, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	add_sample(all, type, name, help, labels, text);
}

void metric_seconds(struct metrics *all, const char *name, const char *help,
		    const struct labels *labels, uint64_t us)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64, us / 1000000,
		 us % 1000000);
	add_sample(all, METRIC_GAUGE, name, help, labels, text);
}

int metrics_write(const struct metrics *all, FILE *to)
{
	const struct metric_family *family;
	unsigned int i;

	for (i = 0; i < all->count; i++) {
		family = &all->family[i];
		fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", family->name,
			family->help, family->name,
			family->type == METRIC_COUNTER ? "counter" : "gauge");
		fwrite(family->text, 1, family->len, to);
	}
	if (all->failed)
		errno = ENOMEM;
	return all->failed || ferror(to) ? -1 : 0;
}

void metrics_free(struct metrics *all)
{
	unsigned int i;

	for (i = 0; i < all->count; i++)
		free(all->family[i].text);
	free(all->family);
	memset(all, 0, sizeof(*all));
}
