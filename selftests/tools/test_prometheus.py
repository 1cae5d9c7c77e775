#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""atp stats prometheus: what the other commands say, in a form that promtool
accepts, explained as in the man pages."""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from live import (  # noqa: E402
    FRAGMENT, JOB, LANES, TOP, WORKERS, a_run, atp, expect, lay_out, rack,
    tell, text, wait_for, without_module,
)
from rack import run  # noqa: E402
from test_sockets import ATP_DTYPE, INT32, SOL_ATP, Rank  # noqa: E402

PROMTOOL = os.path.join(TOP, "build/promtool/promtool")
SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? ([0-9.]+)$")
CHUNKS, FRAGMENTS = 3, 10
# in which an application makes the results, with its rank
SERVED, SERVER = 8, 0xffff


def parse(output):
    """Samples by name and labels; a sample is there once."""
    samples = {}
    for line in output.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = SAMPLE.match(line).groups()
        labels = re.findall(r'(\w+)="([^"]*)"', labels or "")
        key = (name, *sorted(labels))
        expect(samples.get(key), None)
        samples[key] = float(value)
    return samples


# family: what it is
FAMILIES = {}
# host: the longest that it ever printed
OUTPUTS = {}


def metrics(host):
    output = text(host, "stats", "prometheus")
    FAMILIES.update(re.findall(r"^# HELP (\w+) (.*)", output, re.M))
    OUTPUTS[host] = max(OUTPUTS.get(host, ""), output, key=len)
    return parse(output)


def of(prefix, samples):
    return {k: v for k, v in samples.items() if k[0].startswith(prefix)}


def counters(prefix, values, *labels):
    """How counters of the tool's JSON are to look."""
    found = {}
    for name, value in values.items():
        key = list(labels)
        if name.startswith("drop_"):
            key.append(("reason", name[5:]))
            name = "drops"
        found[(f"{prefix}_{name}_total", *sorted(key))] = value
    return found


def only_totals(samples):
    return {k: v for k, v in samples.items() if k[0].endswith("_total")}


def a_run_is_counted_exactly():
    lay_out()
    a_run("--chunks", CHUNKS, "--lanes", LANES * FRAGMENTS)
    job = ("job_id", str(JOB))
    for rank in range(WORKERS):
        expect(metrics(f"w{rank}")["atp_job_sent_total", job],
               CHUNKS * FRAGMENTS)
    at_ps = metrics("ps")
    expect(at_ps["atp_job_completed_total", job], CHUNKS * FRAGMENTS)
    expect(at_ps["atp_job_switch_fragments_total", job] +
           at_ps["atp_job_ps_fragments_total", job],
           (WORKERS - 1) * CHUNKS * FRAGMENTS)
    expect(at_ps["atp_job_fragment_bytes", job], FRAGMENT)
    expect(metrics("switch")["atp_switch_aggregators",], 8)


def at_rest(host, *words):
    """The metrics, and what the tool shows before and after them; those who
    have left say so again for a while."""
    while True:
        before, now = tell(host, *words), metrics(host)
        if tell(host, *words) == before:
            return now, before


def counters_are_those_of_stats():
    for host in ("ps", "w0"):
        now, shown = at_rest(host, "stats")
        expect(only_totals(of("atp_host_", now)),
               counters("atp_host", shown[0]["counters"]))
        now, shown = at_rest(host, "stats", "job", JOB)
        job_counters = shown[0]["counters"]
        expect(only_totals(of("atp_job_", now)),
               counters("atp_job", job_counters, ("job_id", str(JOB))))


def counters_are_those_of_the_switch():
    now, shown = at_rest("switch", "switch", "show")
    values = shown["jobs"][0]["counters"]
    job = ("job_id", str(JOB))
    reasons = {dict(k[1:])["reason"]: v for k, v in now.items()
               if k[0] == "atp_switch_passed_total"}
    expect(reasons, {name: values[name] for name in reasons})
    expect("collision_busy" in reasons and "raw" in reasons, True)
    want = counters("atp_switch", {
        {"bytes_in": "in_bytes", "bytes_out": "out_bytes"}.get(n, n): v
        for n, v in values.items() if n not in reasons
    }, job)
    got = {k: v for k, v in of("atp_switch_", now).items() if job in k and
           k[0].endswith("_total") and k[0] != "atp_switch_passed_total"}
    expect(got, want)
    expect({dict(k[1:])["reason"]: v for k, v in now.items()
            if k[0] == "atp_switch_ignored_total"}, shown["others"])
    expect({dict(k[1:])["dev"] for k in now
            if k[0] == "atp_switch_port_sent_packets_total"},
           {port["dev"] for port in shown["ports"]})


