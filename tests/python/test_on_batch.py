"""A function of the program's own on every batch, in a thread ahead of the loop."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import stoker
from conftest import damaged_folder
from on_batch_loops import STEPS, Gate, join_all, make, threads

HAS_LOCK = getattr(sys, "_is_gil_enabled", lambda: True)()


def plain(batch: stoker.Batch) -> tuple[int, bytes]:
    return batch.step, np.asarray(batch.images).tobytes()


@pytest.fixture
def truth(source) -> list[tuple[int, bytes]]:
    with make(source) as loader:
        return [plain(batch) for _ in range(3) for batch in loader]


@pytest.mark.parametrize("ahead", [1, 4])
@pytest.mark.parametrize("workers", [0, 2])
def test_each_batch_once_and_in_order(source, truth, ahead, workers):
    called = []

    def prepare(batch: stoker.Batch) -> tuple[int, bytes]:
        called.append((batch.step, threading.current_thread().name))
        return plain(batch)

    with make(source, on_batch=prepare, on_batch_ahead=ahead, workers=workers) as loader:
        assert len(loader) == STEPS
        for epoch in range(3):
            assert loader.epoch == epoch
            loop = iter(loader)
            assert [next(loop) for _ in range(5)] == truth[epoch * STEPS :][:5]
            assert list(loop) == truth[epoch * STEPS :][5:STEPS]
        assert loader.stats()["held"] == 0
    assert called == [(step, "stoker on_batch") for step in range(3 * STEPS)]
    assert threads() == []


@pytest.mark.parametrize("ahead", [1, 3])
def test_it_works_ahead_and_not_further(source, ahead):
    for turn in range(20):
        reached = [threading.Event() for _ in range(STEPS)]

        def prepare(batch: stoker.Batch, reached: list[threading.Event] = reached) -> int:
            reached[batch.step].set()
            return batch.step

        with make(source, on_batch=prepare, on_batch_ahead=ahead) as loader:
            loop = iter(loader)
            for _ in range(turn % 8 + 1):
                step = next(loop)
                assert reached[step + ahead].wait(60), "it works ahead"
        assert [each.is_set() for each in reached].count(True) == step + ahead + 1


@pytest.mark.parametrize("ahead", [1, 3])
def test_a_state_counts_what_was_handed_over(source, truth, ahead):
    for at in range(STEPS + 1):
        with make(source, on_batch=plain, on_batch_ahead=ahead) as loader:
            loop = iter(loader)
            assert [next(loop) for _ in range(at)] == truth[:at]
            state = loader.state_dict()
            assert state["next_step"] == at
            assert f"next step {at}>" in repr(loader)
            assert (state["epoch"], state["step_in_epoch"]) == divmod(at, STEPS)
        for function in (plain, None):
            with make(source, on_batch=function) as resumed:
                resumed.load_state_dict(state)
                rest = [b if function else plain(b) for b in resumed]
                expected = truth[at:STEPS] if at < STEPS else truth[STEPS : 2 * STEPS]
                assert rest == expected


def test_back_to_the_same_place(source, truth):
    """Batches ahead of the state are made again, even if the state is that of this moment."""
    with make(source, on_batch=plain, on_batch_ahead=2) as loader:
        loop = iter(loader)
        assert [next(loop) for _ in range(4)] == truth[:4]
        loader.load_state_dict(loader.state_dict())
        with pytest.raises(RuntimeError, match="was ended by a newer one"):
            next(loop)
        assert list(loader) == truth[4:STEPS]
        assert next(iter(loader)) == truth[STEPS]
        loader.set_epoch(1)
        assert list(loader) == truth[STEPS : 2 * STEPS]


def test_a_loop_left_early(source, truth):
    with make(source, on_batch=plain) as loader:
        for epoch in range(3):
            for step, _ in loader:
                if step % STEPS == 3:
                    break
            assert loader.epoch == epoch
        join_all()
        assert loader.stats()["held"] == 0
        loader.set_epoch(1)
        assert list(loader) == truth[STEPS : 2 * STEPS]


def test_nothing_is_kept_of_a_loop_that_was_left(source):
    """Neither the results that were ready, nor the one of a call that had begun."""

    class Result:
        def __init__(self, batch: stoker.Batch):
            self.images = np.asarray(batch.images)

    made: list[weakref.ref[Result]] = []
    begun, may_end = threading.Event(), threading.Event()

    def prepare(batch: stoker.Batch) -> Result:
        if batch.step == 3:
            begun.set()
            may_end.wait()
        result = Result(batch)
        made.append(weakref.ref(result))
        return result

    with make(source, on_batch=prepare, on_batch_ahead=3) as loader:
        for _ in loader:
            begun.wait()
            break
        del _
        kept = [each() for each in made]
        may_end.set()  # before anything can fail: the end of the Loader waits for the call
        if HAS_LOCK:  # without it an object is freed by the thread that made it, which waits
            assert kept == [None] * 3
        del kept
        join_all()
        assert [each() for each in made] == [None] * 4
        assert loader.stats()["held"] == 0


class Broken(Exception):
    pass


def test_an_exception_is_raised_in_place_of_its_batch(source, truth):
    error = Broken("it is broken")

    def prepare(batch: stoker.Batch) -> tuple[int, bytes]:
        if batch.step in (0, 4, STEPS - 1):
            raise error
        return plain(batch)

    with make(source, on_batch=prepare) as loader:
        loop = iter(loader)
        for step in range(STEPS):
            assert loader.state_dict()["next_step"] in (step, step - 1)
            if step in (0, 4, STEPS - 1):
                with pytest.raises(Broken) as raised:
                    next(loop)
                assert raised.value is error and error.args == ("it is broken",)
                if sys.version_info >= (3, 11):
                    assert error.__notes__[-1] == f"raised by on_batch for the batch of step {step}"
                assert loader.state_dict()["next_step"] == step, "it was not handed over"
            else:
                assert next(loop) == truth[step]
        assert next(loop, None) is None
        del raised
        error.__traceback__ = None  # it has the frames, which have the batch
        assert loader.stats()["held"] == 0
        assert next(iter(loader)) == truth[STEPS]


def test_an_exception_goes_with_its_last_reference(source):
    """Its batch, too: no cycle is left for the garbage collector."""

    def prepare(batch: stoker.Batch) -> int:
        raise Broken

    gc.collect()
    gc.disable()
    try:
        with make(source, on_batch=prepare) as loader:
            loop = iter(loader)
            dropped = []
            for _ in range(STEPS):
                try:
                    next(loop)
                except Broken as error:
                    dropped.append(weakref.ref(error))
            join_all()
            assert [each() for each in dropped] == [None] * STEPS
            assert loader.stats()["held"] == 0
    finally:
        gc.enable()


def test_a_loop_that_an_exception_ended(source, truth):
    """As without on_batch: the next loop is the next epoch, unless nothing was handed over."""
    at = 3

    def prepare(batch: stoker.Batch) -> tuple[int, bytes]:
        if batch.step == at:
            raise Broken
        return plain(batch)

    with make(source, on_batch=prepare) as loader:
        with pytest.raises(Broken):
            list(loader)
        state = loader.state_dict()
        assert state["next_step"] == 3
        at = STEPS
        with pytest.raises(Broken):
            list(loader)
        at = -1
        assert list(loader) == truth[STEPS : 2 * STEPS]
        loader.load_state_dict(state)
        assert list(loader) == truth[3:STEPS]


def test_stop_iteration_does_not_end_the_epoch(source, truth):
    def prepare(batch: stoker.Batch) -> tuple[int, bytes]:
        return next(iter(())) if batch.step == 2 else plain(batch)

    with make(source, on_batch=prepare) as loader:
        loop = iter(loader)
        assert [next(loop), next(loop)] == truth[:2]
        with pytest.raises(RuntimeError, match="on_batch raised StopIteration") as raised:
            next(loop)
        assert isinstance(raised.value.__cause__, StopIteration)
        assert list(loop) == truth[3:STEPS]


def test_none_is_a_result(source):
    with make(source, on_batch=lambda batch: None) as loader:
        assert list(loader) == [None] * STEPS


def test_two_calls_never_run_at_once(source):
    """The loop is left while a call is running, and the next loop begins."""
    gate = Gate()
    gate.may_end.release()
    with make(source, on_batch=gate) as loader:
        for _ in loader:
            gate.begun.acquire()
            gate.begun.acquire()  # that of step 1
            break
        steps: list[int] = []
        consumer = threading.Thread(target=lambda: steps.extend(loader))
        consumer.start()
        assert not gate.begun.acquire(timeout=0.2)
        gate.may_end.release(STEPS + 1)
        consumer.join()
        assert steps == list(range(STEPS, 2 * STEPS))
        assert gate.count == STEPS + 2


def test_an_older_loop_does_not_stop_a_newer_one(source):
    with make(source, on_batch=lambda batch: batch.step) as loader:
        older = iter(loader)
        assert next(older) == 0
        newer = iter(loader)
        assert next(newer) == STEPS
        del older
        assert list(newer) == list(range(STEPS + 1, 2 * STEPS))


def test_the_feed_goes_on_into_the_next_epoch(source):
    """Its next batches are decoded already, even if nobody asks whether the epoch is over."""
    with make(source, on_batch=lambda batch: batch.step) as loader:
        feed = loader._feed.get()
        loop = iter(loader)
        assert [next(loop) for _ in range(STEPS)] == list(range(STEPS))
        loader.set_epoch(1)
        assert list(loader) == list(range(STEPS, 2 * STEPS))
        loader.load_state_dict(loader.state_dict())
        assert loader._feed.get() is feed


def test_two_threads_share_a_loop(source):
    with make(source, on_batch=lambda batch: batch.step, on_batch_ahead=2) as loader:
        loop, steps = iter(loader), []
        takers = [threading.Thread(target=lambda: steps.extend(loop)) for _ in range(3)]
        for thread in takers:
            thread.start()
        for thread in takers:
            thread.join()
        assert sorted(steps) == list(range(STEPS))
        assert list(loader) == list(range(STEPS, 2 * STEPS))


def test_batches_themselves_may_be_kept(source, truth):
    with make(source, on_batch=lambda batch: batch, on_batch_ahead=2) as loader:
        batches = list(loader)
        assert loader.stats()["held"] == STEPS
        assert [plain(batch) for batch in batches] == truth[:STEPS]
    assert [plain(batch) for batch in batches] == truth[:STEPS]


def test_views_and_mixed_rows(source):
    views = "views(resize | flip, random_resized_crop, counts=(1, 2))"

    def rows(batch: stoker.Batch) -> list[bytes]:
        return [np.asarray(view).tobytes() for view in batch.views]

    def shares(batch: stoker.Batch) -> tuple[list[int], list[float]]:
        targets = batch.targets
        return (
            np.asarray(targets["mix_label"]).tolist(),
            np.asarray(targets["mix_weight"]).tolist(),
        )

    for augment, function in ((views, rows), ("flip | mix(mixup=0.5, cutmix=1)", shares)):
        with make(source, augment=augment, size=16, copy=True) as loader:
            expected = [function(batch) for batch in loader]
        with make(source, augment=augment, size=16, on_batch=function) as loader:
            assert list(loader) == expected


def test_leases(source):
    for options, wanted in (
        ({}, 3),
        ({"on_batch": plain}, 3),
        ({"on_batch": plain, "on_batch_ahead": 4}, 6),
        ({"on_batch": plain, "on_batch_ahead": 4, "leases": 5}, 5),
    ):
        with make(source, **options) as loader:
            assert loader._options.leases == wanted


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"on_batch": 3}, TypeError, "on_batch is 3, must be a function of a batch"),
        ({"on_batch": plain, "on_batch_ahead": 0}, ValueError, "on_batch_ahead is 0, must be a"),
        ({"on_batch": plain, "on_batch_ahead": 1.5}, ValueError, "on_batch_ahead is 1.5, must"),
        ({"on_batch": plain, "on_batch_ahead": True}, ValueError, "on_batch_ahead is True, must"),
        ({"on_batch_ahead": 2}, ValueError, "on_batch_ahead is 2, but there is no on_batch="),
        (
            {"on_batch": plain, "on_batch_ahead": 3, "leases": 3},
            ValueError,
            "leases is 3, but on_batch_ahead=3 batches are held ahead, and the loop holds another: "
            "give leases=5 or leave it out",
        ),
    ],
)
def test_arguments(source, options, kind, message):
    with pytest.raises(kind, match=message):
        make(source, **options)


def test_an_error_of_the_feed_is_not_the_functions(tmp_path):
    """It has no note, and state_dict() is the place to go on from."""
    damaged_folder(tmp_path, 24, range(20, 24))
    options = dict(batch_size=4, size=16, shuffle=False, on_bad="fail", workers=1)
    seen = []
    loader = stoker.Loader(
        stoker.folder(tmp_path), on_batch=lambda batch: batch.step, on_batch_ahead=2, **options
    )
    with pytest.raises(stoker.FeedError) as raised:
        for step in loader:
            seen.append(step)
    assert seen == [0, 1, 2, 3, 4]
    assert not hasattr(raised.value, "__notes__")
    assert loader.state_dict()["next_step"] == 5
    loader.close()
