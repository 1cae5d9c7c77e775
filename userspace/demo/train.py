#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Train a network on handwritten digits, data-parallel over a job.

Each worker has every W-th image, computes the gradients of its own batch, and
gets the sums over all workers through AF_ATP; so all workers take the same
steps.  With --optimiser ps the sums go to an application on the PS host (--serve),
which takes the steps and gives all workers the parameters.  --alone is the oracle:
one process takes the batches of all workers and adds their gradients itself.
"""

import argparse
import hashlib
import json
import os
import time

# One thread per worker, as the machine is shared by all of them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402

LAYERS = (64, 128, 64, 10)
BATCH = 32
RATE = 0.15
MOMENTUM = 0.9
TEST_EVERY = 5
SEED = 1797


class Model:
    """A multilayer perceptron whose parameters are one array per layer."""

    def __init__(self):
        rng = np.random.default_rng(SEED)
        self.shapes = list(zip(LAYERS, LAYERS[1:]))
        self.flat = []
        for inputs, outputs in self.shapes:
            weights = rng.standard_normal((inputs, outputs))
            weights *= np.sqrt(2 / inputs)
            bias = np.zeros(outputs)
            layer = np.concatenate([weights.ravel(), bias])
            self.flat.append(layer.astype(np.float32))
        self.speed = [np.zeros_like(layer) for layer in self.flat]

    def layer(self, index):
        inputs, outputs = self.shapes[index]
        flat = self.flat[index]
        return flat[:-outputs].reshape(inputs, outputs), flat[-outputs:]

    def forward(self, images):
        """Values of all layers; the last are logits."""
        values = [images]
        for index in range(len(self.flat)):
            weights, bias = self.layer(index)
            out = values[-1] @ weights + bias
            if index + 1 < len(self.flat):
                np.maximum(out, 0, out=out)
            values.append(out)
        return values

    def backward(self, images, labels, share, done):
        """Gradients of the mean over share images, last layer first.

        done(layer, gradient) is called as soon as a layer's are there.
        Returns this batch's part of the loss.
        """
        values = self.forward(images)
        logits = values[-1] - values[-1].max(axis=1, keepdims=True)
        chances = np.exp(logits)
        chances /= chances.sum(axis=1, keepdims=True)
        rows = np.arange(len(labels))
        loss = -np.log(chances[rows, labels] + 1e-12).sum() / share
        delta = chances
        delta[rows, labels] -= 1
        delta /= share
        for index in reversed(range(len(self.flat))):
            weights, _ = self.layer(index)
            gradient = np.concatenate(
                [(values[index].T @ delta).ravel(), delta.sum(axis=0)]
            )
            done(index, gradient)
            if index:
                delta = (delta @ weights.T) * (values[index] > 0)
        return loss

    def step(self, gradients, rate):
        for index, gradient in enumerate(gradients):
            self.speed[index] *= np.float32(MOMENTUM)
            self.speed[index] -= np.float32(rate) * gradient
            self.flat[index] += self.speed[index]

    def accuracy(self, images, labels):
        return float((self.forward(images)[-1].argmax(axis=1) == labels).mean())

    def digest(self):
        return hashlib.sha256(b"".join(l.tobytes() for l in self.flat)).hexdigest()


def load(path):
    """Training and test images; the split is fixed."""
    with np.load(path) as data:
        images, labels = data["images"], data["labels"]
    order = np.random.default_rng(SEED).permutation(len(labels))
    test = np.arange(len(order)) % TEST_EVERY == 0
    return (
        (images[order[~test]], labels[order[~test]]),
        (images[order[test]], labels[order[test]]),
    )


def batches(count, workers, epoch):
    """For each step of an epoch, each worker's images.

    Every worker can tell those of all, as the shuffling is seeded.
    """
    shards = []
    for rank in range(workers):
        rng = np.random.default_rng((SEED, epoch, rank))
        shards.append(rng.permutation(np.arange(rank, count, workers)))
    steps = count // workers // BATCH
    for step in range(steps):
        part = slice(step * BATCH, (step + 1) * BATCH)
        yield [shard[part] for shard in shards]


def gradients_alone(model, train, parts):
    images, labels = train
    share = sum(len(part) for part in parts)
    total = [np.zeros_like(layer) for layer in model.flat]

    def add(index, gradient):
        total[index] += gradient

    loss = 0
    for part in parts:
        loss += model.backward(images[part], labels[part], share, add)
    return total, loss, 0


def gradients_shared(model, train, parts, rank, job):
    """Each layer's gradients travel while the next are computed.

    The third result is the time from the first push to the last pull.
    """
    images, labels = train
    share = sum(len(part) for part in parts)
    total = [None] * len(model.flat)
    requests = []
    began = []

    def start(index, gradient):
        began.append(time.monotonic())
        total[index] = gradient
        requests.append(job.allreduce_start(gradient))

    part = parts[rank]
    loss = np.array(
        [model.backward(images[part], labels[part], share, start)],
        dtype=np.float32,
    )
    requests.append(job.allreduce_start(loss))
    for request in requests:
        request.wait()
    return total, float(loss[0]), time.monotonic() - began[0]


def learning_rate(epoch, epochs):
    return RATE * 0.5 * (1 + np.cos(np.pi * epoch / epochs))


class Optimiser:
    """The same steps on the PS, value by value as sums of gradients come.

    Workers push each step's gradients, last layer first, and then one value,
    the loss.
    """

    def __init__(self, options, images):
        self.model = Model()
        self.epochs = options.epochs
        self.steps = images // options.workers // BATCH
        self.size = sum(layer.size for layer in self.model.flat) + 1

    def result(self, first, sums):
        step, at = divmod(first, self.size)
        rate = learning_rate(step // self.steps, self.epochs)
        for speed, flat in zip(
            reversed(self.model.speed), reversed(self.model.flat)
        ):
            if at < flat.size:
                part = slice(at, at + sums.size)
                speed[part] *= np.float32(MOMENTUM)
                speed[part] -= np.float32(rate) * sums
                flat[part] += speed[part]
                return flat[part]
            at -= flat.size
        return sums


def serve(options):
    import atp

    train, test = load(options.data)
    optimiser = Optimiser(options, len(train[1]))
    pulls = 0
    with atp.serve(options.job, timeout=60) as server:
        for sums in server:
            server.push(optimiser.result(sums.first, sums.values))
            pulls += 1
    return {
        "accuracy": optimiser.model.accuracy(*test),
        "digest": optimiser.model.digest(),
        "pulls": pulls,
    }


def train_model(options, job):
    train, test = load(options.data)
    model = Model()
    size = sum(layer.nbytes for layer in model.flat)
    began = time.monotonic()
    steps = 0
    for epoch in range(options.epochs):
        losses = []
        shared = 0
        rate = learning_rate(epoch, options.epochs)
        for parts in batches(len(train[1]), options.workers, epoch):
            if job:
                total, loss, took = gradients_shared(
                    model, train, parts, options.rank, job
                )
            else:
                total, loss, took = gradients_alone(model, train, parts)
            if options.optimiser == "ps":
                model.flat = total
            else:
                model.step(total, rate)
            losses.append(loss)
            shared += took
        steps += len(losses)
        if not options.rank:
            line = (
                f"{options.label}: epoch {epoch + 1:2}/{options.epochs}"
                f"  loss {np.mean(losses):.4f}"
                f"  accuracy {model.accuracy(*test) * 100:5.1f} %"
            )
            if job:
                goodput = len(losses) * size * 8 / shared / 1e6
                line += f"  goodput {goodput:5.1f} Mbit/s"
            print(line, flush=True)
    return {
        "accuracy": model.accuracy(*test),
        "digest": model.digest(),
        "steps": steps,
        "parameters": size // 4,
        "bytes": steps * size,
        "seconds": time.monotonic() - began,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--job", type=int, default=7)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--label", default="training")
    parser.add_argument("--result", required=True)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument(
        "--optimiser", choices=("worker", "ps"), default="worker"
    )
    options = parser.parse_args()

    if options.alone:
        result = train_model(options, None)
    elif options.serve:
        result = serve(options)
    else:
        import atp

        with atp.join(options.job, options.rank, timeout=60) as job:
            result = train_model(options, job)
            info = job.info()
            result["resent"] = info.resent
            result["raw"] = info.raw
    with open(options.result, "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
