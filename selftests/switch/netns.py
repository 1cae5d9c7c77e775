#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The switch with real packets: namespaces, veth, native mode."""

import fcntl
import itertools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

from rack import (ACK, COLLISION, ECN, MCAST, NEXT, PORT, RAW, RESEND,
                  SWITCHED, TOOL, another_layout, counters, dump, ns, packet,
                  pinned, receive, sh, shown, silent, switch, udp, within)
from traffic import (ADD, JOB, PS, WORKERS, answer, equal, hosts,
                     loses_nothing, numbers, push, round_trip, run, sockets,
                     total, values, want)


def test_check():
    ports = ' '.join('dev p%d' % i for i in range(1, 6))
    done = switch('check ' + ports)
    want('BAD' not in done.stdout, done.stdout)
    # each of the hosts is in another namespace, and whatever it sends needs it
    equal(len([line for line in done.stdout.splitlines()
               if 'tx off' in line and 'dropped' in line]), 5, done.stdout)
    want('fine for AF_ATP' not in done.stdout, done.stdout)


def test_check_names_what_is_missing():
    within(2, 'ethtool -K eth0 gro off')
    done = switch('check dev p2', check=False)
    within(2, 'ethtool -K eth0 gro on')
    want('gro on' in done.stdout, done.stdout)
    within('s', 'ip link set p3 mtu 4000')
    done = switch('check dev p3', check=False)
    within('s', 'ip link set p3 mtu 3498')
    want(done.returncode and 'mtu 3498' in done.stdout, done.stdout)


def test_a_bridge_that_filters_vlans_is_refused():
    done = within('s', 'ip link set br0 type bridge vlan_filtering 1',
                  check=False)
    if 'not supported' in done.stdout:
        want('ATP_VM' not in os.environ, done.stdout)
        print('# not by the kernel of this machine')
        return
    try:
        for word in ('check', 'attach'):
            done = switch(word + ' dev p1', check=False)
            want(done.returncode and 'filters VLANs' in done.stdout and
                 'vlan_filtering 0' in done.stdout, done.stdout)
    finally:
        within('s', 'ip link set br0 type bridge vlan_filtering 0')


def test_attach_native():
    ports = ' '.join('dev p%d' % i for i in range(1, 7))
    switch('attach %s aggregators 64' % ports)
    equal(shown()['mode'], 'native', 'mode')
    equal(len(shown()['ports']), 6, 'ports')
    want('xdpgeneric' not in within('s', 'ip link show').stdout, 'generic')


def test_job_resolved():
    """Neighbours and bridge ports are found without having talked before"""
    switch(ADD % (JOB, PS))
    job = shown()['jobs'][0]
    equal([rank['dev'] for rank in job['ranks']], ['p1', 'p2', 'p3', 'p4'],
          'ports of the workers')
    equal(job['ps']['dev'], 'p5', 'port of the PS')


def test_a_user_gets_nothing_of_it():
    user = 'setpriv --reuid 12345 --regid 12345 --clear-groups %s '
    # who is root in a namespace of his own alone is none here
    for who in user, user % 'unshare --user --map-root-user %s':
        for words in ('show', 'job del %d' % JOB, 'detach', 'attach dev p1'):
            done = within('s', who % TOOL + ' switch ' + words, check=False)
            want(done.returncode and 'be root' in done.stdout,
                 words + ': ' + done.stdout)
    pins = sh("find /sys/fs/bpf/atp ! -user root -o -perm /077").stdout
    equal(pins, '', 'pins for others than root')
    want(sh('find /sys/fs/bpf/atp -type f').stdout, 'no pins are found')
    equal(shown()['jobs'][0]['job'], JOB, 'job')


def test_sums_and_copies():
    for lanes in (1, 2, 62, 63, 350, 768, 850):
        round_trip(hosts(), PS, WORKERS[0], lanes)
    count = counters(JOB)
    equal(count['allocated'], 7, 'allocated')
    equal(count['completed'], 7, 'completed')
    equal(count['deallocated'], 7, 'deallocated')
    equal(count['copies'], 28, 'copies')
    equal(shown()['occupied'], 0, 'occupied')


