"""stoker.dataset() in worker processes: deaths, ends, interrupts, fork(), programs of their own."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import sys
import textwrap
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

import stoker
from conftest import child_environment, run_program
from item_sets import Dying, Items, Processes, Stuck, Together, Unloadable, pixels

OPTIONS = {"batch_size": 8, "size": 16, "seed": 5}


def children() -> set[int]:
    """Returns the processes of this one, also those that ended and were not waited for."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def wait_until(condition) -> None:
    """The time limit is for a machine that is stuck, not for a slow one."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it did not come to pass in a minute")


def exists(pid: int) -> bool:
    """Returns whether a process runs; one that waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No process and no descriptor, after any of these tests."""
    gc.collect()
    before = children(), descriptors()
    yield
    gc.collect()
    assert (children(), descriptors()) == before


def run_main(tmp_path, code, **options):
    """Runs a program with a main module of its own, beside the objects of item_sets.py."""
    program = tmp_path / "program.py"
    program.write_text("import stoker\nfrom item_sets import *\n" + textwrap.dedent(code))
    return run_program([sys.executable, program], env=environment(), **options)


def environment():
    env = child_environment()
    # Printed text is in buffers, as usual.
    env.pop("PYTHONUNBUFFERED", None)
    return {**env, "PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}{env['PYTHONPATH']}"}


def labels_of(loader):
    return [label for batch in loader for label in np.asarray(batch.labels).tolist()]


def test_as_many_at_once_as_there_are_workers(tmp_path):
    source = stoker.dataset(Together(tmp_path, 4, 16), workers=4)
    with stoker.Loader(source, **OPTIONS) as loader:
        assert len(labels_of(loader)) == 16
        assert loader.stats()["bad_samples"] == 0


def test_nothing_is_started_before_it_is_needed():
    source = stoker.dataset(Processes(), workers=3)
    before = children()
    assert before == children()
    first = source[0].label
    assert children() - before == {first}
    assert [source[i].label for i in range(5)] == [first] * 5
    del source
    assert children() == before


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (3, "ended with exit code 3"),
        (-signal.SIGKILL, r"was ended by signal 9 \(Killed\)"),
        (-signal.SIGSEGV, r"was ended by signal 11 \(Segmentation fault\)"),
    ],
)
def test_a_process_that_dies_is_a_bad_sample(code, message, tmp_path):
    """Everything else is as without it, and the process is started again."""
    good = stoker.dataset(Items(), processes=False)
    source = stoker.dataset(Dying({4: code, 5: code, 29: code}))
    with pytest.raises(OSError, match=rf"^dataset/4: the worker process \d+ {message}$"):
        source[4].image()
    assert (np.asarray(source[6].image()) == pixels(6)).all()
    quarantine = tmp_path / "bad.jsonl"
    options = {**OPTIONS, "shuffle": False, "max_bad": 3, "quarantine": quarantine}
    with stoker.Loader(source, **options) as loader, stoker.Loader(good, **options) as other:
        for batch, expected in zip(loader, other, strict=True):
            assert (np.asarray(batch.ids) == np.asarray(expected.ids)).all()
            counts = np.asarray(batch.weights) > 0
            images = np.asarray(batch.images)[counts]
            assert (images == np.asarray(expected.images)[counts]).all()
        assert loader.stats()["bad_samples"] == 3
    found = [json.loads(line) for line in quarantine.read_text().splitlines()]
    assert [line["path"] for line in found] == ["dataset/4", "dataset/5", "dataset/29"]
    assert all(re.search(message, line["message"]) for line in found), found


def test_a_process_that_dies_between_two_items_is_no_bad_sample():
    source = stoker.dataset(Processes(), workers=1)
    first = source[0].label
    os.kill(first, signal.SIGKILL)
    # Its threads end one after the other; it is left to be collected.
    how = os.WEXITED | os.WNOHANG | os.WNOWAIT
    wait_until(lambda: os.waitid(os.P_PID, first, how) is not None)
    second = source[1].label
    assert second not in (0, first)


def test_a_process_that_cannot_be_started_ends_the_feed():
    source = stoker.dataset(Unloadable())
    message = (
        r"a worker process of stoker.dataset\(\) cannot be started: OSError: the store is not "
        r"there \(item_sets.py:\d+, in __setstate__\)"
    )
    with pytest.raises(RuntimeError, match=message):
        source[0].image()
    for workers in (0, 1):
        with stoker.Loader(source, workers=workers, **OPTIONS) as loader:
            for _ in range(2):
                with pytest.raises(stoker.FeedError, match=message):
                    next(iter(loader))


class EndsWhileItIsLoaded(Items):
    def __reduce__(self):
        return os._exit, (5,)


def test_a_process_that_ends_before_it_is_ready():
    with pytest.raises(RuntimeError, match=r"cannot be started: the worker process \d+ ended with"):
        stoker.dataset(EndsWhileItIsLoaded())[0].image()


def test_a_python_that_is_not_there(monkeypatch):
    monkeypatch.setattr("multiprocessing.spawn._python_exe", b"/nowhere/python")
    source = stoker.dataset(Items())
    with pytest.raises(RuntimeError, match="cannot be started: /nowhere/python: No such file"):
        source[0].image()


def test_the_end_of_the_last_loader_ends_the_processes():
    before = children()
    source = stoker.dataset(Processes())
    first = stoker.Loader(source, **OPTIONS)
    second = stoker.Loader(stoker.subset(source, range(20)), **OPTIONS)
    # On a busy machine one of the processes may have had nothing to do yet, or not have started.
    started = set(labels_of(first)) | set(labels_of(second))
    assert started <= children() - before
    first.close()
    assert started <= children() - before
    assert set(labels_of(second)) <= children() - before
    second.close()
    assert children() == before
    # The source is as good as before.
    third = stoker.Loader(source, **OPTIONS)
    again = set(labels_of(third))
    assert not again & started
    del third
    gc.collect()
    assert children() == before


def test_leaving_an_epoch_keeps_the_processes():
    source = stoker.dataset(Processes(200))
    with stoker.Loader(source, **OPTIONS) as loader:
        for epoch in (3, 1, 4, 1, 5):
            for _ in loader:
                break
            loader.set_epoch(epoch)
        found = set(labels_of(loader))
        assert len(found) <= 2
        assert found <= children()


def test_an_item_that_never_ends_is_left_at_the_end(tmp_path):
    """close() does not wait for it; the same for one that holds the interpreter's lock."""
    for how in ("asleep", "busy"):
        folder = tmp_path / how
        folder.mkdir()
        source = stoker.dataset(Stuck(folder, 3, how))
        loader = stoker.Loader(source, shuffle=False, epochs=1, **OPTIONS)
        wait_until(lambda folder=folder: list(folder.iterdir()))
        [stuck] = folder.iterdir()
        loader.close()
        assert not exists(int(stuck.name.removeprefix("stuck-")))


