# SPDX-License-Identifier: GPL-2.0
"""Gradients of PyTorch's DistributedDataParallel over AF_ATP.

    import atp.torch

    model = torch.nn.parallel.DistributedDataParallel(model)
    atp.torch.attach(model, job=7)

The process group that DistributedDataParallel needs anyway (gloo, say) hands
out the first parameters and nothing else: every bucket of gradients is added
by the job, in float32, while the backward pass computes the next, and divided
by the number of workers.  float16 and bfloat16 are converted there and back, so
a sum is not rounded on its way; other types, of which a sum would be, are refused
(TypeError).  Tensors of other devices go through memory.

When a rank is lost, backward() raises on all others and says which.
"""

import collections
import os
import select
import threading
import weakref

import torch

from . import Error, Job

__all__ = ["Hook", "attach"]

_TYPES = (torch.float16, torch.bfloat16, torch.float32)


def _check(dtype):
    if dtype not in _TYPES:
        raise TypeError(
            f"gradients of {dtype} would be rounded: a job adds float32, and "
            "float16 and bfloat16 as such"
        )


class Hook:
    """The state of a communication hook; made by attach().

    ranks, if given, is how many workers the job must have.

    Buckets come from the threads of the backward pass.  A thread of ours, the
    only one that uses the job, pushes and pulls them in their order.
    """

    def __init__(self, job, rank, timeout=None, ranks=None):
        # self._waiting, self._error and self._closed
        self._lock = threading.Lock()
        self._waiting = collections.deque()
        self._error = None
        self._closed = False
        # closed by the thread itself
        self._alone = False
        self._job = Job(job, rank)
        try:
            self._workers = self._job.info().workers
            # before waiting for workers that are not among the ranks
            if ranks not in (None, self._workers):
                raise ValueError(
                    f"job {job} has {self._workers} workers, but the process "
                    f"group has {ranks} ranks: start as many, or give rank="
                )
            self._job._wait_joined(timeout)
        except BaseException:
            self._job.close()
            raise
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(
            target=self._run, name=f"atp job {job} rank {rank}", daemon=True
        )
        self._thread.start()

    def reduce(self, _state, bucket):
        """What DistributedDataParallel calls for each bucket."""
        tensor = bucket.buffer()
        _check(tensor.dtype)
        # Nothing may be taken from a tensor that its device still writes.
        work = tensor.detach().to("cpu", torch.float32).contiguous()
        future = torch.futures.Future()

        def finish(pulled):
            error = pulled.value()
            if error:
                raise error
            work.div_(self._workers)
            if work.data_ptr() != tensor.data_ptr():
                tensor.copy_(work)
            return tensor

        result = future.then(finish)
        with self._lock:
            error = self._error
            if not error:
                self._waiting.append((work.numpy(), future))
                # with the lock, as without it that may be closed by now, and
                # its number somebody else's
                os.eventfd_write(self._wake, 1)
        if error:
            raise error
        return result

    def close(self):
        """Leave the job; a backward pass under way raises."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.eventfd_write(self._wake, 1)
            # The garbage collector may find the model in any thread.
            self._alone = threading.current_thread() is self._thread
        if not self._alone:
            self._thread.join()
            os.close(self._wake)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    # All below runs in the thread.

    def _next(self, pulling):
        """Push what has come."""
        while True:
            with self._lock:
                if not self._waiting:
                    return
                array, future = self._waiting.popleft()
            # whoever fails now must be told as those before
            pulling.append((None, future))
            pulling[-1] = (self._job.allreduce_start(array), future)

    def _serve(self, pulling):
        poll = select.poll()
        poll.register(self._job.fileno(), select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            self._next(pulling)
            while pulling and pulling[0][0].done():
                pulling.popleft()[1].set_result(None)
            if not poll.poll():
                continue
            # nobody else asks then how the run goes on
            if not pulling:
                self._job.progress()
            try:
                os.eventfd_read(self._wake)
            except BlockingIOError:
                pass
            with self._lock:
                if self._closed:
                    raise Error(0, "this rank has left its job")

    def _run(self):
        pulling = collections.deque()
        try:
            self._serve(pulling)
        except Exception as error:  # pylint: disable=broad-except
            # None of them may wait for ever, whatever it was.
            with self._lock:
                self._error = error
                pulling.extend((None, f) for _, f in self._waiting)
                self._waiting.clear()
            self._job.close()
            for _, future in pulling:
                future.set_result(error)
        if self._alone:
            os.close(self._wake)


def attach(model, job, rank=None, timeout=None):
    """Let a job add the gradients of a DistributedDataParallel.

    rank is that in the default process group unless given; in that case the job
    has to have as many workers as the group has ranks.  Returns the Hook when all
    ranks have joined; timeout, in seconds, limits that.  Its close() leaves the
    job, as the end of the process does.
    """
    for parameter in model.parameters():
        if parameter.requires_grad:
            _check(parameter.dtype)
    ranks = None
    if rank is None:
        rank = torch.distributed.get_rank()
        ranks = torch.distributed.get_world_size()
    hook = Hook(job, rank, timeout, ranks)
    try:
        model.register_comm_hook(None, hook.reduce)
        weakref.finalize(model, hook.close)
    except BaseException:
        # as it is not a DistributedDataParallel, or has a hook already
        hook.close()
        raise
    return hook
