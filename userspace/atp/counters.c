// SPDX-License-Identifier: GPL-2.0
/* What counters say. */
#include <string.h>
#include "../../kernel/counters.h"
#include "../../kernel/engine/drop.h"
#include "../switch/switch_types.h"
#include "counters.h"
#include "nltable.h"

static const struct {
	const char *name;
	const char *help;
} helps[] = {
#define X(number, name, help)	{ name, help },
	ATP_MIB_WORKER(X)
	ATP_MIB_PS(X)
	ATP_MIB_HOST(X)
#undef X
#define X(number, name, help)	{ "drop_" name, help },
	ATP_DROP_REASONS(X)
#undef X
};

const char *counter_help(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(helps); i++)
		if (!strcmp(helps[i].name, name))
			return helps[i].help;
	return "counter of a newer kernel";
}

#define SOCK_AS(name, job)	{ #name, job, offsetof(struct atp_info, name) }
#define SOCK(name)		SOCK_AS(name, #name)

const struct sock_counter sock_counters[SOCK_COUNTERS] = {
	SOCK(sent),
	SOCK(resent),
	SOCK(fast_retransmits),
	SOCK(timeouts),
	SOCK_AS(ecn, "worker_ecn"),
	SOCK_AS(raw, "worker_raw"),
	SOCK(duplicates),
	SOCK(chunks),
};

uint64_t sock_counter_get(const struct atp_info *info, unsigned int i)
{
	uint64_t value;

	memcpy(&value, (const char *)info + sock_counters[i].offset,
	       sizeof(value));
	return value;
}

#define SWITCH(name, help)	{ #name, help },

const struct switch_counter switch_counters[] = { SW_COUNTERS(SWITCH) };
const unsigned int n_switch_counters = ARRAY_SIZE(switch_counters);

const struct switch_counter switch_others[] = { SW_OTHERS(SWITCH) };
const unsigned int n_switch_others = ARRAY_SIZE(switch_others);

/* Their texts end alike. */
bool switch_passed(unsigned int i)
{
	static const char end[] = "passed on";
	const char *help = switch_counters[i].help;
	size_t len = strlen(help);

	return len >= strlen(end) && !strcmp(help + len - strlen(end), end);
}
