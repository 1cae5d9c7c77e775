#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A PyTorch user's script: handwritten digits with DistributedDataParallel.

Two lines of it, marked below, let a job of AF_ATP add the gradients; without
--job Gloo adds them.

    MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 GLOO_SOCKET_IFNAME=eth0 \\
            train_ddp.py --rank 0 --workers 4 --data digits.npz --job 7

digits.npz comes from digits.py beside this file.
"""

import argparse
import json

import torch
from torch import distributed, nn

from train import batches, load

SEED = 1797


def network():
    torch.manual_seed(SEED)
    return nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(),
        nn.Linear(256, 128), nn.ReLU(),
        nn.Linear(128, 10),
    )


def train(options):
    """Returns the losses of this rank's batches, and the accuracy."""
    (images, labels), test = load(options.data)
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    model = nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=0.05)
    if options.job is not None:
        import atp.torch                                    # one
        atp.torch.attach(model, job=options.job)            # two
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for epoch in range(options.epochs):
        for parts in batches(len(labels), options.workers, epoch):
            part = torch.from_numpy(parts[options.rank])
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(images[part]),
                                               labels[part])
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        if options.rank == 0:
            print(f"epoch {epoch + 1}: loss {losses[-1]:.4f}", flush=True)
    with torch.no_grad():
        guesses = model(torch.from_numpy(test[0])).argmax(dim=1).numpy()
    return losses, float((guesses == test[1]).mean()), model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--job", type=int)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", rank=options.rank, world_size=options.workers
    )
    losses, accuracy, _ = train(options)
    print(json.dumps({"loss": losses[-1], "accuracy": accuracy}))


if __name__ == "__main__":
    main()
