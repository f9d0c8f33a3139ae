"""stoker.emulate(): any loader against an emulated accelerator."""

from __future__ import annotations

import os
import re
import subprocess
import time

import numpy as np
import pytest

import stoker
from stoker import _core

BATCH = np.zeros((8, 2, 2, 3), np.uint8)


def slow(count: int, seconds: float):
    for _ in range(count):
        time.sleep(seconds)
        yield BATCH


def test_utilisation_is_computing_over_running_time():
    run = stoker.emulate([BATCH] * 6, rate=800)
    assert (run.batch_size, run.steps, run.step_seconds) == (8, 5, pytest.approx(0.01))
    assert run.utilisation == pytest.approx(5 * 0.01 / run.running_seconds)
    assert 0 < run.utilisation <= 1
    assert run.images_per_second == pytest.approx(40 / run.running_seconds)
    assert run.waiting_seconds == pytest.approx(sum(run.waits))
    assert "8 samples and 10.0 ms" in run.report()


def test_a_loader_that_is_too_slow_does_not_pass():
    run = stoker.emulate(slow(6, 0.03), rate=800)
    assert run.utilisation <= 0.25  # 10 ms of at least 40
    assert not run.passes
    assert run.waiting_seconds >= 5 * 0.03
    assert run.watch.to_dict()["verdict"]["limit"] == "loader"


def test_steps_begin_the_loader_anew():
    assert stoker.emulate([BATCH] * 3, rate=1e5, steps=7).steps == 6
    assert stoker.emulate([BATCH] * 30, rate=1e5, steps=7).steps == 6
    assert stoker.emulate(iter([BATCH] * 3), rate=1e5, steps=7).steps == 2  # an iterator runs once


def test_accelerators_are_those_of_the_program():
    program = os.environ.get("STOKER_PROGRAM")
    if not program:
        pytest.skip("no STOKER_PROGRAM")
    text = subprocess.run(
        [program, "bench", "emulate", "--help"], capture_output=True, text=True, check=True
    ).stdout
    line = r"^ +(\S+) +(\d+) images/s, (\d+) samples every ([\d.]+) s: (.*)$"
    listed = re.findall(line, text, re.M)
    assert len(listed) >= 4
    for name, rate, rows, seconds, source in listed:
        spec = _core.find_accelerator(name)
        assert (spec.batch, spec.source) == (int(rows), source)
        assert spec.step_seconds == pytest.approx(float(seconds), abs=6e-5)
        assert round(spec.images_per_second) == int(rate)


def test_a_step_is_as_long_as_the_batch_takes():
    run = stoker.emulate([BATCH] * 3, accel="h100-training")
    assert run.accelerator == "h100-training"
    assert run.step_seconds == pytest.approx(8 / 7006)
    assert stoker.emulate([BATCH] * 3).step_seconds == pytest.approx(8 * 0.224 / 400)


def test_what_makes_no_sense():
    with pytest.raises(ValueError, match="only one of them"):
        stoker.emulate([BATCH], rate=100, accel="a100")
    with pytest.raises(ValueError, match="there is no accelerator 'b100', there are a100, h100"):
        stoker.emulate([BATCH], accel="b100")
    for rate in (0, -1, float("nan"), float("inf"), "10"):
        with pytest.raises(ValueError, match="rate is"):
            stoker.emulate([BATCH], rate=rate)
    with pytest.raises(ValueError, match="steps is 1"):
        stoker.emulate([BATCH], steps=1)
    with pytest.raises(ValueError, match="say batch_size="):
        stoker.emulate([[1], [2]], rate=100)
    with pytest.raises(ValueError, match="the first batch is empty"):
        stoker.emulate([BATCH[:0]] * 2, rate=100)
    with pytest.raises(RuntimeError, match="the loader gave 1 batches"):
        stoker.emulate([BATCH], rate=1e5)
    with pytest.raises(RuntimeError, match="the loader gave 0 batches"):
        stoker.emulate([], rate=1e5)
