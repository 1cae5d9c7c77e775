# SPDX-License-Identifier: GPL-2.0
"""Links of the rack: their limit, what passes them, that the limit holds.

What XDP redirects passes no queueing discipline of the switch.  So both
directions of a link are limited at the host: what leaves it, and what comes in,
between its device and its stack, whoever has sent it.
"""
import socket
import struct
import subprocess
import sys
import time

from systems import PS, TOP, address, inside

sys.path.insert(0, f"{TOP}/selftests/lib")
import atptest  # noqa: E402

QUEUE = 1000        # packets at each end, as a Linux device has by default
MTU = 1500
ETHERNET = 14
# Most payload that a link carries: full frames of TCP with time stamps
FULL = (MTU - 20 - 32) / (MTU + ETHERNET)
SOL_PACKET, QDISC_BYPASS = 263, 20


# A bucket that nothing larger than a frame fits in cuts bursts into the packets
# that they are on a wire; netem gives each its time, so that a late timer costs
# nothing of the rate.
SHAPER = """
qdisc replace dev {dev} root handle 1: tbf rate 1gbit burst 2000 limit 9000
qdisc replace dev {dev} parent 1:1 handle 2: netem rate {mbit}mbit limit {queue}
"""
INGRESS = """
qdisc add dev eth0 ingress
filter add dev eth0 ingress matchall action mirred egress redirect dev ifb0
"""


def _tc(host, batch):
    subprocess.run(["tc", "-n", f"atp-{host}", "-batch", "-"], input=batch,
                   text=True, check=True)


def limit(hosts, mbit):
    for host in hosts:
        subprocess.run(["ip", "-n", f"atp-{host}", "-batch", "-"], text=True,
                       input="link add ifb0 type ifb\nlink set ifb0 up\n",
                       check=True)
        _tc(host, INGRESS + "".join(
            SHAPER.format(dev=dev, mbit=mbit, queue=QUEUE)
            for dev in ("eth0", "ifb0")))


def unlimit(hosts):
    for host in hosts:
        _tc(host, "qdisc del dev eth0 root\nqdisc del dev eth0 ingress\n")


def features(host, dev, *words):
    """ethtool's switches of a device."""
    with inside(host):
        subprocess.run(["ethtool", "-K", dev, *words], check=True,
                       stdout=subprocess.DEVNULL)


def payload_limit(mbit):
    """Bytes per second"""
    return mbit * 1e6 / 8 * FULL


def device(host, name="eth0"):
    """(bytes sent, bytes received) so far."""
    with inside(host), open("/proc/thread-self/net/dev",
                            encoding="ascii") as f:
        for line in f:
            dev, _, rest = line.partition(":")
            if dev.strip() == name:
                fields = rest.split()
                return int(fields[8]), int(fields[0])
    raise AssertionError(f"{host} has no {name}")


class Links:
    def __init__(self, workers):
        self.hosts = [f"w{rank}" for rank in range(workers)] + ["ps"]

    def read(self):
        return {host: device(host) for host in self.hosts}

    def quiet(self):
        """When what is left in queues has passed, and how much it was then."""
        now, end = self.read(), time.monotonic() + 10
        while time.monotonic() < end:
            time.sleep(0.05)
            last, now = now, self.read()
            if now == last:
                break
        return now


def difference(before, after):
    return {host: [b - a for a, b in zip(before[host], after[host])]
            for host in before}


def ip(host):
    return PS if host == "ps" else address(int(host[1:]))


def mac(host):
    """As rack.sh has them"""
    return bytes((2, 0, 0, 0, 0, int(ip(host).rpartition(".")[2])))


def redirected(job, workers, host):
    """A frame that the switch redirects to that host, and who sends it: the PS
    to a worker, the first worker to the PS.  No run has epoch 0, so whoever
    gets it drops it; and no aggregator is asked for what was not scaled."""
    sender, fields = "ps", {"flags": atptest.ACK | atptest.LAST,
                            "bitmap": (1 << workers) - 1}
    if host == "ps":
        sender, fields = "w0", {"flags": atptest.RAW | atptest.LAST,
                                "bitmap": 1}
    payload = atptest.header(
        atptest.DATA, job, fanin=workers, dtype=atptest.FLOAT32, elements=350,
        **fields) + bytes(1400)
    ends = [sender, host]
    addresses = b"".join(socket.inet_aton(ip(end)) for end in ends)
    length = 8 + len(payload)
    udp = struct.pack("!HHH", atptest.PORT, atptest.PORT, length)
    check = atptest.internet_sum(
        addresses + struct.pack("!BBH", 0, 17, length) + udp + bytes(2) +
        payload) or 0xffff
    head = struct.pack("!BBHHHBBH", 0x45, 2, 20 + length, 0, 0x4000, 64, 17, 0)
    head = head[:10] + struct.pack("!H",
                                   atptest.internet_sum(head + addresses))
    return sender, mac(host) + mac(sender) + b"\x08\0" + head + addresses + \
        udp + struct.pack("!H", check) + payload


def rate(before, after, seconds):
    return [(b - a) / seconds for a, b in zip(before, after)]


def flood(send, seconds, read):
    """Send for so long, as fast as it goes; what read() says per second."""
    for _ in range(QUEUE + 100):    # the queue is full from here on
        send()
    before, start = read(), time.monotonic()
    end = start + seconds
    while time.monotonic() < end:
        for _ in range(50):
            send()
    after = read()
    return rate(before, after, time.monotonic() - start)


def flood_redirected(job, workers, host, seconds):
    """By XDP to a host: what comes there and what its stack gets, in bytes per
    second."""
    sender, frame = redirected(job, workers, host)
    with inside(sender):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    with s:
        s.setsockopt(SOL_PACKET, QDISC_BYPASS, 1)
        s.bind(("eth0", 0))
        return flood(lambda: s.send(frame), seconds, lambda: (
            device(host)[1], device(host, "ifb0")[0]))


def flood_own(host, seconds):
    """By a host itself: bytes per second that leave it."""
    with inside(host):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with s:
        s.connect((ip("w0" if host == "ps" else "ps"), 9))
        data = bytes(MTU - 28)

        def send():
            try:
                s.send(data)
            except ConnectionRefusedError:
                pass
        return flood(send, seconds, lambda: (device(host)[0],))[0]
