"""Work on batches before they are asked for, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from stoker import _core


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
