"""Seek indexes made from Python: the same pixels with less reading; errors; Ctrl-C."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
import stoker
from stoker import _core
from conftest import jpeg, picture, run_python


def rows(source, **options):
    """Returns all rows of an epoch, and the Loader's counters."""
    crop = stoker.random_resized_crop()
    options = {"batch_size": 8, "size": 24, "pixels": "fast", "seed": 1, **options}
    loader = stoker.Loader(source, augment=crop, **options)
    with loader:
        pixels = np.concatenate([np.array(batch.images)[: batch.valid] for batch in loader])
        return pixels, loader.stats()


@pytest.mark.parametrize("granularity", ["row", "8"])
def test_pixels_stay_the_same(pictures, tmp_path, granularity):
    source = stoker.folder(pictures)
    made = stoker.index(source, tmp_path / "x.seek", granularity)
    assert (made.path, made.images, made.indexed) == (str(tmp_path / "x.seek"), 37, 37)
    assert made.file_bytes == os.path.getsize(made.path)
    assert made.bad == []
    with_index, stats = rows(source, seek_index=made.path)
    without, plain = rows(source, seek_index="off")
    assert stats["seek_index_used"] > 0
    assert stats["read"]["items"] + stats["cached_read"]["items"] >= 37
    assert plain["seek_index_used"] == 0
    assert np.array_equal(with_index, without)


def test_the_cache_directory_is_where_loaders_look(pictures, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = stoker.folder(pictures)
    assert stoker.index(source).path.startswith(str(tmp_path))
    assert rows(source)[1]["seek_index_used"] > 0


def test_bad_and_changed_files(tmp_path):
    folder = tmp_path / "data" / "cat"
    folder.mkdir(parents=True)
    for i in range(4):
        data = jpeg(picture(i, 400, 300))
        (folder / f"{i}.jpg").write_bytes(data[: len(data) // 2 if i == 1 else None])
    source = stoker.folder(tmp_path / "data")
    made = stoker.index(source, tmp_path / "x.seek", workers=2)
    assert (made.indexed, [(bad.id, bad.name) for bad in made.bad]) == (3, [(1, "cat/1.jpg")])
    assert made.bad[0].reason == "truncated"
    (folder / "2.jpg").write_bytes(jpeg(picture(7, 400, 300)))
    _, stats = rows(source, seek_index=made.path, max_bad=4)
    assert stats["seek_index_refused"] > 0


def test_what_cannot_be(pictures, tmp_path, source, monkeypatch):
    files = stoker.folder(pictures)
    with pytest.raises(ValueError, match="no image files there"):
        stoker.index(source, tmp_path / "x")
    with pytest.raises(ValueError, match="granularity is '4', must be one of 'row', '8'"):
        stoker.index(files, tmp_path / "x", "4")
    with pytest.raises(ValueError, match="workers is 0, must be 1 to 1024"):
        stoker.index(files, tmp_path / "x", workers=0)
    with pytest.raises(RuntimeError, match=f"{tmp_path}/none"):
        rows(files, seek_index=tmp_path / "none")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    with pytest.raises(ValueError, match="neither XDG_CACHE_HOME nor HOME is set"):
        stoker.index(files)
    assert os.listdir(tmp_path) == []


def test_a_full_disk(pictures, tmp_path):
    (tmp_path / "x.seek").write_bytes(b"what was there")
    done = run_python(
        f"""
        import resource
        import stoker
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
        try:
            stoker.index(stoker.folder({str(pictures)!r}), {str(tmp_path / "x.seek")!r})
        except RuntimeError as error:
            print(error)
        """
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "x.seek") in done.stdout
    assert "File too large" in done.stdout
    assert os.listdir(tmp_path) == ["x.seek"], "half a file"
    assert (tmp_path / "x.seek").read_bytes() == b"what was there"


def test_ctrl_c_writes_nothing(tmp_path):
    folder = tmp_path / "data" / "cat"
    folder.mkdir(parents=True)
    data = jpeg(picture(0, 640, 480))
    for i in range(3000):
        (folder / f"{i:04}.jpg").write_bytes(data)
    done = run_python(
        f"""
        import os, signal, threading, time
        import stoker
        source = stoker.folder({str(tmp_path / "data")!r})
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            stoker.index(source, {str(tmp_path / "x.seek")!r}, workers=1)
        except KeyboardInterrupt:
            end = time.monotonic() + 30  # the timer's thread and joined ones may end a moment later
            while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < end:
                time.sleep(0.001)
            print(len(os.listdir("/proc/self/task")))
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n", "threads are left"
    assert os.listdir(tmp_path) == ["data"]


def test_one_core_gives_one_thread():
    """The count of an index's threads and of a feed's workers, where nobody says how many."""
    counted = []

    def count():
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # this thread's alone
        counted.append(_core.usable_cores())

    thread = threading.Thread(target=count)
    thread.start()
    thread.join()
    assert counted == [1]
