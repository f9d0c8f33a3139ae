"""Targets besides the labels: what with_targets() takes, and what arrives in batches."""

import array
import warnings

import numpy as np
import pytest
import stoker

SAMPLES = 21


@pytest.fixture
def pictures():
    return stoker.synthetic(SAMPLES, 16, classes=3)


def values(*shape, dtype="float32"):
    count = SAMPLES * int(np.prod(shape, initial=1))
    return np.arange(count).reshape(SAMPLES, *shape).astype(dtype)


def loader(source, **options):
    return stoker.Loader(
        source,
        batch_size=4,
        augment=stoker.augment.random_crop(padding=2, mode="reflect"),
        seed=1,
        **options,
    )


def test_every_row_has_those_of_its_sample(pictures):
    pairs, scores = values(2, 2), values(dtype="int64")
    source = stoker.with_targets(pictures, {"pairs": pairs, "scores": scores})
    assert source.targets == {"pairs": ("float32", (2, 2)), "scores": ("int64", ())}
    held = list(loader(source))
    assert len(held) == 6
    for batch in held:
        ids = np.asarray(batch.ids)
        assert list(batch.targets) == ["pairs", "scores"]
        assert batch.targets["pairs"].shape == (4, 2, 2)
        assert batch.targets["scores"].dtype == "int64"
        np.testing.assert_array_equal(np.asarray(batch.targets["pairs"]), pairs[ids])
        np.testing.assert_array_equal(np.asarray(batch.targets["scores"]), scores[ids])
    held[0].release()
    with pytest.raises(RuntimeError, match="was released"):
        held[0].targets


def test_a_source_without_has_none(pictures):
    assert pictures.targets == {}
    assert pictures[0].targets == {}
    assert next(iter(loader(pictures))).targets == {}


@pytest.mark.parametrize(
    ("given", "dtype", "kept"),
    [
        (values(3), "float32", values(3)),
        (values(3, dtype="float64") / 3, "float32", (values(3, dtype="float64") / 3).astype("f4")),
        (values(3, dtype="float16"), "float32", values(3)),
        (values(3, dtype=">f4"), "float32", values(3)),
        (values(dtype="int32"), "int32", values(dtype="int32")),
        (values(dtype=">i4"), "int32", values(dtype="int32")),
        (values(dtype="int64"), "int64", values(dtype="int64")),
        (values(dtype="int16"), "int64", values(dtype="int64")),
        (values(dtype="uint64"), "int64", values(dtype="int64")),
        (values(2, dtype="uint8"), "uint8", values(2, dtype="uint8")),
        (values(2) % 2 == 1, "uint8", (values(2) % 2).astype("uint8")),
        (values(4)[:, ::2], "float32", values(4)[:, ::2]),
        (np.broadcast_to(values(1), (SAMPLES, 2)), "float32", np.repeat(values(1), 2, axis=1)),
        (np.ma.array(values()), "float32", values()),
        (values(2).T.copy().T, "float32", values(2)),
        (list(range(SAMPLES)), "int64", values(dtype="int64")),
        ([[True, False]] * SAMPLES, "uint8", [[1, 0]] * SAMPLES),
        (
            [[[i, 1], [2, i]] for i in range(SAMPLES)],
            "int64",
            [[[i, 1], [2, i]] for i in range(21)],
        ),
        (array.array("d", range(SAMPLES)), "float32", values()),
        ([[i, 0.5] for i in range(SAMPLES)], "float32", [[i, 0.5] for i in range(SAMPLES)]),
        (tuple(np.float32(i) for i in range(SAMPLES)), "float32", values()),
    ],
)
def test_what_is_taken(pictures, given, dtype, kept):
    source = stoker.with_targets(pictures, {"a": given})
    kept = np.asarray(kept)
    assert source.targets == {"a": (dtype, kept.shape[1:])}
    for i in (0, 20):
        np.testing.assert_array_equal(np.asarray(source[i].targets["a"]), kept[i])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (values(2)[:20], ValueError, r"targets\['a'\] has 20 rows, and there are 21 samples"),
        (np.zeros(22), ValueError, r"targets\['a'\] has 22 rows, and there are 21 samples"),
        (3.5, ValueError, r"targets\['a'\] has a single number, and there are 21 samples"),
        ([[1], [2, 3]], ValueError, r"targets\['a'\] has rows of 1 and of 2 numbers"),
        ([[1], 2], TypeError, r"targets\['a'\] must have float32"),
        (np.array(["x"] * SAMPLES), TypeError, r"targets\['a'\] has numbers of the type <U1"),
        ("x" * SAMPLES, TypeError, r"targets\['a'\] must have float32"),
        (b"x" * SAMPLES, TypeError, r"targets\['a'\] must have float32"),
        (None, TypeError, r"targets\['a'\] must have float32"),
        ([], ValueError, r"targets\['a'\] has 0 rows, and there are 21 samples"),
        (values(dtype="complex64"), TypeError, "of the type complex64, must be float32"),
        ([1 << 63] * SAMPLES, TypeError, "integers of up to 63 bits"),
        (np.array([1 << 63] * SAMPLES), TypeError, "integers of up to 63 bits"),
        (values(0), ValueError, "has the shape"),
        (np.ma.masked_equal(values(), 3), ValueError, r"targets\['a'\] has gaps \(a masked array"),
    ],
)
def test_what_is_refused(pictures, given, error, message):
    with pytest.raises(error, match=message):
        stoker.with_targets(pictures, {"a": given})


