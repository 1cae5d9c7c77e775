# SPDX-License-Identifier: GPL-2.0
"""TAP, namespaces, generic netlink and packets for the tests in Python."""
import array
import contextlib
import ctypes
import errno
import fcntl
import ipaddress
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
ATP = os.path.join(TOP, "build/bin/atp")
AF_ATP, SOL_ATP, PORT = 18, 299, 4797
JOIN, DTYPE, INFO = 1, 2, 3
INT32, FLOAT32 = 1, 2
UNBOUND, BOUND, JOINING, JOINED, FAILED = range(5)
LIMIT = 120
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
CLONE_NEWNET = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
tests = []


def test(f):
    """Decorator: one result of the script."""
    tests.append(f)
    return f


def main():
    """Run all tests, or those whose name contains an argument."""
    chosen = [t for t in tests
              if len(sys.argv) < 2 or any(a in t.__name__ for a in sys.argv[1:])]
    print("TAP version 13")
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    for n, t in enumerate(chosen, 1):
        # a process of its own, so that namespaces and sockets end with it
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.setpgid(0, 0)
                t()
                code = 0
            except BaseException:
                for line in traceback.format_exc().splitlines():
                    print("#", line)
            finally:
                sys.stdout.flush()
                os._exit(code)
        status = os.waitpid(pid, 0)[1]
        failed += status != 0
        print(f"{'not ' if status else ''}ok {n} {t.__name__}", flush=True)
    sys.exit(failed != 0)


def same(a, b, what=""):
    if a != b:
        raise AssertionError(f"{what}: {a!r} is not {b!r}")


def wait_for(condition, what):
    """Until it is true; the limit is for what never comes."""
    end = time.monotonic() + LIMIT
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.002)


def refused(number, call, *args):
    try:
        call(*args)
    except OSError as e:
        same(errno.errorcode.get(e.errno), errno.errorcode[number], "errno")
        return e
    raise AssertionError(f"not refused: {call} {args}")


def run(*words, ok=True):
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if ok and done.returncode:
        raise AssertionError(f"{words}: {done.stderr}")
    return done


def new_net():
    """A fresh network namespace, lo up."""
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


# Generic netlink -----------------------------------------------------------

NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
ADD, SET, DEL, GET, SOCK_GET, FAMILY_GET, EVENT = range(1, 8)
J_ID, J_PS, J_WORKER, J_FRAGMENT, J_WINDOW, J_SCALE, J_TIMEOUT, J_UID, J_GID, \
    J_ROLE, J_EPOCH, J_JOINED, J_RUNNING, J_FRONTIER, J_WAITING, J_STALL, \
    J_COUNTERS, J_SOCKETS, J_MEMORY = range(1, 20)
J_SERVER, J_SERVER_JOINED = 22, 23
E_TYPE, E_JOB, E_EPOCH, E_REASON, E_RANKS, E_SEQ, E_RANK = range(1, 8)
JOB_ADDED, JOB_CHANGED, JOB_DELETED, EV_JOINED, EV_ENDED, EV_STALLED, \
    EV_FAILED = range(1, 8)


class Refused(OSError):
    """A netlink error with what the extended ACK says."""
    def __init__(self, number, message, offset):
        super().__init__(number, message)
        self.message, self.offset = message, offset


def attr(kind, data):
    if isinstance(data, int):
        data = struct.pack("I", data)
    return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def attrs(data):
    """List of (type, payload)."""
    found, at = [], 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, at)
        found.append((kind & 0x3fff, data[at + 4:at + length]))
        at += (length + 3) & ~3
    return found


def u32(data):
    return struct.unpack("I", data)[0]


def address(text):
    a = ipaddress.ip_address(text)
    if a.version == 4:
        return bytes(10) + b"\xff\xff" + a.packed
    return a.packed


def worker(text):
    return attr(J_WORKER | 0x8000, attr(1, address(text)))


