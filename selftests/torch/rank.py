#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""One rank of test_torch.py: what it does in turn, and leaves in a file."""

import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import types

import numpy as np
import torch
from torch import distributed, nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../userspace/python"))
sys.path.insert(0, os.path.join(HERE, "../../userspace/demo"))
sys.path.insert(0, os.path.join(HERE, "../tools"))
import atp.torch  # noqa: E402
import doc_blocks  # noqa: E402
import train_ddp  # noqa: E402

JOB, VICTIM = 7, 1
# of as many workers as JOB, to be removed; and one that has more than there are ranks
REMOVED, LARGER = 8, 9
TOOL = os.path.join(HERE, "../../build/bin/atp")


def digest(model):
    with torch.no_grad():
        flat = [p.numpy().tobytes() for p in model.parameters()]
    return hashlib.sha256(b"".join(flat)).hexdigest()


def trained(options, job):
    losses, accuracy, model = train_ddp.train(
        types.SimpleNamespace(**vars(options), job=job)
    )
    result = {"losses": losses, "accuracy": accuracy, "digest": digest(model)}
    # the rank leaves its job with the model
    del model
    gc.collect()
    distributed.barrier()
    return result


def copy(tensor):
    return tensor.detach().to(torch.float32).numpy().copy()


def recorded():
    """Each bucket's gradients before and after."""
    torch.manual_seed(train_ddp.SEED)
    # of a model as small as this it would make a single bucket
    distributed._DEFAULT_FIRST_BUCKET_BYTES = 20000
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(50, 300), nn.Linear(300, 40)),
        bucket_cap_mb=0.02,
    )
    seen = []

    def note(hook, bucket):
        before = copy(bucket.buffer())

        def after(future):
            seen.append((before, copy(future.value())))
            return future.value()

        return hook.reduce(None, bucket).then(after)

    with atp.torch.Hook(JOB, distributed.get_rank()) as hook:
        model.register_comm_hook(hook, note)
        torch.manual_seed(distributed.get_rank())
        for _ in range(3):
            model(torch.randn(16, 50)).square().mean().backward()
        distributed.barrier()
    return seen


def short(dtype):
    """As in a bucket of that type, which Gloo could not begin with."""
    torch.manual_seed(distributed.get_rank())
    tensors = [torch.randn(count).to(dtype) for count in (5000, 1)]
    before = [copy(tensor) for tensor in tensors]
    with atp.torch.Hook(JOB, distributed.get_rank()) as hook:
        after = [
            hook.reduce(None, types.SimpleNamespace(buffer=lambda t=t: t))
            for t in tensors
        ]
        after = [copy(future.wait()) for future in after]
        distributed.barrier()
    return list(zip(before, after))


def said(call, *args):
    """What it raises"""
    try:
        call(*args)
    except Exception as error:  # pylint: disable=broad-except
        return f"{type(error).__name__}: {error}"
    return None


def parallel(layers):
    return nn.parallel.DistributedDataParallel(layers)


def refused():
    """What attach() does not take; it leaves the job then."""
    found = {
        "plain": said(atp.torch.attach, nn.Linear(2, 2), JOB),
    }
    distributed.barrier()
    model = parallel(nn.Linear(2, 2))
    with atp.torch.attach(model, JOB) as hook:
        wrong = types.SimpleNamespace(
            buffer=lambda: torch.ones(1, dtype=torch.complex64)
        )
        found["complex64"] = said(hook.reduce, None, wrong)
        distributed.barrier()
    distributed.barrier()
    found["second"] = said(atp.torch.attach, model, JOB)
    found["float64"] = said(
        atp.torch.attach, parallel(nn.Linear(2, 2).double()), JOB
    )
    workers = distributed.get_world_size() + 1
    members = [f"worker 10.0.0.{i + 1}" for i in range(workers)]
    job = f"job add {LARGER} ps 10.0.0.254 {' '.join(members)}"
    subprocess.run([TOOL, *job.split()], check=True)
    found["larger"] = said(atp.torch.attach, parallel(nn.Linear(2, 2)), LARGER)
    distributed.barrier()
    return found


