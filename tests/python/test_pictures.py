"""Samples of several pictures: where they come from, and how loops get them."""

from __future__ import annotations

import io
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import contents, epochs_of, jpeg, picture
from PIL import Image
from shard_files import tar_file

import stoker

ALIKE = {"image": "same(random_crop(24) | flip)", "control": "same(random_crop(24) | flip)"}
APART = {"image": "random_crop(24) | flip", "control": "random_crop(24) | flip"}


def png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders: 12 JPEGs in `photos`, and their negatives as PNGs in `maps`."""
    root = tmp_path_factory.mktemp("pairs")
    for i in range(12):
        name = f"{'a' if i % 2 else 'b'}/{i:02}"
        for folder in ("photos", "maps"):
            (root / folder / name).parent.mkdir(parents=True, exist_ok=True)
        data = jpeg(picture(i, 64 + i, 48))
        (root / f"photos/{name}.jpg").write_bytes(data)
        pixels = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        (root / f"maps/{name}.png").write_bytes(png(Image.fromarray(255 - pixels)))
    return root


@pytest.fixture
def opened(pairs: Path) -> stoker.Source:
    return stoker.open(pairs / "photos", pictures_from={"control": pairs / "maps"})


def rows(batch: stoker.Batch) -> dict[str, np.ndarray]:
    return {name: np.array(values) for name, values in batch.pictures.items()}


@pytest.mark.parametrize("workers", [0, 2])
def test_pictures_are_moved_alike(opened, workers):
    assert opened.pictures == ["control"]
    assert len(opened) == 12 and opened.classes == [] and opened.notes == []
    loader = stoker.Loader(
        opened, batch_size=4, augment=ALIKE, seed=1, workers=workers, pixels="exact-pillow12"
    )
    for batch in loader:
        made = rows(batch)
        assert list(made) == ["image", "control"]
        assert made["control"].shape == (4, 24, 24, 3) and made["control"].dtype == np.uint8
        assert (made["control"] == 255 - made["image"]).all()
        assert (np.asarray(batch.targets["control"]) == made["control"]).all()
        assert len(batch.views) == 1
        assert all(re.fullmatch(r"(crop\(.*)\n\1", text) for text in batch.draws)


def test_pictures_draw_for_themselves(opened):
    loader = stoker.Loader(opened, batch_size=12, augment=APART, seed=1)
    made = rows(next(iter(loader)))
    equal = (made["control"] == 255 - made["image"]).all(axis=(1, 2, 3))
    assert equal.sum() < 4


def test_a_list_may_be_text_or_stages(opened):
    text = (
        "pictures(same(random_crop(24) | flip) | invert, control=same(random_crop(24) | flip))"
    )
    alike = stoker.augment.same(stoker.augment.random_crop(24) | stoker.flip())
    stages = stoker.augment.pictures(alike | stoker.augment.invert(), control=alike)
    assert repr(stages) == text and stages.views == 1 and stages.size == (24, 24)
    named = {"control": alike, "image": alike | stoker.augment.invert()}
    expected = None
    for augment in (text, stages, named):
        got = epochs_of(stoker.Loader(opened, batch_size=5, augment=augment, seed=3, epochs=1))
        expected = got if expected is None else expected
        assert got == expected
    with pytest.raises(ValueError, match="^augment has lists for 'control', and none for 'image'$"):
        stoker.Loader(opened, augment={"control": "flip"})
    with pytest.raises(ValueError, match="has no list for it"):
        stoker.Loader(opened, augment="random_crop(24)")
    assert "picture control, 24 x 24:" in stoker.augment.explain(named)


def test_the_output_has_the_form_of_the_images(opened):
    loader = stoker.Loader(
        opened, batch_size=4, augment=ALIKE, seed=1, dtype="float32", layout="NCHW", mean=0.5
    )
    batch = next(iter(loader))
    plain = stoker.Loader(opened, batch_size=4, augment=ALIKE, seed=1)
    wanted = np.asarray(next(iter(plain)).pictures["control"]).transpose(0, 3, 1, 2)
    control = np.asarray(batch.pictures["control"])
    assert control.shape == (4, 3, 24, 24) and control.dtype == np.float32
    np.testing.assert_allclose(control, wanted / 255 - 0.5, atol=1e-6)


def test_a_loop_resumes(opened):
    def loader():
        return stoker.Loader(opened, batch_size=5, augment=ALIKE, seed=4)

    whole = [contents(batch) for batch in loader()]
    first = loader()
    iterator = iter(first)
    next(iterator)
    state = first.state_dict()
    second = loader()
    second.load_state_dict(state)
    assert [contents(batch) for batch in second] == whole[1:]
    other = stoker.Loader(opened, batch_size=5, augment=APART, seed=4)
    with pytest.raises(ValueError, match="another configuration"):
        other.load_state_dict(state)


def test_pictures_have_the_size_of_the_steps_bucket(opened):
    alike = "same(resize((44, 60)) | random_crop)"
    loader = stoker.Loader(
        opened, batch_size=3, buckets=[(40, 32), (32, 48)], seed=2, epochs=1,
        augment={"image": alike, "control": alike}, pixels="exact-pillow12",
    )  # fmt: skip
    shapes = set()
    for batch in loader:
        made = rows(batch)
        shapes.add(made["control"].shape)
        assert np.abs(made["control"].astype(int) + made["image"] - 255).max() <= 2  # rounded
    assert shapes <= {(3, 40, 32, 3), (3, 32, 48, 3)}


def test_batches_may_be_kept(opened):
    kept = list(stoker.Loader(opened, batch_size=3, augment=ALIKE, seed=5, epochs=1))
    assert [contents(batch) for batch in kept] == epochs_of(
        stoker.Loader(opened, batch_size=3, augment=ALIKE, seed=5, epochs=1)
    )


def test_shards_lists_and_sources_give_the_same(pairs, opened, tmp_path):
    names = [opened.name(i)[:-4] for i in range(12)]
    members = []
    for i, name in enumerate(names):
        members.append((f"{i:02}.control.png", (pairs / f"maps/{name}.png").read_bytes()))
        members.append((f"{i:02}.jpg", (pairs / f"photos/{name}.jpg").read_bytes()))
    tar_file(tmp_path / "x.tar", members)
    lines = [f"{pairs}/photos/{name}.jpg,{pairs}/maps/{name}.png" for name in names]
    (tmp_path / "x.csv").write_text("\n".join(["path,control", *lines]))
    photos, maps = (
        stoker.memory([(pairs / form.format(name)).read_bytes() for name in names], [0] * 12)
        for form in ("photos/{}.jpg", "maps/{}.png")
    )
    sources = [
        stoker.tar(tmp_path / "x.tar", pictures_from={"control": "control.png"}),
        stoker.open(tmp_path / "x.tar", pictures_from={"control": "control.png"}),
        stoker.csv(tmp_path / "x.csv", label_from="none", pictures_from={"control": "control"}),
        stoker.with_pictures(photos, {"control": maps}),
        pickle.loads(pickle.dumps(stoker.with_pictures(photos, {"control": maps}))),
        pickle.loads(pickle.dumps(opened)),
        stoker.concat([stoker.subset(opened, range(5)), stoker.subset(opened, range(5, 12))]),
    ]

    def made(source):
        loader = stoker.Loader(source, batch_size=4, augment=ALIKE, seed=6, epochs=1)
        return [rows(batch) for batch in loader]

    wanted = made(opened)
    for source in sources:
        for got, want in zip(made(source), wanted, strict=True):
            assert all((got[name] == want[name]).all() for name in ("image", "control"))
    assert opened[3].pictures["control"] == (pairs / f"maps/{names[3]}.png").read_bytes()
    assert photos[3].pictures == {} and photos.pictures == []


def test_pictures_may_be_of_other_kinds(opened):
    raw = stoker.synthetic(12, size=40)
    gray = stoker.memory(
        [png(Image.new("I;16" if i % 2 else "L", (50, 50), i)) for i in range(12)], [0] * 12
    )
    source = stoker.with_pictures(opened, {"raw": raw, "gray": gray})
    assert source.pictures == ["control", "raw", "gray"]
    lists = {"image": "resize((8, 8))"} | {
        name: "center_crop(12)" for name in ("control", "raw", "gray")
    }
    made = rows(next(iter(stoker.Loader(source, batch_size=12, augment=lists, shuffle=False))))
    assert made["raw"].shape == made["gray"].shape == (12, 12, 12, 3)
    assert (made["gray"][::2] == np.arange(0, 12, 2)[:, None, None, None]).all()


def test_a_pair_with_one_half_is_a_bad_sample(pairs, tmp_path):
    for name in ("photos", "maps"):
        (tmp_path / name).mkdir()
        for i in range(10):
            kind = "jpg" if name == "photos" else "png"
            path = next((pairs / name).glob(f"*/{i:02}.*"))
            (tmp_path / name / f"{i}.{kind}").write_bytes(path.read_bytes())
    (tmp_path / "maps/3.png").unlink()
    with pytest.warns(UserWarning, match="1 sample has no picture 'control'.*as 3.jpg"):
        source = stoker.open(tmp_path / "photos", pictures_from={"control": tmp_path / "maps"})
    with pytest.raises(OSError, match="^3.jpg: picture 'control': there is none$"):
        source[3].pictures  # noqa: B018
    quarantine = tmp_path / "bad.jsonl"
    options = {"batch_size": 10, "augment": ALIKE, "shuffle": False, "max_bad": 1}
    batch = next(iter(stoker.Loader(source, quarantine=quarantine, **options)))
    assert list(np.asarray(batch.weights)) == [1, 1, 1, 0, *[1] * 6]
    assert "picture 'control': there is none" in quarantine.read_text()
    with pytest.raises(stoker.FeedError, match="3.jpg.*picture 'control': there is none"):
        next(iter(stoker.Loader(source, on_bad="fail", **options)))


def test_pictures_of_two_sizes_are_a_bad_sample(opened):
    other = stoker.memory([png(Image.new("RGB", (40, 30)))] * 12, [0] * 12)
    source = stoker.with_pictures(stoker.subset(opened, range(12)), {"depth": other})
    lists = ALIKE | {"depth": "same(random_crop(24) | flip)"}
    with pytest.raises(stoker.FeedError, match="picture 'depth': .* has 40 x 30 pixels there"):
        next(iter(stoker.Loader(source, augment=lists, batch_size=4, on_bad="fail")))


def test_what_does_not_fit_is_refused(opened, tmp_path):
    synthetic = stoker.synthetic(12, size=40)
    with pytest.raises(ValueError, match="^12 pictures 'a' for 3 samples$"):
        stoker.with_pictures(stoker.synthetic(3, size=8), {"a": synthetic})
    with pytest.raises(ValueError, match="two pictures 'control'"):
        stoker.with_pictures(opened, {"control": synthetic})
    with pytest.raises(ValueError, match="no picture can be called 'image'"):
        stoker.with_pictures(synthetic, {"image": synthetic})
    with pytest.raises(TypeError, match="must be a dict of sources by name"):
        stoker.with_pictures(opened, [synthetic])
    with pytest.raises(TypeError, match=r"pictures\['a'\]"):
        stoker.with_pictures(opened, {"a": 3})
    with pytest.raises(TypeError, match="must be a dict of fields by name"):
        stoker.open(tmp_path, pictures_from=["a"])


def test_torch_gets_them_as_targets(opened):
    pytest.importorskip("torch")
    from stoker.torch import DataLoader

    loader = DataLoader(opened, 5, augment=ALIKE, seed=7, pixels="exact-pillow12")
    total = 0
    for images, labels, targets in loader:
        control = targets["control"]
        assert control.shape == images.shape and len(labels) == len(images)
        total += len(images)
    assert total == 12


def test_jax_gets_them_as_targets(opened):
    pytest.importorskip("jax")
    from stoker.jax import Loader

    for batch in Loader(opened, batch_size=4, augment=ALIKE, seed=7):
        assert batch.targets["control"].shape == batch.images.shape


def test_keras_learns_one_of_another(opened):
    pytest.importorskip("keras")
    from stoker.keras import Dataset

    images, control = Dataset(opened, batch_size=4, augment=ALIKE, seed=7, target="control")[0]
    assert control.shape == images.shape
    with pytest.raises(ValueError, match="the targets of the source are 'control'"):
        Dataset(opened, target="depth", augment=ALIKE)