class Netlink:
    """A generic netlink socket that speaks to the family "atp"."""
    def __init__(self, groups=False):
        self.s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16)
        self.s.bind((0, 0))
        self.s.setsockopt(270, 11, 1)    # NETLINK_EXT_ACK
        self.s.setsockopt(270, 10, 1)    # NETLINK_CAP_ACK
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.seq = 0
        reply = dict(attrs(self.call(16, 3, attr(2, b"atp\0"))[0]))
        self.family = struct.unpack("H", reply[1])[0]
        if groups:
            group = dict(attrs(attrs(reply[7])[0][1]))
            same(group[1], b"events\0")
            self.s.setsockopt(270, 1, u32(group[2]))

    def call(self, family, cmd, data=b"", flags=NLM_F_ACK):
        """Payloads of all replies, or Refused."""
        self.seq += 1
        data = struct.pack("BBH", cmd, 1, 0) + data
        self.s.send(struct.pack("IHHII", 16 + len(data), family,
                                NLM_F_REQUEST | flags, self.seq, 0) + data)
        replies = []
        while True:
            packet, at = self.s.recv(1 << 18), 0
            while at < len(packet):
                length, kind, nlflags, seq, _ = \
                    struct.unpack_from("IHHII", packet, at)
                body = packet[at + 16:at + length]
                at += (length + 3) & ~3
                if seq != self.seq:
                    continue
                if kind == NLMSG_ERROR:
                    error = struct.unpack_from("i", body)[0]
                    if not error:
                        return replies
                    # with CAP_ACK there is only the header of the request
                    ext = dict(attrs(body[20:])) if nlflags & 0x200 else {}
                    raise Refused(-error, ext.get(1, b"").rstrip(b"\0").decode(),
                                  u32(ext[2]) if 2 in ext else None)
                if kind == NLMSG_DONE:
                    return replies
                replies.append(body[4:])

    def do(self, cmd, data=b""):
        return self.call(self.family, cmd, data)

    def dump(self, cmd):
        return self.call(self.family, cmd, flags=NLM_F_DUMP)

    def add(self, job, ps="127.0.0.1", workers=("127.0.0.2",) * 2, more=b""):
        return self.do(ADD, attr(J_ID, job) + attr(J_PS, address(ps)) +
                       b"".join(map(worker, workers)) + more)

    def delete(self, job):
        self.do(DEL, attr(J_ID, job))

    def job(self, job):
        return dict(attrs(self.do(GET, attr(J_ID, job))[0]))

    def counters(self, job=None):
        """Of a job, or of the namespace."""
        if job is None:
            nest = dict(attrs(self.do(FAMILY_GET)[0]))[4]
        else:
            nest = self.job(job)[J_COUNTERS]
        values = {}
        for _, entry in attrs(nest):
            e = dict(attrs(entry))
            values[e[1].rstrip(b"\0").decode()] = struct.unpack("Q", e[2])[0]
        return values

    def drops(self, job=None):
        return {k[5:]: v for k, v in self.counters(job).items()
                if k.startswith("drop_")}

    def event(self, timeout=LIMIT):
        """The next event as a dictionary, None after the timeout."""
        if not select.select([self.s], [], [], timeout)[0]:
            return None
        packet = self.s.recv(65536)
        same(packet[16], EVENT)
        return {k: u32(v) for k, v in attrs(packet[20:])}


# Sockets -------------------------------------------------------------------

class Info:
    """struct atp_info"""
    def __init__(self, s):
        (self.state, self.reason, self.ranks, self.job, self.rank, self.workers,
         self.epoch, self.fragment, self.window, self.scale, self.una, self.nxt,
         self.end, self.cwnd, self.ssthresh, self.srtt, self.rto, _, self.sent,
         self.resent, self.fast, self.timeouts, self.ecn, self.raw,
         self.duplicates, self.chunks) = \
            struct.unpack("18I8Q", s.getsockopt(SOL_ATP, INFO, 136))


def sock(dtype=INT32):
    s = socket.socket(AF_ATP, socket.SOCK_SEQPACKET, 0)
    s.setsockopt(SOL_ATP, DTYPE, dtype)
    return s


def start_join(s, job, rank):
    s.setblocking(False)
    refused(errno.EINPROGRESS, s.setsockopt, SOL_ATP, JOIN,
            struct.pack("II", job, rank))


def join(job, ranks=2):
    """Sockets of all ranks, joined."""
    socks = [sock() for _ in range(ranks)]
    for rank, s in enumerate(socks):
        start_join(s, job, rank)
    for s in socks:
        wait_for(lambda s=s: Info(s).state != JOINING, "joined")
        info = Info(s)
        same(info.state, JOINED, f"reason {info.reason}, ranks {info.ranks:#x}")
        s.setblocking(True)
        s.settimeout(None)
    return socks


def pushed(s, *values):
    s.send(array.array("i", values).tobytes())


def pulled(s, n):
    return list(array.array("i", s.recv(4 * n)))


