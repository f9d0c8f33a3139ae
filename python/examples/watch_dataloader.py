#!/usr/bin/env python3
"""Watches a PyTorch DataLoader over a folder of images: how many workers keep a device fed?

    python/examples/watch_dataloader.py --data DIR [--workers 0,1,2] [--rate N | --accel NAME]
        [--html DIR] [--report]

The accelerator is emulated (stoker.emulate): a step sleeps as long as one takes at --rate images/s.
Then the loader runs alone (Watch.measure_loader). Pictures are decoded, cropped and flipped by
Pillow, as torchvision does it. The settings take turns, --repeats times; the table has medians and,
in brackets, the smallest and the largest values.
Needs PyTorch, Pillow, NumPy and stoker (PYTHONPATH=build/python).
"""

import argparse
import pathlib
import statistics

import numpy as np
import torch
from PIL import Image

import stoker

SIZE = 224
HEADS = (
    "workers",
    "accelerator busy %",
    "images/s",
    "loader alone, images/s",
    "wait p50, ms",
    "wait, most, ms",
)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, root):
        self.files = sorted(
            p for p in pathlib.Path(root).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg")
        )

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index]) as image:
            side = int(min(image.size) * (0.5 + 0.5 * torch.rand(()).item()))
            left, top = (int(torch.rand(()).item() * (length - side + 1)) for length in image.size)
            pixels = image.convert("RGB").resize(
                (SIZE, SIZE), Image.BILINEAR, (left, top, left + side, top + side)
            )
        if torch.rand(()).item() < 0.5:
            pixels = pixels.transpose(Image.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.array(pixels))


def measure(pictures, workers, options):
    loader = torch.utils.data.DataLoader(
        pictures, options.batch, shuffle=True, drop_last=True, num_workers=workers
    )
    run = stoker.emulate(loader, rate=options.rate, accel=options.accel, steps=options.steps)
    return {"run": run, "alone": run.watch.measure_loader(options.steps)}


def text(values, scale=1.0):
    middle, low, high = (
        scale * value for value in (statistics.median(values), min(values), max(values))
    )
    return f"{middle:.3g} ({low:.3g}–{high:.3g})"


def row(workers, results):
    runs = [result["run"] for result in results]
    waits = [sorted(run.waits) for run in runs]
    return [
        str(workers),
        text([run.utilisation for run in runs], 100),
        text([run.images_per_second for run in runs]),
        text([result["alone"] for result in results]),
        text([ordered[len(ordered) // 2] for ordered in waits], 1000),
        text([ordered[-1] for ordered in waits], 1000),
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True)
    parser.add_argument("--workers", default="0,1,2")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rate", type=float, help="images/s")
    parser.add_argument("--accel", help="instead: a100, h100, h100-training, h200-training")
    parser.add_argument("--html", help="folder for a page per number of workers")
    parser.add_argument("--report", action="store_true", help="print the verdicts too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pictures = Pictures(options.data)
    counts = [int(word) for word in options.workers.split(",")]
    results = {workers: [] for workers in counts}
    for _ in range(options.repeats):
        for workers in counts:
            results[workers].append(measure(pictures, workers, options))
    print("| " + " | ".join(HEADS) + " |\n" + "|---" * len(HEADS) + "|")
    for workers in counts:
        print("| " + " | ".join(row(workers, results[workers])) + " |")
    for workers in counts:
        watch = results[workers][-1]["run"].watch
        if options.report:
            print(f"\n{workers} workers\n{watch.report()}")
        if options.html:
            pathlib.Path(options.html).mkdir(parents=True, exist_ok=True)
            watch.to_html(pathlib.Path(options.html) / f"workers_{workers}.html")


if __name__ == "__main__":
    main()
