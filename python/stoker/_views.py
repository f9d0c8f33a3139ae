"""Sources made of others: a part of one, or several as one."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

from stoker import _core
from stoker._arguments import in_range, listed, real_numbers, whole_numbers
from stoker._recipe import made


def subset(source: _core.Source, ids: Sequence[int] | Sequence[bool] | Any) -> _core.Source:
    """The samples `ids` of a source, in that order: sample 0 of the result is ids[0]. Names,
    labels, classes, root and notes stay, and nothing is copied.

    ids: ints from 0 to len(source) - 1, each at most once (an order such as weighted() repeats
        samples); or a mask: a bool for each sample. A sequence, a NumPy array or a tensor.

    IndexError: an id that the source does not have. ValueError: no ids, an id that is listed twice,
    a mask of another length. TypeError: anything else.
    """
    check_source("source", source)
    chosen = listed("ids", ids)
    if chosen and all(isinstance(each, bool) for each in chosen):
        return _subset(source, _marked(chosen, len(source)))
    chosen = whole_numbers("ids", chosen)
    for place, each in enumerate(chosen):
        if not 0 <= each < len(source):
            raise IndexError(
                f"ids[{place}] is {each}: the source has the samples 0 to {len(source) - 1}"
            )
    return _subset(source, chosen)


def with_pictures(source: _core.Source, pictures: Mapping[str, _core.Source]) -> _core.Source:
    """The same samples with further pictures: an image and its control map, before and after, left
    and right. Sample i has picture i of each of the other sources, whose labels and targets play no
    part. A Loader needs a list of stages for each:

        pairs = stoker.with_pictures(photos, {"control": maps})
        loader = stoker.Loader(pairs, augment={
            "image": "same(random_crop(512) | flip) | color_jitter(0.2)",
            "control": "same(random_crop(512) | flip)",
        })
        for batch in loader:
            train(batch.pictures["control"], batch.images)

    What stands in same(...) draws the same numbers for all pictures; everything else each draws for
    itself. pictures_from= of open(), tar(), parquet(), csv() and others finds them in the data.

    pictures: by name, a source with as many samples. Names are words; 'image' is the own picture.

    A pair with one half (a file that is missing or damaged) is a bad sample, whose message names
    the half. ValueError: another number of samples, a name that is no word or is there already.
    """
    check_source("source", source)
    if not isinstance(pictures, Mapping):
        raise TypeError(f"pictures is {pictures!r}, must be a dict of sources by name")
    for name, other in pictures.items():
        check_source(f"pictures[{name!r}]", other)
    return _with_pictures(source, [(str(name), other) for name, other in pictures.items()])


def with_labels(source: _core.Source, labels: Sequence[int] | Sequence[str]) -> _core.Source:
    """The samples of some classes, in the order of the source. Their labels stay as they are, and
    source.classes still has all names: see relabel() to number the classes anew.

    labels: numbers, or names of classes. ValueError: a class that the source does not have; no
    sample is in any of them. TypeError: anything else.
    """
    check_source("source", source)
    all_labels = source.labels()
    known = set(all_labels) | set(range(len(source.classes)))
    wanted = set()
    for place, label in enumerate(listed("labels", labels)):
        numbers = _numbers_of(source, place, label)
        if not numbers or not known.issuperset(numbers):
            raise ValueError(
                f"labels[{place}] is {label!r}, the source has {len(source.classes)} classes: "
                f"{_first_names(source.classes)}"
            )
        wanted |= numbers
    return _subset(source, [i for i, label in enumerate(all_labels) if label in wanted])


def random_split(
    source: _core.Source, lengths: Sequence[float], seed: int = 0
) -> list[_core.Source]:
    """Deals the samples at random to parts; within a part they are in the order of the source.

    lengths: of the parts: ints whose sum is len(source); or fractions whose sum is 1: each part
        gets its share rounded down, and what is left goes to the parts in turn, one each, as in
        PyTorch's random_split().
    seed: the split depends only on it, the lengths and len(source).

    ValueError: lengths that are negative or have another sum; a part without samples; the seed.
    """
    check_source("source", source)
    seed = in_range("seed", seed, 0, (1 << 64) - 1)
    shares = _shares(real_numbers("lengths", lengths), len(source))
    parts = _core.random_split(len(source), shares, seed)
    for place, ids in enumerate(parts):
        if not ids:
            raise ValueError(
                f"lengths[{place}] is {list(lengths)[place]!r}: that part gets none of "
                f"{len(source)} samples"
            )
    return [_subset(source, ids) for ids in parts]


def concat(sources: Sequence[_core.Source]) -> _core.Source:
    """Several sources one after the other, as one: the ids of each continue those of the one
    before. They must have the same classes in the same order, and be all image files or all raw
    pixels of one size.

    Names stay paths where they can: `root` is the deepest folder that has all sources. Where two
    roots are equal, one is inside the other, or one is missing, root is '' and the number of the
    source stands in front of each name, as in '1/cat/7.jpg'.

    ValueError: no sources, or what one has instead of what source 0 has. TypeError: no source.
    """
    parts = listed("sources", sources)
    for place, part in enumerate(parts):
        check_source(f"sources[{place}]", part)
    return _concat(parts)


def check_source(field: str, source: object) -> None:
    if not isinstance(source, _core.Source):
        raise TypeError(f"{field} is {source!r}, must be a stoker.Source")


def _marked(mask: list[bool], samples: int) -> list[int]:
    if len(mask) != samples:
        raise ValueError(f"ids is a mask of {len(mask)} values, and there are {samples} samples")
    return [i for i, is_in in enumerate(mask) if is_in]


def _numbers_of(source: _core.Source, place: int, label: Any) -> set[int]:
    if isinstance(label, str):
        return {number for number, name in enumerate(source.classes) if name == label}
    if isinstance(label, bool) or not hasattr(label, "__index__"):
        raise TypeError(f"labels[{place}] is {label!r}, must be an int or the name of a class")
    return {index(label)}


def _first_names(classes: list[str]) -> str:
    return ", ".join(map(repr, classes[:5])) + (", ..." if len(classes) > 5 else "")


def _shares(lengths: list[float], samples: int) -> list[float]:
    total = math.fsum(lengths)
    if math.isclose(total, 1):
        return lengths
    for place, length in enumerate(lengths):
        if not 0 <= length < math.inf or length != int(length):
            raise ValueError(
                f"lengths[{place}] is {length!r}: must be whole numbers with the sum {samples}, or "
                f"fractions with the sum 1 (here it is {total:g})"
            )
    if total != samples:
        raise ValueError(
            f"the sum of {len(lengths)} lengths is {total:g}, must be {samples} samples, or 1"
        )
    # A little more than the exact share, so that rounding down gives the length itself.
    return [math.nextafter(length / samples, 1.0) if length else 0.0 for length in lengths]


# The functions below make a source from what a pickle of it holds.


def _with_pictures(
    source: _core.Source, others: list[tuple[str, _core.Source]]
) -> _core.Source:
    return made(
        _core.with_pictures(source, others),
        _with_pictures,
        lambda _: (source, others),
        shows=(source, *(other for _, other in others)),
    )


def _subset(source: _core.Source, ids: Sequence[int]) -> _core.Source:
    packed = array("q", ids)
    return made(_core.subset(source, packed), _subset, lambda _: (source, packed), shows=[source])


def _concat(sources: list[_core.Source]) -> _core.Source:
    for each in sources:
        _core.wait_for(each)  # without the interpreter lock
    return made(_core.concat(sources), _concat, lambda _: (sources,), shows=sources)
