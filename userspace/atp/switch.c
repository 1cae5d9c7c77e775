// SPDX-License-Identifier: GPL-2.0
/* atp switch: the command line of libatpswitch. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <net/if.h>
#include "../switch/switch.h"
#include "json_print.h"
#include "utils.h"
#include "switch.h"

static void usage(FILE *to)
{
	fprintf(to,
		"Usage: atp switch attach dev IF [ dev IF ]... [ aggregators N ]\n"
		"                  [ payload BYTES ] [ timeout MS ] [ generic ]\n"
		"                  [ dispatcher ]\n"
		"       atp switch detach [ dev IF ]...\n"
		"       atp switch job { add | replace } ID ps HOST worker HOST\n"
		"                  [ worker HOST ]... [ quota N ]\n"
		"       atp switch job del ID\n"
		"       atp switch job refresh [ ID ]\n"
		"       atp switch port set dev IF rate MBIT [ mark USEC ]\n"
		"       atp switch refresh\n"
		"       atp switch show [ job ID ]\n"
		"       atp switch check dev IF [ dev IF ]... [ generic ]\n"
		"       atp switch help\n"
		"HOST := ADDR [ dev IF ] [ lladdr MAC ]\n");
}

static int complain(void)
{
	fprintf(stderr, "atp switch: %s\n", sw_error());
	return 2;
}

static int bad(const char *what, const char *word)
{
	if (word)
		fprintf(stderr, "atp switch: %s \"%s\"\n", what, word);
	else
		fprintf(stderr, "atp switch: %s\n", what);
	fprintf(stderr, "Try \"atp switch help\".\n");
	return 1;
}

/* A cursor over the arguments */
struct args {
	int argc;
	char **argv;
};

static const char *peek(const struct args *a)
{
	return a->argc > 0 ? a->argv[0] : NULL;
}

static const char *next(struct args *a)
{
	const char *word = peek(a);

	if (word) {
		a->argc--;
		a->argv++;
	}
	return word;
}

/* Is the next word this one?  Then go past it. */
static bool eat(struct args *a, const char *word)
{
	if (!peek(a) || strcmp(peek(a), word))
		return false;
	next(a);
	return true;
}

/* The number after the word @what */
static int number(struct args *a, const char *what, uint32_t min,
		  uint32_t *value)
{
	const char *word = next(a);
	unsigned long long v;
	char *end;

	if (!word) {
		fprintf(stderr, "atp switch: %s: number is missing\n", what);
		return -1;
	}
	errno = 0;
	v = strtoull(word, &end, 0);
	if (errno || *end || end == word || *word == '-' || v > UINT32_MAX ||
	    v < min) {
		fprintf(stderr,
			"atp switch: %s: \"%s\" is no number from %u to %u\n",
			what, word, min, UINT32_MAX);
		return -1;
	}
	*value = (uint32_t)v;
	return 0;
}

/* The name of an interface after the word dev */
static int device(struct args *a, uint32_t *ifindex)
{
	const char *word = next(a);

	if (!word)
		return bad("dev: name of an interface is missing", NULL);
	*ifindex = if_nametoindex(word);
	if (!*ifindex) {
		fprintf(stderr,
			"atp switch: no interface %s in this network namespace (ip link shows those that there are)\n",
			word);
		return -1;
	}
	return 0;
}

static int lladdr(struct args *a, uint8_t *mac)
{
	const char *word = next(a);
	unsigned int m[6];
	char more;
	int i;

	if (!word || sscanf(word, "%x:%x:%x:%x:%x:%x%c", &m[0], &m[1], &m[2],
			    &m[3], &m[4], &m[5], &more) != 6)
		return bad("lladdr: no MAC address", word ?: "");
	for (i = 0; i < 6; i++) {
		if (m[i] > 255)
			return bad("lladdr: no MAC address", word);
		mac[i] = (uint8_t)m[i];
	}
	return 0;
}

/* ADDR [ dev IF ] [ lladdr MAC ] */
static int host(struct args *a, const char *what, struct sw_where *where)
{
	const char *word = next(a);
	struct in_addr v4;

	memset(where, 0, sizeof(*where));
	if (!word)
		return bad("an address is missing after", what);
	if (inet_pton(AF_INET, word, &v4) == 1) {
		where->addr.s6_addr[10] = 0xff;
		where->addr.s6_addr[11] = 0xff;
		memcpy(&where->addr.s6_addr[12], &v4, 4);
	} else if (inet_pton(AF_INET6, word, &where->addr) != 1) {
		return bad("no IPv4 or IPv6 address", word);
	}
	for (;;) {
		if (eat(a, "dev")) {
			if (device(a, &where->dev))
				return -1;
		} else if (eat(a, "lladdr")) {
			if (lladdr(a, where->mac))
				return -1;
			where->has_mac = true;
		} else {
			return 0;
		}
	}
}

