"""stoker.dataset(): what items may be, on threads and in worker processes."""

from __future__ import annotations

import copy
import json
import pickle
import threading

import numpy as np
import pytest
from PIL import Image

import stoker
from conftest import contents
from item_sets import (
    Files,
    Items,
    Listed,
    Paths,
    Pictures,
    Raising,
    Tensors,
    Unpicklable,
    pixels,
    png,
)

both = pytest.mark.parametrize("processes", [True, False], ids=["processes", "threads"])
OPTIONS = {"batch_size": 8, "size": 32, "seed": 5, "augment": stoker.random_resized_crop()}


def epoch(source, **options):
    """Returns what the batches of an epoch hold."""
    with stoker.Loader(source, **{**OPTIONS, **options}) as loader:
        return [contents(batch)[-4:] for batch in loader]


def image_of(item, processes=False):
    return np.asarray(stoker.dataset(Listed([item]), processes=processes)[0].image())


@both
def test_bytes_paths_and_arrays_give_the_same_batches(processes, tmp_path):
    expected = epoch(stoker.memory([png(pixels(i)) for i in range(30)], [i % 7 for i in range(30)]))
    for items in (Files(), Paths(tmp_path), Items(), Pictures(), Tensors()):
        source = stoker.dataset(items, processes=processes)
        assert epoch(source) == expected, type(items)
        # next() reads without any other thread.
        assert epoch(source, workers=0) == expected, type(items)
        assert epoch(source, io_threads=0, workers=1) == expected, type(items)
        assert [source.label(i) for i in range(30)] == [i % 7 for i in range(30)]


@both
def test_one_sample(processes):
    source = stoker.dataset(Files(), processes=processes)
    assert len(source) == 30
    assert (source.root, source.classes, source.raw_size, source.notes) == ("", [], None, [])
    assert repr(source[17]) == "stoker.Sample('dataset/17', label unknown)"
    assert source[17].label == 3
    assert repr(source[17]) == "stoker.Sample('dataset/17', label 3)"
    assert source[-13].data == png(pixels(17))
    assert (np.asarray(source[17].image()) == pixels(17)).all()
    assert source.label(18) == 4


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (pixels(1), pixels(1)),
        (pixels(1)[:, :, 0], np.repeat(pixels(1)[:, :, :1], 3, axis=2)),
        (pixels(1)[::-1, ::2], pixels(1)[::-1, ::2]),
        (np.asfortranarray(pixels(1)), pixels(1)),
        (Image.fromarray(pixels(1)[:, :, 0]), np.repeat(pixels(1)[:, :, :1], 3, axis=2)),
        (Image.fromarray(np.dstack([pixels(1), pixels(2)[:, :, 0]])), pixels(1)),
        (bytearray(png(pixels(1))), pixels(1)),
        (memoryview(png(pixels(1))), pixels(1)),
        (np.frombuffer(png(pixels(1)), np.uint8), pixels(1)),
        ([pixels(1)], pixels(1)),
    ],
)
def test_forms_of_images(item, expected):
    assert (image_of(item) == expected).all()


def test_a_palette_is_no_array_of_gray():
    picture = Image.fromarray(pixels(1)).quantize(16)
    assert (image_of(picture) == np.asarray(picture.convert("RGB"))).all()


@both
def test_large_items(processes):
    large = np.random.default_rng(1).integers(0, 256, (3000, 4001, 3), np.uint8)
    assert (image_of(large, processes) == large).all()


@both
def test_forms_of_labels(processes):
    data = pixels(1)
    items = [(data, 3), [data, np.int64(4)], (data, np.array(5)), (data, True), (data, None), data]
    source = stoker.dataset(Listed(items), processes=processes)
    assert [source[i].label for i in range(6)] == [3, 4, 5, 1, 0, 0]
    [batch] = stoker.Loader(source, batch_size=6, size=8, shuffle=False)
    assert np.asarray(batch.labels).tolist() == [3, 4, 5, 1, 0, 0]


