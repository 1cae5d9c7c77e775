#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""atp check: a rack that is fine, and one with each fault: its line names it,
and what the line says mends it."""

import glob
import json
import os
import socket
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from live import (  # noqa: E402
    FRAGMENT, JOB, LANES, TOP, expect, kill_run, lay_out, rack, start_run,
    tell, wait_for, without_module,
)
from rack import atp, inside, run  # noqa: E402

import kmod  # noqa: E402

ATP = os.path.join(TOP, "build/bin/atp")
PASS = os.path.join(TOP, "build/selftests/switch/pass.bpf.o")
CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
JOB6 = 8
HOSTS = {
    JOB: ("ps", "10.0.0.254", "worker", "10.0.0.1", "worker", "10.0.0.2"),
    JOB6: ("ps", "fd00::fe", "worker", "fd00::1", "worker", "fd00::2"),
}
STATES = {"ok", "warn", "bad"}


def sh(*words):
    subprocess.run(list(map(str, words)), check=True, stdout=subprocess.PIPE)


def within(host, *words):
    with inside(host):
        sh(*words)


def parse(output):
    """Nothing but JSON; of all that is not fine a line says what to do."""
    lines = json.loads(output)
    for line in lines:
        expect((line, line["state"] in STATES, bool(line["what"]),
                bool(line["found"]), bool(line.get("mend"))),
               (line, True, True, True, line["state"] != "ok"))
    return lines


def check(host, *words):
    """The lines, with which the status agrees."""
    status, output = atp(host, "-json", "check", *words)
    lines = parse(output)
    bad = [line for line in lines if line["state"] == "bad"]
    expect((status, bad), (1 if bad else 0, bad))
    return lines


def found(lines, state):
    return [(line.get("about", ""), line["what"]) for line in lines
            if line["state"] == state]


def bad(host, *words):
    return found(check(host, *words), "bad")


def warned(host, *words):
    """But for the clock, which is that of the emulator."""
    return [line for line in found(check(host, *words), "warn")
            if line != ("", "clock")]


RANK0, PS, SWITCH = (f"job {JOB} rank 0", f"job {JOB} PS",
                     f"switch job {JOB}")


def a_rack_that_is_fine():
    lay_out()
    rack("job_add", JOB6, 2, 6)
    lines = check("w0")
    expect([line for line in lines if line["state"] != "ok" and
            line["what"] != "clock"], [])
    for about in (RANK0, f"job {JOB6} rank 0"):
        expect([line["what"] for line in lines if line.get("about") == about],
               ["MTU", "path to the PS", "full fragments", "switch", "GRO"])
    expect((bad("ps"), warned("ps")), ([], []))
    lines = check("switch")
    expect(found(lines, "bad"), [])
    for what in ("hosts", "multicast", "aggregators"):
        expect((SWITCH, what) in found(lines, "ok"), True)
    # nothing was left in it
    expect(tell("switch", "switch", "show")["occupied"], 0)


def people_read_the_same():
    status, output = atp("w0", "check", "job", JOB)
    expect(status, 0)
    expect(f"ok   {RANK0}: switch: one on the way adds\n" in output, True)


def a_run_does_not_notice():
    """It compares its sums with what they should be, and goes on."""
    rack("netem", "ps", "both", "delay", "10ms")
    # as many as there is no time for, see test_top.py
    work = start_run("--chunks", 30000, "--lanes", LANES, "--depth", 100)

    def completed():
        return tell("ps", "stats", "job", JOB)[0]["counters"]["completed"]
    wait_for(lambda: completed() > 100, "progress")
    for host in ("w0", "ps", "switch"):
        expect(bad(host, "job", JOB), [])
    before = completed()
    wait_for(lambda: completed() > before + 100, "more of it")
    expect(tell("ps", "stats", "job", JOB)[0]["counters"]["aborts"], 0)
    kill_run(work)
    rack("netem", "ps", "both")


def a_switch_that_does_not_know_the_job():
    within("switch", ATP, "switch", "job", "del", JOB)
    expect(warned("w0", "job", JOB), [(RANK0, "switch")])
    within("switch", ATP, "switch", "job", "add", JOB, *HOSTS[JOB])
    expect(warned("w0", "job", JOB), [])


def gro_is_off_at_the_ps():
    within("ps", "ethtool", "-K", "eth0", "gro", "off")
    expect(bad("w0", "job", JOB), [(RANK0, "path to the PS")])
    expect(bad("ps", "job", JOB), [(PS, "GRO")])
    # as it says
    within("ps", "ethtool", "-K", "eth0", "gro", "on")
    expect(bad("w0", "job", JOB) + bad("ps", "job", JOB), [])


def gro_is_off_at_a_worker():
    within("w0", "ethtool", "-K", "eth0", "gro", "off")
    expect(bad("w0", "job", JOB), [(RANK0, "GRO")])
    within("w0", "ethtool", "-K", "eth0", "gro", "on")
    expect(bad("w0", "job", JOB), [])


def gro_is_off_at_a_device_that_is_no_veth():
    """Nothing is behind it, so the PS does not answer."""
    sh("ip", "-n", "atp-w0", "link", "add", "nic", "type", "dummy")
    sh("ip", "-n", "atp-w0", "address", "add", "10.77.0.2/24", "dev", "nic")
    sh("ip", "-n", "atp-w0", "link", "set", "nic", "up")
    within("w0", ATP, "job", "add", 9, "ps", "10.77.0.1", "worker",
           "10.77.0.2", "worker", "10.77.0.3")
    line = ("job 9 rank 0", "GRO")
    within("w0", "ethtool", "-K", "nic", "gro", "off")
    lines = check("w0", "job", 9)
    expect((found(lines, "bad"), line in found(lines, "warn")),
           ([("job 9 rank 0", "path to the PS")], True))
    # as it says
    within("w0", "ethtool", "-K", "nic", "gro", "on")
    expect(line in found(check("w0", "job", 9), "ok"), True)
    within("w0", ATP, "job", "del", 9)
    sh("ip", "-n", "atp-w0", "link", "del", "nic")


def the_mtu_of_a_device_is_too_small():
    rack("job_add", 9, 2, 4, "fragment", 1400)
    sh("ip", "-n", "atp-w0", "link", "set", "eth0", "mtu", 1300)
    expect(bad("w0", "job", 9), [("job 9 rank 0", "MTU"),
                                 ("job 9 rank 0", "full fragments")])
    sh("ip", "-n", "atp-w0", "link", "set", "eth0", "mtu", 1464)
    expect(bad("w0", "job", 9), [])
    sh("ip", "-n", "atp-w0", "link", "set", "eth0", "mtu", 1500)


def the_mtu_on_the_way_is_too_small():
    sh("ip", "-n", "atp-switch", "link", "set", "w0", "mtu", 1300)
    expect(bad("w0", "job", 9), [("job 9 rank 0", "full fragments")])
    expect(bad("ps", "job", 9), [("job 9 PS", "path to rank 0")])
    sh("ip", "-n", "atp-switch", "link", "set", "w0", "mtu", 1500)
    expect(bad("w0", "job", 9) + bad("ps", "job", 9), [])
    rack("job_del", 9)


def the_link_of_the_ps_is_down():
    rack("link", "ps", "down")
    expect(bad("w0", "job", JOB), [(RANK0, "path to the PS")])
    expect(set(bad("ps", "job", JOB)), {(PS, "route")})
    lines = check("switch", "job", JOB)
    expect(found(lines, "bad"), [(SWITCH, "host")])
    expect(("port ps", "cable") in found(lines, "warn"), True)
    rack("link", "ps", "up")
    wait_for(lambda: not bad("switch", "job", JOB), "link")
    expect(bad("ps", "job", JOB), [])


def the_link_of_a_worker_has_no_carrier():
    sh("ip", "-n", "atp-switch", "link", "set", "w0", "down")
    wait_for(lambda: bad("w0", "job", JOB) ==
             [(RANK0, "link"), (RANK0, "path to the PS")], "no carrier")
    sh("ip", "-n", "atp-switch", "link", "set", "w0", "up")
    wait_for(lambda: not bad("w0", "job", JOB), "link")


def a_rank_is_silent():
    """It need not answer ping, but may be gone."""
    within("w0", "sysctl", "-qw", "net.ipv4.icmp_echo_ignore_all=1")
    expect((bad("ps", "job", JOB), warned("ps", "job", JOB)),
           ([], [(PS, "path to rank 0")]))
    within("w0", "sysctl", "-qw", "net.ipv4.icmp_echo_ignore_all=0")
    expect(warned("ps", "job", JOB), [])


def the_ps_does_not_know_the_job():
    within("ps", ATP, "job", "del", JOB)
    line, = [line for line in check("w0", "job", JOB)
             if line["state"] == "bad"]
    expect((line["what"], "answers ping" in line["found"]),
           ("path to the PS", True))
    within("ps", ATP, "job", "del", JOB6)
    line, = [line for line in check("w0", "job", JOB)
             if line["state"] == "bad"]
    expect((line["what"], "closed" in line["found"]), ("path to the PS", True))
    # nor does this host
    expect(bad("ps", "job", JOB), [("", "jobs")])
    within("ps", ATP, "job", "add", JOB6, *HOSTS[JOB6])
    within("ps", ATP, "job", "add", JOB, *HOSTS[JOB], "fragment", FRAGMENT)
    expect(bad("w0"), [])


def a_host_has_got_another_card():
    sh("ip", "-n", "atp-switch", "neigh", "replace", "10.0.0.1", "dev", "br0",
       "lladdr", "02:00:00:00:00:02", "nud", "permanent")
    expect(bad("switch", "job", JOB), [(SWITCH, "host")])
    within("switch", ATP, "switch", "refresh")
    expect(bad("switch"), [])
    sh("ip", "-n", "atp-switch", "neigh", "replace", "10.0.0.1", "dev", "br0",
       "lladdr", "02:00:00:00:00:01", "nud", "permanent")
    within("switch", ATP, "switch", "refresh")


def a_host_is_not_in_the_group():
    maps = subprocess.run(["bpftool", "-j", "map", "show"], check=True,
                          stdout=subprocess.PIPE).stdout
    for each in json.loads(maps):
        if each.get("name") == "atp_group":
            sh("bpftool", "map", "delete", "id", each["id"],
               "key", 0, 0, 0, 0)
    expect(sorted(bad("switch")), [(SWITCH, "multicast"),
                                   (f"switch job {JOB6}", "multicast")])
    within("switch", ATP, "switch", "refresh")
    expect(bad("switch"), [])


def pinned(name):
    """What the switch, the only one here, has pinned by that name."""
    path, = glob.glob(f"/sys/fs/bpf/atp/netns-*/{name}")
    return path


def a_port_has_lost_its_program():
    """Somebody has taken it off, which for a link of BPF ip(8) may not."""
    with inside("switch"):
        link = socket.if_nametoindex("w1")
    sh("bpftool", "link", "detach", "pinned", pinned(f"link-{link}"))
    expect(bad("switch", "job", JOB), [("port w1", "program")])
    within("switch", ATP, "switch", "attach", "dev", "w1")
    expect(bad("switch"), [])


def another_program_runs_at_a_port():
    with inside("switch"):
        link = socket.if_nametoindex("w1")
    sh("bpftool", "link", "detach", "pinned", pinned(f"link-{link}"))
    within("switch", "ip", "link", "set", "w1", "xdp", "obj", PASS, "sec",
           "xdp")
    expect(bad("switch", "job", JOB), [("port w1", "program")])
    # as it says
    within("switch", "ip", "link", "set", "w1", "xdp", "off")
    within("switch", ATP, "switch", "attach", "dev", "w1")
    expect(bad("switch"), [])


def the_switch_is_of_another_version():
    """Its settings begin with the layout of its maps."""
    words = ("bpftool", "-j", "map", "lookup", "pinned", pinned("settings"),
             "key", "0", "0", "0", "0")
    value = json.loads(subprocess.run(words, check=True,
                                      stdout=subprocess.PIPE).stdout)["value"]
    sh("bpftool", "map", "update", *words[4:], "value", "0xff", *value[1:])
    expect(bad("switch"), [("switch", "maps")])
    # as it says
    rack("switch_restart")
    expect(bad("switch"), [])


def the_mode_is_generic():
    rack("switch_resize", "generic")
    lines = check("switch")
    expect(found(lines, "bad"), [])
    expect(sorted(what for what in found(lines, "warn") if what[1] == "mode"),
           [(f"port {port}", "mode") for port in ("ps", "w0", "w1")])


def counters_tell_of_others():
    """A job of another number of workers."""
    def replace(*hosts):
        for host in ("w0", "ps"):
            within(host, ATP, "job", "del", JOB)
            within(host, ATP, "job", "add", JOB, *hosts)
    replace(*HOSTS[JOB][:4])
    expect(bad("w0", "job", JOB), [])
    expect(warned("switch", "job", JOB)[-1], (SWITCH, "counters"))
    replace(*HOSTS[JOB])


def who_may_not_look_is_told():
    """A user, and root of a user namespace, which the network is not of."""
    for who in (("setpriv", "--reuid", "65534", "--regid", "65534",
                 "--clear-groups"),
                ("unshare", "--user", "--map-root-user")):
        with inside("w0"):
            done = subprocess.run([*who, ATP, "-json", "check"],
                                  stdout=subprocess.PIPE, text=True,
                                  check=False)
        lines = parse(done.stdout)
        expect((done.returncode, found(lines, "bad")), (0, []))
        expect(("", "privileges") in found(lines, "warn"), True)


def line_of(what, *before):
    """The line with that name, of a check that is started by other words."""
    with inside("w0"):
        done = subprocess.run([*before, ATP, "-json", "check"], text=True,
                              stdout=subprocess.PIPE, check=False)
    line, = [line for line in parse(done.stdout)
             if line["what"] == what and "about" not in line]
    expect(done.returncode, 1 if line["state"] == "bad" else 0)
    return line


def the_kernel_is_old():
    expect(line_of("kernel"), {"state": "ok", "what": "kernel",
                               "found": f"Linux {os.uname().release}"})
    line = line_of("kernel", "setarch", os.uname().machine, "--uname-2.6")
    expect((line["state"], line["found"].startswith("Linux 2.6."),
            line["mend"]), ("bad", True, "6.1 or later is needed"))


def the_clock_is_slow():
    """What the kernel says of its clock is another file in a mount namespace,
    since the emulator's is always slow."""
    states = {}
    for name in ("tsc", "hpet", "acpi_pm", "kvm-clock"):
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            print(name, file=file, flush=True)
            line = line_of("clock", "unshare", "-m", "sh", "-ec",
                           f"mount --bind {file.name} {CLOCK}; exec \"$@\"",
                           "sh")
        expect((name in line["found"], "mend" in line),
               (True, line["state"] != "ok"))
        states[name] = line["state"]
    expect(states, {"tsc": "ok", "hpet": "warn", "acpi_pm": "warn",
                    "kvm-clock": "ok"})


