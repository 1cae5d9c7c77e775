# SPDX-License-Identifier: GPL-2.0
"""All that the module does, in one process: jobs from beginning to end.

Every call may be refused for want of memory, and is made again; all sums must be
right all the same.  What was noticed of it is left in Life.effects.
"""
import array
import ctypes
import errno
import fcntl
import mmap
import os
import select
import signal
import socket
import struct

from atptest import (AF_ATP, FAMILY_GET, FLOAT32, GET, INT32, J_ID, J_TIMEOUT,
                     J_SERVER, JOIN, JOINED, LIMIT, PORT, SET, SOCK_GET,
                     SOL_ATP, Info, Netlink, Refused, attr, libc, new_net, same,
                     sock, wait_for)

# Four ranks at one address, so that each packet is for several sockets; an
# application at the PS
FOUR, SIX, RAW, SERVED = 7, 8, 9, 10
SERVER = 0xffff
# a machine that is slow is not dead
PATIENT = attr(J_TIMEOUT, 600000)
NO_MEMORY = (errno.ENOMEM, errno.ENOBUFS, errno.ENFILE, errno.ENETUNREACH)
TRIES = 100
SOL_UDP, UDP_SEGMENT = 17, 103
MSG_ZEROCOPY = 0x4000000
# of a socket
IO = {signal.SIGIO, signal.SIGRTMIN}


def _call(function, s, job, rank):
    """Python's own calls know no such family."""
    address = struct.pack("=HHI8x", AF_ATP, rank, job)
    if function(s.fileno(), address, len(address)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def bind(s, job, rank):
    _call(libc.bind, s, job, rank)


def connect(s, job, rank):
    _call(libc.connect, s, job, rank)


class Message(ctypes.Structure):
    """struct msghdr"""
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint),
                ("iov", ctypes.c_void_p), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


def error_of_run(s):
    """What the error queue says, or None."""
    room = ctypes.create_string_buffer(200)
    message = Message(control=ctypes.addressof(room), controllen=len(room))
    if libc.recvmsg(s.fileno(), ctypes.byref(message), socket.MSG_ERRQUEUE) < 0:
        number = ctypes.get_errno()
        if number == errno.EAGAIN:
            return None
        raise OSError(number, os.strerror(number))
    return room.raw[:message.controllen]


def begin(s, job, rank, how):
    """Begin to join."""
    s.setblocking(False)
    try:
        how(s, job, rank)
    except OSError as e:
        if e.errno != errno.EINPROGRESS:
            raise


def setsockopt(s, job, rank):
    s.setsockopt(SOL_ATP, JOIN, struct.pack("II", job, rank))


