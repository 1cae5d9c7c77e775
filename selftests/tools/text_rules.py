# SPDX-License-Identifier: GPL-2.0
"""Where each command of the texts is typed by test_texts.py, or by which other test,
and what it shows."""

from dataclasses import dataclass

from text_rack import COLLECTOR, INTERRUPT


@dataclass
class Rule:
    """Where a line is typed ("job": all hosts of the job), what must be so
    before (State.ensure), what its output then has on each of them, a command
    that succeeds there afterwards, and the key that ends one that goes on."""
    where: str
    needs: str = ""
    shows: str = ""
    after: str = ""
    ends: bytes = b""


ALL = "w0 w1 w2 w3 ps"
KNOWS = "test -e /sys/module/atp"
RULES = {
    r"modprobe atp": Rule("w0", "-module", after=KNOWS),
    r"rmmod atp": Rule("w0", "-user", after="! " + KNOWS),
    r"mountpoint -q /sys/fs/bpf \|\| mount -t bpf bpf /sys/fs/bpf":
        Rule("switch", "-switch", after="mountpoint -q /sys/fs/bpf"),
    r"ethtool -K eth0 gro on tx off":
        Rule(ALL, "-offloads", after="ethtool -k eth0 | grep -q "
             "'generic-receive-offload: on'"),
    r"ethtool -K eth0 tx off":
        Rule(ALL, after="ethtool -k eth0 | grep -q 'tx-checksumming: off'"),
    r"ethtool -K eth0 gro off":
        Rule("switch", after="ethtool -k eth0 | grep -q "
             "'generic-receive-offload: off'"),
    r"ethtool -K eth0 rxvlan off":
        Rule("switch", after="ethtool -k eth0 | grep -q "
             "'rx-vlan-offload: off'"),
    r"ip -s (-s )?link": Rule("switch", "", r"^\d+: eth4@(.*\n)+? +RX: +bytes "),
    r"atp( -force)? -batch FILE": Rule(ALL, "-job", after="! atp job show 7"),
    r"atp job add 7 .*": Rule("job", "-job", after="atp job show 7"),
    r"atp job set 7 gid staff timeout 30s patience 1min":
        Rule("job", "job", after="atp job show 7 | "
             "grep 'timeout 30s patience 1min .*gid staff'"),
    r"atp job set 7 uid alice":
        Rule("job", "job", after="atp job show 7 | grep 'uid alice'"),
    r"atp job del 7": Rule("job", "job -run", after="! atp job show 7"),
    r"atp job show( 7)?":
        Rule("ps", "run", r"^ +worker 1 10\.0\.0\.2 joined$"),
    r"atp -stats job show 7": Rule("ps", "run", r"^ +completed \d+$"),
    r"atp -json job show": Rule("ps", "run", r'^\[\{"id":7,'),
    r"atp job stall":
        Rule("ps", "run", r"^ +waits for worker 1 10\.0\.0\.2$"),
    r"atp sock": Rule("w0 w1", "run", r" cwnd \d+ .* srtt "),
    r"atp -stats sock": Rule("w0", "run", r"^ +sent \d+ resent \d+ "),
    r"atp stats": Rule(ALL, "run", r"^.* version \d+$"),
    r"atp stats prometheus": Rule("w0 ps", "run", r"^# HELP "),
    rf"atp stats prometheus file {COLLECTOR}/atp.prom":
        Rule("ps", "run", r"\A\Z", f"grep '^# HELP' {COLLECTOR}/atp.prom"),
    r"atp top batch count 2":
        Rule("ps", "run", r"GOODPUT(.*\n)+?.*GOODPUT"),
    r"atp top": Rule("ps", "run", r"GOODPUT", ends=b"q"),
    r"atp monitor": Rule("ps", "run", r"^job-changed job 7", ends=INTERRUPT),
    r"atp -timestamp monitor":
        Rule("ps", "run", r"\d\d:\d\d.*job-changed job 7", ends=INTERRUPT),
    r"atp check( job 7)?": Rule("job", "job", r"^ok +module: "),
    r"atp switch check .*":
        Rule("switch", "-switch", r"^ok +eth0: native XDP"),
    r"atp switch attach .*":
        Rule("switch", after="ip link show eth0 | grep ' xdp'"),
    r"atp switch job add 7 .*": Rule("switch", "-switch_job"),
    r"atp switch job del 7":
        Rule("switch", "switch_job", after="! atp switch show job 7"),
    r"atp switch show( job 7)?": Rule("switch", "switch_job",
                                      r"^job 7: (.*\n)+? +rank 0 10\.0\.0\.1 "
                                      r"dev eth0 lladdr "),
    r"atp switch refresh": Rule("switch", "switch_job"),
    r"atp switch port set dev eth0 rate 1000":
        Rule("switch", "switch",
             after="atp switch show | grep 'port eth0: rate 1000 '"),
    r"atp switch detach":
        Rule("switch", "switch", after="! ip link show eth0 | grep ' xdp'"),
    r"echo 1 >/sys/kernel/tracing/events/atp/enable": Rule("w0", "module"),
    r"cat /sys/kernel/tracing/trace_pipe":
        Rule("w0", "run", r" atp_send: ", ends=INTERRUPT,
             after="echo 0 >/sys/kernel/tracing/events/atp/enable"),
    r"tshark -X lua_script:\S+ -i eth0 .*":
        Rule("w0", "run", r"10\.0\.0\.254 .* ATPGRAD ", ends=INTERRUPT),
    r"tshark -X lua_script:\S+ -r FILE .*":
        Rule("w0", "", r" ATPGRAD .* refused: another version$"),
}

# Run by another test, which has these words: it takes the line from the text, or
# types it
ELSEWHERE = {
    r"make && sudo make install":
        ("tools/test_make_install.sh", "make_there install"),
    r"make deb": ("packages/test_packages.sh", '-C "$top" deb'),
    # Nobody types these: tests are a part of the first two, which begin with the
    # third.  That they are there
    r"make (check|check-debug|deps)":
        ("tools/test_docs.py", "what_is_made_has_a_target"),
    # In small, with all beds; not a part of "make check", as it builds a kernel
    r"(BEDS=\S+ )?make bench": ("bench/test_make.py", 'typed(where, "bench"'),
    r"make profile": ("bench/test_make.py", 'typed(where, "profile"'),
    r"make install-ip-atp":
        ("tools/test_make_install.sh", "make_there install-ip-atp"),
    r"make demo( SERVER=1)?": ("tools/test_demo.py", '"SERVER=1"'),
    r"ip (-json )?atp job .*": ("tools/test_module.sh", '"$ip" -n "$ns" atp job'),
    r"ip netns exec": ("socket/test_owner.c", "ip netns exec"),
    r"atp perf job 7 rank 0 .*": ("tools/test_perf.py", 'told(r"atp perf '),
    # the block of operations.rst, line by line
    r"install -D -m 644 \S+/examples/dispatcher\.conf \S+/dispatcher\.conf":
        ("switch/service.py", "text.startswith('install ')"),
    r"systemctl (daemon-reload|(restart|reload) atp-switch)":
        ("switch/service.py", "'systemctl %s %s'"),
    r"bpftrace -e .*": ("tools/test_bpftrace.py", "tracing.rst"),
}
# What a reader is to put in
PLACES = {"ID": "7", "USER": "alice", "DEV": "eth0", "IF": "eth0",
          "MBIT": "1000"}
