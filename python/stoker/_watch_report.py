"""The measurements of a Watch, as text and as the fields of profile.json. Pure functions."""

from __future__ import annotations

import sys
from typing import Any

from stoker._core import VERSION, shown_word
from stoker._steps import Steps, latency
from stoker._diagnosis import Verdict, jitter
from stoker._watched_run import WatchedRun, evidence, unknown

_LAST_STEPS = 200  # shown one by one


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
        "jitter": jitter(steps),
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
        f"(± {100 * steps.spread:.1f}% over the run; its length ± {100 * jitter(steps):.1f}%)"
    ]
    for name, values in (("compute", steps.computes), ("wait for a batch", steps.waits)):
        mean = sum(values) / len(steps)
        lines.append(f"  {name:<20} {f'{1e3 * mean:.2f} ms':>10}  {100 * mean / step:>5.1f}%")
    return lines
