"""What a batch's images are: their type, the order of their axes, and how they are normalised."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
_LAYOUTS = {  # the bytes' order, and whether (rows, 3, height, width) is shown
    "NHWC": (_core.PixelOrder.nhwc, False),
    "NCHW": (_core.PixelOrder.nchw, True),
    "channels_last": (_core.PixelOrder.nhwc, True),
}


def image_format(
    dtype: str, layout: str, mean: Sequence[float] | None, std: Sequence[float] | None
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
    image.mean = _three("mean", (0, 0, 0) if mean is None else mean)
    image.stddev = _three("std", (1, 1, 1) if std is None else std)
    if not all(deviation > 0 for deviation in image.stddev):
        raise ValueError(f"std is {std!r}, must be positive")
    return image


def _three(field: str, values: Sequence[float]) -> list[float]:
    numbers = [float(value) for value in values]
    if len(numbers) != 3 or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{field} is {values!r}, must be three numbers, RGB")
    return numbers
