"""A held batch's pixels never change. These tests try to make them change."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections import deque

import numpy as np
import pytest

import stoker
from conftest import must_run

ROWS, SIDE = 8, 16


@pytest.fixture
def loader(source):
    with stoker.Loader(source, batch_size=ROWS, workers=2, seed=1) as made:
        yield made


def wanted(source: stoker.Source, epochs: int) -> dict[int, bytes]:
    """Returns every step's pixels, from a Loader that lends only copies."""
    found = {}
    with stoker.Loader(source, batch_size=ROWS, workers=0, seed=1, copy=True) as loader:
        for _ in range(epochs):
            for batch in loader:
                found[batch.step] = np.asarray(batch.images).tobytes()
    return found


def test_arrays_share_the_memory(loader):
    batch = next(iter(loader))
    one, other = np.asarray(batch.images), np.asarray(batch.images)
    assert np.shares_memory(one, other)
    assert one.flags.writeable and not one.flags.owndata
    assert np.shares_memory(np.from_dlpack(batch.images), one)


def test_the_usual_loops_need_no_thought(loader):
    previous = None
    for batch in loader:  # the previous step's `batch` and `images` live on during next()
        images = np.asarray(batch.images)
        assert images is not previous
    for batch in loader:
        images = np.asarray(batch.images)
        if previous is not None:
            assert previous.shape == images.shape
        previous = images
    del batch, images, previous
    assert loader.stats()["held"] == 0


def test_a_tensor_outlives_everything_that_it_came_from(source):
    loader = stoker.Loader(source, batch_size=ROWS, seed=1)
    first = np.asarray(next(iter(loader)).images)
    bytes_before = first.tobytes()
    loader.close()
    del loader
    gc.collect()
    assert first.tobytes() == bytes_before == wanted(source, 1)[0]


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("workers", [0, 2])
def test_any_number_of_batches_may_be_held(source, workers, dtype):
    """list(loader), a first batch kept for a plot, accumulation, a queue of four."""
    with stoker.Loader(source, batch_size=ROWS, workers=0, seed=1, dtype=dtype) as loader:
        truth = {}
        for _ in range(3):
            for batch in loader:
                truth[batch.step] = np.asarray(batch.images).tobytes()
    for leases in (1, 3):
        with stoker.Loader(
            source, batch_size=ROWS, workers=workers, leases=leases, seed=1, dtype=dtype
        ) as loader:
            first = next(iter(loader))
            loader.set_epoch(0)
            batches = list(loader)
            assert [batch.step for batch in batches] == list(range(13))
            assert loader.stats()["held"] == 13
            queue: deque = deque()
            for batch in loader:
                queue.append(batch)
                if len(queue) == 4:
                    taken = queue.popleft()
                    assert np.asarray(taken.images).tobytes() == truth[taken.step]
            accumulated = []
            for batch in loader:
                accumulated.append(np.asarray(batch.images))
                if len(accumulated) == 5:
                    assert all(view.tobytes() == truth[step] for view, step in steps_of(
                        accumulated, batch.step))
                    accumulated.clear()
            for batch in batches:
                assert np.asarray(batch.images).tobytes() == truth[batch.step]
            assert np.asarray(first.images).tobytes() == truth[0]


def steps_of(views: list[np.ndarray], last: int) -> list[tuple[np.ndarray, int]]:
    return [(view, last - len(views) + 1 + i) for i, view in enumerate(views)]


def test_a_batch_kept_costs_its_own_memory_and_no_other():
    """Forty batches of 12 MB pass, and every eighth one is kept."""
    must_run(
        """
        import os
        import numpy as np
        import stoker

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        ROWS = 64
        batch_bytes = ROWS * 256 * 256 * 3
        loader = stoker.Loader(stoker.synthetic(ROWS * 8, size=256), batch_size=ROWS, workers=1)
        for batch in loader:
            images = np.asarray(batch.images)
        del batch, images
        before, kept = resident(), []
        for _ in range(5):
            for batch in loader:
                if batch.step_in_epoch == 0:
                    kept.append(np.asarray(batch.images))
        del batch
        grown = resident() - before
        assert grown < 7 * batch_bytes, (grown, batch_bytes)
        loader.close()
        left = resident() - before
        assert left < 0, "the ring of 6 slabs is gone, five batches are held"
        """
    )


