"""What is done to the pixels of a row: a list of stages, in any order, joined by `|`.

    from stoker import augment
    train = augment.random_resized_crop(224) | augment.random_augment(2, 9) | augment.flip()
    loader = stoker.Loader(source, augment=train)

The functions of this module are the stages of the C++ library, with its names, parameters and
defaults; a list is its text, which Loader(augment=) and `stoker train --augment` take, too:

    augment="random_resized_crop(224) | random_augment | flip"

The pixels are those of torchvision's transforms on PIL images. Every random number is drawn only
from (seed, epoch, sample id): Batch.draws says for each row what was drawn. `p` is the probability
with which a stage is applied. A size is a number of pixels, or (height, width); None: the Loader's
size. A colour is a grey, or (red, green, blue), 0 to 255. `filter` is one of 'bilinear', 'bicubic',
'nearest', 'box', 'hamming' and 'lanczos', antialiased as in Pillow; `interpolation` is one of
'nearest', 'bilinear' and 'bicubic'; `mode` is one of 'constant', 'edge', 'reflect' and 'symmetric'.

ValueError, from every function: the stage, the argument, its value and what it must be.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Real
from typing import Any

from stoker import _core
from stoker._choice import height_and_width

__all__ = [
    "Augment",
    "affine",
    "aug_mix",
    "auto_augment",
    "autocontrast",
    "center_crop",
    "color_jitter",
    "corner_crop",
    "cutout",
    "draw",
    "equalize",
    "explain",
    "flip",
    "gaussian_blur",
    "grayscale",
    "invert",
    "mix",
    "operation",
    "pad",
    "perspective",
    "pillow_blur",
    "posterize",
    "random_apply",
    "random_augment",
    "random_choice",
    "random_crop",
    "random_erasing",
    "random_order",
    "random_resized_crop",
    "resize",
    "resize_center_crop",
    "rotate",
    "sharpness",
    "solarize",
    "trivial_augment_wide",
    "vertical_flip",
    "views",
]

Size = int | tuple[int, int] | None
Range = float | tuple[float, float]
Colour = int | tuple[int, int, int]


class Augment:
    """A list of stages: its text, in the form that the library itself writes. repr() gives the
    text; equal texts are equal, and an Augment can be pickled. ValueError: a text that is no list
    of stages, and why.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str):
        if not isinstance(text, str):
            raise TypeError(f"augment is {text!r}, must be a text such as 'resize(64) | flip'")
        self._text = _core.canonical_stages(text)

    def __or__(self, other: object) -> Augment:
        """These stages, and then the other ones."""
        if not isinstance(other, Augment):
            return NotImplemented
        return Augment(f"{self._text} | {other._text}")

    @property
    def size(self) -> tuple[int, int] | None:
        """(height, width) of every row; None: the Loader or the images say it."""
        return _core.own_size(self._text)

    @property
    def views(self) -> int:
        """How many rows a sample gives: 1, but for views()."""
        return _core.view_count(self._text)

    def __repr__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Augment) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> Any:
        return Augment, (self._text,)


