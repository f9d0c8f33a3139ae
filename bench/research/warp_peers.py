#!/usr/bin/env python3
"""Measures rotations, shears, moves and perspectives of one picture: stoker beside PIL, torchvision's tensors and OpenCV.

Prints a table of the CPU time per picture, in microseconds: medians of interleaved rounds, one thread each. stoker's and PIL's
pixels are the same; those of OpenCV and of torchvision's tensors (which have no bicubic) are others.

  WARP_ROWS_REPEAT=20 bench/research/warp_peers.py --warper build/tests/decode/warp_rows PICTURE [--size 224] [--rounds 21]
"""
import argparse
import math
import os
import statistics
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import cv2
import numpy
import torch
import torchvision
from PIL import Image
from PIL import __version__ as pillow_version
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "golden", "pixel"))
from check_geometry_against_pillow import Warper

FILL = (128, 128, 128)
FLAGS = [cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_CUBIC]
MODES = [InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC]
NO_CENTER = [0, 0, 0]


def cases(size):
    """Yields name, stoker's request, torchvision's function, OpenCV's function."""
    box = (size, size)
    turn = cv2.getRotationMatrix2D((size / 2, size / 2), 17, 1)
    lean = numpy.float64([[1, math.tan(math.radians(20)), 0], [0, 1, 0]])
    move = numpy.float64([[1, 0, 20], [0, 1, 10]])
    last = size - 1
    start = [[0, 0], [last, 0], [last, last], [0, last]]
    end = [[20, 30], [last - 40, 10], [last - 10, last - 30], [30, last - 10]]
    plane = cv2.getPerspectiveTransform(numpy.float32(start), numpy.float32(end))

    def affine(matrix):
        return lambda pixels, how: cv2.warpAffine(pixels, matrix, box, flags=how, borderValue=FILL)

    yield "rotate", ("rotate", [17.0, 0, *NO_CENTER]), lambda image, how: F.rotate(image, 17, how, fill=FILL), affine(turn)
    yield (
        "shear",
        ("affine", [0.0, 0, 0, 1.0, 20.0, 0.0, *NO_CENTER]),
        lambda image, how: F.affine(image, 0, [0, 0], 1.0, [20, 0], how, fill=FILL),
        affine(lean),
    )
    yield (
        "move",
        ("affine", [0.0, 20, 10, 1.0, 0.0, 0.0, *NO_CENTER]),
        lambda image, how: F.affine(image, 0, [20, 10], 1.0, [0, 0], how, fill=FILL),
        affine(move),
    )
    yield (
        "perspective",
        ("perspective", [number for corner in start + end for number in corner]),
        lambda image, how: F.perspective(image, start, end, how, fill=FILL),
        lambda pixels, how: cv2.warpPerspective(pixels, plane, box, flags=how, borderValue=FILL),
    )


def microseconds(function):
    repeat = 5
    begin = time.thread_time()
    for _ in range(repeat):
        function()
    return (time.thread_time() - begin) / repeat * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("picture")
    parser.add_argument("--warper", required=True)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=21)
    args = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    image = Image.open(args.picture).convert("RGB").resize((args.size, args.size))
    pixels = numpy.array(image)
    tensor = torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
    warper = Warper(args.warper)
    warper.set_picture(image)
    print(f"torchvision {torchvision.__version__}, Pillow {pillow_version}, OpenCV {cv2.__version__}, {args.size} px")
    print("\n| µs per picture | stoker | PIL | tensor | OpenCV | PIL / stoker | best / stoker |\n|---|---|---|---|---|---|---|")
    for mode, how in enumerate(MODES):
        for name, (request, words), on_image, by_opencv in cases(args.size):
            rows = {"stoker": lambda: warper.pixels_and_time(request, mode, FILL, words)[1]}
            rows["PIL"] = lambda: microseconds(lambda: on_image(image, how))
            if how != InterpolationMode.BICUBIC:
                rows["tensor"] = lambda: microseconds(lambda: on_image(tensor, how))
            rows["OpenCV"] = lambda: microseconds(lambda: by_opencv(pixels, FLAGS[mode]))
            times = {row: [] for row in rows}
            for _ in range(args.rounds):
                for row, measure in rows.items():
                    times[row].append(measure())
            median = {row: statistics.median(values) for row, values in times.items()}
            best = min(median[row] for row in median if row != "stoker")
            texts = [f"{median[row]:.0f}" if row in median else "" for row in ("stoker", "PIL", "tensor", "OpenCV")]
            ratios = [f"{other / median['stoker']:.2f}" for other in (median["PIL"], best)]
            print(f"| {how.value} {name} | " + " | ".join(texts + ratios) + " |", flush=True)


if __name__ == "__main__":
    main()
