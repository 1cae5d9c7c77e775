#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""DistributedDataParallel over a job, beside Gloo and with NumPy as the oracle.

All ranks do everything in one life (rank.py), as importing PyTorch takes long
in an emulated machine; the tests look at what they have left.
"""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "../..")
sys.path.insert(0, os.path.join(HERE, "../lib"))
from rack import inside, rack, run  # noqa: E402

WORKERS = 3
JOB = 7
# deleted by its ranks
REMOVED = 8
SCALE = 10**8
VICTIM = 1
LIMIT = 500

left = []


def expect(got, want):
    if got != want:
        raise AssertionError(f"got {got}, expected {want}")


def environment():
    return dict(
        os.environ,
        MASTER_ADDR="10.0.0.1",
        MASTER_PORT="29500",
        GLOO_SOCKET_IFNAME="eth0",
        LIBATP=os.path.join(TOP, "build/lib/libatp.so.1"),
        OMP_NUM_THREADS="1",
        PYTHONDONTWRITEBYTECODE="1",
    )


def all_ranks_end(data, out):
    """All but the victim end well."""
    ranks = []
    for rank in range(WORKERS):
        with inside(f"w{rank}"):
            ranks.append(
                subprocess.Popen(
                    ["/usr/bin/python3", os.path.join(HERE, "rank.py"),
                     str(rank), str(WORKERS), data, f"{out}/{rank}"],
                    env=environment(),
                    stdout=sys.stderr,
                )
            )
    try:
        status = [process.wait(LIMIT) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    expect(status, [0 if rank != VICTIM else -9 for rank in range(WORKERS)])
    for rank in range(WORKERS):
        result = {}
        if rank != VICTIM:
            with open(f"{out}/{rank}.json", encoding="utf-8") as file:
                result = json.load(file)
        left.append((result, np.load(f"{out}/{rank}.npz")))


def survivors():
    return [result for result, _ in left if result]


def total(arrays):
    """What the protocol promises: see rack/ranks.py."""
    scaled = [np.rint(a.astype(np.float64) * SCALE) for a in arrays]
    return ((sum(scaled) + 0.0) / SCALE).astype(np.float32)


def bfloat16(array):
    """Rounded to the nearest, ties to even."""
    bits = array.view(np.uint32)
    odd = bits >> 16 & 1
    return ((bits + 0x7FFF + odd) >> 16 << 16).view(np.float32)


def buckets(name, least):
    arrays = [arrays for _, arrays in left]
    keys = [k for k in arrays[0].files if k.startswith(name + ".")]
    numbers = sorted({int(key.split(".")[1]) for key in keys})
    if len(numbers) < least:
        raise AssertionError(keys)
    for number in numbers:
        yield (
            [a[f"{name}.{number}.before"] for a in arrays],
            [a[f"{name}.{number}.after"] for a in arrays],
        )


def gradients_are(name, least, rounded):
    for before, after in buckets(name, least):
        if not any(np.any(a != before[0]) for a in before[1:]):
            raise AssertionError("all ranks have the same gradients")
        want = rounded(total(before) / np.float32(WORKERS))
        for array in after:
            wrong = np.flatnonzero(
                array.view(np.uint32) != want.view(np.uint32)
            )
            if len(wrong):
                raise AssertionError(f"{len(wrong)} of {array.size}")


def every_bucket_is_the_mean_bit_for_bit():
    # three steps, more than a bucket in each after the first
    gradients_are("float32", 5, lambda mean: mean)


def short_types_are_rounded_once():
    gradients_are("bfloat16", 2, bfloat16)
    gradients_are(
        "float16", 2, lambda m: m.astype(np.float16).astype(np.float32)
    )


def the_loss_is_that_with_gloo():
    for result in survivors():
        gloo, ours = np.array(result["gloo"]["losses"]), np.array(
            result["atp"]["losses"]
        )
        expect(len(ours), len(gloo))
        print(f"# loss by Gloo {gloo[-1]:.6f}, ATP {ours[-1]:.6f}; accuracy "
              f"{result['gloo']['accuracy']:.4f}, "
              f"{result['atp']['accuracy']:.4f}")
        # a training at all
        if not ours[-5:].mean() < ours[:5].mean() / 3:
            raise AssertionError(ours)
        if not np.allclose(ours, gloo, rtol=1e-2, atol=1e-3):
            raise AssertionError(f"differ by {np.abs(ours - gloo).max()}")


def all_ranks_have_the_same_model():
    for name in ("gloo", "atp"):
        expect(len({result[name]["digest"] for result in survivors()}), 1)


def the_same_again_gives_the_same_bits():
    for result in survivors():
        expect(result["again"], result["atp"])


def what_cannot_be_attached_leaves_the_job():
    for result in survivors():
        for what, words in (
            ("plain", ("AttributeError", "register_comm_hook")),
            ("second", ("RuntimeError", "comm_hook")),
            ("float64", ("TypeError", "torch.float64")),
            ("complex64", ("TypeError", "torch.complex64")),
            ("larger", ("ValueError", f"{WORKERS + 1} workers",
                        f"{WORKERS} ranks")),
        ):
            text = result["refused"][what] or "nothing"
            if not all(word in text for word in words):
                raise AssertionError(f"{what}: {text}")


def an_idle_hook_hears_that_the_run_has_ended():
    for result in survivors():
        found = result["idle"]
        expect(found["alive"], False)
        # once, but for what came before
        if not 1 <= found["calls"] <= 3:
            raise AssertionError(f"{found['calls']} calls")
        if f"job {REMOVED}: the job was removed" not in (found["next"] or ""):
            raise AssertionError(found["next"])


def a_hook_can_be_closed_in_its_own_thread():
    for result in survivors():
        raised, alive, descriptor = result["by itself"]
        expect((raised, alive, "Bad file" in (descriptor or "")),
               (None, False, True))


def a_lost_rank_raises_on_all_others_with_its_number():
    expect(len(survivors()), WORKERS - 1)
    for result in survivors():
        expect(result["step"], 2)
        if f"job {JOB}: rank {VICTIM} has left" not in result["error"]:
            raise AssertionError(result["error"])


TESTS = (
    every_bucket_is_the_mean_bit_for_bit,
    short_types_are_rounded_once,
    the_loss_is_that_with_gloo,
    all_ranks_have_the_same_model,
    the_same_again_gives_the_same_bits,
    what_cannot_be_attached_leaves_the_job,
    an_idle_hook_hears_that_the_run_has_ended,
    a_hook_can_be_closed_in_its_own_thread,
    a_lost_rank_raises_on_all_others_with_its_number,
)


def main():
    data = sys.argv.pop(1)
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", WORKERS, 1500)
    for job in JOB, REMOVED:
        rack("job_add", job, WORKERS, 4, "fragment", 1400)
    rack("switch_on")
    try:
        with tempfile.TemporaryDirectory() as out:
            all_ranks_end(data, out)
            return run(TESTS)
    finally:
        rack("down")


if __name__ == "__main__":
    sys.exit(main())
