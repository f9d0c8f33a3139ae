"""stoker.huggingface(): the images of a datasets.Dataset, where the library `datasets` has them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from conftest import jpeg, picture

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
