#!/usr/bin/env python3
"""Makes the golden files of this folder with torchvision and Pillow (versions in versions.txt).

The random numbers are stoker's: this file has its own Philox, and torchvision's transforms get
its numbers instead of torch's. Everything else is done by torchvision and Pillow.
"""
import pathlib
from unittest import mock

import numpy as np
import PIL
import torch
import torchvision
import torchvision.transforms.functional as F
from PIL import Image
from torchvision import transforms as T

HERE = pathlib.Path(__file__).parent
MASK32, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
FLIP, CUTOUT_X, CUTOUT_Y, SHIFT_X, SHIFT_Y, ORDER, FACTOR = 64, 65, 66, 67, 68, 69, 70


class Key:
    """stoker::RandomKey for epochs below 2^32."""

    def __init__(self, seed, epoch, sample):
        self.seed, self.epoch, self.sample = seed, epoch, sample

    def bits(self, draw):
        c = [self.sample & MASK32, self.sample >> 32, self.epoch, draw]
        k = [self.seed & MASK32, self.seed >> 32]
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK32, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK32]
            k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
        return (c[0] << 32) | c[1]

    def uniform(self, draw, low=0.0, high=1.0):
        return low + (high - low) * ((self.bits(draw) >> 11) * 2.0**-53)

    def below(self, draw, bound):
        return (self.bits(draw) * bound) >> 64


class CropNumbers:
    """Replaces torch inside get_params: try t takes area, ratio, y, x from draws 4t ... 4t+3."""

    def __init__(self, key):
        self.key, self.uniforms, self.integers = key, 0, 0

    def empty(self, _):
        return self

    def uniform_(self, low, high):
        draw = 4 * (self.uniforms // 2) + self.uniforms % 2
        self.uniforms += 1
        return torch.tensor(self.key.uniform(draw, float(low), float(high)), dtype=torch.float64)

    def randint(self, low, high, size):
        draw = 4 * (self.uniforms // 2 - 1) + 2 + self.integers
        self.integers += 1
        return torch.tensor(low + self.key.below(draw, high - low))


def random_resized_crop(key, size, scale, ratio):
    numbers = CropNumbers(key)
    fake = mock.Mock(wraps=torch, empty=numbers.empty, randint=numbers.randint)
    fake.log = lambda t: torch.log(t.double())
    fake.tensor = lambda v: torch.tensor(v, dtype=torch.float64)
    image = mock.Mock()
    with mock.patch.object(T.transforms, "torch", fake), mock.patch.object(
        T.transforms.F, "get_dimensions", lambda _: (3, size[1], size[0])
    ):
        top, left, height, width = T.RandomResizedCrop.get_params(image, scale, ratio)
    return (left, top, width, height), numbers.uniforms // 2  # the box, the tries


def write_random_resized_crops():
    lines = ["# width height scale_min scale_max ratio_min ratio_max seed epoch sample x y width height"]
    sizes = [(500, 375), (375, 500), (224, 224), (32, 32), (1, 1), (2, 3), (1000, 30), (30, 1000), (7, 4000)]
    ranges = [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.35, 1.0), (3 / 4, 4 / 3)), ((0.9, 1.0), (1.8, 2.0)),
              ((1.0, 1.0), (1.0, 1.0)), ((0.01, 0.02), (0.1, 10.0)), ((0.95, 1.0), (0.2, 0.3))]
    for size in sizes:
        for scale, ratio in ranges:
            for i in range(12):
                seed, epoch, sample = i * 0x123456789ABCDEF & MASK64, i * i, i * 7919 + (i << 33)
                box, _ = random_resized_crop(Key(seed, epoch, sample), size, scale, ratio)
                numbers = [*size, *map(repr, scale), *map(repr, ratio), seed, epoch, sample, *box]
                lines.append(" ".join(map(str, numbers)))
    size, scale, ratio = (100, 30), (0.7, 1.0), (0.5, 4.0)  # a try fits sometimes
    for sample in range(1000):
        box, tries = random_resized_crop(Key(1, 2, sample), size, scale, ratio)
        if tries >= 9:
            lines.append(" ".join(map(str, [*size, *scale, *ratio, 1, 2, sample, *box])))
    (HERE / "random_resized_crop.txt").write_text("\n".join(lines) + "\n")


