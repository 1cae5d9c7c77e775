# SPDX-License-Identifier: GPL-2.0
#
# What atp(8) and "ip atp" have in common.

ATP_SRCS := atp.c job.c job_add.c job_show.c job_stall.c sock.c stats.c \
	    monitor.c switch.c fetch.c reply.c print.c addr.c units.c \
	    nl.c nlerror.c nlparse.c netlink_gen.c
ATP_LIBS := -lbpf -lelf -lz -lmnl -lm
ATP_MAN	 := atp.8 atp-job.8 atp-sock.8 atp-stats.8 atp-monitor.8