def sum_works(socks, n=1000):
    """One chunk of n lanes through all ranks."""
    for rank, s in enumerate(socks):
        pushed(s, *[(rank + 1) * k for k in range(n)])
    total = len(socks) * (len(socks) + 1) // 2
    for s in socks:
        same(pulled(s, n), [total * k for k in range(n)], "sum")


# Packets -------------------------------------------------------------------

DATA, T_JOIN, WELCOME, LEAVE, ABORT, STATUS, PING, PONG = range(1, 9)
OVERFLOW, RESEND, COLLISION, ECN, EDGE, ACK, RAW, LAST, SWITCHED, MCAST = \
    (1 << i for i in range(10))
# the sum that a switch makes
SUM = LAST | SWITCHED


def header(kind, job, *, version=1, flags=0, epoch=0, seq=0, bitmap=1, bitmap1=0,
           fanin=2, fanin1=0, dtype=0, tree=0, index=0, elements=0, cap=0xffff):
    return struct.pack("!BBHIIIIIBBBBIHH", version, kind, flags, job, epoch,
                       seq, bitmap, bitmap1, fanin, fanin1, dtype, tree, index,
                       elements, cap)


def data(job, lanes, **fields):
    """A data packet; its fields may contradict its payload."""
    fields = {"dtype": INT32, "elements": len(lanes), "flags": LAST, **fields}
    payload = struct.pack(f"<{len(lanes)}i", *lanes)
    return header(DATA, job, **fields) + payload + bytes(-len(payload) % 8)


def control(kind, job, *, nonce=0, workers=2, fragment=1400, window=256,
            scale=100000000, reason=0, ranks=0, **fields):
    return header(kind, job, **fields) + \
        struct.pack("!8I", nonce, workers, fragment, window, scale, reason,
                    ranks, 0)


def internet_sum(packet):
    words = struct.unpack(f"!{(len(packet) + 1) // 2}H",
                          packet + bytes(len(packet) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def udp(source, payload, to="127.0.0.1", checksum=True, port=PORT):
    """As a host would send it: its kernel owns the port, so with a raw socket.
    checksum: False for none, a number for that one"""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    length = 8 + len(payload)
    head = struct.pack("!HHHH", port, PORT, length, 0)
    value = int(checksum)
    if checksum is True:
        # of both pseudo headers, but for zeros
        value = internet_sum(socket.inet_pton(family, source) +
                             socket.inet_pton(family, to) +
                             struct.pack("!BBH", 0, 17, length) + head +
                             payload) or 0xffff
    with socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_UDP) as s:
        s.bind((source, 0))
        s.sendto(head[:6] + struct.pack("!H", value) + payload, (to, 0))


class Tickets:
    """What the PS wants the JOINs of a host's ranks to repeat, as it has told that
    host."""
    def __init__(self, host, job, **fields):
        self.host, self.job, self.fields = host, job, fields
        self.last = {}
        self.nonce = None
        self.s = socket.socket(socket.AF_INET, socket.SOCK_RAW,
                               socket.IPPROTO_UDP)
        self.s.bind((host, 0))
        self.s.setblocking(False)

    def heard(self):
        """What has come meanwhile"""
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = self.s.recv(2048)[28:]
                if len(packet) < 40 or packet[1] != PONG:
                    continue
                job, epoch, seq, bitmap = struct.unpack_from("!4I", packet, 4)
                if job == self.job and seq:
                    self.last[bitmap] = {"epoch": epoch, "seq": seq}
                    self.nonce, = struct.unpack_from("!I", packet, 36)

    def packet(self, nonce, bitmap=1, **fields):
        """A JOIN with the ticket that is known, if one is"""
        self.heard()
        return control(T_JOIN, self.job, nonce=nonce, bitmap=bitmap,
                       **{**self.last.get(bitmap, {}), **self.fields, **fields})

    def join(self, nonce, bitmap=1, **fields):
        """As a worker does: it asks what to repeat, and does, which answers to
        others do not tell"""
        self.heard()
        self.last.pop(bitmap, None)
        self.nonce = None
        udp(self.host, self.packet(nonce, bitmap, **fields))

        def told():
            self.heard()
            return self.nonce == nonce
        wait_for(told, "ticket")
        udp(self.host, self.packet(nonce, bitmap, **fields))


def proc_protocols():
    """(sockets, pages) of the line "ATP"."""
    text = open("/proc/net/protocols", encoding="ascii").read()
    m = re.search(r"^ATP\s+\d+\s+(-?\d+)\s+(-?\d+)", text, re.M)
    return (int(m[1]), int(m[2])) if m else None