def write_resize_center():
    """Runs Resize and CenterCrop on images and notes the size and the corner they use."""
    lines = ["# width height short out_width out_height resized_width resized_height x y"]
    sides = [1, 2, 3, 31, 32, 33, 47, 64, 97, 223, 224, 225, 255, 256, 257, 375, 500, 641]
    for short, out in [(256, (224, 224)), (232, (224, 224)), (36, (32, 32)), (40, (33, 40)), (32, (32, 32))]:
        for width in sides:
            for height in sides:
                if max(width, height) > 60 * min(width, height):
                    continue
                resized = F.resize(Image.new("L", (width, height)), short)
                with mock.patch.object(F, "crop") as crop:
                    F.center_crop(resized, (out[1], out[0]))
                _, top, left, _, _ = crop.call_args.args
                numbers = [width, height, short, *out, *resized.size, left, top]
                lines.append(" ".join(map(str, numbers)))
    (HERE / "resize_center.txt").write_text("\n".join(lines) + "\n")


def make_photo():
    """Smooth colours, an edge and noise, so that all crops differ."""
    y, x = np.mgrid[0:97, 0:131]
    noise = np.random.default_rng(1).integers(0, 40, (97, 131, 3))
    image = np.stack([x * 1.6, y * 2.1, 120 + 60 * np.sin((x + 2 * y) / 9)], -1) + noise
    image[(x - 60) ** 2 + (y - 50) ** 2 < 500] = [20, 160, 230]
    Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(HERE / "photo.jpg", quality=90)


def jitter(image, key, strengths):
    order, permutation, result = [0, 1, 2, 3], key.below(ORDER, 24), []
    while order:
        result.append(order.pop(permutation % len(order)))
        permutation //= len(order) + 1
    adjust = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue]
    for op in result:
        s = strengths[op]
        if s > 0:
            low, high = (-s, s) if op == 3 else (max(0.0, 1 - s), 1 + s)
            image = adjust[op](image, float(np.float32(key.uniform(FACTOR + op, low, high))))
    return image


def flipped(image, key):
    return F.hflip(image) if key.bits(FLIP) >> 63 else image


def write_rows():
    """Writes whole rows of photo.jpg, with the cases of augmenter_test.cc; (height, width, 3) u8 each."""
    photo = Image.open(HERE / "photo.jpg").convert("RGB")
    rows = []
    for i in range(6):  # random_resized
        key = Key(5, 3, i)
        (x, y, width, height), _ = random_resized_crop(key, photo.size, (0.08, 1.0), (3 / 4, 4 / 3))
        image = F.resized_crop(photo, y, x, height, width, (24, 32), T.InterpolationMode.BILINEAR)
        pixels = np.array(jitter(flipped(image, key), key, (0.4, 0.5, 0.6, 0.1)))
        left, top = key.below(CUTOUT_X, 32 - 8 + 1), key.below(CUTOUT_Y, 24 - 8 + 1)
        pixels[top : top + 8, left : left + 8] = 127
        rows.append(pixels)
    image = F.center_crop(F.resize(photo, 40, T.InterpolationMode.BICUBIC), (24, 32))  # resize_center
    rows.append(np.array(image))
    for mode in ["reflect", "constant"]:  # pad_random, pad 4
        for i in range(4):
            key = Key(6, 0, i)
            image = np.array(F.resize(photo, (24, 32)))
            padded = np.pad(image, ((4, 4), (4, 4), (0, 0)), mode)
            left, top = key.below(SHIFT_X, 9), key.below(SHIFT_Y, 9)
            rows.append(np.array(flipped(Image.fromarray(padded[top : top + 24, left : left + 32]), key)))
    (HERE / "rows.bin").write_bytes(np.stack(rows).tobytes())


if __name__ == "__main__":
    assert [Key(0, 0, 0).bits(0)] == [0x6627E8D5E169C58D]
    write_random_resized_crops()
    write_resize_center()
    make_photo()
    write_rows()
    versions = f"torchvision {torchvision.__version__}, torch {torch.__version__}, Pillow {PIL.__version__}\n"
    (HERE / "versions.txt").write_text(versions)
