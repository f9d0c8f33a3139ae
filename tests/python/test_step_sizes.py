"""Batches whose shape changes from step to step: aspect buckets and multi-scale."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import jpeg, picture
from PIL import Image

import stoker

SIZES = [(48, 80), (80, 48), (64, 64)]


@pytest.fixture(scope="session")
def shaped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """37 pictures of many shapes."""
    folder = tmp_path_factory.mktemp("shaped") / "all"
    folder.mkdir()
    for i in range(37):
        width, height = 90 + (i * 37) % 120, 90 + (i * 53) % 110
        (folder / f"{i:02}.jpg").write_bytes(jpeg(picture(i, width, height), quality=90))
    return folder.parent


def shapes_of(loader: stoker.Loader, epochs: int = 1) -> list[tuple[tuple[int, ...], list[int]]]:
    seen = []
    for _ in range(epochs):
        seen += [(batch.images.shape, np.asarray(batch.ids).tolist()) for batch in loader]
    return seen


def test_every_batch_has_the_size_of_a_bucket_and_nothing_is_squashed(shaped):
    source = stoker.folder(shaped)
    with stoker.Loader(source, batch_size=4, buckets=SIZES, seed=1, workers=2) as loader:
        assert [(each.height, each.width) for each in loader.buckets] == SIZES
        assert sum(each.samples for each in loader.buckets) == 37
        assert sum(each.share for each in loader.buckets) == pytest.approx(1)
        seen = []
        for batch in loader:
            rows, height, width, _ = batch.images.shape
            assert rows == 4 and (height, width) in SIZES
            images = np.from_dlpack(batch.images)
            for row in batch.counted_rows:
                name = batch.names[row]
                seen.append(name)
                image = Image.open(shaped / name)
                scale = max(height / image.height, width / image.width)
                covering = [
                    max(round(side * scale), least)
                    for side, least in zip(image.size, (width, height))
                ]
                resized = image.resize(covering, Image.BILINEAR)
                left, top = (resized.width - width) / 2, (resized.height - height) / 2
                box = (round(left), round(top), round(left) + width, round(top) + height)
                np.testing.assert_array_equal(images[row], np.asarray(resized.crop(box)))
    assert sorted(seen) == sorted(source.name(i) for i in range(37))


def test_ranks_have_one_shape_and_share_the_samples(shaped):
    options = {"buckets": SIZES, "seed": 1, "workers": 0, "last_batch": "merge"}
    source = stoker.folder(shaped)
    with stoker.Loader(source, batch_size=6, **options) as loader:
        whole = shapes_of(loader, 2)
        assert len(loader) == 7  # of 37 in batches of 6
    ranks = []
    for rank in range(3):
        with stoker.Loader(source, batch_size=2, rank=rank, world=3, **options) as loader:
            ranks.append(shapes_of(loader, 2))
    for step, (shape, ids) in enumerate(whole):
        assert {each[step][0][1:] for each in ranks} == {shape[1:]}
        assert sum((each[step][1] for each in ranks), []) == ids


def test_a_state_goes_on_anywhere_and_with_another_split(shaped):
    source = stoker.folder(shaped)
    options = {"buckets": SIZES, "seed": 1, "augment": "resize_cover | random_crop | flip"}
    with stoker.Loader(source, batch_size=4, **options) as loader:
        whole = [np.asarray(batch.images).copy() for batch in loader]
        steps = len(loader)
    for taken in range(1, steps):
        with stoker.Loader(source, batch_size=4, **options) as loader:
            loop = iter(loader)
            for _ in range(taken):
                next(loop)
            state = loader.state_dict()
        halves = []
        for rank in range(2):
            with stoker.Loader(source, batch_size=2, rank=rank, world=2, **options) as loader:
                loader.load_state_dict(state)
                halves.append([np.asarray(batch.images).copy() for batch in loader])
        assert len(halves[0]) == steps - taken
        for got, expected in zip(zip(*halves), whole[taken:]):
            np.testing.assert_array_equal(np.concatenate(got), expected)


def test_a_state_of_other_buckets_is_refused(shaped):
    source = stoker.folder(shaped)
    with stoker.Loader(source, batch_size=4, buckets=SIZES, seed=1) as loader:
        state = loader.state_dict()
    with stoker.Loader(source, batch_size=4, buckets=SIZES[:2], seed=1) as loader:
        with pytest.raises(ValueError, match="another configuration"):
            loader.load_state_dict(state)


def test_buckets_by_rule():
    made = stoker.buckets(area=1024 * 1024, step=64, max_ratio=2)
    assert (1024, 1024) in made.sizes and (1216, 832) in made.sizes
    assert all(h % 64 == 0 and w % 64 == 0 and h * w <= 1024 * 1024 for h, w in made.sizes)
    assert pickle.loads(pickle.dumps(made)) == made


def test_what_is_in_the_buckets_without_a_loader(shaped):
    found = stoker.buckets(SIZES).of(stoker.folder(shaped))
    assert sum(each.samples for each in found) == 37
    assert 0 < max(each.cropped for each in found) < 0.5


def test_pictures_that_are_too_small_are_left_out_with_a_warning(shaped):
    source = stoker.folder(shaped)
    wanted = stoker.buckets([(100, 100)], enlarge=False)
    with pytest.warns(UserWarning, match=r"\d+ of 37 pictures are smaller than every bucket"):
        loader = stoker.Loader(source, batch_size=4, buckets=wanted, seed=1)
    with loader:
        names = [batch.names[row] for batch in loader for row in batch.counted_rows]
    assert 0 < len(names) < 37
    for name in names:
        assert min(Image.open(shaped / name).size) >= 100
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.Loader(source, batch_size=4, buckets=[(100, 100)], seed=1).close()


def test_a_bucket_that_nobody_fits_is_named(shaped):
    source = stoker.folder(shaped)
    with pytest.warns(UserWarning, match="no picture belongs to the bucket 16 x 160"):
        stoker.Loader(source, batch_size=4, buckets=[*SIZES, (16, 160)], seed=1).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_rule = stoker.buckets(area=64 * 64, step=4, max_ratio=6)
        loader = stoker.Loader(source, batch_size=4, buckets=by_rule, seed=1)
    with loader:
        assert min(each.samples for each in loader.buckets) == 0


def test_multi_scale_draws_one_size_for_each_step(source):
    sizes = stoker.step_sizes([16, 24, (32, 16)], hold=2)
    with stoker.Loader(source, batch_size=5, size=sizes, augment="resize", seed=3) as loader:
        shapes = [shape[1:3] for shape, _ in shapes_of(loader, 2)]
        assert set(shapes) == {(16, 16), (24, 24), (32, 16)}
        assert shapes[::2] == shapes[1::2]  # 20 steps an epoch
        plan = loader.memory_plan()
    with stoker.Loader(source, batch_size=5, size=24, augment="resize", seed=3) as largest:
        assert plan["ring_bytes"] == largest.memory_plan()["ring_bytes"]


def test_sizes_follow_the_epoch(source):
    sizes = stoker.step_sizes({0: 12, 2: [16, 20]})
    with stoker.Loader(source, batch_size=50, size=sizes, augment="resize", seed=3) as loader:
        for epoch in range(6):
            shapes = {batch.images.shape[1] for batch in loader}
            assert shapes <= ({12} if epoch < 2 else {16, 20})
    float_sizes = {"size": sizes, "augment": "resize", "dtype": "float32", "layout": "NCHW"}
    with stoker.Loader(source, batch_size=50, seed=3, **float_sizes) as loader:
        assert next(iter(loader)).images.shape == (50, 3, 12, 12)


def test_torch_gets_tensors_of_each_shape(shaped):
    torch = pytest.importorskip("torch")
    from stoker.torch import DataLoader

    loader = DataLoader(stoker.folder(shaped), batch_size=4, buckets=SIZES, seed=1)
    shapes = {tuple(images.shape[-2:]) for images, _ in loader}
    assert shapes <= set(SIZES) and len(shapes) > 1
    assert all(isinstance(images, torch.Tensor) for images, _ in loader)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"buckets": []}, "no sizes"),
        ({"buckets": [(64, 64), (64, 64)]}, "64 x 64 pixels is there twice"),
        ({"buckets": [(64, 0)]}, r"buckets\[0\] is \(64, 0\)"),
        ({"buckets": [(64, 64)], "size": 64}, "leave size out"),
        ({"buckets": [(64, 64)], "order": stoker.repeated()}, "leave order= out"),
        ({"buckets": "64x64"}, "buckets is '64x64'"),
        ({"buckets": [(64, 64)], "augment": "resize_cover | center_crop(32)"}, "32x32"),
        ({"last_batch": "merge"}, "merge"),
        ({"buckets": [(64, 64)], "batch_size": 40, "last_batch": "drop"}, "batch_size is 40"),
    ],
)
def test_what_does_not_fit_is_refused(shaped, options, message):
    given = {"batch_size": 4, "seed": 1, **options}
    with pytest.raises((ValueError, TypeError), match=message):
        stoker.Loader(stoker.folder(shaped), **given)


def test_sizes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="multiples of 64"):
        stoker.buckets([(64, 72)], multiple_of=64).of(stoker.synthetic(10, size=16))
    with pytest.raises(ValueError, match="give one of them"):
        stoker.buckets()
    with pytest.raises(ValueError, match="from epoch 1 on"):
        stoker.step_sizes({1: 32})
    with pytest.raises(ValueError, match="hold is 0"):
        stoker.step_sizes([32], hold=0)


def test_pairs_have_the_size_of_the_step(shaped):
    """A picture with itself as its control map."""
    folder = stoker.folder(shaped)
    pairs = stoker.with_pictures(folder, {"control": folder})
    moved = "same(resize_cover | random_crop | flip)"
    options = {"augment": {"image": moved, "control": f"{moved} | invert"}, "last_batch": "merge"}
    shapes = set()
    with stoker.Loader(pairs, batch_size=4, buckets=SIZES, seed=1, **options) as loader:
        for batch in loader:
            images, controls = np.asarray(batch.images), np.asarray(batch.pictures["control"])
            shapes.add(images.shape[1:3])
            np.testing.assert_array_equal(controls, 255 - images)
    assert len(shapes) > 1
