#!/usr/bin/python3
"""Compares stoker's operations on colours with Pillow and torchvision, byte for byte, over a folder of images.

For every draw takes a crop of a picture (the whole one, or any box, down to one pixel) and an operation's numbers, gets the same
pixels from `colour_rows` (tests/decode) and from Pillow, and reports how many draws of each operation differ. The last bits of torch's
gaussian_blur depend on its version and on the instruction set: stoker gives those of current ones with AVX-512, and elsewhere the number of
bytes that differ is printed, and by how much at most.

  check_colour_against_pillow.py --program build/tests/decode/colour_rows --data DIR [--draws N] [--operation NAME]
"""
import argparse
import os
import random
import subprocess
import sys

import numpy
from PIL import Image

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import colour_operations

EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp")


def find_images(root):
    return sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
        if name.lower().endswith(EXTENSIONS)
    )


def draw_image(rng, path, most):
    """Returns a picture's pixels, at most `most` by `most`: mostly all of it, sometimes any box."""
    with Image.open(path) as file:
        image = file.convert("RGB")
    image = image.crop((0, 0, min(image.width, most), min(image.height, most)))
    if rng.randrange(4):
        return image
    width, height = rng.randint(1, image.width), rng.randint(1, image.height)
    x, y = rng.randint(0, image.width - width), rng.randint(0, image.height - height)
    return image.crop((x, y, x + width, y + height))


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, name, image, numbers):
        line = " ".join([name, str(image.width), str(image.height), *(repr(float(n)) for n in numbers)])
        self.process.stdin.write(line.encode() + b"\n" + image.tobytes())
        self.process.stdin.flush()
        return self.process.stdout.read(3 * image.width * image.height)


def compare(program, name, function, paths, args):
    rng = random.Random(f"{args.seed} {name}")
    different = bytes_ = bytes_different = most = 0
    for _ in range(args.draws):
        image = draw_image(rng, rng.choice(paths), args.largest)
        numbers = colour_operations.draw_numbers(rng, name, *image.size)
        ours, theirs = program.run(name, image, numbers), function(image, *numbers).tobytes()
        bytes_ += len(ours)
        if ours != theirs:
            a, b = (numpy.frombuffer(pixels, numpy.uint8).astype(int) for pixels in (ours, theirs))
            if different < 3 and name != "gaussian_blur":
                print(f"DIFFERENT {name} {numbers} {image.size}: {(a != b).sum()} of {len(a)} bytes")
            different += 1
            bytes_different += int((a != b).sum())
            most = max(most, int(abs(a - b).max()))
    line = f"{name}: {args.draws} draws compared, {different} different"
    if name == "gaussian_blur":
        line += f": {bytes_different} of {bytes_} bytes, by {most} at most"
    print(line, flush=True)
    return different == 0 or (name == "gaussian_blur" and most <= 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--draws", type=int, default=100, help="per operation")
    parser.add_argument("--operation", action="append", help="default: all")
    parser.add_argument("--largest", type=int, default=224, help="pixels of a side")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    paths = find_images(args.data)
    program = Program(args.program)
    print(colour_operations.versions())
    same = [
        compare(program, name, function, paths, args)
        for name, function in colour_operations.operations().items()
        if args.operation is None or name in args.operation
    ]
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