def test_other_loaders_go_on_while_an_item_never_ends(tmp_path):
    """A process that is stuck with an item nobody waits for is given up after a while."""
    source = stoker.dataset(Stuck(tmp_path, 3), workers=1)
    good = stoker.subset(source, [i for i in range(30) if i != 3])
    loader = stoker.Loader(source, shuffle=False, epochs=1, **OPTIONS)
    with stoker.Loader(good, **OPTIONS) as other:
        wait_until(lambda: list(tmp_path.iterdir()))
        loader.close()
        assert len(labels_of(other)) == 32
        assert other.stats()["bad_samples"] == 0


INTERRUPTED = """
import os, signal, sys, threading, time
from pathlib import Path

def interrupt():
    while not list(folder.iterdir()):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

if __name__ == "__main__":
    folder = Path(sys.argv[0]).parent / "stuck"
    folder.mkdir()
    source = stoker.dataset(Stuck(folder, 3), workers=1)
    threading.Thread(target=interrupt).start()
    try:
        {wait}
    except KeyboardInterrupt:
        print("interrupted")
    {then}
"""


@pytest.mark.parametrize(
    ("wait", "then"),
    [
        (
            "loader = stoker.Loader(source, batch_size=8, shuffle=False); next(iter(loader))",
            "loader.close()",
        ),
        ("list(stoker.Loader(source, batch_size=8, size=16, shuffle=False))", "pass"),
        ("source[3].image()", "print(source[4].label, source[3])"),
        ("source[3].data", "del source"),
        ("source.label(3)", "pass"),
    ],
)
def test_ctrl_c_while_an_item_never_ends(wait, then, tmp_path):
    if "source[4]" in then:
        # One worker, which is stuck, gives nothing more.
        then = "print(source[3])"
    done = run_main(tmp_path, INTERRUPTED.format(wait=wait, then=then))
    assert done.stdout.startswith("interrupted\n"), done.stderr
    assert (done.returncode, done.stderr) == (0, "")
    stuck = [int(path.name.removeprefix("stuck-")) for path in (tmp_path / "stuck").iterdir()]
    assert len(stuck) == 1
    wait_until(lambda: not exists(stuck[0]))


