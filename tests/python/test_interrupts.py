"""SIGINT at random moments of a Loader's life, many times: no hang, no thread left, no batch lost.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from conftest import child_environment, must_run

IMPORTS = """
import gc, os, random, signal, threading, time
import numpy as np
import stoker

rng = random.Random(5)
source = stoker.synthetic(96, size=32)
options = dict(batch_size=8, seed=1, workers=1, size=96,
               augment=stoker.random_resized_crop() | stoker.color_jitter(0.4, 0.4, 0.4))
with stoker.Loader(source, copy=True, **options) as plain:
    truth = [np.asarray(batch.images).tobytes() for _ in range(2) for batch in plain]

def threads():
    return len(os.listdir("/proc/self/task"))

def check(batch):
    assert np.asarray(batch.images).tobytes() == truth[batch.step], f"step {batch.step}"

def interrupted(work):
    '''Calls work() until a SIGINT, sent within 20 ms, has come; whether it was seen.'''
    sent = threading.Event()
    def send():
        os.kill(os.getpid(), signal.SIGINT)
        sent.set()
    timer = threading.Timer(rng.random() * 0.02, send)
    seen = False
    try:
        timer.start()
        while not sent.is_set():
            work()
        time.sleep(0.1)  # it is there within this, if Python did not swallow it
    except KeyboardInterrupt:
        seen = True
    timer.join()
    gc.collect()
    return seen
"""


@pytest.mark.parametrize("on_batch", ["None", "lambda batch: batch"])
def test_at_any_moment_of_a_loaders_life(on_batch):
    """Made, iterated, moved, left early, closed. (Python itself swallows a few signals: those that
    come while it runs a destructor.)"""
    must_run(
        IMPORTS
        + f"options['on_batch'] = {on_batch}\n"
        + textwrap.dedent(
            """
            def life():
                with stoker.Loader(source, **options) as loader:
                    state = loader.state_dict()
                    for batch in loader:
                        check(batch)
                    loader.load_state_dict(state)
                    loader.set_epoch(1)
                    for batch in loader:
                        check(batch)
                        if batch.step_in_epoch == 2:
                            break

            before = threads()
            seen = 0
            for turn in range(80):
                seen += interrupted(life)
                end = time.monotonic() + 30  # a call of on_batch may be running
                while threads() != before:
                    assert time.monotonic() < end, f"turn {turn}: {threads()}, before {before}"
                    time.sleep(0.001)
            assert seen > 20, seen  # the busier the machine, the fewer
            """
        ),
        timeout=120,
    )


@pytest.mark.parametrize("workers", [0, 1])  # 0: next() decodes, and the signal comes meanwhile
def test_the_loop_goes_on_where_it_was(workers):
    """The batch that next() was about to return is returned afterwards. (A batch can be lost only
    if the signal comes between next() and the loop's variable, as with any iterator.)"""
    must_run(
        IMPORTS.replace("workers=1", f"workers={workers}")
        + textwrap.dedent(
            """
            loader = stoker.Loader(source, **options)
            loop, due, kept = None, 0, 0

            def start_epoch_0():
                global loop
                loader.set_epoch(0)
                loop = iter(loader)

            def work():
                global due
                due = loader.state_dict()["next_step"]
                batch = next(loop, None)
                if batch is None:
                    start_epoch_0()
                else:
                    check(batch)
                    assert batch.step == due

            for turn in range(80):
                start_epoch_0()
                seen = interrupted(work)
                now = loader.state_dict()["next_step"]
                if seen and now == due < len(loader):
                    batch = next(loop)
                    assert batch.step == due
                    check(batch)
                    del batch
                    kept += 1
            assert kept > 10, kept  # the busier the machine, the fewer
            loader.set_epoch(1)
            assert loader.stats()["held"] == 0
            assert [batch.step for batch in loader] == list(range(12, 24))
            """
        ),
        timeout=120,
    )


def test_a_program_ends_whenever_it_is_interrupted():
    """Also while it starts and while the interpreter ends. Never a hang, never a crash."""
    program = IMPORTS.partition("with stoker")[0] + textwrap.dedent(
        """
        print("going", flush=True)
        loader = stoker.Loader(source, **options)
        for batch in loader:
            pass
        print("ending", flush=True)
        """
    )
    rng = random.Random(11)
    ends = set()
    for _ in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=child_environment(),
        )
        line = process.stdout.readline()
        assert line == "going\n", process.communicate()
        if rng.random() < 0.4:
            assert process.stdout.readline() == "ending\n"
        time.sleep(rng.random() * 0.06)
        process.send_signal(signal.SIGINT)
        try:
            _, error = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"it hangs: {process.communicate()}") from None
        assert process.returncode in (0, 1, -signal.SIGINT), (process.returncode, error)
        ends.add(process.returncode)
    assert -signal.SIGINT in ends