def test_ipv6():
    switch('job add 8 ps fd09::5 ' +
           ' '.join('worker fd09::%d' % i for i in (1, 2, 3, 4)))
    for lanes in (1, 62, 350, 845):
        round_trip(hosts(v6=True), 'fd09::5', 'fd09::1', lanes, job=8)
    switch('job del 8')


def test_duplicate_and_resend():
    socks, seq = hosts(), next(numbers)
    push(socks, seq, [0, 1, 1, 0], 62, PS)
    want(silent(socks[4]), 'an incomplete sum was sent')
    push(socks, seq, [2], 62, PS, RESEND)
    got = receive(socks[4])
    equal(got.bitmap, 7, 'bitmap of the flush')
    equal(got.lanes, total([0, 1, 2], 62), 'partial sum')
    push(socks, seq, [3], 62, PS, RESEND)
    got = receive(socks[4])
    equal(got.bitmap, 8, 'bitmap after the flush')
    equal(got.lanes, values(3, 62), 'passed on')
    push(socks, seq, [3], 62, PS, RESEND | RAW)
    equal(receive(socks[4]).lanes, values(3, 62), 'raw')


def test_collision():
    socks, seq = hosts(), next(numbers)
    push(socks, seq, [0], 62, PS)
    push(socks, seq + 64, [1], 62, PS)
    got = receive(socks[4])
    want(got.flags & COLLISION, 'COLLISION is not set')
    equal(got.lanes, values(1, 62), 'passed on')
    answer(socks, seq, [0] * 62)


def test_unicast_parameters():
    socks, seq = hosts(), next(numbers)
    socks[4].sendto(packet(ACK, JOB, seq, 0, [1, 2]), (WORKERS[2], PORT))
    got = receive(socks[2])
    equal(got.lanes, [1, 2], 'parameters')
    want(got.flags & SWITCHED, 'SWITCHED is not set')
    want(silent(socks[0]), 'another worker got it')


def test_false_ps_frees_nothing():
    socks, seq = hosts(), next(numbers)
    push(socks, seq, [0], 62, PS)
    before = counters(JOB)
    liar = udp(1, PS, transparent=True)
    liar.sendto(packet(ACK, JOB, seq, 0, [0] * 62), (WORKERS[1], PORT))
    socks[1].sendto(packet(ACK, JOB, seq, 0, [0] * 62), (WORKERS[2], PORT))
    # rank 1's values, but from rank 0's port and address
    socks[0].sendto(packet(0, JOB, seq, 2, [1] * 62), (PS, PORT))
    push(socks, seq, [1, 2, 3], 62, PS)
    equal(receive(socks[4]).lanes, total(range(4), 62), 'sum')
    after = counters(JOB)
    equal(after['drop_port'] - before['drop_port'], 1, 'drop_port')
    equal(after['drop_stranger'] - before['drop_stranger'], 2,
          'drop_stranger')
    liar.close()
    answer(socks, seq, [0] * 62)


def test_detached_port_is_named():
    """Nothing is said to be sent that had no port to go out by"""
    socks, seq = hosts(), next(numbers)
    done = switch('detach dev p5')
    for word in ('job %d: its PS is behind p5' % JOB, 'dropped'):
        want(word in done.stdout, done.stdout)
    before = counters(JOB)
    push(socks, seq, range(4), 62, PS)
    want(silent(socks[4]), 'sent all the same')
    after = counters(JOB)
    for name, rise in (('completed', 1), ('drop_out', 1), ('forwarded', 0),
                       ('bytes_out', 0)):
        equal(after[name] - before[name], rise, name)
    want('a port was detached' in switch('show').stdout, 'no hint')
    switch('attach dev p5')
    # the sum is there still
    push(socks, seq, [0], 62, PS, RESEND)
    equal(receive(socks[4]).lanes, total(range(4), 62), 'sum')
    equal(counters(JOB)['forwarded'] - after['forwarded'], 1, 'forwarded')
    answer(socks, seq, [0] * 62)
    done = switch('detach dev p2')
    want('job %d: rank 1 is behind p2' % JOB in done.stdout, done.stdout)
    switch('attach dev p2')
    round_trip(socks, PS, WORKERS[0], 62)
    done = switch('detach dev p6')
    want('job' not in done.stdout, done.stdout)
    switch('attach dev p6')


