/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Network namespaces by name.
 */
#ifndef _ATP_NETNS_H
#define _ATP_NETNS_H

/**
 * netns_enter() - move this process
 * @name: as ip-netns(8) knows it, or the path of a namespace
 *
 * Mounts are left alone, so that maps pinned by a switch stay in sight.
 *
 * Return: 0, or -1 after telling the user.
 */
int netns_enter(const char *name);

#endif /* _ATP_NETNS_H */
