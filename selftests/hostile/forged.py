# SPDX-License-Identifier: GPL-2.0
"""What a rank and the PS of a running job might send at this moment, for forging.

All tests of a program use the same rack.
"""
import os
import subprocess
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../lib"))
# pylint: disable=wrong-import-position
from atptest import ACK, FLOAT32, LAST, OVERFLOW, RAW, data
from live import JOBS, Live
import rack

LANES = [1, 2, 3, 4]
UNDEFINED = [1 << bit for bit in range(10, 16)]
FAR = 1 << 31

subprocess.run(["modprobe", "atp"], check=True)
live = Live()


def family(job):
    return JOBS[job][0]


def ranks(job):
    return JOBS[job][1]


def good(job, **fields):
    """What rank 0 sends now, but for what is said"""
    return {"epoch": live.epoch(job), "seq": live.info(job).una,
            "fanin": ranks(job), **fields}


def answer(job, **fields):
    return good(job, **{"flags": ACK | LAST, **fields})


def gradients(job, **fields):
    """Of rank 0: as it is, too large for integers, and not in integers"""
    return [data(job, LANES, **good(job, **fields)),
            *[data(job, LANES, **good(job, flags=LAST | more, dtype=FLOAT32,
                                      **fields)) for more in (OVERFLOW, RAW)]]


def epochs(job):
    """Of runs that are over, still to come, and none of this PS"""
    e = live.epoch(job)
    return [x & 0xffffffff for x in (e - 1, e + 1, ~e, e ^ FAR)]


def for_each_job(function):
    def both():
        live.during(lambda: [function(job) for job in JOBS])
    both.__name__ = function.__name__
    return both


def run(tests):
    """Return: as the program's"""
    try:
        return rack.run(tests)
    finally:
        live.close()
