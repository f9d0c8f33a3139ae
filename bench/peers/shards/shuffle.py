#!/usr/bin/env python3
"""Measures how well the orders of epochs are shuffled: stoker's, WebDataset's and Grain's, beside uniform permutations.

    PYTHON bench/peers/shards/shuffle.py [--shards 100] [--per-shard 1000] [--epochs 5] [--out bench/results/shuffle]

The data are sorted by class, as they are packed: shard s has the samples s * 1000 to s * 1000 + 999. stoker shuffles all samples, or blocks of
16 of which 64 are mixed; WebDataset shuffles the shards and then the samples in a buffer of 1,000 or 10,000; Grain shuffles indices. Three figures, each the mean over epochs:
distance: between the ids of samples that come one after the other, as a share of the number of samples; a uniform permutation has 1/3.
neighbours: pairs that come one after the other in one epoch and also in the next, in any order; a uniform permutation has about 2.
classes: how many of 256 samples in a row are of different shards, beside the number for a uniform permutation.
PYTHON has stoker, numpy, webdataset and grain.
"""
import argparse
import io
import os
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "report"))
import measured_on  # noqa: E402


def stoker_epochs(samples, epochs, by_blocks=False):
    import stoker

    order = stoker.block_shuffled(block=16, mixed=64) if by_blocks else None
    loader = stoker.Loader(stoker.synthetic(samples, size=1), batch_size=1000, size=1, seed=0, device="cpu", order=order)
    for _ in range(epochs):
        yield np.concatenate([np.array(batch.ids)[: batch.valid] for batch in loader])


def uniform_epochs(samples, epochs):
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        yield rng.permutation(samples)


def grain_epochs(samples, epochs):
    import grain

    for epoch in range(epochs):
        yield np.array(list(grain.MapDataset.range(samples).shuffle(seed=epoch)))


def webdataset_epochs(folder, buffer, epochs):
    import webdataset as wds

    shards = sorted(str(path) for path in Path(folder).glob("*.tar"))
    for epoch in range(epochs):
        dataset = wds.WebDataset(shards, shardshuffle=len(shards), seed=epoch).shuffle(buffer, seed=epoch)
        yield np.array([int(sample["cls"]) for sample in dataset])


def write_shards(folder, shards, per_shard):
    for shard in range(shards):
        with tarfile.open(os.path.join(folder, f"{shard:06}.tar"), "w") as tar:
            for i in range(shard * per_shard, (shard + 1) * per_shard):
                label = str(i).encode()
                info = tarfile.TarInfo(f"{i:09}.cls")
                info.size = len(label)
                tar.addfile(info, io.BytesIO(label))


def pairs(order):
    """Returns the unordered pairs of neighbours, a number for each."""
    low, high = np.minimum(order[1:], order[:-1]), np.maximum(order[1:], order[:-1])
    return low.astype(np.int64) * (1 << 32) + high


def figures(epochs, samples, per_shard):
    distances, shared, spread, before = [], [], [], None
    for order in epochs:
        if not np.array_equal(np.sort(order), np.arange(samples)):
            raise ValueError("an epoch does not have every sample once")
        distances.append(np.abs(np.diff(order)).mean() / samples)
        rows = order[: samples // 256 * 256].reshape(-1, 256) // per_shard
        spread.append(np.mean([len(np.unique(row)) for row in rows]))
        now = pairs(order)
        if before is not None:
            shared.append(len(np.intersect1d(before, now)))
        before = now
    return {"distance": float(np.mean(distances)), "neighbours": float(np.mean(shared)), "classes": float(np.mean(spread))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--per-shard", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    samples = args.shards * args.per_shard
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        write_shards(folder, args.shards, args.per_shard)
        for name, epochs in (
            ("uniform permutations (NumPy)", uniform_epochs(samples, args.epochs)),
            ("stoker", stoker_epochs(samples, args.epochs)),
            ("stoker, blocks of 16, 64 mixed", stoker_epochs(samples, args.epochs, by_blocks=True)),
            (f"Grain {version('grain')}", grain_epochs(samples, args.epochs)),
            (f"WebDataset {version('webdataset')}, buffer of 1,000", webdataset_epochs(folder, 1_000, args.epochs)),
            (f"WebDataset {version('webdataset')}, buffer of 10,000", webdataset_epochs(folder, 10_000, args.epochs)),
        ):
            rows[name] = figures(epochs, samples, args.per_shard)
    machine = measured_on.describe(HERE)
    command = "bench/peers/shards/shuffle.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    text = "\n".join([
        "# How well epochs are shuffled", "",
        f"{samples:,} samples in {args.shards} shards, {args.epochs} epochs; the figures are explained in the script. Nothing here is a time.", "",
        *measured_on.provenance(command, machine), "",
        "| order | mean distance of neighbours, share of all samples | pairs of neighbours shared by two epochs | shards in 256 samples |", "|---|---|---|---|",
        *(f"| {name} | {row['distance']:.4f} | {row['neighbours']:.1f} | {row['classes']:.1f} |" for name, row in rows.items())]) + "\n"
    measured_on.write_report(args.out, {"command": command, "machine": machine, "rows": rows}, text)


if __name__ == "__main__":
    main()
