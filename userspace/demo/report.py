#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What the demo measured, and whether it is as promised.

usage: report.py FOLDER OUTPUT.json SECONDS
"""

import glob
import json
import os
import sys

WORKERS = 4
ENOUGH = 0.95


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def results(folder, name):
    found = [
        read(folder, os.path.basename(path))
        for path in glob.glob(os.path.join(folder, name + "-[0-9]*.json"))
    ]
    if len(found) != WORKERS:
        sys.exit(f"demo: {len(found)} results of run {name}, not {WORKERS}")
    return found


def difference(folder, name, value):
    return value(folder, name + "-after") - value(folder, name + "-before")


def ps_bytes(folder, name):
    return int(read(folder, name + ".bytes"))


def counter(which):
    def value(folder, name):
        stats = read(folder, name + ".stats")
        job = stats[0] if isinstance(stats, list) else stats
        return job["counters"][which]

    return value


def main():
    folder, output, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    runs = {
        name: results(folder, name) for name in ("switch", "again", "noswitch")
    }
    server = os.path.exists(os.path.join(folder, "switch-server.json"))
    if server:
        runs["workers"] = results(folder, "workers")
    digests = {
        name: {result["digest"] for result in run}
        for name, run in runs.items()
    }
    report = {
        "optimiser": "ps" if server else "worker",
        "accuracy": min(result["accuracy"] for result in runs["switch"]),
        "oracle_accuracy": read(folder, "alone.json")["accuracy"],
        "identical": all(len(digest) == 1 for digest in digests.values()),
        "reproducible": digests["switch"] == digests["again"],
        "same_without_switch": digests["switch"] == digests["noswitch"],
        "switch_fragments": difference(
            folder, "switch", counter("switch_fragments")
        ),
        "ps_fragments": difference(folder, "switch", counter("ps_fragments")),
        "ps_bytes_with_switch": difference(folder, "switch", ps_bytes),
        "ps_bytes_without_switch": difference(folder, "noswitch", ps_bytes),
        "bytes_per_worker": runs["switch"][0]["bytes"],
        "resent_fragments": sum(r["resent"] for r in runs["switch"]),
        "training_seconds": max(r["seconds"] for r in runs["switch"]),
        "seconds": seconds,
    }
    if server:
        at_ps = read(folder, "switch-server.json")
        report["accuracy_at_ps"] = at_ps["accuracy"]
        report["accuracy_with_workers"] = min(
            result["accuracy"] for result in runs["workers"]
        )
        report["same_with_workers"] = (
            digests["switch"] == digests["workers"] == {at_ps["digest"]}
        )
    with open(output, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
        file.write("\n")

    with_switch = report["ps_bytes_with_switch"]
    without = report["ps_bytes_without_switch"]
    print(
        f"""\
accuracy on images not trained with   {report["accuracy"]:.2%}
  of a single process, same batches   {report["oracle_accuracy"]:.2%}
all workers hold the same parameters  {report["identical"]}
a second run gives the same bits      {report["reproducible"]}
  and one without the switch, too     {report["same_without_switch"]}
fragments aggregated by the switch    {report["switch_fragments"]:,}
  and by the PS                       {report["ps_fragments"]:,}
bytes that reached the PS             {with_switch:,}
  without the switch                  {without:,}
gradients of each worker, bytes       {report["bytes_per_worker"]:,}
seconds                               {seconds}"""
    )

    if server:
        print(
            f"""\
the steps were taken on the PS host
  accuracy of its parameters          {report["accuracy_at_ps"]:.2%}
  accuracy when workers take them     {report["accuracy_with_workers"]:.2%}
  all these parameters are the same   {report["same_with_workers"]}"""
        )

    promises = (
        (report["accuracy"] >= ENOUGH, f"accuracy is below {ENOUGH}"),
        (
            report["oracle_accuracy"] >= ENOUGH,
            f"the oracle's accuracy is below {ENOUGH}",
        ),
        (report["identical"], "the workers' parameters differ"),
        (report["reproducible"], "the second run gave other bits"),
        (
            report["same_without_switch"],
            "without the switch there are other bits",
        ),
        (
            report.get("same_with_workers", True),
            "workers and PS took other steps",
        ),
        (report["switch_fragments"] > 0, "the switch aggregated nothing"),
        (
            with_switch < without,
            "the switch did not spare the PS any bytes",
        ),
    )
    broken = [text for kept, text in promises if not kept]
    for text in broken:
        print("demo:", text, file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
