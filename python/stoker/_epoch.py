"""One epoch of a Loader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stoker import _core


class Epoch(Iterator[Any]):
    """`left` batches, the last of them before step `end`; `take` returns the next one of `feed`, or
    raises StopIteration. `leave` is called if it is dropped before.

    Drops the feed at its end, so that an iterator that is kept keeps no threads alive.
    """

    __slots__ = ("_end", "_feed", "_leave", "_left", "_take")

    def __init__(
        self,
        feed: _core.Feed,
        end: int,
        left: int,
        take: Callable[[_core.Feed, int], Any],
        leave: Callable[[], None],
    ):
        self._feed: _core.Feed | None = feed
        self._end = end
        self._left = left
        self._take = take
        self._leave = leave

    def __next__(self) -> Any:
        if self._feed is None:
            raise StopIteration
        try:
            batch = self._take(self._feed, self._end)
        except StopIteration:
            self._feed = None
            raise
        self._left -= 1
        return batch

    def __length_hint__(self) -> int:
        return 0 if self._feed is None else max(0, self._left)

    def __del__(self) -> None:
        if self._feed is not None:
            self._leave()


class FirstEpoch(Iterator[Any]):
    """The first epoch of a list that grows: nobody knows how many batches are left. `take` returns
    the next one, or raises StopIteration.
    """

    __slots__ = ("_take",)

    def __init__(self, take: Callable[[], Any]):
        self._take: Callable[[], Any] | None = take

    def __next__(self) -> Any:
        if self._take is None:
            raise StopIteration
        try:
            return self._take()
        except StopIteration:
            self._take = None
            raise
