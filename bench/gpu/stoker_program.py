"""Runs our own programs for gpu-check. A step that ran without CUDA graphs is a failure, whichever
program reports it."""
import re

from runner import Failed, json_of, run

NO_GRAPHS = re.compile(r"no graphs: ([^\"\n]*)")


def need_graphs(text):
    """Raises Failed if a program reported that it could not capture its step, because it continued
    at another speed."""
    found = NO_GRAPHS.search(text)
    if found:
        raise Failed(f"the step ran without CUDA graphs: {found[1].strip()}")


def run_ours(check, words, timeout):
    """Runs one of our programs; returns (exit code, output, seconds)."""
    code, output, seconds = run(words, timeout, check.log, check.layout.env)
    need_graphs(output)
    return code, output, seconds


def run_ours_json(check, words, timeout):
    """Runs one of our programs and returns the JSON object that it prints."""
    code, output, _ = run_ours(check, words, timeout)
    return json_of(words[0], code, output)


def program_bench(check, timeout, name, options):
    """Returns the results of `stoker bench NAME` on the device."""
    words = [check.layout.stoker, "bench", name, "--device", check.device, "--json"]
    for option, value in options.items():
        words += [f"--{option}", str(value)]
    return run_ours_json(check, words, timeout)["results"]
