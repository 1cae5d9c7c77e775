#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The switch beside another XDP program, which xdp-loader has put there.

xdp-loader falls back to its program alone where a kernel takes no extensions
of programs; the kernels that this is for do."""

import json
import os
import sys

from rack import TOOL, TOP, another_layout, receive, sh, shown, switch, within
from traffic import (ADD, JOB, PS, WORKERS, equal, hosts, loses_nothing,
                     numbers, push, round_trip, run, want)

OTHER = os.path.join(os.path.dirname(TOOL), 'pass.bpf.o')
LOAD_OTHER = 'xdp-loader load -m native -s xdp %s ' + OTHER
ATP = os.path.join(TOP, 'build/bin/atp')


def unload(dev, name):
    """A command that takes one of the programs off an interface"""
    return """sh -c 'xdp-loader unload %s --id $(xdp-loader status %s |
        awk "\\$3 == \\"%s\\" { print \\$4 }")'""" % (dev, dev, name)


def seen_by_other():
    maps = json.loads(sh('bpftool -j map dump name passed').stdout)
    return maps[0]['formatted']['value']


def test_dispatcher_is_named():
    within('s', LOAD_OTHER % 'p2')
    for words in ('attach', 'check'):
        done = switch(words + ' dev p2', check=False)
        want(done.returncode and 'dispatcher' in done.stdout, done.stdout)


def test_beside_another_program():
    """It sees the packets first, then we do"""
    switch('attach dispatcher aggregators 64 ' +
           ' '.join('dev p%d' % i for i in range(1, 6)))
    want(shown()['dispatcher'], 'no dispatcher')
    switch(ADD % (JOB, PS))
    before = seen_by_other()
    for _ in range(3):
        round_trip(hosts(), PS, WORKERS[0], 350)
    want(seen_by_other() >= before + 3, 'it has not seen our packets')
    want('atp_ingress' in within('s', 'xdp-loader status p2').stdout, 'p2')


def programs_checked():
    """[(state, where)] of what atp check says of programs"""
    done = within('s', ATP + ' -json check', check=False)
    return [(line['state'], line['about']) for line in json.loads(done.stdout)
            if line['what'] == 'program']


def test_check_sees_it_beside_the_other():
    fine = [('ok', 'switch')]
    equal(programs_checked(), fine, 'all ports')
    within('s', unload('p2', 'atp_ingress'))
    equal(programs_checked(), [('bad', 'port p2')] + fine, 'without it at p2')
    within('s', TOOL + ' switch attach dev p2')
    equal(programs_checked(), fine, 'again')


def test_upgrades_beside_it_lose_nothing():
    loses_nothing(TOOL + ' switch attach dev p1', times=2)
    status = within('s', 'xdp-loader status').stdout
    equal(status.count('atp_ingress'), 5, status)


def test_others_come_and_go():
    loses_nothing(LOAD_OTHER % 'p5', unload('p5', 'pass'), times=2)


def test_it_stays_when_we_go():
    switch('detach')
    status = within('s', 'xdp-loader status').stdout
    want('atp_ingress' not in status and 'pass' in status, status)
    before = seen_by_other()
    socks, seq = hosts(), next(numbers)
    push(socks, seq, [1, 2], 62, PS)
    equal(sorted(receive(socks[4]).bitmap for _ in range(2)), [2, 4],
          'bitmaps')
    want(seen_by_other() > before, 'it does not see packets any more')


def test_another_version_goes_too():
    switch('attach dispatcher dev p1 dev p2')
    another_layout()
    switch('detach')
    status = within('s', 'xdp-loader status').stdout
    want('atp_ingress' not in status and 'pass' in status, status)
    want(switch('show', check=False).returncode, 'still there')
    within('s', 'xdp-loader unload p2 --all')


def test_generic_mode_too():
    for end in (another_layout, lambda: None):
        switch('attach dispatcher generic dev p3')
        end()
        switch('detach')
        want('xdp' not in within('s', 'ip link show p3').stdout, 'attached')


def stuck(words):
    """The port stays one, and is named"""
    done = switch(words, check=False)
    equal(done.returncode, 2, words)
    want('p3: libxdp' in done.stdout and 'ip link set p3 xdp off' in
         done.stdout, done.stdout)
    want('xdp' in within('s', 'ip link show p3').stdout, 'detached')


def test_what_cannot_go_is_said():
    """libxdp takes no program off a dispatcher whose pins are gone"""
    switch('attach dispatcher dev p3 dev p4')
    port = json.loads(within('s', 'ip -j link show p3').stdout)[0]
    sh('rm -r /sys/fs/bpf/xdp/dispatch-%d-*' % port['ifindex'])
    stuck('detach dev p3')
    equal(sorted(port['dev'] for port in shown()['ports']), ['p3', 'p4'],
          'ports')
    stuck('detach')
    equal([port['dev'] for port in shown()['ports']], ['p3'], 'ports')
    want('xdp' not in within('s', 'ip link show p4').stdout, 'p4')
    another_layout()
    stuck('detach')
    within('s', 'ip link set p3 xdp off')
    switch('detach')
    want(switch('show', check=False).returncode, 'still there')


def less(words, works=False):
    """A command with what the service has of privileges"""
    done = within('s', 'setpriv --bounding-set=-all,+bpf,+net_admin,+perfmon '
                  + TOOL + ' switch ' + words, check=False)
    equal(not done.returncode, works, words + ': ' + done.stdout)
    want(works or 'CAP_SYS_ADMIN' in done.stdout, words + ': ' + done.stdout)


def ids():
    """The programs at two ports, one of which is shared"""
    return [json.loads(within('s', 'ip -j link show ' + dev).stdout)[0]
            .get('xdp', {}).get('prog', {}).get('id') for dev in ('p3', 'p4')]


def test_what_it_may_not_look_up_it_leaves_alone():
    """libxdp asks for programs by their ids, which not everybody may"""
    within('s', LOAD_OTHER % 'p3')
    alone = ids()
    want(alone[0] and not alone[1], str(alone))
    for words in ('check dev p3', 'attach dev p3', 'attach dispatcher dev p3',
                  'attach dispatcher dev p4'):
        less(words)
        equal(ids(), alone, words)
    want(switch('show', check=False).returncode, 'still there')
    switch('attach dispatcher dev p3 dev p4')
    ours = ids()
    for words in ('attach dev p3', 'detach dev p4', 'detach'):
        less(words)
        equal(ids(), ours, words)
    another_layout()
    less('detach')
    equal(ids(), ours, 'another version')
    switch('detach')
    equal(ids()[1], None, 'p4')
    within('s', 'xdp-loader unload p3 --all')


def test_ports_of_our_own_need_no_more():
    for end in (lambda: None, another_layout):
        less('attach dev p3 dev p4', works=True)
        want(all(ids()), 'not attached')
        end()
        less('detach', works=True)
        equal(ids(), [None, None], 'programs')


def main():
    return run([(name, fn) for name, fn in globals().items()
                if name.startswith('test_')], vital=test_dispatcher_is_named)


if __name__ == '__main__':
    sys.exit(main())
