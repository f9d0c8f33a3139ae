"""Watches a loop over any loader: does it wait for its input?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, overload

from stoker._watched_loop import Pass, Watch
from stoker._watched_run import WatchedRun

Batch = TypeVar("Batch")


@overload
def watch(
    loader: Iterator[Batch],
    *,
    warm_up: int = ...,
    replay: int = ...,
    batch_size: int | Callable[[Batch], int] | None = ...,
    synchronize: Callable[[], object] | None = ...,
) -> WatchedIterator[Batch]: ...
@overload
def watch(
    loader: Iterable[Batch],
    *,
    warm_up: int = ...,
    replay: int = ...,
    batch_size: int | Callable[[Batch], int] | None = ...,
    synchronize: Callable[[], object] | None = ...,
) -> Watch[Batch]: ...
def watch(
    loader: Iterable[Batch],
    *,
    warm_up: int = 5,
    replay: int = 0,
    batch_size: int | Callable[[Batch], int] | None = None,
    synchronize: Callable[[], object] | None = None,
) -> Watch[Batch]:
    """Measures a training loop:

        loader = stoker.watch(loader)
        for batch in loader:                  # the loader's batches as they are
            ...
        print(loader.report())                # does the loop wait for them?
        loader.to_html("profile.html")

    loader: anything to iterate over: a PyTorch DataLoader, a DALI or Grain iterator, a
        stoker.Loader, a list, a generator. The watch has its attributes and len(); if it is an
        iterator, so is the watch: next() returns a batch.
    warm_up: steps at the beginning of every pass that do not count; should be more than the batches
        that the loader has ready by then (workers x prefetch_factor).
    replay: this many steps get one held batch again, in addition to the loader's, once as many were
        measured: how fast the steps are if they need not wait. It changes what the training sees,
        and len() does not count them.
    batch_size: samples of a batch: a number, or a function of the batch. Default: the first
        extent of the first object in it that has a shape; if none has one, rates are in batches/s.
    synchronize: called after every step, before its end is recorded (torch.cuda.synchronize).
        Without it, a device that works asynchronously is measured only from the host.

    TypeError: nothing to iterate over. ValueError: a number that is too small.
    """
    kind = WatchedIterator if hasattr(type(loader), "__next__") else Watch
    return kind(
        loader,
        warm_up=warm_up,
        replay=replay,
        batch_size=batch_size,
        synchronize=synchronize,
    )


class WatchedIterator(Watch[Batch], Iterator[Batch]):
    """A watch around an iterator, which is an iterator itself. Every loop over it, and next() after
    the iterator's end or an error, begins a pass.
    """

    _pass: Pass | None = None

    def __iter__(self) -> Iterator[Batch]:
        self._end_pass()
        return self

    def __next__(self) -> Batch:
        if self._pass is None:
            self._pass = self._begin()
        try:
            if self._step(self._pass):
                batch: Batch = self._pass.batch
                return batch
        except BaseException:
            self._end_pass()
            raise
        self._end_pass()
        raise StopIteration

    def _end_pass(self) -> None:
        if self._pass is not None:
            self._note_time(self._pass)
            self._pass = None

    def _run(self) -> WatchedRun:
        if self._pass is not None:
            self._note_time(self._pass)
        return super()._run()
