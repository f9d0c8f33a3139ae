"""Converts names of choices to the C++ enumerations."""

from __future__ import annotations

from operator import index
from typing import Any

from stoker import _core


def choose(field: str, value: object, names: dict[str, Any]) -> Any:
    """Returns the entry of `names`; ValueError with the field, the value and the known names."""
    if isinstance(value, str) and value in names:
        return names[value]
    raise ValueError(f"{field} is {value!r}, must be one of {', '.join(map(repr, names))}")


FILTERS = {
    "bilinear": _core.Filter.bilinear,
    "bicubic": _core.Filter.bicubic,
    "nearest": _core.Filter.nearest,
    "box": _core.Filter.box,
    "hamming": _core.Filter.hamming,
    "lanczos": _core.Filter.lanczos,
}
PIXELS = {
    "exact": _core.PixelPolicy.exact,
    "exact-pillow12": _core.PixelPolicy.exact_pillow12,
    "fast": _core.PixelPolicy.fast,
}
EXIF = {"ignore": _core.ExifPolicy.ignore, "apply": _core.ExifPolicy.apply}
SPLITS = {
    "all": _core.Split.all,
    "train": _core.Split.train,
    "test": _core.Split.test,
    "val": _core.Split.test,  # what such folders are called, too
    "validation": _core.Split.test,
}
LAST_BATCH = {
    "pad": _core.LastBatch.pad,
    "drop": _core.LastBatch.drop,
    "wrap": _core.LastBatch.wrap,
}
ON_BAD = {"substitute": _core.OnBadSample.substitute, "fail": _core.OnBadSample.fail}


def height_and_width(field: str, size: object) -> tuple[int, int]:
    """Returns (height, width) in pixels. `size`: an int for both, or the pair."""
    try:
        sides = size if isinstance(size, (tuple, list)) else (size, size)
        height, width = map(index, sides)
    except (TypeError, ValueError):
        raise ValueError(
            f"{field} is {size!r}, must be a number of pixels or (height, width)"
        ) from None
    if not (1 <= height <= 1 << 16 and 1 <= width <= 1 << 16):
        raise ValueError(f"{field} is {size!r}, must be 1 to {1 << 16} pixels")
    return height, width


def box(field: str, crop: object) -> tuple[int, int, int, int] | None:
    """Returns the box. `crop`: (x, y, width, height) in pixels, or None."""
    if crop is None:
        return None
    try:
        x, y, width, height = map(index, crop)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ValueError(
            f"{field} is {crop!r}, must be (x, y, width, height) in whole pixels"
        ) from None
    return x, y, width, height


def decode_options(pixels: str, exif: str, max_pixels: int) -> _core.DecodeOptions:
    options = _core.DecodeOptions()
    options.pixels = choose("pixels", pixels, PIXELS)
    options.exif = choose("exif", exif, EXIF)
    if not isinstance(max_pixels, int) or max_pixels < 1:
        raise ValueError(f"max_pixels is {max_pixels!r}, must be at least 1")
    options.max_pixels = max_pixels
    return options


MAX_PIXELS: int = _core.DecodeOptions().max_pixels
