"""stoker.huggingface(): the images of a datasets.Dataset, where the library `datasets` has them."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from conftest import jpeg, picture
from PIL import Image

import stoker

datasets = pytest.importorskip("datasets")
pa = pytest.importorskip("pyarrow")

IMAGES = [jpeg(picture(i, 40, 30)) for i in range(24)]
LABELS = [i % 3 for i in range(24)]
NAMES = ["ape", "bee", "cat"]


@pytest.fixture
def dataset():
    """24 JPEGs in two pieces, as a data set that was made from two files has them."""
    parts = []
    for begin, end in ((0, 10), (10, 24)):
        part = datasets.Dataset.from_dict({"x": IMAGES[begin:end], "label": LABELS[begin:end]})
        part = part.cast_column("label", datasets.ClassLabel(names=NAMES))
        parts.append(part.cast_column("x", datasets.Image()))
    return datasets.concatenate_datasets(parts)


def assert_same(source: stoker.Source, dataset) -> None:
    """The same bytes and labels as the library gives, row by row."""
    plain = dataset.with_format(None).cast_column("x", datasets.Image(decode=False))
    wanted = [(row["x"]["bytes"], row["label"]) for row in plain]
    assert [(sample.data, sample.label) for sample in source] == wanted


CHANGES = {
    "as it is": lambda d: d,
    "shuffled": lambda d: d.shuffle(seed=4),
    "selected": lambda d: d.select([23, 0, 5, 5]),
    "a slice": lambda d: d.select(range(7, 19)),
    "filtered": lambda d: d.filter(lambda label: label != 1, input_columns="label"),
    "sorted": lambda d: d.sort("label"),
    "a shard": lambda d: d.shard(num_shards=3, index=1, contiguous=False),
    "a shard in one piece": lambda d: d.shard(num_shards=3, index=2, contiguous=True),
    "twice": lambda d: d.shuffle(seed=1).select(range(3, 9)).shuffle(seed=2),
    "concatenated": lambda d: datasets.concatenate_datasets([d.shuffle(seed=9), d.select([3, 2])]),
    "with a format": lambda d: d.with_format("numpy"),
    "with a transform": lambda d: d.with_transform(lambda rows: {"nothing": rows["label"]}),
    "cast again": lambda d: d.cast_column("x", datasets.Image(mode="RGB")),
    "flattened": lambda d: d.shuffle(seed=5).flatten_indices(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_are_those_of_the_library(change, dataset):
    changed = CHANGES[change](dataset)
    source = stoker.huggingface(changed)
    assert_same(source, changed)
    assert source.classes == NAMES
    again = pickle.loads(pickle.dumps(source))
    assert again.fingerprint == source.fingerprint
    assert_same(again, changed)


def test_files_that_are_mapped(dataset, tmp_path):
    dataset.shuffle(seed=3).save_to_disk(tmp_path / "saved", num_shards=3)
    loaded = datasets.load_from_disk(tmp_path / "saved").shuffle(seed=1)
    source = stoker.huggingface(loaded)
    kept = copy.deepcopy(loaded)
    del loaded  # the source keeps the maps
    assert_same(source, kept)
    dataset.to_parquet(tmp_path / "a.parquet")
    loaded = datasets.load_dataset(
        "parquet", data_files=str(tmp_path / "a.parquet"), cache_dir=tmp_path / "cache"
    )["train"]
    assert_same(stoker.huggingface(loaded), loaded)
    shards = stoker.parquet(tmp_path / "a.parquet")
    assert (shards.labels(), shards.classes) == (LABELS, NAMES)
    assert [sample.data for sample in shards] == IMAGES


def of_arrow(images, labels=None) -> datasets.Dataset:
    """A data set around an Arrow array, as it is."""
    table = pa.table({"image": images, "label": pa.array(labels or [0] * len(images))})
    return datasets.Dataset(datasets.table.InMemoryTable(table), fingerprint="of_arrow")


@pytest.mark.parametrize("binary", [pa.binary(), pa.large_binary()])
def test_arrows_layouts(binary):
    """Slices, nulls of a struct and of its bytes, empty values, binary columns without a struct."""
    values = pa.array([b"no", *IMAGES[:5], b"", b"no"], binary)[1:-1]
    source = stoker.huggingface(of_arrow(values), image_from="image")
    assert [sample.data for sample in source] == [*IMAGES[:5], b""]
    for names in (["bytes", "path"], ["path", "bytes"], ["bytes"]):
        fields = {"bytes": pa.array([b"no", *IMAGES[:4]], binary), "path": pa.array(["p"] * 5)}
        struct = pa.StructArray.from_arrays([fields[name] for name in names], names)
        chunks = pa.chunked_array([struct[1:3], struct[3:], struct[:0], struct[2:4]])
        source = stoker.huggingface(of_arrow(chunks), image_from="image")
        wanted = [*IMAGES[:4], *IMAGES[1:3]]
        assert [sample.data for sample in source] == wanted


def test_nulls_hide_what_lies_below():
    """Arrow keeps values below the nulls of a struct; empty values are no nulls."""
    images, paths = pa.array(IMAGES[:2]), pa.array(["a", "b"])
    hidden = pa.StructArray.from_arrays(
        [pa.array([IMAGES[0], None]), paths], ["bytes", "path"], mask=pa.array([False, True])
    )
    with pytest.raises(ValueError, match="^row 1: its image is null: it has neither"):
        stoker.huggingface(of_arrow(hidden), image_from="image")
    hidden = pa.StructArray.from_arrays(
        [images, paths], ["bytes", "path"], mask=pa.array([True, False])
    )
    with pytest.raises(ValueError, match="^row 0: its image is null: it has neither"):
        stoker.huggingface(of_arrow(hidden), image_from="image")
    empty = pa.array([b"", b""])
    source = stoker.huggingface(of_arrow(empty), image_from="image")
    assert [sample.data for sample in source] == [b"", b""]
    for nothing in (pa.array([None], pa.binary()), pa.array([None], pa.large_binary())):
        with pytest.raises(ValueError, match="^row 0: its image is null"):
            stoker.huggingface(of_arrow(nothing), image_from="image")


def test_images_that_are_files(tmp_path, monkeypatch):
    for i in (1, 3):
        (tmp_path / f"{i}.jpg").write_bytes(IMAGES[i])
    images = [
        {"bytes": IMAGES[0], "path": "not there.jpg"},
        {"bytes": None, "path": str(tmp_path / "1.jpg")},
        {"bytes": IMAGES[2], "path": None},
        {"bytes": None, "path": "3.jpg"},
    ]
    dataset = datasets.Dataset.from_dict({"x": images, "label": [0] * 4})
    dataset = dataset.cast_column("x", datasets.Image())
    monkeypatch.chdir(tmp_path)
    source = stoker.huggingface(dataset)
    monkeypatch.chdir("/")
    for each in (source, pickle.loads(pickle.dumps(source))):
        assert [sample.data for sample in each] == IMAGES[:4]
    assert [sample.name for sample in source] == ["#0", str(tmp_path / "1.jpg"), "#2", "3.jpg"]


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (None, "^row 1: its image is null: it has neither bytes nor a path"),
        ({"bytes": None, "path": None}, "^row 1: its image is null"),
        ({"bytes": None, "path": "hf://a/b.jpg"}, "^row 1: its image is at hf://a/b.jpg, which"),
    ],
)
def test_images_that_are_nowhere(image, message):
    images = [{"bytes": IMAGES[0], "path": None}, image, {"bytes": IMAGES[2], "path": None}]
    dataset = datasets.Dataset.from_dict({"x": images, "label": [0] * 3})
    dataset = dataset.cast_column("x", datasets.Image())
    with pytest.raises(ValueError, match=message):
        stoker.huggingface(dataset)
    assert len(stoker.huggingface(dataset.select([0, 2]))) == 2


def test_labels(dataset):
    def labelled(labels, **options):
        return stoker.huggingface(
            dataset.remove_columns("label").select(range(3)).add_column("kind", labels), **options
        )

    source = labelled(["b", "a", "b"], label_from="kind")
    assert (source.labels(), source.classes) == ([1, 0, 1], ["a", "b"])
    source = labelled([4, 0, 1], label_from="kind")
    assert (source.labels(), source.classes) == ([4, 0, 1], ["0", "1", "2", "3", "4"])
    source = labelled([4, 0, 1], label_from="none")
    assert (source.labels(), source.classes) == ([0, 0, 0], [])
    with pytest.raises(
        ValueError, match=r"label_from must say .* columns are x \(Image\), kind \("
    ):
        labelled([4, 0, 1])
    with pytest.raises(ValueError, match="row 1: its label, in column 'kind', is null"):
        labelled([4, None, 1], label_from="kind")
    with pytest.raises(ValueError, match="column 'kind' is of type double, must be integers or te"):
        labelled([4.0, 0.0, 1.0], label_from="kind")
    with pytest.raises(ValueError, match="sample 2 has label -1, must be 0 or more"):
        labelled([4, 0, -1], label_from="kind")
    with pytest.raises(ValueError, match="label_from is 'y'; the columns are x"):
        labelled([4, 0, 1], label_from="y")


def test_columns_of_images(dataset):
    two = dataset.add_column("y", [{"bytes": IMAGES[0], "path": None}] * 24)
    two = two.cast_column("y", datasets.Image())
    with pytest.raises(
        ValueError, match="^2 columns are of type Image, so image_from must say whi"
    ):
        stoker.huggingface(two)
    assert stoker.huggingface(two, image_from="y")[5].data == IMAGES[0]
    assert stoker.huggingface(two.rename_column("x", "img"))[5].data == IMAGES[5]
    with pytest.raises(ValueError, match="^no column is of type Image"):
        stoker.huggingface(dataset.remove_columns("x"))
    with pytest.raises(ValueError, match="^image_from is 'z'; the columns are x"):
        stoker.huggingface(dataset, image_from="z")
    with pytest.raises(ValueError, match="column of images is of type int64, must be binary, or a"):
        stoker.huggingface(dataset, image_from="label")
    with pytest.raises(TypeError, match="image_from is 3"):
        stoker.huggingface(dataset, image_from=3)


def test_what_is_no_data_set(dataset):
    with pytest.raises(TypeError, match="IterableDataset, whose images .* without streaming=True"):
        stoker.huggingface(dataset.to_iterable_dataset())
    with pytest.raises(TypeError, match=r"DatasetDict; give one of its parts: dataset\['train'\]"):
        stoker.huggingface(datasets.DatasetDict(train=dataset))
    with pytest.raises(TypeError, match="<class 'list'>, must be a datasets.Dataset"):
        stoker.huggingface([1])


def test_damaged_offsets_are_refused():
    """Files are mapped without a look at their offsets, which could be anywhere."""
    data = pa.py_buffer(b"x" * 10)
    for offsets in ([0, 1000, 5], [0, -5, 5], [0, 6, 5]):
        buffer = pa.py_buffer(pa.array(offsets, pa.int32()).buffers()[1].to_pybytes()[:12])
        images = pa.Array.from_buffers(pa.binary(), 2, [None, buffer, data])
        with pytest.raises(ValueError):
            stoker.huggingface(of_arrow(images), image_from="image")


def test_no_image_is_copied(dataset, tmp_path: Path):
    """The bytes are those of the library's map: the pages of its file are in memory once."""
    big = datasets.Dataset.from_dict({"image": [b"x" * (1 << 20)] * 64, "label": [0] * 64})
    big.save_to_disk(tmp_path / "big")
    loaded = datasets.load_from_disk(tmp_path / "big")

    def private() -> int:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Anonymous:")).split()[1])

    before = private()
    source = stoker.huggingface(loaded, image_from="image")
    assert len(source) == 64
    assert private() - before < 16 << 10  # KiB


