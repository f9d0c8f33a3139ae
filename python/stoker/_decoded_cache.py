"""Decoded pictures, kept for the next epochs."""

from __future__ import annotations

import os

from stoker import _core


class DecodedCache:
    """Keeps what decoding gives of a fixed part of the samples, so that they are decoded once and
    not in every epoch; for the argument `cache` of Loader. Batches are the same bytes with it.

    size: the most bytes, for each data set and recipe.
    folder: on a disk of this machine, for all processes and later runs; a full disk makes it
        smaller, and it may be deleted at any time. None: in memory, for all Loaders that have this
        object, as long as it lives.

    It is for recipes whose rows show the same of an image in every epoch (evaluation: resize and
    centre crop; also CIFAR's random crop with padding, and what is random in colour), and for small
    images of one size. A Loader refuses it for others (ValueError, with the reason), as for random
    resized crops of photographs: of these only the encoded samples come again, which
    Store(cache=...) keeps of data in a store, and the system of files.

    ValueError, TypeError: an argument. RuntimeError, from Loader: a folder that cannot be used.
    """

    def __init__(self, size: int, folder: str | os.PathLike[str] | None = None):
        if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= 10**18:
            raise ValueError(f"size is {size!r}, must be a whole number of bytes, at least 1")
        if folder is not None and not isinstance(folder, str | os.PathLike):
            raise TypeError(f"folder is {folder!r}, must be a path or None")
        if folder is not None and not os.fspath(folder):
            raise ValueError("folder is empty, must be a path or None")
        self._size = size
        self._folder = None if folder is None else os.fspath(folder)
        self._core = _core.DecodedCache(self._folder or "", size)

    @property
    def size(self) -> int:
        """The most bytes, for each data set and recipe."""
        return self._size

    @property
    def folder(self) -> str | None:
        """Where it lies on a disk; None: in memory."""
        return self._folder

    def __repr__(self) -> str:
        return f"<stoker.DecodedCache of {self._size} bytes in {self._folder or 'memory'}>"

    def __reduce__(self) -> tuple[type[DecodedCache], tuple[int, str | None]]:
        if self._folder is None:
            raise TypeError("a DecodedCache in memory cannot be pickled: give it a folder")
        return DecodedCache, (self._size, self._folder)


def core_of(cache: object) -> _core.DecodedCache | None:
    """TypeError: `cache` is neither a DecodedCache nor None."""
    if cache is None:
        return None
    if not isinstance(cache, DecodedCache):
        raise TypeError(f"cache is of {type(cache)}, must be a stoker.DecodedCache or None")
    return cache._core
