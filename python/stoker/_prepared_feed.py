"""A feed whose batches a function of the program's own makes into what the loop gets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from stoker import _core
from stoker._ahead import Ahead, Result
from stoker._moving_feed import MovingFeed


class PreparedFeed(MovingFeed):
    """Its position is that of the batches that were handed over, not of those that were prepared.

    The thread begins with the first next() of a loop, and ends with the loop. At most one runs.
    """

    def __init__(
        self,
        make: Callable[[_core.LoaderOptions], _core.Feed],
        options: _core.LoaderOptions,
        wrap: Callable[[_core.Batch], Any],
        ahead: int,
    ):
        self._limit = ahead
        self._lock = threading.Lock()  # held by the one who waits for a result
        self._ahead: Ahead | None = None
        self._thread: threading.Thread | None = None
        super().__init__(make, options, wrap)

    def next(self, feed: _core.Feed, end: int) -> Any:
        """As in MovingFeed. Raises what the function raised for this batch; the next call returns
        the one after it. After an error of the feed's, the next call tries again.
        """
        feed.check_process()  # a child made by fork() has no thread to wait for
        with self._lock:
            if feed.closed:
                raise RuntimeError("the Loader was closed")
            ahead = self._now()
            if ahead is None:
                if feed.next_step >= end:
                    raise StopIteration
                ahead = self._begin(feed, end)
            result = ahead.next()
            if result is not None and not result.was_taken:
                # That was tried some time ago, when the loop may have held more batches.
                ahead = self._begin(feed, end)
                result = ahead.next()
            if result is None and (ahead.stopped or feed.closed):
                raise RuntimeError("the Loader was closed")
            if result is None or not result.was_taken:
                self._ahead = None  # its thread has ended
            if result is None:  # the last batch was an error, or an interrupt cost it
                raise StopIteration
            if result.error is not None:
                try:
                    raise _noted(result.error, result)
                finally:
                    del result  # the error keeps this frame
            ahead.step = result.step + 1
            if ahead.step == end:
                self._ahead = None
            return result.value

    def position(self) -> tuple[int, int, int]:
        feed = self.get()
        ahead = self._now()
        if ahead is None:
            return super().position()
        return ahead.step, *divmod(ahead.step, feed.steps_per_epoch)

    def stands_at(self, step: int, seed: int) -> bool:
        return self._now() is None and super().stands_at(step, seed)

    def rest(self) -> None:
        if self._ahead is not None:
            self._ahead.stop()

    def close(self) -> None:
        """Waits for a call of the function that has begun, unless that call closes it."""
        super().close()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def __repr__(self) -> str:
        ahead = self._now()
        return super().__repr__() if ahead is None else f"next step {ahead.step}"

    def __del__(self) -> None:
        # The thread keeps the feed. It is not waited for: whoever drops the last reference may
        # hold a lock that the function needs.
        if self._ahead is not None:
            self._end()

    def _end(self) -> None:
        self.rest()
        super()._end()
        self._ahead = None

    def _now(self) -> Ahead | None:
        """Returns what is ahead in the current feed."""
        ahead = self._ahead
        return ahead if ahead is not None and ahead.feed is self._feed else None

    def _begin(self, feed: _core.Feed, end: int) -> Ahead:
        ahead = Ahead(feed, feed.next_step, end, self._wrap, self._limit, self._thread)
        try:
            ahead.thread.start()
            self._ahead, self._thread = ahead, ahead.thread
        except BaseException:  # an interrupt; nothing was taken
            self._ahead = None
            ahead.stop()
            raise
        return ahead


def _noted(error: BaseException, result: Result) -> BaseException:
    """Returns the error, with the step where Python has notes (3.11)."""
    if result.was_taken and hasattr(error, "add_note"):
        error.add_note(f"raised by on_batch for the batch of step {result.step}")
    return error
