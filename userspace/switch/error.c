// SPDX-License-Identifier: GPL-2.0
/* What is said to the user. */
#include <arpa/inet.h>
#include <stdarg.h>
#include "switch.h"

static __thread char text[512];

static void to_stderr(const char *note)
{
	fprintf(stderr, "%s\n", note);
}

void (*sw_note)(const char *text) = to_stderr;

const char *sw_error(void)
{
	return text;
}

int sw_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return -1;
}

void sw_say(const char *fmt, ...)
{
	va_list args;
	char note[512];

	va_start(args, fmt);
	vsnprintf(note, sizeof(note), fmt, args);
	va_end(args);
	sw_note(note);
}

/* IPv4 addresses are mapped into IPv6 inside, but not for people */
const char *sw_addr_text(const void *addr, char *buf, size_t len)
{
	const struct in6_addr *a = addr;

	if (IN6_IS_ADDR_V4MAPPED(a))
		return inet_ntop(AF_INET, &a->s6_addr[12], buf, len);
	return inet_ntop(AF_INET6, a, buf, len);
}
