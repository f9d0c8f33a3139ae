#!/usr/bin/python3
"""Makes the golden values of adjust_hsv (decode/pixel/hsv.h) from OpenCV on x86-64 with AVX2 or AVX-512.

Writes hsv.txt into its own folder: hash, "hsv", width, height, seed, numbers. The pixels and the hash are those of make_golden_colour.py.
"""
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "decode")]
import numpy
from hsv_of_opencv import GROUP, draw_numbers, hsv
from make_golden import fnv1a, noise


def main():
    rng = random.Random(11)
    with open(os.path.join(HERE, "hsv.txt"), "w") as file:
        for _ in range(40):
            width, height, seed = GROUP * rng.randint(1, 4), rng.randint(1, 40), 2 * rng.randrange(5_000)
            numbers = draw_numbers(rng)
            pixels = hsv(numpy.asarray(noise(width, height, seed)), *numbers)
            file.write(f"{fnv1a(pixels.tobytes())} hsv {width} {height} {seed} {' '.join(map(repr, numbers))}\n")


if __name__ == "__main__":
    main()
