#!/usr/bin/python3
"""Makes the golden values of moved boxes, rotated boxes and keypoints with torchvision's v2 functional kernels, in float64.

  objects.txt           cases: what lies on a picture, the motions of 1 to 6 operations, and what torchvision makes of it
  versions_objects.txt  the versions that made them

A case is "case KIND WIDTH HEIGHT"; lines "object NUMBERS", of a box (4 numbers), a rotated box (8: its corners) or keypoints (x, y of each);
lines "move MOTION WIDTH HEIGHT NUMBERS", with the size after it and the numbers of Movement::values; and lines "moved PLACE NUMBERS" of
the objects that are kept. The matrices, and the sizes of rotated pictures, are those that torchvision gives to Pillow.

Each object is moved with copies that differ by less than a billionth of a pixel. A list after which the copies lie apart is drawn again:
what torchvision makes of it is a matter of rounding. So is a rotation for which torchvision gives boxes another picture's size than the
picture.

--check draws 10,000 lists of other numbers; OUT may be elsewhere, too.
"""
import argparse
import math
import os
import random

import PIL.Image
import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
OPERATIONS = ["crop", "resize", "flip", "vertical_flip", "rotate", "turn", "pad", "affine", "perspective", "clamp", "keep_centers",
              "sanitize"]


class Unclear(Exception):
    """A case that is drawn again."""


class Pillow:
    """Notes what torchvision asks Pillow for."""

    def __init__(self):
        self.asked = None
        PIL.Image.Image.transform = self.transform

    def transform(self, size, method, data, *_, **__):
        self.asked = (tuple(size), [float(n) for n in data])
        return PIL.Image.new("L", size)


