"""The format of a batch's images: their type, the order of their axes, and their normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

from stoker import _core
from stoker._choice import choose

IMAGENET_MEAN = (0.485, 0.456, 0.406)  #: of pixels / 255, RGB
IMAGENET_STD = (0.229, 0.224, 0.225)

_TYPES = {
    "uint8": None,
    "float32": _core.PixelType.float32,
    "float16": _core.PixelType.float16,
    "bfloat16": _core.PixelType.bfloat16,
}
_LAYOUTS = {  # the bytes' order, and whether the shape is (rows, 3, height, width)
    "NHWC": (_core.PixelOrder.nhwc, False),
    "NCHW": (_core.PixelOrder.nchw, True),
    "channels_last": (_core.PixelOrder.nhwc, True),
}


def image_format(
    dtype: str,
    layout: str,
    mean: float | Sequence[float] | None,
    std: float | Sequence[float] | None,
) -> _core.ImageFormat:
    image = _core.ImageFormat()
    image.type = choose("dtype", dtype, _TYPES)
    image.order, image.channels_second = choose("layout", layout, _LAYOUTS)
    if image.type is None:
        if layout == "NCHW":
            raise ValueError(
                "layout is 'NCHW' with dtype 'uint8': pixels are stored NHWC. Take 'channels_last' "
                "(the same shape, no copy) or another dtype"
            )
        if mean is not None or std is not None:
            raise ValueError("mean and std are for dtype float32, float16 and bfloat16, not uint8")
    image.mean = _three("mean", 0 if mean is None else mean)
    image.stddev = _three("std", 1 if std is None else std)
    if not all(deviation > 0 for deviation in image.stddev):
        raise ValueError(f"std is {std!r}, must be positive")
    # A mean of pixels / 255 is at most 1, and a deviation at most 0.5.
    for field, values, most in (("mean", image.mean, 1), ("std", image.stddev, 2)):
        if max(values) > most:
            raise ValueError(
                f"{field} is {values!r}: it is of pixels / 255, this is as of 0..255; divide by 255"
            )
    return image


def _three(field: str, values: float | Sequence[float]) -> list[float]:
    """Repeats one number for all channels."""
    try:
        numbers = [float(values)] * 3 if isinstance(values, Real) else list(map(float, values))
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != 3 or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{field} is {values!r}, must be a number or three, RGB")
    return numbers
