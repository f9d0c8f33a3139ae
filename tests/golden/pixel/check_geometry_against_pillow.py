#!/usr/bin/python3
"""Compares stoker's rotations, affine transforms and perspectives with torchvision's on PIL images, byte for byte.

Takes random crops of a folder's pictures, draws the parameters of each kind of transform, gets the pixels from `warp_rows`
(tests/decode) and from the torchvision and the Pillow that run this, and reports how many draws differ. (Resizes:
../decode/check_against_pillow.py --any-filter.)

  check_geometry_against_pillow.py --warper build/tests/decode/warp_rows --data DIR [--draws N] [--kinds KIND,...]
"""
import argparse
import math
import os
import random
import subprocess
import sys

import PIL
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, RandomPerspective
from torchvision.transforms.functional import _get_perspective_coeffs

try:
    from torchvision.transforms.v2 import functional as F

    IS_V2 = True
except ImportError:  # before torchvision 0.15
    from torchvision.transforms import functional as F

    IS_V2 = False

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "decode"))
from check_against_pillow import find_images

MODES = [InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC]
RESAMPLING = [Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC]
NO_CENTER = [0, 0, 0]


def draw_center(rng, image):
    if rng.randrange(4):
        return None, NO_CENTER
    center = [rng.randint(-10, image.width + 10), rng.uniform(0, image.height)]
    return center, [1, *center]


def draw_angle(rng):
    if rng.randrange(5) == 0:
        return float(rng.choice([0, 30, 45, 60, 90, 120, 135, 180, 225, 270, 300, 360, -90, -45, 450]))
    return rng.uniform(-200, 200) if rng.randrange(2) else float(rng.randint(-30, 30))


def rotate(rng, image, mode, fill):
    angle, expand = draw_angle(rng), rng.randrange(3) == 0
    center, words = draw_center(rng, image)
    theirs = F.rotate(image, angle, MODES[mode], expand=expand, center=center, fill=fill)
    return theirs, "rotate", [angle, int(expand), *words]


def matrix_of_v2(center, angle, translate, scale, shear):
    """Returns the matrix of v2's affine(); older functions add in another order, which shows in some bytes."""
    turn, tilt, slope = math.radians(angle), math.radians(shear[1]), math.tan(math.radians(shear[0]))
    a, c = math.cos(turn - tilt) / math.cos(tilt), math.sin(turn - tilt) / math.cos(tilt)
    b, d = -(a * slope + math.sin(turn)), math.cos(turn) - c * slope
    x, y = center[0] + translate[0], center[1] + translate[1]
    m = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    m[2] = center[0] - m[0] * x - m[1] * y
    m[5] = center[1] - m[3] * x - m[4] * y
    return m


def affine_of(rng, image, mode, fill, angle, translate, scale, shear):
    center, words = draw_center(rng, image)
    if IS_V2:
        theirs = F.affine(image, angle, translate, scale, shear, MODES[mode], fill=fill, center=center)
    else:
        matrix = matrix_of_v2(center or (image.width * 0.5, image.height * 0.5), angle, translate, scale, shear)
        theirs = image.transform(image.size, Image.Transform.AFFINE, matrix, RESAMPLING[mode], fillcolor=fill)
    return theirs, "affine", [angle, *translate, scale, *shear, *words]


def affine(rng, image, mode, fill):
    translate = [rng.randint(-image.width // 2, image.width // 2), rng.randint(-20, 20)]
    scale, shear = rng.uniform(0.4, 2.5), [rng.uniform(-40, 40), rng.choice([0.0, rng.uniform(-40, 40)])]
    return affine_of(rng, image, mode, fill, draw_angle(rng), translate, scale, shear)


def shear(rng, image, mode, fill):
    """As in AutoAugment: one axis only."""
    degrees = rng.uniform(-40, 40)
    both = [degrees, 0.0] if rng.randrange(2) else [0.0, degrees]
    return affine_of(rng, image, mode, fill, 0.0, [0, 0], 1.0, both)


def translate(rng, image, mode, fill):
    """Moves, sometimes by parts of a pixel, and scales: Pillow has its own way for that."""
    offset = [rng.randint(-150, 150), rng.choice([0, rng.uniform(-150, 150)])]
    scale = rng.choice([1.0, 1.0, rng.uniform(0.1, 4)])
    return affine_of(rng, image, mode, fill, 0.0, offset, scale, [0.0, 0.0])


def perspective(rng, image, mode, fill):
    start, end = RandomPerspective.get_params(image.width, image.height, rng.uniform(0.05, 0.9))
    theirs = F.perspective(image, start, end, MODES[mode], fill=fill)
    return theirs, "perspective", [number for corner in start + end for number in corner]


def solved_perspective(rng, image, mode, fill):
    """The same, with the solution of this torchvision: its last bits depend on its version and its BLAS."""
    start, end = RandomPerspective.get_params(image.width, image.height, rng.uniform(0.05, 0.9))
    theirs = F.perspective(image, start, end, MODES[mode], fill=fill)
    return theirs, "coefficients", [*image.size, *_get_perspective_coeffs(start, end)]


def odd_number(rng):
    """Any number that a matrix may have: ordinary, whole, halves, huge, not finite."""
    kind = rng.randrange(12)
    if kind < 6:
        return rng.uniform(-3, 3)
    if kind < 9:
        return rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 0.25])
    if kind < 11:
        return rng.uniform(-1, 1) * 10.0 ** rng.randint(-12, 12)
    return rng.choice([float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 32768.0, 65535.5])