def sent():
    """Packets that have left by each port"""
    return {port['dev']: port['sent'] for port in shown()['ports']}


def test_ports_that_share_a_place():
    """Each counts what is its own, whichever of the two has the place"""
    for first, second in (('p1', 'p4'), ('p4', 'p1')):
        for port in (first, second):
            switch('detach dev ' + port)
        for port in (first, second):
            switch('attach dev ' + port)
        before = sent()
        round_trip(hosts(), PS, WORKERS[0], 62)
        after = sent()
        equal({port: after[port] - before[port] for port in after},
              {'p1': 1, 'p2': 1, 'p3': 1, 'p4': 1, 'p5': 1, 'p6': 0}, 'sent')


def test_jobs_that_share_a_slot():
    other = JOB + 256
    switch(ADD % (other, PS))
    before = counters(JOB)
    round_trip(hosts(), PS, WORKERS[0], 62, job=other)
    equal((counters(other)['completed'], counters(other)['copies']), (1, 4),
          'counters')
    equal(counters(JOB), before, 'counters')
    round_trip(hosts(), PS, WORKERS[0], 62)
    switch('job del %d' % other)
    round_trip(hosts(), PS, WORKERS[0], 62)


def test_checksum_offload_is_named():
    """A sender that leaves checksums to its device is told so"""
    within(1, 'ethtool -K eth0 tx on')
    push(hosts(), next(numbers), [0], 62, PS)
    within(1, 'ethtool -K eth0 tx off')
    want(counters(JOB)['drop_csum_partial'] >= 1, 'not counted')
    want('tx off' in switch('show').stdout, 'no hint')


def test_other_traffic():
    within(1, 'ping -q -c 3 -i 0.05 -W 2 ' + PS)
    within(1, 'ping -q -c 3 -i 0.05 -W 2 10.8.0.6')
    data = os.urandom(1 << 20)
    listener = within_tcp(5)
    got = bytearray()

    def serve():
        conn, _ = listener.accept()
        while True:
            part = conn.recv(65536)
            if not part:
                break
            got.extend(part)

    thread = threading.Thread(target=serve)
    thread.start()
    client = tcp(2)
    client.connect((PS, 9999))
    client.sendall(data)
    client.close()
    thread.join(20)
    equal(bytes(got), data, 'TCP')
    listener.close()


def tcp(host):
    probe = udp(host, '0.0.0.0', 0)
    probe.close()
    # made by the same way into the namespace
    from rack import ctypes
    setns = ctypes.CDLL(None).setns
    back = os.open('/proc/self/ns/net', os.O_RDONLY)
    there = os.open('/run/netns/' + ns(host), os.O_RDONLY)
    setns(there, 0x40000000)
    sock = socket.socket()
    setns(back, 0x40000000)
    os.close(back)
    os.close(there)
    sock.settimeout(20)
    return sock


def within_tcp(host):
    listener = tcp(host)
    listener.bind((PS, 9999))
    listener.listen(1)
    return listener


def test_control_and_unknown_jobs_pass():
    socks = hosts()
    socks[0].sendto(packet(0, JOB, 1, 1, [0] * 8, kind=7), (PS, PORT))
    equal(receive(socks[4]).type, 7, 'type')
    socks[0].sendto(packet(0, 999, 1, 1, [5, 6]), (PS, PORT))
    got = receive(socks[4])
    equal(got.lanes, [5, 6], 'unknown job')
    want(not got.flags & SWITCHED, 'SWITCHED of an unknown job')
    others = shown()['others']
    want(others['control'] >= 1 and others['unknown'] >= 1, str(others))


def program(dev):
    """The number of the one that runs there"""
    link = json.loads(within('s', 'ip -j link show dev ' + dev).stdout)[0]
    return link['xdp']['prog']['id']