def test_names_are_texts_and_come_once(pictures):
    with pytest.raises(TypeError, match="the target 3 must have a text as its name"):
        stoker.with_targets(pictures, {3: values()})
    with pytest.raises(ValueError, match="a target has no name"):
        stoker.with_targets(pictures, {"": values()})
    with pytest.raises(ValueError, match="there are two targets with the name 'a'"):
        stoker.with_targets(stoker.with_targets(pictures, {"a": values()}), {"a": values()})
    with pytest.raises(TypeError, match="must be a dict of arrays by name"):
        stoker.with_targets(pictures, values())
    with pytest.raises(TypeError, match="source is 'x', must be a stoker.Source"):
        stoker.with_targets("x", {})


def test_arrays_are_copied_unless_nobody_can_write_to_them(pictures, tmp_path):
    mine = values()
    source = stoker.with_targets(pictures, {"a": mine})
    mine[:] = -1
    assert np.asarray(source[5].targets["a"]) == 5
    np.save(tmp_path / "a.npy", values())
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    kept = stoker.with_targets(pictures, {"a": mapped})
    assert kept.fingerprint == source.fingerprint
    with open("/proc/self/maps") as maps:  # the file is mapped, and stays so with the source
        assert str(tmp_path / "a.npy") in maps.read()
    del mapped
    with open("/proc/self/maps") as maps:
        assert str(tmp_path / "a.npy") in maps.read()
    assert np.asarray(kept[20].targets["a"]) == 20


def test_a_sample_that_cannot_be_read(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"x")
    source = stoker.with_targets(stoker.files([str(tmp_path / "a.jpg")], [0]), {"a": [1.5]})
    assert np.asarray(source[0].targets["a"]) == 1.5
    (tmp_path / "a.jpg").unlink()
    with pytest.raises(OSError, match="a.jpg: .*No such file"):
        source[0].targets


def test_a_loader_warns_of_places_that_stay_where_they_were(pictures):
    boxes = stoker.with_targets(pictures, {"boxes": values(4)})
    with pytest.warns(UserWarning, match=r"'boxes': float32 \(4\).* random_crop and flip move"):
        stoker.Loader(boxes, augment="random_crop(padding=2) | flip(p=1)").close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.Loader(boxes, augment="color_jitter(0.4)").close()
        scores = stoker.with_targets(pictures, {"scores": values(4)})
        stoker.Loader(scores, augment="random_crop(padding=2) | flip(p=1)").close()