static int attach(struct args *a)
{
	struct sw_options opt = {};
	uint32_t dev[SW_PORTS];
	struct sw_switch sw;
	int n = 0, i, err = 0;

	while (peek(a)) {
		if (eat(a, "dev")) {
			if (n == SW_PORTS)
				return bad("too many ports", NULL);
			if (device(a, &dev[n++]))
				return 1;
		} else if (eat(a, "aggregators")) {
			if (number(a, "aggregators", 1, &opt.aggregators))
				return 1;
		} else if (eat(a, "payload")) {
			if (number(a, "payload", 1, &opt.payload))
				return 1;
		} else if (eat(a, "timeout")) {
			if (number(a, "timeout", 1, &opt.timeout))
				return 1;
		} else if (eat(a, "generic")) {
			opt.generic = true;
		} else if (eat(a, "dispatcher")) {
			opt.dispatcher = true;
		} else {
			return bad("what is", peek(a));
		}
	}
	if (!n)
		return bad("attach to what? Say dev IF", NULL);

	if (sw_load(&sw, &opt))
		return complain();
	for (i = 0; i < n && !err; i++)
		err = sw_port_attach(&sw, dev[i]);
	/* the other ports and the groups get the new programs too */
	if (!err && sw.was)
		err = sw_port_upgrade(&sw) || sw_job_regroup_all(&sw);
	if (!err && sw.settings.generic)
		sw_say("generic mode: every packet is copied into an skb first, expect about half the speed; older kernels give parameter packets to one worker only: of the 6.1 series, be at 6.1.178 or later");
	if (err)
		complain();
	if (err && !sw.was) {
		/* all or nothing */
		sw_port_detach_all(&sw);
		sw_pin_remove(sw.dir);
	}
	sw_close(&sw);
	return err ? 2 : 0;
}

static int detach(struct args *a)
{
	uint32_t gone[SW_PORTS], ifindex = 0;
	struct sw_switch sw;
	struct sw_port port;
	int n = 0, i, err = 0;

	if (sw_open(&sw)) {
		/* of another version: remove it all the same */
		char dir[256];

		if (peek(a) || !sw_running() ||
		    sw_pin_dir(dir, sizeof(dir), false) ||
		    sw_port_abandon(dir))
			return complain();
		return 0;
	}
	while (n < SW_PORTS && eat(a, "dev")) {
		if (device(a, &gone[n])) {
			sw_close(&sw);
			return 1;
		}
		err |= sw_port_detach(&sw, gone[n++]);
	}
	if (peek(a)) {
		sw_close(&sw);
		return bad("what is", peek(a));
	}
	if (!n)
		err = sw_port_detach_all(&sw);
	if (err)
		complain();
	/* without any port it is no switch, and packets go as before */
	if (sw_port_next(&sw, &ifindex))
		sw_pin_remove(sw.dir);
	else
		for (i = 0; i < n; i++)
			if (sw_port_find(&sw, gone[i], &port))
				sw_job_warn(&sw, gone[i]);
	sw_close(&sw);
	return err ? 2 : 0;
}

static int job_put(struct args *a, uint32_t id, bool replace)
{
	struct sw_where ps, worker[ATP_MAX_WORKERS];
	uint32_t n = 0, quota = 0;
	struct sw_switch sw;
	bool has_ps = false;
	int err;

	while (peek(a)) {
		if (eat(a, "ps")) {
			if (host(a, "ps", &ps))
				return 1;
			has_ps = true;
		} else if (eat(a, "worker")) {
			if (n == ATP_MAX_WORKERS)
				return bad("a job has at most 32 workers",
					   NULL);
			if (host(a, "worker", &worker[n++]))
				return 1;
		} else if (eat(a, "quota")) {
			if (number(a, "quota", 1, &quota))
				return 1;
		} else {
			return bad("what is", peek(a));
		}
	}
	if (!has_ps)
		return bad("where is the PS? Say ps ADDR", NULL);
	if (!n)
		return bad("where are the workers? Say worker ADDR, once per rank",
			   NULL);
	if (sw_open(&sw))
		return complain();
	err = replace ? sw_job_replace(&sw, id, &ps, worker, n, quota) :
			sw_job_add(&sw, id, &ps, worker, n, quota);
	sw_close(&sw);
	return err ? complain() : 0;
}

static int job_refresh(struct args *a)
{
	struct sw_switch sw;
	uint32_t id = 0;
	bool all = !peek(a);
	int err;

	if (!all && number(a, "job", 0, &id))
		return 1;
	if (peek(a))
		return bad("what is", peek(a));
	if (sw_open(&sw))
		return complain();
	sw_unlock_all(&sw);
	/* what is wrong with a port does not keep the jobs from it */
	err = sw_port_refresh(&sw) ? complain() : 0;
	if (all ? sw_job_refresh_all(&sw) : sw_job_refresh(&sw, id))
		err = complain();
	sw_close(&sw);
	return err;
}

