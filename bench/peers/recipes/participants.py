"""The peers of run: each makes the rows of one recipe from JPEG files in memory, on one thread.

A participant is a class with a `title` and a method `rows(recipe)`, which returns a function that makes all rows of a list of files, or
None if it does not have all of the recipe. run lists the recipes. Every library draws for itself, by the same distributions where it has them; a comment says where
it does less, more or other work. What a row is differs as the library wants it: bytes or floats, the channels last or first.
"""
import io
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import albumentations
import cv2
import numpy
import torch
import torchvision
from albumentations import __version__ as albumentations_version
from PIL import Image
from PIL import __version__ as pillow_version
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import InterpolationMode, v2

GLOBAL_SCALE, LOCAL_SCALE = (0.4, 1.0), (0.05, 0.4)

torch.set_num_threads(1)
cv2.setNumThreads(0)


def _each(decode, views):
    """Returns a function that decodes each file once and makes its views of that."""

    def run(files):
        for data in files:
            image = decode(data)
            for view in views:
                view(image)

    return run


def letterbox(image):
    """Resizes the longer side to 640, and pads the image to a square."""
    height, width = v2.functional.get_size(image)
    scale = 640 / max(height, width)
    height, width = round(height * scale), round(width * scale)
    left, top = (640 - width) // 2, (640 - height) // 2
    resized = v2.functional.resize(image, [height, width])
    return v2.functional.pad(resized, [left, top, 640 - width - left, 640 - height - top], fill=114)


class TorchvisionStages:
    """torchvision v2 as people write it. `last`: what makes a row of the last image."""

    def __init__(self, last=()):
        self.last = list(last)

    def _chain(self, *stages):
        return v2.Compose([*stages, *self.last])

    def _dino(self, crop, blur, solarize):
        jitter = v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8)
        smooth = v2.RandomApply([v2.GaussianBlur(9, (0.1, 2.0))], p=blur)
        chain = [*crop, jitter, v2.RandomGrayscale(0.2), smooth]
        return self._chain(*chain, v2.RandomSolarize(128, p=0.2)) if solarize else self._chain(*chain)

    def views(self, recipe):
        flip = v2.RandomHorizontalFlip()
        crop = [v2.RandomResizedCrop(224), flip]
        wide = [v2.RandomResizedCrop(224, GLOBAL_SCALE, interpolation=InterpolationMode.BICUBIC), flip]
        narrow = [v2.RandomResizedCrop(96, LOCAL_SCALE, interpolation=InterpolationMode.BICUBIC), flip]
        if recipe == "crop":
            return [self._chain(*crop)]
        if recipe == "randaugment":
            return [self._chain(*crop, v2.RandAugment(2, 9))]
        if recipe == "simclr":
            jitter = v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8)
            blur = v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], p=0.5)
            return 2 * [self._chain(*crop, jitter, v2.RandomGrayscale(0.2), blur, v2.RandomSolarize(128, p=0.2))]
        if recipe == "dino_crops":
            return 2 * [self._chain(*wide)] + 8 * [self._chain(*narrow)]
        if recipe == "dino":
            return [self._dino(wide, 1.0, False), self._dino(wide, 0.1, True)] + 8 * [self._dino(narrow, 0.5, False)]
        if recipe == "augmix":
            return [self._chain(*crop, v2.AugMix())]
        if recipe == "detector":  # ColorJitter for random_hsv, which it does not have
            affine = v2.RandomAffine(0, (0.1, 0.1), (0.5, 1.5), interpolation=InterpolationMode.BILINEAR, fill=114)
            return [self._chain(letterbox, affine, v2.ColorJitter(0.4, 0, 0.7, 0.015), flip)]
        return [self._chain(v2.Resize(256), v2.CenterCrop(224))]


class TorchvisionPil:
    title = "torchvision v2, PIL"
    version = f"torchvision {torchvision.__version__}, Pillow {pillow_version}"

    def rows(self, recipe):
        views = TorchvisionStages([numpy.asarray]).views(recipe)
        return _each(lambda data: Image.open(io.BytesIO(data)).convert("RGB"), views)


class TorchvisionTensors:
    title = "torchvision v2, tensors"
    version = f"torch {torch.__version__}"

    def rows(self, recipe):
        def decode(data):
            return decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), ImageReadMode.RGB)

        return _each(decode, TorchvisionStages().views(recipe))


