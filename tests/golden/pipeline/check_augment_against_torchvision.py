#!/usr/bin/env python3
"""Compares rows of random lists of stages with what torchvision and Pillow make of the same draws.

  PYTHONPATH=build/python python tests/golden/pipeline/check_augment_against_torchvision.py \
      --data FOLDER [--rows 10000] [--lists 400] [--seed 5]

Every list has one to five stages, policies and choices included, in any order, and ends with rows of
one size. A Loader makes rows of JPEG files of FOLDER (an image folder); Batch.draws says what it
drew; stoker.torch.to_torchvision() does that to Pillow's decoded picture. Needs torchvision and
Pillow 13. Prints each row that differs, by how much, and its draws. Exit codes: 0 all rows are
equal, or their draws have a gaussian_blur that differs by 1 in few bytes (torchvision's depends on
the CPU: decode/pixel/README.md); 1 others differ.
"""
import argparse
import pathlib
import random

import numpy as np
import PIL
import stoker
import torchvision
from PIL import Image
from stoker.torch import to_torchvision

FILTERS = ("bilinear", "bicubic", "nearest", "box", "hamming", "lanczos")
MODES = ("constant", "edge", "reflect", "symmetric")


class Lists:
    """Makes the text of random lists."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, low, high):
        return round(self.random.uniform(low, high), 3)

    def two(self, low, high):
        return f"({', '.join(map(str, sorted((self.number(low, high), self.number(low, high)))))})"

    def colour(self):
        return f"({', '.join(str(self.random.randrange(256)) for _ in range(3))})"

    def warp(self):
        how = self.random.choice(("nearest", "bilinear", "bicubic"))
        return f"interpolation={how}, fill={self.colour()}"

    def p(self):
        return self.random.choice(("", f", p={self.number(0.3, 0.9)}"))

    def pixel_stage(self):
        return self.random.choice((
            lambda: f"flip(p={self.number(0, 1)})",
            lambda: f"vertical_flip(p={self.number(0, 1)})",
            lambda: f"rotate({self.two(-180, 180)}, {self.warp()}{self.p()})",
            lambda: f"rotate({self.random.choice((90, 180, 270, 0))}, {self.warp()})",
            lambda: f"affine({self.number(0, 60)}, translate=({self.number(0, 0.4)}, {self.number(0, 0.4)}), "
                    f"scale={self.two(0.5, 2)}, shear={self.number(0, 30)}, {self.warp()}{self.p()})",
            lambda: f"perspective({self.number(0, 0.9)}, {self.warp()}{self.p()})",
            lambda: f"color_jitter({self.number(0, 1)}, {self.two(0, 3)}, {self.number(0, 2)}, {self.number(0, 0.5)}{self.p()})",
            lambda: f"grayscale(p={self.number(0, 1)})",
            lambda: f"invert(p={self.number(0, 1)})",
            lambda: f"posterize({1 + self.random.randrange(8)}{self.p()})",
            lambda: f"solarize({self.number(0, 256)}{self.p()})",
            lambda: f"equalize(p={self.number(0, 1)})",
            lambda: f"autocontrast(p={self.number(0, 1)})",
            lambda: f"sharpness({self.two(0, 4)}{self.p()})",
            lambda: f"gaussian_blur({self.random.choice((3, 5, 9, 23))}, sigma={self.two(0.1, 3)}{self.p()})",
            lambda: f"pillow_blur({self.two(0, 8)}{self.p()})",
            lambda: f"random_augment({self.random.randrange(1, 5)}, {self.random.randrange(31)}, {self.warp()})",
            lambda: f"trivial_augment_wide({self.warp()})",
            lambda: f"auto_augment({self.random.choice(('imagenet', 'cifar10', 'svhn'))}, {self.warp()})",
            lambda: f"aug_mix({self.random.randrange(1, 11)}, alpha={self.number(0.1, 2)}, {self.warp()})",
            lambda: f"cutout({self.random.randrange(1, 24)}, {self.colour()})",
            lambda: f"random_erasing({self.number(0.3, 1)}, value={self.colour()})",
            lambda: f"pad(({', '.join(str(self.random.randrange(20)) for _ in range(4))}), {self.colour()}, "
                    f"{self.random.choice(MODES)})",
            lambda: f"resize({self.random.randrange(40, 400)}, {self.random.choice(FILTERS)})",
        ))()

    def last_stage(self):
        height, width = self.random.randrange(33, 260), self.random.randrange(33, 260)
        kernel = self.random.choice(FILTERS)
        return self.random.choice((
            lambda: f"random_resized_crop(({height}, {width}), {self.two(0.05, 1)}, filter={kernel})",
            lambda: f"resize_center_crop({max(height, width) + 9}, ({height}, {width}), {kernel})",
            lambda: f"resize(({height}, {width}), {kernel})",
            lambda: f"center_crop(({height}, {width}))",
            lambda: f"random_crop(({height}, {width}), padding={self.random.randrange(9)}, "
                    f"fill={self.colour()}, pad_if_needed=True)",
        ))()

    def chosen(self):
        inner = " | ".join(self.pixel_stage() for _ in range(self.random.randrange(1, 3)))
        return self.random.choice((
            lambda: f"random_apply({inner}, p={self.number(0.3, 0.9)})",
            lambda: f"random_choice({inner}, {self.pixel_stage()})",
            lambda: f"random_order({inner} | {self.pixel_stage()})",
        ))()

    def make(self):
        """The stage that gives the size comes anywhere; what keeps the size may follow it."""
        stages = [self.chosen() if self.random.random() < 0.2 else self.pixel_stage()
                  for _ in range(self.random.randrange(5))]
        stages.insert(self.random.randrange(len(stages) + 1), self.last_stage())
        text = " | ".join(stages)
        return text if stoker.augment.Augment(text).size else f"{text} | {self.last_stage()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--rows", type=int, default=10000)
    parser.add_argument("--lists", type=int, default=400)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    paths = sorted(path for path in pathlib.Path(options.data).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    lists, source = Lists(options.seed), stoker.files(paths, [0] * len(paths))
    each = -(-options.rows // options.lists)
    rows = different = ties = left_out = 0
    kinds = {}
    for number in range(options.lists):
        text = lists.make()
        loader = stoker.Loader(source, batch_size=each, augment=text, seed=options.seed + number, workers=1)
        batch = next(iter(loader))
        bad = np.asarray(batch.weights) == 0  # a picture that this list cannot be done to
        for row, id, drawn, is_bad in zip(np.asarray(batch.images), np.asarray(batch.ids), batch.draws, bad):
            if is_bad:
                left_out += 1
                continue
            picture = Image.open(paths[id]).convert("RGB")
            wanted = np.asarray(to_torchvision(drawn, picture))
            rows += 1
            for step in drawn.split(" | "):
                kind = step.partition("(")[0]
                kinds[kind] = kinds.get(kind, 0) + 1
            if np.array_equal(row, wanted):
                continue
            off = np.abs(row.astype(int) - wanted) if row.shape == wanted.shape else None
            most, count = (int(off.max()), int((off > 0).sum())) if off is not None else (-1, -1)
            if "gaussian_blur" in drawn:
                ties += 1
            else:
                different += 1
            print(f"{paths[id].name} by at most {most} in {count} of {row.size} bytes: {drawn}")
        loader.close()
    print(f"torchvision {torchvision.__version__}, Pillow {PIL.__version__}: {rows} rows of {options.lists} lists compared, "
          f"{different} different, {ties} more with gaussian_blur, {left_out} left out")
    print("steps: " + ", ".join(f"{kinds[kind]} {kind}" for kind in sorted(kinds, key=lambda k: -kinds[k])))
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
