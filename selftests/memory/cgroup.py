# SPDX-License-Identifier: GPL-2.0
"""Control groups (cgroup2): of memory, and with programs for packets."""
import ctypes
import os
import struct

SYS_BPF, BPF_PROG_LOAD, BPF_PROG_ATTACH = 321, 5, 8
CGROUP_SKB, CGROUP_INET_EGRESS = 8, 1
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    data = ctypes.create_string_buffer(attr, len(attr))
    done = libc.syscall(SYS_BPF, command, data, len(attr))
    if done < 0:
        raise OSError(ctypes.get_errno(), f"bpf {command}")
    return done


class Group:
    """A control group; @limit: bytes that it may hold"""
    base = "/sys/fs/cgroup"

    def __init__(self, name, limit="max"):
        with open(f"{self.base}/cgroup.subtree_control", "w",
                  encoding="ascii") as f:
            f.write("+memory")
        self.path = f"{self.base}/atp-{name}-{os.getpid()}"
        os.mkdir(self.path)
        with open(f"{self.path}/memory.max", "w", encoding="ascii") as f:
            f.write(str(limit))

    def enter(self):
        with open(f"{self.path}/cgroup.procs", "w", encoding="ascii") as f:
            f.write(str(os.getpid()))

    def stat(self, name, file="stat"):
        with open(f"{self.path}/memory.{file}", encoding="ascii") as f:
            return int(dict(line.split() for line in f)[name])

    def killed(self):
        """Processes, for want of memory"""
        return self.stat("oom_kill", "events")

    def send_nothing(self):
        """Who is in it: a program drops all that leaves."""
        insns = struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0)
        code, gpl = ctypes.create_string_buffer(insns), \
            ctypes.create_string_buffer(b"GPL")
        fd = bpf(BPF_PROG_LOAD, struct.pack(
            "IIQQ44xI", CGROUP_SKB, 2, ctypes.addressof(code),
            ctypes.addressof(gpl), CGROUP_INET_EGRESS))
        group = os.open(self.path, os.O_RDONLY)
        bpf(BPF_PROG_ATTACH, struct.pack("IIII", group, fd, CGROUP_INET_EGRESS,
                                         0))
        os.close(group)
        os.close(fd)

    def remove(self):
        os.rmdir(self.path)
