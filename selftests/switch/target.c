// SPDX-License-Identifier: GPL-2.0
/* What both targets share. */
#include <string.h>
#include "target.h"

/* As they are in struct sw_host: IPv4 is mapped into IPv6 */
void t_addr(bool v6, uint32_t job, int host, uint8_t *addr)
{
	memset(addr, 0, 16);
	if (v6) {
		addr[0] = 0xfd;
		addr[7] = 0x80;
	} else {
		addr[10] = 0xff;
		addr[11] = 0xff;
		addr[12] = 10;
	}
	addr[13] = job & 0xff;
	addr[14] = 3;
	addr[15] = host + 1;
}

void t_mac(int host, uint8_t *mac)
{
	memset(mac, 0, 6);
	mac[0] = 2;
	mac[4] = 7;
	mac[5] = host + 1;
}