BAD_ITEMS = [
    (7, "gives an object of type builtins.int, must be the bytes or the path of an image file"),
    ({"image": b""}, "gives an object of type builtins.dict, must be"),
    (None, "gives an object of type builtins.NoneType, must be"),
    ((), "gives 0 values, must be (image, label) or an image alone"),
    ((b"", 1, 2), "gives 3 values, must be (image, label) or an image alone"),
    (pixels(1).astype("f"), "gives an array of shape (40, 50, 3) and format 'f', must be of"),
    (pixels(1).transpose(2, 0, 1), "gives an array of shape (3, 40, 50) and format 'B', must be"),
    (pixels(1)[:, :, :1], "gives an array of shape (40, 50, 1) and"),
    (np.zeros((2, 3, 4, 3), np.uint8), "gives an array of shape (2, 3, 4, 3) and"),
    (np.zeros((0, 3, 3), np.uint8), "gives an array of shape (0, 3, 3), without pixels"),
    (np.uint8(4), "gives an array of shape () and"),
    ((pixels(1), 0.5), "gives the label 0.5 of type float, must be an int"),
    ((pixels(1), "cat"), "gives the label 'cat' of type str, must be an int"),
    ((pixels(1), [1, 2]), "gives the label [1, 2] of type list, must be an int"),
    ((pixels(1), -1), "gives the label -1, must be 0 to 16777215"),
    ((pixels(1), 1 << 40), "gives the label 1099511627776, must be 0 to 16777215"),
    ("", "gives the path b'', which cannot be one"),
    ("a\0b", "gives the path b'a\\x00b', which cannot be one"),
]


@both
def test_items_that_are_something_else(processes, tmp_path):
    """Each is a bad sample whose reason has the number of the item and what it is."""
    listed = Listed([item for item, _ in BAD_ITEMS] + [pixels(1)] * 3)
    source = stoker.dataset(listed, processes=processes)
    for i, (_, message) in enumerate(BAD_ITEMS):
        with pytest.raises(OSError) as caught:
            source[i].image()
        assert str(caught.value).startswith(f"dataset/{i}: Listed[{i}] {message}")
    quarantine = tmp_path / "bad.jsonl"
    options = {"max_bad": 100, "quarantine": quarantine, "shuffle": False}
    with stoker.Loader(source, batch_size=21, size=8, **options) as loader:
        [batch] = loader
    assert np.asarray(batch.weights).tolist() == [0] * 18 + [1] * 3
    lines = [json.loads(line) for line in quarantine.read_text().splitlines()]
    assert [line["path"] for line in lines] == [f"dataset/{i}" for i in range(18)]


