"""Eight threads on everything that a program may share: with the interpreter lock, and without it.

.ci/run python runs this without the lock, and beside ThreadSanitizer.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from conftest import damaged_folder, jpeg, picture

THREADS = 8
SAMPLES = 100  # of `source`
ROWS = 8
# More under ThreadSanitizer would take minutes; more to look for a race: STOKER_STRESS_ROUNDS=50.
ROUNDS = int(os.environ.get("STOKER_STRESS_ROUNDS", "3"))


def together(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """Returns what `work` returns on each of the threads, which begin at once."""
    barrier = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # with the lock, threads take turns as often as they can
    try:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if errors:
        raise errors[0]
    return results


def make(source: stoker.Source, **options: Any) -> stoker.Loader[Any]:
    return stoker.Loader(
        source, **{"batch_size": ROWS, "seed": 1, "workers": 2, "shuffle": True, **options}
    )


def counted(batch: stoker.Batch) -> list[int]:
    """Returns the ids of the rows that count."""
    return np.asarray(batch.ids)[np.asarray(batch.weights) > 0].tolist()


def each_once(ids: list[int], samples: int = SAMPLES) -> bool:
    return Counter(ids) == Counter(range(samples))


class Pictures:
    """JPEGs for stoker.dataset(), made by whichever thread asks for them first."""

    def __init__(self, samples: int = SAMPLES):
        self.samples = samples
        self.made: dict[int, bytes] = {}

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> tuple[bytes, int]:
        if index not in self.made:
            self.made[index] = jpeg(picture(index, 24, 16))
        return self.made[index], index % 10


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="has the lock")
def test_the_lock_stays_off():
    assert not sys._is_gil_enabled()


@pytest.mark.parametrize("on_batch", [None, lambda batch: batch], ids=["plain", "on_batch"])
@pytest.mark.parametrize("workers", [0, 2])
def test_threads_that_share_a_loop_get_each_batch_once(source, on_batch, workers):
    with make(source, on_batch=on_batch, workers=workers) as loader:
        for _ in range(ROUNDS):
            loop = iter(loader)
            taken = together(lambda _, loop=loop: [counted(batch) for batch in loop])
            assert each_once([id for part in taken for ids in part for id in ids])
        assert loader.epoch == ROUNDS
        assert loader.stats()["held"] == 0


def test_each_thread_may_have_a_loader_of_one_source(source):
    wanted = [counted(batch) for batch in make(source, copy=True)]

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            with make(source) as loader:
                assert [counted(batch) for batch in loader] == wanted

    together(work)


@pytest.mark.parametrize("processes", [False, True])
def test_an_object_of_python_is_read_by_several_loaders(processes):
    if processes and "-fsanitize=thread" in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
        pytest.skip("a process takes long to begin")
    source = stoker.dataset(Pictures(), processes=processes, workers=3)

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            with make(source, size=16, io_threads=3) as loader:
                assert each_once([id for batch in loader for id in counted(batch)])
                assert [loader.source.label(id) for id in range(20)] == [*range(10), *range(10)]

    together(work, 4)


def test_items_that_are_errors_are_bad_samples_and_no_more():
    class Broken(Pictures):
        def __getitem__(self, index: int) -> tuple[bytes, int]:
            if index % 10 == 3:
                raise ValueError(f"no picture {index}")
            return super().__getitem__(index)

    source = stoker.dataset(Broken(), processes=False, workers=4)
    wanted = Counter(id for id in range(SAMPLES) if id % 10 != 3)

    def work(number: int) -> None:
        with make(source, size=16, max_bad=0.5) as loader:
            assert Counter(id for batch in loader for id in counted(batch)) == wanted
        with pytest.raises(OSError, match="no picture 13"):
            source[13].data
        with pytest.raises(IndexError):
            source[SAMPLES + number]

    together(work)


def test_a_function_of_a_batch_may_use_its_loader(source):
    """It runs in a thread of its own for each Loader, and all of them note into one list."""
    seen: list[tuple[int, int]] = []

    def work(number: int) -> None:
        def prepare(batch: stoker.Batch) -> list[int]:
            seen.append((number, batch.step))
            stats, state = loader.stats(), loader.state_dict()
            assert stats["held"] >= 1 and state["next_step"] <= batch.step
            return counted(batch)

        with make(source, on_batch=prepare, on_batch_ahead=2) as loader:
            assert each_once([id for ids in loader for id in ids])

    together(work)
    steps = -(-SAMPLES // ROWS)
    first_epoch = [pair for pair in seen if pair[1] < steps]
    assert Counter(first_epoch) == Counter((n, s) for n in range(THREADS) for s in range(steps))


def test_close_ends_the_wait_of_all_threads(source):
    for turn in range(4 * ROUNDS):
        on_batch = (lambda batch: batch) if turn % 2 else None
        loader = make(source, on_batch=on_batch)
        loop = iter(loader)
        batches: list[list[int]] = []

        def work(number: int, loader: Any = loader, loop: Any = loop, turn: int = turn) -> None:
            if number == 0:
                for _ in range(turn % 5):
                    loader.stats()
                loader.close()
                return
            try:
                for batch in loop:
                    batches.append(counted(batch))
            except RuntimeError as error:
                assert str(error) == "the Loader was closed"

        together(work)
        ids = Counter(id for batch in batches for id in batch)
        assert not ids or max(ids.values()) == 1  # none was given twice


def test_whoever_moves_a_loader_ends_the_loops_of_others(source):
    """Each thread's loop ends with the epoch, or with one clear error."""

    def work(number: int) -> Counter[str]:
        ends: Counter[str] = Counter()
        for turn in range(2 * ROUNDS):
            try:
                if number % 2:
                    loader.set_epoch((number + turn) % 5)
                elif number % 4:
                    loader.load_state_dict(loader.state_dict())
                for batch in loader:
                    assert len(batch) == ROWS
                ends["whole"] += 1
            except RuntimeError as error:
                assert "ended by a newer one" in str(error)
                ends["ended"] += 1
        return ends

    with make(source) as loader:
        for ends in together(work):
            assert ends.total() == 2 * ROUNDS
        loader.set_epoch(0)
        assert each_once([id for batch in loader for id in counted(batch)])