class Albumentations:
    """OpenCV decodes, and resizes without antialiasing, which is less work; `antialiased` makes smaller images by INTER_AREA instead. There
    is no RandAugment: SomeOf chooses the same operations, with amounts up to those of its magnitude."""

    version = f"albumentations {albumentations_version}, OpenCV {cv2.__version__}"

    def __init__(self, antialiased):
        self.title = "albumentations, antialiased" if antialiased else "albumentations"
        self.area = "image" if antialiased else None

    @staticmethod
    def _rand_augment():
        a = albumentations

        def warp(**change):
            return a.Affine(**change, interpolation=cv2.INTER_NEAREST, p=1)

        def jitter(**change):
            unchanged = {"brightness": (1, 1), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0)}
            return a.ColorJitter(**{**unchanged, **change}, p=1)

        degrees = 5.14  # a shear of 0.09
        around = (0.73, 1.27)
        return a.SomeOf([
            a.NoOp(p=1),
            warp(shear={"x": (-degrees, degrees)}), warp(shear={"y": (-degrees, degrees)}),
            warp(translate_px={"x": (-30, 30)}), warp(translate_px={"y": (-30, 30)}), warp(rotate=(-9, 9)),
            jitter(brightness=around), jitter(saturation=around), jitter(contrast=around),
            a.Sharpen(alpha=(0.27, 0.27), lightness=(1, 1), p=1),
            a.Posterize(num_bits=7, p=1), a.Solarize(threshold_range=(0.7, 0.7), p=1),
            a.AutoContrast(p=1), a.Equalize(p=1),
        ], n=2, replace=True, p=1)

    @staticmethod
    def _dino(crop, blur, solarize):
        a = albumentations
        return a.Compose([*crop, a.ColorJitter((0.6, 1.4), (0.6, 1.4), (0.8, 1.2), (-0.1, 0.1), p=0.8), a.ToGray(p=0.2),
                          a.GaussianBlur((9, 9), (0.1, 2.0), p=blur),
                          *([a.Solarize(threshold_range=(0.5, 0.5), p=0.2)] if solarize else [])])

    def _views(self, recipe):
        a = albumentations
        flip = a.HorizontalFlip(p=0.5)
        cubic = {"interpolation": cv2.INTER_CUBIC, "area_for_downscale": self.area}
        crop = [a.RandomResizedCrop((224, 224), area_for_downscale=self.area), flip]
        wide = [a.RandomResizedCrop((224, 224), GLOBAL_SCALE, **cubic), flip]
        narrow = [a.RandomResizedCrop((96, 96), LOCAL_SCALE, **cubic), flip]
        if recipe == "crop":
            return [a.Compose(crop)]
        if recipe == "randaugment":
            return [a.Compose([*crop, self._rand_augment()])]
        if recipe == "simclr":
            jitter = a.ColorJitter((0.2, 1.8), (0.2, 1.8), (0.2, 1.8), (-0.2, 0.2), p=0.8)
            return 2 * [a.Compose([*crop, jitter, a.ToGray(p=0.2), a.GaussianBlur((23, 23), (0.1, 2.0), p=0.5),
                                   a.Solarize(threshold_range=(0.5, 0.5), p=0.2)])]
        if recipe == "dino_crops":
            return 2 * [a.Compose(wide)] + 8 * [a.Compose(narrow)]
        if recipe == "dino":
            return [self._dino(wide, 1.0, False), self._dino(wide, 0.1, True)] + 8 * [self._dino(narrow, 0.5, False)]
        if recipe == "augmix":
            return None
        if recipe == "detector":  # its colours are added, random_hsv's are factors
            return [a.Compose([
                a.LongestMaxSize(640, area_for_downscale=self.area), a.PadIfNeeded(640, 640, fill=114),
                a.Affine(scale=(0.5, 1.5), translate_percent=(-0.1, 0.1), fill=114, p=1),
                a.HueSaturationValue((-3, 3), (-90, 90), (-50, 50), p=1), flip,
            ])]
        return [a.Compose([a.SmallestMaxSize(256, area_for_downscale=self.area), a.CenterCrop(224, 224)])]

    def rows(self, recipe):
        def decode(data):
            return cv2.cvtColor(cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)

        chains = self._views(recipe)
        if chains is None:
            return None
        views = [lambda image, view=view: view(image=image)["image"] for view in chains]
        return _each(decode, views)


def all_participants():
    """Yields the participants that are installed."""
    yield from (TorchvisionPil(), TorchvisionTensors(), Albumentations(False), Albumentations(True))
    try:
        from dali_recipes import Dali
    except ImportError as missing:
        print(f"DALI takes no part: {missing}")
    else:
        yield Dali()
