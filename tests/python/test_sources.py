"""Sources alone: what each function opens, its errors, samples one by one, pickles, and that the
same pictures make the same batches wherever they are."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from pathlib import Path

import numpy as np
import pytest
from conftest import jpeg, picture, run_python
from shard_files import KINDS, NAMES, entries, make, parquet_file, tar_file

import stoker


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch) -> Path:
    """An empty cache directory."""
    path = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(path))
    return path


def batches(source: stoker.Source) -> Iterator[tuple[bytes, list[int]]]:
    crop = stoker.random_resized_crop()
    with stoker.Loader(source, batch_size=8, size=32, augment=crop, seed=7, workers=2) as loader:
        for batch in loader:
            yield np.asarray(batch.images).tobytes(), np.asarray(batch.labels).tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_those_of_the_folder(kind, pictures, tmp_path):
    source = make(kind, pictures, tmp_path)
    assert list(batches(source)) == list(batches(stoker.folder(pictures)))
    assert source.classes == (
        NAMES if kind not in ("tfrecord", "mds", "parquet") else ["0", "1", "2"]
    )
    assert source.notes == []
    assert len({source.name(i) for i in range(len(source))}) == len(source) == 37


def test_compressed_pages_are_a_warning(pictures, tmp_path):
    """Their images are the same; to read one, others are unpacked, too."""
    samples = [each[1:] for each in entries(pictures)]
    parquet_file(tmp_path / "a.parquet", samples, "snappy")
    with pytest.warns(UserWarning, match="37 images lie in compressed pages"):
        source = stoker.parquet(tmp_path / "a.parquet")
    assert [(sample.data, sample.label) for sample in source] == samples


@pytest.mark.parametrize("kind", ["folder", *KINDS])
def test_samples_one_by_one(kind, pictures, tmp_path):
    source = make(kind, pictures, tmp_path)
    expected = entries(pictures)
    assert [(sample.data, sample.label) for sample in source] == [each[1:] for each in expected]
    for i in (0, 5, -1, -37):
        sample = source[i]
        assert isinstance(sample, stoker.Sample)
        assert sample.name == source.name(i % 37)
        assert sample.data == expected[i][1]
        np.testing.assert_array_equal(sample.image(), stoker.decode(expected[i][1]))
    assert repr(source[3]) == f"stoker.Sample('{source.name(3)}', label {source.label(3)})"
    for i in (37, -38):
        with pytest.raises(IndexError, match=rf"sample {i} of 37 samples \(0 to 36\)"):
            source[i]
    with pytest.raises(TypeError):
        source["1"]


def cifar_folder(folder: Path) -> np.ndarray:
    """Returns the pixels of its three samples, as (3, 32, 32)."""
    folder.mkdir()
    planes = np.random.default_rng(4).integers(0, 256, (3, 3, 32, 32), np.uint8)
    records = [bytes([label]) + planes[label].tobytes() for label in range(3)]
    (folder / "test_batch.bin").write_bytes(b"".join(records))
    return planes


def test_samples_of_raw_sources(tmp_path, source):
    planes = cifar_folder(tmp_path / "cifar")
    cifar = stoker.cifar(tmp_path / "cifar", "test")
    for sample, pixels in zip(cifar, planes):
        assert sample.data is None
        np.testing.assert_array_equal(sample.image(), pixels.transpose(1, 2, 0))
    with stoker.Loader(source, batch_size=100, size=16, shuffle=False) as loader:
        rows = np.asarray(next(iter(loader)).images)
        np.testing.assert_array_equal(rows, [np.asarray(sample.image()) for sample in source])
    assert source[99].data is None


def test_bad_samples(tmp_path):
    (tmp_path / "cut.jpg").write_bytes(jpeg(picture(1))[:300])
    source = stoker.files(["gone.jpg", "cut.jpg"], [0, 0], root=tmp_path)
    for read in (lambda sample: sample.data, lambda sample: sample.image()):
        with pytest.raises(OSError, match="^gone.jpg: open: No such file or directory$"):
            read(source[0])
    assert len(source[1].data) == 300
    with pytest.raises(stoker.DecodeError, match="^cut.jpg: "):
        source[1].image()


@pytest.mark.parametrize("kind", ["folder", "tar", "parquet", "memory"])
def test_threads_read_samples_at_once(kind, pictures, tmp_path):
    source = make(kind, pictures, tmp_path)
    expected = [sample.data for sample in source]
    pixels = [np.asarray(sample.image()) for sample in source]

    def read(turn: int) -> bool:
        i = turn * 7 % 37
        sample = source[i]
        return sample.data == expected[i] and np.array_equal(sample.image(), pixels[i])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(400)))


def every_source(pictures: Path, at: Path) -> dict[str, Callable[[], stoker.Source]]:
    cifar_folder(at / "cifar")
    made = {kind: lambda kind=kind: make(kind, pictures, at) for kind in ["folder", *KINDS]}
    return {
        **made,
        "cifar": lambda: stoker.cifar(at / "cifar", "test"),
        "synthetic": lambda: stoker.synthetic(10, size=(8, 6), classes=3, seed=5),
        "open": lambda: stoker.open(pictures, label_fn=lambda name, label: label + 1),
        "relabel": lambda: stoker.relabel(stoker.synthetic(3), [2, 1, 0], ["a", "b", "c"]),
        "subset": lambda: stoker.subset(stoker.folder(pictures), [5, 3, 36]),
        "split": lambda: stoker.random_split(stoker.synthetic(10), [0.5, 0.5], seed=4)[1],
        "with_labels": lambda: stoker.with_labels(stoker.folder(pictures), ["class_2"]),
        "concat": lambda: stoker.concat([stoker.folder(pictures), stoker.folder(pictures)]),
        "relative": lambda: stoker.open(os.path.relpath(pictures)),
        "pattern": lambda: stoker.tar(os.path.relpath(at / "shard-*.tar")),
        "several": lambda: stoker.open([at / "shard-1.tar", at / "shard-0.tar"]),
    }


SPAWNED = """
import hashlib, pickle, sys, warnings
import numpy as np
warnings.simplefilter("error")
for line in sys.stdin:
    name, data = line.split()
    source = pickle.loads(bytes.fromhex(data))
    pixels = b"".join(each.data or np.asarray(each.image()).tobytes() for each in source)
    names = [source.name(i) for i in range(len(source))]
    print(repr((name, source.fingerprint, source.labels(), source.classes, names,
                hashlib.sha256(pixels).hexdigest())))
