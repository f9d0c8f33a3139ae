"""The steps of a watched loop: when each asked for its batch, got it, and was done."""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PHASES = ("warm-up", "settling", "measured", "replayed")  # names as in `stoker profile`
UNKNOWN_SIZE = -1
_SLICES = 100  # of a timeline
_PARTS = 20  # of a run, whose paces are compared


class StepLog:
    """Grows by 41 bytes per step. Times are in seconds of one clock. While a loop adds
    steps, other threads look at a copy: arrays move when they grow.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.asked, self.came, self.done = array("d"), array("d"), array("d")
        self.wait_cpu = array("d")  # CPU seconds of the loop's thread, while it waited
        self.sizes = array("q")  # of the batch; UNKNOWN_SIZE
        self.phases = bytearray()  # indices into PHASES

    def __len__(self) -> int:
        return len(self.done)

    def add(
        self, phase: str, asked: float, came: float, done: float, wait_cpu: float, samples: int
    ) -> None:
        with self._lock:
            self.phases.append(PHASES.index(phase))
            self.asked.append(asked)
            self.came.append(came)
            self.done.append(done)
            self.wait_cpu.append(wait_cpu)
            self.sizes.append(samples)

    def __getstate__(self) -> dict[str, Any]:  # also of a deep copy
        state = dict(self.copied().__dict__)
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def copied(self) -> StepLog:
        copied = StepLog()
        with self._lock:
            copied.asked, copied.came, copied.done = self.asked[:], self.came[:], self.done[:]
            copied.wait_cpu, copied.sizes = self.wait_cpu[:], self.sizes[:]
            copied.phases = self.phases[:]
        return copied

    def of_phase(self, phase: str) -> Steps:
        sizes_known = self.sizes_known
        chosen = [i for i, index in enumerate(self.phases) if PHASES[index] == phase]
        return Steps(
            waits=[self.came[i] - self.asked[i] for i in chosen],
            computes=[self.done[i] - self.came[i] for i in chosen],
            wait_cpu_s=sum(self.wait_cpu[i] for i in chosen),
            items=sum(self.sizes[i] if sizes_known else 1 for i in chosen),
            first=chosen[0] if chosen else 0,
        )

    @property
    def sizes_known(self) -> bool:
        return len(self) > 0 and min(self.sizes) != UNKNOWN_SIZE

    def timeline(self) -> list[dict[str, Any]]:
        """Returns slices of equal length, with the fields of profile.json."""
        if not len(self):
            return []
        begin, end = self.asked[0], self.done[-1]
        length = max(end - begin, 1e-9) / _SLICES
        sizes_known = self.sizes_known
        rates, waiting, phases = [0.0] * _SLICES, [0.0] * _SLICES, ["between passes"] * _SLICES
        for i in range(len(self)):
            asked, came, done = (t[i] - begin for t in (self.asked, self.came, self.done))
            pace = (self.sizes[i] if sizes_known else 1) / max(done - asked, 1e-9)
            last = min(int(done / length), _SLICES - 1)
            for at in range(min(int(asked / length), last), last + 1):
                low, high = at * length, (at + 1) * length
                phases[at] = PHASES[self.phases[i]]
                rates[at] += pace * max(0.0, min(done, high) - max(asked, low)) / length
                waiting[at] += max(0.0, min(came, high) - max(asked, low)) / length
        return [
            {
                "begin_s": i * length,
                "length_s": length,
                "phase": phases[i],
                "images_per_second": rates[i],
                "waiting_share": min(1.0, waiting[i]),
            }
            for i in range(_SLICES)
        ]


@dataclass
class Steps:
    """The steps of one phase, in order. Seconds."""

    waits: list[float]  # for the batch
    computes: list[float]  # what the loop did with it
    wait_cpu_s: float  # CPU time of the loop's thread in all waits
    items: int  # samples; or steps, if the size of some batch is unknown
    first: int  # number of the first step in its run

    def __len__(self) -> int:
        return len(self.waits)

    @property
    def wholes(self) -> list[float]:
        return [wait + compute for wait, compute in zip(self.waits, self.computes)]

    @property
    def seconds(self) -> float:
        return sum(self.waits) + sum(self.computes)

    @property
    def waiting_share(self) -> float:
        return sum(self.waits) / self.seconds if self.seconds > 0 else 0.0

    @property
    def wait_cpu_share(self) -> float:
        """The share of the waiting in which the loop's own thread worked."""
        waiting = sum(self.waits)
        return self.wait_cpu_s / waiting if waiting > 0 else 0.0

    @property
    def rate(self) -> float:
        """Items per second."""
        return self.items / self.seconds if self.seconds > 0 else 0.0

    @property
    def fed_rate(self) -> float:
        """Items per second if no step had waited."""
        computing = sum(self.computes)
        return self.items / computing if computing > 0 else 0.0

    @property
    def spread(self) -> float:
        """The relative spread of the pace over parts of the run; see _half_width()."""
        size = max(1, math.ceil(len(self) / _PARTS))
        wholes = self.wholes
        parts = [wholes[i : i + size] for i in range(0, len(wholes), size)]
        return _half_width([len(part) / sum(part) for part in parts if sum(part) > 0])

    @property
    def jitter(self) -> float:
        """The relative spread of a step's length."""
        return _half_width(self.wholes)


def quantile(values: Sequence[float], q: float) -> float:
    """Returns the value that a share q of `values` does not exceed. They are sorted; at least
    one."""
    return values[min(len(values) - 1, max(0, math.ceil(q * len(values)) - 1))]


def _half_width(values: Sequence[float]) -> float:
    """Returns half of (p90 - p10) / p50."""
    ordered = sorted(values)
    if not ordered or quantile(ordered, 0.5) <= 0:
        return 0.0
    return (quantile(ordered, 0.9) - quantile(ordered, 0.1)) / (2 * quantile(ordered, 0.5))


def latency(values: Sequence[float]) -> dict[str, Any]:
    """Returns latencies with the fields of profile.json; at least one value."""
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "mean_s": sum(ordered) / len(ordered),
        "p50_s": quantile(ordered, 0.5),
        "p90_s": quantile(ordered, 0.9),
        "p99_s": quantile(ordered, 0.99),
        "max_s": ordered[-1],
        "cpu_mean_s": None,
    }


def first_extent(batch: Any) -> int:
    """Returns the first extent of the first object in `batch` with a shape, or UNKNOWN_SIZE."""
    waiting = [batch]
    for _ in range(64):  # enough for every loader, and ends for cyclic objects
        if not waiting:
            break
        item = waiting.pop(0)
        shape = getattr(item, "shape", None)
        if shape is None:
            shape = getattr(getattr(item, "images", None), "shape", None)  # stoker.Batch
        if shape is not None and not callable(shape) and len(shape) > 0:
            return int(shape[0])
        if isinstance(item, dict):
            waiting[:0] = list(item.values())[:8]
        elif isinstance(item, (tuple, list)):
            waiting[:0] = item[:8]
    return UNKNOWN_SIZE
