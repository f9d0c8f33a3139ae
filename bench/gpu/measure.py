"""Figures, and how they are summed up: the median of the runs, beside all runs."""
import statistics

from runner import Failed, NotRun


def summary(values):
    values = [float(v) for v in values]
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": values}


def attempt(function, *args):
    """What a function gives, or why it gives nothing, so that the rest of a step still runs. What a failure had found before
    stands beside its reason."""
    try:
        return function(*args)
    except NotRun as reason:
        return {"not_run": str(reason)}
    except Failed as reason:
        return {**reason.found, "failed": str(reason)}


def missing(result):
    """Why a result holds no figures, or None."""
    if result is None:
        return "not run"
    if "not_run" in result:
        return f"not run: {result['not_run']}"
    return f"failed: {result['failed']}" if "failed" in result else None


def failures(result):
    """What failed in a result and its parts."""
    if not isinstance(result, dict):
        return []
    own = [result["failed"]] if "failed" in result else [f"{name} failed" for name in result.get("failed_tests", [])]
    return own + [text for value in result.values() for text in failures(value)]
