// SPDX-License-Identifier: GPL-2.0
/*
 * Command lines: words with zero bytes between them.  Whatever they are, the
 * program ends with a status, and what it sends to the kernel or to the switch
 * is in order (tool.c looks).
 */
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "tool.h"
#include "tool_env.h"

#define MOST_WORDS	128

/* What exit statuses mean is in ip(8). */
static void check_status(int status)
{
	CHECK(status == 0 || status == 1 || status == 2 || status == 255);
}

ssize_t tool_answer(const struct nlmsghdr *request, void *buf, size_t size)
{
	return tool_true_answer(request, tool_step(), buf, size);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_sink = fopen("/dev/null", "w");
	/* what it prints is not looked at */
	CHECK(fuzz_sink && freopen("/dev/null", "w", stdout));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* each word an allocation, for the sanitizer to know its end */
	char *words[MOST_WORDS + 2] = { "atp" };
	int n = 1, i;

	while (size && n <= MOST_WORDS) {
		const uint8_t *end = memchr(data, 0, size);
		size_t len = end ? (size_t)(end - data) : size;

		words[n++] = strndup((const char *)data, len);
		data += len + !!end;
		size -= len + !!end;
	}
	words[n] = NULL;
	check_status(tool_run(n, words));
	for (i = 1; i < n; i++)
		free(words[i]);
	return 0;
}
