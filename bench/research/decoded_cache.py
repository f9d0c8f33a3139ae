#!/usr/bin/env python3
"""Measures what a row takes with and without a cache of decoded pictures, in memory and on a disk.

    bench/research/decoded_cache.py --data DIR [--size 224] [--augment LIST] [--pixels exact] [--samples 2000] [--rounds 7]
                                    [--kept FOLDER] [--out bench/results/decoded_cache]

One Loader without workers for each of the three, which has gone through one epoch: the files are in memory then, and the cache is full. Each
round feeds one epoch of each in turn, on one core, and compares CPU time per row with that of the same round without a cache. FOLDER is on
the disk that is meant (default: a temporary folder); what it keeps is in the page cache, too. Needs the Python package (PYTHONPATH).
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

import stoker

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402

BATCH = 64
NO_CACHE, MEMORY, DISK = "no cache", "in memory", "on a disk"


def loader_of(source, cache, args):
    return stoker.Loader(source, batch_size=BATCH, size=args.size, augment=args.augment, pixels=args.pixels, seed=1, workers=0,
                         cache=cache)


def microseconds(loader):
    """Feeds one epoch. Returns the CPU time per row."""
    begin, rows = time.process_time(), 0
    for batch in loader:
        rows += batch.valid
    return 1e6 * (time.process_time() - begin) / rows


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def table(times):
    yield "| | CPU us per row | of the time without a cache |"
    yield "|---|---|---|"
    for name, of_name in times.items():
        shares = [own / plain for own, plain in zip(of_name, times[NO_CACHE])]
        yield f"| {name} | {spread(of_name, '.1f')} | {spread(shares, '.3f') if name != NO_CACHE else '1'} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--split", default="all")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--augment", default="resize_center_crop")
    parser.add_argument("--pixels", default="exact")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--kept")
    parser.add_argument("--out")
    args = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    source = stoker.open(args.data, split=args.split)
    if args.samples < len(source):
        source = stoker.subset(source, range(0, len(source), len(source) // args.samples))
    size = 3 * (max(args.size, 128) + 8)**2 * len(source)
    neighbours = measured_on.Neighbours()
    with neighbours, tempfile.TemporaryDirectory(dir=args.kept) as folder:
        caches = {NO_CACHE: None, MEMORY: stoker.DecodedCache(size), DISK: stoker.DecodedCache(size, folder)}
        loaders = {name: loader_of(source, cache, args) for name, cache in caches.items()}
        for loader in loaders.values():
            microseconds(loader)
        times = {name: [] for name in loaders}
        for _ in range(args.rounds):
            for name, loader in loaders.items():
                times[name].append(microseconds(loader))
        stats = {name: {key: value for key, value in (loader.stats().get("cache") or {}).items() if key != "folder"} for name, loader in loaders.items()}
        for loader in loaders.values():
            loader.close()
    machine = {**measured_on.describe(HERE), "neighbours": neighbours.summary()}
    command = "bench/research/decoded_cache.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    lines = ["# Rows from a cache of decoded pictures", "",
             f"{args.rounds} rounds in turn, an epoch of {len(source)} samples each, one core, `{args.augment}` to {args.size} px, {args.pixels}",
             "pixels; medians, with the smallest and the largest in brackets.", "",
             *measured_on.provenance(command, machine), "", *table(times), "",
             f"A picture takes {stats[MEMORY]['place_bytes']} bytes; {stats[MEMORY]['hits']} of "
             f"{stats[MEMORY]['hits'] + stats[MEMORY]['misses']} rows came from memory, {stats[DISK]['hits']} from the disk."]
    report = {"command": command, "machine": machine, "us_per_row": times, "stats": stats}
    measured_on.write_report(args.out, report, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
