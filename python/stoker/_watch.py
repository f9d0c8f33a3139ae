"""Watches a loop over any loader: does it wait for its input, and which steps stand out?"""

from __future__ import annotations

import json
import math
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from stoker._adapter import loader_in
from stoker._loss_writer import LossWriter, Rows
from stoker._options import rank_and_world
from stoker._watch_report import WatchedRun, as_json, as_text, profile_page
from stoker._watch_steps import PHASES, StepLog, Steps, first_extent

if TYPE_CHECKING:
    from stoker.losses import Losses, Spike  # which needs NumPy

Batch = TypeVar("Batch")
_NONE = object()  # no batch


@overload
def watch(
    loader: Iterator[Batch],
    *,
    warm_up: int = ...,
    replay: int = ...,
    batch_size: int | Callable[[Batch], int] | None = ...,
    synchronize: Callable[[], object] | None = ...,
    folder: str | os.PathLike[str] | None = ...,
) -> WatchedIterator[Batch]: ...
@overload
def watch(
    loader: Iterable[Batch],
    *,
    warm_up: int = ...,
    replay: int = ...,
    batch_size: int | Callable[[Batch], int] | None = ...,
    synchronize: Callable[[], object] | None = ...,
    folder: str | os.PathLike[str] | None = ...,
) -> Watch[Batch]: ...
def watch(
    loader: Iterable[Batch],
    *,
    warm_up: int = 5,
    replay: int = 0,
    batch_size: int | Callable[[Batch], int] | None = None,
    synchronize: Callable[[], object] | None = None,
    folder: str | os.PathLike[str] | None = None,
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
    folder: where record() keeps losses, for stoker.losses and stoker.rewind() after the run; the
        same one for all ranks, and for a run that is resumed. Default: a temporary folder.

    TypeError: nothing to iterate over. ValueError: a number that is too small.
    """
    kind = WatchedIterator if hasattr(type(loader), "__next__") else Watch
    return kind(
        loader,
        warm_up=warm_up,
        replay=replay,
        batch_size=batch_size,
        synchronize=synchronize,
        folder=folder,
    )


@dataclass
class Pass:
    """The state of a pass over the loader."""

    batches: Iterator[Any]
    asked: float  # when the loop asked for its current or next batch
    noted: float  # the time up to which its time, and the time without a core, are counted
    delayed: float
    number: int = 0  # of the loader's step
    batch: Any = _NONE  # the loop's current batch
    phase: str = ""  # of that step, like all below
    came: float = 0.0
    cpu: float = 0.0
    samples: int = -1


class Watch(Generic[Batch]):
    """See watch(). Measurements add up over passes; a step takes 41 bytes. One loop at a time."""

    def __init__(
        self,
        loader: Iterable[Batch],
        *,
        warm_up: int = 5,
        replay: int = 0,
        batch_size: int | Callable[[Batch], int] | None = None,
        synchronize: Callable[[], object] | None = None,
        folder: str | os.PathLike[str] | None = None,
        most_steps: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
        cpu_clock: Callable[[], float] = time.thread_time,
    ):
        for name, value in (("warm_up", warm_up), ("replay", replay)):
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} is {value!r}, must be 0 or more steps")
        if not any(hasattr(type(loader), name) for name in ("__iter__", "__getitem__")):
            raise TypeError(f"loader is {loader!r}: there is nothing to iterate over")
        if not (
            batch_size is None
            or callable(batch_size)
            or (isinstance(batch_size, int) and batch_size > 0)
        ):
            raise ValueError(
                f"batch_size is {batch_size!r}, must be 1 or more, or a function of a batch"
            )
        self._loader = loader
        self._warm_up = warm_up
        self._replay = replay
        self._batch_size = batch_size
        self._synchronize = synchronize
        self._most_steps = most_steps  # a pass ends after this many
        self._clock, self._cpu_clock = clock, cpu_clock
        self._log = StepLog()
        self._first_waits: list[float] = []  # of each pass, seconds
        self._alone: Steps | None = None
        self._counts = dict.fromkeys(PHASES, 0)  # steps
        self._pass: Pass | None = None
        self._given = 0  # batches of the loader, over all passes
        self._folder = folder
        self._writer: LossWriter | None = None
        self._inner = loader_in(loader)
        if self._inner is not None:
            self._inner._batches.begin_notes()
        self._looped_s, self._delayed_s = 0.0, 0.0  # delayed: ready to run, but without a core

    def __iter__(self) -> Iterator[Batch]:
        """Iterates over one pass of the loader, with the replayed steps when they are due."""
        current = self._begin()
        try:
            while self._step(current):
                yield current.batch
        finally:
            self._note_time(current)
            if self._pass is current:
                self._pass = None

    def _begin(self) -> Pass:
        began, delayed = self._clock(), _delay_seconds()
        self._pass = Pass(iter(self._loader), asked=began, noted=began, delayed=delayed)
        return self._pass

    def _step(self, current: Pass) -> bool:
        """Ends the current step, and gets the next one's batch; returns whether there is one."""
        if current.batch is not _NONE:
            self._end_step(current)
            if len(self._log) == self._most_steps:
                return False
        current.phase = self._phase(current.number)
        cpu = self._cpu_clock()
        if current.phase != "replayed":
            current.batch = _NONE  # the loader may reuse its memory for the next one
            current.batch = next(current.batches, _NONE)
            if current.batch is _NONE:
                return False
            self._given += 1
        current.came, current.cpu = self._clock(), self._cpu_clock() - cpu
        if current.number == 0:
            self._first_waits.append(current.came - current.asked)
        current.samples = self.batch_size_of(current.batch)
        return True

    def _end_step(self, step: Pass) -> None:
        if self._synchronize is not None:
            self._synchronize()
        done = self._clock()
        self._log.add(step.phase, step.asked, step.came, done, step.cpu, step.samples)
        self._counts[step.phase] += 1
        step.number += step.phase != "replayed"
        step.asked = done

    def _note_time(self, current: Pass) -> None:
        now, delayed = self._clock(), _delay_seconds()
        self._looped_s += now - current.noted
        self._delayed_s += delayed - current.delayed
        current.noted, current.delayed = now, delayed

    def _phase(self, number: int) -> str:
        counts = self._counts
        if number == 0 or number < self._warm_up:
            return "warm-up" if self._warm_up else "measured"
        if counts["measured"] < self._replay or self._replay == 0:
            return "measured"
        if counts["replayed"] < self._replay:
            return "replayed"
        # Meanwhile the loader has filled its queues, which makes the next steps too fast.
        return "settling" if counts["settling"] < self._warm_up else "measured"

    def batch_size_of(self, batch: Batch) -> int:
        """Returns the samples of a batch, as rates count them; -1: unknown."""
        if self._batch_size is None:
            return first_extent(batch)
        if isinstance(self._batch_size, int):
            return self._batch_size
        return int(self._batch_size(batch))

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._loader)  # not len(), which a generator lacks

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # missing while a copy is being made
            raise AttributeError(name)
        return getattr(self._loader, name)

    def measure_loader(self, steps: int = 100) -> float:
        """Runs the loader alone, from its beginning and with nothing to do between its batches;
        returns samples per second (batches, if their size is unknown). The report includes it from
        then on. Takes up to `steps` batches, which the training does not see; the first `warm_up`
        do not count. A loop's variable still holds the last batch: around a stoker.Loader, which
        lends its memory, drop it first.

        TypeError: the loader is an iterator, which runs once. RuntimeError: it has too few batches.
        ValueError: too few steps.
        """
        if not isinstance(steps, int) or steps <= self._warm_up:
            raise ValueError(f"steps is {steps!r}, must be above the {self._warm_up} of warm-up")
        if iter(self._loader) is self._loader:
            raise TypeError(f"{_name(self._loader)} is an iterator: it cannot be run a second time")
        alone = Watch(
            self._loader,
            warm_up=self._warm_up,
            batch_size=self._batch_size,
            most_steps=steps,
            clock=self._clock,
            cpu_clock=self._cpu_clock,
        )
        for _ in alone:
            pass
        self._alone = alone._log.of_phase("measured")
        if len(self._alone) == 0 or self._alone.seconds <= 0:
            count, self._alone = len(alone._log), None
            raise RuntimeError(f"the loader gave {count} batches, {self._warm_up} are warm-up")
        return self._alone.rate

    def record(
        self,
        loss: Any,
        grad_norm: Any = None,
        *,
        rows: Any = None,
        ids: Any = None,
    ) -> None:
        """Keeps the loss of the step whose batch the loop has now, for spikes() and
        stoker.rewind():

            for images, labels in watched:
                each = cross_entropy(model(images), labels, reduction="none")
                loss = each.mean()
                loss.backward()
                norm = clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                watched.record(loss, norm, rows=each)

        The device is not waited for: values may be tensors, of which a copy is queued; every 64
        steps they are fetched and written together. So much is lost if the process is killed; an
        exception that ends the program loses nothing. A step takes 28 bytes of a file, a row of
        `rows` 8, and none of the memory.

        grad_norm: of all gradients, before it is clipped.
        rows: a loss for each row of the batch, or for each row that counts, for
            stoker.losses.Losses.hardest() and Rewound.ranked().
        ids: samples of `rows`, ints below 2^32. A loader of stoker knows them.

        The number of a step is the loader's, as Batch.step; of a loader that is not stoker's, that
        of its batches since the watch was made. RuntimeError: the loop has no batch now.
        ValueError: losses that are no number, or not one for each row; a folder of another run.
        OSError: the folder cannot be written.
        """
        if self._pass is None or self._pass.batch is _NONE:
            raise RuntimeError("record() is for the inside of the loop: there is no batch now")
        for field, value in (("loss", loss), ("grad_norm", grad_norm)):
            if math.prod(getattr(value, "shape", ())) != 1:
                raise ValueError(f"{field} has shape {tuple(value.shape)}, must be one number")
        step = self._step_number()
        chosen = None if rows is None else self._ids_of(step, rows, ids)
        if self._writer is None:
            self._writer = self._open_writer()
        self._writer.add(step, loss, grad_norm, rows, chosen)

    def spikes(self, above: float = 4, most: int = 100) -> list[Spike]:
        """Returns the recorded steps that stand out; see stoker.losses.Losses.spikes()."""
        kept = self.kept_losses()
        return [] if kept is None else kept.spikes(above, most)

    def kept_losses(self) -> Losses | None:
        """Returns what record() kept so far; None: nothing. Needs NumPy. It fetches what is still
        on the device.
        """
        if self._writer is None:
            return None
        from stoker.losses import Losses

        self._writer.flush()
        return Losses(self._writer.folder)

    @property
    def watched(self) -> Iterable[Batch]:
        """The loader."""
        return self._loader

    @property
    def log(self) -> StepLog:
        """Every step, in seconds of time.perf_counter()."""
        return self._log

    def report(self) -> str:
        """Returns the verdict and its evidence, for a terminal."""
        return as_text(self._run())

    def to_dict(self) -> dict[str, Any]:
        """Returns what to_json() writes: the fields of profile.json, as far as they apply."""
        return as_json(self._run())

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Writes the report as JSON. OSError: `path` cannot be written."""
        _write(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the same page as `stoker profile`. OSError: `path` cannot be written."""
        _write(path, profile_page(self.to_dict()))

    def _step_number(self) -> int:
        return self._given - 1 if self._inner is None else self._inner._feed.position()[0] - 1

    def _ids_of(self, step: int, rows: Any, ids: Any) -> Rows:
        """ValueError: not as many as `rows`, or nobody knows them."""
        count = _extent("rows", rows)
        if ids is not None:
            _extent("ids", ids)
            given = ids.tolist() if hasattr(ids, "tolist") else list(ids)
            return Rows.of(given, range(len(given)), count, step)
        known = None if self._inner is None else self._inner._batches.rows_of(step)
        if known is None:
            raise ValueError(
                f"rows= are of samples that {_name(self._loader)} does not name: give ids="
            )
        return Rows.of(*known, count, step)

    def _open_writer(self) -> LossWriter:
        inner = self._inner
        rank = rank_and_world(None, None)[0] if inner is None else inner.rank
        writer = LossWriter(self._folder, rank, partial(_state_of, self._loader, inner))
        weakref.finalize(self, writer.flush)  # also where an exception ends the program
        return writer

    def _run(self) -> WatchedRun:
        return WatchedRun(
            loader=_describe(self._loader),
            log=self._log,
            first_waits=self._first_waits,
            alone=self._alone,
            replay=self._replay,
            delay_share=self._delayed_s / self._looped_s if self._looped_s > 0 else math.nan,
            synchronized=self._synchronize is not None,
        )


