"""Shared by the tests of on_batch."""

from __future__ import annotations

import threading

import stoker

ROWS = 8
STEPS = 13  # of an epoch of `source`


def make(source: stoker.Source, **options: object) -> stoker.Loader:
    return stoker.Loader(source, **{"batch_size": ROWS, "seed": 1, "workers": 2, **options})


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "stoker on_batch"]


def join_all() -> None:
    for thread in threads():
        thread.join()


class Gate:
    """Counts what has begun, and lets it go on one by one."""

    def __init__(self) -> None:
        self.begun: threading.Semaphore = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.count = 0

    def __call__(self, batch: stoker.Batch) -> int:
        self.count += 1
        self.begun.release()
        self.may_end.acquire()
        return batch.step
