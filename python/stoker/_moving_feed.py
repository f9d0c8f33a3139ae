"""A feed that a Loader can move: it ends at one step and is made again at another one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from stoker import _core


class MovingFeed:
    """Its batches are what `wrap` makes of them.

    An interrupt loses no batch: if one comes between the old feed and the new one, the next call
    makes the new one (only close() closes); if one comes while a batch is taken, the next call
    returns that batch.
    """

    def __init__(
        self,
        make: Callable[[_core.LoaderOptions], _core.Feed],
        options: _core.LoaderOptions,
        wrap: Callable[[_core.Batch], Any],
    ):
        self._make = make
        self._options = options  # first_step and seed are changed by move()
        self._wrap = wrap
        self._closed = False
        self._kept: deque[_core.Batch] = deque()  # taken when an interrupt came
        self._feed: _core.Feed | None = make(options)

    def get(self) -> _core.Feed:
        """RuntimeError: it was closed, or belongs to the parent of this forked process."""
        if self._closed:
            raise RuntimeError("the Loader was closed")
        if self._feed is None:
            self._feed = self._make(self._options)
        self._feed.check_process()
        return self._feed

    def current(self) -> _core.Feed:
        """Returns the feed as it is now; mostly get()."""
        return self.get()

    def next(self, feed: _core.Feed, end: int) -> Any:
        """Returns the next batch before step `end`. StopIteration: there is no other. RuntimeError:
        `feed` was closed."""
        if self._kept:
            return self._wrap(self._kept.popleft())
        taken: list[_core.Batch] = []
        try:
            feed.next(end, taken)
        except BaseException:  # an interrupt, or what a signal handler raises
            self._kept.extend(taken)
            raise
        if taken:
            return self._wrap(taken.pop())
        if feed.closed:
            raise RuntimeError("the Loader was closed")
        raise StopIteration

    @property
    def seed(self) -> int:
        return self._options.seed

    def is_now(self, feed: _core.Feed) -> bool:
        return self._feed is feed

    def position(self) -> tuple[int, int, int]:
        """Returns the position of the next batch: step, epoch, step in the epoch."""
        feed = self.get()
        if self._kept:
            batch = self._kept[0]
            return batch.step, batch.epoch, batch.step_in_epoch
        return feed.state()[:3]

    def stands_at(self, step: int, seed: int) -> bool:
        """Returns whether the next batch is that of `step`, so that there is no need to move."""
        return step == self.position()[0] and seed == self.seed

    def rest(self) -> None:
        """The loop was left: nothing is worked on ahead until the next one."""

    def move(self, step: int, seed: int) -> None:
        """Ends the current feed and makes one that begins with `step`."""
        self.get()
        self._options.first_step = step
        self._options.seed = seed
        self._end()
        self.get()

    def close(self) -> None:
        self._closed = True
        self._end()

    def __repr__(self) -> str:
        if self._closed:
            return "closed"
        return f"next step {self._feed.next_step if self._feed else self._options.first_step}"

    def _end(self) -> None:
        self._kept.clear()
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()