def numbers(rng, image, mode, fill):
    """Any matrix, with any size of the result."""
    size = (rng.randint(1, 90), rng.randint(1, 90))
    is_affine = rng.randrange(2)
    data = [odd_number(rng) if rng.randrange(3) else rng.uniform(-1, 1) for _ in range(6 if is_affine else 8)]
    data[2] = data[2] if rng.randrange(4) == 0 else rng.uniform(-20, image.width)
    data[5] = data[5] if rng.randrange(4) == 0 else rng.uniform(-20, image.height)
    method = Image.Transform.AFFINE if is_affine else Image.Transform.PERSPECTIVE
    theirs = image.transform(size, method, data, RESAMPLING[mode], fillcolor=fill)
    return theirs, "matrix" if is_affine else "coefficients", [*size, *data]


KINDS = {kind.__name__: kind for kind in (rotate, affine, shear, translate, perspective, solved_perspective, numbers)}


def word_of(number):
    return number.hex() if isinstance(number, float) else str(number)


class Warper:
    def __init__(self, path):
        self.program = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def set_picture(self, image):
        self.program.stdin.write(f"picture {image.width} {image.height}\n".encode() + image.tobytes())

    def pixels(self, name, mode, fill, words):
        size, _, pixels = self.pixels_and_time(name, mode, fill, words)
        return size, pixels

    def pixels_and_time(self, name, mode, fill, words):
        """Returns the size, the CPU time in microseconds, and the bytes."""
        line = " ".join([name, str(mode), *map(str, fill), *map(word_of, words)])
        self.program.stdin.write((line + "\n").encode())
        self.program.stdin.flush()
        width, height, time = self.program.stdout.readline().split()
        size = int(width), int(height)
        return size, float(time), self.program.stdout.read(3 * size[0] * size[1])


def draw_picture(rng, paths, least):
    image = Image.open(rng.choice(paths)).convert("RGB")
    sides = (rng.choice([rng.randint(1, 9), rng.randint(8, 120), 224]) for _ in range(2))
    width, height = (min(most, max(side, least)) for most, side in zip(image.size, sides))
    left, top = rng.randint(0, image.width - width), rng.randint(0, image.height - height)
    return image.crop((left, top, left + width, top + height))


def draw_fill(rng):
    return (0, 0, 0) if rng.randrange(2) else tuple(rng.choice([128, rng.randrange(256)]) for _ in range(3))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--warper", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--draws", type=int, default=1000, help="of each kind with each interpolation")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    warper = Warper(args.warper)
    paths = list(find_images(args.data))
    print(f"torchvision {torchvision.__version__}, Pillow {PIL.__version__}", flush=True)
    failed = False
    for name in args.kinds.split(","):
        for mode in range(len(MODES)):
            rng = random.Random(f"{args.seed} {name} {mode}")
            torch.manual_seed(args.seed)
            different = 0
            for number in range(args.draws):
                if number % 10 == 0:
                    # The corners of a very small picture may be drawn on one line.
                    image = draw_picture(rng, paths, 24 if "perspective" in name else 1)
                    warper.set_picture(image)
                fill = draw_fill(rng)
                theirs, request, words = KINDS[name](rng, image, mode, fill)
                size, ours = warper.pixels(request, mode, fill, words)
                if size != theirs.size or ours != theirs.tobytes():
                    different += 1
                    if different <= 3:
                        count = sum(a != b for a, b in zip(ours, theirs.tobytes()))
                        print(f"DIFFERENT {image.size} -> {theirs.size}, here {size}: {request} {words} fill {fill}: {count} bytes")
            failed |= different > 0
            print(f"{name} {MODES[mode].value}: {args.draws} draws, {different} different", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