def egress():
    """How many ports and hosts of groups there are to send to, and the number of
    each program that runs there"""
    maps = ['pinned ' + pinned('ports')]
    maps += ['id %d' % struct.unpack('=I', group)
             for group in dump('pinned ' + pinned('groups'))]
    found = [struct.unpack('=II', value) for each in maps
             for value in dump(each)]
    return len(found), {prog for _, prog in found}


def tag(number):
    """Of a program's instructions"""
    return json.loads(sh('bpftool -j prog show id %d' % number).stdout)['tag']


def test_upgrade_keeps_sums():
    socks, seq = hosts(), next(numbers)
    before = counters(JOB)
    push(socks, seq, [0, 1], 350, PS)
    old = [program('p%d' % i) for i in range(1, 6)]
    old_out, old_tag = egress(), tag(old[0])
    within('s', NEXT + ' switch attach dev p1')
    new = [program('p%d' % i) for i in range(1, 6)]
    want(len(set(old)) == len(set(new)) == 1, 'one program at all ports')
    want(tag(new[0]) != old_tag, 'the program is the old one')
    # six ports, twice each, and the group of one job with four workers
    hosts_out, out = egress()
    equal((old_out[0], hosts_out), (16, 16), 'entries of devmaps')
    equal(len(out), 1, 'programs in devmaps')
    want(not out & old_out[1], 'the program in devmaps is the old one')
    equal(json.loads(sh('bpftool -j prog show id %d' % out.pop()).stdout)
          ['name'], 'atp_egress', 'program in devmaps')
    push(socks, seq, [2, 3], 350, PS)
    equal(receive(socks[4]).lanes, total(range(4), 350), 'sum')
    after = counters(JOB)
    equal(after['completed'] - before['completed'], 1, 'counters')
    answer(socks, seq, [0] * 350)


def test_upgrades_lose_nothing():
    loses_nothing(NEXT + ' switch attach dev p1',
                  TOOL + ' switch attach dev p1')


def test_replaced_by_the_same_keeps_sums():
    socks, seq = hosts(), next(numbers)
    replace = ADD.replace('add', 'replace')
    push(socks, seq, [0, 1], 350, PS)
    switch(replace % (JOB, PS))
    push(socks, seq, [2, 3], 350, PS)
    equal(receive(socks[4]).lanes, total(range(4), 350), 'sum')
    answer(socks, seq, [0] * 350)
    before = counters(JOB)
    done = switch((replace % (JOB, PS)) + ' quota 65', check=False)
    want(done.returncode and 'quota' in done.stdout, done.stdout)
    switch(replace % (12, PS))
    round_trip(socks, PS, WORKERS[0], 62, job=12)
    # of another member nothing is kept
    switch((replace % (12, PS)).replace(WORKERS[3], '10.8.0.6'))
    equal(counters(12)['completed'], 0, 'counter')
    switch('job del 12')
    equal(counters(JOB), before, 'counters')


def test_congestion_marks():
    socks = hosts()
    switch('port set dev p5 rate 1 mark 100')
    fragments = list(itertools.islice(numbers, 20))
    for seq in fragments:
        push(socks, seq, range(3), 350, PS)
    # now one packet each makes a sum, so that they come close to each other
    for seq in fragments:
        push(socks, seq, [3], 350, PS)
    marks = [receive(socks[4]).tos & 3 for _ in fragments]
    want(3 in marks, 'nothing was marked')
    for seq in fragments:
        answer(socks, seq, [0])
    port = [p for p in shown()['ports'] if p['dev'] == 'p5'][0]
    want(port['marked'] > 0, 'not counted')
    switch('port set dev p5 rate 10000 mark 200')


def test_marks_are_merged():
    socks, seq = hosts(), next(numbers)
    socks[0].setsockopt(socket.SOL_IP, socket.IP_TOS, 3)
    push(socks, seq, range(4), 62, PS)
    socks[0].setsockopt(socket.SOL_IP, socket.IP_TOS, 2)
    want(receive(socks[4]).flags & ECN, 'mark was lost')
    answer(socks, seq, [0] * 62)


