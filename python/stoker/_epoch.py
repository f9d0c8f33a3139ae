"""One epoch of a Loader."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stoker import _core
from stoker._batch import Batch


class Epoch(Iterator[Batch]):
    """The batches of `feed` before step `end`; `take` returns the next one, or raises
    StopIteration.

    Drops the feed at its end, so that an iterator that is kept keeps no threads alive.
    """

    __slots__ = ("_end", "_feed", "_take")

    def __init__(self, feed: _core.Feed, end: int, take: Callable[[_core.Feed, int], Batch]):
        self._feed: _core.Feed | None = feed
        self._end = end
        self._take = take

    def __next__(self) -> Batch:
        if self._feed is None:
            raise StopIteration
        try:
            return self._take(self._feed, self._end)
        except StopIteration:
            self._feed = None
            raise

    def __length_hint__(self) -> int:
        return 0 if self._feed is None else max(0, self._end - self._feed.next_step)
