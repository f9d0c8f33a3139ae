#!/usr/bin/env python3
"""Compares stoker's decoders of PNG, WebP, GIF and AVIF with Pillow and OpenCV: CPU time per picture, from memory, on one thread.

  PEERS/bin/python bench/research/codec_peers.py --bench build/bench/codec_bench --data imagenet-samples [--pictures 100] [--rounds 7]

The pictures are photographs of --data, written by the Pillow that runs this: PNG with its default compression and with
`optimize`, as RGB, palette and gray; WebP of quality 80; AVIF of quality 60; GIF. "whole" is a picture to RGB in memory; "crop"
is a random-resized crop to 224 pixels, bilinear: Pillow's resize() of a box, and OpenCV's INTER_LINEAR (which does not smooth, so
it has less to do). The three take turns in each round; the table has medians. PEERS needs Pillow, NumPy and
opencv-python-headless; AVIF needs its plugin: STOKER_PLUGIN_DIR=build.
"""
import argparse
import io
import os
import pathlib
import subprocess
import statistics
import tempfile
import time

import cv2
import numpy
import PIL
from PIL import AvifImagePlugin, Image

SIDE = 224


def pictures(folder, count):
    paths = sorted(path for path in pathlib.Path(folder).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    for path in paths[:: max(1, len(paths) // count)][:count]:
        image = Image.open(path).convert("RGB")
        image.info.clear()  # no profiles of colours, which some peers look at
        yield image


KINDS = {
    "PNG, RGB": ("png", lambda image: image, {}),
    "PNG, RGB, optimize": ("png", lambda image: image, dict(optimize=True)),
    "PNG, palette": ("png", lambda image: image.convert("P", palette=Image.Palette.ADAPTIVE), {}),
    "PNG, gray": ("png", lambda image: image.convert("L"), {}),
    "WebP, quality 80": ("webp", lambda image: image, dict(quality=80)),
    "WebP, lossless": ("webp", lambda image: image, dict(lossless=True)),
    "AVIF, quality 60": ("avif", lambda image: image, dict(quality=60)),
    "AVIF, quality 60, 4:4:4": ("avif", lambda image: image, dict(quality=60, subsampling="4:4:4")),
    "GIF": ("gif", lambda image: image.convert("P", palette=Image.Palette.ADAPTIVE), {}),
}


class Draws:
    """Numbers in [0, 1), the same as in codec_bench."""

    def __init__(self):
        self.state = 1

    def next(self):
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return self.state / 4294967296

    def crop(self, width, height):
        area = (0.08 + 0.92 * self.next()) * width * height
        ratio = 0.75 + (4 / 3 - 0.75) * self.next()
        w = min(max(int((area * ratio) ** 0.5), 1), width)
        h = min(max(int((area / ratio) ** 0.5), 1), height)
        x = int(self.next() * (width - w + 1))
        y = int(self.next() * (height - h + 1))
        return x, y, x + w, y + h


def pillow_whole(data, _):
    numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def pillow_crop(data, draws):
    image = Image.open(io.BytesIO(data)).convert("RGB")
    numpy.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=draws.crop(*image.size)))


def opencv_whole(data, _):
    return cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR_RGB)


def opencv_crop(data, draws):
    image = opencv_whole(data, None)
    x0, y0, x1, y1 = draws.crop(image.shape[1], image.shape[0])
    cv2.resize(image[y0:y1, x0:x1], (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)


def microseconds(files, run):
    draws = Draws()
    begin = time.process_time()
    for data in files:
        run(data, draws)
    return 1e6 * (time.process_time() - begin) / len(files)


def measure(bench, folder, rounds):
    """Returns the medians of each (peer, work)."""
    files = [path.read_bytes() for path in sorted(folder.iterdir())]
    peers = {("Pillow", "whole"): pillow_whole, ("Pillow", "crop"): pillow_crop}
    if opencv_whole(files[0], None) is not None:
        peers |= {("OpenCV", "whole"): opencv_whole, ("OpenCV", "crop"): opencv_crop}
    times = {key: [] for key in (("stoker", "whole"), ("stoker", "crop"), *peers)}
    for _ in range(rounds):
        words = subprocess.run([bench, folder, "1"], check=True, capture_output=True, text=True).stdout.split()
        times["stoker", "whole"].append(float(words[1]))
        times["stoker", "crop"].append(float(words[2]))
        for key, run in peers.items():
            times[key].append(microseconds(files, run))
    return {key: statistics.median(values) for key, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--pictures", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    cv2.setNumThreads(1)
    AvifImagePlugin.DEFAULT_MAX_THREADS = 1
    images = list(pictures(args.data, args.pictures))
    load = os.getloadavg()
    print(f"Pillow {PIL.__version__}, OpenCV {cv2.__version__}; {len(images)} pictures; load {load[0]:.1f}\n")
    print("| µs of CPU time per picture | work | stoker | Pillow | OpenCV | Pillow / stoker | OpenCV / stoker |")
    print("|---|---|---|---|---|---|---|")
    for name, (extension, convert, options) in KINDS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            for number, image in enumerate(images):
                convert(image).save(folder / f"{number:04}.{extension}", **options)
            times = measure(args.bench, folder, args.rounds)
        for work in ("whole", "crop"):
            ours, pillow, opencv = (times.get((peer, work)) for peer in ("stoker", "Pillow", "OpenCV"))
            theirs = f"{opencv:.0f}" if opencv else "-"
            ratio = f"{opencv / ours:.2f}" if opencv else "-"
            print(f"| {name} | {work} | {ours:.0f} | {pillow:.0f} | {theirs} | {pillow / ours:.2f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
