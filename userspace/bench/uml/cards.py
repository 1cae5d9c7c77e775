# SPDX-License-Identifier: GPL-2.0
"""Network cards for the hosts of the rack, and what they and the switch cost.

A veth carries what a sender calls one segment of 64 KiB as one buffer to the
receiver; no wire does.  So each host has a card here: a device that takes
segments and open checksums from the host, cuts and completes them, and gives
packets of the MTU to the cable.  What comes by the cable it gives to the host as
it is.  It lives in a namespace of its own.

      atp-w0                  atp-cards                     atp-switch
    +---------+     +---------------------------+     +-----------------+
    |   eth0 -|-----|- c-w0 --- b-w0 --- p-w0 --|-----|- w0 --- br0 --- |
    +---------+     +---------------------------+     +-----------------+

Threads of their own poll all devices, so that what is not the hosts' work is
known by itself.
"""
import os
import subprocess

import links

TICK = os.sysconf("SC_CLK_TCK")


def _ip(namespace, lines):
    subprocess.run(["ip", "-n", namespace, "-batch", "-"], text=True,
                   input="".join(f"{line}\n" for line in lines), check=True)


def install(hosts, mtu):
    """Between the hosts and the switch of a rack that is up."""
    subprocess.run(["ip", "netns", "add", "atp-cards"], check=True)
    for host in hosts:
        _ip("atp-switch", [
            f"link set {host} nomaster down",
            f"link set {host} netns atp-cards name c-{host}",
            f"link add {host} mtu {mtu} gro_max_size 1 type veth peer "
            f"name p-{host} mtu {mtu} netns atp-cards",
            f"link set {host} master br0 addrgenmode none up"])
        _ip("atp-cards", [
            f"link add b-{host} type bridge stp_state 0 forward_delay 0 "
            "mcast_snooping 0",
            f"link set b-{host} mtu {mtu} addrgenmode none up",
            # polled, but nothing is merged
            f"link set c-{host} master b-{host} gro_max_size 1 addrgenmode "
            "none up",
            f"link set p-{host} master b-{host} gro_max_size 1 addrgenmode "
            "none up"])
        links.features("switch", host, "gro", "on")
        links.features("cards", f"c-{host}", "gro", "on")
        links.features("cards", f"p-{host}", "gro", "on", "tx", "off", "tso",
                       "off", "gso", "off", "tx-udp-segmentation", "off")
    _threads("switch", hosts)
    _threads("cards", [f"{end}-{host}" for host in hosts for end in "cp"])
    for host in hosts:
        _threads(host, ["eth0"])


def _threads(namespace, devices):
    # which mounts a /sys of that namespace
    subprocess.run(
        ["ip", "netns", "exec", f"atp-{namespace}", "sh", "-c",
         "for dev; do echo 1 >/sys/class/net/$dev/threaded || exit; done",
         "sh", *devices], check=True)


def _stats():
    """/proc/PID/stat of all"""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii",
                      errors="replace") as f:
                yield f.read()
        except OSError:     # it has ended
            pass


def taken(stats, hosts):
    """Ticks of the threads that poll the switch's ports, and the cards"""
    ports, cards = 0, 0
    names = {f"{end}-{host}" for host in hosts for end in "cp"}
    for stat in stats:
        name, _, rest = stat.partition("(")[2].rpartition(")")
        if not name.startswith("napi/"):
            continue
        # napi/DEVICE-NUMBER
        device, fields = name[5:].rpartition("-")[0], rest.split()
        ticks = int(fields[11]) + int(fields[12])
        if device in hosts:
            ports += ticks
        elif device in names:
            cards += ticks
    return ports, cards


def seconds(hosts):
    """CPU time so far of the switch's ports, which run the program, and of the
    cards."""
    return tuple(ticks / TICK for ticks in taken(_stats(), hosts))
