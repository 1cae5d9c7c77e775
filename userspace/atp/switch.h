/* SPDX-License-Identifier: GPL-2.0 */
/* atp switch */
#ifndef _ATP_TOOL_SWITCH_H
#define _ATP_TOOL_SWITCH_H

int do_switch(int argc, char **argv);

#endif /* _ATP_TOOL_SWITCH_H */
