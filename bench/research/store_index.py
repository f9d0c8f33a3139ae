#!/usr/bin/env python3
"""Measures how long the index of tar shards in a store takes, and a first epoch that does not wait for it.

    PYTHONPATH=build/python PYTHON bench/research/store_index.py --data FOLDER [--delays 20,100] [--rounds 3] [--out bench/results/store_index]

FOLDER has tar shards, as `stoker pack` writes them. nginx has them behind a proxy that delays each answer (tests/store/). A process opens them for the
first time and feeds one epoch in their order, batches of 64 crops of 224 px: once after the index, and once with wait=False. Both in turn, --rounds
times, each in a process of its own with an empty cache directory. PYTHON has NumPy and the package.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402
from store_feed import Started, braces_of, spread  # noqa: E402

WAYS = {"after the index": True, "wait=False": False}


def feed(address, wait):
    """Prints when each part of a first epoch had come, in seconds."""
    import stoker

    begin = time.perf_counter()
    source = stoker.tar(address, wait=wait)
    opened = time.perf_counter() - begin
    augment = stoker.random_resized_crop() | stoker.flip()
    images, first = 0, 0.0
    with stoker.Loader(source, batch_size=64, size=224, seed=1, shuffle=False, epochs=1, augment=augment) as loader:
        for batch in loader:
            images += batch.valid
            first = first or time.perf_counter() - begin
    print(json.dumps({"opened_s": opened, "first_batch_s": first, "epoch_s": time.perf_counter() - begin, "images": images,
                      "cpu_s": time.process_time()}))


def run(address, wait):
    with tempfile.TemporaryDirectory() as cache:
        words = [sys.executable, os.path.abspath(__file__), "--feed", address, *([] if wait else ["--no-wait"])]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": cache})
    if done.returncode != 0:
        sys.exit(f"store_index.py: {' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def measure(args):
    names = sorted(path.name for path in pathlib.Path(args.data).glob("*.tar"))
    runs = {}
    neighbours = measured_on.Neighbours()
    with Started("servers.py", "nginx", "--put", args.data) as nginx, neighbours:
        target = nginx.get("plain_endpoint", nginx["endpoint"]).removeprefix("http://")
        for number in range(args.rounds):
            for delay in args.delays:
                with Started("fault_proxy.py", target, "--delay-ms", delay) as proxy:
                    address = f"{proxy['endpoint']}/data/{braces_of(names)}"
                    for name, wait in WAYS.items():
                        runs.setdefault(delay, {}).setdefault(name, []).append(run(address, wait))
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
    return runs, len(names), neighbours.summary()


def table(runs, shards):
    yield "| each answer comes later by | index, of the headers of a shard one by one | first batch with wait=False, of the index | its epoch, of the one after the index | its CPU time, likewise |"
    yield "|---|---|---|---|---|"
    for delay, ways in runs.items():
        waits, begins = ways["after the index"], ways["wait=False"]
        one_by_one = waits[0]["images"] / shards * delay / 1000
        columns = [spread([each["opened_s"] / one_by_one for each in waits], ".2f")] if delay else ["–"]
        for new, old in (("first_batch_s", "opened_s"), ("epoch_s", "epoch_s"), ("cpu_s", "cpu_s")):
            columns.append(spread([a[new] / b[old] for a, b in zip(begins, waits)], ".2f"))
        yield f"| {delay} ms | {' | '.join(columns)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=lambda text: str(pathlib.Path(text).resolve()))
    parser.add_argument("--delays", type=lambda text: [int(each) for each in text.split(",")], default=[20, 100])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("--feed", help=argparse.SUPPRESS)
    parser.add_argument("--no-wait", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.feed:
        return feed(args.feed, not args.no_wait)
    machine = measured_on.describe(HERE)
    runs, shards, machine["neighbours"] = measure(args)
    images = next(iter(runs.values()))["wait=False"][0]["images"]
    command = "bench/research/store_index.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    lines = ["# The index of tar shards in a store, and a first epoch that does not wait for it", "",
             f"{images} images in {shards} tar shards at nginx on the same machine, behind a proxy that delays every answer. {args.rounds} rounds in turn;",
             "medians of ratios, with the smallest and the largest in brackets. The first column of numbers compares the time until the data set is open with",
             "what as many delays as a shard has samples come to, which going from header to header in all shards at the same time takes at least. The epoch is in the order of the list,",
             "and its time begins with the opening.", "", *measured_on.provenance(command, machine), "", *table(runs, shards)]
    measured_on.write_report(args.out, {"command": command, "machine": machine, "shards": shards, "runs": runs}, "\n".join(lines) + "\n")
    return None


if __name__ == "__main__":
    main()
