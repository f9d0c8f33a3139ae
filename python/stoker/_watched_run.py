"""The measurements of a Watch, and what can and cannot be concluded from them. Pure functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from stoker._steps import StepLog, Steps, latency
from stoker._diagnosis import Verdict, diagnose


@dataclass
class WatchedRun:
    loader: str
    log: StepLog
    first_waits: list[float]  # of each pass, seconds
    alone: Steps | None  # the loader without the loop
    replay: int  # how many replayed steps were requested
    delay_share: float  # share of the loop's time in which its thread had no core; nan: unknown
    synchronized: bool

    @property
    def measured(self) -> Steps:
        return self.log.of_phase("measured")

    @property
    def replayed(self) -> Steps:
        return self.log.of_phase("replayed")

    @property
    def unit(self) -> str:
        return "images/s" if self.log.sizes_known else "batches/s"

    def diagnose(self) -> Verdict:
        alone = None if self.alone is None else self.alone.rate
        return diagnose(self.measured, self.replayed, alone, self.unit)

    @property
    def warm_up(self) -> dict[str, Any]:
        left_out = self.log.of_phase("warm-up")
        return {
            "seconds": left_out.seconds,
            "steps": len(left_out),
            "first_batch_s": self.first_waits[0] if self.first_waits else None,
        }


def evidence(run: WatchedRun, verdict: Verdict) -> list[tuple[str, str]]:
    steps, said = run.measured, []
    if len(steps) < 2:
        return []
    waits = latency(steps.waits)
    said.append(
        (
            f"a step waits {_time(waits['p50_s'])} for its batch (p50), {_time(waits['p90_s'])} "
            f"(p90), {_time(waits['p99_s'])} (p99), {_time(waits['max_s'])} (most)",
            f"time stamps around next() of {len(steps)} steps",
        )
    )
    said.append(
        (
            f"the loop's own thread works in {100 * steps.wait_cpu_share:.0f}% of the waiting",
            "its CPU clock around next()",
        )
    )
    said.append(
        (
            f"with a loader that is never waited for it makes {verdict.bound:.4g} {run.unit}",
            verdict.bound_measured_by,
        )
    )
    if run.alone is not None:
        said.append(
            (
                f"the loader alone gives {run.alone.rate:.4g} {run.unit}",
                f"{len(run.alone)} batches with nothing done between them",
            )
        )
    if len(run.first_waits) > 1:
        later = run.first_waits[1:]
        said.append(
            (
                f"a later pass waits {_time(sum(later) / len(later))} for its first batch",
                f"the beginnings of {len(later)} passes",
            )
        )
    if not math.isnan(run.delay_share):
        said.append(
            (
                f"the loop's thread waited for a core {100 * run.delay_share:.1f}% of the time",
                "/proc/thread-self/schedstat",
            )
        )
    return said


def unknown(run: WatchedRun) -> list[str]:
    parts = ["which stage of the loader is slow: its inside was not measured"]
    if not run.synchronized:
        parts.append(
            "what a device did that works its queue off later: the times are the host's "
            "(synchronize= waits for it after each step)"
        )
    if len(run.replayed) == 0:
        asked = f", {run.replay} asked for, came too late" if run.replay else " (replay=)"
        parts.append(
            f"the steps' own pace, if the loader slows them down: no step replayed a batch{asked}"
        )
    if run.alone is None:
        parts.append("what the loader gives alone: not measured (measure_loader())")
    if not run.log.sizes_known:
        parts.append("images/s: the size of a batch is not known (batch_size=)")
    return parts


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{1e6 * seconds:.0f} us"
    return f"{1e3 * seconds:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"
