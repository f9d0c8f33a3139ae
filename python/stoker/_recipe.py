"""The origin of a source, for its pickles: these hold the call that makes it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stoker import _core

Make = Callable[..., _core.Source]


class Readers(NamedTuple):
    """Runs a program's own code to read samples (stoker.dataset())."""

    at_once: int  # the most items that one of them gives at once
    readers: tuple[_core.DatasetReader, ...]


def made(
    source: _core.Source,
    make: Make,
    arguments: Callable[[_core.Source], tuple[Any, ...]],
    *,
    readers: Readers | None = None,
    shows: Sequence[_core.Source] = (),
) -> _core.Source:
    """Notes in `source` that make(*arguments(source)) makes it again, and returns it. `readers` are
    its own; `shows`: sources whose samples it reads.
    """
    setattr(source, "_recipe", (make, arguments))
    if readers is None:
        found = [readers_of(each) for each in shows]
        readers = Readers(
            max((each.at_once for each in found), default=0),
            tuple(reader for each in found for reader in each.readers),
        )
    setattr(source, "_readers", readers)
    return source


def readers_of(source: _core.Source) -> Readers:
    return getattr(source, "_readers", Readers(0, ()))


def reduce(source: _core.Source) -> tuple[Any, ...]:
    """Source.__reduce__()."""
    recipe = getattr(source, "_recipe", None)
    if recipe is None:
        raise TypeError("cannot pickle this source: it was not made by a function of stoker")
    make, arguments = recipe
    return remake, (make, arguments(source), source.fingerprint)


def remake(make: Make, arguments: tuple[Any, ...], fingerprint: int) -> _core.Source:
    """Reads a pickle. RuntimeError: other samples or labels are there now."""
    source = make(*arguments)
    source = made(source, make, lambda _: arguments, readers=readers_of(source))
    if source.fingerprint != fingerprint:
        where = f" at {source.root}" if source.root else ""
        raise RuntimeError(
            f"the samples or labels{where} have changed since the source was pickled: its "
            f"fingerprint was {fingerprint:016x}, and now it is {source.fingerprint:016x}"
        )
    return source
