"""Steps that measure staging: slots between the host and the device, slices for replicas, the
kernel that normalises."""
from measure import attempt, missing
from stoker_program import program_bench


def staging(check, timeout):
    """k = 0 to 3 slots: the idle gap between steps, images/s, and what a batch costs the host."""
    end = check.clock() + timeout
    return {case["name"]: attempt(depth, check, end - check.clock(), case) for case in check.scale["staging"]}


def depth(check, timeout, case):
    """Measures between steps of the model, or between emulated ones of about its length if it
    cannot run."""
    end = check.clock() + timeout
    options = {"batch": case["batch"], "size": case["size"], "steps": case["steps"], "repeats": case["repeats"]}
    result = attempt(program_bench, check, timeout, "depth", {**options, "model": case["model"]})
    reason = missing(result)
    if not reason:
        return result
    emulated = program_bench(check, end - check.clock(), "depth", {**options, "step-ms": case["step_ms"]})
    return {**emulated, "instead_of_the_model": reason}


def slicing(check, timeout):
    """A batch for N replicas, sliced on the host or on the device: bytes and milliseconds."""
    return program_bench(check, timeout, "slice", check.scale["slicing"])


def normalise(check, timeout):
    """The kernel that turns bytes into the net's input: milliseconds per batch and GB/s, for each type and layout."""
    return program_bench(check, timeout, "layout", check.scale["normalise"])