class WatchedIterator(Watch[Batch], Iterator[Batch]):
    """A watch around an iterator, which is an iterator itself. Every loop over it, and next() after
    the iterator's end or an error, begins a pass.
    """

    def __iter__(self) -> Iterator[Batch]:
        self._end_pass()
        return self

    def __next__(self) -> Batch:
        current = self._pass or self._begin()
        try:
            if self._step(current):
                batch: Batch = current.batch
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


def _delay_seconds() -> float:
    """Returns how long this thread was ready to run but had no core, since it began; nan:
    unknown."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return math.nan


def _write(path: str | os.PathLike[str], text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _name(loader: object) -> str:
    return f"{type(loader).__module__}.{type(loader).__qualname__}"


def _describe(loader: object) -> str:
    """Returns the loader's type, and the settings that a DataLoader has."""
    facts = [_name(loader)]
    for field in ("batch_size", "num_workers", "prefetch_factor"):
        value = getattr(loader, field, None)
        if isinstance(value, int):
            facts.append(f"{field}={value}")
    return ", ".join(facts)


def _extent(field: str, values: Any) -> int:
    shape = getattr(values, "shape", None)
    if shape is not None and len(shape) != 1:
        raise ValueError(f"{field} has shape {tuple(shape)}, must be one number for each row")
    return len(values)


def _state_of(loader: Any, inner: Any) -> dict[str, Any] | None:
    """Returns None while the list of samples grows, and where a sampler lists each epoch anew: a
    state knows the list of its own epoch only.
    """
    if inner is None or inner.source.is_growing or getattr(loader, "_listed", None):
        return None
    state: dict[str, Any] = inner.state_dict()
    return state