def sockets_are_those_of_sock():
    ranks = [Rank(rank) for rank in range(WORKERS)]
    try:
        for rank in ranks:
            rank.begin()
        for rank in ranks:
            rank.joined()
        got = of("atp_socket_", metrics("w1"))
        shown = tell("w1", "-stats", "sock")[0]
        labels = ("job_id", str(JOB)), ("rank", "1")
        want = counters("atp_socket", shown["counters"], *labels)
        want["atp_socket_answered_total", *labels] = shown["una"]
        for name in ("cwnd", "ssthresh"):
            want[f"atp_socket_{name}_fragments", *labels] = shown[name]
        for name in ("srtt", "rto"):
            want[f"atp_socket_{name}_seconds", *labels] = \
                shown[name + "_us"] / 1e6
        want["atp_socket_receive_queue_bytes", *labels] = shown["rmem"]
        want["atp_socket_send_queue_bytes", *labels] = shown["wmem"]
        want["atp_socket_unanswered_fragments", *labels] = \
            shown["nxt"] - shown["una"]
        want["atp_socket_joined", *labels] = 1
        expect(got, want)
        at_ps = metrics("ps")
        for rank in range(WORKERS):
            labels = ("job_id", str(JOB)), ("rank", str(rank))
            expect(at_ps["atp_job_joined", *labels], 1)
            expect(at_ps["atp_job_waiting", *labels], 0)
        expect(at_ps["atp_job_running", ("job_id", str(JOB))], 1)
    finally:
        for rank in ranks:
            rank.close()


def the_application_at_the_ps_is_waited_for():
    rack("job_add", SERVED, WORKERS, 4, "fragment", FRAGMENT, "server")
    ranks = [Rank(rank, SERVED) for rank in range(WORKERS)]
    members = [*ranks, Rank(SERVER, SERVED, "ps")]
    job = ("job_id", str(SERVED))

    def waiting():
        at_ps = metrics("ps")
        return [at_ps["atp_job_waiting", job, ("rank", str(rank))]
                for rank in range(WORKERS)], \
            at_ps["atp_job_waiting_server", job]
    try:
        for member in members:
            member.begin()
        # no run begins without the application
        for rank in ranks:
            rank.joined()
        expect(waiting(), ([0] * WORKERS, 0))
        for rank in ranks:
            rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
        ranks[0].push(1, 2, 3)
        wait_for(lambda: waiting() == ([0, 1], 0), "rank to be waited for")
        ranks[1].push(1, 2, 3)
        wait_for(lambda: waiting() == ([0, 0], 1), "server to be waited for")
        # only such a job has one
        expect(("atp_job_waiting_server", ("job_id", str(JOB)))
               in metrics("ps"), False)
    finally:
        for member in members:
            member.close()
        rack("job_del", SERVED)


