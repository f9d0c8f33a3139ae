#!/usr/bin/env python3
"""Shows the claim of "ImageNet in 1 Hour" (Goyal et al. 2017) at CIFAR's scale: accuracy against the global batch, with the
rate scaled linearly, with and without a gradual warm-up, and with LARS (You et al. 2017).

    bench/research/large_batches.py --data DIR [--batches 128 256 512 1024 2048 4096 8192] [--seeds 0 1 2] [--epochs 30]
        [--runs runs/large_batches] [--out bench/results/large_batches] [-- TRAIN OPTIONS]

Everything else is the recipe of --model, with batch norm over 32 samples whatever the batch is, as the paper's workers had, and without the
last, incomplete batch of an epoch. A batch comes in parts of at most 1024 samples, which changes no bit. A run that has finished is not trained again. Writes
NAME.json, NAME.md and NAME.svg; the rates of LARS are scaled from --lars-lr at a batch of 8192, and nobody has tuned them.
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

MICRO_BATCH, PART, REFERENCE = 32, 1024, 128
VARIANTS = {
    "plain": "linear scaling",
    "warmup": "linear scaling and warm-up",
    "lars": "LARS and warm-up",
}


def options_of(args, variant, batch):
    words = ["--batch", batch, "--micro-batch", MICRO_BATCH, "--accumulate", max(1, batch // PART), "--last-batch", "drop",
             "--epochs", args.epochs]
    if variant == "plain":
        return words + ["--warmup-epochs", 0]
    words += ["--warmup-epochs", min(5, args.epochs / 6), "--warmup-start", min(1, REFERENCE / batch)]
    if variant == "lars":
        words += ["--optimizer", "lars", "--lr", args.lars_lr, "--lr-ref-batch", 8192]
    return words


def one_run(args, variant, batch, seed):
    folder = os.path.join(args.runs, f"{variant}-{batch}-{seed}")
    record = os.path.join(folder, "large_batch.json")
    if os.path.exists(record):
        with open(record) as file:
            return json.load(file)
    command = [args.stoker, "train", "--data", args.data, "--model", args.model, "--seed", seed, "--out", folder,
               "--eval-every", 0, *options_of(args, variant, batch), *args.train_options]
    command = [str(word) for word in command]
    print("$", " ".join(command), file=sys.stderr, flush=True)
    ended = subprocess.run(command, stdout=sys.stderr, check=False)
    result = {"variant": variant, "batch": batch, "seed": seed,
              "machine": measured_on.describe(ROOT), "top1": None}
    if ended.returncode == 0:
        with open(os.path.join(folder, "metrics.jsonl")) as file:
            rows = [json.loads(line) for line in file]
        result["top1"] = [row["eval_top1"] for row in rows if "eval_top1" in row][-1]
    elif not diverged(folder):
        sys.exit(f"{folder}: stoker train ended with {ended.returncode}")
    with open(record, "w") as file:
        json.dump(result, file, indent=1)
    return result


def diverged(folder):
    """A loss that is not finite ends a run, which is a result here."""
    return os.path.exists(os.path.join(folder, "failed_step.txt"))


def error_of(results, variant, batch):
    """Returns the mean and the deviation of the top-1 error in %, or None if a run diverged."""
    found = [r for r in results if r["variant"] == variant and r["batch"] == batch]
    if not found or any(r["top1"] is None for r in found):
        return None
    errors = [100 * (1 - r["top1"]) for r in found]
    return statistics.mean(errors), statistics.stdev(errors) if len(errors) > 1 else 0.0


def table(args, results):
    lines = ["| global batch | " + " | ".join(VARIANTS.values()) + " |", "|---" * (1 + len(VARIANTS)) + "|"]
    for batch in args.batches:
        cells = [error_of(results, variant, batch) for variant in VARIANTS]
        lines.append(f"| {batch} | " + " | ".join(f"{c[0]:.2f} ± {c[1]:.2f}" if c else "diverged" for c in cells) + " |")
    return "\n".join(lines)


def draw(args, results, path):
    """Draws by build/bench/draw_plot, as the benches of stoker do."""
    series = []
    for variant, label in VARIANTS.items():
        points = []
        for x, batch in enumerate(args.batches):
            error = error_of(results, variant, batch)
            if error:
                points.append([x, error[0], error[0] - error[1], error[0] + error[1]])
        if points:
            series.append({"label": variant, "points": points})
    plot = {"title": f"{args.model}, {args.epochs:g} epochs, {len(args.seeds)} seeds", "x_label": "global batch",
            "y_label": "top-1 error in %, mean and deviation", "categories": [str(batch) for batch in args.batches], "series": series}
    with open(path, "w") as file:
        subprocess.run([args.draw_plot], input=json.dumps(plot), text=True, stdout=file, check=True)


def write(args, results):
    machine = results[-1]["machine"]
    command = " ".join(["bench/research/large_batches.py", *measured_on.public_arguments(sys.argv[1:])])
    name = os.path.basename(args.out)
    text = [f"# {args.model}: error against the global batch", f"`{command}`; top-1 error in %, one view",
            table(args, results), f"![error against the global batch]({name}.svg)",
            f"{machine['cpu']}, {machine['cores']} cores; {machine['date']}; commit {machine['commit']}."]
    with open(args.out + ".md", "w") as file:
        file.write("\n\n".join(text) + "\n")
    with open(args.out + ".json", "w") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    draw(args, results, args.out + ".svg")
    print(table(args, results))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of CIFAR-10 or of images of its size")
    parser.add_argument("--model", default="resnet20")
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 256, 512, 1024, 2048, 4096, 8192])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=float, default=30)
    parser.add_argument("--lars-lr", type=float, default=10, help="rate of LARS at a batch of 8192")
    parser.add_argument("--runs", default="runs/large_batches")
    parser.add_argument("--out", default="bench/results/large_batches", help="name of the results, without an ending")
    parser.add_argument("--draw-plot", default=os.path.join(ROOT, "build", "bench", "draw_plot"))
    parser.add_argument("--stoker", default=os.path.join(ROOT, "build", "stoker"))
    parser.add_argument("train_options", nargs="*", help="after --: options of every stoker train")
    args = parser.parse_args()
    results = [one_run(args, variant, batch, seed) for batch in args.batches for variant in VARIANTS for seed in args.seeds]
    write(args, results)


if __name__ == "__main__":
    main()
