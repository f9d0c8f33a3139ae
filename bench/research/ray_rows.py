#!/usr/bin/env python3
"""Rows that Ray's workers fill, beside what Ray's object store carries by itself.

    PYTHONPATH=build/python python3 bench/research/ray_rows.py [--workers 1,2,4] [--rounds 7] [--out bench/results/ray_rows]

Both sides have the same number of actors, of calls under way and of bytes in each answer. Rows are drawn pictures of 224 x 224
pixels (stoker.synthetic), which take the workers less time than the store does: so this measures the way, not the filling. A
Loader without own threads (workers=0) takes all rows from the workers. The other side's actors return an array that is there
already; its threads look at one byte of each, or copy it, as every consumer must who keeps it, or copy it where the actors have set
each of its bytes before, as every filler must. Rounds take turns, after one that does not count. Medians, with the least and the
most. Needs Ray, NumPy and the package; it starts Ray on this machine.
"""
import argparse
import os
import statistics
import sys
import threading
import time

import numpy as np
import ray

import stoker
import stoker.ray

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402

SIZE = 224
CALLS = 2  # under way for each worker, as stoker.ray has them


@ray.remote(num_cpus=1, max_concurrency=CALLS + 1)
class Store:
    def __init__(self, size):
        # Of memory that was written to: zeros() is one page of zeros, many times.
        self.array = np.ones(size, np.uint8)

    def get(self):
        return self.array, b""

    def fill(self):
        filled = np.empty(self.array.size, np.uint8)
        filled[:] = 1
        return filled, b""


def store_bytes_per_second(actors, size, seconds, copies=False, fills=False):
    """Returns what comes through the store, with CALLS threads for each actor."""
    methods = [actor.fill if fills else actor.get for actor in actors]
    ray.get([method.remote() for method in methods])
    end = time.perf_counter() + seconds
    counts = []

    def take(method):
        count = 0
        kept = np.zeros(size, np.uint8)
        while time.perf_counter() < end:
            array, _ = ray.get(method.remote())
            if copies:
                kept[:] = array
            count += int(array[0] == 1)
        counts.append(count)

    begin = time.perf_counter()
    threads = [threading.Thread(target=take, args=(method,)) for method in methods for _ in range(CALLS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) * size / (time.perf_counter() - begin)


def endless(loader):
    while True:
        yield from loader


def rows_per_second(batches, seconds):
    begin, rows = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        rows += len(next(batches))
    return rows / (time.perf_counter() - begin)


def text_of(values):
    return f"{statistics.median(values):,.2f} ({min(values):,.2f}–{max(values):,.2f})"


def measure(source, count, args, neighbours):
    """Returns the bytes/s of rows, of Ray's store, with a copy, and of memory that is filled before, for each round, with `count` workers."""
    row_bytes = SIZE * SIZE * 3 + 4 + 4 + 8 + 96  # pixels, label, weight, id, note
    options = {"batch_size": args.batch, "seed": 1, "size": SIZE, "last_batch": "drop"}
    with stoker.Loader(source, workers=0, remote=stoker.ray.workers(count), **options) as loader:
        batches = endless(loader)
        rows_per_second(batches, args.seconds)  # a warm-up, which shows the size of claims
        remote = loader.stats()["remote"]
        size = max(1, round(remote["rows"] / remote["claims"])) * row_bytes
        actors = [Store.remote(size) for _ in range(count)]
        store_bytes_per_second(actors, size, args.seconds)
        found = {"workers": count, "row_bytes": row_bytes, "answer_bytes": size, "rows": [], "store": [], "copied": [], "filled": []}
        for _ in range(args.rounds):
            with neighbours:
                found["rows"].append(rows_per_second(batches, args.seconds) * row_bytes)
                found["store"].append(store_bytes_per_second(actors, size, args.seconds))
                found["copied"].append(store_bytes_per_second(actors, size, args.seconds, copies=True))
                found["filled"].append(store_bytes_per_second(actors, size, args.seconds, copies=True, fills=True))
        for actor in actors:
            ray.kill(actor)
    return found


def table(measured):
    yield ("| workers | MiB in an answer | rows/s | GB/s of rows | of Ray's store by itself | of the store with a copy | of memory that is set, carried and copied | "
           "that, of Ray's store by itself |")
    yield "|---|---|---|---|---|---|---|---|"
    for found in measured:
        def ratio(mine, other):
            return text_of([one / each for one, each in zip(found[mine], found[other])])
        rows = found["rows"]
        yield (f"| {found['workers']} | {found['answer_bytes'] / 2**20:.2f} | {statistics.median(rows) / found['row_bytes']:,.0f} | "
               f"{text_of([each / 1e9 for each in rows])} | {ratio('rows', 'store')} | {ratio('rows', 'copied')} | {ratio('rows', 'filled')} | "
               f"{ratio('filled', 'store')} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--out")
    args = parser.parse_args()
    machine, neighbours = measured_on.describe(HERE), measured_on.Neighbours()
    ray.init(num_cpus=64, include_dashboard=False, log_to_driver=False, logging_level="ERROR", object_store_memory=2 << 30)
    source = stoker.synthetic(20_000, size=SIZE)
    measured = [measure(source, count, args, neighbours) for count in map(int, args.workers.split(","))]
    machine["neighbours"] = neighbours.summary()
    command = "bench/research/ray_rows.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    lines = ["# Rows that Ray's workers fill, beside what Ray's object store carries", "",
             f"Drawn pictures of {SIZE} px in batches of {args.batch}, all filled by workers; {args.rounds} rounds in turn; medians, with the least and the most.",
             "", *measured_on.provenance(command, machine), "", *table(measured)]
    measured_on.write_report(args.out, {"command": command, "machine": machine, "measured": measured}, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
