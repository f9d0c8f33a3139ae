"""A feed whose batches a function of the program's own makes into what the loop gets, in another
thread, before they are asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from stoker import _core
from stoker._feeds import MovingFeed


class Result(NamedTuple):
    """The result for the batch of `step`."""

    step: int
    value: Any = None
    error: BaseException | None = None
    was_taken: bool = True  # False: the error is the feed's, which still has the batch


class Ahead:
    """Calls `prepare` with the batches of `feed` from `step` to before `end`, in order, each once.
    Works on at most `ahead` of them before they are asked for.

    `thread`, which the caller starts, begins when another one, `previous`, has ended. It ends
    behind the last batch, behind an error of the feed's, and with stop().

    stop() may be called from any thread, and from destructors and signal handlers: the queues are
    the only thing that threads share, and putting into them takes no lock of Python's.
    """

    def __init__(
        self,
        feed: _core.Feed,
        step: int,
        end: int,
        prepare: Callable[[_core.Batch], Any],
        ahead: int,
        previous: threading.Thread | None,
    ):
        self.feed = feed
        self.step = step  #: of the first batch that was not handed over
        self.stopped = False
        self._due = step  # of the next result
        self._end = end
        self._prepare = prepare
        self._ahead = ahead
        self._limits: SimpleQueue[int | None] = SimpleQueue()  # steps that may begin; None: stop
        self._results: SimpleQueue[Result | None] = SimpleQueue()  # None: there is no other
        # Not joined by the interpreter, which would wait for it before it closes the Loader.
        self.thread = threading.Thread(
            target=self._run, args=(step, previous), name="stoker on_batch", daemon=True
        )

    def next(self) -> Result | None:
        """Waits for the next result. None: there is no other, or it was stopped."""
        # An interrupt may come at any point of this. The limit is a step and not a permission for
        # one more, so that it does no harm if the same one is given again.
        self._limits.put(self._due + self._ahead)
        result = self._results.get()
        if result is not None:
            self._due = result.step + 1
        return result

    def stop(self) -> None:
        """Drops the results. The thread ends when a call of `prepare` that has begun is over."""
        self.stopped = True
        self._limits.put(None)
        self._drop_results()

    def _run(self, step: int, previous: threading.Thread | None) -> None:
        if previous is not None:
            previous.join()
        limit = step - 1
        while step < self._end:
            while limit < step:
                given = self._limits.get()
                if given is None:
                    return
                limit = given
            if not self._put_result(step):
                return
            step += 1
        self._results.put(None)

    def _put_result(self, step: int) -> bool:
        """Returns whether to go on. Keeps nothing: a batch would be held while this waits."""
        result = self._result_of(step)
        goes_on = result is not None and result.was_taken
        self._results.put(result)
        del result  # an error keeps this frame
        if self.stopped:  # maybe after stop() has dropped the results
            self._drop_results()
        return goes_on

    def _result_of(self, step: int) -> Result | None:
        taken: list[_core.Batch] = []
        try:
            self.feed.next(self._end, taken)
        except Exception as error:
            return Result(step, error=error, was_taken=False)
        if not taken or self.stopped:
            return None
        try:
            return Result(step, self._prepare(taken.pop()))
        except StopIteration as error:
            # It would end the loop, as if the epoch were over.
            ended = RuntimeError("on_batch raised StopIteration")
            ended.__cause__ = error
            return Result(step, error=ended)
        except BaseException as error:
            return Result(step, error=error)

    def _drop_results(self) -> None:
        try:
            while True:
                self._results.get_nowait()
        except Empty:
            self._results.put(None)  # for a consumer that waits


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
        self._lock = threading.Lock()  # held by the one who waits for a result; taken before `lock`
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
                raise self._ended()
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
                raise self._ended()
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
        with self.lock:
            feed = self.get()
            ahead = self._now()
            if ahead is None:
                return super().position()
            return ahead.step, *divmod(ahead.step, feed.steps_per_epoch)

    def stands_at(self, step: int, seed: int) -> bool:
        return self._now() is None and super().stands_at(step, seed)

    def rest(self) -> None:
        ahead = self._ahead  # another thread may hand over its last batch
        if ahead is not None:
            ahead.stop()

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
        with self.lock:  # whoever ends the feed stops what is ahead in it, and must see it
            if feed is not self._feed:
                raise self._ended()
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
