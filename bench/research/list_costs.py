#!/usr/bin/env python3
"""Measures what stages add to a feed's CPU time per sample: lists of stages, one beside the other.

    bench/research/list_costs.py --data DIR [--data DIR] [--rounds 7] [--stoker build/stoker] [--out PATH] LIST LIST [LIST ...]

Each round runs `stoker bench feed` once for every list and data set, in turn, on one core, with all files in memory. The other lists are
compared with the first one of the same round. By default: mixing and erasing, which a GPU takes over from the workers.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "report"))
import measured_on  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
CROP = "random_resized_crop(224) | flip"
LISTS = [CROP, f"{CROP} | mix(mixup=0.2)", f"{CROP} | mix(cutmix=1)", f"{CROP} | random_erasing(p=0.25)",
         f"{CROP} | random_erasing(p=0.25, noise=True)"]
OPTIONS = ["--in-memory", "--workers", "0", "--batch", "64", "--ring-depth", "4", "--cpu-ms", "300", "--repeats", "5"]


def microseconds(stoker, data, stages):
    with tempfile.TemporaryDirectory() as folder:
        command = [stoker, "bench", "feed", "--data", data, *OPTIONS, "--augment", stages, "--out", folder]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{result.stderr}")
        report = json.loads(pathlib.Path(folder, "feed.json").read_text(encoding="utf-8"))
    return 1000 * report["results"]["cpu_ms_per_image"]


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def table(times, lists):
    yield "| list | CPU us per row | more than the first, us | % |"
    yield "|---|---|---|---|"
    for stages in lists:
        more = [own - first for own, first in zip(times[stages], times[lists[0]])]
        share = [100 * difference / first for difference, first in zip(more, times[lists[0]])]
        change = f"{spread(more, '.1f')} | {spread(share, '.1f')}" if stages != lists[0] else "|"
        # A bar would end the cell.
        cell = stages.replace("|", "\\|")
        yield f"| `{cell}` | {spread(times[stages], '.1f')} | {change} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--stoker", default=os.path.join(ROOT, "build", "stoker"))
    parser.add_argument("--out")
    parser.add_argument("lists", nargs="*", default=LISTS)
    args = parser.parse_args()
    # The processes that are started stay there, too.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    neighbours = measured_on.Neighbours()
    times = {data: {stages: [] for stages in args.lists} for data in args.data}
    with neighbours:
        for _ in range(args.rounds):
            for data, of_data in times.items():
                for stages in args.lists:
                    of_data[stages].append(microseconds(args.stoker, data, stages))
    names = {os.path.basename(os.path.normpath(data)): of_data for data, of_data in times.items()}
    machine = {**measured_on.describe(HERE), "neighbours": neighbours.summary()}
    command = "bench/research/list_costs.py " + " ".join(measured_on.public_arguments(sys.argv[1:]))
    lines = ["# What stages cost a worker", "", f"{args.rounds} rounds in turn of `stoker bench feed {' '.join(OPTIONS)}`, one core;",
             "medians, with the smallest and the largest in brackets. Pixels of the policy fast.", "",
             *measured_on.provenance(command, machine)]
    for name, of_data in names.items():
        lines += ["", f"## {name}", "", *table(of_data, args.lists)]
    report = {"command": command, "machine": machine, "us_per_row": names}
    measured_on.write_report(args.out, report, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
