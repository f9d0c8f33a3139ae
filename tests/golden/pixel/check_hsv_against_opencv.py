#!/usr/bin/python3
"""Compares adjust_hsv (decode/pixel/hsv.h) with OpenCV for every colour there is, and with --time their CPU time at 640 x 640.

  check_hsv_against_opencv.py --program build/tests/decode/colour_rows [--draws N] [--time RUNS]
"""
import argparse
import os
import random
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cv2
import numpy
from hsv_of_opencv import draw_numbers, hsv


def every_colour():
    numbers = numpy.arange(1 << 24, dtype=numpy.uint32)
    channels = [(numbers >> shift & 255).astype(numpy.uint8) for shift in (16, 8, 0)]
    return numpy.stack(channels, -1).reshape(4096, 4096, 3)


def run(program, pixels, numbers, *arguments):
    height, width = pixels.shape[:2]
    line = f"hsv {width} {height} {' '.join(map(repr, numbers))}\n".encode()
    return subprocess.run([program, *arguments], input=line + pixels.tobytes(), stdout=subprocess.PIPE, check=True).stdout


def opencv_microseconds(pixels, numbers, runs):
    times = []
    for _ in range(runs):
        begin = time.thread_time()
        hsv(pixels, *numbers)
        times.append(1e6 * (time.thread_time() - begin))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--time", type=int, default=0, help="runs; 0: none")
    args = parser.parse_args()
    print(f"OpenCV {cv2.__version__} ({cv2.getCPUFeaturesLine()})")
    rng = random.Random(1)
    pixels, differ = every_colour(), 0
    for draw in range(args.draws):
        numbers = (0.0, 1.0, 1.0) if draw == 0 else draw_numbers(rng)
        ours = numpy.frombuffer(run(args.program, pixels, numbers), numpy.uint8).reshape(pixels.shape)
        different = int((ours != hsv(pixels, *numbers)).any(-1).sum())
        print(f"hsv{numbers}: {different} of {1 << 24} colours differ", flush=True)
        differ += different
    if args.time:
        picture = numpy.random.default_rng(1).integers(0, 256, (640, 640, 3), dtype=numpy.uint8)
        numbers = draw_numbers(rng)
        ours = float(run(args.program, picture, numbers, "--time", str(args.time)))
        theirs = opencv_microseconds(picture, numbers, args.time)
        print(f"640 x 640: {ours:.0f} us, OpenCV {theirs:.0f} us of CPU ({theirs / ours:.1f}x)")
    sys.exit(0 if differ == 0 else 1)


if __name__ == "__main__":
    main()