def objects(number: int) -> list[dict]:
    return [
        {"bbox": [place, 2.5, 10 + number % 9, 7], "category": place % 2, "id": 9 * number + place}
        for place in range(number % 4)
    ]


CATEGORIES = ["coverall", "mask"]
OF_ONE = {
    "bbox": datasets.Sequence(datasets.Value("float32"), length=4),
    "category": datasets.ClassLabel(names=CATEGORIES),
    "id": datasets.Value("int64"),
}


def with_objects(dataset, as_lists: bool):
    """Objects as fields of lists, as most data sets have them, or as a list of objects."""
    rows = [objects(number) for number in range(len(dataset))]
    kind = datasets.Sequence(OF_ONE) if as_lists else [OF_ONE]
    if as_lists:
        rows = [{field: [each[field] for each in row] for field in OF_ONE} for row in rows]
    features = datasets.Features({"objects": kind})
    added = datasets.Dataset.from_dict({"objects": rows}, features=features)
    return datasets.concatenate_datasets([dataset, added], axis=1)


@pytest.mark.parametrize("as_lists", [True, False], ids=["lists", "objects"])
def test_objects(as_lists, dataset):
    whole = with_objects(dataset, as_lists)
    for changed in (whole, whole.shuffle(seed=4), whole.select([23, 0, 5, 5])):
        source = stoker.huggingface(changed, objects_from="objects")
        assert source.annotations["class_names"] == CATEGORIES
        plain = stoker.huggingface(changed, label_from="none")
        expected = stoker.with_annotations(
            plain,
            [
                {
                    "boxes": [each["bbox"] for each in row],
                    "labels": [each["category"] for each in row],
                    "ids": [each["id"] for each in row],
                }
                for row in (objects(IMAGES.index(sample.data)) for sample in plain)
            ],
            class_names=CATEGORIES,
            box_format="xywh",
        )
        for each in (source, pickle.loads(pickle.dumps(source))):
            assert each.fingerprint == expected.fingerprint
            assert [s.annotations for s in each] == [s.annotations for s in expected]
            assert [s.data for s in each] == [s.data for s in expected]
    options = {"box_format": "xyxy", "label_from": "label"}
    source = stoker.huggingface(whole, objects_from="objects", **options)
    assert source[1].annotations["boxes"] == [[0, 2.5, 11, 7]] and source.labels() == LABELS
    assert stoker.huggingface(whole).annotations == {}
    names = [f"{i}.jpg" for i in range(24)]
    for numbers, wanted in ((list(range(50, 74)), [73, 51, 50]), (names, [0, 1, 2])):
        numbered = whole.add_column("image_id", numbers).select([23, 1, 0])
        source = stoker.huggingface(numbered, objects_from="objects")
        assert [sample.annotations["image_id"] for sample in source] == wanted


