"""Parts of sources, and several sources as one."""

from __future__ import annotations

import gc
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import stoker


def names_of(source: stoker.Source) -> list[str]:
    return [source.name(i) for i in range(len(source))]


def data_of(source: stoker.Source) -> list[bytes]:
    return [sample.data for sample in source]


@pytest.mark.parametrize("form", [list, tuple, np.array, np.uint8, iter])
def test_a_subset_has_the_samples_of_a_list_in_its_order(pictures, form):
    whole = stoker.folder(pictures)
    ids = [30, 2, 17, 36, 0]
    part = stoker.subset(whole, form(ids))
    assert len(part) == 5
    assert names_of(part) == [whole.name(i) for i in ids]
    assert part.labels() == [whole.label(i) for i in ids]
    assert data_of(part) == [whole[i].data for i in ids]
    assert (part.classes, part.root, part.notes) == (whole.classes, whole.root, whole.notes)
    assert part.fingerprint not in (whole.fingerprint, stoker.subset(whole, ids[1:]).fingerprint)
    nested = stoker.subset(part, [4, 1])
    assert names_of(nested) == [whole.name(0), whole.name(2)]


@pytest.mark.parametrize("form", [list, np.array])
def test_a_subset_by_a_mask(source, form):
    part = stoker.subset(source, form([label in (2, 5) for label in source.labels()]))
    assert set(part.labels()) == {2, 5}
    assert names_of(part) == [source.name(i) for i in range(100) if source.label(i) in (2, 5)]


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([3, 100], IndexError, r"^ids\[1\] is 100: the source has the samples 0 to 99$"),
        ([-1], IndexError, r"^ids\[0\] is -1: the source has the samples 0 to 99$"),
        ([], ValueError, r"^no ids are listed of a source of 100 samples$"),
        ([False] * 100, ValueError, r"^no ids are listed of a source of 100 samples$"),
        ([4, 7, 4], ValueError, r"^id 4 at place 2 of 3: it is listed before$"),
        ([True] * 99, ValueError, r"^ids is a mask of 99 values, and there are 100 samples$"),
        ([1.5], TypeError, r"^ids\[0\] is 1.5, must be an int$"),
        ([2, True], TypeError, r"^ids\[1\] is True, and others are numbers$"),
        (np.zeros((2, 2), int), TypeError, r"^ids\[0\] is \[0, 0\], must be an int$"),
        (7, TypeError, "^ids is 7, must be a sequence$"),
        ("12", TypeError, "^ids is '12', must be a sequence$"),
    ],
)
def test_lists_that_are_no_subset(source, ids, error, message):
    with pytest.raises(error, match=message):
        stoker.subset(source, ids)


def test_with_labels(pictures):
    whole = stoker.folder(pictures)
    by_name = stoker.with_labels(whole, ["class_2", "class_0"])
    by_number = stoker.with_labels(whole, np.array([0, 2]))
    expected = [i for i in range(37) if whole.label(i) != 1]
    for part in (by_name, by_number):
        assert names_of(part) == [whole.name(i) for i in expected]
        assert set(part.labels()) == {0, 2} and part.classes == whole.classes
    far = stoker.relabel(whole, [label + 10 for label in whole.labels()])
    assert len(stoker.with_labels(far, [11])) == len(stoker.with_labels(whole, [1]))


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0, 3], ValueError, r"^labels\[1\] is 3, the source has 3 classes: 'class_0', 'class_1',"),
        (["cat"], ValueError, r"^labels\[0\] is 'cat', the source has 3 classes: 'class_0'"),
        ([-1], ValueError, r"^labels\[0\] is -1, the source has 3 classes"),
        ([], ValueError, "^no ids are listed of a source of 37 samples$"),
        ("class_0", TypeError, "^labels is 'class_0', must be a sequence$"),
        ([0.5], TypeError, r"^labels\[0\] is 0.5, must be an int or the name of a class$"),
        ([True], TypeError, r"^labels\[0\] is True, must be an int or the name of a class$"),
    ],
)
def test_labels_that_no_sample_has(pictures, labels, error, message):
    with pytest.raises(error, match=message):
        stoker.with_labels(stoker.folder(pictures), labels)


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        ([0.8, 0.2], [80, 20]),
        ([0.333, 0.333, 0.334], [34, 33, 33]),
        ([1 / 7] * 7, [15, 15, 14, 14, 14, 14, 14]),
        ([37, 1, 62], [37, 1, 62]),
        ([100], [100]),
        ([1], [100]),
        (np.array([60, 40]), [60, 40]),
    ],
)
def test_random_split(source, lengths, sizes):
    parts = stoker.random_split(source, lengths, seed=5)
    assert [len(part) for part in parts] == sizes
    assert sorted(sum(map(names_of, parts), [])) == sorted(names_of(source))
    again = stoker.random_split(source, lengths, seed=5)
    assert [part.fingerprint for part in again] == [part.fingerprint for part in parts]
    if len(sizes) > 1:
        other = stoker.random_split(source, lengths)
        assert [part.fingerprint for part in other] != [part.fingerprint for part in parts]


