"""The way to a GPU and back, on a CUDA driver and runtime without one (tests/support/fake_cuda.h):
streams are threads, and copies are late and in pieces. A slot that is filled before its reader is
done is noticed.
"""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest

from conftest import child_environment, must_run

FOLDER = os.environ.get("STOKER_FAKE_CUDA_DIR", "")

PROGRAM = """
import ctypes, random
import numpy as np
import stoker

runtime = next(ctypes.CDLL(name) for name in LIBRARIES)
runtime.cudaStreamCreateWithFlags.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint)
runtime.cudaMemcpyAsync.argtypes = (
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
runtime.cudaStreamSynchronize.argtypes = (ctypes.c_void_p,)

def make_stream():
    stream = ctypes.c_void_p()
    assert runtime.cudaStreamCreateWithFlags(ctypes.byref(stream), 1) == 0
    return stream.value

ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
ctypes.pythonapi.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)

def address_in(capsule):  # DLTensor's first member is the data
    pointer = ctypes.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor")
    return ctypes.cast(pointer, ctypes.POINTER(ctypes.c_void_p))[0]

def queue_read(capsule, out, stream):  # the consumer's kernel
    assert runtime.cudaMemcpyAsync(out.ctypes.data, address_in(capsule), out.nbytes, 2, stream) == 0

source = stoker.synthetic(200, size=16)
crop = stoker.augment.random_crop(padding=2, mode="reflect")
options = dict(batch_size=8, seed=2, augment=crop | stoker.flip())
with stoker.Loader(source, copy=True, **options) as host:
    truth = {batch.step: batch for _ in range(2) for batch in host}
assert stoker.devices() == ["cpu:0", "cuda:0", "cuda:1"], stoker.why_no_cuda()
gpu = stoker.Loader(source, device="cuda:1", **options)
"""


def run(code: str) -> None:
    libraries = sorted(str(path) for path in Path(FOLDER).glob("libcudart.so.*"))
    folders = {"LD_LIBRARY_PATH": FOLDER, "STOKER_PLUGIN_DIR": FOLDER}
    program = f"LIBRARIES = {libraries}\n{PROGRAM}{textwrap.dedent(code)}"
    must_run(program, 120, env={**child_environment(), **folders})


pytestmark = pytest.mark.skipif(
    not (Path(FOLDER) / "libstoker_cuda.so").exists() or not FOLDER,
    reason="STOKER_FAKE_CUDA_DIR names no CUDA plugin on a fake runtime",
)


def test_slots_are_filled_behind_the_work_that_reads_them():
    """Tensors are dropped as soon as their readers are queued, on two streams in turn."""
    run(
        """
        streams = [make_stream(), make_stream()]
        results = {}
        for _ in range(2):
            for batch in gpu:
                assert batch.images.__dlpack_device__() == (2, 1)
                stream = random.choice(streams)
                images = np.zeros((8, 16, 16, 3), np.uint8)
                labels = np.zeros(8, np.int32)
                capsule = batch.images.__dlpack__(stream=stream)
                queue_read(capsule, images, stream)
                queue_read(batch.labels.__dlpack__(stream=stream), labels, stream)
                results[batch.step] = images, labels, np.asarray(batch.ids).copy()
                del capsule, batch  # the reads have hardly begun
        for stream in streams:
            assert runtime.cudaStreamSynchronize(stream) == 0
        assert len(results) == 50
        for step, (images, labels, ids) in results.items():
            assert (ids == np.asarray(truth[step].ids)).all()
            assert (images == np.asarray(truth[step].images)).all(), f"step {step}"
            assert (labels == np.asarray(truth[step].labels)).all(), f"step {step}"
        gpu.close()
        """
    )


