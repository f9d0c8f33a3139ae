#!/usr/bin/env python3
"""Training steps of stoker and PyTorch, in turn, in one run: a table and its JSON twin.

    bench/train_side_by_side.py --build build [--rounds 3] [--quick] [--out bench/results/train_side_by_side]

Each row is the median over rounds of each program's median step; programs alternate (A B A B ...), so a drift of the
machine's speed hits both. PyTorch needs a Python that has torch and torchvision (--python; Debian: python3-torch).
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# model, pixels, classes, batch, precision, timed steps, busy processes, aim (stoker / torch)
CASES = [
    ("airnet", 32, 10, 512, "fp32", 5, 0, 1.2),
    ("airnet", 32, 10, 512, "bf16", 5, 0, 1.2),
    ("airnet", 32, 10, 512, "bf16", 5, 2, None),
    ("resnet18", 224, 1000, 32, "fp32", 5, 0, 1.3),
    ("resnet18", 224, 1000, 32, "bf16", 5, 0, 1.3),
    ("resnet50", 224, 1000, 32, "fp32", 3, 0, 1.4),
    ("resnet50", 224, 1000, 32, "bf16", 3, 0, 1.4),
]


def run(command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed ({result.returncode}):\n{result.stderr}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def measure(case, args):
    model, size, classes, batch, precision, steps, busy, aim = case
    common = ["--model", model, "--size", str(size), "--classes", str(classes), "--batch", str(batch),
              "--precision", precision, "--steps", str(steps)]
    ours, theirs = [], []
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    for _ in range(args.rounds):
        ours.append(run([os.path.join(args.build, "bench", "train_step_bench"), *common]))
        theirs.append(run([args.python, os.path.join(HERE, "torch_step.py"), *common]))
    for burner in burners:
        burner.kill()
    row = {"model": model, "batch": batch, "size": size, "precision": precision, "busy_processes": busy, "aim": aim}
    for name, runs in (("stoker", ours), ("torch", theirs)):
        rates = [r["images_per_second_median"] for r in runs]
        row[name] = {"library": runs[0]["library"], "images_per_second": statistics.median(rates),
                     "spread": [min(rates), max(rates)],
                     "cpu_seconds_per_1000_images": runs[0]["cpu_seconds_per_1000_images"],
                     "peak_resident_mib": max(r["peak_resident_mib"] for r in runs)}
    row["ratios"] = sorted(a["images_per_second_median"] / b["images_per_second_median"]
                           for a, b in zip(ours, theirs))
    row["ratio"] = statistics.median(row["ratios"])
    return row


def table(rows):
    lines = ["| model | batch | precision | busy processes | stoker / torch (min–max) | aim | "
             "peak memory stoker / torch (MiB) |", "|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(f"| {r['model']} | {r['batch']} | {r['precision']} | {r['busy_processes']} | {r['ratio']:.2f} "
                     f"({r['ratios'][0]:.2f}–{r['ratios'][-1]:.2f}) | {r['aim'] or '–'} | "
                     f"{r['stoker']['peak_resident_mib']:.0f} / {r['torch']['peak_resident_mib']:.0f} |")
    return "\n".join(lines)


def slowdowns(rows):
    """How much of its idle speed each library keeps beside busy processes."""
    idle = {(r["model"], r["precision"]): r for r in rows if not r["busy_processes"]}
    lines = []
    for r in rows:
        base = idle.get((r["model"], r["precision"]))
        if r["busy_processes"] and base:
            kept = {n: r[n]["images_per_second"] / base[n]["images_per_second"] for n in ("stoker", "torch")}
            lines.append(f"{r['model']} {r['precision']} beside {r['busy_processes']} busy processes keeps "
                         f"{kept['stoker']:.0%} of its idle speed (PyTorch {kept['torch']:.0%}).")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="build folder that holds bench/train_step_bench")
    parser.add_argument("--python", default="/usr/bin/python3", help="a Python with torch and torchvision")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round, airnet fp32 only: a smoke run")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    cases = CASES[:1] if args.quick else CASES
    if args.quick:
        args.rounds = 1
    rows = []
    for case in cases:
        rows.append(measure(case, args))
        print(json.dumps(rows[-1]), file=sys.stderr)
    commit = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    text = table(rows) + "\n\n" + slowdowns(rows)
    print(text)
    if args.out:
        os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
        with open(args.out + ".json", "w") as file:
            json.dump({"commit": commit, "cores": os.cpu_count(), "machine": platform.processor() or platform.machine(),
                       "rows": rows}, file, indent=1)
        with open(args.out + ".md", "w") as file:
            file.write(text + f"\n\n{os.cpu_count()} cores, commit {commit}; "
                       f"`bench/train_side_by_side.py --rounds {args.rounds} --out {args.out}`\n")


if __name__ == "__main__":
    main()
