"""Which fields of shards and lists have the image, the label and the targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Fields(NamedTuple):
    """As SourceOptions in C++ has them: '' is the usual field."""

    image: str = ""
    label: str = ""
    targets: tuple[str, ...] = ()


def fields_of(image_from: object, label_from: object, targets_from: Sequence[str]) -> Fields:
    """TypeError: one that is no text."""
    if isinstance(targets_from, str) or not isinstance(targets_from, Sequence):
        raise TypeError(f"targets_from is {targets_from!r}, must be a sequence of texts")
    targets = tuple(_text(f"targets_from[{i}]", each) for i, each in enumerate(targets_from))
    return Fields(
        _text_or_none("image_from", image_from), _text_or_none("label_from", label_from), targets
    )


def _text_or_none(field: str, value: object) -> str:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{field} is {value!r}, must be a text or None")
    return value or ""


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{field} is {value!r}, must be a text")
    return value
