// SPDX-License-Identifier: GPL-2.0
/* Text or JSON on standard output. */
#include <inttypes.h>
#include <stdio.h>
#include "../../switch/utf8.h"
#include "json_print.h"
#include "utils.h"

#define DEPTH_MAX	16

static struct {
	bool		on;
	unsigned int	depth;
	bool		filled[DEPTH_MAX];	/* something at this depth */
} out;

bool is_json_context(void)
{
	return out.on;
}

static bool as_json(enum output_type t)
{
	return out.on && t != PRINT_FP;
}

static bool as_text(enum output_type t)
{
	return !out.on && t != PRINT_JSON;
}

static void new_line(void)
{
	if (pretty)
		printf("\n%*s", (int)(4 * out.depth), "");
}

static void put_string(const char *s)
{
	int len;

	putchar('"');
	for (; *s; s += len ?: 1) {
		len = sw_utf8_len(s);
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < ' ' || *s == 0x7f || !len)
			printf("\\u%04x", (unsigned char)*s);
		else
			fwrite(s, 1, len, stdout);
	}
	putchar('"');
}

/* What comes before a value: comma, place, name. */
static void begin(const char *key)
{
	if (out.filled[out.depth])
		putchar(',');
	out.filled[out.depth] = true;
	if (out.depth)
		new_line();
	if (!key)
		return;
	put_string(key);
	printf(pretty ? ": " : ":");
}

static void open_level(const char *key, char c)
{
	begin(key);
	putchar(c);
	if (out.depth < DEPTH_MAX - 1)
		out.depth++;
	out.filled[out.depth] = false;
}

static void close_level(char c)
{
	bool filled = out.filled[out.depth];

	if (out.depth)
		out.depth--;
	if (filled)
		new_line();
	putchar(c);
}

void new_json_obj_plain(int json)
{
	out.on = json;
	out.depth = 0;
	out.filled[0] = false;
}

void delete_json_obj_plain(void)
{
	if (out.on)
		putchar('\n');
	out.on = false;
}

void new_json_obj(int json)
{
	new_json_obj_plain(json);
	if (out.on)
		open_level(NULL, '[');
}

void delete_json_obj(void)
{
	if (out.on)
		close_level(']');
	delete_json_obj_plain();
}

void open_json_object(const char *key)
{
	if (out.on)
		open_level(key, '{');
}

void close_json_object(void)
{
	if (out.on)
		close_level('}');
}

void open_json_array(enum output_type type, const char *key)
{
	if (as_json(type))
		open_level(key, '[');
	else if (as_text(type))
		printf("%s", key);
}

void close_json_array(enum output_type type, const char *key)
{
	if (as_json(type))
		close_level(']');
	else if (as_text(type))
		printf("%s", key);
}

int print_string(enum output_type t, const char *key, const char *fmt,
		 const char *value)
{
	if (as_json(t)) {
		begin(key);
		put_string(value);
	} else if (as_text(t)) {
		return printf(fmt, value);
	}
	return 0;
}

int print_uint(enum output_type t, const char *key, const char *fmt,
	       unsigned int value)
{
	if (as_json(t)) {
		begin(key);
		printf("%u", value);
	} else if (as_text(t)) {
		return printf(fmt, value);
	}
	return 0;
}

int print_u64(enum output_type t, const char *key, const char *fmt,
	      uint64_t value)
{
	if (as_json(t)) {
		begin(key);
		printf("%" PRIu64, value);
	} else if (as_text(t)) {
		return printf(fmt, value);
	}
	return 0;
}

int print_bool(enum output_type t, const char *key, const char *fmt,
	       bool value)
{
	if (as_json(t)) {
		begin(key);
		printf(value ? "true" : "false");
	} else if (as_text(t)) {
		return printf(fmt, value ? "true" : "false");
	}
	return 0;
}
