# SPDX-License-Identifier: GPL-2.0
#
# What atp(8) and "ip atp" have in common.

# What looks at the machine itself, or works it
ATP_LOOK := check_machine.c check_job.c check_switch.c probe.c echo.c \
	    perf_run.c rounds.c
ATP_SRCS := atp.c job.c job_add.c job_show.c job_stall.c sock.c stats.c \
	    prometheus.c metrics.c counters.c snapshot.c top.c \
	    top_rate.c top_text.c top_json.c top_screen.c monitor.c switch.c \
	    fetch.c reply.c print.c addr.c units.c nl.c \
	    nlerror.c nlparse.c netlink_gen.c check.c perf.c $(ATP_LOOK)
ATP_LIBS := -lxdp -lbpf -lelf -lz -lmnl -lncurses -ltinfo -lm
ATP_MAN	 := atp.8 atp-job.8 atp-sock.8 atp-stats.8 atp-top.8 \
	    atp-monitor.8 atp-check.8 atp-perf.8
