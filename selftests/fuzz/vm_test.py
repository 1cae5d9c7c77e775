#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The fuzzer in the virtual machine, and what must be possible after it.

usage: vm_test.py [SECONDS [SEED]]

The kernel's log is looked at by who starts this (../vm).
"""
import os
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
# pylint: disable=wrong-import-position
from atptest import (ATP, J_ID, TOP, Netlink, attrs, join, main, new_net,
                     proc_protocols, run, same, sum_works, test, u32, wait_for)
from kmod import loaded, unload

SO_TIMESTAMP = 29
FAR = "far"
# Pages that the kernel's count of a family may be off by: what each CPU has
# taken and given back is added up when it is 256 of them.
SPARE = 256 * os.cpu_count()
SECONDS, SEED = (sys.argv[1:] + ["20", "1"][len(sys.argv) - 1:])[:2]
del sys.argv[1:]


def cable():
    """To a host that may say to be anybody: vm_packet.c"""
    run("ip", "link", "set", "lo", "up")
    run("ip", "netns", "add", FAR)
    run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far",
        "netns", FAR)
    for where, device, numbers in (([], "near", (1, 2)),
                                   (["-n", FAR], "far", (9,))):
        for n in numbers:
            run("ip", *where, "address", "add", f"10.9.0.{n}/24", "dev", device)
            run("ip", *where, "address", "add", f"fd09::{n}/64", "dev", device,
                "nodad")
        run("ip", *where, "link", "set", device, "up")
    # from addresses that are here, too
    with open("/proc/sys/net/ipv4/conf/near/accept_local", "w",
              encoding="ascii") as f:
        f.write("1")


@test
def calls_messages_and_packets():
    cable()
    run("modprobe", "atp")
    # The kernel patches itself when the first socket wants time stamps and
    # when the last one goes; ../vm/run-vm.sh says what emulators make of it.
    stamps = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stamps.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMP, 1)
    done = subprocess.run(
        [os.path.join(TOP, "build/selftests/fuzz/vm_fuzz"), SECONDS, SEED,
         f"/run/netns/{FAR}"],
        check=False)
    stamps.close()
    same(done.returncode, 0, "vm_fuzz")
    run("ip", "netns", "del", FAR)


@test
def they_came():
    """Some were of use, and bursts were taken as they were."""
    counters = Netlink().counters()
    print("#", {name: n for name, n in counters.items() if n})
    for name in ("in_bursts", "drop_icmp", "drop_epoch", "drop_stranger"):
        same(counters[name] > 0, True, name)


@test
def no_socket_is_left():
    # a socket is gone before its packets and its memory are
    wait_for(lambda: proc_protocols()[0] == 0, "no sockets")
    wait_for(lambda: abs(proc_protocols()[1]) <= SPARE, "no pages")
    print("# sockets, pages:", proc_protocols())


@test
def jobs_can_be_removed():
    nl = Netlink()
    for reply in nl.dump(4):
        nl.delete(u32(dict(attrs(reply))[J_ID]))
    same(nl.dump(4), [])
    run(ATP, "job", "show")


@test
def module_can_be_removed():
    unload()
    same(loaded(), False)


@test
def all_works_again():
    run("modprobe", "atp")
    new_net()
    Netlink().add(1)
    sum_works(join(1))


main()
