// SPDX-License-Identifier: GPL-2.0
/* "atp switch" alone, so that the switch can be tested without the tool. */
#include <string.h>
#include "utils.h"
#include "switch.h"

int json, pretty;

int main(int argc, char **argv)
{
	for (argc--, argv++; argc && argv[0][0] == '-'; argc--, argv++) {
		if (!strcmp(argv[0], "-json"))
			json = 1;
		else if (!strcmp(argv[0], "-pretty"))
			pretty = 1;
	}
	if (argc && !strcmp(argv[0], "switch"))
		return do_switch(argc - 1, argv + 1);
	return 1;
}
