"""Reads arguments that a program gives: names of choices, sizes, numbers and lists of them, labels.
Errors name the argument, with its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

from stoker import _core

MAX_PIXELS: int = _core.DecodeOptions().max_pixels
LARGEST_LENGTH = 1 << 40  # as in C++
LARGEST_LABEL = (1 << 24) - 1  # as in shards and lists


def _by_name(kind: Any) -> dict[str, Any]:
    """Returns the values of a C++ enumeration, as programs write them."""
    return {each.name.replace("_", "-"): each for each in kind}


FILTERS = _by_name(_core.Filter)
PIXELS = _by_name(_core.PixelPolicy)
EXIF = _by_name(_core.ExifPolicy)
# Folders have two more names for what is kept for tests.
SPLITS = {**_by_name(_core.Split), "val": _core.Split.test, "validation": _core.Split.test}
LAST_BATCH = _by_name(_core.LastBatch)
ON_BAD = _by_name(_core.OnBadSample)
TEXTS = _by_name(_core.TextChoice)
TOO_LONG = _by_name(_core.TooLong)


def choose(field: str, value: object, names: dict[str, Any]) -> Any:
    """Returns the entry of `names`; ValueError with the field, the value and the known names."""
    if isinstance(value, str) and value in names:
        return names[value]
    raise ValueError(f"{field} is {value!r}, must be one of {', '.join(map(repr, names))}")


def yes_or_no(field: str, value: object) -> bool:
    """TypeError for anything but True and False: "no" would be true."""
    if value is True or value is False:
        return bool(value)
    raise TypeError(f"{field} is {value!r}, must be True or False")


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


def listed(field: str, values: Any) -> list[Any]:
    """Returns the values as Python's own objects. TypeError: there is nothing to go through."""
    if hasattr(values, "tolist"):  # an array or a tensor: much faster than to go through it
        values = values.tolist()
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{field} is {values!r}, must be a sequence")
    return list(values)


def whole_numbers(field: str, values: Any) -> list[int]:
    """TypeError: one that is no int, with its place."""
    numbers = listed(field, values)
    for place, value in enumerate(numbers):
        try:
            numbers[place] = index(value)
        except TypeError:
            raise TypeError(f"{field}[{place}] is {value!r}, must be an int") from None
        if isinstance(value, bool):
            raise TypeError(f"{field}[{place}] is {value!r}, and others are numbers")
    return numbers


def real_numbers(field: str, values: Any) -> list[float]:
    """TypeError: one that is no number, with its place."""
    numbers = listed(field, values)
    for place, value in enumerate(numbers):
        if type(value) is float:
            continue
        try:
            numbers[place] = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"{field}[{place}] is {value!r}, must be a number") from None
    return numbers


def in_range(field: str, value: Any, least: int, most: int) -> int:
    """ValueError: it is no whole number, or outside of [least, most]."""
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= most:
        raise ValueError(f"{field} is {value!r}, must be a whole number from {least} to {most}")
    return number


def length_or(default: int, length: int | None) -> int:
    """Returns the length of an epoch. ValueError: see in_range()."""
    return default if length is None else in_range("length", length, 1, LARGEST_LENGTH)


def whole(label: object, sample: int) -> int:
    """Returns a label as an int of 32 bits. TypeError, ValueError: what cannot be one."""
    try:
        number = index(label)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"the label of sample {sample} is {label!r}, must be an int") from None
    if not -(1 << 31) <= number < 1 << 31:
        raise ValueError(f"the label of sample {sample} is {number}, must fit in 32 bits")
    return number


def numbered(
    labels: Sequence[object], classes: Sequence[str] | None
) -> tuple[list[int], list[str]]:
    """Returns labels as numbers, and the names of the classes: `classes`; of numbers without them
    the numbers; of texts the texts, sorted.
    """
    labels = list(labels)
    if labels and isinstance(labels[0], str):
        return _numbers_of_texts(labels, classes)
    numbers = [whole(label, i) for i, label in enumerate(labels)]
    if classes is not None:
        return numbers, list(classes)
    largest = max(numbers, default=-1)
    if largest > LARGEST_LABEL:
        raise ValueError(
            f"the label of sample {numbers.index(largest)} is {largest}, must be at most "
            f"{LARGEST_LABEL}"
        )
    return numbers, [str(number) for number in range(largest + 1)]


def _numbers_of_texts(
    labels: Sequence[object], classes: Sequence[str] | None
) -> tuple[list[int], list[str]]:
    if classes is not None:
        raise ValueError("classes is given, and labels are texts, which name the classes")
    texts: list[str] = []
    for i, label in enumerate(labels):
        if not isinstance(label, str):
            raise TypeError(f"the label of sample {i} is {label!r}, must be a text as the first is")
        texts.append(label)
    names = sorted(set(texts))
    places = {name: place for place, name in enumerate(names)}
    return [places[text] for text in texts], names
