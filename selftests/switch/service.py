#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The unit atp-switch under systemd, which runs as the first process of
namespaces of its own: nothing but this unit, on the switch's network."""

import os
import subprocess
import sys
import time

from rack import TOP, counters, ns, receive, sh, shown, within
from traffic import (ADD, JOB, PS, answer, equal, hosts, loses_nothing,
                     numbers, push, round_trip, run, total, want, WORKERS)

UNIT = 'atp-switch.service'
UNITS = '/run/units'
BOOT = """
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p {units} /run/systemd/system
cp {top}/debian/{unit} {units}
for target in basic sysinit multi-user; do
    printf '[Unit]\\nDescription=%s\\n' $target > {units}/$target.target
done
exec env -i PATH="$PATH" container=test SYSTEMD_UNIT_PATH={units}:/run/systemd/system \\
    /lib/systemd/systemd --system --unit=basic.target --log-target=null
""".format(units=UNITS, top=TOP, unit=UNIT)
CONFIG = '/etc/atp/switch'
LONG = 60


class Systemd:
    """What runs the unit"""

    def __init__(self):
        self.inner = None
        # pylint: disable=consider-using-with
        self.outer = subprocess.Popen(
            ['nsenter', '--net=/run/netns/' + ns('s'), 'unshare', '--fork',
             '--pid', '--mount', '--cgroup', '--uts', '--ipc', '--mount-proc',
             '--kill-child', 'bash', '-c', BOOT],
            stdin=subprocess.DEVNULL)
        end = time.monotonic() + LONG
        while not self.is_up():
            if self.outer.poll() is not None or time.monotonic() > end:
                raise RuntimeError('systemd does not start')
            time.sleep(0.1)

    def is_up(self):
        path = '/proc/%d/task/%d/children' % (2 * (self.outer.pid,))
        with open(path, encoding='ascii') as file:
            self.inner = file.read().strip()
        return (self.inner and not
                self.run('systemctl is-active basic.target').returncode)

    def command(self, words):
        return 'nsenter --target %s --mount --pid -- %s' % (self.inner, words)

    def run(self, words):
        return sh(self.command(words), check=False)

    def ctl(self, words, works=True):
        done = self.run('systemctl %s' % words)
        equal(not done.returncode, works, words + ': ' + done.stdout)

    def state(self):
        return self.run('systemctl is-active ' + UNIT).stdout.strip()

    def end(self):
        # which takes the rest along
        self.outer.kill()
        self.outer.wait()


class Test:
    """The tests, which share a system"""

    def __init__(self):
        self.system = None

    def test_it_starts(self):
        os.makedirs(os.path.dirname(CONFIG), exist_ok=True)
        with open(CONFIG, 'w', encoding='ascii') as file:
            file.write('switch attach aggregators 64 %s\nswitch %s\n' % (
                ' '.join('dev p%d' % i for i in range(1, 6)),
                ADD.replace('job add', 'job replace') % (JOB, PS)))
        # the unit knows nothing of a checkout
        sh('install -m 755 %s/build/bin/atp /usr/sbin/atp' % TOP)
        self.system = Systemd()
        equal(self.system.run('systemd-analyze verify --man=no %s/%s' % (
            UNITS, UNIT)).stdout, '', 'systemd-analyze')
        self.system.ctl('enable --runtime ' + UNIT)
        # as at boot
        self.system.ctl('start multi-user.target')
        end = time.monotonic() + LONG
        while self.system.state() in ('inactive', 'activating'):
            want(time.monotonic() < end, 'it is not started')
            time.sleep(0.1)
        equal(self.system.state(), 'active', 'state')
        round_trip(hosts(), PS, WORKERS[0], 350)

    def test_restarts_lose_nothing(self):
        for word in ('restart', 'reload'):
            loses_nothing(self.system.command('systemctl %s %s' % (
                word, UNIT)), times=3)

    def test_sums_and_counters_outlive_a_stop(self):
        socks, seq = hosts(), next(numbers)
        before = counters(JOB)
        push(socks, seq, [0, 1], 350, PS)
        self.system.ctl('stop ' + UNIT)
        equal(self.system.state(), 'inactive', 'state')
        push(socks, seq, [2], 350, PS)
        self.system.ctl('start ' + UNIT)
        push(socks, seq, [3], 350, PS)
        equal(receive(socks[4]).lanes, total(range(4), 350), 'sum')
        equal(counters(JOB)['completed'] - before['completed'], 1, 'counter')
        answer(socks, seq, [0] * 350)

    def test_another_job_begins_anew(self):
        with open(CONFIG, encoding='ascii') as file:
            old = file.read()
        with open(CONFIG, 'w', encoding='ascii') as file:
            file.write(old.replace('worker ' + WORKERS[3], ''))
        self.system.ctl('reload ' + UNIT)
        job = shown()['jobs'][0]
        equal((len(job['ranks']), job['counters']['completed']), (3, 0), 'job')
        with open(CONFIG, 'w', encoding='ascii') as file:
            file.write(old)
        self.system.ctl('reload ' + UNIT)
        round_trip(hosts(), PS, WORKERS[0], 62)

    def test_it_has_no_capability_too_many(self):
        with open(os.path.join(TOP, 'debian', UNIT), encoding='ascii') as file:
            words, = [line.split('=')[1].split() for line in file
                      if line.startswith('CapabilityBoundingSet=')]
        folder = '%s/%s.d' % (UNITS, UNIT)
        self.system.ctl('stop ' + UNIT)
        for word in words:
            within('s', '/usr/sbin/atp switch detach', check=False)
            self.system.run("sh -c 'mkdir -p %s && printf \"[Service]\\n"
                            "CapabilityBoundingSet=~%s\\n\" > %s/less.conf'"
                            % (folder, word, folder))
            self.system.ctl('daemon-reload')
            self.system.ctl('start ' + UNIT, works=False)
        self.system.run('rm -r ' + folder)
        self.system.ctl('daemon-reload')
        self.system.ctl('start ' + UNIT)
        round_trip(hosts(), PS, WORKERS[0], 62)


def main():
    test = Test()
    tests = [(name, getattr(test, name)) for name in vars(Test)
             if name.startswith('test_')]
    try:
        return run(tests, vital=tests[0][1])
    finally:
        if test.system:
            test.system.end()


if __name__ == '__main__':
    sys.exit(main())
