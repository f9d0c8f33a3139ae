"""share=: processes that feed the same rows decode each of them once."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import stoker
from conftest import child_environment, must_run

FOLDER = Path("/dev/shm")
PROGRAM = """
import hashlib, json, sys, time
import numpy as np
import stoker

root, name, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
loader = stoker.Loader(stoker.folder(root), batch_size=5, seed=3, size=32, share=name,
                       augment=stoker.random_resized_crop() | stoker.flip(), **options)
print("ready", flush=True)
sys.stdin.readline()
digest = hashlib.sha256()
for _ in range(2):
    for batch in loader:
        for array in (batch.images, batch.labels, batch.weights, batch.ids):
            digest.update(np.asarray(array).tobytes())
stats = loader.stats()
print(json.dumps([digest.hexdigest(), stats["decode"]["items"], stats["share"]]), flush=True)
sys.stdin.readline()
"""


class Member:
    """A process that feeds, once it is told to."""

    def __init__(self, root: Path, name: str, **options: object):
        arguments = [str(root), name, json.dumps({"epochs": 2, **options})]
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", textwrap.dedent(PROGRAM), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=child_environment(),
        )
        self.problem = ""
        if self.process.stdout.readline().strip() != "ready":
            self.problem = self.process.communicate()[1]

    def begin(self) -> Member:
        self._tell()
        return self

    def result(self) -> tuple[str, int, dict]:
        digest, decoded, share = json.loads(self.process.stdout.readline())
        return digest, decoded, share

    def end(self) -> None:
        self._tell()
        assert self.process.wait(60) == 0

    def _tell(self) -> None:
        self.process.stdin.write("go\n")
        self.process.stdin.flush()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"{request.node.name[:40].replace('[', '-').replace(']', '')}-{os.getpid()}"


def files(name: str) -> list[Path]:
    return [path for path in FOLDER.iterdir() if path.name.endswith(f"-{name}")]


def alone(root: Path) -> str:
    """The digest of what a process gets that shares with nobody."""
    digest = hashlib.sha256()
    augment = stoker.random_resized_crop() | stoker.flip()
    source = stoker.folder(root)
    with stoker.Loader(source, batch_size=5, seed=3, size=32, augment=augment) as loader:
        for _ in range(2):
            for batch in loader:
                for array in (batch.images, batch.labels, batch.weights, batch.ids):
                    digest.update(np.asarray(array).tobytes())
    return digest.hexdigest()


def test_processes_decode_each_row_once(pictures: Path, name: str) -> None:
    """tests/pipeline has more of them, their ends at any moment, and what they may ask for."""
    members = [Member(pictures, name, share_steps=32, workers=i + 1) for i in range(2)]
    for member in members:
        member.begin()
    results = [member.result() for member in members]
    for member in members:
        member.end()
    rows = 2 * 8 * 5  # of 37 pictures, in batches of 5
    assert {digest for digest, _, _ in results} == {alone(pictures)}
    assert sum(share["given"] for _, _, share in results) == rows
    for _, decoded, share in results:
        assert decoded == share["given"] + share["alone"]
        assert share["taken"] + decoded == rows
        assert share["corrupt"] == 0
    if not any(share["taken_over"] for _, _, share in results):
        assert sum(decoded for _, decoded, _ in results) == rows
    assert files(name) == []


def test_other_rows_are_refused_with_what_differs(pictures: Path, name: str) -> None:
    def loader(**options: object) -> stoker.Loader:
        given = {"batch_size": 5, "seed": 3, "size": 32, "share": name, **options}
        return stoker.Loader(stoker.folder(pictures), **given)

    with loader():
        for options, words in [
            ({"seed": 4}, "seed is 3 there and 4 here"),
            ({"batch_size": 6}, "batch_size is 5 there and 6 here"),
            ({"size": 40}, "augment is .* there and .* here"),
            ({"share_steps": 4}, "steps shared is 8 there and 4 here"),
        ]:
            with pytest.raises(RuntimeError, match=words):
                loader(**options)
        loader(epochs=1, workers=0, ring_depth=9, dtype="float16").close()


def test_arguments_are_checked(pictures: Path) -> None:
    source = stoker.folder(pictures)
    for options, error, words in [
        ({"share": 5}, TypeError, "share is 5"),
        ({"share": ""}, ValueError, "share is ''"),
        ({"share": "a/b"}, ValueError, 'share is "a/b"'),
        ({"share": "a", "seed": None}, ValueError, "share='a': give all processes .* the same"),
        ({"share": "a", "share_steps": 0}, ValueError, "share_steps is 0"),
        ({"share": "a", "share_steps": "many"}, ValueError, "share_steps is 'many'"),
        ({"share": "a", "share_wait": -1}, ValueError, "share_wait is -1"),
        ({"share_steps": 9}, ValueError, "share_steps is 9 .* no share="),
        ({"share_wait": 1}, ValueError, "share_wait is 1, .* no share="),
        ({"share": "a", "share_steps": 65536}, RuntimeError, "steps would fit"),
    ]:
        with pytest.raises(error, match=words):
            stoker.Loader(source, **{"batch_size": 512, "size": 64, "seed": 1, **options})


def test_the_plan_has_the_shared_memory(pictures: Path, name: str) -> None:
    source = stoker.folder(pictures)
    with stoker.Loader(source, batch_size=5, size=32, seed=1, share=name) as loader:
        plan = loader.memory_plan()
        assert plan["share_bytes"] == files(name)[0].stat().st_size
        assert plan["share_bytes"] > 8 * 5 * 32 * 32 * 3
    assert files(name) == []


def test_an_epoch_may_be_left_and_gone_back_to(pictures: Path, name: str) -> None:
    """The feed leaves the share and joins it again."""
    source = stoker.folder(pictures)
    with stoker.Loader(source, batch_size=5, size=32, seed=1, share=name) as loader:
        first = [np.asarray(batch.images).copy() for batch in loader]
        loader.set_epoch(0)
        again = [np.asarray(batch.images).copy() for batch in loader]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_a_loader_that_is_never_dropped_leaves_nothing(name: str) -> None:
    """As one that a library of C keeps: it is closed before the interpreter ends."""
    must_run(
        f"""
        import ctypes, stoker
        loader = stoker.Loader(stoker.synthetic(100, size=16), batch_size=8, seed=1, share={name!r})
        batch = next(iter(loader))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(loader))
        """
    )
    assert files(name) == []


def test_a_forked_child_leaves_the_share_alone(pictures: Path, name: str) -> None:
    source = stoker.folder(pictures)
    with stoker.Loader(source, batch_size=5, size=32, seed=1, share=name) as loader:
        next(iter(loader))
        child = os.fork()
        if child == 0:
            del loader
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert len(files(name)) == 1
        assert sum(1 for _ in loader) == 8
    end = time.monotonic() + 60
    while files(name):
        assert time.monotonic() < end
