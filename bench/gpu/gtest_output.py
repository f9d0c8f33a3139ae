"""Parses the output of a GoogleTest program, even of one that was killed."""
import re

LINE = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] (\S+?\.\S+?)(?:,.*| \(\d+ ms\))?$")
STATES = {"RUN": "running", "OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


def states(output):
    """Returns {test: "passed", "failed", "skipped" or "running"}, in the order in which they ran.
    The summary at the end of the output repeats the same states."""
    return {match[2]: STATES[match[1]] for match in map(LINE.search, output.splitlines()) if match}


def summary(output):
    """Returns {"tests", "passed", "failed_tests", "skipped_tests", "running"} of an output, or None
    if no test ran. "running" is the test that did not end; the key is missing if all ended."""
    found = states(output)
    if not found:
        return None

    def names(state):
        return [name for name, is_now in found.items() if is_now == state]

    result = {"tests": len(found), "passed": len(names("passed")), "failed_tests": names("failed"),
              "skipped_tests": names("skipped")}
    return {**result, "running": names("running")[-1]} if names("running") else result
