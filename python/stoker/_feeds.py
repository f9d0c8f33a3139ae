"""The feed of a Loader: it has a position, which is its state, and it can be moved. And the epochs
that a loop gets of it.
"""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stoker import _core

_VERSION = 2
# States of this version that have no seed were made with seed 0.
_WITHOUT_SEED = 1
_CLOSED = "the Loader was closed"
ENDED_BY_A_NEWER_ONE = (
    "this loop over the Loader was ended by a newer one (or by set_epoch() or load_state_dict()): "
    "a Loader has one position"
)


class MovingFeed:
    """A feed that ends at one step and is made again at another one. Its batches are what `wrap`
    makes of them.

    An interrupt loses no batch: if one comes between the old feed and the new one, the next call
    makes the new one (only close() closes); if one comes while a batch is taken, the next call
    returns that batch.

    Any thread may call all of this. `lock` is held while feeds are made, moved and closed, and not
    while a batch is waited for: closing ends that wait. The thread that holds it may take it again,
    as a signal handler that closes the Loader does.
    """

    def __init__(
        self,
        make: Callable[[_core.LoaderOptions], _core.Feed],
        options: _core.LoaderOptions,
        wrap: Callable[[_core.Batch], Any],
    ):
        self._make = make
        self.lock = threading.RLock()
        self._options = options  # first_step and seed are changed by move(), under the lock
        self._wrap = wrap
        self._closed = False
        self._kept: deque[_core.Batch] = deque()  # taken when an interrupt came
        self._feed: _core.Feed | None = make(options)

    def get(self) -> _core.Feed:
        """RuntimeError: it was closed, or belongs to the parent of this forked process."""
        with self.lock:
            if self._closed:
                raise RuntimeError(_CLOSED)
            if self._feed is None:
                self._feed = self._make(self._options)
            feed = self._feed
        feed.check_process()
        return feed

    def current(self) -> _core.Feed:
        """Returns the feed as it is now; mostly get()."""
        return self.get()

    def next(self, feed: _core.Feed, end: int) -> Any:
        """Returns the next batch before step `end`. StopIteration: there is no other. RuntimeError:
        `feed` was closed."""
        try:
            kept = self._kept.popleft()
        except IndexError:
            pass
        else:
            return self._wrap(kept)
        taken: list[_core.Batch] = []
        try:
            feed.next(end, taken)
        except BaseException:  # an interrupt, or what a signal handler raises
            self._kept.extend(taken)
            raise
        if taken:
            return self._wrap(taken.pop())
        if feed.closed:
            raise self._ended()
        raise StopIteration

    def _ended(self) -> RuntimeError:
        """Returns why a feed has ended before its batches."""
        return RuntimeError(_CLOSED if self._closed else ENDED_BY_A_NEWER_ONE)

    @property
    def seed(self) -> int:
        with self.lock:
            return self._options.seed

    def is_now(self, feed: _core.Feed) -> bool:
        return self._feed is feed

    def position(self) -> tuple[int, int, int]:
        """Returns the position of the next batch: step, epoch, step in the epoch."""
        with self.lock:  # for a feed that is not closed before it is asked
            feed = self.get()
            for batch in tuple(self._kept):
                return batch.step, batch.epoch, batch.step_in_epoch
            return feed.state()[:3]

    def stands_at(self, step: int, seed: int) -> bool:
        """Returns whether the next batch is that of `step`, so that there is no need to move."""
        return step == self.position()[0] and seed == self.seed

    def rest(self) -> None:
        """The loop was left: nothing is worked on ahead until the next one."""

    def move(self, step: int, seed: int) -> None:
        """Ends the current feed and makes one that begins with `step`."""
        with self.lock:
            self.get()
            self._options.first_step = step
            self._options.seed = seed
            self._end()
            self.get()

    def close(self) -> None:
        with self.lock:
            self._closed = True
            self._end()

    def __repr__(self) -> str:
        if self._closed:
            return "closed"
        with self.lock:
            return f"next step {self._feed.next_step if self._feed else self._options.first_step}"

    def _end(self) -> None:
        self._kept.clear()
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()


def state_of(feed: MovingFeed) -> dict[str, Any]:
    with feed.lock:
        next_step, epoch, step_in_epoch = feed.position()
        seed = feed.seed
    feed.get()  # waits for a list that grows, which is not done under the lock
    with feed.lock:
        fingerprint = feed.get().state()[3]
    return {
        "version": _VERSION,
        "next_step": next_step,
        "epoch": epoch,
        "step_in_epoch": step_in_epoch,
        "seed": seed,
        "fingerprint": f"{fingerprint:016x}",
    }


def place_of(
    state: Mapping[str, Any], feed: _core.Feed, own_seed: int | None
) -> tuple[int, int]:
    """Returns the step at which `state` continues, and its seed. own_seed: the seed that it must
    have; None: any. ValueError: it is no state, or not one of such a feed.
    """
    step, seed, fingerprint = read_state(state)
    if not 0 <= step <= feed.end_step:
        raise ValueError(f"next_step is {step}, must be 0 to {feed.end_step}")
    if own_seed is not None:
        seed = own_seed
    feed.check_state(step, fingerprint, seed)
    return step, seed


def read_state(state: Mapping[str, Any]) -> tuple[int, int, int]:
    """Returns the step, the seed and the fingerprint. ValueError: it is no state."""
    try:
        version, step = int(state["version"]), int(state["next_step"])
        fingerprint = int(state["fingerprint"], 16)
        seed = 0 if version == _WITHOUT_SEED else int(state["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a state of a stoker.Loader: {state!r} ({error!r})") from None
    if version not in (_WITHOUT_SEED, _VERSION):
        raise ValueError(f"a state of version {version}, this is version {_VERSION}")
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"not a state of a stoker.Loader: its seed is {seed}")
    return step, seed, fingerprint


class Epoch(Iterator[Any]):
    """`left` batches, the last of them before step `end`; `take` returns the next one of `feed`, or
    raises StopIteration. `leave` is called if it is dropped before. Threads that share one get
    each batch once.

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
        feed = self._feed  # another thread may end the epoch meanwhile
        if feed is None:
            raise StopIteration
        try:
            batch = self._take(feed, self._end)
        except StopIteration:
            self._feed = None
            raise
        self._left -= 1  # a hint: two threads may count one batch
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
        take = self._take
        if take is None:
            raise StopIteration
        try:
            return take()
        except StopIteration:
            self._take = None
            raise


class GrowingFeed(MovingFeed):
    """The feed of a source whose list of samples is still being made, in the order of the list. It
    feeds the first samples, step by step, while there are enough of them for a whole step; then
    those that are known by that time, and so on; and all samples from the step on at which the list
    is complete. Whatever asks for the feed but next_at_first() waits for that, and so does the
    step of a bad sample: which sample takes its place depends on their number.

    One thread at a time takes a batch or replaces the feed by a longer one, which would end the
    wait of another one: that is its turn. The turn is taken before the lock.

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
        self._turn = threading.RLock()
        self._whole_options = options
        self.is_growing = True
        super().__init__(
            lambda options: make(self._fed, options), part, lambda batch: wrap(batch, self._fed)
        )

    def next_at_first(self) -> Any:
        """Returns the next batch of the first epoch, which was not left. StopIteration: there is no
        other. RuntimeError: it was closed.
        """
        with self._turn:
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
        with self.lock:
            self._options.first_step = step
            self._end()
            self._fed = first

    def _complete(self) -> None:
        if not self.is_growing:
            return
        _core.wait_for(self._source)
        with self._turn, self.lock:
            if not self.is_growing:
                return
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
