#!/usr/bin/env python3
"""Draws hostile pictures of every format, and feeds them within limits of memory, beside what the kernel counts.

  bench/peers/memory_peaks.py [--runs 30] [--seed 1] [--huge] [BUILD]     (default: build)
  bench/peers/memory_peaks.py --rate DATA [BUILD]

Each run has its own pictures (up to 60 megapixels; with --huge one run more with pictures of 500), limit, workers, recipe and
batch, drawn by the seed. Prints a table, and exits with 1 if a process had more than its limit. With --rate it compares the CPU time of a feed
of DATA with a limit that is enough and without one, in turn. Needs Pillow and NumPy.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import numpy
from PIL import Image

Image.MAX_IMAGE_PIXELS = None

AUGMENTS = ["random_resized_crop | flip", "resize_center_crop", "rotate(15) | random_resized_crop", "random_resized_crop | color_jitter(0.4)",
            "resize(size=(300, 300)) | gaussian_blur(9) | center_crop"]


def kinds(rng):
    """Name -> (the largest side, how it is saved)."""
    progressive = {"progressive": True, "quality": rng.choice([30, 90])}
    kinds = {
        "progressive.jpg": (60000, lambda image, path: image.save(path, **progressive)),
        "gray_progressive.jpg": (60000, lambda image, path: image.convert("L").save(path, progressive=True)),
        "cmyk.jpg": (60000, lambda image, path: image.convert("CMYK").save(path, progressive=rng.random() < 0.7)),
        "baseline.jpg": (60000, lambda image, path: image.save(path)),
        "rgb.png": (60000, lambda image, path: image.save(path, compress_level=1)),
        "palette.png": (60000, lambda image, path: image.convert("P").save(path, compress_level=1)),
        "strips.tif": (60000, lambda image, path: image.save(path)),
        "deflate.tif": (60000, lambda image, path: image.save(path, compression="tiff_adobe_deflate")),
        "lzw.tif": (60000, lambda image, path: image.save(path, compression="tiff_lzw")),
        "lossy.webp": (6000, lambda image, path: image.save(path, quality=60, method=0)),
        "lossless.webp": (3000, lambda image, path: image.save(path, lossless=True, method=0, quality=0)),
        "plain.gif": (20000, lambda image, path: image.convert("P").save(path)),
        "plain.bmp": (60000, lambda image, path: image.save(path)),
        "plain.jp2": (2500, lambda image, path: image.save(path)),
        "plain.avif": (3000, lambda image, path: image.save(path, speed=10)),
    }
    return kinds


def draw(rng, megapixels, side):
    ratio = rng.choice([1, 1.5, 0.7, 8, 0.1])
    width = min(side, max(16, int((megapixels * 1e6 * ratio) ** 0.5)))
    height = min(side, max(16, int(megapixels * 1e6 / width)))
    coarse = numpy.random.default_rng(rng.getrandbits(32)).integers(0, 256, (max(1, height // 64), max(1, width // 64), 3), dtype=numpy.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.BILINEAR)


def draw_pictures(folder, rng, count, most, chosen=None):
    lines = []
    for i in range(count):
        name = rng.choice(chosen or list(kinds(rng)))
        side, save = kinds(rng)[name]
        path = folder / f"{i}_{name}"
        save(draw(rng, most if chosen else most * rng.random() ** 2 + 0.05, side), path)
        lines.append(json.dumps({"image": path.name, "label": 0}))
    (folder / "pictures.jsonl").write_text("\n".join(lines) + "\n")


def run(program, folder, limit, workers, augment, batch, epochs=2):
    command = [program, folder / "pictures.jsonl", limit, workers, 224, batch, epochs, augment]
    # The plugins for JPEG 2000 and AVIF lie in the build's root, where no test does.
    environment = {**os.environ, "STOKER_PLUGIN_DIR": str(program.parents[2].resolve())}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=1800, env=environment)
    if done.returncode == 2:
        return {"refused": done.stderr.strip()}
    return json.loads(done.stdout) if done.stdout else {"died": f"{done.returncode}: {done.stderr.strip()[-200:]}"}


def compare_rates(program, data):
    """The limit is for two workers of 130 MiB and a ring of 37 MiB."""
    ratios = []
    for turn in range(12):
        seconds = {}
        for limit in (0, 512) if turn % 2 else (512, 0):
            command = [program, data, limit, 2, 224, 64, 8]
            found = json.loads(subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout)
            seconds[limit] = found["cpu_seconds"] / found["images"]
        if turn > 1:
            ratios.append(seconds[0] / seconds[512])
    ratios.sort()
    print(f"images per CPU second with a limit of 512 MiB, divided by those without: {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
    return 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--huge", action="store_true")
    parser.add_argument("--rate")
    parser.add_argument("build", nargs="?", default="build")
    given = parser.parse_args()
    program = pathlib.Path(given.build) / "tests/pipeline/limited_feed"
    if given.rate:
        return compare_rates(program, given.rate)
    print("| run | limit, MiB | peak, MiB | workers | pictures | up to, MP | bad | waits | augment |")
    print("|---|---|---|---|---|---|---|---|---|")
    above = 0
    for number in range(given.runs + given.huge):
        huge = number == given.runs
        rng = random.Random(given.seed * 1000 + number)
        count, most = (8, 500) if huge else (rng.randint(6, 16), rng.choice([15, 30, 60]))
        workers = 24 if huge else rng.choice([2, 6, 12, 24])
        limit = 1024 if huge else rng.choice([320, 400, 600])
        augment, batch = rng.choice(AUGMENTS), rng.choice([2, 8, 32])
        shown = augment.replace("|", "\\|")
        with tempfile.TemporaryDirectory(prefix="memory-peaks-") as name:
            folder = pathlib.Path(name)
            draw_pictures(folder, rng, count, most, ["progressive.jpg", "gray_progressive.jpg", "rgb.png", "deflate.tif"] if huge else None)
            found = run(program, folder, limit, workers, augment, batch)
        if "peak_mib" not in found:
            above += "died" in found
            print(f"| {number + 1} | {limit} | {found} | {workers} | {count} | {most} | | | {shown} |", flush=True)
            continue
        above += found["peak_mib"] > limit
        print(f"| {number + 1} | {limit} | {found['peak_mib']:.0f} | {workers} | {count} | {most} | {found['bad']} | {found['waits']} | {shown} |", flush=True)
    print(f"\n{above} of {given.runs + given.huge} runs had more than their limit.")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
