"""Files of `stoker pack`, read by the software that it is for."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from conftest import jpeg, picture
from PIL import Image

PROGRAM = os.environ.get("STOKER_PROGRAM", "")

pytestmark = pytest.mark.skipif(
    not os.access(PROGRAM, os.X_OK), reason="STOKER_PROGRAM names no program"
)

CLASSES = ["Größe", "__many dots__", "ring"]
LONG = "/".join(["ring", "d" * 90, "e" * 90, "f" * 120])


@dataclass(frozen=True)
class Sample:
    """A file, and what it must be in a tar shard."""

    path: str
    key: str
    extension: str
    label: int
    content: bytes


def encoded(seed: int, kind: str) -> bytes:
    out = io.BytesIO()
    picture(seed, 40, 30).save(out, kind)
    return out.getvalue()


def samples() -> list[Sample]:
    """Names in the order of a source, among them all that keys must be made for."""
    listed = [
        ("Größe/klein 1.jpg", "Größe/klein 1", "JPEG"),
        ("Größe/ähnlich.webp", "Größe/ähnlich", "WEBP"),
        ("__many dots__/a.b.c.jpg", "x__many dots__/a_b_c", "JPEG"),
        ("__many dots__/twice.jpg", "x__many dots__/twice-3", "JPEG"),
        ("__many dots__/twice.png", "x__many dots__/twice-4", "PNG"),
        ("ring/UPPER.JPEG", "ring/UPPER", "JPEG"),
        ("ring/__meta__.jpg", "ring/x__meta__", "JPEG"),
        ("ring/a png.jpg", "ring/a png", "PNG"),
        ("ring/scan.tif", "ring/scan", "TIFF"),
        ("ring/screen.bmp", "ring/screen", "BMP"),
        ("ring/stack.ppm", "ring/stack", "PPM"),
        (f"{LONG}.jpg", LONG, "JPEG"),
    ]
    extensions = {
        "JPEG": "jpg",
        "PNG": "png",
        "WEBP": "webp",
        "TIFF": "tif",
        "BMP": "bmp",
        "PPM": "ppm",
    }
    made = []
    for seed, (path, key, kind) in enumerate(listed):
        label = CLASSES.index(path.split("/")[0])
        made.append(Sample(path, key, extensions[kind], label, encoded(seed, kind)))
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    for sample in samples():
        path = root / sample.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sample.content)
    return root


def pack(data: Path, out: Path, *options: str) -> list[Path]:
    """Returns the shards."""
    command = [PROGRAM, "pack", "--data", str(data), "--out", str(out), *options]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    names = {path.name for path in out.iterdir()}
    assert "classes.txt" in names
    # JPEG files have seek indexes, CIFAR's PNG files have none.
    return sorted(out / name for name in names - {"classes.txt", "seek-index.bin"})


@pytest.fixture(scope="module")
def tar(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shards = pack(folder, tmp_path_factory.mktemp("tar") / "out", "--format", "tar")
    assert [shard.name for shard in shards] == ["data-000000.tar"]
    return shards[0]


@pytest.fixture(scope="module")
def parquet(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shards = pack(folder, tmp_path_factory.mktemp("hub") / "out", "--format", "parquet")
    assert [shard.name for shard in shards] == ["data-00000-of-00001.parquet"]
    return shards[0]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """330 images of 10 to 60 KB, in a folder `train`."""
    root = tmp_path_factory.mktemp("large")
    random = np.random.default_rng(1)
    for i in range(330):
        pixels = random.integers(0, 256, (100, 50 + i % 100, 3), dtype=np.uint8)
        path = root / "train" / f"class_{i % 3}" / f"{i:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(Image.fromarray(pixels), quality=95))
    return root


def test_tarfile(tar):
    members = {}
    with tarfile.open(tar) as archive:
        for member in archive:
            assert (member.mode, member.mtime, member.uid, member.gid) == (0o444, 0, 0, 0)
            assert member.isreg()
            members[member.name] = archive.extractfile(member).read()
    wanted = {}
    for sample in samples():
        wanted[f"{sample.key}.{sample.extension}"] = sample.content
        wanted[f"{sample.key}.cls"] = str(sample.label).encode()
    assert list(members) == list(wanted)
    assert members == wanted
    assert (tar.parent / "classes.txt").read_text("utf-8").splitlines() == CLASSES


def test_webdataset(tar):
    wds = pytest.importorskip("webdataset")
    read = list(wds.WebDataset(str(tar), shardshuffle=False))
    assert [sample["__key__"] for sample in read] == [sample.key for sample in samples()]
    for got, sample in zip(read, samples()):
        assert got[sample.extension] == sample.content
    # As programs read them: pictures and labels, whichever the extension of a picture is.
    decoded = wds.WebDataset(str(tar), shardshuffle=False).decode("rgb8")
    pairs = list(decoded.to_tuple("jpg;png;webp;tif;bmp;ppm", "cls"))
    assert [label for _, label in pairs] == [sample.label for sample in samples()]
    for (pixels, _), sample in zip(pairs, samples()):
        if sample.extension in ("jpg", "png", "ppm"):  # the others come as bytes
            wanted = np.asarray(Image.open(io.BytesIO(sample.content)))
            np.testing.assert_array_equal(pixels, wanted)


def test_webdataset_reads_many_shards(large, tmp_path):
    wds = pytest.importorskip("webdataset")
    options = ("--format", "tar", "--split", "train", "--shard-mib", "1")
    shards = pack(large, tmp_path / "out", *options)
    assert [shard.name for shard in shards] == [f"train-{i:06}.tar" for i in range(len(shards))]
    assert len(shards) > 2
    assert all(shard.stat().st_size <= 1 << 20 for shard in shards)
    urls = str(tmp_path / "out" / f"train-{{000000..{len(shards) - 1:06}}}.tar")
    read = [(s["__key__"], s["jpg"], s["cls"]) for s in wds.WebDataset(urls, shardshuffle=False)]
    files = sorted(large.rglob("*.jpg"))
    assert read == [
        (str(f.relative_to(large).with_suffix("")), f.read_bytes(), f.parent.name[-1:].encode())
        for f in files
    ]


def test_pyarrow(parquet):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    file = pq.ParquetFile(parquet)
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    assert file.schema_arrow.equals(pa.schema([("image", image), ("label", pa.int64())]))
    assert file.read().to_pylist() == [
        {"image": {"bytes": sample.content, "path": sample.path}, "label": sample.label}
        for sample in samples()
    ]
    features = {
        "image": {"_type": "Image"},
        "label": {"names": CLASSES, "_type": "ClassLabel"},
    }
    assert json.loads(file.metadata.metadata[b"huggingface"]) == {"info": {"features": features}}
    for column in range(3):
        chunk = file.metadata.row_group(0).column(column)
        assert (chunk.compression, chunk.has_dictionary_page) == ("UNCOMPRESSED", False)
        assert set(chunk.encodings) == {"PLAIN", "RLE"}
        assert chunk.num_values == len(samples())
    # Data that are not compressed lie there as they are.
    assert all(sample.content in parquet.read_bytes() for sample in samples())


def test_pyarrow_reads_many_shards_and_row_groups(large, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    options = ("--format", "parquet", "--split", "train", "--shard-mib", "2")
    shards = pack(large, tmp_path / "out", *options)
    count = len(shards)
    assert [s.name for s in shards] == [f"train-{i:05}-of-{count:05}.parquet" for i in range(count)]
    assert count > 1
    assert all(shard.stat().st_size <= 2 << 20 for shard in shards)
    groups = [
        [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        for file in map(pq.ParquetFile, shards)
    ]
    assert all(rows == 100 for shard in groups for rows in shard[:-1])
    assert max(map(len, groups)) > 1, "several row groups in a shard"
    rows = [row for shard in shards for row in pq.read_table(shard).to_pylist()]
    files = sorted(large.rglob("*.jpg"))
    assert [row["image"]["path"] for row in rows] == [str(f.relative_to(large)) for f in files]
    assert [row["image"]["bytes"] for row in rows] == [f.read_bytes() for f in files]
    # A row can be found by its group alone.
    last = pq.ParquetFile(shards[0]).read_row_group(1).to_pylist()
    assert last[0]["image"]["path"] == str(files[100].relative_to(large))


def test_datasets_reads_parquet(parquet, tmp_path):
    datasets = pytest.importorskip("datasets")
    read = datasets.load_dataset(
        "parquet", data_files=str(parquet), split="train", cache_dir=str(tmp_path)
    )
    assert isinstance(read.features["image"], datasets.Image)
    assert isinstance(read.features["label"], datasets.ClassLabel)
    assert read.features["label"].names == CLASSES
    assert read["label"] == [sample.label for sample in samples()]
    for row, sample in zip(read, samples()):
        wanted = Image.open(io.BytesIO(sample.content))
        np.testing.assert_array_equal(np.asarray(row["image"]), np.asarray(wanted))


def test_datasets_reads_tar(large, tmp_path):
    datasets = pytest.importorskip("datasets")
    shards = pack(large, tmp_path / "out", "--format", "tar", "--shard-mib", "4")
    read = datasets.load_dataset(
        "webdataset",
        data_files=[str(shard) for shard in shards],
        split="train",
        cache_dir=str(tmp_path / "cache"),
    )
    files = sorted(large.rglob("*.jpg"))
    assert read["__key__"] == [str(f.relative_to(large).with_suffix("")) for f in files]
    assert read["cls"] == [int(f.parent.name[-1]) for f in files]
    wanted = np.asarray(Image.open(files[7]))
    np.testing.assert_array_equal(np.asarray(read[7]["jpg"]), wanted)


@pytest.mark.parametrize("kind", ["tar", "parquet"])
def test_cifar_becomes_png_with_the_same_pixels(tmp_path, kind):
    count = 1650  # more row groups than Thrift's short form of a list has elements
    random = np.random.default_rng(2)
    pixels = random.integers(0, 256, (count, 3, 32, 32), dtype=np.uint8)
    labels = random.integers(0, 10, count).tolist()
    data = tmp_path / "data"
    data.mkdir()
    records = [bytes([label]) + image.tobytes() for label, image in zip(labels, pixels)]
    (data / "test_batch.bin").write_bytes(b"".join(records))
    shards = pack(data, tmp_path / "out", "--format", kind, "--split", "test")
    if kind == "tar":
        with tarfile.open(shards[0]) as archive:
            read = {member.name: archive.extractfile(member).read() for member in archive}
        keys = [f"test_batch_bin:{i}" for i in range(count)]
        files = [read[f"{key}.png"] for key in keys]
        assert [int(read[f"{key}.cls"]) for key in keys] == labels
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(shards[0]).to_pylist()
        files = [row["image"]["bytes"] for row in rows]
        assert [row["image"]["path"] for row in rows] == [
            f"test_batch.bin:{i}.png" for i in range(count)
        ]
        assert [row["label"] for row in rows] == labels
    for file, wanted in zip(files, pixels, strict=True):
        decoded = Image.open(io.BytesIO(file))
        assert (decoded.format, decoded.mode) == ("PNG", "RGB")
        np.testing.assert_array_equal(np.asarray(decoded), wanted.transpose(1, 2, 0))