static int job(struct args *a)
{
	struct sw_switch sw;
	bool replace;
	uint32_t id;
	int err;

	replace = eat(a, "replace");
	if (replace || eat(a, "add")) {
		if (number(a, "job", 0, &id))
			return 1;
		return job_put(a, id, replace);
	}
	if (eat(a, "del") || eat(a, "delete")) {
		if (number(a, "job", 0, &id))
			return 1;
		if (peek(a))
			return bad("what is", peek(a));
		if (sw_open(&sw))
			return complain();
		err = sw_job_del(&sw, id);
		sw_close(&sw);
		return err ? complain() : 0;
	}
	if (eat(a, "refresh"))
		return job_refresh(a);
	if (!peek(a) || eat(a, "help")) {
		usage(stdout);
		return 0;
	}
	return bad("job: what is", peek(a));
}

static int port(struct args *a)
{
	uint32_t dev = 0, rate = 0, mark = 0;
	bool has_rate = false;
	struct sw_switch sw;
	int err;

	if (!peek(a) || eat(a, "help")) {
		usage(stdout);
		return 0;
	}
	if (!eat(a, "set"))
		return bad("port: what is", peek(a));
	while (peek(a)) {
		if (eat(a, "dev")) {
			if (device(a, &dev))
				return 1;
		} else if (eat(a, "rate")) {
			if (number(a, "rate", 0, &rate))
				return 1;
			has_rate = true;
		} else if (eat(a, "mark")) {
			if (number(a, "mark", 1, &mark))
				return 1;
		} else {
			return bad("what is", peek(a));
		}
	}
	if (!dev || !has_rate)
		return bad("port set needs dev IF and rate MBIT", NULL);
	if (sw_open(&sw))
		return complain();
	err = sw_port_rate(&sw, dev, rate, mark);
	sw_close(&sw);
	return err ? complain() : 0;
}

/* As a text: nobody else may change the switch as long as it is open, and who
 * reads what is printed may take his time.  Return: NULL if sw_error() says why
 */
static char *describe(const uint32_t *id)
{
	struct sw_switch sw;
	char *text = NULL;
	size_t len = 0;
	int err = -1;
	FILE *out;

	out = open_memstream(&text, &len);
	if (!out) {
		sw_fail("no memory");
		return NULL;
	}
	if (!sw_open(&sw)) {
		err = sw_show(&sw, out, json, pretty, id);
		sw_close(&sw);
	}
	if (fclose(out) && !err)
		err = sw_fail("no memory");
	if (!err)
		return text;
	free(text);
	return NULL;
}

static int show(struct args *a)
{
	bool one = false;
	uint32_t id;
	char *text;

	if (eat(a, "job")) {
		if (number(a, "job", 0, &id))
			return 1;
		one = true;
	}
	if (peek(a))
		return bad("what is", peek(a));
	text = describe(one ? &id : NULL);
	if (!text)
		return complain();
	fputs(text, stdout);
	free(text);
	return 0;
}

static void print_finding(const struct sw_finding *f, void *arg)
{
	bool *bad_one = arg;

	open_json_object(NULL);
	print_string(PRINT_ANY, "state", "%-4s ",
		     f->bad ? "BAD" : *f->mend ? "note" : "ok");
	if (*f->dev)
		print_string(PRINT_ANY, "dev", "%s: ", f->dev);
	print_string(PRINT_ANY, "what", "%s", f->what);
	if (*f->mend) {
		print_string(PRINT_ANY, "found", ": %s", f->found);
		print_string(PRINT_ANY, "hint", ": %s", f->mend);
	}
	print_string(PRINT_FP, NULL, "%s", "\n");
	close_json_object();
	if (f->bad)
		*bad_one = true;
}

static int check(struct args *a)
{
	uint32_t dev[SW_PORTS];
	bool generic = false, bad_one = false;
	int n = 0, err;

	while (peek(a)) {
		if (eat(a, "dev")) {
			if (n == SW_PORTS)
				return bad("too many ports", NULL);
			if (device(a, &dev[n++]))
				return 1;
		} else if (eat(a, "generic")) {
			generic = true;
		} else {
			return bad("what is", peek(a));
		}
	}
	new_json_obj(json);
	err = sw_preflight(dev, n, generic, print_finding, &bad_one);
	delete_json_obj();
	if (err)
		return complain();
	return bad_one ? 2 : 0;
}

int do_switch(int argc, char **argv)
{
	struct args a = { argc, argv };

	if (!peek(&a) || eat(&a, "show") || eat(&a, "list"))
		return show(&a);
	if (eat(&a, "attach"))
		return attach(&a);
	if (eat(&a, "detach"))
		return detach(&a);
	if (eat(&a, "job"))
		return job(&a);
	if (eat(&a, "port"))
		return port(&a);
	if (eat(&a, "refresh"))
		return job_refresh(&a);
	if (eat(&a, "check"))
		return check(&a);
	if (eat(&a, "help")) {
		usage(stdout);
		return 0;
	}
	return bad("what is", peek(&a));
}
