"""Summarises figures: the median of the runs, beside all runs."""
import statistics

from runner import Failed, NotRun


def summary(values):
    values = [float(v) for v in values]
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": values}


def attempt(function, *args):
    """Returns a function's result, or the reason why there is none, so that the rest of a step
    still runs. The figures found before a failure are beside its reason."""
    try:
        return function(*args)
    except NotRun as reason:
        return {"not_run": str(reason)}
    except Failed as reason:
        return {**reason.found, "failed": str(reason)}


def missing(result):
    """Returns why a result holds no figures, or None."""
    if result is None:
        return "not run"
    if "not_run" in result:
        return f"not run: {result['not_run']}"
    return f"failed: {result['failed']}" if "failed" in result else None


def failures(result):
    """Returns what failed in a result and its parts."""
    if not isinstance(result, dict):
        return []
    own = [result["failed"]] if "failed" in result else [f"{name} failed" for name in result.get("failed_tests", [])]
    return own + [text for value in result.values() for text in failures(value)]