def test_lengths_are_kept_whatever_the_size():
    """Each length is passed on as a share of the samples."""
    for samples in (3, 7, 49, 98, 103, 1000):
        source = stoker.synthetic(samples, size=8)
        for first in range(1, samples, 1 + samples // 50):
            parts = stoker.random_split(source, [first, samples - first])
            assert len(parts[0]) == first


def test_sizes_are_those_of_pytorch(source):
    data = pytest.importorskip("torch.utils.data")
    if not hasattr(data, "random_split"):
        pytest.skip("this PyTorch has no random_split")
    for lengths in ([0.5, 0.3, 0.2], [0.11, 0.22, 0.67], [60, 40]):
        theirs = data.random_split(range(100), lengths)
        ours = stoker.random_split(source, lengths)
        assert [len(part) for part in ours] == [len(part) for part in theirs]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([60, 41], "^the sum of 2 lengths is 101, must be 100 samples, or 1$"),
        ([], "^the sum of 0 lengths is 0, must be 100 samples, or 1$"),
        ([0.5, 0.4], r"^lengths\[0\] is 0.5: must be whole numbers with the sum 100, or fractions"),
        ([-10, 110], r"^lengths\[0\] is -10.0: must be whole"),
        ([1.5, -0.5], "share is 1.5"),
        ([float("nan"), 1], r"^lengths\[0\] is nan: must be whole numbers"),
        ([100, 0], r"^lengths\[1\] is 0: that part gets none of 100 samples$"),
        ([0.999, 0.001, 0.0], r"^lengths\[1\] is 0.001: that part gets none of 100 samples$"),
    ],
)
def test_lengths_that_do_not_fit(source, lengths, message):
    with pytest.raises(ValueError, match=message):
        stoker.random_split(source, lengths)


def test_a_split_is_given_whole_seeds(source):
    for seed in (-1, 1 << 64, 0.5, None):
        with pytest.raises(ValueError, match=f"^seed is {seed}, must be a whole number from 0 to"):
            stoker.random_split(source, [0.5, 0.5], seed=seed)
    with pytest.raises(TypeError, match=r"^lengths\[1\] is 'a', must be a number$"):
        stoker.random_split(source, [0.5, "a"])


def test_concat(pictures, tmp_path):
    whole = stoker.folder(pictures)
    low, high = stoker.subset(whole, range(20)), stoker.subset(whole, range(20, 37))
    both = stoker.concat([high, low])
    order = [*range(20, 37), *range(20)]
    assert len(both) == 37
    assert both.labels() == [whole.label(i) for i in order]
    assert data_of(both) == [whole[i].data for i in order]
    assert both.classes == whole.classes
    assert both.root == "" and both.name(0) == f"0/{whole.name(20)}"  # one folder, twice
    alone = stoker.concat((whole,))
    assert (alone.root, names_of(alone)) == (whole.root, names_of(whole))


def test_concat_keeps_the_paths_of_folders_apart(pictures, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(pictures)
    both = stoker.concat([stoker.folder(tmp_path / "a"), stoker.folder(tmp_path / "b")])
    assert both.root == str(tmp_path) and len(both) == 74
    for i in (0, 36, 37, 73):
        assert (Path(both.root) / both.name(i)).read_bytes() == both[i].data
    assert names_of(both)[37].startswith("b/class_0/")


def test_sources_that_do_not_fit_together(pictures, source):
    whole = stoker.folder(pictures)
    with pytest.raises(ValueError, match="^no sources$"):
        stoker.concat([])
    with pytest.raises(ValueError, match="^source 1 has raw .*, not image files as source 0$"):
        stoker.concat([whole, source])
    other = stoker.relabel(whole, whole.labels(), ["class_0", "class_1", "cat"])
    with pytest.raises(ValueError, match="^source 2 has class 2 cat, not class_2 as source 0$"):
        stoker.concat([whole, whole, other])
    with pytest.raises(TypeError, match=r"^sources\[1\] is 3, must be a stoker.Source$"):
        stoker.concat([whole, 3])
    for function in (stoker.subset, stoker.with_labels, stoker.random_split):
        with pytest.raises(TypeError, match="^source is 'data', must be a stoker.Source$"):
            function("data", [1])


def test_views_keep_what_they_show(pictures):
    """And a pickle of them makes all of it again."""
    whole = stoker.folder(pictures)
    expected = [whole[i].data for i in (3, 1)] + [whole[9].data]
    view = stoker.concat(
        [stoker.subset(stoker.subset(whole, [5, 3, 1]), [1, 2]), stoker.subset(whole, [9])]
    )
    del whole
    gc.collect()
    assert data_of(view) == expected
    again = pickle.loads(pickle.dumps(view))
    assert data_of(again) == expected and names_of(again) == names_of(view)
    with stoker.Loader(view, batch_size=3, size=16, shuffle=False) as loader:
        del view
        gc.collect()
        assert next(iter(loader)).names == names_of(again)


def test_a_view_releases_what_it_shows(source):
    """C++ keeps it, whether or not there is a pickle's recipe."""
    before = sys.getrefcount(source)
    part = stoker._core.subset(source, [4, 2])
    both = stoker._core.concat([source, part])
    assert sys.getrefcount(source) == before + 2
    del part
    assert sys.getrefcount(source) == before + 2, "through the concatenation"
    del both
    assert sys.getrefcount(source) == before
    made = stoker.concat([stoker.subset(source, [1]), source])
    del made
    assert sys.getrefcount(source) == before
