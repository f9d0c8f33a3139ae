#!/usr/bin/env python3
"""Rows that Ray's workers fill, beside what Ray's object store carries by itself.

    PYTHONPATH=build/python python3 bench/research/ray_rows.py [--workers 1,2,4] [--rounds 7]

Both sides have the same number of actors, of calls under way and of bytes in each answer. Rows are drawn pictures of 224 x 224
pixels (stoker.synthetic), which take the workers less time than the store does: so this measures the way, not the filling. A
Loader without own threads (workers=0) takes all rows from the workers. The other side's actors return an array that is there
already; its threads look at one byte of each, or copy it, as every consumer must who keeps it. Rounds take turns, after one that does not count. Medians, with the least and the most. Needs Ray, NumPy and
the package; it starts Ray on this machine.
"""
import argparse
import statistics
import threading
import time

import numpy as np
import ray

import stoker
import stoker.ray

SIZE = 224
CALLS = 2  # under way for each worker, as stoker.ray has them


@ray.remote(num_cpus=1, max_concurrency=CALLS + 1)
class Store:
    def __init__(self, size):
        self.array = np.zeros(size, np.uint8)

    def get(self):
        return self.array, b""


def store_bytes_per_second(actors, size, seconds, copies=False):
    """Returns what comes through the store, with CALLS threads for each actor."""
    ray.get([actor.get.remote() for actor in actors])
    end = time.perf_counter() + seconds
    counts = []

    def take(actor):
        count = 0
        kept = np.zeros(size, np.uint8)
        while time.perf_counter() < end:
            array, _ = ray.get(actor.get.remote())
            if copies:
                kept[:] = array
            count += int(array[0] == 0)
        counts.append(count)

    begin = time.perf_counter()
    threads = [threading.Thread(target=take, args=(actor,)) for actor in actors for _ in range(CALLS)]
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


def text_of(values, unit, scale=1.0):
    return f"{statistics.median(values) / scale:,.2f} ({min(values) / scale:,.2f} to {max(values) / scale:,.2f}) {unit}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args()
    ray.init(num_cpus=64, include_dashboard=False, log_to_driver=False, logging_level="ERROR", object_store_memory=2 << 30)
    source = stoker.synthetic(20_000, size=SIZE)
    for count in map(int, args.workers.split(",")):
        options = {"batch_size": args.batch, "seed": 1, "size": SIZE, "last_batch": "drop"}
        with stoker.Loader(source, workers=0, remote=stoker.ray.workers(count), **options) as loader:
            batches = endless(loader)
            rows_per_second(batches, args.seconds)  # a warm-up, which shows the size of claims
            remote = loader.stats()["remote"]
            row_bytes = SIZE * SIZE * 3 + 4 + 4 + 8 + 96  # pixels, label, weight, id, note
            size = max(1, round(remote["rows"] / remote["claims"])) * row_bytes
            actors = [Store.remote(size) for _ in range(count)]
            store_bytes_per_second(actors, size, args.seconds)
            rows, store, copied = [], [], []
            for _ in range(args.rounds):
                rows.append(rows_per_second(batches, args.seconds) * row_bytes)
                store.append(store_bytes_per_second(actors, size, args.seconds))
                copied.append(store_bytes_per_second(actors, size, args.seconds, copies=True))
            for actor in actors:
                ray.kill(actor)
        print(f"{count} workers, {size / 2**20:.2f} MiB in an answer")
        print(f"  rows through stoker.ray  {text_of(rows, 'GB/s', 1e9)}; {statistics.median(rows) / row_bytes:,.0f} rows/s")
        print(f"  Ray's store by itself    {text_of(store, 'GB/s', 1e9)}")
        print(f"  the same, with a copy    {text_of(copied, 'GB/s', 1e9)}")
        for name, alone in (("the store", store), ("the store with a copy", copied)):
            print(f"  of {name:22} {text_of([mine / each for mine, each in zip(rows, alone)], 'x')}")


if __name__ == "__main__":
    main()
