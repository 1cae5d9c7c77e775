/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of iproute2's json_print.h that the objects use: each call prints
 * text or JSON, whichever the user has asked for.
 */
#ifndef _ATP_COMPAT_JSON_PRINT_H
#define _ATP_COMPAT_JSON_PRINT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * enum output_type - when to print
 * @PRINT_FP: as text only
 * @PRINT_JSON: as JSON only
 * @PRINT_ANY: either way
 */
enum output_type {
	PRINT_FP = 1,
	PRINT_JSON = 2,
	PRINT_ANY = 4,
};

/* JSON from here on, if @json; an array around all that follows, or plain */
void new_json_obj(int json);
void delete_json_obj(void);
void new_json_obj_plain(int json);
void delete_json_obj_plain(void);
bool is_json_context(void);

/* @key is NULL in an array; closing ignores it */
void open_json_object(const char *key);
void close_json_object(void);
void open_json_array(enum output_type type, const char *key);
void close_json_array(enum output_type type, const char *key);

/* The value as JSON at @key, or by @fmt as text */
int print_string(enum output_type t, const char *key, const char *fmt,
		 const char *value);
int print_uint(enum output_type t, const char *key, const char *fmt,
	       unsigned int value);
int print_u64(enum output_type t, const char *key, const char *fmt,
	      uint64_t value);
int print_bool(enum output_type t, const char *key, const char *fmt,
	       bool value);

#endif /* _ATP_COMPAT_JSON_PRINT_H */
