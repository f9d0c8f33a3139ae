"""A Loader's arguments, checked, as C++ takes them."""

from __future__ import annotations

import os

from stoker import _core
from stoker._choice import LAST_BATCH, ON_BAD, choose, decode_options
from stoker._process_group import rank_and_world


def loader_options(
    *,
    batch_size: int,
    seed: int,
    shuffle: bool,
    last_batch: str,
    rank: int | None,
    world: int | None,
    epochs: float | None,
    workers: int | None,
    io_threads: int,
    ring_depth: int | None,
    leases: int,
    pixels: str,
    exif: str,
    max_pixels: int,
    seek_index: str | os.PathLike[str],
    on_bad: str,
    max_bad: float,
    quarantine: str | os.PathLike[str] | None,
) -> _core.LoaderOptions:
    """See Loader. ValueError: an argument, with its value; what belongs together is checked when
    the feed is made.
    """
    options = _core.LoaderOptions()
    _set_integers(
        options,
        batch_size=batch_size,
        seed=seed,
        io_threads=io_threads,
        leases=leases,
        workers=-1 if workers is None else workers,
        ring_depth=leases + 3 if ring_depth is None else ring_depth,
    )
    options.rank, options.world = rank_and_world(rank, world)
    options.shuffle = bool(shuffle)
    options.last_batch = choose("last_batch", last_batch, LAST_BATCH)
    options.epochs = -1.0 if epochs is None else _positive("epochs", epochs)
    options.decode = decode_options(pixels, exif, max_pixels)
    options.seek_index = os.fspath(seek_index)
    options.on_bad_sample = choose("on_bad", on_bad, ON_BAD)
    options.max_bad = float(max_bad)
    options.quarantine_file = "" if quarantine is None else os.fspath(quarantine)
    return options


def _positive(field: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{field} is {value!r}, must be more than 0")
    return float(value)


def _set_integers(options: _core.LoaderOptions, **values: int) -> None:
    for field, value in values.items():
        try:
            setattr(options, field, value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{field} is {value!r}, must be a whole number in range") from None