def test_objects_that_do_not_fit(dataset):
    whole = with_objects(dataset, as_lists=False)
    with pytest.raises(ValueError, match="^objects_from is 'object'; the columns are x"):
        stoker.huggingface(whole, objects_from="object")
    with pytest.raises(ValueError, match="column 'label' is of type ClassLabel.* must be objects"):
        stoker.huggingface(whole, objects_from="label")
    with pytest.raises(TypeError, match="objects_from is 3, must be a text"):
        stoker.huggingface(whole, objects_from=3)

    def refused(rows, message):
        added = dataset.select(range(len(rows))).add_column("things", rows)
        with pytest.raises((ValueError, TypeError), match=message):
            stoker.huggingface(added, objects_from="things")

    good = {"bbox": [1, 2, 3, 4], "category": 0}
    refused([[{"box": [1, 2, 3, 4]}]], "'things' has the fields box, must have one of bbox, boxes")
    refused([[{"bbox": [1, 2, 3, 4]}]], "has the fields bbox, must have one of category, label, ")
    refused([[good], None], "annotations of '#1': NoneType, must be a dict")
    refused([[good], [good, None]], "annotations of '#1': list, must be a dict")
    refused([[good], [good, {**good, "bbox": [1, 2, 3]}]], "'#1': object 1: boxes has 3 numbers")
    refused([[good], [good, {**good, "category": None}]], "'#1': object 1: ")
    refused([[good], [good, {**good, "bbox": [1, 2, -3, 4]}]], "#1: object 1 .*: the box has a neg")


