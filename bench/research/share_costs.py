#!/usr/bin/env python3
"""Measures what several processes take that feed the same rows, each by itself and together (stoker.Loader(share=)).

    PYTHONPATH=build/python PYTHON bench/research/share_costs.py --data FOLDER [--processes 1,2,3] [--rounds 5] [--out bench/results/share_costs]

Each process takes --epochs epochs of the images of FOLDER, as random-resized crops of 224 px, with one worker. They begin together. In turn, each way
--rounds times. PYTHON has NumPy and the package.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402


def feed(options):
    """Takes the epochs when a line comes, and prints what that took: one of the processes."""
    import stoker

    share = {"share": options.share} if options.share else {}
    with stoker.Loader(stoker.folder(options.data, split="all"), batch_size=64, size=224, seed=1, workers=1, epochs=options.epochs, **share) as loader:
        print("ready", flush=True)
        sys.stdin.readline()
        images = sum(len(batch) for _ in range(options.epochs) for batch in loader)
        print(json.dumps({"images": images, "share": loader.stats().get("share")}), flush=True)


def run(options, count, share):
    """Returns CPU time per image that one process is given, and images/s of each."""
    words = [sys.executable, os.path.abspath(__file__), "--data", options.data, "--epochs", str(options.epochs), "--share", share, "--feed"]
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


def cpu_seconds(pid):
    return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3)


def spread(values, form=".0f"):
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def table(runs):
    yield "| processes | rows | CPU time per row that a process is given, us | images/s of each | rows from another process, % | CPU time beside each by itself |"
    yield "|---|---|---|---|---|---|"
    for (count, way), measured in runs.items():
        ratios = [run["cpu_us"] / own["cpu_us"] for run, own in zip(measured, runs[count, "by itself"])]

        def column(key, scale=1):
            return spread([scale * run[key] for run in measured])

        yield (f"| {count} | {way} | {column('cpu_us')} | {column('images_per_second')} | {column('taken', 100)} | {spread(ratios, '.2f')} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--processes", default="1,2,3")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out")
    parser.add_argument("--share", default="", help=argparse.SUPPRESS)  # of the processes that this one starts
    parser.add_argument("--feed", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.feed:
        feed(options)
        return
    machine, neighbours, runs = measured_on.describe(HERE), measured_on.Neighbours(), {}
    with neighbours:
        for number in range(options.rounds):
            for count in map(int, options.processes.split(",")):
                for way, share in (("by itself", ""), ("shared", f"share_costs-{os.getpid()}")):
                    runs.setdefault((count, way), []).append(run(options, count, share))
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    machine["neighbours"] = neighbours.summary()
    command = "bench/research/share_costs.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    lines = ["# Several processes that feed the same rows", "",
             f"Random-resized crops of 224 px, batches of 64, one worker in each process, {options.epochs} epochs; {options.rounds} rounds in turn; medians, with the",
             "smallest and the largest in brackets. What a row that is given costs: the CPU time of all processes over the rows of all.", "",
             *measured_on.provenance(command, machine), "", *table(runs)]
    report = {"command": command, "machine": machine, "runs": [{"processes": count, "way": way, "runs": measured} for (count, way), measured in runs.items()]}
    measured_on.write_report(options.out, report, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