def test_ctrl_c_does_not_reach_the_processes(tmp_path):
    """A terminal sends it to all of them, also while they start."""
    code = """
        import os, signal, sys
        if __name__ == "__main__":
            signal.signal(signal.SIGINT, lambda *_: None)
            source = stoker.dataset(Processes(2000))
            with stoker.Loader(source, batch_size=8, size=16) as loader:
                found = set()
                for batch in loader:
                    found |= set(np.asarray(batch.labels).tolist())
                    os.killpg(0, signal.SIGINT)
                print(1 <= len(found) <= 2, loader.stats()["bad_samples"])
    """
    done = run_main(tmp_path, code, start_new_session=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True 0\n", "")


@pytest.mark.parametrize("stuck", [False, True])
def test_the_processes_end_when_their_parent_is_killed(stuck, tmp_path):
    code = """
        import os, sys, time
        if __name__ == "__main__":
            folder = Path(sys.argv[0]).parent / "stuck"
            folder.mkdir()
            items = Stuck(folder, 3) if {stuck} else Processes()
            loader = stoker.Loader(stoker.dataset(items), batch_size=8, size=16, shuffle=False)
            if {stuck}:
                while not list(folder.iterdir()):
                    time.sleep(0.01)
            else:
                list(loader)
            pids = Path(f"/proc/{{os.getpid()}}/task").glob("*/children")
            print(*[pid for path in pids for pid in path.read_text().split()], flush=True)
            os.kill(os.getpid(), 9)
    """
    done = run_main(tmp_path, code.format(stuck=stuck))
    pids = [int(pid) for pid in done.stdout.split()]
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert 1 <= len(pids) <= 2
    wait_until(lambda: not any(exists(pid) for pid in pids))


def test_the_interpreter_ends_with_everything_in_use(tmp_path):
    code = """
        import os
        if __name__ == "__main__":
            source = stoker.dataset(Items(100))
            loader = stoker.Loader(source, batch_size=8, size=16)
            batch = next(iter(loader))
            {end}
    """
    for end in ("pass", "del source", "del loader", "loader.close()", "raise SystemExit(0)"):
        done = run_main(tmp_path, code.format(end=end))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), end


def sockets() -> set[str]:
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    found = {os.readlink(link) for link in links if link.is_symlink()}
    return {each for each in found if each.startswith("socket:")}


def test_fork():
    """The child has processes of its own, closes the sockets of the parent's, and those go on."""
    source = stoker.dataset(Processes())
    without = sockets()
    with stoker.Loader(source, **OPTIONS) as loader:
        before = set(labels_of(loader))
        of_parent = sockets() - without
        # There may be one more of a process that has had nothing to do yet.
        assert len(before) <= len(of_parent) <= 2
        child = os.fork()
        if child == 0:
            code = 1
            try:
                source[0].image()
                assert children() and not children() & before
                assert not sockets() & of_parent
                with stoker.Loader(source, **OPTIONS) as again:
                    assert not set(labels_of(again)) & before
                assert children() == set()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert set(labels_of(loader)) <= children()


MAIN = """
class Mine(Items):
    pass

{guard}
    with stoker.Loader(stoker.dataset(Mine()), batch_size=8, size=16) as loader:
        print(len(list(loader)), loader.stats()["bad_samples"])
"""


def test_objects_of_the_main_module(tmp_path):
    done = run_main(tmp_path, MAIN.format(guard='if __name__ == "__main__":'))
    assert (done.returncode, done.stdout, done.stderr) == (0, "4 0\n", "")
    done = run_main(tmp_path, MAIN.format(guard="if True:"))
    assert done.returncode == 1
    assert "FeedError: a worker process of stoker.dataset() cannot be started: RuntimeError" in (
        done.stderr
    )
    assert "bootstrapping phase" in done.stderr
    # An object of another module needs nothing of the main module.
    done = run_main(tmp_path, MAIN.format(guard="if True:").replace("(Mine", "(Items"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "4 0\n", "")


def test_objects_of_a_session(tmp_path):
    """As in a notebook: no file has their class."""
    code = "import stoker\nfrom item_sets import *\n" + MAIN.format(guard="if 1:")
    done = run_program([sys.executable, "-c", code], env=environment())
    assert done.returncode == 1
    assert "define the class in a module, or use dataset(processes=False)" in done.stderr


def test_what_an_object_prints_is_seen(tmp_path):
    code = """
        import sys
        class Printing(Items):
            def data(self, index):
                print("item", index)
                return super().data(index)
        if __name__ == "__main__":
            source = stoker.dataset(Printing(), workers=1)
            source[3].image()
            sys.stdin.read()
            del source
    """
    done = run_main(tmp_path, code, input="x")
    assert (done.returncode, done.stdout, done.stderr) == (0, "item 3\n", "")


class WritesToOurSocket(Items):
    def data(self, index):
        if index == 3:
            os.write(3, b"\xff" * 100)
        return super().data(index)


def test_an_object_that_writes_where_it_must_not():
    source = stoker.dataset(WritesToOurSocket(), workers=1)
    with pytest.raises(RuntimeError, match="wrote to file descriptor 3, which is not its own"):
        source[3].image()
    assert source[4].label == 4


class StartsAnother(Items):
    """Another process, which inherits everything, outlives the worker."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def data(self, index):
        if index == 3:
            other = os.fork()
            if other == 0:
                time.sleep(3600)
            (self.folder / str(other)).touch()
            os._exit(0)
        return os.getpid().to_bytes(4, "little")


def test_a_process_whose_socket_is_held_by_another_one(tmp_path):
    source = stoker.dataset(StartsAnother(tmp_path), workers=1)
    worker = int.from_bytes(source[0].data, "little")
    with pytest.raises(OSError, match=rf"worker process {worker} ended with exit code 0"):
        source[3].image()
    [other] = tmp_path.iterdir()
    assert exists(int(other.name))
    os.kill(int(other.name), signal.SIGKILL)