def idle():
    """The job is removed between two steps: the thread ends, after how many calls,
    and what is the next step told?"""
    model = parallel(nn.Linear(2, 2))
    hook = atp.torch.attach(model, REMOVED)
    model(torch.ones(1, 2)).sum().backward()
    calls, progress = [], hook._job.progress
    hook._job.progress = lambda: calls.append(None) or progress()
    distributed.barrier()
    subprocess.run([TOOL, "job", "del", str(REMOVED)], check=True)
    hook._thread.join(60)
    return {
        "alive": hook._thread.is_alive(),
        "calls": len(calls),
        "next": said(lambda: model(torch.ones(1, 2)).sum().backward()),
    }


def closed_by_itself():
    """close() in the hook's own thread, where the garbage collector may find a
    model, too: what it raises, what is left of the thread and its descriptor"""
    # else the hook closes at once
    model = parallel(nn.Linear(2, 2))
    hook = atp.torch.attach(model, JOB)
    found = []

    def close(_future):
        # others may still wait for the sum
        distributed.barrier()
        found.append(said(hook.close))

    bucket = types.SimpleNamespace(buffer=lambda: torch.ones(2))
    hook.reduce(None, bucket).then(close).wait()
    hook._thread.join(60)
    found.append(hook._thread.is_alive())
    found.append(said(os.fstat, hook._wake))
    distributed.barrier()
    del model
    return found


def as_in_the_readme(model):
    """Its lines, as they are."""
    names = {"model": model,
             "DistributedDataParallel": nn.parallel.DistributedDataParallel}
    exec(next(text for file, text in doc_blocks.blocks()
              if file == "README" and "atp.torch.attach(" in text), names)
    return names["model"]


def pushes():
    """Buckets that were given to a job from now on, by their numbers."""
    seen = []
    reduce = atp.torch.Hook.reduce

    def note(hook, state, bucket):
        seen.append(bucket.index())
        return reduce(hook, state, bucket)

    atp.torch.Hook.reduce = note
    return seen


def lost(rank):
    """The victim dies in the third backward pass, when its last bucket is
    still to come; what do others get?"""
    pushed, step = pushes(), 0

    def die(_gradient):
        if step == 2 and pushed:
            os.kill(os.getpid(), signal.SIGKILL)

    layers = nn.Sequential(nn.Linear(100, 600), nn.Linear(600, 600))
    if rank == VICTIM:
        layers[0].weight.register_hook(die)
    model = as_in_the_readme(layers)
    for step in range(5):
        pushed.clear()
        try:
            model(torch.randn(4, 100)).square().mean().backward()
        except RuntimeError as error:
            return step, str(error)
    return None, None


def main():
    rank, workers, data, out = sys.argv[1:]
    options = types.SimpleNamespace(
        rank=int(rank), workers=int(workers), data=data, epochs=4
    )
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", rank=options.rank, world_size=options.workers
    )
    result = {
        "gloo": trained(options, None),
        "atp": trained(options, JOB),
        "again": trained(options, JOB),
    }
    result["refused"] = refused()
    result["idle"] = idle()
    result["by itself"] = closed_by_itself()
    arrays = {}
    for name, pairs in (
        ("float32", recorded()),
        ("bfloat16", short(torch.bfloat16)),
        ("float16", short(torch.float16)),
    ):
        for number, pair in enumerate(pairs):
            arrays[f"{name}.{number}.before"] = pair[0]
            arrays[f"{name}.{number}.after"] = pair[1]
    np.savez(f"{out}.npz", **arrays)
    result["step"], result["error"] = lost(options.rank)
    with open(f"{out}.json", "w", encoding="utf-8") as file:
        json.dump(result, file)
    # the process group would wait for the one that is dead
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
