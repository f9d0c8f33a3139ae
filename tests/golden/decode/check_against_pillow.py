#!/usr/bin/python3
"""Compares stoker's decode with Pillow, byte for byte, over a folder of images.

For every image draws random crops (RandomResizedCrop-like, Resize + CenterCrop, arbitrary boxes
without a resize, extreme sizes), gets the same pixels from `decode_rows` (tests/decode) and from
Pillow, and reports how many differ. The policy is that of the Pillow that runs this: `exact` from
13 on, `exact-pillow12` before. Crops that only 12.2 and 12.3 resize vertically first are left out:
`exact-pillow12` follows the older versions there.

  check_against_pillow.py --decoder build/tests/decode/decode_rows --data DIR [--crops N] [--limit N]
"""
import argparse
import os
import random
import subprocess
import sys

import PIL
from PIL import Image, ImageOps

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_pass_order import is_vertical_first_before_13

# In the order of stoker's numbers (decode/crop_spec.h).
FILTERS = [
    Image.Resampling.BILINEAR,
    Image.Resampling.BICUBIC,
    Image.Resampling.NEAREST,
    Image.Resampling.BOX,
    Image.Resampling.HAMMING,
    Image.Resampling.LANCZOS,
]
EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff")


def policy_of_this_pillow():
    return "exact" if int(PIL.__version__.split(".")[0]) >= 13 else "exact-pillow12"


def find_images(root):
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            if name.lower().endswith(EXTENSIONS):
                yield os.path.join(folder, name)


def draw_spec(rng, width, height):
    """Returns (crop box, resized size, window, flip, filter), as stoker's CropSpec."""
    kind = rng.randrange(10)
    flip, resample = rng.randrange(2), rng.choice([0, 0, 0, 1])
    if kind < 5:  # RandomResizedCrop
        w = max(1, min(width, int(width * rng.uniform(0.25, 1.0) ** 0.5 * rng.uniform(0.3, 1))))
        h = max(1, min(height, int(height * rng.uniform(0.25, 1.0) ** 0.5 * rng.uniform(0.3, 1))))
        size = (rng.choice([224, 128, 96, 32]),) * 2
    elif kind < 7:  # Resize(short side) + CenterCrop
        short = rng.choice([256, 232, 160])
        out = short * 7 // 8
        if width <= height:
            size = (short, int(short * height / width))
        else:
            size = (int(short * width / height), short)
        left, top = int(round((size[0] - out) / 2.0)), int(round((size[1] - out) / 2.0))
        return (0, 0, width, height), size, (left, top, out, out), flip, resample
    else:
        w, h = rng.randint(1, width), rng.randint(1, height)
        if kind == 7:  # only a crop
            size = (w, h)
        elif kind == 8:  # only one axis
            size = (w, rng.randint(1, 300)) if rng.randrange(2) else (rng.randint(1, 300), h)
        else:
            size = (rng.randint(1, 600), rng.randint(1, 600))
    x, y = rng.randint(0, width - w), rng.randint(0, height - h)
    if rng.randrange(3) == 0:
        ww, wh = rng.randint(1, size[0]), rng.randint(1, size[1])
        window = (rng.randint(0, size[0] - ww), rng.randint(0, size[1] - wh), ww, wh)
    else:
        window = (0, 0) + size
    return (x, y, w, h), size, window, flip, resample


def pillow_pixels(image, spec):
    (x, y, w, h), size, (wx, wy, ww, wh), flip, resample = spec
    out = image.crop((x, y, x + w, y + h)).resize(size, FILTERS[resample])
    out = out.crop((wx, wy, wx + ww, wy + wh))
    if flip:
        out = out.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return out.tobytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--decoder", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--crops", type=int, default=10, help="per image")
    parser.add_argument("--limit", type=int, default=0, help="images; 0 = all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--any-filter", action="store_true", help="all six, equally often")
    parser.add_argument("--exif", action="store_true", help="apply the EXIF orientation")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    policy = policy_of_this_pillow()
    decoder = subprocess.Popen([args.decoder, policy], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    checked = different = refused = left_out = 0
    paths = list(find_images(args.data))
    rng.shuffle(paths)
    for path in paths[: args.limit or None]:
        try:
            image = Image.open(path)
            if args.exif:
                image = ImageOps.exif_transpose(image)
            image = image.convert("RGB")
        except (OSError, SyntaxError, ValueError) as error:
            print(f"Pillow refuses {path}: {error}")
            continue
        for _ in range(args.crops):
            crop, size, window, flip, resample = draw_spec(rng, *image.size)
            if args.any_filter:
                resample = rng.randrange(len(FILTERS))
            spec = crop, size, window, flip, resample
            if policy == "exact-pillow12" and is_vertical_first_before_13(*crop[2:], *size):
                left_out += 1
                continue
            numbers = [*crop, *size, *window, flip, resample, int(args.exif)]
            decoder.stdin.write((" ".join(map(str, numbers)) + " " + path + "\n").encode())
            decoder.stdin.flush()
            code = decoder.stdout.read(1)
            if not code:
                sys.exit(f"the decoder ended at {path} {spec}")
            if code[0] != 0:
                refused += 1
                break
            ours = decoder.stdout.read(window[2] * window[3] * 3)
            theirs = pillow_pixels(image, spec)
            checked += 1
            if ours != theirs:
                different += 1
                count = sum(a != b for a, b in zip(ours, theirs))
                if different <= 10:
                    print(f"DIFFERENT {path} {image.size} {spec}: {count} of {len(ours)} bytes")
    print(
        f"Pillow {PIL.__version__}, {policy}: {checked} crops of {len(paths[: args.limit or None])} files "
        f"compared, {different} different, {refused} files refused by stoker, {left_out} crops left out"
    )
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
