// SPDX-License-Identifier: GPL-2.0
/*
 * Replies of the kernel: datagrams of any bytes.  The first byte of an input
 * chooses a command and the next whether the bytes answer the controller, too;
 * then come datagrams, each behind its length in two bytes.  Sequence number
 * and port of each message are made right, else none would be looked at.
 */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdbool.h>
#include "bytes.h"
#include "check.h"
#include "tool.h"
#include "tool_env.h"

#define MOST_WORDS	8

static const char *const commands[][MOST_WORDS] = {
	{ "atp", "job", "show" },
	{ "atp", "-json", "job" },
	{ "atp", "-stats", "job", "show", "7" },
	{ "atp", "-stats", "-json", "-pretty", "job" },
	{ "atp", "job", "stall" },
	{ "atp", "-json", "job", "stall", "7" },
	{ "atp", "sock" },
	{ "atp", "-json", "-stats", "sock", "job", "7" },
	{ "atp", "-stats", "sock" },
	{ "atp", "stats" },
	{ "atp", "-json", "stats", "job", "7" },
	{ "atp", "-ts", "monitor" },
	{ "atp", "-json", "-timestamp", "monitor", "job", "7" },
	{ "atp", "job", "del", "7" },
	{ "atp", "job", "set", "7", "timeout", "5s" },
	{ "atp", "stats", "prometheus" },
	{ "atp", "top", "count", "2" },
	{ "atp", "-json", "top", "count", "2" },
};

static struct bytes in;
static bool controller_too;

static void make_ours(const struct nlmsghdr *request, char *buf, size_t len)
{
	struct nlmsghdr *nlh;
	size_t step;

	while (len >= NLMSG_HDRLEN) {
		nlh = (struct nlmsghdr *)buf;
		nlh->nlmsg_seq = request->nlmsg_seq;
		nlh->nlmsg_pid = TOOL_PORTID;
		step = NLMSG_ALIGN((size_t)nlh->nlmsg_len);
		if (!step || step > len)
			break;
		buf += step;
		len -= step;
	}
}

ssize_t tool_answer(const struct nlmsghdr *request, void *buf, size_t size)
{
	size_t len;

	if (request->nlmsg_type == GENL_ID_CTRL && !controller_too)
		return tool_true_answer(request, tool_step(), buf, size);
	if (!in.left) {
		errno = ECONNRESET;
		return -1;
	}
	len = word(&in);
	if (len > size)
		len = size;
	len = take(&in, buf, len);
	make_ours(request, buf, len);
	return (ssize_t)len;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_sink = fopen("/dev/null", "w");
	CHECK(fuzz_sink && freopen("/dev/null", "w", stdout));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *const *command;
	char *words[MOST_WORDS];
	int n, status;

	in = (struct bytes){ data, size };
	command = commands[below(&in, sizeof(commands) / sizeof(*commands))];
	controller_too = byte(&in) & 1;
	for (n = 0; n < MOST_WORDS && command[n]; n++)
		words[n] = (char *)command[n];
	status = tool_run(n, words);
	CHECK(status >= 0 && status <= 2);
	return 0;
}
