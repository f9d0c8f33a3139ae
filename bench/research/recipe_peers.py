#!/usr/bin/env python3
"""Measures whole recipes of augmentation: stoker beside torchvision v2, albumentations, kornia and DALI's CPU operators.

Prints tables of the CPU time that an image takes on one thread, from JPEG files in memory to rows, in microseconds: medians of rounds in
which all take turns, after a warm-up. Each library draws for itself, by the same distributions, so the pixels differ; the settings of
each, and where one does less work, are in recipe_participants.py and recipe_dali.py.

  pip install torch torchvision albumentations kornia nvidia-dali-cuda120
  taskset -c 1 bench/research/recipe_peers.py --rows build/bench/recipe_rows_bench --data DIR [--files 75] [--rounds 7]
"""
import argparse
import gc
import itertools
import statistics
import subprocess
import time
import warnings
from pathlib import Path

import recipe_participants

CROP = "random_resized_crop(224) | flip"
JITTER, GRAY, BLUR, SOLARIZE = ("color_jitter(0.8, 0.8, 0.8, 0.2, p=0.8)", "grayscale(p=0.2)", "gaussian_blur(23, p=0.5)",
                                "solarize(128, p=0.2)")
SIMCLR = " | ".join((CROP, JITTER, GRAY, BLUR, SOLARIZE))
WIDE = "random_resized_crop(224, scale=(0.4, 1), filter='bicubic') | flip"
NARROW = "random_resized_crop(96, scale=(0.05, 0.4), filter='bicubic') | flip"
COLOURS = "color_jitter(0.4, 0.4, 0.2, 0.1, p=0.8) | grayscale(p=0.2)"
DINO_WIDE = f"{WIDE} | {COLOURS} | gaussian_blur(9)"
DINO_WIDE_2 = f"{WIDE} | {COLOURS} | gaussian_blur(9, p=0.1) | solarize(128, p=0.2)"
DINO_NARROW = f"{NARROW} | {COLOURS} | gaussian_blur(9, p=0.5)"

# The name of a recipe: its title, and the lists of its views.
RECIPES = {
    "crop": ("RandomResizedCrop 224, flip", [CROP]),
    "randaugment": ("the same, RandAugment(2, 9)", [f"{CROP} | random_augment(2, 9)"]),
    "simclr": ("SimCLR, 2 views of 224", 2 * [SIMCLR]),
    "dino_crops": ("the crops of DINO, 2 x 224 + 8 x 96", 2 * [WIDE] + 8 * [NARROW]),
    "dino": ("DINO, 2 x 224 + 8 x 96", [DINO_WIDE, DINO_WIDE_2] + 8 * [DINO_NARROW]),
    "evaluation": ("Resize 256, CenterCrop 224", ["resize_center_crop(256, 224)"]),
}
EXACT, FAST, APART = "stoker, exact", "stoker, fast", "stoker, exact, a decoding for each view"

# What stoker's time goes to: each line beside the line before it.
PARTS = {
    "one view: RandomResizedCrop 224, flip": [CROP],
    "+ RandAugment(2, 9)": [f"{CROP} | random_augment(2, 9)"],
    "SimCLR's two crops, of one decoding": 2 * [CROP],
    "+ color_jitter": 2 * [f"{CROP} | {JITTER}"],
    "+ grayscale": 2 * [f"{CROP} | {JITTER} | {GRAY}"],
    "+ gaussian_blur": 2 * [f"{CROP} | {JITTER} | {GRAY} | {BLUR}"],
    "+ solarize": 2 * [SIMCLR],
    "DINO's two crops to 224, of one decoding": 2 * [WIDE],
    "+ eight crops to 96": 2 * [WIDE] + 8 * [NARROW],
    "+ colours": 2 * [f"{WIDE} | {COLOURS}"] + 8 * [f"{NARROW} | {COLOURS}"],
    "+ blur and solarize": [DINO_WIDE, DINO_WIDE_2] + 8 * [DINO_NARROW],
}


def shared(lists):
    """Returns the text of a list, or of several as views of one decoding."""
    if len(lists) == 1:
        return lists
    groups = [(text, len(list(equal))) for text, equal in itertools.groupby(lists)]
    texts, counts = (", ".join(map(str, column)) for column in zip(*groups))
    return [f"views({texts}, counts={f'({counts})' if len(groups) > 1 else counts})"]


class Stoker:
    """The program recipe_rows_bench, which answers each request with its own CPU time."""

    def __init__(self, program, files):
        self.process = subprocess.Popen([program, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def microseconds(self, policy, epoch, texts):
        print(policy, epoch, *texts, sep="\t", file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("recipe_rows_bench has ended")
        return float(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def timed(run, files):
    gc.collect()
    begin = time.process_time()
    run(files)
    return (time.process_time() - begin) / len(files) * 1e6


def in_turn(measures, rounds):
    """Returns each one's times of all rounds. The order rotates, and round 0 is the warm-up."""
    names = list(measures)
    times = {name: [] for name in names}
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken = measures[name](number)
            if number > 0:
                times[name].append(taken)
    return times


def measures_of(recipe, stoker, peers, files):
    lists = RECIPES[recipe][1]
    measures = {EXACT: lambda number: stoker.microseconds("exact", number, shared(lists)),
                FAST: lambda number: stoker.microseconds("fast", number, shared(lists))}
    if len(lists) > 1:
        measures[APART] = lambda number: stoker.microseconds("exact", number, lists)
    for peer in peers:
        measures[peer.title] = lambda number, run=peer.rows(recipe): timed(run, files)
    return measures


def ratio(times, other):
    """Returns how many times as long the other takes as stoker: the median over rounds, lowest and highest."""
    ratios = sorted(theirs / ours for theirs, ours in zip(times[other], times[EXACT]))
    return f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"


def print_recipe(recipe, times, peers):
    median = {name: statistics.median(values) for name, values in times.items()}
    best = min((peer.title for peer in peers), key=median.get)
    print(f"\n## {RECIPES[recipe][0]}\n")
    print(*(f"    {text}" for text in shared(RECIPES[recipe][1])), sep="\n")
    print("\n| | µs per image | x stoker, exact |\n|---|---|---|")
    for name in times:
        mark = ", the best peer" if name == best else ""
        print(f"| {name}{mark} | {median[name]:.0f} | {'' if name == EXACT else ratio(times, name)} |", flush=True)


def print_parts(stoker, rounds):
    parts = {name: lambda number, texts=shared(lists): stoker.microseconds("exact", number, texts) for name, lists in PARTS.items()}
    times = in_turn(parts, rounds)
    print("\n## Where stoker's time goes\n\n| exact pixels | µs per image |\n|---|---|")
    for name, values in times.items():
        print(f"| {name} | {statistics.median(values):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", required=True, help="the program recipe_rows_bench")
    parser.add_argument("--data", type=Path, required=True, help="a folder with JPEG files")
    parser.add_argument("--files", type=int, default=75, help="evenly spaced in the order of their paths")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    paths = sorted(path for path in options.data.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    paths = paths[:: max(1, len(paths) // options.files)][: options.files]
    files = [path.read_bytes() for path in paths]
    peers = list(recipe_participants.all_participants())
    stoker = Stoker(options.rows, paths)
    print(f"{len(files)} files, {options.rounds} rounds; {'; '.join(dict.fromkeys(peer.version for peer in peers))}")
    for recipe in RECIPES:
        times = in_turn(measures_of(recipe, stoker, peers, files), options.rounds)
        print_recipe(recipe, times, peers)
    print_parts(stoker, options.rounds)
    stoker.close()


if __name__ == "__main__":
    main()