ENDS_WITH_A_TENSOR_HELD = """
import gc, os, time
import numpy as np
import stoker

def threads():
    return len(os.listdir("/proc/self/task"))

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

ROWS = 64
options = dict(batch_size=ROWS, workers=3, seed=1, dtype=DTYPE)
source = stoker.synthetic(ROWS * 8, size=256)
batch_bytes = ROWS * 256 * 256 * 3 * np.dtype(DTYPE).itemsize

def train(kept):  # a cell of a notebook, run again and again
    loader = stoker.Loader(source, **options)
    for batch in loader:
        kept.append(np.asarray(batch.images))
        kept.append(np.asarray(batch.ids))
        break
    END

before = threads()
kept = []
train(kept)
del kept[:]
used = resident()
for _ in range(5):
    train(kept)
end = time.monotonic() + 30  # joined threads may be listed a moment longer
while threads() != before:
    assert time.monotonic() < end, (before, threads())
    time.sleep(0.001)
assert resident() - used < 8 * batch_bytes, (resident() - used, batch_bytes)
first = kept[0].tobytes()
assert all(images.tobytes() == first for images in kept[::2])
assert all(len(ids) == ROWS and (ids == kept[1]).all() for ids in kept[1::2])
kept.clear()
assert resident() - used < 3 * batch_bytes, (resident() - used, batch_bytes)
"""


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("ending", ["loader.close()", "del loader, batch", "return loader.stats()"])
def test_a_tensor_keeps_its_batch_and_nothing_of_the_feed(ending, dtype):
    """No thread is left, and only the tensors' memory, when the Loader was closed or dropped."""
    must_run(
        ENDS_WITH_A_TENSOR_HELD.replace("END", ending).replace("DTYPE", repr(dtype))
    )


def test_labels_weights_and_ids_are_copies(loader):
    loop = iter(loader)
    batch = next(loop)
    kept = [batch.labels, np.asarray(batch.weights), np.from_dlpack(batch.ids)]
    before = [np.asarray(array).tobytes() for array in kept]
    del batch
    assert loader.stats()["held"] == 0
    for _ in loop:
        pass
    assert [np.asarray(array).tobytes() for array in kept] == before


def test_copies_are_memory_of_their_own(source):
    with stoker.Loader(source, batch_size=ROWS, copy=True, seed=1) as loader:
        batches = list(loader)
        assert loader.stats()["held"] == 0
        steps = {batch.step: np.asarray(batch.images).tobytes() for batch in batches}
        assert steps == wanted(source, 1)
        assert np.asarray(batches[0].images).flags.writeable


@pytest.mark.parametrize("copy", [False, True])
def test_memory_that_cannot_be_had_is_an_error_and_nothing_is_lost(copy):
    """A held batch makes the feed need another slab; this limit leaves no memory for one."""
    must_run(
        f"""
        COPY = {copy}
        import resource
        import numpy as np
        import stoker
        ROWS = 64
        loader = stoker.Loader(stoker.synthetic(ROWS * 40, size=512), batch_size=ROWS, workers=1,
                               shuffle=False, copy=COPY)
        loop = iter(loader)
        held = [next(loop) for _ in range(3)]
        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        limits = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (mapped + (16 << 20), limits[1]))
        if COPY:  # as long as the ring has slabs, they are lent
            held += [next(loop) for _ in range(3)]
        before = [np.asarray(batch.images)[0].tobytes() for batch in held]
        for _ in range(2):
            try:
                next(loop)
            except MemoryError as error:
                first = "step 3" if COPY else "step 0"
                assert first in str(error) and "48 MiB" in str(error), error
            else:
                raise SystemExit("no error")
        resource.setrlimit(resource.RLIMIT_AS, limits)
        held.append(next(loop))
        assert [batch.step for batch in held] == list(range(7 if COPY else 4))
        assert [np.asarray(batch.images)[0].tobytes() for batch in held[:-1]] == before
        """
    )


def test_what_was_released_cannot_be_reached(loader):
    loop = iter(loader)
    batch = next(loop)
    view = np.asarray(batch.images)
    batch.release()
    for name in ("images", "labels", "weights", "ids", "names"):
        with pytest.raises(RuntimeError, match="step 0 was released"):
            getattr(batch, name)
    assert "released" in repr(batch)
    assert loader.stats()["held"] == 1, "the view holds it still"
    del view
    assert loader.stats()["held"] == 0
    batch.release()


def test_each_kind_of_hold_counts(loader):
    loop = iter(loader)
    for take in (
        lambda b: b.images,
        lambda b: b.images.__dlpack__(),
        lambda b: b.images.__dlpack__(max_version=(1, 0)),
        lambda b: np.from_dlpack(b.images)[3:5, ::2],
        lambda b: memoryview(np.asarray(b.images)),
    ):
        kept = take(next(loop))
        assert loader.stats()["held"] == 1
        del kept
        assert loader.stats()["held"] == 0


def test_a_step_is_not_overwritten_while_it_is_looked_at(source):
    """Holds views for random times, and overwrites the pages of all that was given back: memory
    that is shared with a later batch changes."""
    epochs = 12
    truth = wanted(source, epochs)
    rng = random.Random(7)
    for leases, dtype in ((2, "uint8"), (4, "uint8"), (3, "float32")):
        with stoker.Loader(
            source, batch_size=ROWS, workers=3, leases=leases, seed=1, dtype=dtype
        ) as loader:
            held: deque = deque()
            for _ in range(epochs):
                for batch in loader:
                    take = np.asarray if rng.random() < 0.5 else np.from_dlpack
                    view = take(batch.images)
                    held.append((batch.step, view, view.tobytes()))
                    if dtype == "uint8":
                        assert view.tobytes() == truth[batch.step]
                    del batch, view
                    while len(held) >= leases or (held and rng.random() < 0.4):
                        step, old, before = held.popleft()
                        assert old.tobytes() == before, f"step {step} changed while it was held"
                        if old.flags.writeable:
                            old[:] = 219  # what follows must not be affected
                        del old
            held.clear()