def test_a_threads_default_stream_is_marked_from_any_thread():
    """One thread takes tensors with stream=2, its own default stream, and reads them late; another
    one, whose stream 2 is empty, drops them immediately.
    """
    run(
        """
        from concurrent.futures import ThreadPoolExecutor

        libc = ctypes.CDLL(None)
        runtime.cudaLaunchHostFunc.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        sleep = ctypes.cast(libc.usleep, ctypes.c_void_p)
        results = {}

        def read(batch, held):
            images = results[batch.step] = np.zeros((8, 16, 16, 3), np.uint8)
            held.append(batch.images.__dlpack__(stream=2))
            assert runtime.cudaLaunchHostFunc(2, sleep, 10_000) == 0
            queue_read(held[0], images, 2)

        with ThreadPoolExecutor(1) as reader:
            for batch in gpu:
                held = []
                reader.submit(read, batch, held).result()
                del batch, held
            assert reader.submit(runtime.cudaStreamSynchronize, 2).result() == 0
        assert len(results) == 25
        for step, images in results.items():
            assert (images == np.asarray(truth[step].images)).all(), f"step {step}"
        """
    )


def test_the_host_gets_copies_and_clear_errors():
    run(
        """
        batch = next(iter(gpu))
        assert (np.asarray(batch.images.cpu()) == np.asarray(truth[0].images)).all()
        assert batch.images.cpu().device == "cpu" and batch.images.device == "cuda:1"
        host = batch.images.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
        for call, kind in (
            (lambda: np.asarray(batch.images), TypeError),
            (lambda: batch.images[0], TypeError),
            (lambda: list(batch.images), TypeError),
            (batch.labels.tolist, TypeError),
            (batch.images.numpy, TypeError),
            (lambda: batch.images.__dlpack__(stream=0), ValueError),
            (lambda: batch.images.__dlpack__(stream=-2), ValueError),
            (lambda: batch.images.__dlpack__(copy=True), BufferError),
            (lambda: batch.images.__dlpack__(dl_device=(1, 0), copy=False), BufferError),
            (lambda: batch.images.__dlpack__(dl_device=(2, 0)), BufferError),
            (lambda: stoker.Loader(source, device="cuda:1", copy=True), ValueError),
            (lambda: stoker.Loader(source, device="cuda:1", leases=4), ValueError),
            (lambda: stoker.Loader(source, device="cuda:7"), RuntimeError),
        ):
            try:
                call()
            except kind as error:
                assert str(error)
            else:
                raise SystemExit(f"no {kind}")
        capsule = batch.images.__dlpack__(stream=-1)
        images = np.zeros((8, 16, 16, 3), np.uint8)
        ctypes.memmove(images.ctypes.data, address_in(capsule), images.nbytes)
        assert (images == np.asarray(truth[0].images)).all()
        """
    )


def test_held_too_long_is_an_error_and_dropped_late_is_not():
    run(
        """
        stream = make_stream()
        loop = iter(gpu)
        held = [next(loop).images.__dlpack__(stream=stream) for _ in range(3)]
        try:
            next(loop)
        except RuntimeError as error:
            assert "needs the memory of step 0" in str(error)
        else:
            raise SystemExit("no error")
        del held[0]
        assert next(loop).step == 3
        # what is left goes with the interpreter
        """
    )


def test_a_stream_destroyed_too_early_ends_no_feed():
    run(
        """
        libc = ctypes.CDLL(None)
        runtime.cudaLaunchHostFunc.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        runtime.cudaStreamDestroy.argtypes = (ctypes.c_void_p,)
        sleep = ctypes.cast(libc.usleep, ctypes.c_void_p)
        stream = make_stream()
        loop = iter(gpu)
        batch = next(loop)
        images = np.zeros((8, 16, 16, 3), np.uint8)
        capsule = batch.images.__dlpack__(stream=stream)
        assert runtime.cudaLaunchHostFunc(stream, sleep, 100_000) == 0
        queue_read(capsule, images, stream)
        assert runtime.cudaStreamDestroy(stream) == 0  # what is queued goes on
        del capsule
        try:
            batch.labels.__dlpack__(stream=stream)
        except RuntimeError as error:
            assert "on the borrowed stream 0x" in str(error), error
        else:
            raise SystemExit("no error")
        del batch
        for step in range(1, 20):
            batch = next(loop)
            assert batch.step == step
            assert (np.asarray(batch.images.cpu()) == np.asarray(truth[step].images)).all()
        assert (images == np.asarray(truth[0].images)).all(), "the slot was filled too early"
        """
    )