@both
def test_files_that_are_missing_or_damaged(processes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.png").write_bytes(png(pixels(1)))
    items = ["none.png", "good.png", str(tmp_path), b"no image", b""]
    source = stoker.dataset(Listed(items), processes=processes)
    monkeypatch.chdir("/")
    assert (np.asarray(source[1].image()) == pixels(1)).all()
    with pytest.raises(OSError, match="^dataset/0: none.png: open: No such file"):
        source[0].image()
    with pytest.raises(OSError, match=f"^dataset/2: {tmp_path}: "):
        source[2].image()
    with pytest.raises(stoker.DecodeError, match="^dataset/3: not_an_image"):
        source[3].image()
    with pytest.raises(stoker.DecodeError, match="^dataset/4: empty"):
        source[4].image()


@both
def test_exceptions_are_bad_samples_with_their_place(processes, tmp_path):
    bad = {
        3: ValueError("the store\nis shut"),
        7: IndexError(7),
        11: SystemExit(2),
        12: RuntimeError("\udcff"),
    }
    source = stoker.dataset(Raising(bad), processes=processes)
    with pytest.raises(OSError) as caught:
        source[3].image()
    place = r" \(item_sets.py:\d+, in __getitem__\)$"
    assert caught.match("^dataset/3: ValueError: the store is shut" + place)
    quarantine = tmp_path / "bad.jsonl"
    assert epoch(source, max_bad=4, quarantine=quarantine) != epoch(stoker.dataset(Items()))
    lines = [json.loads(line) for line in quarantine.read_text().splitlines()]
    assert sorted(line["path"] for line in lines) == [f"dataset/{i}" for i in (11, 12, 3, 7)]
    assert {line["reason"] for line in lines} == {"unreadable"}
    for options in ({"on_bad": "fail"}, {"max_bad": 3}):
        with pytest.raises(stoker.FeedError, match="dataset/"):
            epoch(source, **options)


@both
def test_the_same_after_a_resumption(processes):
    """A state is good for either way to run the object, and in another process of the program."""
    source = stoker.dataset(Files(), processes=processes)
    expected = epoch(source)
    with stoker.Loader(source, **OPTIONS) as loader:
        for batch in loader:
            if batch.step == 1:
                state = loader.state_dict()
                break
    other = pickle.loads(pickle.dumps(stoker.dataset(Files(), processes=not processes)))
    with stoker.Loader(other, **OPTIONS) as loader:
        loader.load_state_dict(state)
        assert [contents(batch)[-4:] for batch in loader] == expected[2:]
    with stoker.Loader(stoker.dataset(Files(31)), **OPTIONS) as loader:
        with pytest.raises(ValueError, match="the state is of another configuration"):
            loader.load_state_dict(state)


def test_pickles_and_copies():
    labels = ["cat", "dog"] * 15
    source = stoker.dataset(Files(), workers=3, processes=False, labels=labels)
    for other in (pickle.loads(pickle.dumps(source)), copy.deepcopy(source), copy.copy(source)):
        assert other.fingerprint == source.fingerprint
        assert (other.labels(), other.classes) == ([0, 1] * 15, ["cat", "dog"])
        assert other[3].data == source[3].data
    threads = stoker.dataset(Unpicklable(), processes=False)
    assert (np.asarray(threads[1].image()) == pixels(1)).all()
    with pytest.raises(TypeError):
        pickle.dumps(threads)


def test_all_labels_from_the_start():
    """Those of the items are not looked at."""
    items = Listed([(pixels(i), "no number") for i in range(6)])
    source = stoker.dataset(items, labels=["b", "a", "b", "b", "a", "b"])
    assert (source.labels(), source.classes) == ([1, 0, 1, 1, 0, 1], ["a", "b"])
    assert len(stoker.with_labels(source, ["a"])) == 2
    order = stoker.class_balanced()
    with stoker.Loader(source, batch_size=6, size=8, order=order, seed=1) as loader:
        [batch] = loader
    assert sorted(np.asarray(batch.labels).tolist()) == [0, 0, 0, 1, 1, 1]
    named = stoker.dataset(items, labels=range(6), classes=list("abcdef"))
    assert (named.labels(), named.classes) == (list(range(6)), list("abcdef"))
    for labels, classes, message in (
        ([0] * 5, None, "5 labels for 6 samples"),
        ([0] * 7, None, "7 labels for 6 samples"),
        ([-1] * 6, None, "sample 0: the label is -1, must be 0 to"),
        (range(6), ["a"] * 5, "sample 5: the label is 5, must be 0 to 4"),
        (["a"] * 6, ["a"], "classes is given, and labels are texts"),
    ):
        with pytest.raises(ValueError, match=message):
            stoker.dataset(items, labels=labels, classes=classes)


def test_labels_that_are_not_known_yet():
    source = stoker.dataset(Items(), processes=False)
    view = stoker.concat([stoker.subset(source, range(10)), stoker.subset(source, [20])])
    for each in (source, view):
        for need in (
            each.labels,
            lambda each=each: stoker.with_labels(each, [1]),
            lambda each=each: stoker.Loader(each, batch_size=4, order=stoker.class_balanced()),
        ):
            with pytest.raises(ValueError, match=r"give all labels to stoker.dataset\(labels=\)"):
                need()
    # A function of the labels gets them: the samples are read for it.
    assert stoker.relabel(view, lambda _, label: label + 1).labels() == [*range(1, 8), 1, 2, 3, 7]
    assert view.labels() == [*range(7), 0, 1, 2, 6]
    assert stoker.relabel(source, [3] * 30).labels() == [3] * 30
    bad = stoker.dataset(Raising({2: OSError("gone")}), processes=False)
    with pytest.raises(OSError, match="dataset/2: OSError: gone"):
        bad.label(2)
    options = {"batch_size": 30, "size": 8, "shuffle": False, "max_bad": 1}
    with stoker.Loader(bad, metadata=lambda name, label: (name, label), **options) as loader:
        [batch] = loader
        assert batch.metadata == [(f"dataset/{i}", 0 if i == 2 else i % 7) for i in range(30)]


def test_a_label_beyond_the_classes_is_a_bad_sample():
    source = stoker.dataset(Items(), processes=False, classes=["a", "b"])
    assert (source[8].label, source.classes) == (1, ["a", "b"])
    with pytest.raises(OSError, match="dataset/9: the label is 2, must be 0 to 1"):
        source[9].image()


def test_views_ask_for_as_many_items_at_once():
    """The default of io_threads= is the workers of what a view shows, and at least 2."""
    here, most, lock = 0, 0, threading.Lock()
    enough = threading.Event()

    class Counting(Items):
        def data(self, index):
            nonlocal here, most
            with lock:
                here += 1
                most = max(most, here)
                if here == 5:
                    enough.set()
            enough.wait(60)
            with lock:
                here -= 1
            return super().data(index)

    source = stoker.dataset(Counting(64), processes=False, workers=5)
    parts = stoker.random_split(stoker.relabel(source, [0] * 64), [0.5, 0.5])
    with stoker.Loader(stoker.concat(parts), batch_size=16, size=8, workers=1) as loader:
        assert len(list(loader)) == 4
    assert enough.is_set()
    assert most == 5
    few = stoker.relabel(stoker.dataset(Items(3), processes=False, workers=1), [0] * 3)
    with stoker.Loader(stoker.concat([few, *parts])) as loader:
        assert loader._options.feed.io_threads == 5


def test_threads_are_known_to_python():
    """State that an object keeps for each thread is there at its next item."""
    made = []

    class Opened(Items):
        def __init__(self):
            super().__init__(200)
            self.local = threading.local()

        def data(self, index):
            if not hasattr(self.local, "pixels"):
                made.append(threading.get_ident())
                self.local.pixels = pixels(1)
            return self.local.pixels

    with stoker.Loader(
        stoker.dataset(Opened(), processes=False), batch_size=20, size=8, io_threads=3, workers=1
    ) as loader:
        for _ in range(3):
            for _ in loader:
                pass
        # The I/O threads, and the worker, which tries whether samples are in memory.
        assert len(made) <= 4


def test_objects_that_are_refused(tmp_path):
    class NoLength:
        def __getitem__(self, index):
            return b""

    class Broken(Items):
        def __len__(self):
            raise RuntimeError("the store is not there")

    class Negative(Items):
        def __len__(self):
            return -1

    for wrong in (NoLength(), iter([1]), 7, None, Items):
        with pytest.raises(TypeError, match="must have __len__ and __getitem__"):
            stoker.dataset(wrong)
    for path in ("x.jpg", b"x.jpg", tmp_path, stoker.synthetic(3)):
        with pytest.raises(TypeError, match=r"stoker.open\(\) is for paths"):
            stoker.dataset(path)
    with pytest.raises(ValueError, match="which has no samples"):
        stoker.dataset(Items(0))
    with pytest.raises(RuntimeError, match="the store is not there"):
        stoker.dataset(Broken())
    with pytest.raises(ValueError):
        stoker.dataset(Negative())
    for workers in (0, 1025, 1.5, "2"):
        with pytest.raises(
            ValueError, match="workers is .*, must be a whole number from 1 to 1024"
        ):
            stoker.dataset(Items(), workers=workers)
    with pytest.raises(TypeError, match="processes is 'no', must be True or False"):
        stoker.dataset(Items(), processes="no")
    with pytest.raises(TypeError, match=r"Unpicklable.* cannot be pickled for worker processes"):
        stoker.dataset(Unpicklable())


def test_items_of_too_many_bytes(monkeypatch):
    monkeypatch.setattr("stoker._dataset_worker.MOST_BYTES", 10)
    source = stoker.dataset(Listed([b"x" * 10, b"x" * 11]), processes=False)
    assert source[0].data == b"x" * 10
    with pytest.raises(OSError, match=r"Listed\[1\] gives 11 bytes, must be at most 10$"):
        source[1].image()


def test_pairs_in_a_list():
    pairs = [(pixels(i), i) for i in range(5)]
    source = stoker.dataset(pairs)
    assert [source[i].label for i in range(5)] == list(range(5))
