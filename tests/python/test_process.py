"""Interrupts, fork, spawn, the interpreter's end: never a hang, and no thread left.

Each test runs a separate program and checks its exit code, its output, and that it ends at all.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time

import pytest

from conftest import child_environment, must_run, run_program, run_python

IMPORTS = """
import os, signal, sys, threading, time
import numpy as np
import stoker

def slow_loader():  # a second and more for its one batch
    slow = stoker.augment.resize() | stoker.augment.aug_mix(mixture_width=6, chain_depth=4)
    return stoker.Loader(stoker.synthetic(128, size=32), batch_size=128, workers=1, ring_depth=1,
                         leases=1, shuffle=False, size=512, augment=slow)

def send_soon(number):  # to this process, while it waits
    threading.Timer(0.1, os.kill, (os.getpid(), number)).start()
"""


def start(code: str, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-u", "-c", IMPORTS + textwrap.dedent(code), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )


def finish(process: subprocess.Popen, timeout: float = 60) -> tuple[str, str]:
    try:
        return process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"it hangs: {process.communicate()}")


def test_ctrl_c_ends_next_at_once_and_loses_nothing():
    """A real SIGINT while next() waits; afterwards the same loop continues with the same batch."""
    process = start(
        """
        loader = slow_loader()
        loop = iter(loader)
        send_soon(signal.SIGINT)
        try:
            next(loop)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        batch = next(loop)
        print("step", batch.step, np.asarray(batch.ids)[:2].tolist())
        """
    )
    out, error = finish(process, 200)
    assert process.returncode == 0, error
    assert out == "interrupted\nstep 0 [0, 1]\n"


def test_ctrl_c_ends_a_program():
    process = start(
        """
        loader = stoker.Loader(stoker.synthetic(10000, size=64), batch_size=64)
        print("going", flush=True)
        while True:
            for batch in loader:
                images = np.asarray(batch.images)
        """
    )
    assert process.stdout.readline() == "going\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, error = finish(process)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in error
    assert "leak" not in error


def test_a_handler_may_close_the_loader():
    process = start(
        """
        loader = slow_loader()
        signal.signal(signal.SIGUSR1, lambda *_: loader.close())
        send_soon(signal.SIGUSR1)
        try:
            next(iter(loader))
        except RuntimeError as error:
            print(error)
        """
    )
    out, error = finish(process, 200)
    assert (process.returncode, out) == (0, "the Loader was closed\n"), error


@pytest.mark.parametrize(
    "how",
    [
        "pass",
        "sys.exit(3)",
        "raise ValueError('of the user')",
        "loader.close()",
        "del loader, loop",
        "keep = np.asarray(batch.images); del loader, loop, batch",
        # daemon threads: in next(), in Python
        "threading.Thread(target=read, args=[0], daemon=True).start(); del batch",
        "threading.Thread(target=read, args=[60], daemon=True).start(); del batch; time.sleep(0.1)",
        "loop.__next__()",
    ],
)
def test_the_interpreter_ends_with_a_feed_under_way(how):
    """Alive at the end: the loader, an iterator, a batch, a view, in globals or in a thread."""
    started = time.monotonic()
    done = run_python(
        f"""
        import sys, threading, time
        import numpy as np
        import stoker
        loader = stoker.Loader(stoker.synthetic(10000, size=64), batch_size=64, dtype="float32")
        loop = iter(loader)
        batch = next(loop)
        def read(pause):
            try:
                for _ in loader:
                    time.sleep(pause)
            except RuntimeError as error:  # the thread may hear of the end before it is ended
                if str(error) != "the Loader was closed":
                    raise
        {how}
        """
    )
    expected = {"sys.exit(3)": 3, "raise ValueError('of the user')": 1}
    assert done.returncode == expected.get(how, 0), done.stderr
    assert done.returncode == 1 or done.stderr == ""
    assert time.monotonic() - started < 50


def test_no_thread_and_no_shared_memory_is_left():
    must_run(
        """
        import gc, os, time
        import numpy as np
        import stoker

        def threads():
            return len(os.listdir("/proc/self/task"))

        def only(wanted):  # a joined thread may be listed a moment longer
            end = time.monotonic() + 30
            while threads() != wanted and time.monotonic() < end:
                time.sleep(0.001)
            return threads() == wanted

        name = f"left-{os.getpid()}"

        def shared():  # other processes may have files there, too
            with open("/proc/self/maps") as maps:
                mapped = [line for line in maps if name in line]
            return mapped + [file for file in os.listdir("/dev/shm") if name in file]

        def make():
            source = stoker.synthetic(1000, size=16)
            return stoker.Loader(source, batch_size=10, workers=3, share=name, seed=1)

        before = threads()
        for _ in range(3):
            with make() as loader:
                for batch in loader:
                    assert threads() > before
                    assert len(shared()) > 1
                    break
                del batch
            del loader
        assert only(before), (before, threads())
        try:
            loader = make()
            for batch in loader:
                raise KeyError("of the user")
        except KeyError:
            pass
        del loader, batch
        gc.collect()
        assert only(before), (before, threads())
        assert shared() == []
        """
    )


FORK = """
import os, sys
import numpy as np
import stoker
loader = stoker.Loader(stoker.synthetic(1000, size=16), batch_size=10, workers=2, shuffle=False)
loop = iter(loader)
batch = next(loop)
view = np.asarray(batch.images)
copy = view.copy()
child = os.fork()
if child == 0:
"""
AFTER_FORK = """
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, os.waitstatus_to_exitcode(status)
assert (view == copy).all()
del batch, view
assert next(loop).step == 1
assert len([b.step for b in loop]) == 98
"""


@pytest.mark.parametrize(
    "child",
    [
        # every call is refused; existing arrays can be read
        """
    for call in (lambda: next(loop), loader.state_dict, loader.stats, loader.memory_plan,
                 lambda: batch.images.__dlpack__(), lambda: iter(loader), lambda: len(loader)):
        try:
            call()
        except RuntimeError as error:
            assert f"belongs to process {os.getppid()}" in str(error), error
        else:
            raise SystemExit(1)
    assert (view == copy).all()
    os._exit(7)
""",
        "    sys.exit(7)\n",  # the interpreter's end, in the child
        "    del batch, view, loop, loader; sys.exit(7)\n",
        "    loader.close(); os._exit(7)\n",
        # a Loader of the child
        """
    own = stoker.Loader(stoker.synthetic(100, size=16), batch_size=10, workers=2)
    assert len([b.step for b in own]) == 10
    own.close()
    sys.exit(7)
""",
    ],
)
def test_a_forked_child_is_told_and_never_hangs(child):
    # From Python 3.12 on, os.fork() itself warns if there are threads.
    done = run_python(FORK + child + AFTER_FORK, flags=("-W", "ignore::DeprecationWarning"))
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_multiprocessing(tmp_path, method):
    """Each child makes its own Loader, and the parent has one, too."""
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import multiprocessing
            import numpy as np
            import stoker

            def count(rank):
                with stoker.Loader(stoker.synthetic(100, size=16), batch_size=5, workers=2,
                                   rank=rank, world=2, seed=1) as loader:
                    return sum(batch.valid for batch in loader)

            if __name__ == "__main__":
                with stoker.Loader(stoker.synthetic(100, size=16), batch_size=5) as own:
                    batch = next(iter(own))
                    with multiprocessing.get_context("{method}").Pool(2) as pool:
                        assert pool.map(count, [0, 1]) == [50, 50]
            """
        )
    )
    done = run_program([sys.executable, script])
    assert done.returncode == 0, done.stderr
