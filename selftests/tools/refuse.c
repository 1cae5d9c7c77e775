// SPDX-License-Identifier: GPL-2.0
/* What every host says of packets, whatever their job: a line of hexadecimal
 * digits each on standard input, and the reason, or "ok", on standard output.
 */
#include <atp/env.h>
#include <stdio.h>
#include <string.h>
#include "packet.h"

#define MOST	9000

static const char * const reasons[] = {
	[ATP_OK] = "ok",
#define X(name, string, help) \
	[ATP_DROP_##name] = string,
	ATP_DROP_REASONS(X)
#undef X
};

int main(void)
{
	static unsigned char packet[MOST];
	static char line[2 * MOST + 2];
	struct atp_pkt pkt;
	unsigned int byte;
	size_t len;

	while (fgets(line, sizeof(line), stdin)) {
		for (len = 0; len < MOST; len++) {
			if (sscanf(&line[2 * len], "%2x", &byte) != 1)
				break;
			packet[len] = byte;
		}
		puts(reasons[atp_pkt_parse(&pkt, packet, len)]);
	}
	return 0;
}
