"""Watching a loop over any loader: does it wait for its input?"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from stoker._page import profile_page
from stoker._steps import PHASES, StepLog, Steps, rows_of
from stoker._watch_report import as_json, as_text
from stoker._watched_run import WatchedRun

Batch = TypeVar("Batch")
_NONE = object()  # no batch


def watch(
    loader: Iterable[Batch],
    *,
    warm_up: int = 5,
    replay: int = 0,
    rows: int | Callable[[Batch], int] | None = None,
    synchronize: Callable[[], object] | None = None,
) -> Watch[Batch]:
    """Measures a training loop:

        loader = stoker.watch(loader)
        for batch in loader:                  # the loader's batches as they are
            ...
        print(loader.report())                # does the loop wait for them?
        loader.to_html("profile.html")

    loader: anything to iterate over: a PyTorch DataLoader, a DALI or Grain iterator, a
        stoker.Loader, a list, a generator. Its attributes and len() are the watch's too.
    warm_up: steps at the beginning of every pass that are left out; more than the batches that the
        loader has ready by then (workers x prefetch_factor) is right.
    replay: so many steps get one held batch again, besides the loader's, once as many were
        measured: how fast the steps are with nothing to wait for. It changes what the training
        sees, and len() does not count them.
    rows: of a batch: a number, or a function of the batch. Default: the first length of the first
        thing in it that has a shape; without any, rates are in batches/s.
    synchronize: called after every step, before its end is taken (torch.cuda.synchronize). Without
        it a device that works its queue off later is seen through the host's eyes only.

    TypeError: nothing to iterate over. ValueError: a number that is too small.
    """
    return Watch(loader, warm_up=warm_up, replay=replay, rows=rows, synchronize=synchronize)


class Watch(Generic[Batch]):
    """See watch(). Measurements add up over passes; a step takes 41 bytes. One loop at a time."""

    def __init__(
        self,
        loader: Iterable[Batch],
        *,
        warm_up: int = 5,
        replay: int = 0,
        rows: int | Callable[[Batch], int] | None = None,
        synchronize: Callable[[], object] | None = None,
        most_steps: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
        cpu_clock: Callable[[], float] = time.thread_time,
    ):
        for name, value in (("warm_up", warm_up), ("replay", replay)):
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name} is {value!r}, must be 0 or more steps")
        if not any(hasattr(type(loader), name) for name in ("__iter__", "__getitem__")):
            raise TypeError(f"loader is {loader!r}: there is nothing to iterate over")
        if not (rows is None or callable(rows) or (isinstance(rows, int) and rows > 0)):
            raise ValueError(f"rows is {rows!r}, must be 1 or more, or a function of a batch")
        self._loader = loader
        self._warm_up = warm_up
        self._replay = replay
        self._rows = rows
        self._synchronize = synchronize
        self._most_steps = most_steps  # then a pass ends
        self._clock, self._cpu_clock = clock, cpu_clock
        self._log = StepLog()
        self._first_waits: list[float] = []  # of each pass, seconds
        self._alone: Steps | None = None
        self._counts = dict.fromkeys(PHASES, 0)  # steps
        self._looped_s, self._delayed_s = 0.0, 0.0  # of that, ready to run but without a core

    def __iter__(self) -> Iterator[Batch]:
        """One pass over the loader, with the replayed steps where they are due."""
        began, delayed = self._clock(), _delay_seconds()
        try:
            yield from self._steps(began)
        finally:
            self._looped_s += self._clock() - began
            self._delayed_s += _delay_seconds() - delayed

    def _steps(self, asked: float) -> Iterator[Batch]:
        batches = iter(self._loader)
        batch: Any = _NONE
        number = 0  # of the loader's steps in this pass
        while True:
            phase = self._phase(number)
            cpu = self._cpu_clock()
            if phase != "replayed":
                batch = _NONE  # its memory is the loader's again while that makes the next one
                batch = next(batches, _NONE)
                if batch is _NONE:
                    return
            came, cpu = self._clock(), self._cpu_clock() - cpu
            if number == 0:
                self._first_waits.append(came - asked)
            rows = self.rows_of(batch)
            yield batch
            if self._synchronize is not None:
                self._synchronize()
            done = self._clock()
            self._log.add(phase, asked, came, done, cpu, rows)
            self._counts[phase] += 1
            number += phase != "replayed"
            asked = done
            if len(self._log) == self._most_steps:
                return

    def _phase(self, number: int) -> str:
        counts = self._counts
        if number == 0 or number < self._warm_up:
            return "warm-up" if self._warm_up else "measured"
        if counts["measured"] < self._replay or self._replay == 0:
            return "measured"
        if counts["replayed"] < self._replay:
            return "replayed"
        # Meanwhile the loader has filled its queues, which flatters the next steps.
        return "settling" if counts["settling"] < self._warm_up else "measured"

    def rows_of(self, batch: Batch) -> int:
        """As rates count them; -1: not known."""
        if self._rows is None:
            return rows_of(batch)
        return self._rows if isinstance(self._rows, int) else int(self._rows(batch))

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._loader)  # not by len(), which a generator has not

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # not there yet: a copy that is being made
            raise AttributeError(name)
        return getattr(self._loader, name)

    def measure_loader(self, steps: int = 100) -> float:
        """The loader alone, begun anew and with nothing to do between its batches: rows per second
        (batches, where their rows are not known). It is part of the report from then on. Takes up
        to `steps` batches, which the training does not see; the first `warm_up` are left out.
        A loop's variable still holds the last batch: around a stoker.Loader, which lends its
        memory, drop it first.

        TypeError: the loader is an iterator, which runs once. RuntimeError: it has too few batches.
        ValueError: so few steps.
        """
        if not isinstance(steps, int) or steps <= self._warm_up:
            raise ValueError(f"steps is {steps!r}, must be above the {self._warm_up} of warm-up")
        if iter(self._loader) is self._loader:
            raise TypeError(f"{_name(self._loader)} is an iterator: it cannot be run a second time")
        alone = Watch(
            self._loader,
            warm_up=self._warm_up,
            rows=self._rows,
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

    @property
    def log(self) -> StepLog:
        """Every step as it was; seconds of time.perf_counter()."""
        return self._log

    def report(self) -> str:
        """The verdict and what it rests on, for a terminal."""
        return as_text(self._run())

    def to_dict(self) -> dict[str, Any]:
        """What to_json() writes. Its fields are those of profile.json, as far as they apply."""
        return as_json(self._run())

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """OSError: `path` cannot be written."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        Path(path).write_text(text, encoding="utf-8")

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """The same page as `stoker profile` writes. OSError: `path` cannot be written."""
        Path(path).write_text(profile_page(self.to_dict()), encoding="utf-8")

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


def _delay_seconds() -> float:
    """How long this thread was ready to run and had no core, since it began; nan: not known."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text("ascii").split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return math.nan


def _name(loader: object) -> str:
    return f"{type(loader).__module__}.{type(loader).__qualname__}"


def _describe(loader: object) -> str:
    """Its type, and what a DataLoader says of itself."""
    facts = [_name(loader)]
    for field in ("batch_size", "num_workers", "prefetch_factor"):
        value = getattr(loader, field, None)
        if isinstance(value, int):
            facts.append(f"{field}={value}")
    return ", ".join(facts)
