#!/usr/bin/env python3
"""Measures stoker's operations on colours (decode/pixel) beside Pillow's and torchvision's, CPU time of one core.

    bench/research/pixel_colour.py --program build/tests/decode/colour_rows --image FILE [--size 224] [--rounds 15]

"PIL" is torchvision.transforms.v2.functional on a PIL image (for pillow_blur: Image.filter), "tensor" the same on a uint8 tensor of
one image, with one thread. They return a new image; stoker works in place, except for the blurs. All take turns; a figure is the median of the
rounds. Needs torch, torchvision and Pillow.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "golden", "pixel"))
import colour_operations  # noqa: E402
from PIL import Image  # noqa: E402

NUMBERS = {
    "brightness": (1.3,),
    "contrast": (1.3,),
    "saturation": (1.3,),
    "hue": (0.1,),
    "gamma": (1.4,),
    "sharpness": (1.4,),
    "solarize": (100.0,),
    "posterize": (4,),
    "pillow_blur": (1.3,),
    "gaussian_blur": (23, 23, 1.1, 1.1),
}


class Stoker:
    def __init__(self, program, image):
        self.process = subprocess.Popen([program, "--time", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.size, self.bytes = f"{image.width} {image.height}", image.tobytes()

    def microseconds(self, name, numbers):
        line = " ".join([name, self.size, *map(str, numbers)])
        self.process.stdin.write(line.encode() + b"\n" + self.bytes)
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def microseconds(function, image, numbers):
    calls = 5
    begin = time.thread_time()
    for _ in range(calls):
        function(image, *numbers)
    return 1e6 * (time.thread_time() - begin) / calls


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--image", required=True)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    with Image.open(args.image) as file:
        image = file.convert("RGB").resize((args.size, args.size))
    tensor = colour_operations.F.pil_to_tensor(image)
    stoker = Stoker(args.program, image)
    times = {}
    for _ in range(args.rounds):
        for name, function in colour_operations.operations().items():
            numbers = NUMBERS.get(name, ())
            row = times.setdefault(name, ([], [], []))
            row[0].append(stoker.microseconds(name, numbers))
            row[1].append(microseconds(function, image, numbers))
            if name != "pillow_blur":
                row[2].append(microseconds(function, tensor, numbers))
    print(f"{colour_operations.versions()}; {args.size} x {args.size} pixels, microseconds")
    print(f"{'operation':14}{'stoker':>9}{'PIL':>9}{'tensor':>9}{'best of both / stoker':>24}")
    for name, row in times.items():
        ours, pil, of_tensor = (statistics.median(column) if column else None for column in row)
        best = min(t for t in (pil, of_tensor) if t is not None)
        print(f"{name:14}{ours:9.1f}{pil:9.1f}{f'{of_tensor:.1f}' if of_tensor else '-':>9}{best / ours:23.1f}x")


if __name__ == "__main__":
    main()
