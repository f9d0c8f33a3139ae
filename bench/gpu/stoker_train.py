"""Runs `stoker train` for gpu-check and reads its figures from the run's metrics.jsonl."""
import json
import os
import re
import shutil
import statistics

from runner import Failed, NotRun, last_words, run
from stoker_program import need_graphs, run_ours

LONGEST_RUN = 90  # seconds; a run that hangs must not take the time of those after it


def has_option(check, name):
    """Returns whether this build's `stoker train` has the option."""
    if check.train_help is None:
        check.train_help = run([check.layout.stoker, "train", "--help"], 20, check.log, check.layout.env)[1]
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", check.train_help) is not None


def need_options(check, words):
    absent = [w for w in words if w.startswith("--") and not has_option(check, w)]
    if absent:
        raise NotRun(f"option missing: stoker train has no {', '.join(absent)}")


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
    need_options(check, words)
    folder = os.path.join(check.work, "runs", name)
    shutil.rmtree(folder, ignore_errors=True)
    precision = ["--precision", "bf16"] if check.on_gpu else []
    command = [check.layout.stoker, "train", "--devices", devices or check.device, "--out", folder, *precision, *words]
    code, output, seconds = run_ours(check, command, min(timeout, LONGEST_RUN))
    if code == 2 and "not in {" in output:
        raise NotRun(f"stoker train has no such value: {last_words(output, 1)}")
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