class Life:
    def __init__(self):
        self.effects = set()
        self.pipes = 0
        self.socks = {}
        new_net()
        self.nl = Netlink()
        # the second of them gets a copy
        self.listeners = [Netlink(groups=True) for _ in range(2)]
        signal.signal(signal.SIGPIPE, self.piped)
        signal.pthread_sigmask(signal.SIG_BLOCK, IO)

    def piped(self, *_):
        self.pipes += 1

    def asked(self, call, *args, **more):
        """Until it is not refused any more."""
        for _ in range(TRIES):
            try:
                return call(*args, **more)
            except OSError as e:
                if e.errno not in NO_MEMORY:
                    raise
                self.effects.add("refused")
                if isinstance(e, Refused) and e.message:
                    self.effects.add("explained")
        raise AssertionError(f"refused for ever: {call} {args}")

    # jobs

    def add(self):
        self.asked(self.nl.add, FOUR, workers=["127.0.0.2"] * 4, more=PATIENT)
        self.asked(self.nl.add, SIX, ps="::1", workers=["::1"] * 2,
                   more=PATIENT)
        self.asked(self.nl.add, RAW, more=PATIENT)
        self.asked(self.nl.add, SERVED, more=PATIENT + attr(J_SERVER, b"\1"))

    def show(self):
        self.asked(self.nl.do, SET, attr(J_ID, FOUR) + PATIENT)
        self.asked(self.nl.job, FOUR)
        self.asked(self.nl.counters)
        same(len(self.asked(self.nl.dump, GET)), 4)
        same(len(self.asked(self.nl.dump, SOCK_GET)), 8)

    def apart(self, do):
        """In a process of its own, as it changes what that may do."""
        pid = os.fork()
        if not pid:
            code = 1
            try:
                self.effects.clear()
                do()
                code = 3 if self.effects else 0
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        same(status in (0, 3), True, status)
        if status:
            self.effects.add("refused")

    def stranger(self):
        """Who may see the family but no counters: the shortest reply."""
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        self.asked(Netlink().do, FAMILY_GET)

    def namespace(self):
        """The module makes its part of it."""
        self.asked(new_net)

    def burst(self):
        """Nonsense from a user's socket, which UDP cuts.  It is longer than what
        the kernel has in one piece, so one packet is in two."""
        packets = 40
        before = sum(self.nl.drops().values())
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.setsockopt(SOL_UDP, UDP_SEGMENT, 1400)
            s.sendto(bytes(packets * 1400), ("127.0.0.1", PORT))
        wait_for(lambda: sum(self.nl.drops().values()) - before >= packets,
                 "all of it dropped")

    # sockets

    def join(self, job, ranks, how, dtype=INT32, told=None):
        """@told, or the first of them, has a signal for it."""
        socks = [self.asked(sock, dtype) for _ in range(ranks)]
        told = told or socks[0]
        self.signals_from(told)
        for rank, s in enumerate(socks):
            self.asked(begin, s, job, rank, how)
        for s in {told, *socks}:
            wait_for(lambda s=s: Info(s).state == JOINED, "joined")
        self.wait_signal(select.POLLOUT)
        for s in {told, *socks}:
            fcntl.fcntl(s, fcntl.F_SETFL, 0)
        self.socks[job] = socks

    def reduce(self, job, lanes, kind="i"):
        """A sum of integers; as floats each is exact, too, and those that leave
        the range of scaled numbers go the way of raw ones."""
        first, *others = self.socks[job]
        for rank, s in enumerate(others, 1):
            self.asked(s.send, array.array(kind, (
                rank * k for k in range(lanes))).tobytes())
        # zeros in memory that is not there before somebody looks
        there = mmap.mmap(-1, 4 * lanes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.asked(first.send, there, MSG_ZEROCOPY)
        total = len(others) * (len(others) + 1) // 2
        want = array.array(kind, (total * k for k in range(lanes))).tobytes()
        for s in others:
            same(self.asked(s.recv, len(want)) == want, True,
                 f"sum of job {job}")
        # of no bytes Python does not ask the kernel
        same(self.asked(first.recv_into, bytearray(1), 0, socket.MSG_TRUNC),
             len(want))
        same(there[:] == want, True, f"sum of job {job}, in place")

    def sums(self):
        for lanes in (1, 10000):
            self.reduce(FOUR, lanes)
            self.reduce(SIX, lanes)
            self.flush_routes()
        self.reduce(RAW, 3000, "f")

    def serve(self):
        """An application adds nothing, and is told of the beginning and the end."""
        server = self.asked(sock)
        self.asked(begin, server, SERVED, SERVER, setsockopt)
        self.join(SERVED, 2, setsockopt, told=server)
        ranks = self.socks.pop(SERVED)
        # as long as a fragment, so that all of it is there at once
        ones = array.array("i", [1] * 350).tobytes()
        twos = array.array("i", [2] * 350).tobytes()
        for s in ranks:
            self.asked(s.send, ones)
        same(self.asked(server.recv, len(twos)), twos)
        self.asked(server.send, ones)
        for s in ranks:
            same(self.asked(s.recv, len(ones)), ones)
        self.signals_from(server)
        for s in ranks:
            s.shutdown(socket.SHUT_WR)
        self.wait_signal(select.POLLHUP)
        for s in (server, *ranks):
            s.close()

    @staticmethod
    def flush_routes():
        """They are looked up anew."""
        with open("/proc/sys/net/ipv4/route/flush", "w", encoding="ascii") as f:
            f.write("1")

    def signals_of_a_socket(self):
        """Room after there was none; an error; a push after the end."""
        s, *others = self.socks[FOUR]
        self.signals_from(s)
        s.setblocking(False)
        before, n = s.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF), 0
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20000)
        chunk = bytes(15000)
        while True:
            try:
                self.asked(s.send, chunk)
                n += 1
            except BlockingIOError:
                break
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, before // 2)
        s.setblocking(True)
        fcntl.fcntl(s, fcntl.F_SETFL, os.O_ASYNC)
        for _ in range(n):
            for t in others:
                self.asked(t.send, chunk)
        for t in (s, *others):
            for _ in range(n):
                same(self.asked(t.recv, len(chunk)), chunk)
        self.wait_signal(select.POLLOUT)
        fcntl.fcntl(s, fcntl.F_SETFL, 0)

    @staticmethod
    def signals_from(s):
        """They say what they are about, those of earlier sockets are gone."""
        while signal.sigtimedwait(IO, 0):
            pass
        fcntl.fcntl(s, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(s, fcntl.F_SETSIG, signal.SIGRTMIN)
        fcntl.fcntl(s, fcntl.F_SETFL, os.O_ASYNC)

    def wait_signal(self, band):
        """One for that; where there was no memory it does not say what for."""
        while got := signal.sigtimedwait(IO, LIMIT):
            if got.si_signo == signal.SIGIO:
                self.effects.add("silent_signal")
                return
            if got.si_band & band:
                return
        raise AssertionError(f"no signal for {band}")

    def fail(self):
        """A run that ends: error queue, event, signal."""
        s, t = self.socks.pop(SIX)
        self.signals_from(s)
        self.asked(self.nl.delete, SIX)
        self.wait_signal(select.POLLERR)
        for u in (s, t):
            if not error_of_run(u):
                self.effects.add("errqueue_nomem")
            same(u.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
                 errno.EIDRM)
            u.close()

    def leave(self):
        s, *others = self.socks.pop(RAW)
        # LEAVE has no route of its own
        self.flush_routes()
        s.shutdown(socket.SHUT_WR)
        try:
            s.send(bytes(4))
            raise AssertionError("pushed after the end")
        except BrokenPipeError:
            pass
        wait_for(lambda: self.pipes, "SIGPIPE")
        for t in (s, *others):
            t.close()

    def events(self):
        for listener in self.listeners:
            try:
                while listener.event(0):
                    pass
            except OSError as e:
                same(errno.errorcode[e.errno], "ENOBUFS")
                self.effects.add("overrun")

    def live(self):
        """Everything once."""
        self.add()
        self.join(FOUR, 4, setsockopt)
        self.join(SIX, 2, connect)
        self.join(RAW, 2, setsockopt, FLOAT32)
        self.sums()
        self.serve()
        self.show()
        self.burst()
        self.apart(self.stranger)
        self.apart(self.namespace)
        self.signals_of_a_socket()
        self.fail()
        self.leave()
        self.events()

    def go_on(self):
        """The first job is as good as before, and new ones are, too."""
        counters = self.nl.counters()
        lost = counters["errqueue_nomem"]
        same(bool(lost), "errqueue_nomem" in self.effects)
        self.effects |= {name for name, value in counters.items()
                         if value and ("nomem" in name or name == "out_errors")}
        for lanes in (1, 20000):
            self.reduce(FOUR, lanes)
        self.nl.add(SIX, ps="::1", workers=["::1"] * 2, more=PATIENT)
        self.join(SIX, 2, connect)
        self.reduce(SIX, 20000)
        for socks in self.socks.values():
            for s in socks:
                s.close()
        for job in (FOUR, SIX, RAW, SERVED):
            self.nl.delete(job)
