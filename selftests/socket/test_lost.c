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

/* All that it may send at first, in one burst, which is dropped as a whole */
TEST(each_packet_of_a_burst_is_counted)
{
	static char chunk[10 * 1000], sum[sizeof(chunk)];
	unsigned long packets, bursts, lost;
	unsigned int tries = 0;
	int fd;

	host_net();
	job_add(1, "fragment 1000 timeout 600000");
	fd = new_socket(0);
	set_dtype(fd, ATP_INT32);
	ASSERT_EQ(do_join(fd, JOB, 0), 0);
	packets = counter("out_packets");
	bursts = counter("out_bursts");
	host_must("tc qdisc add dev lo root bfifo limit 1");
	memset(chunk, 1, sizeof(chunk));
	push(fd, chunk, sizeof(chunk));
	do {
		usleep(1000);
		lost = counter("out_errors");
	} while (!lost && ++tries < LIMIT_MS / 300);
	EXPECT_GE(lost, 10);
	EXPECT_EQ(counter("out_packets"), packets);
	EXPECT_EQ(counter("out_bursts"), bursts);

	host_must("tc qdisc del dev lo root");
	pull(fd, sum, sizeof(sum));
	EXPECT_EQ(memcmp(sum, chunk, sizeof(sum)), 0);
	EXPECT_GT(counter("out_bursts"), bursts);
	close(fd);
}

TAP_MAIN()
