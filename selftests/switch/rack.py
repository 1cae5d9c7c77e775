# SPDX-License-Identifier: GPL-2.0
"""Hosts and a switch in network namespaces, and packets between them.

         h1     h2     h3     h4     h5 (PS)
         |      |      |      |      |
   +----p1-----p2-----p3-----p4-----p5-------p6--- h6 (router mode)
   |    +---------- br0 (10.9.0.254) --+      10.8.0.254
   +--------------------------------------------------

A second host can be put behind a port with a plain bridge of its own.
"""

import contextlib
import ctypes
import json
import os
import socket
import struct
import subprocess

TOP = os.path.abspath(os.path.dirname(__file__) + '/../..')
TOOL = os.environ.get('ATP_SWITCH',
                      TOP + '/build/selftests/switch/atp-switch')
# The same with other instructions: what it is upgraded to
NEXT = os.path.join(os.path.dirname(TOOL), 'atp-switch-next')
PREFIX = 'atpsw%d' % os.getpid()
PORT = 4797

OVERFLOW, RESEND, COLLISION, ECN, ACK, RAW, LAST, SWITCHED, MCAST = (
    1, 2, 4, 8, 0x20, 0x40, 0x80, 0x100, 0x200)
IP_TRANSPARENT = 19
SO_NETNS_COOKIE = 71
# Seconds after which a packet that is waited for is lost, however busy we are
LOST = 60


def sh(command, check=True):
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if check and done.returncode:
        raise RuntimeError('%s: %s' % (command, done.stdout))
    return done


def ns(host):
    return PREFIX + str(host)


def within(host, command, check=True):
    """A command in a host's namespace; bpffs stays visible"""
    return sh('nsenter --net=/run/netns/%s -- %s' % (ns(host), command),
              check)


def switch(words, check=True):
    return within('s', TOOL + ' switch ' + words, check)


def shown():
    return json.loads(within('s', TOOL + ' -json switch show').stdout)


def counters(job):
    for one in shown()['jobs']:
        if one['job'] == job:
            return one['counters']
    raise KeyError(job)


def pinned(name):
    """Where the switch has pinned what has that name"""
    with contextlib.closing(udp('s', '0.0.0.0', 0)) as sock:
        cookie = struct.unpack('=Q', sock.getsockopt(socket.SOL_SOCKET,
                                                     SO_NETNS_COOKIE, 8))[0]
    return '/sys/fs/bpf/atp/netns-%d/%s' % (cookie, name)


def dump(what):
    """The values of a map"""
    entries = json.loads(sh('bpftool -j map dump ' + what).stdout)
    return [bytes(int(byte, 16) for byte in entry['value'])
            for entry in entries]


def another_layout():
    """The switch seems to be of a version with other maps"""
    settings = 'pinned ' + pinned('settings')
    sh('bpftool map update %s key 0 0 0 0 value 255 %s' %
       (settings, ' '.join(str(byte) for byte in dump(settings)[0][1:])))
    sh('rm ' + pinned('port_places'))


def leave_lock():
    """A loader was killed while it had locked the first aggregator"""
    aggregators = 'pinned ' + pinned('aggregators')
    sh('bpftool map update %s key 0 0 0 0 value 2 %s' %
       (aggregators, ' '.join(str(byte) for byte in dump(aggregators)[0][1:])))


def locks():
    """Of all aggregators"""
    return {value[0] for value in dump('pinned ' + pinned('aggregators'))}


def host_up(host, device, addresses):
    """Complete checksums, and a device that receives what is redirected"""
    within(host, 'ip link set lo up')
    within(host, 'ip link set %s mtu 3498 up' % device)
    within(host, 'ethtool -K %s gro on tx off' % device)
    for address in addresses:
        nodad = ' nodad' if ':' in address else ''
        within(host, 'ip addr add %s dev %s%s' % (address, device, nodad))


