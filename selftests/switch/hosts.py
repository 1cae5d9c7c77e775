#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Hosts that get another card, move, do not answer or share a port; ports that
are none; and two who change a switch at the same time."""

import contextlib
import itertools
import os
import socket
import subprocess
import sys

from rack import (ACK, MCAST, PORT, RAW, RESEND, TOOL, leave_lock, locks, ns,
                  packet, put_behind, receive, sh, shown, silent, split_port,
                  switch, udp, within)
from traffic import (ADD, JOB, PS, WORKERS, equal, hosts, numbers, round_trip,
                     run, values, want)

SO_RCVBUFFORCE = 33
ATTACH = 'attach aggregators 64 ' + ' '.join('dev p%d' % i
                                             for i in range(1, 7))


def test_attach():
    switch(ATTACH)
    switch(ADD % (JOB, PS))
    round_trip(hosts(), PS, WORKERS[0], 62)


def test_locks_of_a_killed_loader():
    for words in ('attach dev p1', 'refresh'):
        leave_lock()
        equal(locks(), {0, 2}, 'locks')
        switch(words)
        equal(locks(), {0}, 'locks after ' + words)


# The kernel's drivers of what has several links, by what ip calls it
BONDS = {'bond': 'bonding', 'team': 'team'}


def bond(kind):
    """Of that kind and name, over v0 and v2.  Return: could it be made?"""
    for pair in ('v0', 'v2'):
        within('s', 'ip link add %s type veth' % pair)
    done = within('s', 'ip link add %s7 type %s' % (kind, kind), check=False)
    if done.returncode:
        want(not os.path.exists('/lib/modules/%s/kernel/drivers/net/%s' % (
            os.uname().release, BONDS[kind])), done.stdout)
        return False
    for link in ('v0', 'v2'):
        within('s', 'ip link set %s master %s7' % (link, kind))
    within('s', 'ip link set %s7 up' % kind)
    return True


def no_port(kind):
    """What is refused, and what is said then"""
    name = kind + '7'
    try:
        if not bond(kind):
            print('# the kernel of this machine has no', kind)
            return
        for word in ('check', 'attach'):
            done = switch('%s dev %s' % (word, name), check=False)
            want(done.returncode and name in done.stdout and
                 'is a ' + kind in done.stdout and 'nomaster' in done.stdout,
                 done.stdout)
            done = switch(word + ' dev v0', check=False)
            want(done.returncode and
                 'is in the %s %s' % (kind, name) in done.stdout and
                 'ip link set v0 nomaster' in done.stdout, done.stdout)
        want('xdp' not in within('s', 'ip link show dev v0').stdout, 'program')
        done = switch('job add 11 ps %s worker 10.7.0.1 dev %s '
                      'lladdr 02:00:00:00:00:07' % (PS, name), check=False)
        want(done.returncode and '%s, a %s' % (name, kind) in done.stdout and
             'attach dev ' + name not in done.stdout, done.stdout)
    finally:
        for link in (name, 'v0', 'v2'):
            within('s', 'ip link del ' + link, check=False)
    equal(len(shown()['ports']), 6, 'ports')


def test_a_bond_is_no_port():
    for kind in BONDS:
        no_port(kind)


def stale(address):
    """The switch has not heard of it for a while"""
    within('s', 'ip neigh change %s dev br0 nud stale' % address)


def ranks(job):
    return [one['ranks'] for one in shown()['jobs'] if one['job'] == job][0]


def test_another_card():
    """Of a host with IPv4 and IPv6, which tells nobody"""
    switch('job add 8 ps fd09::5 ' +
           ' '.join('worker fd09::%d' % i for i in (1, 2, 3, 4)))
    before = ranks(JOB), ranks(8)
    new = '02:00:00:00:07:02'
    within(2, 'ip link set eth0 address ' + new)
    stale(WORKERS[1])
    stale('fd09::2')
    switch('refresh')
    for old, job in zip(before, (JOB, 8)):
        now = ranks(job)
        want(old[1]['lladdr'] != new, 'it is not another one')
        equal(now[1]['lladdr'], new, 'lladdr of rank 1 of job %d' % job)
        equal(now[:1] + now[2:], old[:1] + old[2:], 'other ranks')
    round_trip(hosts(), PS, WORKERS[0], 62)
    round_trip(hosts(v6=True), 'fd09::5', 'fd09::1', 62, job=8)
    switch('job del 8')


def move(there, back):
    """An address of WORKERS, and its port of the bridge"""
    within(back, 'ip addr del %s/24 dev eth0' % WORKERS[3])
    within(there, 'ip addr add %s/24 dev eth0' % WORKERS[3])
    stale(WORKERS[3])


def test_one_is_down_and_another_has_moved():
    """What is not found stays as it was, and the rest is found"""
    switch('job add 14 ps %s worker %s' % (PS, WORKERS[3]))
    before = ranks(JOB)
    within(3, 'ip link set eth0 down')
    within('s', 'ip link set p6 master br0')
    move(6, 4)
    done = switch('refresh', check=False)
    want(done.returncode and WORKERS[2] + ' does not answer' in done.stdout and
         'left as it was: %s;' % WORKERS[2] in done.stdout, done.stdout)
    now = ranks(JOB)
    equal(now[:3], before[:3], 'ranks that have not moved')
    equal((now[3]['dev'], ranks(14)[0]['dev']), ('p6', 'p6'), 'port')

    socks, seq, lanes = hosts(), next(numbers), values(3, 62)
    moved = udp(6, WORKERS[3])
    moved.sendto(packet(RAW | RESEND, JOB, seq, 8, lanes), (PS, PORT))
    equal(receive(socks[4]).lanes, lanes, 'gradient')
    socks[4].sendto(packet(ACK | MCAST, JOB, seq, 0, lanes),
                    (WORKERS[0], PORT))
    for sock in (socks[0], socks[1], moved):
        equal(receive(sock).lanes, lanes, 'parameters')
    moved.close()

    move(4, 6)
    within('s', 'ip link set p6 nomaster')
    within(3, 'ip link set eth0 up')
    switch('refresh')
    equal([rank['dev'] for rank in ranks(JOB)], ['p1', 'p2', 'p3', 'p4'],
          'ports')
    switch('job del 14')
    round_trip(socks, PS, WORKERS[0], 62)


@contextlib.contextmanager
def together(port):
    """What is sent comes in when the sender waits: threads take it in, on its
    CPU, and have to wait for everybody."""
    before = os.sched_getaffinity(0)
    one = {min(before)}
    switched = ('ip netns exec %s sh -c "echo %%d >/sys/class/net/%s/threaded"'
                % (ns('s'), port))
    sh(switched % 1)
    try:
        for thread in sh('pgrep ^napi/%s-' % port).stdout.split():
            os.sched_setaffinity(int(thread), one)
            os.sched_setscheduler(int(thread), os.SCHED_IDLE,
                                  os.sched_param(0))
        os.sched_setaffinity(0, one)
        yield
    finally:
        os.sched_setaffinity(0, before)
        sh(switched % 0)


def test_two_hosts_behind_a_port():
    """A plain switch below a port: each of its hosts gets its copy"""
    split_port(1)
    put_behind(1, 7)
    switch('attach dev p1')
    addresses = ['10.9.0.%d' % i for i in (1, 7, 3, 4)]
    switch('job del %d' % JOB)
    switch('job add %d ps %s %s' % (JOB, PS, ' '.join(
        'worker ' + a for a in addresses)))
    kept = hosts()
    socks = [kept[0], udp(7, addresses[1])] + kept[2:]
    for lanes in (62, 850):
        round_trip(socks, PS, addresses[0], lanes)


def test_two_ports_of_three_hosts():
    """The kernel sends the queue of a port amid the copies of a packet"""
    behind, packets = (1, 7, 8, 2, 9, 10), 64
    switch('job del %d' % JOB)
    split_port(2)
    for port, host in ((1, 8), (2, 9), (2, 10)):
        put_behind(port, host)
    switch('attach dev p2')
    addresses = ['10.9.0.%d' % i for i in behind]
    switch('job add 13 ps %s %s' % (PS, ' '.join('worker ' + address
                                                 for address in addresses)))
    equal([rank['dev'] for rank in ranks(13)], 3 * ['p1'] + 3 * ['p2'],
          'ports')
    kept = hosts()
    socks = [kept[host - 1] if host < 5 else udp(host, address)
             for host, address in zip(behind, addresses)]
    for sock in socks:
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)

    def give(seqs):
        for seq in seqs:
            kept[4].sendto(packet(ACK | MCAST, 13, seq, 0, [seq, 1], fanin=6),
                           (addresses[0], PORT))

    def expect(seqs):
        for rank, sock in enumerate(socks):
            equal(sorted(receive(sock).seq for _ in seqs), seqs,
                  'rank %d' % rank)
            want(silent(sock), 'more for rank %d' % rank)

    # so that the PS's host knows where to send
    first = [next(numbers)]
    give(first)
    expect(first)
    seqs = list(itertools.islice(numbers, packets))
    with together('p5'):
        give(seqs)
        expect(seqs)
    for host, sock in zip(behind, socks):
        if host > 4:
            sock.close()
    switch('job del 13')


def test_two_who_change_it_at_once():
    """Who waited until it had ended begins another one"""
    done = []
    switch('detach')
    for _ in range(5):
        for words in 3 * ('attach dev p3 dev p4', 'detach'):
            # pylint: disable=consider-using-with
            done.append((words, subprocess.Popen(
                ['nsenter', '--net=/run/netns/' + ns('s'), TOOL, 'switch'] +
                words.split(), stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True)))
        for words, process in done:
            said = process.communicate()[0]
            want(not process.returncode or
                 (words == 'detach' and 'no switch runs' in said),
                 '%s: %s' % (words, said))
        done.clear()
    switch('detach', check=False)
    want('xdp' not in within('s', 'ip link show').stdout, 'still attached')


def main():
    return run([(name, fn) for name, fn in globals().items()
                if name.startswith('test_')], vital=test_attach)


if __name__ == '__main__':
    sys.exit(main())
