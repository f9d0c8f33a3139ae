"""Augmentation of the pixels of a row: one crop, and operations that are joined to it by `|`:

    stoker.random_resized_crop() | stoker.flip() | stoker.color_jitter(brightness=0.4)

The order of execution is fixed, whatever the order of the `|`: crop and resize, shift, flip, colour
jitter, cutout, own operations. Every random number is drawn only from (seed, epoch, sample id).
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from stoker import _core
from stoker._choice import FILTERS, PAD_MODES, choose, height_and_width


class Augment:
    """Settings of an augmentation; join them with `|`. The functions of this module make them."""

    __slots__ = ("_fields", "_names")

    def __init__(self, names: Mapping[str, str], fields: Mapping[str, Any]):
        self._names = MappingProxyType(dict(names))  # the call that set each field
        self._fields = MappingProxyType(dict(fields))

    def __or__(self, other: object) -> Augment:
        """Joins both. ValueError if both are of the same kind, for example two crops."""
        if not isinstance(other, Augment):
            return NotImplemented
        for kind in self._names.keys() & other._names.keys():
            raise ValueError(
                f"two of one kind ({kind}): {self._names[kind]} and {other._names[kind]}"
            )
        return Augment({**self._names, **other._names}, {**self._fields, **other._fields})

    def __repr__(self) -> str:
        return " | ".join(f"stoker.{name}" for name in self._names.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Augment) and dict(self._fields) == dict(other._fields)

    def __hash__(self) -> int:
        return hash(repr(self))


def _whole(field: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{field} is {value!r}, must be a whole number") from None


def _real(field: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{field} is {value!r}, must be a number") from None


def _two(field: str, values: Any) -> tuple[float, float]:
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != 2:
        raise ValueError(f"{field} is {values!r}, must be two numbers: (least, most)")
    return _real(field, values[0]), _real(field, values[1])


def _made(kind: str, call: str, **fields: Any) -> Augment:
    return Augment({kind: call}, fields)


def random_resized_crop(
    scale: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    filter: str = "bilinear",
) -> Augment:
    """Like torchvision's RandomResizedCrop: a box of a random share of the area (`scale`) and of
    random width / height (`ratio`), resized to the Loader's size, antialiased as in Pillow.

    filter: 'bilinear' or 'bicubic'.
    """
    scale_min, scale_max = _two("scale", scale)
    ratio_min, ratio_max = _two("ratio", ratio)
    return _made(
        "crop",
        f"random_resized_crop(scale={scale}, ratio={ratio}, filter={filter!r})",
        crop=_core.CropMode.random_resized,
        scale_min=scale_min,
        scale_max=scale_max,
        ratio_min=ratio_min,
        ratio_max=ratio_max,
        filter=choose("filter", filter, FILTERS),
    )


def resize_center_crop(short: int = 0, filter: str = "bilinear") -> Augment:
    """Like torchvision's Resize(short) and CenterCrop(size): for evaluation.

    short: the short side after the resize, in pixels, at least the Loader's longer side; 0: the
    Loader's longer side times 256 / 224.
    """
    return _made(
        "crop",
        f"resize_center_crop(short={short}, filter={filter!r})",
        crop=_core.CropMode.resize_center,
        resize_short=_whole("short", short),
        filter=choose("filter", filter, FILTERS),
    )


def pad_random_crop(pad: int = 4, mode: str = "reflect") -> Augment:
    """The whole image (resized to the Loader's size if it has another one), padded and shifted by
    up to `pad` pixels, as usual in training on CIFAR. mode: 'reflect' or 'zero'.
    """
    return _made(
        "crop",
        f"pad_random_crop(pad={pad}, mode={mode!r})",
        crop=_core.CropMode.pad_random,
        pad=_whole("pad", pad),
        pad_mode=choose("mode", mode, PAD_MODES),
    )


def resize_whole(filter: str = "bilinear") -> Augment:
    """The whole image, resized to the Loader's size whatever its shape."""
    return _made(
        "crop",
        f"resize_whole(filter={filter!r})",
        crop=_core.CropMode.whole,
        filter=choose("filter", filter, FILTERS),
    )


def flip(alternating: bool = False) -> Augment:
    """Mirrors left to right, with probability 1/2 for each sample and epoch; `alternating`: at
    random in epoch 0, then the other way in every later epoch.
    """
    mode = _core.FlipMode.alternating if alternating else _core.FlipMode.random
    return _made("flip", f"flip(alternating={alternating})", flip=mode)


def color_jitter(
    brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0
) -> Augment:
    """Like torchvision's ColorJitter on PIL images, with one number for each setting (0: off)."""
    return _made(
        "color jitter",
        f"color_jitter(brightness={brightness}, contrast={contrast}, saturation={saturation}, "
        f"hue={hue})",
        brightness=_real("brightness", brightness),
        contrast=_real("contrast", contrast),
        saturation=_real("saturation", saturation),
        hue=_real("hue", hue),
    )


def cutout(size: int, value: int = 127) -> Augment:
    """A square of `size` pixels, somewhere inside the row, of grey `value` (0..255)."""
    side, grey = _whole("size", size), _whole("value", value)
    if not 0 <= grey <= 255:
        raise ValueError(f"cutout: value is {value!r}, must be 0 to 255")
    return _made("cutout", f"cutout({side}, value={grey})", cutout=side, cutout_value=grey)


def operation(path: str | os.PathLike[str]) -> Augment:
    """Your own operation on finished rows: a shared library, built from C++ with the headers of
    this version of stoker (tests/consumer/README.md). Several run in the order of the `|`.

    RuntimeError: the file does not exist, is no operation, or is for another version.
    """
    opened = _core.open_operation(os.fspath(path))
    kind = f"operation {opened.name}"
    return Augment({kind: f"operation({os.fspath(path)!r})"}, {kind: opened})


def make_spec(
    augment: Augment | None, size: object, raw_size: tuple[int, int] | None
) -> _core.AugmentSpec:
    """Returns the C++ settings. None: the whole image if pixels are raw, otherwise resize and
    centre crop.
    """
    if augment is None:
        augment = resize_center_crop() if raw_size is None else resize_whole()
    if not isinstance(augment, Augment):
        raise TypeError(
            f"augment is {augment!r}: it must be made of stoker.random_resized_crop(), "
            "resize_center_crop(), pad_random_crop(), resize_whole(), flip(), color_jitter(), "
            "cutout() and operation(), joined by |"
        )
    spec = _core.AugmentSpec()
    if raw_size is not None:
        spec.crop = _core.CropMode.whole  # if no crop was given
    for field, value in augment._fields.items():
        if isinstance(value, _core.PixelOperation):
            spec.add_operation(value)
        else:
            setattr(spec, field, value)
    if size is None:
        size = raw_size if raw_size is not None else 224
    height, width = height_and_width("size", size)
    spec.set_size(height, width)
    try:
        spec.validate()
    except ValueError as error:  # two arguments have other names in C++
        said = str(error).replace("resize_short = ", "short = ").replace("output = ", "size = ")
        raise ValueError(said) from None
    return spec
