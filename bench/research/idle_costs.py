#!/usr/bin/env python3
"""Measures what a local feed waits and costs beside things that it does not use.

    PYTHONPATH=build/python PYTHON bench/research/idle_costs.py --data FOLDER --shards FOLDER [--rounds 7] [--out bench/results/idle_costs]

A Loader with one worker feeds images of --data to a consumer that takes --rate images/s: by itself; in a process that has imported Ray and stoker.ray;
and in one that has opened the tar shards of --shards at nginx with a cache that is full, and does not read them. Each is a process of its own, in turn,
--rounds times. PYTHON has Ray, NumPy and the package.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402

MODES = {"alone": "nothing else", "ray": "Ray and stoker.ray imported", "cache": "a store opened, with a full cache"}
BATCH, WARM_UP = 64, 20


def feed(options):
    """Prints what --steps batches took, in the process of one mode."""
    import stoker

    kept = []
    if options.mode == "ray":
        import stoker.ray  # noqa: F401
    if options.mode == "cache":
        store = stoker.Store(cache=options.cache, cache_size=1 << 40)
        kept.append(stoker.tar(options.address, store=store))
        if options.fill:
            with stoker.Loader(kept[0], batch_size=BATCH, size=224, seed=1) as loader:
                return sum(len(batch) for batch in loader)
    waits, images = [], 0
    with stoker.Loader(stoker.folder(options.data, split="all"), batch_size=BATCH, size=224, seed=1, workers=1, last_batch="drop") as loader:
        while len(waits) < options.steps + WARM_UP:
            for batch in loader:
                if len(waits) == WARM_UP:
                    cpu, images = time.process_time(), 0
                begin = time.perf_counter()
                time.sleep(BATCH / options.rate)
                waits.append(begin - end if waits else 0.0)
                images += len(batch)
                del batch
                end = time.perf_counter()
                if len(waits) == options.steps + WARM_UP:
                    break
        cpu = time.process_time() - cpu
    waits = waits[WARM_UP:]
    print(json.dumps({"wait_us_mean": 1e6 * statistics.mean(waits), "wait_us_p99": 1e6 * statistics.quantiles(waits, n=100)[98],
                      "cpu_us_per_image": 1e6 * cpu / images}))


def measure(options, address, cache):
    runs = {mode: [] for mode in MODES}
    neighbours = measured_on.Neighbours()

    def run(mode, *more):
        words = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--mode", mode, "--address", address, "--cache", cache, *more]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"idle_costs.py: {mode}: {done.stderr[-2000:]}")
        return done.stdout

    run("cache", "--fill")
    with neighbours:
        for number in range(options.rounds):
            for mode in MODES:
                runs[mode].append(json.loads(run(mode)))
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    return runs, neighbours.summary()


def spread(values, form=".0f"):
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def table(runs):
    yield "| beside | the consumer waits for a batch, us | at the 99th percentile, us | CPU time per image, us | of that alone |"
    yield "|---|---|---|---|---|"
    alone = [run["cpu_us_per_image"] for run in runs["alone"]]
    for mode, title in MODES.items():
        def column(key):
            return spread([run[key] for run in runs[mode]])
        ratios = [run["cpu_us_per_image"] / own for run, own in zip(runs[mode], alone)]
        yield f"| {title} | {column('wait_us_mean')} | {column('wait_us_p99')} | {column('cpu_us_per_image')} | {spread(ratios, '.3f')} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--shards", required=True)
    parser.add_argument("--rate", type=float, default=1000, help="images/s of the consumer (default: 1000)")
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out")
    for name in ("--mode", "--address", "--cache"):  # of the processes that this one starts
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--fill", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mode:
        feed(options)
        return
    machine = measured_on.describe(HERE)
    words = [sys.executable, os.path.join(ROOT, "tests", "store", "servers.py"), "nginx", "--put", options.shards]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server, tempfile.TemporaryDirectory() as cache:
        shards = ",".join(sorted(name for name in os.listdir(options.shards) if name.endswith(".tar")))
        pattern = "{" + shards + "}" if "," in shards else shards
        runs, machine["neighbours"] = measure(options, f"{json.loads(server.stdout.readline())['plain_endpoint']}/data/{pattern}", cache)
        server.stdin.close()
    command = "bench/research/idle_costs.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    lines = ["# A local feed beside what it does not use", "",
             f"Photographs of a folder, crops of 224 px, batches of {BATCH}, one worker, a consumer of {options.rate:.0f} images/s;",
             f"{options.rounds} rounds in turn, {options.steps} batches in each; medians, with the smallest and the largest in brackets.", "",
             *measured_on.provenance(command, machine), "", *table(runs)]
    measured_on.write_report(options.out, {"command": command, "machine": machine, "runs": runs}, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