def up():
    sh('ip netns add ' + ns('s'))
    within('s', 'ip link set lo up')
    # of its own, or it has the least of its ports' and forgets its neighbours
    # when that changes
    within('s', 'ip link add br0 address 02:00:00:00:07:fe type bridge')
    within('s', 'ip link set br0 up')
    within('s', 'ip addr add 10.9.0.254/24 dev br0')
    within('s', 'ip addr add fd09::fe/64 dev br0 nodad')
    within('s', 'sysctl -qw net.ipv4.ip_forward=1')
    for i in range(1, 7):
        sh('ip netns add ' + ns(i))
        # two ports each would have the same place in the switch
        index = 1000 + i % 3 + 256 * (i // 3)
        within('s', 'ip link add p%d index %d type veth peer name eth0 '
               'netns %s' % (i, index, ns(i)))
        within('s', 'ip link set p%d mtu 3498 up' % i)
        if i < 6:
            within('s', 'ip link set p%d master br0' % i)
            host_up(i, 'eth0', ['10.9.0.%d/24' % i, 'fd09::%x/64' % i])
            within(i, 'ip route add default via 10.9.0.254')
    within('s', 'ip addr add 10.8.0.254/24 dev p6')
    host_up(6, 'eth0', ['10.8.0.6/24'])
    within(6, 'ip route add default via 10.8.0.254')


def split_port(port):
    """A plain bridge between a port and its host, where others can be put"""
    bridge = 'b%d' % port
    sh('ip netns add ' + ns(bridge))
    within('s', 'ip link set p%d down' % port)
    within(port, 'ip link del eth0')
    within(bridge, 'ip link add br0 type bridge')
    within(bridge, 'ip link set br0 mtu 3498 up')
    within(bridge, 'ip link add up0 type veth peer name p%d netns %s' % (
        port, ns('s')))
    within('s', 'ip link set p%d mtu 3498 master br0' % port)
    within('s', 'ip link set p%d up' % port)
    within(bridge, 'ip link set up0 mtu 3498 master br0 up')
    within(bridge, 'ethtool -K up0 gro on')
    put_behind(port, port)


def put_behind(port, host):
    """A host behind a port that was split"""
    bridge = 'b%d' % port
    if host != port:
        sh('ip netns add ' + ns(host))
    within(bridge, 'ip link add d%d type veth peer name eth0 netns %s' % (
        host, ns(host)))
    within(bridge, 'ip link set d%d mtu 3498 master br0 up' % host)
    host_up(host, 'eth0', ['10.9.0.%d/24' % host])


def down():
    if os.path.exists('/run/netns/' + ns('s')):
        switch('detach', check=False)
    for host in ['s', 'b1', 'b2'] + list(range(1, 11)):
        sh('ip netns del ' + ns(host), check=False)


def udp(host, address, port=PORT, transparent=False):
    """A socket of a host, made in its namespace"""
    setns = ctypes.CDLL(None, use_errno=True).setns
    back = os.open('/proc/self/ns/net', os.O_RDONLY)
    there = os.open('/run/netns/' + ns(host), os.O_RDONLY)
    if setns(there, 0x40000000):
        raise OSError('setns')
    try:
        family = socket.AF_INET6 if ':' in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_DGRAM)
    finally:
        setns(back, 0x40000000)
        os.close(back)
        os.close(there)
    if transparent:
        sock.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
    if family == socket.AF_INET:
        sock.setsockopt(socket.SOL_IP, socket.IP_TOS, 2)
        sock.setsockopt(socket.SOL_IP, 13, 1)       # IP_RECVTOS
        sock.setsockopt(socket.SOL_IP, 12, 1)       # IP_RECVTTL
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, 67, 2)     # IPV6_TCLASS
    sock.bind((address, port))
    sock.settimeout(LOST)
    return sock


def packet(flags, job, seq, bitmap, lanes, fanin=4, epoch=1, index=None,
           kind=1):
    head = struct.pack('>BBHIIIIIBBBBIHH', 1, kind, flags, job, epoch, seq,
                       bitmap, 0, fanin, 0, 1, 0,
                       seq if index is None else index, len(lanes), 0xffff)
    return (head + struct.pack('<%di' % len(lanes), *lanes) +
            bytes(4 * (len(lanes) & 1)))


class Packet:
    def __init__(self, data, ancillary, source):
        (_, self.type, self.flags, self.job, self.epoch, self.seq,
         self.bitmap, _, self.fanin, _, _, _, self.index, elements,
         self.cap) = struct.unpack('>BBHIIIIIBBBBIHH', data[:36])
        self.lanes = list(struct.unpack('<%di' % elements,
                                        data[36:36 + 4 * elements]))
        self.source = source[0]
        self.tos = self.ttl = None
        for level, kind, value in ancillary:
            if level == socket.SOL_IP and kind == socket.IP_TOS:
                self.tos = value[0]
            elif level == socket.SOL_IP and kind == socket.IP_TTL:
                self.ttl = struct.unpack('i', value)[0]


def receive(sock):
    data, ancillary, _, source = sock.recvmsg(9000, 256)
    return Packet(data, ancillary, source)


def silent(sock, seconds=0.2):
    """Does nothing come?"""
    sock.settimeout(seconds)
    try:
        receive(sock)
        return False
    except socket.timeout:
        return True
    finally:
        sock.settimeout(LOST)
