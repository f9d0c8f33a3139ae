#!/usr/bin/python3
"""Finds by experiment which pass of a resize is the first in the Pillow that runs this.

Resizes noise of random sizes, many of them at the borders of the rules below, computes both passes
itself in integers, in both orders, and checks which order gives Pillow's bytes. stoker follows
these rules (decode/pixel_policy.cc):

  Pillow 13         vertically first where the height loses more than twice the pixels that the
                    width loses, and is reduced
  Pillow 12.2, 12.3 vertically first where the image is more than 100 times as high as wide, and the
                    height is reduced (`exact-pillow12` does not follow this)
  Pillow 9 to 12.1  horizontally first

  check_pass_order.py [--sizes N]
"""
import argparse
import random
import sys

import numpy
import PIL
from PIL import Image

BITS = 22


def is_vertical_first(width, height, out_width, out_height):
    """Returns Pillow 13's rule. The order does not matter where one axis keeps its size."""
    return out_height < height and height - out_height > 2 * (width - out_width)


def is_vertical_first_before_13(width, height, out_width, out_height):
    version = tuple(map(int, PIL.__version__.split(".")[:2]))
    return version >= (12, 2) and height > 100 * width and out_height < height


def spans(size, out_size, is_cubic):
    """Yields for every output its first sample and the fixed-point weights."""
    scale = float(numpy.float32(size)) / out_size
    stretch = max(scale, 1.0)
    support = (2.0 if is_cubic else 1.0) * stretch
    for i in range(out_size):
        center = (i + 0.5) * scale
        first = max(0, int(center - support + 0.5))
        end = min(size, int(center + support + 0.5))
        x = numpy.abs((numpy.arange(first, end) - center + 0.5) * (1.0 / stretch))
        if is_cubic:
            near = (1.5 * x - 2.5) * x * x + 1
            far = (((x - 5) * x + 8) * x - 4) * -0.5
            weights = numpy.where(x < 1, near, numpy.where(x < 2, far, 0.0))
        else:
            weights = numpy.maximum(1.0 - x, 0.0)
        fixed = weights / sum(weights) * (1 << BITS)
        yield first, numpy.trunc(fixed + numpy.copysign(0.5, fixed)).astype(numpy.int64)


def one_pass(pixels, axis, out_size, is_cubic):
    lines = numpy.moveaxis(pixels, axis, 0).astype(numpy.int64)
    results = []
    for first, weights in spans(len(lines), out_size, is_cubic):
        total = numpy.tensordot(weights, lines[first : first + len(weights)], 1)
        results.append(numpy.clip((total + (1 << (BITS - 1))) >> BITS, 0, 255))
    return numpy.moveaxis(numpy.stack(results), 0, axis)


def order_of_pillow(size, out_size, is_cubic, seed):
    """Returns 'horizontal', 'vertical', 'either' (no difference) or 'neither'."""
    (width, height), (out_width, out_height) = size, out_size
    pixels = numpy.random.default_rng(seed).integers(0, 256, (height, width, 3), numpy.uint8)
    kind = Image.Resampling.BICUBIC if is_cubic else Image.Resampling.BILINEAR
    found = numpy.asarray(Image.fromarray(pixels).resize(out_size, kind))
    across = one_pass(one_pass(pixels, 1, out_width, is_cubic), 0, out_height, is_cubic)
    down = one_pass(one_pass(pixels, 0, out_height, is_cubic), 1, out_width, is_cubic)
    is_horizontal, is_vertical = (across == found).all(), (down == found).all()
    if is_horizontal:
        return "either" if is_vertical else "horizontal"
    return "vertical" if is_vertical else "neither"


def draw_sizes(rng, number):
    largest = rng.choice([8, 30, 120, 300, 700])
    width, height, out_width, out_height = (rng.randint(1, largest) for _ in range(4))
    if number % 3 == 1:  # at the border of Pillow 13's rule
        out_height = min(1500, max(1, height - 2 * (width - out_width) - rng.randint(-1, 3)))
    elif number % 3 == 2:  # and of 12.2's
        width, out_width = rng.randint(1, 30), rng.randint(1, 60)
        height = 100 * width + rng.choice([-50, -1, 0, 1, 2, 60])
        out_height = rng.choice([height - 1, height + 1, rng.randint(1, height)])
    return (width, max(1, height)), (out_width, max(1, out_height))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, default=1000)
    args = parser.parse_args()
    is_13 = int(PIL.__version__.split(".")[0]) >= 13
    rule = is_vertical_first if is_13 else is_vertical_first_before_13
    rng = random.Random(1)
    counts = {}
    others = 0
    for number in range(args.sizes):
        size, out_size = draw_sizes(rng, number)
        is_cubic = rng.randrange(3) == 0
        found = order_of_pillow(size, out_size, is_cubic, number)
        counts[found] = counts.get(found, 0) + 1
        wanted = "vertical" if rule(*size, *out_size) else "horizontal"
        if found not in (wanted, "either"):
            others += 1
            print(f"{size} -> {out_size}{' bicubic' * is_cubic}: {found}, the rule says {wanted}")
    print(f"Pillow {PIL.__version__}: {args.sizes} sizes, {counts}, {others} against the rule")
    sys.exit(1 if others else 0)


if __name__ == "__main__":
    main()
