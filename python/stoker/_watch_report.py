"""The report of a Watch: does its input limit the loop, how sure is that, and what would it gain?
As text, as the fields of profile.json, and as the page of a profile. The terms are those of `stoker
profile`. Pure functions.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker._core import VERSION, shown_word
from stoker._watch_steps import StepLog, Steps, latency, quantile

# As in `stoker profile`: a step that waits for a smaller share of its time is fed, and the
# confidence from which on it has this word.
FED = 0.05
WORDS = {"high": 0.8, "medium": 0.5, "low": 0.0}
_RESAMPLES = 200
# Neighbouring steps are alike, so resampling draws blocks, this many.
_BLOCKS = 50
# With fewer steps the verdict is less sure.
_ENOUGH = 20
# A wait of at least this many median steps is a pause.
_PAUSE = 0.5
# A thread that works for this share of the waiting makes the batches itself; one that only takes
# them works far less.
_OWN_WORK = 0.25
_FAST_ENOUGH = 1.1
# Making a batch and using it take turns if their times add up to the step, within this relative
# error.
_TURNS = 0.15
_LAST_STEPS = 200  # shown one by one
_TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "profile_page.html")
_PLACE = "__STOKER_PROFILE_JSON__"  # once in the template


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


@dataclass
class Verdict:
    """Rates in items/s; shares from 0 to 1."""

    limit: str  # 'device': the device is fed; 'loader'; 'unknown'
    headline: str
    detail: str
    waiting_share: float
    confidence: float
    confidence_text: str
    bound: float | None  # the rate of the same steps if they never waited for the loader
    bound_measured_by: str
    bursts: str | None


def diagnose(steps: Steps, replayed: Steps, alone_rate: float | None, unit: str) -> Verdict:
    """`steps`: the measured ones; `replayed`: those with a held batch, maybe none; `alone_rate`:
    the loader's rate without the loop, if it was measured.
    """
    if len(steps) < 2:
        text = f"low: {len(steps)} steps are too few"
        headline = "nothing that was measured limits: the loop was too short"
        return Verdict("unknown", headline, "", 0.0, 0.0, text, None, "", None)
    share = steps.waiting_share
    fed = share < FED
    bound, by = _bound(steps, replayed)
    confidence, confidence_text = _confidence(steps)
    return Verdict(
        limit="device" if fed else "loader",
        headline=(
            f"the device is fed: it waits {100 * share:.1f}% of the time"
            if fed
            else f"the loader limits: the device waits {100 * share:.1f}% of the time"
        ),
        detail=_detail(steps, bound, alone_rate, unit),
        waiting_share=share,
        confidence=confidence,
        confidence_text=confidence_text,
        bound=bound,
        bound_measured_by=by,
        bursts=bursts(steps),
    )


def _bound(steps: Steps, replayed: Steps) -> tuple[float, str]:
    if len(replayed):
        fed, by = replayed.fed_rate, f"{len(replayed)} steps that replayed a batch"
    else:
        fed, by = steps.fed_rate, f"what {len(steps)} steps took besides waiting"
    return max(fed, steps.rate), by


def _detail(steps: Steps, bound: float, alone_rate: float | None, unit: str) -> str:
    gain = 100 * (bound / steps.rate - 1)
    text = f"a faster loader brings at most {gain:+.1f}%: {steps.rate:.4g} -> {bound:.4g} {unit}"
    if steps.waiting_share < FED:
        return text
    if alone_rate is not None:
        text += f"; alone the loader gives {alone_rate:.4g}"
    if steps.wait_cpu_share >= _OWN_WORK:
        return (
            f"{text}; it does not work ahead: the loop's own thread makes the batches (it is busy "
            f"in {100 * steps.wait_cpu_share:.0f}% of the waiting)"
        )
    if alone_rate is None:
        return text
    # The pace of a loop that has a batch made, uses it, and only then has the next one made.
    in_turns = 1 / (1 / alone_rate + 1 / bound)
    if abs(in_turns / steps.rate - 1) < _TURNS:
        return f"{text}; it does not work ahead: making a batch and using it take turns"
    if alone_rate >= _FAST_ENOUGH * bound:
        return (
            f"{text}, which would do: it works in bursts, or lacks the CPU time that the loop takes"
        )
    return f"{text}: it has to become {bound / alone_rate:.2g} times as fast"


def _confidence(steps: Steps) -> tuple[float, str]:
    shares = sorted(_resampled_shares(steps))
    fed = steps.waiting_share < FED
    agree = sum((share < FED) == fed for share in shares)
    confidence = agree / len(shares) * min(1.0, len(steps) / _ENOUGH)
    word = next(word for word, least in WORDS.items() if confidence >= least)
    low, high = quantile(shares, 0.025), quantile(shares, 0.975)
    few = f"; {len(steps)} steps are few" if len(steps) < _ENOUGH else ""
    return confidence, (
        f"{word}: {agree} of {len(shares)} resamplings of the measured steps say the same; the "
        f"waiting is {100 * low:.1f} to {100 * high:.1f}% (95%){few}"
    )


def _resampled_shares(steps: Steps) -> list[float]:
    size = -(-len(steps) // _BLOCKS)
    wholes = steps.wholes
    blocks = [
        (sum(steps.waits[i : i + size]), sum(wholes[i : i + size]))
        for i in range(0, len(steps), size)
    ]
    draw = random.Random(len(blocks))  # the same times give the same verdict
    shares = []
    for _ in range(_RESAMPLES):
        chosen = draw.choices(blocks, k=len(blocks))
        whole = sum(block[1] for block in chosen)
        shares.append(sum(block[0] for block in chosen) / whole if whole > 0 else 0.0)
    return shares


def bursts(steps: Steps) -> str | None:
    """Returns a sentence if most of the waiting is in a few long waits and other steps hardly wait:
    the loader makes several batches at once, and then none for a while.
    """
    median = quantile(sorted(steps.wholes), 0.5)
    pauses = [i for i, wait in enumerate(steps.waits) if wait > _PAUSE * median]
    held = sum(steps.waits[i] for i in pauses)
    if len(pauses) < 2 or steps.waiting_share < 0.01:
        return None
    gaps = sorted(later - earlier for earlier, later in zip(pauses, pauses[1:]))
    regular = quantile(gaps, 0.9) < 1.5 * quantile(gaps, 0.1)
    # Pauses are at most this share of the steps; with two workers every other step may be one.
    most = 0.6 if regular and gaps[0] > 1 else 1 / 3
    if len(pauses) > most * len(steps) or held < 0.8 * sum(steps.waits):
        return None
    every = "every" if regular else "about every"
    return (
        f"bursts followed by pauses: {100 * held / sum(steps.waits):.0f}% of the waiting is in "
        f"{100 * len(pauses) / len(steps):.0f}% of the steps, {every} {quantile(gaps, 0.5)} "
        f"steps a pause of {1e3 * held / len(pauses):.3g} ms"
    )


def evidence(run: WatchedRun, verdict: Verdict) -> list[tuple[str, str]]:
    """Returns sentences, and what each was measured by."""
    steps = run.measured
    if len(steps) < 2:
        return []
    waits = latency(steps.waits)
    said = [
        (
            f"a step waits {_time(waits['p50_s'])} for its batch (p50), {_time(waits['p90_s'])} "
            f"(p90), {_time(waits['p99_s'])} (p99), {_time(waits['max_s'])} (most)",
            f"time stamps around next() of {len(steps)} steps",
        ),
        (
            f"the loop's own thread works in {100 * steps.wait_cpu_share:.0f}% of the waiting",
            "its CPU clock around next()",
        ),
        (
            f"with a loader that is never waited for it makes {verdict.bound:.4g} {run.unit}",
            verdict.bound_measured_by,
        ),
    ]
    if run.alone is not None:
        said.append(
            (
                f"the loader alone gives {run.alone.rate:.4g} {run.unit}",
                f"{len(run.alone)} batches with nothing done between them",
            )
        )
    later = run.first_waits[1:]
    if later:
        wait = _time(sum(later) / len(later))
        said.append(
            (
                f"a later pass waits {wait} for its first batch",
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


def _shown(word: str) -> str:
    # Only addresses have secrets, and a path may have bytes that are no UTF-8.
    return shown_word(word.encode(errors="replace").decode()) if "://" in word else word


def as_json(run: WatchedRun) -> dict[str, Any]:
    verdict, steps = run.diagnose(), run.measured
    result: dict[str, Any] = {
        "format": "stoker watch 2",
        "command": " ".join(map(_shown, sys.argv)),
        "version": VERSION,
        "loader": run.loader,
        "unit": run.unit,
        "verdict": _verdict_json(run, verdict),
        "warm_up": run.warm_up,
        "measured": _steps_json(steps),
    }
    if len(run.replayed):
        result["replayed"] = _steps_json(run.replayed)
    if run.alone is not None:
        result["loader_alone"] = _steps_json(run.alone)
    result["last_steps"] = {
        "first": max(0, len(steps) - _LAST_STEPS),
        "wait_s": steps.waits[-_LAST_STEPS:],
        "compute_s": steps.computes[-_LAST_STEPS:],
    }
    result["timeline"] = run.log.timeline()
    return result


def _verdict_json(run: WatchedRun, verdict: Verdict) -> dict[str, Any]:
    return {
        "limit": verdict.limit,
        "headline": verdict.headline,
        "detail": verdict.detail,
        "waiting_share": verdict.waiting_share,
        "confidence": verdict.confidence,
        "confidence_text": verdict.confidence_text,
        "bound_images_per_second": verdict.bound,
        "feed_images_per_second": None if run.alone is None else run.alone.rate,
        "bursts": verdict.bursts,
        "evidence": [{"text": text, "measured_by": by} for text, by in evidence(run, verdict)],
        "unknown": unknown(run),
    }


def _steps_json(steps: Steps) -> dict[str, Any]:
    count = max(1, len(steps))
    result = {
        "seconds": steps.seconds,
        "steps": len(steps),
        "images_per_second": steps.rate,
        "spread": steps.spread,
        "jitter": steps.jitter,
        "step": {
            "step_s": steps.seconds / count,
            "compute_s": sum(steps.computes) / count,
            "input_wait_s": sum(steps.waits) / count,
            "waiting_share": steps.waiting_share,
            "input_wait_cpu_share": steps.wait_cpu_share,
        },
    }
    if len(steps):
        result["latency"] = {
            "input wait": latency(steps.waits),
            "compute": latency(steps.computes),
            "step": latency(steps.wholes),
        }
    return result


def as_text(run: WatchedRun) -> str:
    verdict, steps = run.diagnose(), run.measured
    lines = [f"VERDICT     {verdict.headline}"]
    if verdict.detail:
        lines.append(f"            {verdict.detail}")
    lines.append(f"confidence  {verdict.confidence_text}")
    if verdict.bursts:
        lines.append(f"bursts      {verdict.bursts}")
    lines.append("")
    if len(steps) >= 2:
        lines += _split_lines(run, steps)
    warm = run.warm_up
    first = warm["first_batch_s"]
    lines.append(
        f"warm-up: {warm['seconds']:.1f} s, {warm['steps']} steps left out; "
        + ("there was no batch" if first is None else f"the first batch came after {first:.2f} s")
    )
    lines.append("")
    lines += [f"- {text} [{by}]" for text, by in evidence(run, verdict)]
    lines += [f"? unknown: {text}" for text in unknown(run)]
    return "\n".join(lines)


def _split_lines(run: WatchedRun, steps: Steps) -> list[str]:
    step = steps.seconds / len(steps)
    lines = [
        f"a step takes {1e3 * step:.2f} ms, {steps.rate:.4g} {run.unit} "
        f"(± {100 * steps.spread:.1f}% over the run; its length ± {100 * steps.jitter:.1f}%)"
    ]
    for name, values in (("compute", steps.computes), ("wait for a batch", steps.waits)):
        mean = sum(values) / len(steps)
        lines.append(f"  {name:<20} {f'{1e3 * mean:.2f} ms':>10}  {100 * mean / step:>5.1f}%")
    return lines


def profile_page(profile: Mapping[str, Any]) -> str:
    """Returns a self-contained HTML page that shows `profile`, the contents of a profile.json: from
    Watch.to_dict() or from `stoker profile`. Parts that it lacks are left out.

    ValueError: a number that JSON cannot express (nan, inf).
    """
    with open(_TEMPLATE, encoding="utf-8") as file:
        template = file.read()
    # '<' occurs only in strings. Written as \u003c, no name can end the <script> element.
    data = json.dumps(profile, allow_nan=False).replace("<", "\\u003c")
    return template.replace(_PLACE, data)
