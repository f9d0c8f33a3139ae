"""stoker.dataset() with targets besides the label."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import stoker
from item_sets import Files, Items, Listed, Paths, Pictures, pixels, png

both = pytest.mark.parametrize("processes", [True, False], ids=["processes", "threads"])
FORMS = {"soft": ("float32", (3,)), "age": ("int64", ())}


class WithTargets(Items):
    """Item i is that of `items` with targets: as arrays, or as lists and numbers."""

    def __init__(self, items, plain=False, has_label=True):
        super().__init__(len(items))
        self.items, self.plain, self.has_label = items, plain, has_label

    def __getitem__(self, index):
        image, label = self.items[index]
        targets = {"age": index * 1000, "soft": [index, 0.5, -1]}
        if not self.plain:
            targets = {name: np.array(values) for name, values in targets.items()}
        return (image, label, targets) if self.has_label else (image, targets)


def soft_of(ids):
    return np.array([[i, 0.5, -1] for i in ids], "float32")


@both
def test_batches_have_them(processes, tmp_path):
    for items in (Files(), Paths(tmp_path), Pictures()):
        for plain in (True, False):
            source = stoker.dataset(WithTargets(items, plain), processes=processes, targets=FORMS)
            assert source.targets == FORMS
            with stoker.Loader(source, batch_size=8, size=32, seed=1) as loader:
                held = list(loader)
            assert sum(batch.valid for batch in held) == 30
            for batch in held:
                ids = np.asarray(batch.ids)
                np.testing.assert_array_equal(batch.targets["soft"], soft_of(ids))
                np.testing.assert_array_equal(batch.targets["age"], ids * 1000)
                np.testing.assert_array_equal(batch.labels, ids % 7)


@both
def test_pixels_are_those_without(processes, tmp_path):
    for items in (Files(), Paths(tmp_path), Pictures()):
        source = stoker.dataset(WithTargets(items), processes=processes, targets=FORMS)
        without = stoker.dataset(items, processes=processes)
        for one, other in zip(
            stoker.Loader(source, batch_size=8, size=32, seed=1, shuffle=False),
            stoker.Loader(without, batch_size=8, size=32, seed=1, shuffle=False),
            strict=True,
        ):
            np.testing.assert_array_equal(one.images, other.images)
        assert source[3].data == without[3].data


@both
def test_they_may_have_more_bytes_than_the_file(processes, tmp_path):
    """One buffer serves many samples, of which some are larger than the next one."""
    sizes = [1 + 9 * (i % 3) for i in range(30)]
    for i, size in enumerate(sizes):
        (tmp_path / f"{i}.png").write_bytes(png(pixels(i)[:size, :size]))
    items = [(str(tmp_path / f"{i}.png"), np.full(5000, i, "float32")) for i in range(30)]
    source = stoker.dataset(
        Listed(items), processes=processes, targets={"wide": ("float32", (5000,))}
    )
    for workers in (0, 2):
        with stoker.Loader(source, batch_size=8, size=32, seed=1, workers=workers) as loader:
            for batch in loader:
                expected = np.repeat(np.asarray(batch.ids)[:, None], 5000, axis=1)
                np.testing.assert_array_equal(batch.targets["wide"], expected)
            assert loader.stats()["bad_samples"] == 0


@both
def test_one_sample_a_pickle_and_a_view(processes):
    source = stoker.dataset(WithTargets(Files()), processes=processes, targets=FORMS)
    again = pickle.loads(pickle.dumps(source))
    for each in (source, again, stoker.subset(source, [4, 17])):
        sample = each[-1]
        i = int(sample.name.split("/")[1])
        assert np.asarray(sample.targets["age"]) == i * 1000
        np.testing.assert_array_equal(sample.targets["soft"], soft_of([i])[0])
        assert sample.label == i % 7
    assert again.fingerprint == source.fingerprint
    plain = stoker.dataset(Files(), processes=processes)
    assert plain.fingerprint != source.fingerprint
    with pytest.raises(ValueError, match="source 1 has no targets, not the targets 'soft'"):
        stoker.concat([source, plain])
    both_kinds = stoker.with_targets(source, {"more": np.arange(30, dtype="int32")})
    assert np.asarray(both_kinds[5].targets["age"]) == 5000
    assert np.asarray(both_kinds[5].targets["more"]) == 5


@both
def test_a_single_one_may_stand_alone_and_labels_be_missing(processes):
    items = [(png(pixels(i)), np.float64(i) / 2) for i in range(5)]
    source = stoker.dataset(Listed(items), processes=processes, targets={"price": ("float32", ())})
    assert [float(np.asarray(sample.targets["price"])) for sample in source] == [0, 0.5, 1, 1.5, 2]
    assert source.label(2) == 0
    items = [(png(pixels(i)), [i, 1 - i]) for i in range(2)]
    source = stoker.dataset(
        Listed(items), processes=processes, labels=["b", "a"], targets={"bits": ("int32", (2,))}
    )
    assert source.labels() == [1, 0]
    np.testing.assert_array_equal(source[1].targets["bits"], [1, 0])
    without = stoker.dataset(
        WithTargets(Files(), has_label=False), processes=processes, targets=FORMS
    )
    assert np.asarray(without[9].targets["age"]) == 9000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"age": 1}, r"gives the targets 'age', must be 'soft', 'age'"),
        ({}, r"gives the targets none, must be 'soft', 'age'"),
        (3, r"gives targets of type int, must be a dict of 'soft', 'age'"),
        ({"age": 1, "soft": [1, 2]}, r"the target 'soft': it has the shape \(2,\), must be \(3,\)"),
        (
            {"age": [1], "soft": [1, 2, 3]},
            r"the target 'age': it has the shape \(1,\), must be \(\)",
        ),
        ({"age": 0.5, "soft": [1, 2, 3]}, r"'age': it has fractions \(float32\), must be int64"),
        ({"age": 1, "soft": ["x", 2, 3]}, r"the target 'soft': it must have float32, float64"),
        ({"age": None, "soft": [1, 2, 3]}, r"the target 'age': it must have float32, float64"),
    ],
)
@both
def test_what_does_not_fit_is_a_bad_sample(processes, given, message):
    items = [(png(pixels(0)), 0, {"age": 0, "soft": [1, 2, 3]}), (png(pixels(1)), 1, given)]
    source = stoker.dataset(Listed(items), processes=processes, targets=FORMS)
    with pytest.raises(OSError, match=rf"dataset/1: Listed\[1\] .*{message}"):
        source[1].data
    loader = stoker.Loader(source, batch_size=2, size=32, seed=1, shuffle=False, max_bad=1)
    (batch,) = loader
    assert batch.valid == 1
    # A row that was not read is zero, and does not count.
    np.testing.assert_array_equal(batch.targets["soft"], [[1, 2, 3], [0, 0, 0]])


def test_integers_that_do_not_fit():
    items = [(png(pixels(0)), [300, -1])]
    source = stoker.dataset(Listed(items), processes=False, targets={"a": ("uint8", (2,))})
    with pytest.raises(OSError, match="'a': it has numbers from -1 to 300, which are no uint8"):
        source[0].data


def test_items_must_have_as_many_parts_as_declared():
    source = stoker.dataset(Listed([png(pixels(0))]), processes=False, targets=FORMS)
    with pytest.raises(OSError, match=r"gives 1 values, must be \(image, targets\) or \(image, l"):
        source[0].data
    source = stoker.dataset(Listed([(png(pixels(0)), 1, {})]), processes=False)
    with pytest.raises(OSError, match=r"gives 3 values, must be \(image, label\) or .* targets="):
        source[0].data


@pytest.mark.parametrize(
    ("form", "error", "message"),
    [
        ("float32", TypeError, r"targets\['a'\] is 'float32', must be a type \(float32, int32, "),
        (("float64", ()), TypeError, r"targets\['a'\] is \('float64', \(\)\), must be a type"),
        (("float32", 3), TypeError, "and a shape, as"),
        (("float32", (0,)), ValueError, r"targets\['a'\] is 0, must be a whole number from 1 to"),
        (("float32", (1 << 20, 1 << 20)), ValueError, "256 MiB"),
    ],
)
def test_declarations(form, error, message):
    with pytest.raises(error, match=message):
        stoker.dataset(Files(), targets={"a": form})
    with pytest.raises(TypeError, match=r"targets\[3\] is"):
        stoker.dataset(Files(), targets={3: ("float32", ())})
