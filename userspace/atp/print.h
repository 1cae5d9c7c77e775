/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Printing of what several objects show, as text or JSON.
 *
 * A @name is the key in JSON and the word before the value in text, where a
 * blank precedes it.
 */
#ifndef _ATP_PRINT_H
#define _ATP_PRINT_H

#include <netinet/in.h>
#include <stdint.h>
#include "json_print.h"

struct nlattr;

void print_field(const char *name, unsigned int value);
void print_field64(const char *name, uint64_t value);
void print_word(const char *name, const char *value);
void print_addr(const char *name, const struct in6_addr *addr);
/* JSON: at "addr"; text: without a word before it */
void print_host(const struct in6_addr *addr);
/* JSON: at @key, which says the unit; text: @name and a readable duration */
void print_ms(const char *key, const char *name, unsigned int ms);
void print_us(const char *key, const char *name, unsigned int us);
/* Room for every second rank */
#define RANKS_LEN	80

/* Numbers of the bits in @ranks, "0-2,5", in @buf.  Return: @buf */
const char *ranks_text(uint32_t ranks, char buf[RANKS_LEN]);
/* The same: JSON a list */
void print_ranks(const char *name, uint32_t ranks);
/* Counters: JSON an object at "counters", text lines indented by @indent */
void print_counters(const struct nlattr *counters, int indent);
/* One of these in text: "name value", with the indent */
void print_counter(const char *name, uint64_t value, int indent);
/* Name of an enum atp_state */
const char *sock_state_text(unsigned int state);
/* enum atp_reason at "reason" */
void print_reason(unsigned int reason);
/* Text only */
void print_text(const char *text);

#endif /* _ATP_PRINT_H */