"""


def test_pickles_in_another_process_and_folder(pictures, tmp_path):
    lines, expected = [], []
    for name, opened in every_source(pictures, tmp_path).items():
        try:
            source = opened()
        except pytest.skip.Exception:
            continue  # without pyarrow or datasets
        assert copy(source) is source
        assert deepcopy([source])[0] is source
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(source))))
        assert again.fingerprint == source.fingerprint
        lines.append(f"{name} {pickle.dumps(source).hex()}\n")
        pixels = b"".join(each.data or np.asarray(each.image()).tobytes() for each in source)
        names = [source.name(i) for i in range(len(source))]
        digest = hashlib.sha256(pixels).hexdigest()
        facts = (name, source.fingerprint, source.labels(), source.classes, names, digest)
        expected.append(repr(facts))
    (tmp_path / "elsewhere").mkdir()
    done = run_python(SPAWNED, input="".join(lines), cwd=tmp_path / "elsewhere")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected
    assert len(expected) >= 17


def test_pickles_of_what_has_changed(pictures, tmp_path):
    root = tmp_path / "data"
    shutil.copytree(pictures, root)
    pickled = pickle.dumps(stoker.folder(root))
    (root / "class_0" / "new.jpg").write_bytes(jpeg(picture(99)))
    with pytest.raises(RuntimeError, match=f"at {root} have changed since the source was pickled"):
        pickle.loads(pickled)
    shutil.rmtree(root)
    with pytest.raises(RuntimeError, match=str(root)):
        pickle.loads(pickled)


def test_a_folder_whose_name_looks_like_a_pattern(pictures, tmp_path, monkeypatch):
    (tmp_path / "data[12]").mkdir()
    make("tar", pictures, tmp_path)
    for i in range(2):
        shutil.copy(tmp_path / f"shard-{i}.tar", tmp_path / "data[12]")
    monkeypatch.chdir(tmp_path / "data[12]")
    sources = [stoker.tar("shard-0.tar"), stoker.tar("shard-*.tar")]
    pickled = pickle.dumps(sources)
    monkeypatch.chdir("/")
    again = pickle.loads(pickled)
    assert [each.fingerprint for each in again] == [each.fingerprint for each in sources]


def test_what_cannot_be_pickled():
    with pytest.raises(TypeError, match="cannot pickle this source: it was not made by a function"):
        pickle.dumps(stoker._core.synthetic(1, 8, 8, 1, 0))


@pytest.mark.parametrize("opener", [stoker.tar, stoker.csv, stoker.parquet, stoker.open])
def test_paths_that_are_missing(opener, tmp_path):
    ending = {stoker.csv: "csv", stoker.parquet: "parquet"}.get(opener, "tar")
    there = tmp_path / f"there.{ending}"
    there.write_bytes(b"")
    for path, named in (
        (f"gone.{ending}", None),
        (f"gone-*.{ending}", None),
        (f"gone-{{0..3}}.{ending}", f"gone-0.{ending}"),
        ([there, tmp_path / "gone.tar"], "gone.tar"),
    ):
        wanted = path if isinstance(path, list) else tmp_path / path
        with pytest.raises(FileNotFoundError) as caught:
            opener(wanted)
        assert caught.value.filename == str(tmp_path / (named or path))
    with pytest.raises(FileNotFoundError):
        stoker.files(["a.jpg"], [0], root=tmp_path / "gone")
    with pytest.raises(NotADirectoryError):
        stoker.files(["a.jpg"], [0], root=there)


def test_paths_that_hold_something_else(pictures, tmp_path):
    make("tar", pictures, tmp_path)
    shard = tmp_path / "shard-0.tar"
    with pytest.raises(
        ValueError, match=r"holds tar shards \(as shard-0.tar\), no Parquet files: o"
    ):
        stoker.parquet(shard)
    for paths in (tmp_path, tmp_path / "*.tar", [shard]):
        with pytest.raises(
            ValueError, match=r"tar shards .*, no MDS shards: open it by stoker.tar"
        ):
            stoker.mds(paths)
    with pytest.raises(
        ValueError, match="no tar shards: it has 3 entries, as class_0, class_1, cl"
    ):
        stoker.tar(pictures)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no TFRecord files: it is empty"):
        stoker.tfrecord(tmp_path / "empty")
    cifar_folder(tmp_path / "cifar")
    with pytest.raises(ValueError, match="it holds CIFAR's binary files: open it by stoker.cifar"):
        stoker.csv(tmp_path / "cifar", split="all")
    with pytest.raises(ValueError, match="conftest.py: its name says no format"):
        stoker.tar(Path(__file__).parent / "conftest.py")
    (tmp_path / "mixed").mkdir()
    shutil.copy(shard, tmp_path / "mixed")
    (tmp_path / "mixed" / "b.parquet").write_bytes(b"")
    for opener in (stoker.tar, stoker.open):
        with pytest.raises(RuntimeError, match="mixed: it has shards of several formats"):
            opener(tmp_path / "mixed")
    (tmp_path / "b.mds").write_bytes(b"")
    with pytest.raises(ValueError, match="b.mds is mds, and .*shard-0.tar is tar"):
        stoker.open([shard, tmp_path / "b.mds"])
    with pytest.raises(ValueError, match="paths is empty"):
        stoker.tar([])
    with pytest.raises(ValueError, match="split is 'train', and files that are given one by one"):
        stoker.tar([shard], split="train")
    with pytest.raises(TypeError):
        stoker.tar(7)
    with pytest.raises(TypeError, match="image_from is 1"):
        stoker.tar(shard, image_from=1)
    with pytest.raises(ValueError, match='label_from is "cls", and .* is an image folder'):
        stoker.open(pictures, label_from="cls")


def test_parts_of_shards(pictures, tmp_path):
    for part, count in (("train", 3), ("val", 2)):
        members = [(path, content) for path, content, _ in entries(pictures)[:count]]
        tar_file(tmp_path / f"{part}-0.tar", members)
    for opener in (stoker.tar, stoker.open):
        for path in (tmp_path, tmp_path / "*.tar", f"{tmp_path}/{{train,val}}-0.tar"):
            with pytest.raises(ValueError, match="training and test parts: say split='train'"):
                opener(path)
            counts = [
                len(opener(path, split=split))
                for split in ("train", "test", "val", "validation", "all")
            ]
            assert counts == [3, 2, 2, 2, 5]
        assert len(opener(tmp_path / "train-0.tar")) == 3
    (tmp_path / "parts" / "train").mkdir(parents=True)
    (tmp_path / "parts" / "test").mkdir()
    for part in ("train", "test"):
        shutil.copy(
            tmp_path / f"{'train' if part == 'train' else 'val'}-0.tar", tmp_path / "parts" / part
        )
    with pytest.raises(ValueError, match="holds train, test: say split="):
        stoker.tar(tmp_path / "parts")
    assert len(stoker.tar(tmp_path / "parts", split="test")) == 2


def test_fields_and_label_fn(pictures, tmp_path):
    data = jpeg(picture(1))
    members = [("a.png", b"x"), ("a.jpg", data), ("a.json", b'{"kind": "cat"}'), ("a.txt", b"dog")]
    tar_file(tmp_path / "a.tar", members)
    options = {"image_from": "jpg", "label_from": "json:kind"}
    for source in (
        stoker.tar(tmp_path / "a.tar", **options),
        stoker.open(tmp_path / "a.tar", **options),
    ):
        assert (source.classes, source[0].data) == (["cat"], data)
    assert stoker.tar(tmp_path / "a.tar", image_from="jpg", label_from="txt").classes == ["dog"]
    unlabelled = stoker.tar(tmp_path / "a.tar", image_from="jpg", label_from="none")
    assert (unlabelled.labels(), unlabelled.classes) == ([0], [])
    relabelled = stoker.tar(
        tmp_path / "a.tar", **options, label_fn=lambda name, label: len(name) + label
    )
    assert relabelled.labels() == [len("a.tar/a.jpg")]
    (tmp_path / "list.tsv").write_text("number\tfile\n4\ta.jpg\n")
    assert stoker.csv(tmp_path / "list.tsv", label_from="number").labels() == [4]
    (tmp_path / "list.jsonl").write_text('{"path": "a.jpg", "label": "cat"}\n')
    assert stoker.csv(tmp_path / "list.jsonl").classes == ["cat"]


def test_damaged_shards_are_named_with_the_place(pictures, tmp_path):
    make("tar", pictures, tmp_path)
    shard = tmp_path / "shard-0.tar"
    data = bytearray(shard.read_bytes())
    data[3] ^= 1
    shard.write_bytes(data)
    with pytest.raises(RuntimeError, match=f"{shard}: at byte 0: "):
        stoker.tar(shard)


def test_what_shards_leave_out_is_a_warning(tmp_path):
    tar_file(tmp_path / "a.tar", [("cat/1.jpg", jpeg(picture(1))), ("cat/2.txt", b"x")])
    with pytest.warns(UserWarning, match=r"a.tar: 1 entry is left out") as found:
        source = stoker.tar(tmp_path / "a.tar")
    assert len(found) == len(source.notes) == 1
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(source)).notes == source.notes


def test_ctrl_c_while_an_index_is_made(tmp_path, cache):
    """It ends at once, and leaves nothing in the cache directory and in the temporary folder."""
    (tmp_path / "list.csv").write_bytes(b"a.jpg,1\n" * 6_000_000)
    os.utime(tmp_path / "list.csv", (1e9, 1e9))
    (tmp_path / "tmp").mkdir()
    done = run_python(
        f"""
        import os, signal, stoker, threading, time
        os.environ["TMPDIR"] = {str(tmp_path / "tmp")!r}
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            stoker.csv({str(tmp_path / "list.csv")!r})
            time.sleep(5)
        except KeyboardInterrupt:
            print("interrupted")
        end = time.monotonic() + 30  # the timer's thread and joined ones may end a moment later
        while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < end:
            time.sleep(0.001)
        print(len(os.listdir("/proc/self/task")))
        """
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n1\n"), done.stderr
    left = [path for path in (*cache.rglob("*"), *(tmp_path / "tmp").iterdir()) if path.is_file()]
    assert left == []


def test_files(pictures, tmp_path, monkeypatch):
    paths = [path for path, *_ in entries(pictures)[:3]]
    source = stoker.files([paths[2], Path(paths[0])], ["b", "a"], root=pictures)
    assert (source.labels(), source.classes, source.name(1)) == ([1, 0], ["a", "b"], paths[0])
    assert source.root == str(pictures)
    monkeypatch.chdir(pictures)
    here = stoker.files(paths, np.array([4, 0, 2]))
    monkeypatch.chdir(tmp_path)
    assert here[0].data == (pictures / paths[0]).read_bytes()
    assert (here.labels(), here.classes) == ([4, 0, 2], ["0", "1", "2", "3", "4"])
    latin = os.fsencode(tmp_path) + b"/\xe9.jpg"
    Path(os.fsdecode(latin)).write_bytes(b"x")
    odd = stoker.files([os.fsdecode(latin)], [0])
    assert odd[0].data == pickle.loads(pickle.dumps(odd))[0].data == b"x"
    assert odd.name(0).endswith("/\\xe9.jpg")


@pytest.mark.parametrize(
    ("labels", "options", "error", "message"),
    [
        ([], {}, ValueError, "no samples are listed"),
        ([0], {}, ValueError, "2 paths for 1 labels"),
        ([0, -1], {}, ValueError, "sample 1 has label -1, must be 0 or more"),
        ([0, 2], {"classes": ["a", "b"]}, ValueError, "sample 1 has label 2, must be .* names, 2"),
        ([0, 1 << 24], {}, ValueError, "label of sample 1 is 16777216, must be at most 16777215"),
        ([0, 1 << 31], {}, ValueError, "label of sample 1 is 2147483648, must fit in 32 bits"),
        ([0, 0.9], {}, TypeError, "label of sample 1 is 0.9, must be an int"),
        ([0, "a"], {}, TypeError, "label of sample 1 is 'a', must be an int"),
        (["a", 0], {}, TypeError, "label of sample 1 is 0, must be a text"),
        (["a", "b"], {"classes": ["a", "b"]}, ValueError, "classes is given, and labels are texts"),
    ],
)
def test_labels_that_are_refused(labels, options, error, message):
    paths = ["a.jpg", "b.jpg"] if labels else []
    with pytest.raises(error, match=message):
        stoker.files(paths, labels, **options)


def test_memory(pictures):
    data = entries(pictures)[0][1]
    several = b"ab" + data + data
    changing = bytearray(data)
    images = [data, memoryview(several)[2 : 2 + len(data)], changing, np.frombuffer(data, np.uint8)]
    source = stoker.memory(images, [0, 1, 2, 3], classes=["a", "b", "c", "d"])
    images[1].release()
    del several
    changing[:] = b"0" * 10
    assert all(sample.data == data for sample in source)
    assert [sample.name for sample in source] == ["#0", "#1", "#2", "#3"]
    assert pickle.loads(pickle.dumps(source))[1].data == data
    strided = memoryview(bytes(2 * i % 256 for i in range(100)))[::2]
    assert stoker.memory([strided, b""], [0, 0])[0].data == bytes(strided)
    with pytest.raises(stoker.DecodeError, match="^#0: "):
        stoker.memory([b""], [0])[0].image()
    with pytest.raises(TypeError, match="image 1 is of <class 'str'>, must be bytes, or have the"):
        stoker.memory([data, "x.jpg"], [0, 0])
    with pytest.raises(TypeError, match="images is of <class 'bytes'>, must be a sequence"):
        stoker.memory(data, [0])
    with pytest.raises(ValueError, match="1 images for 2 labels"):
        stoker.memory([data], [0, 0])
    with pytest.raises(TypeError):
        stoker.files("a.jpg", [0])


def test_memory_is_kept_as_long_as_it_is_read(pictures):
    """Bytes are kept in place, not copied, until the last batch's feed has ended."""
    data = bytes(bytearray(entries(pictures)[0][1]))
    before = sys.getrefcount(data)
    source = stoker.memory([data] * 64, [0] * 64)
    assert sys.getrefcount(data) == before + 64
    loader = stoker.Loader(source, batch_size=16, size=32)
    del source
    batch = next(iter(loader))
    assert sys.getrefcount(data) == before + 64
    del loader, batch
    assert sys.getrefcount(data) == before