@pytest.mark.parametrize("last", ["del gpu", "gpu.close()", "del gpu, tensor"])
def test_a_feed_ends_without_the_lock(last):
    """Its end waits for its readers' streams, on which a function needs Python's lock."""
    run(
        f"""
        import sys
        sys.setswitchinterval(3600)  # the lock goes over where this thread lets go of it only
        called = []
        callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(called.append)
        launch = ctypes.PyDLL(LIBRARIES[0]).cudaLaunchHostFunc  # does not let go of it
        launch.argtypes = (ctypes.c_void_p, type(callback), ctypes.c_void_p)
        stream = make_stream()
        batch = next(iter(gpu))
        tensor = batch.images.__dlpack__(stream=stream)
        assert launch(stream, callback, 5) == 0
        if "tensor" not in {last!r}:
            del tensor
        del batch
        assert not called
        {last}
        assert called == [5]
        """
    )


@pytest.mark.parametrize("ending", ["loader.close()", "del loader, loop"])
def test_a_tensor_outlives_its_feed(ending):
    """It keeps its memory and the reads queued on it; the threads and the slots are gone."""
    run(
        f"""
        import os, time

        def threads():
            return len(os.listdir("/proc/self/task"))

        gpu.close()
        stream = make_stream()
        before = threads()
        loader = stoker.Loader(source, device="cuda:0", **options)
        loop = iter(loader)
        batches = [next(loop) for _ in range(3)]
        capsules = [batch.images.__dlpack__(stream=stream) for batch in batches]
        labels = np.asarray(batches[1].labels.cpu())
        images = np.zeros((8, 16, 16, 3), np.uint8)
        {ending}
        end = time.monotonic() + 30
        while threads() > before:
            assert time.monotonic() < end, (before, threads())
            time.sleep(0.001)
        queue_read(capsules[0], images, stream)
        later = np.asarray(batches[0].images.cpu())
        assert (labels == np.asarray(truth[1].labels)).all()
        del capsules, batches  # waits for the read that is queued
        want = np.asarray(truth[0].images)
        assert (images == want).all() and (later == want).all()
        """
    )


def test_after_a_fork():
    run(
        """
        import os, sys
        stream = make_stream()
        loop = iter(gpu)
        batch = next(loop)
        capsule = batch.images.__dlpack__(stream=stream)
        child = os.fork()
        if child == 0:
            try:
                next(loop)
            except RuntimeError:
                pass
            else:
                sys.exit(1)
            del capsule, batch, loop, gpu
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        del capsule, batch
        assert next(loop).step == 1
        """
    )


def test_rows_are_erased_and_mixed_on_the_device():
    run(
        """
        augment = (
            "flip | random_erasing(p=0.7, noise=True) | mix(mixup=0.5, cutmix=1, switch_p=0.5)"
        )
        mixed = dict(options, augment=augment)
        with stoker.Loader(source, copy=True, **mixed) as host:
            truth = {batch.step: batch for batch in host}
        with stoker.Loader(source, device="cuda:1", **mixed) as there:
            for batch in there:
                assert batch.draws == truth[batch.step].draws
                out = np.zeros(batch.images.shape, np.uint8)
                weights = np.zeros(8, np.float32)
                queue_read(batch.images.__dlpack__(stream=1), out, 1)
                queue_read(batch.targets["mix_weight"].__dlpack__(stream=1), weights, 1)
                assert runtime.cudaStreamSynchronize(1) == 0
                wanted = truth[batch.step]
                assert (out == np.asarray(wanted.images)).all(), batch.step
                assert (weights == np.asarray(wanted.targets["mix_weight"])).all(), batch.step
        """
    )