def test_pictures(dataset):
    files = [{"bytes": each, "path": None} for each in reversed(IMAGES)]
    whole = dataset.rename_column("x", "image")
    whole = whole.add_column("control", files).cast_column("control", datasets.Image())
    source = stoker.huggingface(whole, image_from="image", pictures_from={"depth": "control"})
    assert source.pictures == ["depth"] and source.classes == []
    assert [each.pictures["depth"] for each in source] == IMAGES[::-1]
    assert [each.data for each in source] == IMAGES
    with pytest.raises(ValueError, match=r"^pictures_from\['a'\] is 'z'; the columns are"):
        stoker.huggingface(whole, pictures_from={"a": "z"})


def test_label_images(dataset):
    def plane(number: int) -> np.ndarray:
        return np.random.default_rng(number).integers(0, 20, (30, 40)).astype(np.uint8)

    def png(number: int) -> bytes:
        out = io.BytesIO()
        Image.fromarray(plane(number)).save(out, "PNG")
        return out.getvalue()

    files = [{"bytes": png(number), "path": None} for number in range(24)]
    files[7]["bytes"] = b"no PNG"
    whole = with_objects(dataset, as_lists=True).add_column("annotation", files)
    whole = whole.cast_column("annotation", datasets.Image()).rename_column("x", "image")
    whole = whole.shuffle(seed=2)
    source = stoker.huggingface(whole, objects_from="objects", label_image_from="annotation")
    assert source.annotations["label_image"] and source.annotations["objects"]
    alone = stoker.huggingface(whole, label_image_from="annotation")
    assert not alone.annotations["objects"] and alone.fingerprint != source.fingerprint
    for each in (source, alone, pickle.loads(pickle.dumps(source))):
        loader = stoker.Loader(
            each, batch_size=24, size=(30, 40), max_bad=1,
            augment="resize((30, 40)) | vertical_flip(1)",
        )  # fmt: skip
        (batch,) = loader
        assert batch.valid == 23
        labels = np.asarray(batch.targets["label_image"])
        ids = np.asarray(batch.ids)
        for row in batch.counted_rows:
            number = IMAGES.index(source[int(ids[row])].data)
            np.testing.assert_array_equal(labels[row], plane(number)[::-1])
            if each is not alone:
                assert batch.object_counts[row] == number % 4
    with pytest.raises(ValueError, match="^label_image_from is 'y'; the columns are image"):
        stoker.huggingface(whole, label_image_from="y")
    with pytest.raises(ValueError, match="column of images is of type int64, must be binary"):
        stoker.huggingface(whole, label_image_from="label")
