#!/usr/bin/python3
"""Writes small PNGs of every kind that label images have to labels/, and Pillow's numbers of their pixels to labels.txt.

A line is: FILE WIDTH HEIGHT and the numbers of the pixels, row by row; of RGB red + 256 green + 65536 blue.

  make_labels.py
"""
import os
import random
import struct
import zlib

import numpy
import PIL
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
GRAY, RGB, PALETTE = 0, 2, 3


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def make_png(rng, width, height, colours, bits):
    row_bytes = (width * bits * (3 if colours == RGB else 1) + 7) // 8
    rows = b"".join(b"\0" + rng.randbytes(row_bytes) for _ in range(height))
    palette = chunk(b"PLTE", rng.randbytes(3 * min(1 << bits, 200))) if colours == PALETTE else b""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + palette + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def labels_of(path):
    pixels = numpy.asarray(Image.open(path)).astype(numpy.int64)
    return pixels @ [1, 256, 65536] if pixels.ndim == 3 else pixels


def main():
    rng = random.Random("golden labels")
    os.makedirs(os.path.join(HERE, "labels"), exist_ok=True)
    kinds = [("gray", GRAY, bits) for bits in (1, 2, 4, 8, 16)] + [("palette", PALETTE, bits) for bits in (1, 2, 4, 8)]
    with open(os.path.join(HERE, "labels.txt"), "w") as file:
        for name, colours, bits in [*kinds, ("rgb", RGB, 8)]:
            name, width, height = f"{name}{bits}.png", rng.randint(9, 14), rng.randint(3, 6)
            path = os.path.join(HERE, "labels", name)
            with open(path, "wb") as picture:
                picture.write(make_png(rng, width, height, colours, bits))
            file.write(f"{name} {width} {height} {' '.join(map(str, labels_of(path).ravel()))}\n")
    with open(os.path.join(HERE, "versions_labels.txt"), "w") as file:
        file.write(f"Pillow {PIL.__version__}\n")


if __name__ == "__main__":
    main()
