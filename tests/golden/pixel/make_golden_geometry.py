#!/usr/bin/python3
"""Makes the golden values of geometry: what the Pillow and the torchvision that run this make of noise.

  warps.txt             hash, width, height, seed, request      (requests: tests/decode/warp_request.h)
  filters_pillow13.txt  width, height, seed, CropSpec, hash     (resizes by all six filters)
  filters.txt           the same, by Pillow 9 to 12

Source pixels are noise() of ../decode/make_golden.py, which has the hash, too. With Pillow 13 and torchvision v2 it writes the
first two files, with an older Pillow the third: run it with the newer one first. Half of the `nearest` lines are sizes where
Pillow's running sum takes another pixel than the centre of the output would.
"""
import os
import random
import sys
from fractions import Fraction

import numpy
import PIL

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "decode"))
from check_against_pillow import FILTERS, draw_spec, pillow_pixels
from make_golden import fnv1a, noise, spec_text

NEAREST = 2


def shows_running_sums(source, resized):
    step = source / resized
    at = step * 0.5
    for i in range(resized):
        if int(at) != int((i + 0.5) * step):
            return True
        at += step
    return False


def draw_resize(rng, number):
    width, height, seed = rng.randint(1, 160), rng.randint(1, 160), rng.randrange(1000)
    (left, top, w, h), size, window, flip, _ = draw_spec(rng, width, height)
    resample = number % len(FILTERS)
    if resample == NEAREST and number % 4 == 0:
        width = w = 160
        while not shows_running_sums(w, size[0]):
            w, size = rng.randint(20, width), (rng.randint(20, 300), size[1])
        left, window = rng.randint(0, width - w), (0, 0) + size
    return width, height, seed, ((left, top, w, h), size, window, flip, resample)


def make_filters(name):
    rng = random.Random(6)
    with open(os.path.join(HERE, name), "w") as file:
        for number in range(180):
            width, height, seed, spec = draw_resize(rng, number)
            pixels = pillow_pixels(noise(width, height, seed), spec)
            file.write(f"{width} {height} {seed} {spec_text(spec)} {fnv1a(pixels)}\n")


def exact_coefficients(start, end):
    """Solves the equations of a perspective in fractions; None if they have no solution."""
    rows = []
    for (x, y), (to_x, to_y) in zip(end, start):
        rows.append([x, y, 1, 0, 0, 0, -to_x * x, -to_x * y, to_x])
        rows.append([0, 0, 0, x, y, 1, -to_y * x, -to_y * y, to_y])
    rows = [[Fraction(value) for value in row] for row in rows]
    for k in range(8):
        pivot = next((i for i in range(k, 8) if rows[i][k] != 0), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i in range(8):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k])]
    return [float(numpy.float32(float(row[8]))) for row in rows]


def is_solved_exactly(words):
    """Returns false where torchvision's solution has other last bits than the true one."""
    from torchvision.transforms.functional import _get_perspective_coeffs

    corners = [list(words[i : i + 2]) for i in range(0, 16, 2)]
    return _get_perspective_coeffs(corners[:4], corners[4:]) == exact_coefficients(corners[:4], corners[4:])


def make_warps():
    import torch
    from check_geometry_against_pillow import KINDS, MODES, draw_fill, word_of

    with open(os.path.join(HERE, "warps.txt"), "w") as file:
        for name, kind in KINDS.items():
            for mode in range(len(MODES)):
                rng = random.Random(f"golden {name} {mode}")
                torch.manual_seed(mode)
                written = 0
                while written < 18:
                    width, height, seed = rng.randint(16, 60), rng.randint(1, 60), rng.randrange(1000)
                    height = max(height, 16) if "perspective" in name else height
                    fill = draw_fill(rng)
                    theirs, request, words = kind(rng, noise(width, height, seed), mode, fill)
                    if name == "perspective" and not is_solved_exactly(words):
                        continue
                    text = " ".join([request, str(mode), *map(str, fill), *map(word_of, words)])
                    file.write(f"{fnv1a(theirs.tobytes())} {width} {height} {seed} {text}\n")
                    written += 1


def main():
    if int(PIL.__version__.split(".")[0]) >= 13:
        make_filters("filters_pillow13.txt")
        make_warps()
    else:
        make_filters("filters.txt")
    print(f"made by Pillow {PIL.__version__}")


if __name__ == "__main__":
    main()
