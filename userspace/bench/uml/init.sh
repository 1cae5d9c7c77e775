#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# First process of User-mode Linux, on the host's files: mount what Linux
# programs expect, run the command, report, halt.  The kernel hands over as
# variables what it was told (run.py) and does not know itself.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8 TMPDIR=/run/tmp

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
ln -s /proc/self/fd /dev/fd
mount -t bpf bpf /sys/fs/bpf
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/{lock,netns,tmp,vm}
# what stays
mount -t hostfs -o "$ATP_RUN" none /run/vm
mount -t hostfs -o "$ATP_OUT" none "$ATP_OUT"
ip link set lo up

insmod "$ATP_TOP/build/kmod/uml/atp.ko" && bash /run/vm/command
status=$?
dmesg >/run/vm/dmesg
echo "$status" >/run/vm/status
busybox poweroff -f
