# SPDX-License-Identifier: GPL-2.0
"""Control groups of memory (cgroup2)."""
import os


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

    def remove(self):
        os.rmdir(self.path)
