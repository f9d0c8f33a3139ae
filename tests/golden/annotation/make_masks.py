#!/usr/bin/python3
"""Writes the golden masks: run lengths of polygons by pycocotools, and moved masks and label images by torchvision.

The lines of polygons.txt and motions.txt are requests (tests/pipeline/mask_request.h); `= HASH REQUEST` has the hash of the
bytes that the request gives (FNV-1a). check_masks.py compares more draws.

  make_masks.py
"""
import os
import random
from importlib.metadata import version

import numpy
import torch
import torchvision

from mask_draws import SEPARABLE, WARPS, coco_mask, counts_of, draw_moved, draw_polygon, draw_size, polygon_lines

HERE = os.path.dirname(os.path.abspath(__file__))


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def draw_polygons(rng):
    width, height = draw_size(rng)
    polygons = [draw_polygon(rng, width, height) for _ in range(rng.choice([1, 1, 1, 2, 5]))]
    runs = numpy.array(counts_of(coco_mask(polygons, width, height)["counts"]), numpy.uint32)
    return [f"picture {width} {height}", *polygon_lines(polygons)], {"union": runs.tobytes()}


def write(name, draws):
    with open(os.path.join(HERE, name), "w") as file:
        for lines, answers in draws:
            file.writelines(line + "\n" for line in lines)
            file.writelines(f"= {fnv1a(data)} {request}\n" for request, data in answers.items())


def main():
    torch.set_num_threads(1)
    rng = random.Random("golden masks")
    write("polygons.txt", [draw_polygons(rng) for _ in range(100)])
    write("motions.txt", [draw_moved(rng, motions) for motions in (SEPARABLE, SEPARABLE + WARPS) for _ in range(50)])
    with open(os.path.join(HERE, "versions.txt"), "w") as file:
        file.write(f"pycocotools {version('pycocotools')}\ntorchvision {torchvision.__version__}\ntorch {torch.__version__}\n")


if __name__ == "__main__":
    main()
