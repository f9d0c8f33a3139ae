"""Lists of numbers that a program gives: sequences, NumPy's arrays, tensors."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any

LARGEST_LENGTH = 1 << 40  # as in C++


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