def _value(value: Any) -> str:
    """Returns the value in the grammar. What the grammar lacks becomes a text in quotes, which the
    stage then refuses with its own words.
    """
    if isinstance(value, Augment):
        return repr(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value and all(isinstance(each, Real) for each in value):
            return f"({', '.join(map(_value, value))})"
    text = str(value)
    quote = '"' if "'" in text else "'"
    return f"{quote}{text.replace(quote, '')}{quote}"


def _stage(name: str, *lists: Any, **arguments: Any) -> Augment:
    given = [_value(each) for each in lists]
    given += [f"{key}={_value(value)}" for key, value in arguments.items() if value is not None]
    return Augment(f"{name}({', '.join(given)})")


def random_resized_crop(
    size: Size = None,
    scale: Range = (0.08, 1),
    ratio: Range = (3 / 4, 4 / 3),
    filter: str = "bilinear",
) -> Augment:
    """torchvision's RandomResizedCrop: a box of a random share of the area (`scale`) and of random
    width / height (`ratio`), resized.
    """
    return _stage("random_resized_crop", size=size, scale=scale, ratio=ratio, filter=filter)


def resize_center_crop(short: int = 0, size: Size = None, filter: str = "bilinear") -> Augment:
    """Resize(short) and CenterCrop(size) of torchvision: for evaluation.

    short: the short side after the resize, at least the row's longer side; 0: that one times
    256 / 224.
    """
    return _stage("resize_center_crop", short=short, size=size, filter=filter)


def resize(size: Size = None, filter: str = "bilinear", max_size: int = 0) -> Augment:
    """torchvision's Resize: one number is the short side, and the longer one is at most `max_size`
    (0: any); (height, width) are both; None: the Loader's size, whatever the image's shape.
    """
    return _stage("resize", size=size, filter=filter, max_size=max_size)


def center_crop(size: Size = None) -> Augment:
    """torchvision's CenterCrop: a smaller image gets black sides."""
    return _stage("center_crop", size=size)


def corner_crop(corner: str, size: Size = None) -> Augment:
    """One corner of the image: 'top_left', 'top_right', 'bottom_left' or 'bottom_right'. The four
    and the centre are torchvision's FiveCrop:

        views(*(resize(256) | corner_crop(c, 224) for c in corners), resize(256) | center_crop(224))
    """
    return _stage("corner_crop", corner=corner, size=size)


def random_crop(
    size: Size = None,
    padding: int | Sequence[int] = 0,
    mode: str = "constant",
    fill: Colour = 0,
    pad_if_needed: bool = False,
) -> Augment:
    """torchvision's RandomCrop: a box at a random place, after padding as by pad()."""
    return _stage(
        "random_crop",
        size=size,
        padding=padding,
        mode=mode,
        fill=fill,
        pad_if_needed=pad_if_needed,
    )


def pad(padding: int | Sequence[int], fill: Colour = 0, mode: str = "constant") -> Augment:
    """torchvision's Pad: pixels at all sides, or (left and right, top and bottom), or (left, top,
    right, bottom).
    """
    return _stage("pad", padding=padding, fill=fill, mode=mode)


def flip(alternating: bool = False, p: float = 0.5) -> Augment:
    """Mirrors left to right. alternating: at random in epoch 0, then the other way in every later
    epoch.
    """
    return _stage("flip", alternating=alternating, p=p)


def vertical_flip(p: float = 0.5) -> Augment:
    """Mirrors top to bottom."""
    return _stage("vertical_flip", p=p)


def rotate(
    degrees: Range,
    interpolation: str = "nearest",
    expand: bool = False,
    center: tuple[float, float] | None = None,
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """torchvision's RandomRotation: from -degrees to degrees, or between two; counterclockwise.

    expand: the image grows to hold all of it. center: (x, y) in pixels; None: the middle.
    """
    return _stage(
        "rotate",
        degrees=degrees,
        interpolation=interpolation,
        expand=expand,
        center=center,
        fill=fill,
        p=p,
    )


def affine(
    degrees: Range,
    translate: tuple[float, float] = (0, 0),
    scale: Range = (1, 1),
    shear: float | Sequence[float] = 0,
    interpolation: str = "nearest",
    fill: Colour = 0,
    center: tuple[float, float] | None = None,
    p: float = 1,
) -> Augment:
    """torchvision's RandomAffine.

    translate: at most so much of the width and of the height. shear: degrees along x, from -shear
    to shear; (least, most) of x; or (least, most of x, least, most of y).
    """
    return _stage(
        "affine",
        degrees=degrees,
        translate=translate,
        scale=scale,
        shear=shear,
        interpolation=interpolation,
        fill=fill,
        center=center,
        p=p,
    )


def perspective(
    distortion_scale: float = 0.5,
    interpolation: str = "bilinear",
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """torchvision's RandomPerspective: each corner moves by up to this share of half a side."""
    return _stage(
        "perspective",
        distortion_scale=distortion_scale,
        interpolation=interpolation,
        fill=fill,
        p=p,
    )


def color_jitter(
    brightness: Range = 0,
    contrast: Range = 0,
    saturation: Range = 0,
    hue: Range = 0,
    p: float = 1,
) -> Augment:
    """torchvision's ColorJitter: a number s is (max(0, 1 - s), 1 + s), of hue (-s, s); 0: off."""
    return _stage(
        "color_jitter",
        brightness=brightness,
        contrast=contrast,
        saturation=saturation,
        hue=hue,
        p=p,
    )


def grayscale(p: float = 1) -> Augment:
    """Grey, in three equal channels."""
    return _stage("grayscale", p=p)


def invert(p: float = 1) -> Augment:
    """The negative."""
    return _stage("invert", p=p)


def posterize(bits: int, p: float = 1) -> Augment:
    """Only the highest bits of each byte, 0 to 8."""
    return _stage("posterize", bits=bits, p=p)


def solarize(threshold: float, p: float = 1) -> Augment:
    """Bytes of at least the threshold are inverted."""
    return _stage("solarize", threshold=threshold, p=p)


def equalize(p: float = 1) -> Augment:
    """A flat histogram of each channel: Pillow's ImageOps.equalize."""
    return _stage("equalize", p=p)


def autocontrast(p: float = 1) -> Augment:
    """Each channel stretched to 0 to 255: Pillow's ImageOps.autocontrast."""
    return _stage("autocontrast", p=p)


def sharpness(factor: Range, p: float = 1) -> Augment:
    """0: smooth, 1: unchanged, 2: sharper; one factor or a range of them."""
    return _stage("sharpness", factor=factor, p=p)


def gaussian_blur(
    kernel_size: int | tuple[int, int], sigma: Range = (0.1, 2), p: float = 1
) -> Augment:
    """torchvision's GaussianBlur with an odd kernel (height and width of a pair), and a sigma from
    a range.
    """
    return _stage("gaussian_blur", kernel_size=kernel_size, sigma=sigma, p=p)


def pillow_blur(radius: Range = (0.1, 2), p: float = 1) -> Augment:
    """Pillow's ImageFilter.GaussianBlur, as SimCLR and DINO use it."""
    return _stage("pillow_blur", radius=radius, p=p)


def random_apply(stages: Augment, p: float = 0.5) -> Augment:
    """All of a list, or none of it: random_apply(color_jitter(0.4) | grayscale(), p=0.8)."""
    return _stage("random_apply", stages, p=p)


def random_choice(
    *stages: Augment, weights: Sequence[float] | None = None, p: float = 1
) -> Augment:
    """One of several lists, by equal chances or by weights."""
    return _stage("random_choice", *stages, weights=weights, p=p)


def random_order(stages: Augment, p: float = 1) -> Augment:
    """A list of stages in a random order."""
    return _stage("random_order", stages, p=p)


def random_augment(
    num_ops: int = 2,
    magnitude: int = 9,
    num_magnitude_bins: int = 31,
    interpolation: str = "nearest",
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """torchvision's RandAugment: some operations of 14, all with one magnitude."""
    return _stage(
        "random_augment",
        num_ops=num_ops,
        magnitude=magnitude,
        num_magnitude_bins=num_magnitude_bins,
        interpolation=interpolation,
        fill=fill,
        p=p,
    )


def trivial_augment_wide(
    num_magnitude_bins: int = 31,
    interpolation: str = "nearest",
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """torchvision's TrivialAugmentWide: one operation of 14 with a random magnitude."""
    return _stage(
        "trivial_augment_wide",
        num_magnitude_bins=num_magnitude_bins,
        interpolation=interpolation,
        fill=fill,
        p=p,
    )


def auto_augment(
    policy: str = "imagenet", interpolation: str = "nearest", fill: Colour = 0, p: float = 1
) -> Augment:
    """torchvision's AutoAugment: one of 25 learned pairs of operations; policy: 'imagenet',
    'cifar10' or 'svhn'.
    """
    return _stage("auto_augment", policy=policy, interpolation=interpolation, fill=fill, p=p)


def aug_mix(
    severity: int = 3,
    mixture_width: int = 3,
    chain_depth: int = -1,
    alpha: float = 1,
    all_ops: bool = True,
    interpolation: str = "bilinear",
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """AugMix: a blend of the image with chains of operations on it. torchvision runs these on
    tensors, stoker as Pillow does.
    """
    return _stage(
        "aug_mix",
        severity=severity,
        mixture_width=mixture_width,
        chain_depth=chain_depth,
        alpha=alpha,
        all_ops=all_ops,
        interpolation=interpolation,
        fill=fill,
        p=p,
    )


def cutout(size: int, value: Colour = 127, p: float = 1) -> Augment:
    """A square of one colour, somewhere inside the image."""
    return _stage("cutout", size=size, value=value, p=p)


def random_erasing(
    p: float = 0.5,
    scale: Range = (0.02, 0.33),
    ratio: Range = (0.3, 3.3),
    value: Colour = 0,
    noise: bool = False,
    mean: float | Sequence[float] = (0.485, 0.456, 0.406),
    std: float | Sequence[float] = (0.229, 0.224, 0.225),
) -> Augment:
    """torchvision's RandomErasing: a box of one colour, or of noise with a mean and deviation of
    pixels / 255.
    """
    return _stage(
        "random_erasing",
        p=p,
        scale=scale,
        ratio=ratio,
        value=value,
        noise=noise,
        mean=mean,
        std=std,
    )


def operation(path: str | os.PathLike[str], p: float = 1) -> Augment:
    """Your own operation on the pixels, whatever size they have there: a shared library, built from
    C++ with the headers of this version of stoker (tests/consumer/README.md). RuntimeError: the
    file does not exist, is no operation, or is for another version.
    """
    return _stage("operation", path=os.fspath(path), p=p)


def mix(
    mixup: float = 0,
    cutmix: float = 0,
    p: float = 1,
    switch_p: float = 0.5,
    per_batch: bool = False,
) -> Augment:
    """Mixup and CutMix of each row with its neighbour in the epoch; the last stage of a list.

    mixup, cutmix: alpha of the distribution Beta(alpha, alpha) of the shares; 0: off. switch_p: the
    probability of CutMix where both are on. per_batch: one draw for all rows of a batch.
    Batch.targets then has mix_label, the partner's label, and mix_weight, the share of the row's
    own: loss = mix_weight * loss(label) + (1 - mix_weight) * loss(mix_label). The batch size must
    be even.
    """
    return _stage("mix", mixup=mixup, cutmix=cutmix, p=p, switch_p=switch_p, per_batch=per_batch)


def views(*stages: Augment, counts: int | Sequence[int] | None = None) -> Augment:
    """Several rows of each sample, of one reading and decoding, as DINO and SimCLR need them: so
    many (`counts`, by default 1) of each list. It stands alone. Batch.views has them.

        views(random_resized_crop(224) | flip(), random_resized_crop(96) | flip(), counts=(2, 8))
    """
    return _stage("views", *stages, counts=counts)


def draw(
    augment: Augment | str,
    source: int | tuple[int, int],
    *,
    seed: int,
    epoch: int = 0,
    sample: int = 0,
    size: Size = None,
    view: int = 0,
) -> str:
    """Returns what a Loader with this seed does to a sample in an epoch: steps with all their
    numbers, such as "crop(x=3, y=5, width=111, height=77) | resize(...) | flip".

    source: (height, width) of the sample's image. size: as for the Loader. ValueError: also for an
    image that this cannot be done to.
    """
    spec = make_spec(augment, size, None)
    return spec.draw(height_and_width("source", source), seed, epoch, sample, view)


def explain(augment: Augment | str, *, size: Size = None) -> list[str]:
    """Returns lines that say which stages are done while an image is decoded, and which of the
    others are joined.
    """
    return make_spec(augment, size, None).explain()


def make_spec(
    augment: Augment | str | None, size: object, raw_size: tuple[int, int] | None
) -> _core.AugmentSpec:
    """Returns the C++ settings of a Loader. augment None: the whole image if pixels are raw,
    otherwise resize and centre crop. size None: the list's own, else that of raw pixels, else 224.
    """
    if augment is None:
        augment = "resize_center_crop" if raw_size is None else "resize"
    if isinstance(augment, str):
        augment = Augment(augment)
    if not isinstance(augment, Augment):
        raise TypeError(
            f"augment is {augment!r}, must be stages of stoker.augment, joined by |, or their text"
        )
    if size is None:
        size = augment.size or raw_size or 224
    return _core.AugmentSpec(repr(augment), height_and_width("size", size))