def test_anybody_may_look_at_a_loader_that_runs(source):
    done = threading.Event()

    def work(number: int) -> int:
        looks = 0
        if number == 0:
            try:
                return sum(len(counted(batch)) for _ in range(4 * ROUNDS) for batch in loader)
            finally:
                done.set()
        while not done.is_set():
            stats, state = loader.stats(), loader.state_dict()
            assert 0 <= stats["bad_samples"] == 0
            assert state["seed"] == loader.seed == 1
            assert state["epoch"] * len(loader) + state["step_in_epoch"] == state["next_step"]
            assert str(loader.batch_size) in repr(loader)
            assert loader.memory_plan()["total_bytes"] > 0
            looks += 1
        return looks

    with make(source) as loader:
        results = together(work)
    assert results[0] == 4 * ROUNDS * SAMPLES


def test_batches_are_passed_on_and_dropped_anywhere(source):
    """Their memory belongs to whoever has an array of theirs, on any thread."""
    with make(source, copy=True, shuffle=False) as loader:
        wanted = [np.asarray(batch.images).copy() for batch in loader]
    for leases in (1, 3):
        with make(source, leases=leases, shuffle=False) as loader:
            loop = iter(loader)
            kept: list[Any] = []

            def work(number: int, loop: Any = loop, kept: list[Any] = kept) -> int:
                count = 0
                for batch in loop:
                    count += 1
                    step, array = batch.step, batch.images
                    taken = (
                        np.from_dlpack(array) if number % 2 else np.asarray(array),
                        batch.labels.numpy(),
                    )
                    kept.append((step, taken))
                    batch.release()
                    del batch, array
                    if len(kept) > 4:  # drop what another thread has taken
                        step, taken = kept.pop(0)
                        assert np.array_equal(taken[0], wanted[step])
                    del taken
                return count

            assert sum(together(work)) == len(wanted)
            for step, taken in kept:
                assert np.array_equal(taken[0], wanted[step])
            kept.clear()
            del taken
            assert loader.stats()["held"] == 0