def test_routed_ps():
    """The PS in another subnet: MAC addresses, time to live"""
    switch(ADD % (9, '10.8.0.6'))
    ps = udp(6, '10.8.0.6')
    socks = hosts()[:4] + [ps]
    got = round_trip(socks, '10.8.0.6', WORKERS[0], 62, job=9)
    equal(got.ttl, 63, 'time to live')
    ps.close()
    switch('job del 9')


def test_quota():
    switch((ADD % (10, PS)) + ' quota 2')
    socks = hosts()
    for i in range(3):
        push(socks, next(numbers), [0], 62, PS, job=10)
    got = receive(socks[4])
    want(got.flags & COLLISION, 'COLLISION is not set')
    equal(got.cap, 2, 'cwndCap')
    equal(counters(10)['collision_quota'], 1, 'counter')
    occupied = shown()['occupied']
    switch('job del 10')
    equal(shown()['occupied'], occupied - 2, 'emptied with the job')


def test_no_memory_to_empty_it():
    """Then a job stays as it is: aggregators are emptied through a mapping."""
    switch(ADD % (13, PS))
    push(hosts(), next(numbers), [0], 62, PS, job=13)
    occupied = shown()['occupied']

    def limited(kib, words):
        return within('s', 'prlimit --as=%d %s switch %s' % (
            kib << 10, TOOL, words), check=False)

    # the least that the tool needs for what maps nothing
    least, most = 0, 1 << 22
    while most - least > 64:
        middle = (least + most) // 2
        if limited(middle, 'show').returncode:
            least = middle
        else:
            most = middle
    refused = 0
    while True:
        done = limited(most, 'job del 13')
        if not done.returncode:
            break
        refused += 'cannot map the aggregators' in done.stdout
        equal(shown()['occupied'], occupied, 'occupied')
        counters(13)
        most += 64
    want(refused, 'there was memory enough')
    equal(shown()['occupied'], occupied - 1, 'emptied with the job')


def test_a_slow_reader_holds_nobody_up():
    """What is shown into a pipe that is full keeps no lock."""
    reader, writer = os.pipe()
    size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, bytes(size))
    # pylint: disable-next=consider-using-with
    shows = subprocess.Popen(
        ['nsenter', '--net=/run/netns/' + ns('s'), TOOL, 'switch', 'show'],
        stdout=writer)
    os.close(writer)
    try:
        # write()
        while sh('cat /proc/%d/syscall' % shows.pid).stdout[:2] != '1 ':
            time.sleep(0.05)
        # else for ever
        within('s', 'timeout 60 %s switch refresh' % TOOL)
    finally:
        with open(reader, 'rb') as file:
            text = file.read()[size:]
        equal(shows.wait(), 0, 'show')
    want(b'job %d' % JOB in text, text)


def test_refusals_say_why():
    for words, text in (
            ('attach dev p1 aggregators 5', 'has 64 aggregators'),
            ('attach dev nonsense', 'no interface'),
            ('attach dev br0', 'is a bridge'),
            ('job del 55', 'is not known'),
            (ADD % (JOB, PS), 'exists'),
            ('job add 11 ps %s worker fd09::1' % PS, 'one family'),
            ('job add 11 ps 10.9.0.254 worker 10.9.0.1', 'this machine'),
            ('job add 11 ps 192.0.2.1 worker 10.9.0.1 quota 65', 'quota'),
            ('job add 11 worker 10.9.0.1', 'where is the PS'),
            ('frobnicate', 'what is')):
        done = switch(words, check=False)
        want(done.returncode, words + ' succeeds')
        want(text in done.stdout, '%s: %s' % (words, done.stdout))


def test_one_host_with_two_ranks():
    switch('job add 12 ps %s worker 10.9.0.3 worker 10.9.0.3' % PS)
    socks, seq = hosts(), next(numbers)
    for rank in range(2):
        socks[2].sendto(packet(0, 12, seq, 1 << rank, [3, 4], fanin=2),
                        (PS, PORT))
    equal(receive(socks[4]).lanes, [6, 8], 'sum')
    socks[4].sendto(packet(ACK | MCAST, 12, seq, 0, [6, 8], fanin=2),
                    ('10.9.0.3', PORT))
    receive(socks[2])
    want(silent(socks[2]), 'two copies for one host')
    switch('job del 12')


