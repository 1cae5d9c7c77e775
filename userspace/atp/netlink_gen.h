/* SPDX-License-Identifier: GPL-2.0 */
/* Generated from Documentation/netlink/specs/atp.yaml by "make netlink-gen". */
#ifndef ATP_NETLINK_GEN_H
#define ATP_NETLINK_GEN_H

#include "nltable.h"

extern const struct nl_set atp_set_worker;
extern const struct nl_set atp_set_job;
extern const struct nl_set atp_set_counter;
extern const struct nl_set atp_set_sock;
extern const struct nl_set atp_set_family;
extern const struct nl_set atp_set_event;

extern const struct nl_enum atp_enum_role;
extern const struct nl_enum atp_enum_event;

#endif /* ATP_NETLINK_GEN_H */
