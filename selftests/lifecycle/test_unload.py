#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""When the module may be unloaded, and what becomes of what is going on.

Sockets keep it, wherever they are; jobs do not: they end with it.
"""
import array
import errno
import os
import random
import signal
import socket
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (AF_ATP, GET, LAST, PING, PORT, Netlink,  # noqa: E402
                     Tickets, control, data, join, main, new_net, refused, same,
                     sock, sum_works, test, udp, wait_for)
from kmod import load, loaded, unload, unload_now, users  # noqa: E402

JOB = 7
RUNNING = 8
TRACING = "/sys/kernel/tracing"


def kept():
    refused(errno.EWOULDBLOCK, unload_now)
    same(loaded(), True)


def child(f, *args):
    pid = os.fork()
    if not pid:
        code = 1
        try:
            f(*args)
            code = 0
        except BaseException:    # pylint: disable=broad-exception-caught
            traceback.print_exc(file=sys.stdout)
        finally:
            sys.stdout.flush()
            os._exit(code)
    return pid


@test
def kept_by_a_descriptor_on_its_way():
    """In no process's table: sent through a local socket, not received yet."""
    load()
    a, b = socket.socketpair()
    s = sock()
    socket.send_fds(a, [b"x"], [s.fileno()])
    s.close()
    kept()
    _, fds, _, _ = socket.recv_fds(b, 1, 1)
    kept()
    os.close(fds[0])
    unload()


@test
def kept_by_a_process_that_inherited_it():
    load()
    s = sock()
    up, down = os.pipe(), os.pipe()
    pid = child(lambda: (os.close(down[1]), os.write(up[1], b"x"),
                         os.read(down[0], 1)))
    os.read(up[0], 1)
    s.close()
    kept()
    os.close(down[1])
    os.waitpid(pid, 0)
    unload()


@test
def kept_by_a_run_in_a_namespace_without_processes():
    load()
    new_net()
    Netlink().add(JOB)
    socks = join(JOB)
    new_net()
    kept()
    sum_works(socks)
    kept()
    for s in socks:
        s.close()
    unload()


@test
def kept_by_a_list_that_is_not_read_to_its_end():
    load()
    new_net()
    nl = Netlink()
    for k in range(64):
        nl.add(k, workers=["127.0.0.2"] * 32)
    # more than a socket buffers
    reader = Netlink()
    reader.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.seq += 1
    reader.s.send(dump_request(reader))
    wait_for(lambda: users() == 1, "reference of the dump")
    kept()
    reader.s.close()
    unload()


def dump_request(nl):
    body = bytes((GET, 1, 0, 0))
    head = array.array("I", [16 + len(body)]).tobytes()
    return head + array.array("H", [nl.family, 0x301]).tobytes() + \
        array.array("I", [nl.seq, 0]).tobytes() + body


def opener():
    """A socket as soon as none is left, which is when the module may go, too.
    Without pause there would always be one that RCU has not freed."""
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    while not ended:
        try:
            while users() and not ended:
                time.sleep(0.001)
        except OSError:
            pass    # nothing is loaded, or no longer
        time.sleep(random.random() / 200)
        try:
            socket.socket(AF_ATP, socket.SOCK_SEQPACKET, 0).close()
        except OSError as e:
            # between two loads there is no such family
            same(e.errno, errno.EAFNOSUPPORT)


@test
def unloaded_while_others_open_sockets():
    """Whoever comes too late has it loaded again."""
    pids = [child(opener) for _ in range(2)]
    try:
        for _ in range(5):
            wait_for(loaded, "loaded by a socket")
            unload()
    finally:
        # not killed: the modprobe of a call would go on without it
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        ends = [os.waitpid(pid, 0)[1] for pid in pids]
    same(ends, [0, 0], "what the openers ended with")
    load()
    new_net()
    Netlink().add(JOB)
    sum_works(join(JOB))


def strangers():
    """As fast as it goes: JOINs with other nonces, gradients and PINGs of runs
    that never were, for jobs that exist and one that does not."""
    tickets = {job: Tickets("127.0.0.2", job) for job in (JOB, RUNNING, 99)}
    k = 1
    while True:
        k += 1
        for job in (JOB, RUNNING, 99):
            udp("127.0.0.2", tickets[job].packet(k, 1 << k % 2))
            udp("127.0.0.2", data(job, [1, 2], epoch=k, flags=LAST))
            udp("127.0.0.2", control(PING, job, nonce=k, epoch=k))


@test
def unloaded_while_traced():
    """Its trace points go with it, whoever listens, in mid-run; and come back."""
    def write(name, text):
        with open(f"{TRACING}/{name}", "w", encoding="ascii") as f:
            f.write(text)

    for _ in range(3):
        load()
        write("events/atp/enable", "1")
        new_net()
        nl = Netlink()
        nl.add(JOB)
        socks = join(JOB)
        for s in socks:
            s.send(bytes(100000))
            s.close()
        udp("127.0.0.2", bytes(40))
        wait_for(lambda n=nl: n.drops()["version"], "drop")
        with open(f"{TRACING}/trace", encoding="ascii") as f:
            same("atp_drop:" in f.read(), True)
        unload()
        same(os.path.exists(f"{TRACING}/events/atp"), False)
        with open(f"{TRACING}/trace", encoding="ascii") as f:
            same("atp_" in f.read(), False, "traced by what is no more")


@test
def unloaded_while_packets_come():
    """The PS answers, runs begin and fail, until there is no PS."""
    unload()
    new_net()
    pid = child(strangers)
    try:
        for _ in range(5):
            load()
            nl = Netlink()
            nl.add(JOB)
            nl.add(RUNNING)
            wait_for(lambda n=nl: n.counters(JOB)["runs"], "run")
            wait_for(lambda n=nl: n.drops()["job"], "packet for no job")
            unload()
            same(loaded(), False)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("", PORT))


main()
