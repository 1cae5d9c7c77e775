/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Just enough JSON to print: objects, lists, numbers and texts.  Without a
 * name, a value is an element of a list.
 */
#ifndef _ATP_SWITCH_JSON_H
#define _ATP_SWITCH_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "utf8.h"

/**
 * struct sw_json - a document that is being printed
 * @out: where to
 * @pretty: with line ends and indentation
 * @depth: open objects and lists
 * @more: something stands before in the innermost of them
 */
struct sw_json {
	FILE	*out;
	bool	pretty;
	int	depth;
	bool	more;
};

static inline void sw_json_name(struct sw_json *j, const char *name)
{
	int i;

	if (j->more)
		putc(',', j->out);
	if (j->pretty && (j->depth || j->more)) {
		putc('\n', j->out);
		for (i = 0; i < j->depth; i++)
			fputs("    ", j->out);
	}
	if (name)
		fprintf(j->out, j->pretty ? "\"%s\": " : "\"%s\":", name);
	j->more = true;
}

static inline void sw_json_open(struct sw_json *j, const char *name, char brace)
{
	sw_json_name(j, name);
	putc(brace, j->out);
	j->depth++;
	j->more = false;
}

static inline void sw_json_close(struct sw_json *j, char brace)
{
	int i;

	j->depth--;
	if (j->pretty && j->more) {
		putc('\n', j->out);
		for (i = 0; i < j->depth; i++)
			fputs("    ", j->out);
	}
	putc(brace, j->out);
	j->more = true;
	if (!j->depth)
		putc('\n', j->out);
}

static inline void sw_json_number(struct sw_json *j, const char *name,
				  uint64_t value)
{
	sw_json_name(j, name);
	fprintf(j->out, "%llu", (unsigned long long)value);
}

static inline void sw_json_bool(struct sw_json *j, const char *name,
				bool value)
{
	sw_json_name(j, name);
	fputs(value ? "true" : "false", j->out);
}

/* Names of interfaces may hold quotes and backslashes, and bytes that are no
 * text: these become the characters of the same numbers.
 */
static inline void sw_json_text(struct sw_json *j, const char *name,
				const char *text)
{
	int len;

	sw_json_name(j, name);
	putc('"', j->out);
	for (; *text; text += len ?: 1) {
		unsigned char c = *text;

		len = sw_utf8_len(text);
		if (c < 0x20 || !len)
			fprintf(j->out, "\\u%04x", c);
		else if (c == '"' || c == '\\')
			fprintf(j->out, "\\%c", c);
		else
			fwrite(text, 1, len, j->out);
	}
	putc('"', j->out);
}

#endif /* _ATP_SWITCH_JSON_H */