def test_consumers_on_threads_that_dawdle(source):
    """Tensors are handed to threads that read them late and drop them there, in any order."""
    epochs = 8
    truth = wanted(source, epochs)
    wrong: list[str] = []

    def consume(step: int, view: np.ndarray, delay: float) -> None:
        time.sleep(delay)
        if view.tobytes() != truth[step]:
            wrong.append(f"step {step}")
        view[:] = 0xDB
        del view

    rng = random.Random(3)
    with stoker.Loader(source, batch_size=ROWS, workers=2, leases=4, seed=1) as loader:
        for _ in range(epochs):
            order: deque[threading.Thread] = deque()
            for batch in loader:
                thread = threading.Thread(
                    target=consume,
                    args=(batch.step, np.asarray(batch.images), rng.random() * 0.004),
                )
                del batch
                thread.start()
                thread._args = ()  # only the thread's local holds the view
                order.append(thread)
                while len(order) >= 3:
                    order.popleft().join()
            for thread in order:
                thread.join()
    assert wrong == []


def test_a_lease_dropped_by_another_thread_while_next_waits(source):
    """next() waits for the feed without the lock; a deleter must not wait for next()."""
    with stoker.Loader(source, batch_size=ROWS, workers=1, leases=3) as loader:
        stop = threading.Event()
        views: deque = deque()

        def drop() -> None:
            while not stop.is_set():
                try:
                    views.popleft()
                except IndexError:
                    time.sleep(0)

        thread = threading.Thread(target=drop)
        thread.start()
        try:
            for _ in range(20):
                for batch in loader:
                    views.append(np.asarray(batch.images))
                    del batch
                    while len(views) > 1:
                        time.sleep(0)
        finally:
            stop.set()
            thread.join()


def test_two_threads_share_a_loop(source):
    with stoker.Loader(source, batch_size=ROWS, workers=2, copy=True) as loader:
        for _ in range(5):
            loop, lock, steps = iter(loader), threading.Lock(), []

            def take() -> None:
                for batch in loop:
                    with lock:
                        steps.append(batch.step_in_epoch)
                    del batch

            threads = [threading.Thread(target=take) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(steps) == list(range(13))


def test_the_lock_is_released_while_next_waits(pictures):
    """Another Python thread runs while next() waits for decoding."""
    with stoker.Loader(stoker.folder(pictures), batch_size=37, size=512, workers=1) as loader:
        ticks = 0
        stop = threading.Event()

        def tick() -> None:
            nonlocal ticks
            while not stop.is_set():
                ticks += 1
                time.sleep(0.0005)

        thread = threading.Thread(target=tick)
        thread.start()
        waited = 0.0
        for _ in range(3):
            for batch in loader:
                waited = loader.stats()["staging"]["input_wait_s"]
                del batch
        stop.set()
        thread.join()
        assert waited > 0.005, "this test is about waiting"
        assert ticks > 3


@pytest.mark.parametrize("flags", [(), ("-X", "dev", "-W", "ignore")])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_development_mode_shows_who_reads_on_by_an_address_of_their_own(dtype, flags):
    """With `python -X dev`, memory that was given back is filled with 0xDB: what was kept by
    mistake is no picture any more. A batch that is still held is not affected."""
    must_run(
        f"""
        import ctypes, sys, time
        import numpy as np
        import stoker
        options = dict(batch_size=8, dtype={dtype!r}, seed=1, shuffle=False)
        source = stoker.synthetic(64, size=16)
        with stoker.Loader(source, copy=True, **options) as plain:
            truth = [np.asarray(batch.images).tobytes() for batch in plain]
        with stoker.Loader(source, workers=0, **options) as loader:  # fills nothing before next()
            batch = next(iter(loader))
            view = np.asarray(batch.images)
            address, size = view.ctypes.data, view.nbytes
            assert ctypes.string_at(address, size) == truth[0]
            del view, batch
            time.sleep(0.2)
            wanted = bytes([0xDB]) * size if sys.flags.dev_mode else truth[0]
            assert ctypes.string_at(address, size) == wanted
        with stoker.Loader(source, workers=2, ring_depth=3, **options) as loader:
            for turn in range(5):
                loader.set_epoch(0)
                before = None
                for batch in loader:
                    assert np.asarray(batch.images).tobytes() == truth[batch.step]
                    if before is not None:
                        assert np.asarray(before.images).tobytes() == truth[before.step]
                    before = batch
                del batch, before
        """,
        flags=flags,
    )
