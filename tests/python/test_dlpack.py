"""DLPack capsules, as other libraries read them."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

import stoker
from conftest import must_run


class DlTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class DlManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DlTensor),
    )


ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
ctypes.pythonapi.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
ctypes.pythonapi.PyCapsule_GetName.argtypes = (ctypes.py_object,)


def pointer_in(capsule: object, name: bytes, kind: type) -> ctypes.Structure:
    address = ctypes.pythonapi.PyCapsule_GetPointer(capsule, name)
    return ctypes.cast(address, ctypes.POINTER(kind)).contents


def name_of(capsule: object) -> bytes:
    return ctypes.pythonapi.PyCapsule_GetName(capsule)


@pytest.fixture
def batch(source):
    with stoker.Loader(source, batch_size=8) as loader:
        yield next(iter(loader))


def test_without_a_version(batch):
    capsule = batch.images.__dlpack__()
    assert name_of(capsule) == b"dltensor"
    tensor = pointer_in(capsule, b"dltensor", DlTensor)
    assert (tensor.device_type, tensor.device_id, tensor.ndim) == (1, 0, 4)
    assert (tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset) == (1, 8, 1, 0)
    assert tensor.shape[:4] == [8, 16, 16, 3]
    assert tensor.strides[:4] == [768, 48, 3, 1]
    assert tensor.data == np.asarray(batch.images).ctypes.data
    assert tensor.data % 256 == 0
    assert name_of(batch.images.__dlpack__(max_version=(0, 8))) == b"dltensor"


def test_with_a_version(batch):
    for array, code, bits in (
        (batch.images, 1, 8),
        (batch.labels, 0, 32),
        (batch.weights, 2, 32),
        (batch.ids, 0, 64),
    ):
        capsule = array.__dlpack__(max_version=(1, 3), dl_device=(1, 0), copy=False)
        assert name_of(capsule) == b"dltensor_versioned"
        managed = pointer_in(capsule, b"dltensor_versioned", DlManagedVersioned)
        assert (managed.major, managed.minor, managed.flags) == (1, 0, 0)
        assert (managed.tensor.code, managed.tensor.bits) == (code, bits)
        assert managed.tensor.data == np.asarray(array).ctypes.data


def test_a_copy_is_one_and_says_so(batch):
    capsule = batch.images.__dlpack__(max_version=(1, 0), copy=True)
    managed = pointer_in(capsule, b"dltensor_versioned", DlManagedVersioned)
    assert managed.flags == 2
    assert managed.tensor.data != np.asarray(batch.images).ctypes.data


def test_numpy_takes_them(batch):
    shared = np.from_dlpack(batch.weights)
    np.testing.assert_array_equal(shared, np.asarray(batch.weights))
    assert shared.dtype == np.float32 and np.shares_memory(shared, np.asarray(batch.weights))
    assert np.array(batch.images).flags.owndata


def test_they_are_looked_at_as_numpys_are(batch):
    images, labels = batch  # and not its rows
    pixels, numbers = np.asarray(batch.images), np.asarray(batch.labels)
    assert np.shares_memory(images.numpy(), pixels) and np.shares_memory(images[0], pixels)
    assert (images[2:5, ::2, :, 0] == pixels[2:5, ::2, :, 0]).all()
    assert (images[numbers > 4] == pixels[numbers > 4]).all()
    assert labels.tolist() == numbers.tolist() == list(labels) and labels[-1] == numbers[-1]
    assert [row.shape for row in images] == [(16, 16, 3)] * 8
    with pytest.raises(IndexError):
        images[8]


def test_what_was_looked_at_keeps_the_memory(source):
    with stoker.Loader(source, batch_size=8, shuffle=False) as loader:
        before = [(batch.images[0], batch.images[0].copy()) for batch in loader]
    assert all((kept == copy).all() for kept, copy in before)


def test_numpy_has_no_bfloat16(source):
    batch = next(iter(stoker.Loader(source, batch_size=8, dtype="bfloat16")))
    for look in (lambda: batch.images[0], batch.images.tolist, lambda: list(batch.images)):
        with pytest.raises(TypeError, match="NumPy has no bfloat16"):
            look()


def test_a_capsule_that_nobody_took_gives_back_what_it_holds(source):
    with stoker.Loader(source, batch_size=8) as loader:
        for options in ({}, {"max_version": (1, 0)}):
            capsule = next(iter(loader)).images.__dlpack__(**options)
            gc.collect()
            assert loader.stats()["held"] == 1
            del capsule
            assert loader.stats()["held"] == 0


DROPPED_WITHOUT_THE_LOCK = """
import ctypes, os, time
import stoker

