#!/usr/bin/env python3
"""Measures what several processes take that feed the same rows, each by itself and together (stoker.Loader(share=)).

    PYTHONPATH=build/python PYTHON bench/research/share_costs.py --data FOLDER [--processes 1,2,3] [--rounds 5] [--out bench/results/share_costs]

Each process takes --epochs epochs of the images of FOLDER, as random-resized crops of 224 px, with one worker. They begin together. In turn, each way
--rounds times. PYTHON has NumPy and the package.

With --store-delay MS, FOLDER has tar shards, which nginx has on this machine, behind a proxy (tests/store) that delays each answer; the last column
is what the proxy passed on. The first run, which indexes the shards, does not count.
"""
import argparse
import contextlib
import functools
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402
import store_feed  # noqa: E402


def feed(options):
    """Takes the epochs when a line comes, and prints what that took: one of the processes."""
    import stoker

    share = {"share": options.share} if options.share else {}
    source = stoker.tar(options.data) if "://" in options.data else stoker.folder(options.data, split="all")
    with stoker.Loader(source, batch_size=64, size=224, seed=1, workers=1, epochs=options.epochs, **share) as loader:
        print("ready", flush=True)
        sys.stdin.readline()
        images = sum(len(batch) for _ in range(options.epochs) for batch in loader)
        print(json.dumps({"images": images, "share": loader.stats().get("share")}), flush=True)


def run(options, data, count, share):
    """Returns CPU time per image that one process is given, and images/s of each."""
    words = [sys.executable, os.path.abspath(__file__), "--data", data, "--epochs", str(options.epochs), "--share", share, "--feed"]
    processes = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    for process in processes:
        process.stdout.readline()
    cpu, begin = sum(cpu_seconds(process.pid) for process in processes), time.perf_counter()
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    results = [json.loads(process.stdout.readline()) for process in processes]
    wall = time.perf_counter() - begin
    cpu = sum(cpu_seconds(process.pid) for process in processes) - cpu
    for process in processes:
        process.communicate()
    images = sum(result["images"] for result in results)
    taken = sum(result["share"]["taken"] for result in results) if share else 0
    return {"cpu_us": 1e6 * cpu / images, "images_per_second": images / count / wall, "taken": taken / images}


def run_from_a_store(options, server, port, names, count, share):
    """Does the same with shards that the server has, and counts bytes of its answers for each byte of the data."""
    target = server["plain_endpoint"].removeprefix("http://")
    proxy = store_feed.Started("fault_proxy.py", target, "--delay-ms", options.store_delay, "--port", port)
    with proxy as line:
        found = run(options, f"{line['endpoint']}/data/{store_feed.braces_of(names)}", count, share)
        proxy.process.stdin.close()
        counts = json.loads(proxy.process.stdout.readline())
    found["bytes"] = counts["bytes"] / (options.epochs * store_feed.size_of(options.data))
    return found


def cpu_seconds(pid):
    return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3)


def spread(values, form=".0f"):
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def table(runs):
    with_store = any("bytes" in run for measured in runs.values() for run in measured)
    yield ("| processes | rows | CPU time per row that a process is given, us | images/s of each | rows from another process, % | CPU time beside each by itself |"
           + (" bytes from the store, of the data's |" if with_store else ""))
    yield "|---|---|---|---|---|---|" + ("---|" if with_store else "")
    for (count, way), measured in runs.items():
        ratios = [run["cpu_us"] / own["cpu_us"] for run, own in zip(measured, runs[count, "by itself"])]

        def column(key, scale=1, form=".0f"):
            return spread([scale * run[key] for run in measured], form)

        yield (f"| {count} | {way} | {column('cpu_us')} | {column('images_per_second')} | {column('taken', 100)} | {spread(ratios, '.2f')} |"
               + (f" {column('bytes', form='.2f')} |" if with_store else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--processes", default="1,2,3")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store-delay", type=float, metavar="MS", help="read tar shards from a server that is so far away")
    parser.add_argument("--out")
    parser.add_argument("--share", default="", help=argparse.SUPPRESS)  # of the processes that this one starts
    parser.add_argument("--feed", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.feed:
        feed(options)
        return
    machine, neighbours, runs = measured_on.describe(HERE), measured_on.Neighbours(), {}
    with contextlib.ExitStack() as servers:
        run_one = functools.partial(run, options, options.data)
        if options.store_delay is not None:
            server = servers.enter_context(store_feed.Started("servers.py", "nginx", "--put", options.data))
            names = sorted(name for name in os.listdir(options.data) if name.endswith(".tar"))
            run_one = functools.partial(run_from_a_store, options, server, store_feed.free_ports(1)[0], names)
            run_one(1, "")
        servers.enter_context(neighbours)
        for number in range(options.rounds):
            for count in map(int, options.processes.split(",")):
                for way, share in (("by itself", ""), ("shared", f"share_costs-{os.getpid()}")):
                    runs.setdefault((count, way), []).append(run_one(count, share))
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    machine["neighbours"] = neighbours.summary()
    command = "bench/research/share_costs.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    lines = ["# Several processes that feed the same rows", "",
             f"Random-resized crops of 224 px, batches of 64, one worker in each process, {options.epochs} epochs; {options.rounds} rounds in turn; medians, with the",
             "smallest and the largest in brackets. What a row that is given costs: the CPU time of all processes over the rows of all.", "",
             *([f"Shards on nginx on this machine, {options.store_delay:g} ms away, which keeps to one core, as does the proxy before it.", ""] if options.store_delay is not None else []),
             *measured_on.provenance(command, machine), "", *table(runs)]
    report = {"command": command, "machine": machine, "runs": [{"processes": count, "way": way, "runs": measured} for (count, way), measured in runs.items()]}
    measured_on.write_report(options.out, report, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