def test_a_rank_on_the_host_of_the_ps():
    """Nothing of it comes by here: the switch does not wait for it"""
    switch('job add 13 ps %s worker %s worker %s worker %s' % (
        PS, PS, *WORKERS[:2]))
    socks, seq = hosts(), next(numbers)
    for rank in (1, 2):
        socks[rank - 1].sendto(packet(0, 13, seq, 1 << rank, [3, 4], fanin=3),
                               (PS, PORT))
    got = receive(socks[4])
    equal((got.bitmap, got.lanes), (6, [6, 8]), 'sum')
    socks[4].sendto(packet(ACK | MCAST, 13, seq, 0, [7, 9], fanin=3),
                    (WORKERS[0], PORT))
    for rank in (1, 2):
        equal(receive(socks[rank - 1]).lanes, [7, 9], 'result')
    want(silent(socks[4]), 'its own packet came back to the PS')
    # with one that passes there is nothing to add
    switch('job replace 13 ps %s worker %s worker %s' % (PS, PS, WORKERS[0]))
    socks[0].sendto(packet(0, 13, seq, 2, [3, 4], fanin=2), (PS, PORT))
    equal(receive(socks[4]).lanes, [3, 4], 'gradient')
    switch('job del 13')


def test_detached():
    """Without the program the packets simply go on"""
    switch('detach')
    want(switch('show', check=False).returncode, 'still there')
    want('xdp' not in within('s', 'ip link show').stdout, 'still attached')
    socks, seq = hosts(), next(numbers)
    push(socks, seq, [2, 3], 62, PS)
    equal(sorted(receive(socks[4]).bitmap for _ in range(2)), [4, 8],
          'bitmaps')


def test_another_layout_is_refused():
    """Settings of a version with other maps, which cannot be used again"""
    ports = ' '.join('dev p%d' % i for i in range(1, 7))
    switch('attach %s aggregators 64' % ports)
    switch(ADD % (JOB, PS))
    old = program('p1')
    another_layout()
    done = switch('attach dev p1', check=False)
    want(done.returncode and 'of another version' in done.stdout and
         'atp switch detach, then attach again' in done.stdout, done.stdout)
    equal([program('p%d' % i) for i in range(1, 7)], [old] * 6, 'programs')
    socks, seq = hosts(), next(numbers)
    push(socks, seq, range(4), 62, PS)
    got = receive(socks[4])
    equal((got.bitmap, got.lanes), (15, total(range(4), 62)), 'sum')
    answer(socks, seq, got.lanes)
    switch('detach')
    want(switch('show', check=False).returncode, 'still there')
    # which takes the kernel a moment if nobody asks the links one by one
    end = time.monotonic() + 20
    while 'xdp' in within('s', 'ip link show').stdout:
        want(time.monotonic() < end, 'still attached')


def test_another_program_is_named():
    within('s', 'ip link set p2 xdp obj %s sec xdp 2>/dev/null' %
           os.path.join(os.path.dirname(TOOL), 'pass.bpf.o'))
    done = switch('attach dev p2', check=False)
    want(done.returncode and 'another XDP program' in done.stdout,
         done.stdout)
    done = switch('check dev p2', check=False)
    want(done.returncode and 'another XDP program' in done.stdout,
         done.stdout)
    within('s', 'ip link set p2 xdp off')


def test_generic_only_if_asked():
    ports = ' '.join('dev p%d' % i for i in range(1, 6))
    done = switch('check generic ' + ports, check=False)
    want('6.1.178' in done.stdout, done.stdout)
    done = switch('attach generic aggregators 64 ' + ports)
    want('6.1.178' in done.stdout, done.stdout)
    equal(shown()['mode'], 'generic', 'mode')
    # the copies for all of the workers, too
    switch(ADD % (JOB, PS))
    for lanes in (62, 350):
        round_trip(hosts(), PS, WORKERS[0], lanes)
    switch('detach')


def main():
    return run([(name, fn) for name, fn in globals().items()
                if name.startswith('test_')], vital=test_attach_native)


if __name__ == '__main__':
    sys.exit(main())
