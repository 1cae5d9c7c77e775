#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The unit atp-switch under systemd, which runs as the first process of
namespaces of its own: nothing but this unit, on the switch's network."""

import os
import subprocess
import sys
import time

from dispatcher import LOAD_OTHER, seen_by_other
from rack import TOP, counters, ns, receive, sh, shown, within
from traffic import (ADD, JOB, PS, answer, equal, hosts, loses_nothing,
                     numbers, push, round_trip, run, total, want, WORKERS)

sys.path.append(os.path.join(TOP, 'selftests/tools'))
from doc_blocks import blocks, lines_of     # noqa: E402

UNIT = 'atp-switch.service'
UNITS = '/run/units'
# The administrator's, without what this machine has there
ETC = '/etc/systemd/system'
BOOT = """
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p {units} {etc} /run/systemd/system
mount -t tmpfs tmpfs {etc}
cp {top}/debian/{unit} {units}
for target in basic sysinit multi-user; do
    printf '[Unit]\\nDescription=%s\\n' $target > {units}/$target.target
done
exec env -i PATH="$PATH" container=test \\
    SYSTEMD_UNIT_PATH={units}:{etc}:/run/systemd/system \\
    /lib/systemd/systemd --system --unit=basic.target --log-target=null
""".format(units=UNITS, etc=ETC, top=TOP, unit=UNIT)
CONFIG = '/etc/atp/switch'
DROP_IN = os.path.join(TOP, 'debian/dispatcher.conf')
# Where the package has it
EXAMPLES = '/usr/share/doc/atp-switch/examples'
ERRORS = '/run/errors'
LONG = 300


def configure(words=''):
    with open(CONFIG, 'w', encoding='ascii') as file:
        file.write('switch attach aggregators 64 %s %s\nswitch %s\n' % (
            ' '.join('dev p%d' % i for i in range(1, 6)), words,
            ADD.replace('job add', 'job replace') % (JOB, PS)))


def lines_for_a_dispatcher():
    """What the reader is to type: install, daemon-reload, restart"""
    lines, = [lines_of(text) for file, text in blocks()
              if file.endswith('/operations.rst') and
              text.startswith('install ')]
    return lines


def content(path):
    with open(path, encoding='ascii') as file:
        return file.read()


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

    def drop_in(self, name, text):
        """No text: none any more"""
        folder = '/proc/%s/root%s/%s.d' % (self.inner, UNITS, UNIT)
        path = '%s/%s.conf' % (folder, name)
        if text:
            os.makedirs(folder, exist_ok=True)
            with open(path, 'w', encoding='ascii') as file:
                file.write(text)
        else:
            os.remove(path)
        self.ctl('daemon-reload')

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
        configure()
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
        old = content(CONFIG)
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
        words, = [line.split('=')[1].split()
                  for line in content('%s/debian/%s' % (
                      TOP, UNIT)).splitlines()
                  if line.startswith('CapabilityBoundingSet=')]
        for word in words:
            # which would wait until it is tried again
            self.system.ctl('stop ' + UNIT)
            within('s', '/usr/sbin/atp switch detach', check=False)
            self.system.drop_in('less', '[Service]\n'
                                'CapabilityBoundingSet=~%s\n' % word)
            self.system.ctl('start ' + UNIT, works=False)
        self.system.ctl('stop ' + UNIT)
        self.system.drop_in('less', '')
        self.system.ctl('start ' + UNIT)
        round_trip(hosts(), PS, WORKERS[0], 62)

    def test_a_host_that_is_late_keeps_no_other_job(self):
        """And its own comes when it is there"""
        old, other = content(CONFIG), JOB + 1
        with open(CONFIG, 'a', encoding='ascii') as file:
            file.write('switch job replace %d ps %s worker %s\n' % (
                other, PS, WORKERS[0]))
        self.system.ctl('stop ' + UNIT)
        self.system.drop_in('soon', '[Service]\nRestartSec=3\n')
        within('s', '/usr/sbin/atp switch detach')
        within(4, 'ip link set eth0 down')
        self.system.ctl('start ' + UNIT, works=False)
        equal([job['job'] for job in shown()['jobs']], [other], 'jobs')
        within(4, 'ip link set eth0 up')
        end = time.monotonic() + 2 * LONG
        while self.system.state() != 'active':
            want(time.monotonic() < end, 'it is not tried again')
            time.sleep(1)
        equal(sorted(job['job'] for job in shown()['jobs']), [JOB, other],
              'jobs')
        round_trip(hosts(), PS, WORKERS[0], 62)
        self.system.drop_in('soon', '')
        within('s', '/usr/sbin/atp switch job del %d' % other)
        with open(CONFIG, 'w', encoding='ascii') as file:
            file.write(old)

    def refuses(self, word):
        """And says what is missing"""
        self.system.run('rm -f ' + ERRORS)
        self.system.ctl('%s %s' % (word, UNIT), works=False)
        said = self.system.run('cat ' + ERRORS).stdout
        want('CAP_SYS_ADMIN' in said and 'atp-switch(8)' in said, said)

    def test_a_dispatcher_needs_a_drop_in(self):
        self.system.ctl('stop ' + UNIT)
        within('s', '/usr/sbin/atp switch detach')
        within('s', LOAD_OTHER % 'p2')
        configure('dispatcher')
        self.system.drop_in('errors',
                            '[Service]\nStandardError=file:%s\n' % ERRORS)
        self.refuses('start')
        status = within('s', 'xdp-loader status').stdout
        want('atp_ingress' not in status and 'pass' in status, status)

    def test_beside_another_program(self):
        sh('install -D -m 644 -t %s %s' % (EXAMPLES, DROP_IN))
        for line in lines_for_a_dispatcher():
            done = self.system.run(line)
            equal(done.returncode, 0, line + ': ' + done.stdout)
        equal(self.system.run('systemd-analyze verify --man=no %s/%s' % (
            UNITS, UNIT)).stdout, '', 'systemd-analyze')
        before = seen_by_other()
        round_trip(hosts(), PS, WORKERS[0], 350)
        want(seen_by_other() > before, 'it has not seen our packets')
        for word in ('restart', 'reload'):
            loses_nothing(self.system.command('systemctl %s %s' % (
                word, UNIT)), times=1)
        status = within('s', 'xdp-loader status').stdout
        equal((status.count('atp_ingress'), status.count('pass')), (5, 1),
              status)

    def test_without_the_drop_in_it_goes_on_as_it_was(self):
        self.system.run('rm %s/%s.d/dispatcher.conf' % (ETC, UNIT))
        self.system.ctl('daemon-reload')
        self.refuses('reload')
        self.refuses('restart')
        round_trip(hosts(), PS, WORKERS[0], 62)
        # else it comes once more
        self.system.ctl('stop ' + UNIT)
        within('s', '/usr/sbin/atp switch detach')
        status = within('s', 'xdp-loader status').stdout
        want('atp_ingress' not in status and 'pass' in status, status)
        within('s', 'xdp-loader unload p2 --all')

    def test_the_drop_in_is_in_the_texts(self):
        for page in ('man/atp-switch.8', 'operations.rst'):
            text = [line.strip() for line in content(
                '%s/Documentation/%s' % (TOP, page)).splitlines()]
            for line in content(DROP_IN).splitlines():
                want(not line or line[0] == '#' or line in text,
                     '%s lacks %s' % (page, line))


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
