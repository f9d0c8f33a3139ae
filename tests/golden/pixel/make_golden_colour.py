#!/usr/bin/python3
"""Makes the golden values of decode/pixel's operations on colours from Pillow and torchvision v2.

Writes into its own folder:
  colour.txt            hash, operation, width, height, seed, numbers  (pixels: source(), below)
  gaussian_kernels.txt  hash, taps, sigma  (of torchvision's kernel of one dimension, as little-endian floats)
  versions_colour.txt   the versions that made them
The hash is 64-bit FNV-1a of the bytes. Needs torchvision and Pillow, and for torch's blur a machine with AVX-512; no data.
"""
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "decode")]
import colour_operations
import torch
from make_golden import fnv1a, noise
from torchvision.transforms.v2.functional._misc import _get_gaussian_kernel1d


def source(width, height, seed):
    """Returns the pixels that tests/decode/pixel_colour_test.cc makes from the same numbers."""
    image = noise(width, height, seed)
    return image.point([v // 4 + 60 for v in range(256)] * 3) if seed % 2 else image


def main():
    rng = random.Random(7)
    lines = []
    for name, function in colour_operations.operations().items():
        for _ in range(30):
            width, height, seed = rng.randint(1, 70), rng.randint(1, 50), rng.randrange(10_000)
            numbers = colour_operations.draw_numbers(rng, name, width, height)
            hash_ = fnv1a(function(source(width, height, seed), *numbers).tobytes())
            lines.append(" ".join([hash_, name, str(width), str(height), str(seed), *map(repr, numbers)]))
    with open(os.path.join(HERE, "colour.txt"), "w") as file:
        file.write("\n".join(lines) + "\n")
    with open(os.path.join(HERE, "gaussian_kernels.txt"), "w") as file:
        for _ in range(100):
            taps, sigma = rng.randrange(1, 102, 2), rng.choice([rng.uniform(0.1, 2.0), rng.uniform(0.01, 20.0)])
            kernel = _get_gaussian_kernel1d(taps, sigma, torch.float32, torch.device("cpu"))
            file.write(f"{fnv1a(kernel.numpy().astype('<f4').tobytes())} {taps} {sigma!r}\n")
    with open(os.path.join(HERE, "versions_colour.txt"), "w") as file:
        file.write(colour_operations.versions() + "\n")


if __name__ == "__main__":
    main()
