"""Several sources mixed by shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from stoker import _core
from stoker._arguments import in_range, length_or, listed, real_numbers
from stoker._orders import Order, steps_per_epoch
from stoker._views import check_source, concat

Weights = Mapping[_core.Source, float] | Sequence[tuple[_core.Source, float]]
Schedule = Sequence[tuple[int, Weights | Sequence[float]]]
_LAST_STEP = (1 << 31) - 1
_FORMS = (
    "{source: weight}, a list of (source, weight) pairs, or a schedule: a list of (step, weights) "
    "pairs"
)


class Blend:
    """Sources mixed by shares, for a Loader in place of a source; made by blend(). len() is the
    number of samples of an epoch. `source` is the concatenation of `sources`, which ids and names
    of batches belong to.
    """

    __slots__ = ("_length", "_pieces", "order", "source", "sources")

    def __init__(
        self,
        sources: Sequence[_core.Source],
        pieces: Sequence[tuple[int, Sequence[float]]],
        length: int | None,
    ):
        self.sources = tuple(sources)
        self.source = concat(sources)
        self._pieces = tuple((step, tuple(weights)) for step, weights in pieces)
        self._length = length_or(len(self.source), length)
        sizes = [len(source) for source in sources]
        self.order = Order(self._call(), partial(_blended, sizes, self._pieces, self._length))
        # Refuses weights here, not in the Loader.
        steps_are_positions = _core.LoaderOptions()
        steps_are_positions.batch_size = 1
        self.order.bind(self.source, steps_are_positions)

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"stoker.{self._call()}"

    def __reduce__(self) -> Any:
        return type(self), (self.sources, self._pieces, self._length)

    def _call(self) -> str:
        pieces = "1 piece" if len(self._pieces) == 1 else f"{len(self._pieces)} pieces"
        return f"blend(<{len(self.sources)} sources, {pieces}>, length={self._length})"


def blend(weights: Weights | Schedule, length: int | None = None) -> Blend:
    """Mixes sources, each with its share of the positions, spread evenly over them: after any
    number of positions the count of a source is within 1 of its exact share (of four and more
    sources, within 2). Within a source every sample comes once, in a shuffled order, before any
    comes again; such a pass ends where it ends, not with the epoch.

    weights: {source: weight} or a list of (source, weight) pairs; their sum need not be 1. Or a
        schedule: a list of (step, weights) pairs, the first at step 0. Each holds from its step on
        until the next one's; steps count as Batch.step does: batches of all ranks together, over
        all epochs. A source that a piece does not name has weight 0 in it; a piece may also be a
        list of weights of all sources, in the order in which they are named first.
    length: samples of an epoch; default: the sum of the sources' sizes.

    The sources must fit together as in concat(). Other batch sizes change the positions at which a
    schedule's pieces begin, if there is more than one.

    ValueError: a weight, with its place; weights that are all 0; not as many as sources; a source
    twice; steps that do not increase; the length. TypeError: anything else.
    """
    pieces = _pieces_of(weights)
    sources = _sources_of(pieces)
    return Blend(sources, [(step, _row(piece, sources)) for step, piece in pieces], length)


def _pieces_of(weights: Any) -> list[tuple[int, Any]]:
    """Returns the pieces: (step, weights)."""
    if isinstance(weights, Mapping):
        return [(0, weights)]
    pairs = _pairs("weights", weights)
    if any(isinstance(first, _core.Source) for first, _ in pairs):
        return [(0, pairs)]
    before = -1
    pieces: list[tuple[int, Any]] = []
    for i, (step, piece) in enumerate(pairs):
        if isinstance(step, (float, str)) or not hasattr(step, "__index__"):
            raise TypeError(f"weights[{i}] begins with {step!r}, must be a stoker.Source or a step")
        step = in_range(f"the step of weights[{i}]", step, 0, _LAST_STEP)
        if i == 0 and step != 0:
            raise ValueError(f"the step of weights[0] is {step}, must be 0")
        if step <= before:
            raise ValueError(f"the step of weights[{i}] is {step}, must be after {before}")
        before = step
        pieces.append((step, piece))
    return pieces


def _pairs(field: str, values: Any) -> list[tuple[Any, Any]]:
    if not isinstance(values, Iterable) or isinstance(values, (str, _core.Source)):
        raise TypeError(f"{field} is {values!r}, must be {_FORMS}")
    pairs = []
    for pair in values:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"{field} has {pair!r}, must be {_FORMS}")
        pairs.append((pair[0], pair[1]))
    return pairs


def _named(piece: Any) -> list[tuple[_core.Source, Any]] | None:
    """Returns (source, weight) pairs; None: the piece is a list of weights."""
    if isinstance(piece, Mapping):
        return list(piece.items())
    values = listed("weights", piece)
    return _pairs("weights", values) if any(isinstance(v, (tuple, list)) for v in values) else None


def _sources_of(pieces: list[tuple[int, Any]]) -> list[_core.Source]:
    """Returns the sources of all pieces, in the order in which they are named first."""
    sources: dict[_core.Source, None] = {}
    for _, piece in pieces:
        for source, _ in _named(piece) or ():
            check_source("a source of weights", source)
            sources[source] = None
    if not sources:
        raise ValueError("weights names no source")
    return list(sources)


def _row(piece: Any, sources: list[_core.Source]) -> list[float]:
    """Returns a weight for each source."""
    named = _named(piece)
    if named is None:
        return real_numbers("weights", piece)
    given = [source for source, _ in named]
    for i, source in enumerate(given):
        if source in given[:i]:
            raise ValueError(f"source {i} of the weights is source {given.index(source)} again")
    values = real_numbers("weights", [weight for _, weight in named])
    weights = dict(zip(given, values, strict=True))
    return [weights.get(source, 0.0) for source in sources]


def _blended(
    sizes: list[int],
    pieces: Sequence[tuple[int, Sequence[float]]],
    length: int,
    source: _core.Source,
    options: _core.LoaderOptions,
) -> _core.SampleOrder:
    """The pieces begin with steps, the C++ order's with positions, which continue from one epoch to
    the next without the padding of the last batch.
    """
    batch = options.batch_size * options.world
    steps = steps_per_epoch(length, options) or 1  # 0: the Loader refuses it
    positions = [step // steps * length + step % steps * batch for step, _ in pieces]
    return _core.blend_order(sizes, positions, [weights for _, weights in pieces], length)
