"""Reads the arguments of transforms as those of stages. Errors: ValueError with the transform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import pack
from typing import Any

from stoker.augment import Augment

# Returns the stages that a transform of some class is.
Reader = Callable[[Any], list[Augment]]

# PIL's numbers of interpolations, which torchvision's version 2 takes as they are.
_PIL_NUMBERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
INTERPOLATIONS = ("nearest", "bilinear", "bicubic")


def only(read: Callable[[Any], Augment]) -> Reader:
    """For a transform that is one stage."""
    return lambda step: [read(step)]


def kind_of(step: Any) -> tuple[str, str]:
    """Returns the package and the name of a transform's class."""
    kind = type(step)
    return kind.__module__.partition(".")[0], kind.__name__


def name_of(step: Any) -> str:
    kind = type(step)
    return f"{kind.__module__}.{kind.__qualname__}: {step!r}"


def filter_of(step: Any, names: Sequence[str] = _FILTERS) -> str:
    name = filter_name(step, step.interpolation, names)
    if getattr(step, "antialias", None) is False:
        raise ValueError(f"{step!r}: antialias=False; on PIL images torchvision ignores it, too")
    return name


def filter_name(step: Any, interpolation: Any, names: Sequence[str] = _FILTERS) -> str:
    """Returns the name of an interpolation of torchvision or PIL, which must be one of `names`."""
    value = getattr(interpolation, "value", interpolation)
    name = _PIL_NUMBERS.get(value, str(value))
    if name not in names:
        raise ValueError(f"{step!r}: interpolation is {name!r}, must be one of {', '.join(names)}")
    return name


def size_of(size: Any) -> Any:
    """Returns (height, width), or one number for both; `size`: an int, or one or two of them."""
    sides = [size] if isinstance(size, int) else list(size)
    height, width = int(sides[0]), int(sides[-1])
    return height if height == width else (height, width)


def colour_of(step: Any) -> Any:
    fill = step.fill
    if fill is None:
        return 0
    values = list(fill) if isinstance(fill, (list, tuple)) else [fill]
    whole = [int(v) for v in values if isinstance(v, (int, float)) and v == int(v)]
    if len(whole) != len(values) or len(values) not in (1, 3):
        raise ValueError(f"{step!r}: fill is {fill!r}, must be a grey or three whole numbers")
    return whole[0] if len(whole) == 1 else tuple(whole)


def span_of(values: Any, middle: float = 0.0, lowest: float = float("-inf")) -> Any:
    """Returns the one number that torchvision made (least, most) of, or both."""
    least, most = float(values[0]), float(values[-1])
    spread = round(most - middle, 12)
    if (max(lowest, middle - spread), middle + spread) == (least, most):
        return spread
    return least, most


def per_channel(step: Any, values: Any) -> tuple[float, ...]:
    """Returns one number per channel; a single number stands for all, as in torchvision."""
    numbers = [values] if isinstance(values, (int, float)) else list(values)
    if len(numbers) not in (1, 3):
        raise ValueError(f"{step!r}: images have 3 channels, not {len(numbers)}")
    return tuple(_shortest(number) for number in (numbers * 3)[:3])


def _shortest(value: Any) -> float:
    """Returns a number of a tensor of 32-bit floats with as few digits as tell it from others."""
    number = float(value)
    if "float32" not in str(getattr(value, "dtype", "")):
        return number
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))  # 9 digits always do
    return next(float(text) for text in texts if pack("f", float(text)) == pack("f", number))