def test_views_reach_the_device():
    run(
        """
        views = dict(options, augment="views(flip, random_resized_crop((8, 12)), counts=(1, 2))")
        with stoker.Loader(source, copy=True, **views) as host:
            truth = {batch.step: batch for batch in host}
        with stoker.Loader(source, device="cuda:1", **views) as there:
            for batch in there:
                assert batch.draws == truth[batch.step].draws
                for view, wanted in zip(batch.views, truth[batch.step].views, strict=True):
                    assert view.__dlpack_device__() == (2, 1) and view.shape == wanted.shape
                    out = np.zeros(view.shape, np.uint8)
                    queue_read(view.__dlpack__(stream=1), out, 1)
                    assert runtime.cudaStreamSynchronize(1) == 0
                    assert (out == np.asarray(wanted)).all(), batch.step
        floats = dict(views, dtype="float32", layout="NCHW", mean=(0.5, 0.4, 0.3), std=0.25)
        with stoker.Loader(source, copy=True, **floats) as host:
            truth = {batch.step: batch for batch in host}
        with stoker.Loader(source, device="cuda:1", **floats) as there:
            for batch in there:
                for view, wanted in zip(batch.views, truth[batch.step].views, strict=True):
                    assert view.shape == wanted.shape and view.dtype == wanted.dtype
                    out = np.zeros(view.shape, np.float32)
                    queue_read(view.__dlpack__(stream=1), out, 1)
                    assert runtime.cudaStreamSynchronize(1) == 0
                    assert (out == np.asarray(wanted)).all(), batch.step
        """
    )


def test_on_batch_reads_on_a_stream_of_its_own():
    """The function's thread takes and reads tensors, the loop reads and drops them: slots are
    filled behind both. The usual loop holds two batches beside the one ahead."""
    run(
        """
        mine, its = make_stream(), make_stream()
        read = {}

        def prepare(batch):
            images = read[batch.step] = np.zeros((8, 16, 16, 3), np.uint8)
            queue_read(batch.images.__dlpack__(stream=its), images, its)
            return batch.step, batch.images, np.asarray(batch.ids).copy()

        gpu.close()
        loader = stoker.Loader(source, device="cuda:1", on_batch=prepare, **options)
        results = {}
        for _ in range(2):
            for step, tensor, ids in loader:
                images = np.zeros((8, 16, 16, 3), np.uint8)
                queue_read(tensor.__dlpack__(stream=mine), images, mine)
                results[step] = images, ids
        assert list(results) == list(read) == list(range(50))
        for stream in (mine, its):
            assert runtime.cudaStreamSynchronize(stream) == 0
        for step, (images, ids) in results.items():
            assert (ids == np.asarray(truth[step].ids)).all()
            assert (images == np.asarray(truth[step].images)).all(), f"step {step}"
            assert (read[step] == images).all(), f"step {step}"
        """
    )


def test_on_batch_and_slots_that_are_held():
    """An error of the slots is raised by next(), and the loop goes on when they are free."""
    run(
        """
        gpu.close()
        try:
            stoker.Loader(source, device="cuda:1", on_batch=id, on_batch_ahead=2, **options)
        except ValueError as error:
            assert "on_batch_ahead is 2 on cuda:1: with the 2 batches" in str(error), error
        else:
            raise SystemExit("no error")
        loader = stoker.Loader(source, device="cuda:1", on_batch=lambda batch: batch, **options)
        loop = iter(loader)
        held = [next(loop), next(loop), next(loop)]
        for _ in range(2):
            try:
                next(loop)
            except RuntimeError as error:
                assert "step 3 needs the memory of step 0" in str(error), error
            else:
                raise SystemExit("no error")
            assert loader.state_dict()["next_step"] == 3
        del held[0]
        held.append(next(loop))
        assert [batch.step for batch in held] == [1, 2, 3], "as many as without on_batch"
        del held[0]
        held.append(next(loop))
        assert held[-1].step == 4
        for step in (2, 3, 4):
            batch = held.pop(0)
            assert batch.step == step
            assert (np.asarray(batch.images.cpu()) == np.asarray(truth[step].images)).all()
        del batch
        rest = [batch.step for batch in loop]
        assert rest == list(range(5, 25)), rest
        """
    )
