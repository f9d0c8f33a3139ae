"""The feed of a source whose list of samples is still being made, in the order of the list."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from stoker import _core
from stoker._moving_feed import MovingFeed


class GrowingFeed(MovingFeed):
    """Feeds the first samples, step by step, while there are enough of them for a whole step; then
    those that are known by that time, and so on; and all samples from the step on at which the list
    is complete. Whatever asks for the feed but next_at_first() waits for that, and so does the
    step of a bad sample: which sample takes its place depends on their number.

    first: source.first_samples(). `make` and `wrap` get the source to which a feed, a batch
    belongs. options: of the whole feed; part: those of feeds of the first samples, see
    part_options().
    """

    def __init__(
        self,
        source: _core.Source,
        first: _core.Source,
        make: Callable[[_core.Source, _core.LoaderOptions], _core.Feed],
        options: _core.LoaderOptions,
        part: _core.LoaderOptions,
        wrap: Callable[[_core.Batch, _core.Source], Any],
    ):
        self._source = source
        self._fed = first
        self._whole_options = options
        self.is_growing = True
        super().__init__(
            lambda options: make(self._fed, options), part, lambda batch: wrap(batch, self._fed)
        )

    def next_at_first(self) -> Any:
        """Returns the next batch of the first epoch, which was not left. StopIteration: there is no
        other. RuntimeError: it was closed.
        """
        while self.is_growing:
            feed = self.current()
            try:
                return super().next(feed, feed.end_step)
            except StopIteration:
                self._grow()
            except _core.FeedError:
                self._complete()
        feed = self.get()
        return super().next(feed, min(feed.steps_per_epoch, feed.end_step))

    def get(self) -> _core.Feed:
        if not self._closed:
            self._complete()
        return super().get()

    def current(self) -> _core.Feed:
        """Returns the feed without waiting for the list."""
        return super().get()

    def position(self) -> tuple[int, int, int]:
        if not self.is_growing:
            return super().position()
        step = self._next_step()
        return step, 0, step

    def _next_step(self) -> int:
        return self._kept[0].step if self._kept else self.current().next_step

    def _grow(self) -> None:
        step = self._next_step()
        rows = self._options.batch_size * self._options.world
        first = self._source.first_samples((step + 1) * rows - 1)
        if first is None:
            return self._complete()
        self._options.first_step = step
        self._end()
        self._fed = first

    def _complete(self) -> None:
        if not self.is_growing:
            return
        _core.wait_for(self._source)
        self._whole_options.first_step = self._options.first_step = self._next_step()
        self._end()
        self._fed, self._options = self._source, self._whole_options
        self.is_growing = False


def part_options(options: _core.LoaderOptions) -> _core.LoaderOptions:
    """Makes options of a Loader those of a feed of whole steps, which ends at a bad sample."""
    options.last_batch = _core.LastBatch.drop
    options.epochs = 1.0
    options.feed.seek_index = "off"
    options.feed.on_bad_sample = _core.OnBadSample.fail
    options.quarantine_file = ""
    return options


def first_of(source: _core.Source, rows: int, why_not: str) -> _core.Source | None:
    """Returns the first samples of a source that is growing, at least `rows` of them. None: the
    feed waits for the list. why_not: why it would, or ''. Warns of that.
    """
    if not source.is_growing:
        return None
    if not why_not:
        first = source.first_samples(rows - 1)
        if first is not None or not source.is_growing:
            return first
        why_not = "classes that are texts, and places in a cache, are known at the end"
    warnings.warn(
        f"{source.root}: the first batch comes when the list of samples is complete: {why_not}",
        stacklevel=3,
    )
    return None