def little_memory_may_be_locked():
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534",
              "--clear-groups")
    for limit, who, state in (("65536", nobody, "warn"), ("65536", (), "ok"),
                              ("8388608", nobody, "ok"),
                              ("unlimited", nobody, "ok")):
        line = line_of("locked memory", "prlimit", f"--memlock={limit}", *who)
        expect((limit, line["state"]), (limit, state))
        expect(line["found"].startswith("64 KiB, and a socket may have 4096 "),
               state == "warn")
    # root of a namespace is not asked
    line = line_of("locked memory", "prlimit", "--memlock=65536", "unshare",
                   "--user", "--map-root-user")
    expect(line["state"], "warn")


def the_address_is_gone():
    def address(what):
        sh("ip", "-n", "atp-w0", "address", what, "10.0.0.252/24", "dev",
           "eth0")

    for role, ps, worker in (("worker", "10.0.0.253", "10.0.0.252"),
                             ("PS", "10.0.0.252", "10.0.0.253")):
        address("add")
        within("w0", ATP, "job", "add", 9, "ps", ps, "worker", worker,
               "worker", "10.0.0.251")
        address("del")
        lost = (f"job 9 {role}", "address")
        expect(bad("w0", "job", 9), [lost])
        # as it says
        address("add")
        expect(lost in bad("w0", "job", 9), False)
        within("w0", ATP, "job", "del", 9)
        address("del")


