"""Labels that a program gives itself: numbers, or texts that name classes."""

from __future__ import annotations

import operator
from collections.abc import Sequence

LARGEST = (1 << 24) - 1  # as in shards and lists


def whole(label: object, sample: int) -> int:
    """Returns a label as an int of 32 bits. TypeError, ValueError: what cannot be one."""
    try:
        number = operator.index(label)  # type: ignore[arg-type]
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
    if largest > LARGEST:
        raise ValueError(
            f"the label of sample {numbers.index(largest)} is {largest}, must be at most {LARGEST}"
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
