"""How loops with on_batch end: close(), dropped loaders, forks, interrupts, a program's end."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator

import pytest

import stoker
from conftest import run_python
from on_batch_loops import STEPS, Gate, join_all, make, threads
from stoker import _core
from stoker._prepared_feed import Ahead
from stoker._prepared_feed import PreparedFeed


def test_close_waits_for_the_call_and_ends_the_loop(source):
    gate = Gate()
    loader = make(source, on_batch=gate)
    errors: list[BaseException] = []

    def consume() -> None:
        try:
            list(loader)
        except RuntimeError as error:
            errors.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    gate.begun.acquire()
    closer = threading.Thread(target=loader.close)
    closer.start()
    consumer.join()  # it does not wait for the function
    assert str(errors[0]) == "the Loader was closed"
    closer.join(0.2)
    assert closer.is_alive()
    gate.may_end.release()
    closer.join()
    assert threads() == [] and gate.count == 1
    loader.close()


def test_the_function_may_close_its_loader(source):
    closed = []

    def prepare(batch: stoker.Batch) -> int:
        if batch.step == 2:
            loader.close()
            closed.append(batch.step)
        return batch.step

    loader = make(source, on_batch=prepare)
    loop = iter(loader)
    with pytest.raises(RuntimeError, match="the Loader was closed"):
        for _ in range(STEPS):
            next(loop)
    join_all()
    assert closed == [2]


def test_dropping_the_loader_ends_the_thread(source):
    gate = Gate()
    loader = make(source, on_batch=gate)
    dropped = weakref.ref(loader)
    loop: Iterator[int] = iter(loader)
    gate.may_end.release()
    assert next(loop) == 0
    gate.begun.acquire()
    gate.begun.acquire()  # that of step 1
    del loop, loader
    gc.collect()
    assert dropped() is None
    assert threads() != [], "the call is running"
    gate.may_end.release()
    join_all()
    assert gate.count == 2


def test_a_loader_in_a_cycle_is_collected(source):
    class Trainer:
        def __init__(self) -> None:
            self.loader = make(source, on_batch=self.prepare)

        def prepare(self, batch: stoker.Batch) -> int:
            return batch.step

    trainer = Trainer()
    dropped = weakref.ref(trainer.loader)
    for _ in trainer.loader:
        break
    del trainer
    join_all()  # a call may be running, which has `self`
    gc.collect()
    assert dropped() is None and threads() == []


class SlowFeed:
    """One that gives a batch when it is told to, or nothing when it is closed."""

    next_step, steps_per_epoch, closed = 0, STEPS, False

    def __init__(self) -> None:
        self.asked, self.may_end = threading.Event(), threading.Event()

    def check_process(self) -> None:
        pass

    def next(self, end: int, taken: list[object]) -> None:
        self.asked.set()
        self.may_end.wait()
        if not self.closed:
            taken.append("batch")

    def close(self) -> None:
        self.closed = True
        self.may_end.set()


def test_dropping_the_loader_ends_a_thread_that_waits_for_the_feed():
    slow = SlowFeed()
    feed = PreparedFeed(lambda options: slow, _core.LoaderOptions(), id, 1)
    ahead = feed._begin(slow, 2)
    ahead._limits.put(1)
    slow.asked.wait()
    del feed
    ahead.thread.join(60)
    assert slow.closed and not ahead.thread.is_alive()


def test_no_call_begins_after_the_loop_was_left():
    """The feed gives a batch that the thread had begun to wait for."""
    called: list[object] = []
    slow = SlowFeed()
    ahead = Ahead(slow, 0, 2, called.append, 1, None)
    ahead.thread.start()
    ahead._limits.put(1)
    slow.asked.wait()
    ahead.stop()
    slow.may_end.set()
    ahead.thread.join()
    assert called == []


def test_after_a_fork(source):
    loader = make(source, on_batch=lambda batch: batch.step)
    loop = iter(loader)
    assert next(loop) == 0
    child = os.fork()
    if child == 0:
        code = 1
        try:
            next(loop)
        except RuntimeError as error:
            code = 7 if "a child made by fork()" in str(error) else 2
        try:
            del loop, loader
            gc.collect()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert list(loop) == list(range(1, STEPS))
    loader.close()


PROGRAM = """
import os, signal, threading, time
import numpy as np
import stoker

source = stoker.synthetic(100, size=16, classes=10, seed=3)
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "del loader", "sys.exit(0)"])
def test_the_interpreter_ends_in_the_middle_of_a_loop(end):
    done = run_python(
        PROGRAM
        + f"""
import sys
begun = threading.Event()
def prepare(batch):
    if batch.step == 3:
        begun.set()
        time.sleep(0.2)  # it runs while the interpreter ends
    return np.asarray(batch.images)
loader = stoker.Loader(source, batch_size=8, on_batch=prepare, on_batch_ahead=2)
loop = iter(loader)
first = next(loop), next(loop)
begun.wait()
print("ending", flush=True)
{end}
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ending\n", "")


def test_ctrl_c_ends_next_and_loses_nothing():
    """Also while the function runs: its result is the next batch."""
    done = run_python(
        PROGRAM
        + """
begun, may_end, calls = threading.Event(), threading.Event(), []
def prepare(batch):
    calls.append(batch.step)
    if batch.step == 2:
        begun.set()
        may_end.wait()
    return batch.step
loader = stoker.Loader(source, batch_size=8, on_batch=prepare)
loop = iter(loader)
assert [next(loop), next(loop)] == [0, 1]
begun.wait()
main = threading.main_thread().ident
for _ in range(3):
    try:
        threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()
        next(loop)
    except KeyboardInterrupt:
        assert loader.state_dict()["next_step"] == 2
    else:
        raise SystemExit("no interrupt")
may_end.set()
assert list(loop) == list(range(2, 13))
assert calls == list(range(13))
print("done")
"""
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
