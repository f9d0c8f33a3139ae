#!/usr/bin/env python3
"""Trains airbench94 (by Keller Jordan), from your own clone of cifar10-airbench, on a CPU with several seeds, and prints a table
of the accuracies beside which those of accuracy.py --model airnet stand.

    PYTHON bench/peers/train/airbench_accuracy.py --airbench CLONE --data DIR [--epochs 12] [--seeds 0 1 2] [--runs runs/airbench]
        [--out bench/results/NAME]

PYTHON has torch and torchvision; DIR is CIFAR-10 in its binary layout. The published code runs as it is, but for what only a GPU has: its
tensors stay on the CPU, and half precision becomes autocast to bf16 over weights in fp32, which is what stoker's bf16 is. A seed whose run
has finished is not trained again. CPU time is that of training alone.
"""
import argparse
import glob
import json
import os
import pathlib
import statistics
import sys
import time

import torch

ROOT = str(pathlib.Path(__file__).resolve().parents[3])
sys.path[:0] = [os.path.join(ROOT, "bench", "report"), os.path.join(ROOT, "bench", "gpu")]
import airbench  # noqa: E402
import layout  # noqa: E402
import measured_on  # noqa: E402

COLUMNS = ("top1", "top1_6_views")


class CpuEvent:
    """Stands for torch.cuda.Event, so that airbench94's own clock shows the process's CPU time."""

    def __init__(self, enable_timing=False):
        self.at = 0.0

    def record(self):
        self.at = time.process_time()

    def elapsed_time(self, end):
        return 1e3 * (end.at - self.at)


def leave_the_gpu_out():
    """Replaces what of torch the published code calls for a GPU's sake."""
    load = torch.load
    torch.load = lambda path, map_location: load(path, map_location="cpu")
    torch.Tensor.half = torch.Tensor.float
    torch.nn.Module.half = torch.nn.Module.float
    torch.nn.Module.cuda = lambda module: module
    torch.cuda.Event = CpuEvent
    torch.cuda.synchronize = lambda: None


def with_autocast(make_net):
    def make():
        net = make_net()
        forward = net.forward

        def in_bf16(inputs):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return forward(inputs).float()

        net.forward = in_bf16
        return net

    return make


def one_seed(module, capture, runs, seed):
    record = os.path.join(runs, f"seed_{seed}.json")
    if os.path.exists(record):
        with open(record) as file:
            return json.load(file)
    machine, neighbours = measured_on.describe(ROOT), measured_on.Neighbours()
    with neighbours:
        result = airbench.train(torch, module, capture, 0, seed)
    result = {"seed": seed, **{c: result[c] for c in COLUMNS}, "cpu_seconds": result["train_seconds"],
              "machine": {**machine, "neighbours": neighbours.summary()}}
    with open(record, "w") as file:
        json.dump(result, file, indent=1)
    return result


def table(results):
    lines = ["| airbench94 | 1 view | 6 views | CPU seconds |", "|---|---|---|---|"]
    for r in results:
        lines.append(f"| seed {r['seed']} | " + " | ".join(f"{100 * r[c]:.2f}" for c in COLUMNS) + f" | {r['cpu_seconds']:.0f} |")
    if len(results) > 1:
        cells = [f"{100 * statistics.mean(r[c] for r in results):.2f} ± {100 * statistics.stdev(r[c] for r in results):.2f}" for c in COLUMNS]
        lines.append("| **mean ± deviation** | " + " | ".join(cells) + f" | {statistics.mean(r['cpu_seconds'] for r in results):.0f} |")
    return "\n".join(lines)


def page(args, results):
    command = " ".join(["python bench/peers/train/airbench_accuracy.py", *measured_on.public_arguments(sys.argv[1:])])
    lines = [f"- seed {r['seed']}: {r['machine']['cpu']}, {r['machine']['cores']} cores; {r['machine']['date']}; commit {r['machine']['commit']}. "
             + measured_on.neighbours_text(r["machine"]["neighbours"]) for r in results]
    return "\n\n".join([f"# airbench94 on a CPU: accuracy over seeds, {args.epochs:g} epochs", f"`{command}`; top-1 in %; torch {torch.__version__}",
                        "\n".join(lines), table(results)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--airbench", required=True, help="your clone of cifar10-airbench")
    parser.add_argument("--data", required=True, help="folder of CIFAR-10's binary files")
    parser.add_argument("--epochs", type=float, default=12)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", default=os.path.join(ROOT, "runs", "airbench"))
    parser.add_argument("--out", help="write OUT.json and OUT.md")
    args = parser.parse_args()
    try:
        script = layout.find_airbench(args.airbench)
    except FileNotFoundError as error:
        parser.error(str(error))
    if not glob.glob(os.path.join(args.data, "data_batch_*.bin")):
        parser.error(f"--data {args.data}: it is not CIFAR-10 in its binary layout")
    runs, out = os.path.abspath(args.runs), args.out and os.path.abspath(args.out)
    if out:
        os.makedirs(os.path.dirname(out), exist_ok=True)
    airbench.write_tensors(torch, args.data, os.path.join(runs, "cifar10"))
    os.chdir(runs)
    leave_the_gpu_out()
    capture = []
    module = airbench.load_airbench(script, capture)
    module.hyp["opt"]["train_epochs"] = args.epochs
    module.make_net = with_autocast(module.make_net)
    results = [one_seed(module, capture, runs, seed) for seed in args.seeds]
    print(table(results))
    if out:
        with open(out + ".json", "w") as file:
            json.dump({"epochs": args.epochs, "torch": torch.__version__, "results": results}, file, indent=1)
            file.write("\n")
        with open(out + ".md", "w") as file:
            file.write(page(args, results))


if __name__ == "__main__":
    main()