libc = ctypes.CDLL(None)
get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
set_name = ctypes.pythonapi.PyCapsule_SetName
set_name.argtypes = (ctypes.py_object, ctypes.c_char_p)
USED = b"used_dltensor_versioned"

def take(capsule):  # as a library does: the tensor, and its deleter
    tensor = get_pointer(capsule, b"dltensor_versioned")
    set_name(capsule, USED)
    return tensor, ctypes.cast(tensor, ctypes.POINTER(ctypes.c_void_p))[2]

def threads():
    return len(os.listdir("/proc/self/task"))

def drop_here(tensor, deleter):  # by a thread of Python's, which has let go of the lock
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(tensor)

def drop_elsewhere(tensor, deleter):  # by one that Python does not know
    thread = ctypes.c_ulong()
    start = [ctypes.c_void_p(value) for value in (None, deleter, tensor)]
    assert libc.pthread_create(ctypes.byref(thread), *start) == 0
    assert libc.pthread_join(thread, None) == 0

for drop in drop_here, drop_elsewhere:
    before = threads()
    with stoker.Loader(stoker.synthetic(1000, size=16), batch_size=10, workers=2) as loader:
        loop = iter(loader)
        lent = take(next(loop).images.__dlpack__(max_version=(1, 0)))
        drop(*lent)
        assert loader.stats()["held"] == 0
        kept = take(next(loop).images.__dlpack__(max_version=(1, 0)))
    del loader, loop
    end = time.monotonic() + 30  # joined threads may be listed a moment longer
    while threads() > before:
        assert time.monotonic() < end, "the feed has not ended"
        time.sleep(0.001)
    drop(*kept)
"""


def test_a_tensor_may_be_dropped_without_the_lock():
    """While its feed runs, and after its end."""
    must_run(DROPPED_WITHOUT_THE_LOCK)


def test_torch_takes_them_without_a_copy(source):
    torch = pytest.importorskip("torch")
    for layout, contiguous in (("NHWC", True), ("NCHW", True), ("channels_last", False)):
        with stoker.Loader(source, batch_size=8, dtype="float32", layout=layout) as loader:
            for batch in loader:
                images = torch.from_dlpack(batch.images)
                assert images.data_ptr() == np.asarray(batch.images).ctypes.data
                assert images.is_contiguous() == contiguous
                if layout == "channels_last":
                    assert images.is_contiguous(memory_format=torch.channels_last)
                labels = torch.from_dlpack(batch.labels)
                assert labels.tolist() == np.asarray(batch.labels).tolist()
            assert loader.stats()["held"] == 1
            del batch, images, labels
            assert loader.stats()["held"] == 0


def test_autograd_may_drop_the_last_tensor_on_a_thread_of_its_own(source):
    torch = pytest.importorskip("torch")
    with stoker.Loader(source, batch_size=8, dtype="float32") as loader:
        weight = torch.ones(3, requires_grad=True)
        for _ in range(4):
            for batch in loader:
                loss = (torch.from_dlpack(batch.images) * weight).sum()
                del batch
                loss.backward()
                del loss
        assert loader.stats()["held"] == 0
        assert weight.grad.isfinite().all()
