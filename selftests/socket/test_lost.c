// SPDX-License-Identifier: GPL-2.0
/*
 * What the own host drops on the way out is counted as that, not as sent, and
 * is sent again like all that is lost.
 */
#include "host.h"

/* Of the job at PS and worker, which share this host; a zero is not shown */
static unsigned long counter(const char *name)
{
	unsigned long value = 0;
	char command[200];
	FILE *out;

	snprintf(command, sizeof(command),
		 "%s -stats job show %u | grep -Eo '\\b%s +[0-9]+' | tr -dc 0-9",
		 ATP_TOOL, JOB, name);
	out = popen(command, "r");
	ASSERT_TRUE(out);
	if (fscanf(out, "%lu", &value) != 1)
		value = 0;
	pclose(out);
	return value;
}

static void lost_in_the_queue(const char *ps, const char *worker)
{
	unsigned long packets, errors;
	unsigned int tries = 0;
	char lane[4] = {};
	int fd;

	ASSERT_EQ(atp("job add %u ps %s worker %s timeout 600000", JOB, ps,
		      worker), 0);
	fd = new_socket(0);
	ASSERT_EQ(do_join(fd, JOB, 0), 0);
	packets = counter("out_packets");
	EXPECT_GT(packets, 0);
	EXPECT_EQ(counter("out_errors"), 0);

	/* room for no packet */
	host_must("tc qdisc add dev lo root bfifo limit 1");
	packets = counter("out_packets");
	push(fd, "lane", sizeof(lane));
	do {
		usleep(1000);
		errors = counter("out_errors");
	} while (!errors && ++tries < LIMIT_MS / 300);
	EXPECT_GT(errors, 0);
	EXPECT_EQ(counter("out_packets"), packets);

	host_must("tc qdisc del dev lo root");
	pull(fd, lane, sizeof(lane));
	EXPECT_EQ(memcmp(lane, "lane", sizeof(lane)), 0);
	EXPECT_GT(counter("out_packets"), packets);
	close(fd);
	ASSERT_EQ(atp("job del %u", JOB), 0);
}

TEST(what_the_queue_drops_is_counted)
{
	host_net();
	lost_in_the_queue("127.0.0.1", "127.0.0.2");
	host_must("ip addr add fd00::1/128 dev lo nodad");
	host_must("ip addr add fd00::2/128 dev lo nodad");
	lost_in_the_queue("fd00::1", "fd00::2");
}

TAP_MAIN()