def test_one_batch_is_looked_at_by_all(source):
    with make(source) as loader:
        for batch in loader:
            before = np.asarray(batch.images).tobytes()

            def work(number: int, batch: stoker.Batch = batch, before: bytes = before) -> None:
                try:
                    for _ in range(20):
                        assert np.asarray(batch.images).tobytes() == before
                        assert len(batch.names) == len(batch.draws) == ROWS
                        assert batch.images.tolist() is not None
                except RuntimeError as error:
                    assert "was released" in str(error)
                if number == 0:
                    batch.release()

            together(work)
            if batch.step == ROUNDS:
                break


def test_sources_are_used_by_all(pictures: Path):
    source = stoker.folder(pictures)
    wanted = [(sample.name, sample.label, sample.data) for sample in source]

    def work(number: int) -> None:
        view = stoker.with_labels(
            stoker.subset(source, range(number % 4, len(source))),
            [i % 3 for i in range(number % 4, len(source))],
        )
        assert copy.copy(source) is source
        again = pickle.loads(pickle.dumps(view))
        assert again.fingerprint == view.fingerprint and len(again) == len(view)
        source.note = number  # attributes of one's own
        for _ in range(ROUNDS):
            assert [(each.name, each.label, each.data) for each in source] == wanted
            assert [source[i].image().shape for i in range(3)] == [(72, 96, 3)] * 3
        assert repr(source) and source.labels() and source.classes

    together(work)


def test_decoding_and_errors(pictures: Path):
    data = next(pictures.rglob("*.jpg")).read_bytes()
    wanted = np.asarray(stoker.decode(data)).tobytes()

    def work(number: int) -> None:
        for turn in range(10 * ROUNDS):
            assert np.asarray(stoker.decode(data)).tobytes() == wanted
            with pytest.raises(stoker.DecodeError):
                stoker.decode(data[: 40 + turn])
            with pytest.raises(ValueError, match="batch_size"):
                stoker.Loader(stoker.synthetic(4), batch_size=-number)

    together(work)


def test_bad_files_end_a_feed_once_for_each(tmp_path: Path):
    damaged_folder(tmp_path, 40, bad=range(0, 40, 2))
    source = stoker.folder(tmp_path)
    with make(source, size=16, on_bad="fail") as loader:
        loop = iter(loader)

        def work(_: int) -> int:
            try:
                return sum(len(counted(batch)) for batch in loop)
            except (stoker.FeedError, RuntimeError):
                return 0

        assert sum(together(work)) < 40


def test_a_list_that_grows(tmp_path: Path):
    damaged_folder(tmp_path, 60, bad=[])
    for _ in range(ROUNDS):
        source = stoker.open(tmp_path, wait=False)
        with make(source, size=16, shuffle=False) as loader:
            loop = iter(loader)

            def work(number: int, loop: Any = loop, loader: Any = loader) -> list[int]:
                if number == 0:
                    loader.state_dict()  # waits for the list
                    return []
                return [id for batch in loop for id in counted(batch)]

            assert each_once([id for ids in together(work) for id in ids], 60)


def test_a_watch_is_read_while_its_loop_runs(source):
    with make(source) as loader:
        watched = stoker.watch(loader, warm_up=1)
        done = threading.Event()

        def work(number: int) -> None:
            if number == 0:
                try:
                    for _ in range(3 * ROUNDS):
                        for batch in watched:
                            weights = np.asarray(batch.weights)
                            watched.record(1.5, rows=weights[: batch.valid])
                finally:
                    done.set()
            while not done.is_set():
                assert watched.report() and watched.to_dict()
                watched.spikes()

        together(work)
        kept = watched.kept_losses()
        assert kept is not None and len(kept.steps()) == 3 * ROUNDS * len(loader)


def test_what_is_dropped_ends_by_itself(source):
    """The last reference to a Loader, a batch or a loop goes away on any thread."""

    def work(_: int) -> None:
        for _ in range(2 * ROUNDS):
            loader = make(source, on_batch=lambda batch: batch)
            first = next(iter(loader))
            del loader
            assert len(first) == ROWS

    together(work)
    gc.collect()
