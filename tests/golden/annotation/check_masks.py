#!/usr/bin/python3
"""Compares stoker's masks with those of pycocotools and torchvision, bit for bit.

Draws random polygons, and random lists of motions of an object's mask and of a label image; gets ours from `mask_rows`
(tests/pipeline) and theirs from the pycocotools and the torchvision that run this; reports how many draws and pixels differ.

  check_masks.py --maker build/tests/pipeline/mask_rows [--draws N] [--seed N]
"""
import argparse
import random
import subprocess
import sys

import numpy
import torch
import torchvision
from importlib.metadata import version

from mask_draws import SEPARABLE, WARPS, coco_mask, counts_of, draw_moved, draw_polygon, draw_size, polygon_lines


class Maker:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, lines):
        self.process.stdin.write(("\n".join(lines) + "\n").encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        return self.process.stdout.read(int(answer[2]))


def differing(ours, theirs):
    """Returns how many bytes differ; all, if their number does."""
    if len(ours) != len(theirs):
        return max(len(ours), len(theirs))
    return int((numpy.frombuffer(ours, numpy.uint8) != numpy.frombuffer(theirs, numpy.uint8)).sum())


def check_polygons(maker, draws, rng):
    bad = 0
    for _ in range(draws):
        width, height = draw_size(rng)
        polygons = [draw_polygon(rng, width, height) for _ in range(rng.choice([1, 1, 1, 2, 5]))]
        lines = [f"picture {width} {height}", *polygon_lines(polygons)]
        theirs = coco_mask(polygons, width, height)
        runs = numpy.array(counts_of(theirs["counts"]), numpy.uint32)
        if maker.ask([*lines, "union"]) != runs.tobytes():
            bad += 1
            print("differs:", lines, file=sys.stderr)
    print(f"run lengths of polygons, and their union: {bad} of {draws} draws differ from pycocotools's")
    return bad


def check_motions(maker, draws, rng, name, motions):
    bad, pixels, total = 0, 0, 0
    for _ in range(draws):
        lines, answers = draw_moved(rng, motions)
        wrong = 0
        for request, theirs in answers.items():
            wrong += differing(maker.ask([*lines, request]), theirs)
            total += len(theirs)
        bad, pixels = bad + (wrong > 0), pixels + wrong
        if wrong:
            print(f"differs in {wrong} bytes:", lines, file=sys.stderr)
    print(f"masks and label images, {name}: {bad} of {draws} draws, {pixels} of {total} bytes differ from torchvision's")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--maker", required=True, help="the program mask_rows")
    parser.add_argument("--draws", type=int, default=10000, help="of each kind (default: 10000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"pycocotools {version('pycocotools')}, torchvision {torchvision.__version__}, torch {torch.__version__}")
    maker, rng = Maker(arguments.maker), random.Random(arguments.seed)
    bad = check_polygons(maker, arguments.draws, rng)
    bad += check_motions(maker, arguments.draws, rng, "moved by columns and rows", SEPARABLE)
    bad += check_motions(maker, arguments.draws, rng, "with warps among them", SEPARABLE + WARPS)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