def there_is_no_way_to_the_ps():
    within("w0", ATP, "job", "add", 9, "ps", "10.77.0.1", "worker",
           "10.0.0.1", "worker", "10.0.0.2")
    expect(("job 9 rank 0", "route") in bad("w0", "job", 9), True)
    # as it says
    sh("ip", "-n", "atp-w0", "route", "add", "10.77.0.1/32", "via",
       "10.0.0.254")
    expect(("job 9 rank 0", "route") in bad("w0", "job", 9), False)
    sh("ip", "-n", "atp-w0", "route", "del", "10.77.0.1/32")
    within("w0", ATP, "job", "del", 9)


def another_program_has_the_port():
    rack("down")
    sh("ip", "netns", "add", "atp-w0")
    sh("ip", "-n", "atp-w0", "link", "set", "lo", "up")
    for family in (socket.AF_INET, socket.AF_INET6):
        with inside("w0"):
            taken = socket.socket(family, socket.SOCK_DGRAM)
        with taken:
            taken.bind(("", 4797))
            expect(bad("w0"), [("", "UDP port")])
    expect((bad("w0"), warned("w0")), ([], [("", "jobs")]))
    sh("ip", "netns", "del", "atp-w0")


def a_switch_needs_no_module():
    rack("switch_resize")
    with without_module("ps", "w0", "w1"):
        lines = check("switch")
        line, = [line for line in lines if line["what"] == "module"]
        expect(line, {"state": "ok", "what": "module",
                      "found": "not loaded; a switch needs none"})
        expect(found(lines, "bad"), [])
        expect((SWITCH, "hosts") in found(lines, "ok"), True)
        expect(bad("w0"), [("", "module")])


