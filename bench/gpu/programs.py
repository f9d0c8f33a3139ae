"""Runs stoker's own programs for gpu-check and reads what they report: JSON, a training's metrics.jsonl, tests. A step that ran
without CUDA graphs is a failure, whichever program reports it."""
import json
import os
import re
import shutil
import statistics

from runner import Failed, json_of, last_words, run

NO_GRAPHS = re.compile(r"no graphs: ([^\"\n]*)")
LONGEST_RUN = 90  # seconds; a run that hangs must not take the time of those after it
TEST_LINE = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] (\S+?\.\S+?)(?:,.*| \(\d+ ms\))?$")
TEST_STATES = {"RUN": "running", "OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


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


def as_words(options):
    """Returns {"name": value} as words of a command line."""
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def program_bench(check, timeout, name, options):
    """Returns the results of `stoker bench NAME` on the device."""
    words = [check.layout.stoker, "bench", name, "--device", check.device, "--json", *as_words(options)]
    return run_ours_json(check, words, timeout)["results"]


def read_metrics(folder):
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def steady(rows, skip_steps):
    """Returns the rows of the steps after the first ones, which make plans and fill the ring."""
    return [r for r in rows if r["kind"] == "step" and r["step"] > skip_steps]


def train(check, name, words, timeout, skip_steps=0, devices=None):
    """Runs one training in its own folder, which is removed afterwards. The speed is the median
    over the logged intervals after `skip_steps`; the seconds of training are those of stoker's own
    clock, without evaluation."""
    folder = os.path.join(check.work, "runs", name)
    shutil.rmtree(folder, ignore_errors=True)
    precision = ["--precision", "bf16"] if check.on_gpu else []
    command = [check.layout.stoker, "train", "--devices", devices or check.device, "--out", folder, *precision, *words]
    code, output, seconds = run_ours(check, command, min(timeout, LONGEST_RUN))
    if code != 0:
        raise Failed(f"stoker train ended with {code}: {last_words(output)}")
    rows = read_metrics(folder)
    shutil.rmtree(folder)
    need_graphs("\n".join(str(row["warning"]) for row in rows if row["kind"] == "warning"))
    kept = steady(rows, skip_steps)
    if not kept:
        raise Failed(f"stoker train logged nothing after step {skip_steps}")
    epochs = [r for r in rows if r["kind"] == "epoch"]
    evaluated = [r["eval_top1"] for r in epochs if r.get("eval_top1") is not None]
    return {"images_per_second": statistics.median(r["images_per_second"] for r in kept),
            "feed_wait_share": statistics.fmean(r["feed_wait_share"] for r in kept),
            "train_seconds": sum(r["seconds"] for r in epochs), "wall_seconds": seconds,
            "top1": evaluated[-1] if evaluated else None, "top1_plain": plain_top1(output)}


def plain_top1(output):
    """Returns top-1 with 1 view, which the program's summary has if the run ends with more
    views."""
    found = re.search(r"^evaluated\s+top-1 ([0-9.]+)%, 1 view$", output, re.MULTILINE)
    return float(found.group(1)) / 100 if found else None


def test_states(output):
    """Returns {test: "passed", "failed", "skipped" or "running"}, in the order in which they ran.
    The summary at the end of the output repeats the same states."""
    return {match[2]: TEST_STATES[match[1]] for match in map(TEST_LINE.search, output.splitlines()) if match}


def test_summary(output):
    """Returns {"tests", "passed", "failed_tests", "skipped_tests", "running"} of an output, or None
    if no test ran. "running" is the test that did not end; the key is missing if all ended."""
    found = test_states(output)
    if not found:
        return None

    def names(state):
        return [name for name, is_now in found.items() if is_now == state]

    result = {"tests": len(found), "passed": len(names("passed")), "failed_tests": names("failed"),
              "skipped_tests": names("skipped")}
    return {**result, "running": names("running")[-1]} if names("running") else result
