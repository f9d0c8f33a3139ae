#!/usr/bin/env python3
"""Measures training steps of stoker and of PyTorch versions in turn; prints two tables.

    bench/peers/train/train_side_by_side.py --torch /usr/bin/python3 --torch venv/bin/python [--build build] [--rounds 5]
        [--out bench/results/train_side_by_side]

Table 1 is CPU time on one core: one thread, pinned, seconds per 1000 images; it hardly changes when
others use the machine. Table 2 is images per second on all cores, by wall time, which is meaningful
on a quiet machine only; the report says whether the machine was quiet. Builds of stoker with several
versions of oneDNN are several programs. All programs do the same step on the same shapes, one after
the other in every round (A B C A B C ...). A ratio is the median over rounds of (PyTorch's cost /
stoker's cost) of that round, with the lowest and the highest beside it.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys


HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "report"))
import measured_on  # noqa: E402
# model, pixels, classes, precision, batch on one core and on all, timed steps
CASES = [
    ("airnet", 32, 10, "fp32", (256, 512), 5),
    ("resnet18", 224, 1000, "fp32", (16, 32), 3),
    ("resnet50", 224, 1000, "fp32", (16, 32), 2),
    ("vgg16", 224, 1000, "fp32", (8, 16), 2),
    ("densenet40", 32, 10, "fp32", (128, 256), 3),
    ("airnet", 32, 10, "bf16", (256, 512), 5),
    ("resnet18", 224, 1000, "bf16", (16, 32), 3),
    ("resnet50", 224, 1000, "bf16", (16, 32), 2),
    ("vgg16", 224, 1000, "bf16", (8, 16), 2),
    ("densenet40", 32, 10, "bf16", (128, 256), 3),
]
# For the ratio on AVX-512.
AIMS = {"fp32": "1.6, or 1.2 with oneDNN 3", "bf16": "1.25"}
METHODS = {"one core": "CPU seconds per 1000 images, one thread pinned to one core",
           "all cores": "images per second of wall time, as many threads as cores"}


def run(command, cores):
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if result.returncode != 0:
        sys.exit(f"{shlex.join(command)} failed ({result.returncode}):\n{result.stderr}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def programs(args, threads):
    """Returns the commands of each build of stoker, and then of each PyTorch."""
    words = ["--micro-batches", str(threads), "--workers", str(threads)]
    return [*([os.path.join(build, "bench", "train_step_bench"), *words] for build in args.build),
            *([python, os.path.join(HERE, "torch_step.py"), "--threads", str(threads)] for python in args.torch)]


def measure(case, method, args, neighbours):
    """Returns a row for each build of stoker."""
    model, size, classes, precision, rows, steps = case
    cores = os.sched_getaffinity(0)
    single = method == "one core"
    words = ["--model", model, "--size", str(size), "--classes", str(classes), "--batch", str(rows[0 if single else 1]),
             "--precision", precision, "--steps", str(steps)]
    commands = programs(args, 1 if single else len(cores))
    rounds = []
    for _ in range(args.rounds):
        with neighbours:
            rounds.append([run([*command, *words], {max(cores)} if single else cores) for command in commands])
    by_program = [*zip(*rounds)]
    peers = by_program[len(args.build):]

    def costs(runs):
        return [r["cpu_seconds_per_1000_images"] if single else 1 / r["images_per_second_median"] for r in runs]

    def figures(runs):
        values = costs(runs) if single else [r["images_per_second_median"] for r in runs]
        return {"library": runs[0]["library"], "median": statistics.median(values), "lowest": min(values), "highest": max(values),
                "peak_resident_mib": max(r["peak_resident_mib"] for r in runs)}

    found = []
    for ours in by_program[:len(args.build)]:
        found.append({"model": model, "size": size, "precision": precision, "batch": rows[0 if single else 1], "aim": AIMS[precision],
                      "method": method, "stoker": figures(ours), "peers": []})
        for runs in peers:
            ratios = sorted(theirs / mine for theirs, mine in zip(costs(runs), costs(ours)))
            found[-1]["peers"].append({**figures(runs), "ratio": statistics.median(ratios), "ratios": [ratios[0], ratios[-1]]})
    return found


def table(rows, method):
    """Returns one method's rows as Markdown."""
    rows = [r for r in rows if r["method"] == method]
    names = [p["library"] for p in rows[0]["peers"]]
    head = ["model", "precision", "batch", "with", "stoker", *(f"{n}: x stoker" for n in names), "aim",
            "peak memory, MiB: " + " / ".join(["stoker", *names])]
    lines = [f"{method}: {METHODS[method]}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in rows:
        ratios = [f"{p['ratio']:.2f} ({p['ratios'][0]:.2f}–{p['ratios'][1]:.2f})" for p in r["peers"]]
        memory = " / ".join(f"{p['peak_resident_mib']:.0f}" for p in (r["stoker"], *r["peers"]))
        cells = [f"{r['model']}, {r['size']} px", r["precision"], str(r["batch"]), r["stoker"]["library"].removeprefix("stoker, "),
                 f"{r['stoker']['median']:.3g}", *ratios,
                 str(r["aim"]), memory]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def text_of(result):
    machine = result["machine"]
    parts = ["# Training steps of stoker and PyTorch", f"`{result['command']}`",
             f"{machine['cpu']}, {machine['cores']} cores; {machine['date']}; commit {machine['commit']}. Medians of "
             f"{result['rounds']} rounds; a ratio is the median of the rounds' ratios (lowest–highest). "
             + measured_on.neighbours_text(machine["neighbours"])]
    return "\n\n".join(parts + [table(result["rows"], m) for m in METHODS if any(r["method"] == m for r in result["rows"])]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="append", metavar="FOLDER",
                        help="build folder that holds bench/train_step_bench; may be given several times (default: build)")
    parser.add_argument("--torch", action="append", metavar="PYTHON",
                        help="a Python with torch and torchvision; may be given several times (default: /usr/bin/python3)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--methods", default=",".join(METHODS), help="names of the tables, with commas between them (default: %(default)s)")
    parser.add_argument("--precisions", default="fp32,bf16", help="with commas between them; bf16 needs a CPU that has it (default: %(default)s)")
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    args.torch = args.torch or ["/usr/bin/python3"]
    args.build = args.build or ["build"]
    methods = args.methods.split(",")
    if unknown := [m for m in methods if m not in METHODS]:
        parser.error(f"--methods {','.join(unknown)}: there are {', '.join(METHODS)}")
    precisions = args.precisions.split(",")
    if unknown := [p for p in precisions if p not in AIMS]:
        parser.error(f"--precisions {','.join(unknown)}: there are {', '.join(AIMS)}")
    if args.rounds < 1:
        parser.error("--rounds is at least 1")
    neighbours = measured_on.Neighbours()
    result = {"command": "bench/peers/train/train_side_by_side.py " + " ".join(measured_on.public_arguments(sys.argv[1:])),
              "machine": measured_on.describe(HERE), "rounds": args.rounds, "rows": []}
    for method in methods:
        for case in [c for c in CASES if c[3] in precisions]:
            for row in measure(case, method, args, neighbours):
                result["rows"].append(row)
                print(json.dumps(row), file=sys.stderr)
    result["machine"]["neighbours"] = neighbours.summary()
    measured_on.write_report(args.out, result, text_of(result))


if __name__ == "__main__":
    main()
