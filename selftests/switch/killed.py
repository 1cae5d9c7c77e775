#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A loader that is killed half-way, wherever that is: traffic goes on, and the
same command again leaves what it always does.

Alone, it is the switch by itself; with the word "dispatcher" beside another
program."""

import contextlib
import functools
import glob
import json
import os
import re
import sys
import time

from dispatcher import LOAD_OTHER
from rack import LOST, TOOL, pinned, sh, shown, switch, within
from traffic import (ADD, JOB, PS, WORKERS, equal, hosts, loses_nothing,
                     round_trip, run, want)

KILL_AT = os.path.join(os.path.dirname(TOOL), 'kill_at')
SHARED = sys.argv[1:] == ['dispatcher']
WORD = ' dispatcher' if SHARED else ''
# the port that others share comes first
UPGRADE = TOOL + ' switch attach dev p2'


def programs():
    """Of those that use our maps, the names"""
    maps = json.loads(sh('bpftool -j map show pinned ' +
                         pinned('aggregators')).stdout)['id']
    return sorted(prog['name'] for prog in
                  json.loads(sh('bpftool -j prog show').stdout)
                  if maps in prog.get('map_ids', []))


def dispatchers():
    """Pinned ones; what libxdp pins to find out what it can do is not ours"""
    return [folder for folder in os.listdir('/sys/fs/bpf/xdp')
            if folder.startswith('dispatch-')] if SHARED else []


def pins():
    """Dispatchers are told from each other by the ids of programs"""
    found = os.listdir(pinned(''))
    for folder in dispatchers():
        found += [re.sub('-[0-9]+$', '', folder) + '/' + pin
                  for pin in os.listdir('/sys/fs/bpf/xdp/' + folder) or ['']]
    return sorted(found)


def everything():
    return programs(), pins(), sorted(port['dev'] for port in shown()['ports'])


def settles(wanted, text):
    """The kernel lets go of a program some time after its last user"""
    end = time.monotonic() + LOST
    while everything() != wanted:
        if time.monotonic() > end:
            equal(everything(), wanted, text)
        time.sleep(0.1)


def ends(command):
    """How often it changes something"""
    return int(within('s', '%s 0 %s' % (KILL_AT, command)).stdout)


def test_attach():
    if SHARED:
        within('s', LOAD_OTHER % 'p2')
    switch('attach aggregators 64 dev p1 dev p2 dev p3 dev p4 dev p5' + WORD)
    switch(ADD % (JOB, PS))
    round_trip(hosts(), PS, WORKERS[0], 350)


def test_upgrades():
    """One kill after the other, then the whole"""
    times = ends(UPGRADE)
    print('# %d times' % times)
    want(times > 20, 'it does nothing')
    wanted = everything()
    # libxdp takes its time, and a port is like the other
    kills = list(range(2, 65, 2) if SHARED else range(1, times + 1))

    def some(part):
        for number in part:
            within('s', '%s %d %s' % (KILL_AT, number, UPGRADE))
        within('s', UPGRADE)
        settles(wanted, 'killed at %s' % part)
    loses_nothing(*[functools.partial(some, kills[at:at + 12])
                    for at in range(0, len(kills), 12)], times=1)
    round_trip(hosts(), PS, WORKERS[0], 350)


def test_each_upgrade():
    """The whole after each kill"""
    wanted = everything()

    def one(number):
        within('s', '%s %d %s' % (KILL_AT, number, UPGRADE))
        within('s', UPGRADE)
        settles(wanted, 'killed at %d' % number)
    loses_nothing(*[functools.partial(one, number) for number in
                    range(1, ends(UPGRADE) + 1, 60 if SHARED else 1)],
                  times=1)
    round_trip(hosts(), PS, WORKERS[0], 350)


def test_detached_after_a_kill():
    """Nothing of ours is left"""
    for number in range(24, 40, 2):
        within('s', '%s %d %s' % (KILL_AT, number, UPGRADE))
    switch('detach')
    if SHARED:
        # the machine is ours
        end = time.monotonic() + LOST
        while ' name atp_ingress ' in sh('bpftool prog show').stdout:
            want(time.monotonic() < end, 'programs are left')
            time.sleep(0.1)
        within('s', 'xdp-loader unload p2 --all')
        equal(dispatchers(), [], 'pins')


@contextlib.contextmanager
def one_processor():
    """The only one of the machine: each program that comes or goes patches code that
    packets run through, also after who took it away has ended, and an emulated
    processor may miss what another one patches (selftests/README)."""
    others = sorted(glob.glob('/sys/devices/system/cpu/cpu[0-9]*/online'))

    def switch_others(state):
        for other in others:
            with open(other, 'w', encoding='ascii') as file:
                file.write(state)

    switch_others('0')
    try:
        yield
    finally:
        switch_others('1')


def main():
    with one_processor() if SHARED else contextlib.nullcontext():
        return run([(name, fn) for name, fn in globals().items()
                    if name.startswith('test_')], vital=test_attach)


if __name__ == '__main__':
    sys.exit(main())
