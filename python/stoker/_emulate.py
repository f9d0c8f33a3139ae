"""Runs any loader against an emulated accelerator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

from stoker import _core
from stoker._watch import Watch
from stoker._watch_steps import quantile

@dataclass(frozen=True)
class Emulation:
    """How busy an emulated accelerator was kept, by the rules of MLPerf Storage: the first step
    does not count, and utilisation = computing time / running time. A result of MLPerf Storage is
    the mean of 5 runs.
    """

    accelerator: str
    source: str  # where the rate comes from
    asked_images_per_second: float
    batch_size: int  # of a step
    step_seconds: float  # how long a step computes
    steps: int
    utilisation: float  # 0 to 1
    running_seconds: float
    waiting_seconds: float  # how much of it waited for batches
    images_per_second: float
    waits: list[float]  # of every step, seconds
    watch: Watch[Any]  # its report(), to_json(), to_html()
    pass_utilisation: float  # what MLPerf Storage requires: 0.9, or 0.85 for RetinaNet

    @property
    def passes(self) -> bool:
        """Whether the accelerator was busy for at least as much of the time as it must be."""
        return self.utilisation >= self.pass_utilisation

    def report(self) -> str:
        ordered = sorted(self.waits)
        p50, p99 = quantile(ordered, 0.5), quantile(ordered, 0.99)
        return (
            f"{self.accelerator}: {100 * self.utilisation:.1f}% busy, "
            f"{self.images_per_second:.4g} of {self.asked_images_per_second:.4g} images/s; "
            f"{self.steps} steps of {self.batch_size} samples and "
            f"{1e3 * self.step_seconds:.1f} ms; "
            f"a step waits {1e3 * p50:.1f} ms (p50), {1e3 * p99:.1f} ms (p99), "
            f"{1e3 * ordered[-1]:.1f} ms (most)"
        )


def emulate(
    loader: Iterable[Any],
    *,
    rate: float | None = None,
    accel: str | None = None,
    batch_size: int | Callable[[Any], int] | None = None,
    steps: int | None = None,
) -> Emulation:
    """Runs `loader` against an emulated accelerator: every step is a sleep as long as a real one
    was measured to take, so the interpreter lock is free for the loader's threads.

    rate: images/s that it takes; or
    accel: 'a100', 'h100', 'b200-retinanet' (as MLPerf Storage emulates them), 'h100-training',
        'h200-training' (as fast as one GPU trained): the rates of `stoker bench emulate`. Default:
        'h100'.
    batch_size: samples of a batch, as for watch(). The first batch determines the length of a step.
    steps: default one pass; for more steps the loader begins again, unless it is an iterator.

    ValueError: an unknown accelerator, an invalid rate, both, or batches of unknown size.
    RuntimeError: the loader gave fewer than two batches.
    """
    if rate is not None and accel is not None:
        raise ValueError(f"rate={rate!r} and accel={accel!r}: only one of them")
    if steps is not None and (not isinstance(steps, int) or steps < 2):
        raise ValueError(f"steps is {steps!r}, must be 2 or more")
    known = None if rate is not None else _core.find_accelerator(accel or "h100")
    asked = known.images_per_second if known is not None else rate
    if not isinstance(asked, Real) or not 0 < asked < float("inf"):
        raise ValueError(f"rate is {rate!r}, must be more than 0 images/s")
    watched = Watch(loader, warm_up=1, batch_size=batch_size, most_steps=steps)
    spec = None
    for batch in _batches(watched, steps):
        if spec is None:
            spec = _core.accelerator_of_rate(asked, _batch_size_of(watched, batch))
        time.sleep(spec.step_seconds)
    log = watched.log
    if spec is None or len(log) < 2:
        raise RuntimeError(f"the loader gave {len(log)} batches, at least 2 are needed")
    used = _core.utilisation(list(log.asked), list(log.came), list(log.done), spec.step_seconds)
    return Emulation(
        accelerator=known.name if known is not None else spec.name,
        source=known.source if known is not None else spec.source,
        asked_images_per_second=asked,
        batch_size=spec.batch,
        step_seconds=spec.step_seconds,
        steps=used.steps,
        utilisation=used.share,
        running_seconds=used.running_seconds,
        waiting_seconds=used.waiting_seconds,
        images_per_second=sum(log.sizes[1:]) / used.running_seconds,
        waits=[came - asked_at for asked_at, came in zip(log.asked[1:], log.came[1:])],
        watch=watched,
        pass_utilisation=known.pass_utilisation if known is not None else spec.pass_utilisation,
    )


def _batches(watched: Watch[Any], steps: int | None) -> Iterator[Any]:
    """Yields the batches of one pass, or of as many as `steps` needs; an iterator has no second
    one."""
    while True:
        before = len(watched.log)
        yield from watched
        now = len(watched.log)
        if steps is None or now >= steps or now == before:
            return


def _batch_size_of(watched: Watch[Any], batch: Any) -> int:
    samples = watched.batch_size_of(batch)
    if samples < 1:
        raise ValueError("the first batch is empty, or its size is not known: say batch_size=")
    return samples
