"""Where the system makes no more threads, a Loader is a RuntimeError that says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import run_program

PROGRAM = os.environ.get("STOKER_PROGRAM", "")
LIBRARY = Path(PROGRAM).parent / "tests" / "tools" / "libno_threads.so"

# Threads are missing only from here on: the interpreter and NumPy have made theirs.
LOADER = """
import ctypes, sys
import stoker

photos = stoker.folder(sys.argv[1])
ctypes.CDLL(None).setenv(b"STOKER_NO_THREAD_FROM", sys.argv[2].encode(), 1)
try:
    loader = stoker.Loader(photos, batch_size=8, size=32, seed=0, device="cpu", workers=2)
    batches = sum(1 for _ in loader)
except RuntimeError as error:
    print("RuntimeError:", error)
else:
    print("batches:", batches)
"""


@pytest.mark.skipif(not LIBRARY.exists(), reason="the tests of the program are not built")
def test_a_loader_says_which_thread_is_missing(pictures: Path) -> None:
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY), "OMP_NUM_THREADS": "1"}
    refused = 0
    for number in range(1, 40):
        done = run_program([sys.executable, "-c", LOADER, pictures, number], env=env)
        assert done.returncode == 0, done.stderr
        if done.stdout.startswith("batches:"):
            break
        assert "cannot make thread " in done.stdout and "pids.max" in done.stdout, done.stdout
        refused += 1
    else:
        raise AssertionError("a Loader of two workers needs no 40 threads")
    assert refused >= 2 + 1
