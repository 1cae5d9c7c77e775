/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ATP_PROMETHEUS_H
#define _ATP_PROMETHEUS_H

/* atp stats prometheus; @argc words follow */
int stats_prometheus(int argc, char **argv);

#endif /* _ATP_PROMETHEUS_H */
