// SPDX-License-Identifier: GPL-2.0
/* ip atp: all of atp(8) as one object of ip(8). */
#include "atp.h"
#include "ip_common.h"

int do_ipatp(int argc, char **argv)
{
	return do_atp(argc, argv);
}
