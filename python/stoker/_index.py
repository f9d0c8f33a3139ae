"""Makes seek indexes: places inside JPEG files from which decoding can begin."""

from __future__ import annotations

import os
from dataclasses import dataclass

from stoker import _core
from stoker._arguments import choose

_STEPS = {"row": _core.SeekStep.row, "8": _core.SeekStep.eight}


@dataclass(frozen=True)
class BadSample:
    id: int
    name: str
    reason: str  # as in a quarantine file
    byte_offset: int  # -1: unknown
    message: str


@dataclass(frozen=True)
class SeekIndex:
    """The result of index()."""

    path: str
    images: int
    indexed: int  # how many of them have an index; the others are bad or not baseline JPEGs
    jpeg_bytes: int  # size of the files with an index
    file_bytes: int  # size of the file with the indexes
    bad: list[BadSample]


def index(
    source: _core.Source,
    path: str | os.PathLike[str] | None = None,
    granularity: str = "row",
    workers: int | None = None,
) -> SeekIndex:
    """Makes the seek indexes of a source's JPEG files: a Loader then reads less of each file.

    The files stay as they are, and so do the decoded pixels; a file that changes later is read
    without its index. Works like `stoker index`; the interpreter lock is not held, and after Ctrl-C
    nothing is written.

    path: the file to write, for Loader(seek_index=path); default: in the cache directory, where
        every Loader of these files finds it.
    granularity: 'row': a place per row of blocks, about 0.3 % of the data; '8': per 8 blocks,
        about 2 %, and faster to decode with.
    workers: threads; default one per core.

    TypeError: no source. ValueError: an argument; a source without image files. RuntimeError:
    `path` cannot be written (a full disk, for example), and why; an older file stays in place.
    """
    if not isinstance(source, _core.Source):
        raise TypeError(f"source is {source!r}, must be made by stoker.folder() or open()")
    step = choose("granularity", granularity, _STEPS)
    threads = _core.usable_cores() if workers is None else workers
    if not isinstance(threads, int) or not 1 <= threads <= 1024:
        raise ValueError(f"workers is {workers!r}, must be 1 to 1024")
    _core.wait_for(source)  # without the interpreter lock
    name = _core.default_seek_index_path(source) if path is None else os.fspath(path)
    if not name:
        raise ValueError(
            "path is None: the source has no image files, or neither XDG_CACHE_HOME nor HOME is "
            "set to keep their indexes in"
        )
    totals = _core.build_seek_indexes(source, name, step, threads)
    return SeekIndex(
        path=name,
        images=len(source),
        indexed=totals.indexed,
        jpeg_bytes=totals.jpeg_bytes,
        file_bytes=totals.file_bytes,
        bad=[
            BadSample(bad.id, source.name(bad.id), bad.reason, bad.byte_offset, bad.message)
            for bad in totals.bad
        ],
    )
