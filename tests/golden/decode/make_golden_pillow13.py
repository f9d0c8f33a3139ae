#!/usr/bin/python3
"""Makes the golden values of tests/decode with Pillow 13, for the policy `exact`.

Reads images/, images.txt and resize.txt, which make_golden.py made with an older Pillow, and writes
images_pillow13.txt and resize_pillow13.txt: the same lines with the hashes of the Pillow that runs
this, and after about every third one another crop, which is resized vertically first. Prints how
many hashes changed, and stops if one changed although both Pillows resize in the same order.

  python3 -m venv V && V/bin/pip install pillow==13.0.0 numpy && V/bin/python make_golden_pillow13.py
"""
import os
import random
import sys

import PIL
from PIL import Image, ImageOps

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_against_pillow import draw_spec, pillow_pixels, policy_of_this_pillow
from check_pass_order import is_vertical_first
from make_golden import HERE, fnv1a, noise, spec_text


def read_spec(numbers):
    crop, size, window = tuple(numbers[0:4]), tuple(numbers[4:6]), tuple(numbers[6:10])
    return crop, size, window, numbers[10], numbers[11]


def open_image(before, after):
    """Opens the image of a line, from the words before and after the spec."""
    image = Image.open(os.path.join(HERE, "images", before[0]))
    return (ImageOps.exif_transpose(image) if after == ["1"] else image).convert("RGB")


def make_noise(before, after):
    return noise(*map(int, before))


def goes_vertical_first(spec):
    (_, _, width, height), (out_width, out_height) = spec[:2]
    return width != out_width and is_vertical_first(width, height, out_width, out_height)


def draw_vertical_first(rng, size):
    """Returns a spec that is resized vertically first; None if the image is too low for one."""
    specs = (draw_spec(rng, *size) for _ in range(300))
    return next(filter(goes_vertical_first, specs), None)


def convert(name, spec_at, open_pixels):
    rng = random.Random(13)
    changed = added = 0
    lines = open(os.path.join(HERE, f"{name}.txt")).read().splitlines()
    with open(os.path.join(HERE, f"{name}_pillow13.txt"), "w") as file:
        for line in lines:
            *words, hash_before = line.split()
            if hash_before == "unsupported":
                continue
            before, after = words[:spec_at], words[spec_at + 12 :]
            spec = read_spec([int(word) for word in words[spec_at : spec_at + 12]])
            image = open_pixels(before, after)
            hash_now = fnv1a(pillow_pixels(image, spec))
            file.write(" ".join([*words, hash_now]) + "\n")
            if hash_now != hash_before:
                changed += 1
                if not goes_vertical_first(spec):
                    sys.exit(f"{name}.txt: not for the order of the passes another hash: {line}")
            vertical = draw_vertical_first(rng, image.size) if rng.randrange(3) == 0 else None
            if vertical:
                added += 1
                hash_now = fnv1a(pillow_pixels(image, vertical))
                file.write(" ".join([*before, spec_text(vertical), *after, hash_now]) + "\n")
    print(f"{name}: {changed} of {len(lines)} lines are others, {added} were added")


def main():
    if policy_of_this_pillow() != "exact":
        sys.exit(f"this is Pillow {PIL.__version__}, must be 13 or later")
    convert("images", 1, open_image)
    convert("resize", 3, make_noise)
    with open(os.path.join(HERE, "versions_pillow13.txt"), "w") as file:
        file.write(f"Pillow {PIL.__version__}\n")


if __name__ == "__main__":
    main()