def the_module_is_not_there():
    with without_module():
        done = subprocess.run([ATP, "-json", "check"], stdout=subprocess.PIPE,
                              text=True, check=False)
    lines = parse(done.stdout)
    expect((done.returncode, found(lines, "bad")), (1, [("", "module")]))
    expect(("", "family number") in found(lines, "ok"), True)


def taking():
    """The module that takes the number, for this kernel."""
    for path in glob.glob(os.path.join(TOP, "build/kernels/*/release")):
        with open(path, encoding="ascii") as f:
            if f.read().strip() == os.uname().release:
                return os.path.join(TOP, "build/selftests/tools",
                                    path.split("/")[-2], "atp_taking.ko")
    raise AssertionError("which kernel is this?")


def another_module_has_the_number():
    kmod.unload()
    sh("insmod", taking())
    try:
        done = subprocess.run([ATP, "-json", "check"], stdout=subprocess.PIPE,
                              text=True, check=False)
    finally:
        sh("rmmod", "atp_taking")
    lines = parse(done.stdout)
    expect((done.returncode, found(lines, "bad")),
           (1, [("", "module"), ("", "family number")]))
    number, = [line for line in lines if line["what"] == "family number"]
    expect(number["found"], "18 is taken by another module")
    print("#", number["mend"])
    # as it says
    sh("modprobe", "atp")
    done = subprocess.run([ATP, "-json", "check"], stdout=subprocess.PIPE,
                          text=True, check=False)
    expect((done.returncode, found(parse(done.stdout), "bad")), (0, []))


if __name__ == "__main__":
    sh("modprobe", "atp")
    try:
        code = run((
            a_rack_that_is_fine,
            people_read_the_same,
            a_run_does_not_notice,
            a_switch_that_does_not_know_the_job,
            gro_is_off_at_the_ps,
            gro_is_off_at_a_worker,
            gro_is_off_at_a_device_that_is_no_veth,
            the_mtu_of_a_device_is_too_small,
            the_mtu_on_the_way_is_too_small,
            the_link_of_a_worker_has_no_carrier,
            a_rank_is_silent,
            the_ps_does_not_know_the_job,
            a_host_has_got_another_card,
            a_host_is_not_in_the_group,
            counters_tell_of_others,
            who_may_not_look_is_told,
            the_kernel_is_old,
            the_clock_is_slow,
            little_memory_may_be_locked,
            the_address_is_gone,
            there_is_no_way_to_the_ps,
            the_link_of_the_ps_is_down,
            a_port_has_lost_its_program,
            another_program_runs_at_a_port,
            the_switch_is_of_another_version,
            the_mode_is_generic,
            a_switch_needs_no_module,
            another_program_has_the_port,
            the_module_is_not_there,
            another_module_has_the_number,
        ))
    finally:
        rack("down")
    sys.exit(code)
