#!/usr/bin/env python3
"""Trains with each format of gradients on the wire, over seeds, and prints a table of accuracies and bytes.

    bench/research/grad_wire.py --data DIR [--model airnet-narrow] [--seeds 0 1 2 3 4] [--wires fp32 bf16 int8 1bit]
                                [--devices cpu:2] [--runs runs/grad_wire] [--out bench/results/NAME] [-- TRAIN OPTIONS]

A run that has finished is not trained again. The accuracy is that of the recipe's last evaluation in one
view; the bytes are those that a replica sends in a step, from metrics.jsonl.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench", "report"))
import measured_on  # noqa: E402


def rows_of(folder):
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        return [json.loads(line) for line in file]


def one_run(args, wire, seed):
    folder = os.path.join(args.runs, f"{args.model}-{wire}-{seed}")
    record = os.path.join(folder, "grad_wire.json")
    if os.path.exists(record):
        with open(record) as file:
            return json.load(file)
    command = [args.stoker, "train", "--data", args.data, "--model", args.model, "--seed", str(seed), "--out", folder,
               "--devices", args.devices, "--grad-wire", wire, "--eval-every", "0", *args.train_options]
    print("$", " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, check=True, stdout=sys.stderr)
    rows = rows_of(folder)
    result = {"wire": wire, "seed": seed, "machine": measured_on.describe(ROOT),
              "top1": [r["eval_top1"] for r in rows if "eval_top1" in r][-1],
              "bytes_sent": [r["gradient_bytes_sent"] for r in rows if r["kind"] == "step"][-1]}
    with open(record, "w") as file:
        json.dump(result, file, indent=1)
    return result


def table(args, results):
    lines = ["| gradients as | " + " | ".join(f"seed {seed}" for seed in args.seeds) + " | mean ± deviation | KiB sent per step and replica |",
             "|---" * (len(args.seeds) + 3) + "|"]
    for wire in args.wires:
        own = [r for r in results if r["wire"] == wire]
        top1 = [100 * r["top1"] for r in own]
        spread = f" ± {statistics.stdev(top1):.2f}" if len(top1) > 1 else ""
        lines.append(f"| {wire} | " + " | ".join(f"{value:.2f}" for value in top1)
                     + f" | {statistics.mean(top1):.2f}{spread} | {own[0]['bytes_sent'] / 1024:.1f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="airnet-narrow")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--wires", nargs="+", default=["fp32", "bf16", "int8", "1bit"])
    parser.add_argument("--devices", default="cpu:2")
    parser.add_argument("--runs", default=os.path.join(ROOT, "runs", "grad_wire"))
    parser.add_argument("--stoker", default=os.path.join(ROOT, "build", "stoker"))
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    parser.add_argument("train_options", nargs="*", help="further options of stoker train, after --")
    args = parser.parse_args()
    os.makedirs(args.runs, exist_ok=True)
    results = [one_run(args, wire, seed) for seed in args.seeds for wire in args.wires]
    text = table(args, results)
    print(text)
    if args.out:
        os.makedirs(os.path.dirname(os.path.abspath(args.out)), exist_ok=True)
        with open(args.out + ".json", "w") as file:
            json.dump({"model": args.model, "results": results}, file, indent=1)
        command = " ".join(["bench/research/grad_wire.py", *measured_on.public_arguments(sys.argv[1:])])
        machine = results[-1]["machine"]
        with open(args.out + ".md", "w") as file:
            file.write(f"# {args.model}: accuracy by format of gradients on the wire\n\n`{command}`; top-1 in %\n\n{text}\n\n"
                       f"{machine['cpu']}, {machine['cores']} cores; {machine['date']}; commit {machine['commit']}.\n")


if __name__ == "__main__":
    main()
