"""The sizes of the rows of each step, where they change: aspect buckets and multi-scale."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stoker import _core
from stoker._arguments import EXIF, choose, height_and_width, in_range, yes_or_no

Size = tuple[int, int]  # height, width


class Bucket(NamedTuple):
    """One bucket of a source."""

    height: int
    width: int
    samples: int
    share: float  #: of all samples that have a bucket
    cropped: float  #: the mean share of its pictures' areas that is cropped away


@dataclass(frozen=True)
class Buckets:
    """For Loader(buckets=), made by stoker.buckets(). It can be used by any number of Loaders, and
    be pickled.
    """

    sizes: tuple[Size, ...]
    enlarge: bool
    multiple_of: int
    is_listed: bool  #: each size was asked for, and not made by a rule

    def of(self, source: _core.Source, *, exif: str = "ignore") -> list[Bucket]:
        """Returns what a source has in each bucket. Reads the headers of its pictures, once: they
        are kept in the cache directory. ValueError: sizes that cannot be; no picture that fits.
        """
        options = _core.LoaderOptions()
        options.feed.decode.exif = choose("exif", exif, EXIF)
        return buckets_in(self.bind(source, options))

    def bind(self, source: _core.Source, options: _core.LoaderOptions) -> _core.AspectBuckets:
        return _core.aspect_buckets(
            source, list(self.sizes), self.enlarge, self.multiple_of, options
        )


@dataclass(frozen=True)
class StepSizes:
    """For Loader(size=), made by stoker.step_sizes(). It can be used by any number of Loaders, and
    be pickled.
    """

    pieces: tuple[tuple[int, tuple[Size, ...]], ...]
    hold: int

    @property
    def largest(self) -> Size:
        return max(
            (size for _, sizes in self.pieces for size in sizes),
            key=lambda size: size[0] * size[1],
        )


def buckets(
    sizes: Sequence[int | Size] | None = None,
    *,
    area: int | None = None,
    step: int = 64,
    max_ratio: float = 2,
    enlarge: bool = True,
    multiple_of: int = 1,
) -> Buckets:
    """Aspect buckets: a picture goes to the size that crops least of it when it is resized to cover
    that size; a step has pictures of one bucket, the same on all ranks. Which bucket a step has,
    and which samples, depends only on (seed, epoch).

    sizes: (height, width) of each bucket, or an int for a square.
    area, step, max_ratio: instead of sizes, all sizes whose sides are multiples of `step`, whose
        area is at most `area` pixels and as large as that allows, and whose longer side is at most
        max_ratio times the shorter one.
    enlarge: False: a picture goes to a bucket that it covers without being enlarged, and is left
        out where there is none, with a warning.
    multiple_of: the number that the net needs both sides to be a multiple of; other sizes are
        refused.

    A Loader warns of sizes in a list that no picture belongs to.

    ValueError: the numbers.
    """
    if (sizes is None) == (area is None):
        raise ValueError(f"sizes is {sizes!r} and area is {area!r}: give one of them")
    if area is not None:
        pixels = in_range("area", area, 1, 1 << 30)
        sides = in_range("step", step, 1, 1 << 15)
        found = tuple(_core.aspect_sizes(pixels, sides, float(max_ratio)))
    else:
        found = _sizes_of("buckets", sizes)
    multiple = in_range("multiple_of", multiple_of, 1, 1 << 15)
    return Buckets(found, yes_or_no("enlarge", enlarge), multiple, area is None)


def step_sizes(
    sizes: Sequence[int | Size] | Mapping[int, int | Size | Sequence[int | Size]],
    hold: int = 1,
) -> StepSizes:
    """Multi-scale: the size of a step is drawn from a list, by (seed, epoch, step), the same on all
    ranks; or it follows the epoch (progressive resizing).

    sizes: a list of sizes, each an int or (height, width); or {epoch: a size or a list}, which
        holds from that epoch on and begins with epoch 0: {0: 128, 6: 160, 16: [192, 224]}. In such
        a mapping a tuple is (height, width), and a list is a list.
    hold: so many steps, one behind the other, have one size.

    ValueError: the numbers.
    """
    by_epoch: Mapping[int, Any] = sizes if isinstance(sizes, Mapping) else {0: list(sizes)}
    pieces = []
    for epoch, value in by_epoch.items():
        field = f"sizes[{epoch}]" if isinstance(sizes, Mapping) else "sizes"
        listed = value if isinstance(value, list) else [value]
        pieces.append((in_range("an epoch of sizes", epoch, 0, 1 << 40), _sizes_of(field, listed)))
    made = StepSizes(tuple(pieces), in_range("hold", hold, 1, 1 << 40))
    set_step_sizes(_core.LoaderOptions(), made)  # refuses them here, not in the Loader
    return made


def as_buckets(value: Buckets | Sequence[int | Size]) -> Buckets:
    """Returns the argument buckets= of a Loader, which may be a list of sizes."""
    if isinstance(value, Buckets):
        return value
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
        raise TypeError(
            f"buckets is {value!r}, must be made by stoker.buckets(), or a list of (height, width)"
        )
    return buckets(value)


def bind_buckets(
    wanted: Buckets, source: _core.Source, options: _core.LoaderOptions
) -> _core.AspectBuckets:
    """Returns those of a Loader's source. Warns of pictures that have no bucket, and of buckets
    that were asked for and have no pictures."""
    bound = wanted.bind(source, options)
    unused = [f"{each.height} x {each.width}" for each in buckets_in(bound) if each.samples == 0]
    if unused and wanted.is_listed:
        warnings.warn(
            f"no picture belongs to the bucket {', '.join(unused)} (height x width): another one "
            "crops less of each",
            stacklevel=4,
        )
    if bound.left_out > 0:
        warnings.warn(
            f"{bound.left_out} of {len(source)} pictures are smaller than every bucket and are "
            f"left out, as {source.name(bound.first_left_out)}: buckets(enlarge=True) takes them",
            stacklevel=4,
        )
    return bound


def buckets_in(bound: _core.AspectBuckets) -> list[Bucket]:
    total = max(bound.samples, 1)
    return [
        Bucket(height, width, samples, samples / total, cropped)
        for (height, width), samples, cropped in bound.buckets()
    ]


def set_step_sizes(options: _core.LoaderOptions, sizes: StepSizes) -> None:
    options.set_step_sizes([(epoch, list(each)) for epoch, each in sizes.pieces], sizes.hold)


def _sizes_of(field: str, sizes: Any) -> tuple[Size, ...]:
    if isinstance(sizes, (str, bytes)) or not isinstance(sizes, Sequence):
        raise ValueError(f"{field} is {sizes!r}, must be a list of sizes")
    return tuple(height_and_width(f"{field}[{i}]", size) for i, size in enumerate(sizes))