class Case:
    COPIES = 9

    def __init__(self, rng, kind):
        self.rng, self.kind = rng, kind
        self.width, self.height = rng.randint(20, 640), rng.randint(20, 480)
        self.lines = [f"case {kind} {self.width} {self.height}"]
        numbers = [self.draw_object() for _ in range(rng.randint(1, 4))]
        self.lines += ["object " + text(each) for each in numbers]
        self.places = list(range(len(numbers)))
        near = lambda n, copy: n + (rng.uniform(-1e-9, 1e-9) if copy else 0)
        numbers = torch.tensor([[near(n, copy) for n in each] for copy in range(self.COPIES) for each in numbers], dtype=torch.float64)
        if kind == "keypoints":
            self.objects = tv_tensors.KeyPoints(numbers.reshape(len(numbers), -1, 2), canvas_size=(self.height, self.width))
        else:
            form = "XYXY" if kind == "boxes" else "XYXYXYXY"
            self.objects = tv_tensors.BoundingBoxes(numbers, format=form, canvas_size=(self.height, self.width))

    def draw_object(self):
        rng, width, height = self.rng, self.width, self.height
        inside = lambda: (rng.uniform(0, width), rng.uniform(0, height))
        if self.kind == "keypoints":
            return [round(n, 2) for _ in range(3) for n in inside()]
        w, h = rng.uniform(1, width / 2), rng.uniform(1, height / 2)
        if self.kind == "boxes":
            x, y = rng.uniform(0, width - w), rng.uniform(0, height - h)
            return [round(n, 2) for n in (x, y, x + w, y + h)]
        x, y = inside()
        angle = math.radians(rng.choice([0.0, 90.0, 180.0, rng.uniform(-180, 180), rng.uniform(-180, 180)]))
        cos, sin = math.cos(angle), math.sin(angle)
        corners = [(-w, -h), (w, -h), (w, h), (-w, h)]
        return [n for dx, dy in corners for n in (x + dx / 2 * cos + dy / 2 * sin, y - dx / 2 * sin + dy / 2 * cos)]

    def numbers(self):
        """The numbers of each object, for each copy."""
        return self.objects.as_subclass(torch.Tensor).reshape(self.COPIES, len(self.places), -1 if self.places else 4)

    def moved(self, motion, size, numbers=()):
        self.width, self.height = size
        self.lines.append(f"move {motion} {size[0]} {size[1]} {text(numbers, '.17g')}".rstrip())

    def apply(self, operation, pillow):
        getattr(self, operation)(pillow)
        numbers = self.numbers()
        if not numbers.isfinite().all() or (numbers.abs() > 1e6).any() or ((numbers - numbers[0]).abs() > 1e-5).any():
            raise Unclear

    def crop(self, _):
        rng = self.rng
        w, h = rng.randint(1, self.width), rng.randint(1, self.height)
        if rng.random() < 0.7:
            w, h = max(w, self.width // 2), max(h, self.height // 2)
        x, y = rng.randint(0, self.width - w), rng.randint(0, self.height - h)
        self.objects = F.crop(self.objects, y, x, h, w)
        self.moved("crop", (w, h), (x, y, w, h))

    def resize(self, _):
        size = self.rng.randint(10, 700), self.rng.randint(10, 700)
        # It multiplies by a tensor of the default type; rotations need that type to be float32.
        torch.set_default_dtype(torch.float64)
        self.objects = F.resize(self.objects, [size[1], size[0]])
        torch.set_default_dtype(torch.float32)
        self.moved("resize", size)

    def flip(self, _):
        self.objects = F.horizontal_flip(self.objects)
        self.moved("flip", (self.width, self.height))

    def vertical_flip(self, _):
        self.objects = F.vertical_flip(self.objects)
        self.moved("vertical_flip", (self.width, self.height))

    def rotate(self, pillow):
        rng = self.rng
        angle, expand = rng.uniform(-180, 180), rng.random() < 0.5
        center = [rng.uniform(0, self.width), rng.uniform(0, self.height)] if rng.random() < 0.3 else None
        F.rotate(PIL.Image.new("L", (self.width, self.height)), angle, expand=expand, center=center)
        size, matrix = pillow.asked
        self.objects = F.rotate(self.objects, angle, expand=expand, center=center)
        if tuple(self.objects.canvas_size) != (size[1], size[0]):
            raise Unclear
        self.moved("affine", size, matrix)

    def turn(self, _):
        quarters = self.rng.randint(1, 3)
        size = (self.height, self.width) if quarters % 2 else (self.width, self.height)
        self.objects = F.rotate(self.objects, 90 * quarters, expand=True)
        if tuple(self.objects.canvas_size) != (size[1], size[0]):
            raise Unclear
        self.moved("turn", size, (quarters,))

    def pad(self, _):
        left, top, right, bottom = sides = [self.rng.randint(0, 80) for _ in range(4)]
        self.objects = F.pad(self.objects, sides)
        self.moved("pad", (self.width + left + right, self.height + top + bottom), sides)

    def affine(self, pillow):
        rng = self.rng
        numbers = dict(angle=rng.uniform(-180, 180), translate=[rng.randint(-60, 60), rng.randint(-60, 60)],
                       scale=rng.uniform(0.3, 2), shear=[rng.uniform(-40, 40), rng.uniform(-40, 40)])
        size = self.width, self.height
        F.affine(PIL.Image.new("L", size), **numbers)
        self.objects = F.affine(self.objects, **numbers)
        self.moved("affine", size, pillow.asked[1])

    def perspective(self, pillow):
        near = lambda side: self.rng.randint(0, side // 4)
        far = lambda side: side - 1 - near(side)
        w, h = self.width, self.height
        if min(w, h) < 8:
            raise Unclear
        start = [[0, 0], [w - 1, 0], [w - 1, h - 1], [0, h - 1]]
        end = [[near(w), near(h)], [far(w), near(h)], [far(w), far(h)], [near(w), far(h)]]
        F.perspective(PIL.Image.new("L", (w, h)), start, end)
        coefficients = pillow.asked[1]
        self.objects = F.perspective(self.objects, None, None, coefficients=coefficients)
        self.moved("perspective", (w, h), coefficients)

    def clamp(self, _):
        if self.kind != "keypoints":
            self.objects = F.clamp_bounding_boxes(self.objects)
        self.moved("clamp", (self.width, self.height))

    def keep_centers(self, _):
        """RandomIoUCrop, which knows upright boxes alone."""
        if self.kind != "boxes":
            raise Unclear
        w, h = self.rng.randint(self.width // 3, self.width), self.rng.randint(self.height // 3, self.height)
        x, y = self.rng.randint(0, self.width - w), self.rng.randint(0, self.height - h)
        numbers = self.objects.as_subclass(torch.Tensor)
        centers = (numbers[:, :2] + numbers[:, 2:]) / 2
        lowest, highest = torch.tensor([x, y]), torch.tensor([x + w, y + h])
        within = ((centers > lowest) & (centers < highest)).all(dim=1)
        self.objects = F.crop(self.objects, y, x, h, w)
        self.objects[~within] = 0
        self.moved("keep_centers", (self.width, self.height), (x, y, w, h))
        self.moved("crop", (w, h), (x, y, w, h))

    def sanitize(self, _):
        """For upright boxes: of rotated ones, torchvision 0.29 takes the height from the wrong coordinates."""
        if self.kind != "boxes":
            raise Unclear
        least, area = self.rng.uniform(1, 30), self.rng.uniform(1, 900)
        self.objects, valid = F.sanitize_bounding_boxes(self.objects, min_size=least, min_area=area)
        valid = valid.reshape(self.COPIES, -1)
        if (valid != valid[0]).any():
            raise Unclear
        self.places = [place for place, is_valid in zip(self.places, valid[0].tolist()) if is_valid]
        self.moved("sanitize", (self.width, self.height), (least, area))

    def finish(self):
        numbers = self.numbers()[0].tolist()
        return self.lines + [f"moved {place} {text(each, '.6f')}" for place, each in zip(self.places, numbers)]


def text(numbers, form=".17g"):
    return " ".join(format(n, form) for n in numbers)


def draw_case(rng, pillow):
    """Returns the lines of a case."""
    kind = rng.choice(["boxes", "rotated", "keypoints"])
    while True:
        case = Case(rng, kind)
        try:
            for _ in range(rng.randint(1, 6)):
                case.apply(rng.choice(OPERATIONS), pillow)
            return case.finish()
        except Unclear:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", default=HERE)
    options = parser.parse_args()
    rng, pillow = random.Random(12 if options.check else 11), Pillow()
    with open(os.path.join(options.out, "objects.txt"), "w") as file:
        for _ in range(10_000 if options.check else 200):
            file.write("\n".join(draw_case(rng, pillow)) + "\n")
    with open(os.path.join(options.out, "versions_objects.txt"), "w") as file:
        file.write(f"torch {torch.__version__}\ntorchvision {torchvision.__version__}\nPillow {PIL.__version__}\n")


if __name__ == "__main__":
    main()
