"""A list of stages as Python holds it: its text, and how arguments are written in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from stoker import _core

Size = int | tuple[int, int] | None


class Augment:
    """A list of stages: its text, in the form that the library itself writes. repr() gives the
    text; equal texts are equal, and an Augment can be pickled. ValueError: a text that is no list
    of stages, and why.
    """

    __slots__ = ("_text",)
    __module__ = "stoker.augment"  # where programs and pickles find it

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
        return repr(float(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        if value and all(isinstance(each, Real) for each in value):
            return f"({', '.join(map(_value, value))})"
    text = str(value)
    quote = '"' if "'" in text else "'"
    return f"{quote}{text.replace(quote, '')}{quote}"


def stage(name: str, *lists: Any, **arguments: Any) -> Augment:
    """Returns one stage. What is None is left out: the library has its default."""
    given = [_value(each) for each in lists]
    given += [f"{key}={_value(value)}" for key, value in arguments.items() if value is not None]
    return Augment(f"{name}({', '.join(given)})")


# A Loader takes a list, or one for each picture of a sample, by name.
Augments = Augment | Mapping[str, Augment | str]


def of_pictures(lists: Mapping[str, Augment | str]) -> Augment:
    """Returns pictures(LIST, NAME=LIST); the list of the own picture is called 'image'."""
    if "image" not in lists:
        given = ", ".join(map(repr, lists))
        raise ValueError(f"augment has lists for {given}, and none for 'image'")
    read = {name: Augment(each) if isinstance(each, str) else each for name, each in lists.items()}
    return stage("pictures", read.pop("image"), **read)
