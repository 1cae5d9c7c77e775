#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The packets that everybody refuses (../vectors/packets), at a PS in the
kernel: each is counted under its reason, and the next sum is right."""
import os
import struct

from atptest import (HERE, Info, J_TIMEOUT, Netlink, attr, join, main, new_net,
                     same, sum_works, test, udp, wait_for)

JOB, WORKER = 7, "127.0.0.2"


def vectors():
    """(name, reason, payload) of each line."""
    with open(os.path.join(HERE, "../vectors/packets"), encoding="ascii") as f:
        for line in f:
            if not line.startswith("#"):
                name, reason, _, payload = line.split()
                yield (name, reason,
                       b"" if payload == "-" else bytes.fromhex(payload))


def of_run(payload, epoch, frontier):
    """The epoch and the sequence number are relative."""
    if len(payload) < 36:
        return payload
    e, s = struct.unpack_from("!II", payload, 8)
    return payload[:8] + struct.pack("!II", (e + epoch) & 0xffffffff,
                                     (s + frontier) & 0xffffffff) + payload[16:]


@test
def each_for_its_reason():
    new_net()
    nl = Netlink()
    nl.add(JOB, workers=[WORKER] * 2, more=attr(J_TIMEOUT, 600000))
    socks = join(JOB)
    epoch, n = Info(socks[0]).epoch, 0
    for name, reason, payload in vectors():
        before = nl.drops()[reason]
        udp(WORKER, of_run(payload, epoch, Info(socks[0]).una))
        wait_for(lambda r=reason, b=before: nl.drops()[r] > b,
                 f"{name} dropped for {reason}")
        n += 1
    same(n > 50, True)
    sum_works(socks)
    same(Info(socks[0]).epoch, epoch, "the run")


main()
