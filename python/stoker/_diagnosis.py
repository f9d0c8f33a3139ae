"""Diagnoses a watched loop: does its input limit it, how sure is that, and what would it gain?
The terms are those of `stoker profile`. Pure functions.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from stoker._steps import Steps, half_width, quantile

FED = 0.05  # a step that waits for a smaller share of its time is fed, as in `stoker profile`
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
    word = "high" if confidence >= 0.8 else "medium" if confidence >= 0.5 else "low"
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


def jitter(steps: Steps) -> float:
    """Returns the relative spread of a step's length: half of (p90 - p10) / p50."""
    return half_width(steps.wholes)
