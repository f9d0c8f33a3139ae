#!/usr/bin/env python3
"""Trains a model's recipe with several seeds and prints a table of the accuracies: mean, deviation, each seed.

    bench/peers/train/accuracy.py --data DIR --model airnet [--seeds 0 1 2] [--runs runs/accuracy] [--out bench/results/NAME] [-- TRAIN OPTIONS]

A seed whose run has finished is not trained again. CPU time is that of training and its last
evaluation. On a shared machine it says more than wall time: divided by the cores it is about what a
quiet machine takes. The page names the command, and for each seed the machine, its load
(bench/report/measured_on.py) and the commit.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys


ROOT = str(pathlib.Path(__file__).resolve().parents[3])
sys.path.insert(0, os.path.join(ROOT, "bench", "report"))
import measured_on  # noqa: E402


def run(command, **options):
    print("$", " ".join(command), file=sys.stderr, flush=True)
    return subprocess.run(command, check=True, **options)


def child_cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def one_seed(args, seed):
    folder = os.path.join(args.runs, f"{args.model}-{seed}")
    record = os.path.join(folder, "accuracy.json")
    if os.path.exists(record):
        with open(record) as file:
            return json.load(file)
    before, machine, neighbours = child_cpu_seconds(), measured_on.describe(ROOT), measured_on.Neighbours()
    with neighbours:
        run([args.stoker, "train", "--data", args.data, "--model", args.model, "--seed", str(seed), "--out", folder,
             "--eval-every", "0", *args.train_options], stdout=sys.stderr)
    result = {"seed": seed, "cpu_seconds": child_cpu_seconds() - before, "machine": {**machine, "neighbours": neighbours.summary()}}
    for views in (1, 2, 6):
        output = run([args.stoker, "eval", "--checkpoint", folder, "--data", args.data, "--views", str(views), "--json"],
                     stdout=subprocess.PIPE, text=True).stdout
        result[f"top1_{views}_views"] = json.loads(output)["top1"]
    with open(record, "w") as file:
        json.dump(result, file, indent=1)
    return result


def table(args, results):
    columns = [f"top1_{views}_views" for views in (1, 2, 6)]
    lines = ["| " + args.model + " | 1 view | 2 views (mirrored) | 6 views | CPU seconds |", "|---|---|---|---|---|"]
    for r in results:
        lines.append(f"| seed {r['seed']} | " + " | ".join(f"{100 * r[c]:.2f}" for c in columns)
                     + f" | {r['cpu_seconds']:.0f} |")
    if len(results) > 1:
        cells = [f"{100 * statistics.mean(r[c] for r in results):.2f} ± {100 * statistics.stdev(r[c] for r in results):.2f}"
                 for c in columns]
        cpu = statistics.mean(r["cpu_seconds"] for r in results)
        lines.append("| **mean ± deviation** | " + " | ".join(cells) + f" | {cpu:.0f} |")
    return "\n".join(lines)


def head(args, results):
    command = " ".join(["bench/peers/train/accuracy.py", *measured_on.public_arguments(sys.argv[1:])])
    lines = [f"# {args.model}: accuracy over seeds", f"`{command}`; top-1 in %"]
    lines += [f"- seed {r['seed']}: {measured_on.machine_line(r['machine'])}" for r in results]
    return "\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="airnet")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", default=os.path.join(ROOT, "runs", "accuracy"))
    parser.add_argument("--stoker", default=os.path.join(ROOT, "build", "stoker"))
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    parser.add_argument("train_options", nargs="*", help="further options of stoker train, after --")
    args = parser.parse_args()
    os.makedirs(args.runs, exist_ok=True)
    results = [one_seed(args, seed) for seed in args.seeds]
    report = {"model": args.model, "data": os.path.basename(os.path.normpath(args.data)), "results": results}
    measured_on.write_report(args.out, report, f"{head(args, results)}\n\n{table(args, results)}\n")


if __name__ == "__main__":
    main()
