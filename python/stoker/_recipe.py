"""What a source was made from, for its pickles: these hold the call that makes it again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker import _core

Make = Callable[..., _core.Source]


def made(
    source: _core.Source, make: Make, arguments: Callable[[_core.Source], tuple[Any, ...]]
) -> _core.Source:
    """Notes in `source` that make(*arguments(source)) makes it again, and returns it."""
    setattr(source, "_recipe", (make, arguments))
    return source


def reduce(source: _core.Source) -> tuple[Any, ...]:
    """Source.__reduce__()."""
    recipe = getattr(source, "_recipe", None)
    if recipe is None:
        raise TypeError("cannot pickle this source: it was not made by a function of stoker")
    make, arguments = recipe
    return remake, (make, arguments(source), source.fingerprint)


def remake(make: Make, arguments: tuple[Any, ...], fingerprint: int) -> _core.Source:
    """Reads a pickle. RuntimeError: other samples or labels are there now."""
    source = made(make(*arguments), make, lambda _: arguments)
    if source.fingerprint != fingerprint:
        where = f" at {source.root}" if source.root else ""
        raise RuntimeError(
            f"the samples or labels{where} have changed since the source was pickled: its "
            f"fingerprint was {fingerprint:016x}, and now it is {source.fingerprint:016x}"
        )
    return source
