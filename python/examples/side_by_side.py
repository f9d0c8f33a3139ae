#!/usr/bin/env python3
"""Compares torchvision's reference training script as published and with stoker's loader (adapt):
losses, accuracy, speed, CPU.

    python/examples/side_by_side.py --checkout DIR --data DIR [--repeats N] [--out FILE.md]
        [-- options of train.py]

--checkout is a clone of pytorch/vision that fits the installed torchvision; it is not changed.
--data has train/ and val/. The two programs run in turn, each in its own processes; the CPU time
includes that of all their workers. Needs PyTorch, torchvision and stoker (PYTHONPATH=build/python).
Exit code: that of a run that failed.
"""

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# A small net on small pictures: with a large one the loader's share would be too small to see.
DEFAULTS = (
    "--device cpu --model shufflenet_v2_x0_5 --epochs 3 --batch-size 32 --workers 2 --lr 0.01 "
    "--train-crop-size 64 --val-crop-size 64 --val-resize-size 72 --print-freq 1"
).split()
EPOCH = re.compile(r"^Epoch: \[(\d+)\].* loss: [\d.naninf]+ \(([\d.naninf]+)\)", re.MULTILINE)
TEST = re.compile(r"^Test: +Acc@1 ([\d.]+)", re.MULTILINE)


def run(folder, words):
    paths = [os.path.abspath(path) for path in sys.path[1:] if path]  # train.py runs elsewhere
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "train.py", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-4000:], file=sys.stderr)
        sys.exit(done.returncode)
    losses = dict(EPOCH.findall(done.stdout))  # the last line of an epoch has the mean over it
    return {
        "losses": [
            float(loss) for _, loss in sorted(losses.items(), key=lambda item: int(item[0]))
        ],
        "top1": float(TEST.findall(done.stdout)[-1]),
        "seconds": seconds,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def count(folder):
    return sum(len(files) for _, _, files in os.walk(folder, followlinks=True))


def text(values, digits):
    spread = f" ± {(max(values) - min(values)) / 2:.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.median(values):.{digits}f}{spread}"


def table(results, images):
    epochs = len(next(iter(results.values()))[0]["losses"])
    lines = [
        "| loader | "
        + " | ".join(f"loss, epoch {e + 1}" for e in range(epochs))
        + " | top-1 % | images/s, start to end | CPU ms per image, all processes |",
        "|---" * (epochs + 4) + "|",
    ]
    for name, runs in results.items():
        cells = [text([r["losses"][e] for r in runs], 3) for e in range(epochs)]
        cells += [
            text([r["top1"] for r in runs], 1),
            text([images / r["seconds"] for r in runs], 1),
            text([1000 * r["cpu"] / images for r in runs], 1),
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkout", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out")
    parser.add_argument("train", nargs="*", help="options of train.py, after --")
    options = parser.parse_args()
    words = [*DEFAULTS, *options.train, "--data-path", os.path.abspath(options.data)]
    epochs = int(words[len(words) - 1 - words[::-1].index("--epochs") + 1])
    images = epochs * (
        count(os.path.join(options.data, "train")) + count(os.path.join(options.data, "val"))
    )
    published = os.path.join(options.checkout, "references", "classification")
    with tempfile.TemporaryDirectory() as temp:
        adapted = os.path.join(temp, "references", "classification")
        shutil.copytree(published, adapted)
        subprocess.run([sys.executable, os.path.join(HERE, "adapt"), temp], check=True)
        folders = {"DataLoader": published, "stoker": adapted}
        results = {name: [] for name in folders}
        for _ in range(options.repeats):
            for name, folder in folders.items():
                results[name].append(run(folder, words))
                print(name, results[name][-1], flush=True)
    made = table(results, images)
    print(made)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(made + "\n")


if __name__ == "__main__":
    main()