def promtool_accepts_all_of_it():
    """Of each kind of host as it was printed: a family may be there once."""
    # one of each: it takes a while to start here
    for host in ("ps", "w1", "switch"):
        done = subprocess.run([PROMTOOL, "check", "metrics"], text=True,
                              input=OUTPUTS[host], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        expect((host, done.returncode, done.stdout), (host, 0, ""))


def a_port_whose_name_is_no_text():
    def rename(old, new):
        for words in (b"down", b"name " + new):
            subprocess.run([b"ip", b"-n", b"atp-switch", b"link", b"set", old,
                            *words.split(b" ")], check=True)
        subprocess.run([b"ip", b"-n", b"atp-switch", b"link", b"set", new,
                        b"up"], check=True)
    rename(b"w1", b"w\xff\xc3\xa9")
    try:
        output = text("switch", "stats", "prometheus")
        expect('dev="w?\u00e9"' in output, True)
        for words in (("switch", "show"), ("check",)):
            _, told = atp("switch", "-json", *words)
            expect((words, "w\u00ff\u00e9" in str(json.loads(told))),
                   (words, True))
    finally:
        rename(b"w\xff\xc3\xa9", b"w1")
    done = subprocess.run([PROMTOOL, "check", "metrics"], text=True,
                          input=output, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    expect((done.returncode, done.stdout), (0, ""))


def explained(page):
    with open(os.path.join(TOP, "Documentation/man", page),
              encoding="ascii") as f:
        return dict(re.findall(r"\.It Va (\w+)\n(.*)", f.read()))


def the_man_pages_explain_all_of_it():
    told, switch = explained("atp-stats.8"), explained("atp-switch.8")
    expect(len(FAMILIES) > 80, True)
    for name, what in FAMILIES.items():
        counter = re.sub(r"^atp_(host|job|socket|switch)_(.*)_total$", r"\2",
                         name)
        if name.startswith("atp_socket_") and counter in ("ecn", "raw"):
            counter = "worker_" + counter
        if name in told:
            expect((name, told[name]), (name, what))
        elif name.startswith("atp_switch_"):
            expect((name, counter in switch), (name, True))
        else:
            expect((name, told.get(counter)), (name, what))


def dashboard():
    with open(os.path.join(TOP, "userspace/monitoring/grafana.json"),
              encoding="ascii") as f:
        return json.load(f)


def the_dashboard_asks_for_what_there_is():
    asked = set()
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            names = set(re.findall(r"\batp_\w+", target["expr"]))
            expect((panel["title"], bool(names), names - set(FAMILIES)),
                   (panel["title"], True, set()))
            asked |= names
    variable = dashboard()["templating"]["list"][1]["query"]
    expect(set(re.findall(r"\batp_\w+", variable)) <= set(FAMILIES), True)
    expect(len(asked) > 20, True)
    panels = {panel["title"]: json.dumps(panel["targets"])
              for panel in dashboard()["panels"]}
    for title in ("Who is waited for", "Stall"):
        for name in ("atp_job_waiting{", "atp_job_waiting_server{"):
            expect((title, name, name in panels[title]), (title, name, True))


def the_dashboard_is_in_order():
    """As Grafana wants it, and each expression as Prometheus does."""
    board = dashboard()
    expect({"title", "uid", "schemaVersion", "panels", "time"} <= set(board),
           True)
    panels = board["panels"]
    expect(len({p["id"] for p in panels}), len(panels))
    cells = set()
    for panel in panels:
        place = panel["gridPos"]
        expect(place["x"] + place["w"] <= 24, True)
        mine = {(place["x"] + x, place["y"] + y)
                for x in range(place["w"]) for y in range(place["h"])}
        expect(mine & cells, set())
        cells |= mine
        refs = [target["refId"] for target in panel["targets"]]
        expect(len(set(refs)), len(refs))
    variables = {v["name"] for v in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board)))
    expect(used - variables, {"__rate_interval"})

    rules = [{"record": f"panel{p['id']}:{t['refId']}",
              "expr": t["expr"].replace("$__rate_interval", "1m")
              .replace("$job_id", "7")}
             for p in panels for t in p["targets"]]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rules.yml")
        with open(path, "w", encoding="ascii") as f:
            # JSON is YAML
            json.dump({"groups": [{"name": "panels", "rules": rules}]}, f)
        done = subprocess.run([PROMTOOL, "check", "rules", path], text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
    expect((done.returncode, f"SUCCESS: {len(rules)} rules" in done.stdout),
           (0, True))


def a_file_is_replaced_as_a_whole():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "atp.prom")
        with open(path, "w", encoding="ascii") as f:
            f.write("old\n")
        with open(path, encoding="ascii") as old:
            expect(text("ps", "stats", "prometheus", "file", path), "")
            # who had opened it reads what was there
            expect(old.read(), "old\n")
        with open(path, encoding="ascii") as f:
            samples = parse(f.read())
        expect(samples["atp_job_completed_total", ("job_id", str(JOB))],
               CHUNKS * FRAGMENTS)
        expect(os.listdir(folder), ["atp.prom"])
        expect(stat.S_IMODE(os.stat(path).st_mode), 0o644)
        nowhere = os.path.join(folder, "no", "atp.prom")
        status, output = atp("ps", "stats", "prometheus", "file", nowhere)
        expect(status, 1)
        expect(nowhere in output, True)


def a_switch_needs_no_module():
    there, shown = at_rest("switch", "switch", "show")
    with without_module("ps", *(f"w{rank}" for rank in range(WORKERS))):
        alone = metrics("switch")
        expect(alone["atp_switch_aggregators",], 8)
        expect(alone["atp_switch_aggregated_total", ("job_id", str(JOB))],
               shown["jobs"][0]["counters"]["aggregated"])
        # nothing of the module, and all of the switch
        expect({key[0] for key in alone},
               {key[0] for key in of("atp_switch_", there)})
        # where there is none either
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "atp.prom")
            expect(atp("ps", "stats", "prometheus", "file", path), (
                2, "Error: this kernel does not speak ATP; "
                "load the module: modprobe atp\n",
            ))
            expect(os.listdir(folder), [])


def check_speaks_json():
    found = tell("switch", "switch", "check", "dev", "w0")
    expect({f["state"] for f in found} <= {"ok", "note", "BAD"}, True)
    plain = atp("switch", "switch", "check", "dev", "w0")[1].splitlines()
    expect([f"{f['state']:4} {f['dev'] + ': ' if 'dev' in f else ''}{f['what']}"
            f"{''.join(': ' + f[k] for k in ('found', 'hint') if k in f)}"
            for f in found], plain)


if __name__ == "__main__":
    try:
        code = run((
            a_run_is_counted_exactly,
            counters_are_those_of_stats,
            counters_are_those_of_the_switch,
            sockets_are_those_of_sock,
            the_application_at_the_ps_is_waited_for,
            promtool_accepts_all_of_it,
            a_port_whose_name_is_no_text,
            the_man_pages_explain_all_of_it,
            the_dashboard_asks_for_what_there_is,
            the_dashboard_is_in_order,
            a_file_is_replaced_as_a_whole,
            check_speaks_json,
            a_switch_needs_no_module,
        ))
    finally:
        rack("down")
    sys.exit(code)