@pytest.mark.parametrize(
    "end",
    [
        "pass",
        "del source",
        "_thread.start_new_thread(read, ()); time.sleep(0.05)",
        "batch = np.asarray(next(iter(loader)).images); del loader, source",
    ],
)
def test_the_interpreter_ends_with_memory_in_use(end):
    done = run_python(
        f"""
        import _thread, io, time
        import numpy as np, stoker
        from PIL import Image
        def read():
            try:
                list(loader)
            except RuntimeError as error:  # the thread may hear of the end before it is ended
                if str(error) != "the Loader was closed":
                    raise
        out = io.BytesIO()
        Image.new("RGB", (64, 64)).save(out, "JPEG")
        source = stoker.memory([bytes(out.getvalue()) for _ in range(1000)], [0] * 1000)
        loader = stoker.Loader(source, batch_size=16, size=64)
        {end}
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_left_out_files_are_named(pictures, tmp_path):
    root = tmp_path / "data"
    shutil.copytree(pictures, root)
    (root / "class_0" / "b.gif").write_bytes(b"GIF89a")
    (root / "class_1" / "a.gif").write_bytes(b"GIF89a")
    (root / "class_2" / "again").symlink_to(root / "class_1")  # this lists its .gif twice
    with pytest.warns(UserWarning, match=r"3 \.gif files are left out") as found:
        source = stoker.folder(root)
    assert len(found) == len(source.notes) == 2
    left_out = "3 .gif files are left out (not read from image folders, but from lists and shards)"
    assert source.notes[0] == f"{left_out}, as class_0/b.gif"
    assert "files have two labels, as class_1/" in source.notes[1]
    assert stoker.relabel(source, [0] * len(source)).notes == source.notes


def test_a_clean_folder_has_no_notes(pictures):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stoker.folder(pictures).notes == []


def test_they_say_what_they_are(pictures, source):
    folder = stoker.folder(pictures)
    facts = "37 samples, 3 classes (class_0, class_1, class_2)"
    assert repr(folder) == f"<stoker.Source of {facts}, at {pictures}>"
    assert "37 samples</td>" in folder._repr_html_() and str(pictures) in folder._repr_html_()
    aged = stoker.with_targets(source, {"age": [1.0] * 100})
    assert "16 x 16 pixels" in repr(aged) and repr(aged).endswith("targets age>")
    named = stoker.memory([b"1", b"2"], [0, 1], classes=["<b>", "&"])
    assert "2 classes (&lt;b&gt;, &amp;)" in named._repr_html_()
    assert "10 classes (class0, class1, class2, class3, class4, ...)" in repr(source)
    loader = stoker.Loader(source, batch_size=8)
    assert "100 samples" in loader._repr_html_() and "batches of 8" in loader._repr_html_()
