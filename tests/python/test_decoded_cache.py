"""DecodedCache: the same batches, several Loaders, several processes, and what is refused."""

from __future__ import annotations

import os
import pickle
import time

import numpy as np
import pytest
import stoker
from conftest import epochs_of, run_python
from item_sets import pixels, png

SAMPLES = 24
PLENTY = 64 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures of 60 x 48 pixels and more, written an hour ago."""
    path = tmp_path_factory.mktemp("pictures")
    hour_ago = time.time() - 3600
    for i in range(SAMPLES):
        file = path / f"class{i % 3}" / f"{i:03}.png"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(png(np.tile(pixels(i), (4, 3 + i % 4, 1))))
        os.utime(file, (hour_ago, hour_ago))
    return path


EVALUATION = stoker.resize_center_crop(30) | stoker.flip()


def batches(loader):
    return epochs_of(loader, 3)


def loader_of(source, cache=None, **more):
    arguments = {"size": 24, "augment": EVALUATION, "epochs": 3, "workers": 0, **more}
    return stoker.Loader(source, batch_size=8, seed=1, cache=cache, **arguments)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_the_same_and_pictures_are_decoded_once(folder, tmp_path, on_disk, workers):
    source = stoker.folder(folder)
    plain = loader_of(source, workers=workers)
    expected = batches(plain)
    assert "cache" not in plain.stats()
    assert plain.memory_plan()["cache_bytes"] == 0
    cache = stoker.DecodedCache(PLENTY, tmp_path / "kept" if on_disk else None)
    first = loader_of(source, cache, workers=workers)
    assert batches(first) == expected
    stats = first.stats()["cache"]
    assert stats["hits"] + stats["misses"] == 3 * SAMPLES
    assert stats["places"] == stats["samples"] == SAMPLES
    # Two workers may decode a picture at the same time, for two epochs.
    assert stats["kept"] == SAMPLES if workers == 0 else stats["kept"] >= SAMPLES
    assert stats["kept_bytes"] == stats["kept"] * stats["place_bytes"]
    assert stats["problem"] == ""
    assert (stats["folder"] != "") == on_disk == (first.memory_plan()["cache_bytes"] == 0)
    second = loader_of(source, cache, workers=workers)
    assert batches(second) == expected
    assert second.stats()["cache"]["hits"] == 3 * SAMPLES


def test_a_loader_that_moves_keeps_its_cache(folder):
    with loader_of(stoker.folder(folder), stoker.DecodedCache(PLENTY), epochs=None) as loader:
        first = epochs_of(loader)
        loader.set_epoch(0)
        assert epochs_of(loader) == first
        assert loader.stats()["cache"]["hits"] == SAMPLES


def test_another_process_finds_what_is_on_the_disk(folder, tmp_path):
    cache = stoker.DecodedCache(PLENTY, tmp_path / "kept")
    expected = batches(loader_of(stoker.folder(folder), cache))
    done = run_python(
        f"""
        import pickle, sys, stoker
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import test_decoded_cache as test
        cache = pickle.loads({pickle.dumps(cache)!r})
        loader = test.loader_of(stoker.folder({str(folder)!r}), cache)
        found = test.batches(loader)
        assert loader.stats()['cache']['found'] == test.SAMPLES
        assert loader.stats()['cache']['hits'] == 3 * test.SAMPLES
        sys.stdout.buffer.write(pickle.dumps(found))
        """,
        text=False,
    )
    assert done.returncode == 0, done.stderr
    assert pickle.loads(done.stdout) == expected


def test_what_never_comes_again_is_refused(folder):
    cache = stoker.DecodedCache(PLENTY)
    source = stoker.folder(folder)
    with pytest.raises(ValueError, match="^cache cannot keep decoded pictures: 'random_resized"):
        loader_of(source, cache, augment=stoker.random_resized_crop())
    with pytest.raises(ValueError, match="nothing says when sample"):
        loader_of(stoker.memory([png(pixels(0))], [0]), cache)
    with pytest.raises(ValueError, match="raw pixels"):
        loader_of(stoker.synthetic(8, size=24), cache, augment=None)
    with pytest.raises(TypeError, match=r"must be a stoker\.DecodedCache or None"):
        loader_of(source, "decoded")


def test_arguments_of_the_cache(tmp_path):
    for size in (0, -1, 1.5, True, "4G", None):
        with pytest.raises(ValueError, match="size is"):
            stoker.DecodedCache(size)
    with pytest.raises(ValueError, match="folder is empty"):
        stoker.DecodedCache(5, "")
    with pytest.raises(TypeError, match="folder is 7"):
        stoker.DecodedCache(5, 7)
    with pytest.raises(ValueError, match="no folder of this machine"):
        stoker.DecodedCache(5, "s3://bucket/kept")
    with pytest.raises(TypeError, match="in memory cannot be pickled"):
        pickle.dumps(stoker.DecodedCache(5))
    cache = stoker.DecodedCache(5, tmp_path)
    assert (cache.size, cache.folder) == (5, str(tmp_path))
    assert repr(cache) == f"<stoker.DecodedCache of 5 bytes in {tmp_path}>"


def test_a_folder_that_cannot_be_used(folder, tmp_path):
    (tmp_path / "file").write_text("x")
    cache = stoker.DecodedCache(PLENTY, tmp_path / "file")
    with pytest.raises(RuntimeError, match="cache: .*/file/"):
        loader_of(stoker.folder(folder), cache)
