#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""On a host that has IPv6 off since boot (test_no_ipv6.sh)."""
import errno
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (  # noqa: E402
    ATP, Netlink, join, main, new_net, refused, run, same, sum_works, test,
)

JOB = 7
PS, WORKER = "fd00::1", "fd00::2"


@test
def there_is_none():
    same(os.path.exists("/proc/sys/net/ipv6/conf"), False)


@test
def a_job_over_ipv6_is_refused():
    new_net()
    refused(errno.EADDRNOTAVAIL, Netlink().add, JOB, PS, [WORKER])


@test
def also_to_whoever_has_a_namespace():
    done = run("unshare", "-Urn", ATP, "job", "add", str(JOB), "ps", PS,
               "worker", WORKER, ok=False)
    print("#", done.stderr.strip())
    same((done.returncode, "address" in done.stderr), (2, True))


@test
def one_over_ipv4_works():
    new_net()
    Netlink().add(JOB)
    sum_works(join(JOB))


main()
