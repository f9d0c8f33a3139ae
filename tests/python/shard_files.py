"""Writes pictures in the forms that sources read, and opens them."""

from __future__ import annotations

import csv
import io
import json
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

import stoker

NAMES = [f"class_{i}" for i in range(3)]


def entries(pictures: Path) -> list[tuple[str, bytes, int]]:
    """Path, content and label of each picture, in the order of stoker.folder()."""
    paths = sorted(path.relative_to(pictures).as_posix() for path in pictures.glob("*/*.jpg"))
    return [(path, (pictures / path).read_bytes(), NAMES.index(path[:7])) for path in paths]


def tar_file(path: Path, members: list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as shard:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """A record of a TFRecord file."""

    def masked(part: bytes) -> bytes:
        crc = crc32c(part)
        return struct.pack("<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF)

    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def message(field: int, content: bytes) -> bytes:
    """A field of protobuf with a length."""
    size, length = b"", len(content)
    while length > 127:
        size += bytes([length & 127 | 128])
        length >>= 7
    return bytes([field << 3 | 2]) + size + bytes([length]) + content


def example(image: bytes, label: int) -> bytes:
    def entry(key: str, feature: bytes) -> bytes:
        return message(1, message(1, key.encode()) + message(2, feature))

    image_list = message(1, message(1, image))
    label_list = message(3, message(1, bytes([label])))
    return message(1, entry("image/encoded", image_list) + entry("image/class/label", label_list))


def mds_folder(folder: Path, samples: list[tuple[bytes, int]]) -> None:
    folder.mkdir()
    settings = {
        "format": "mds",
        "column_names": ["image", "label"],
        "column_encodings": ["jpeg", "int"],
        "column_sizes": [None, 8],
        "compression": None,
        "hashes": [],
        "size_limit": 1 << 26,
        "version": 2,
    }
    config = json.dumps(settings, sort_keys=True).encode()
    bodies = [struct.pack("<I", len(i)) + i + struct.pack("<q", label) for i, label in samples]
    begin = 4 + 4 * (len(bodies) + 1) + len(config)
    offsets = np.cumsum([begin, *map(len, bodies)]).astype("<u4")
    content = struct.pack("<I", len(bodies)) + offsets.tobytes() + config + b"".join(bodies)
    (folder / "shard.00000.mds").write_bytes(content)
    raw = {"basename": "shard.00000.mds", "bytes": len(content), "hashes": {}}
    shard = {**settings, "samples": len(bodies), "raw_data": raw, "zip_data": None}
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [shard]}))


def parquet_file(path: Path, samples: list[tuple[bytes, int]], compression: str) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    images = pa.array([{"bytes": image, "path": None} for image, _ in samples])
    table = pa.table({"image": images, "label": pa.array([label for _, label in samples])})
    pq.write_table(table, path, compression=compression, row_group_size=10)


def make(kind: str, pictures: Path, at: Path) -> stoker.Source:
    """The pictures as a source of this kind, made in the folder `at`."""
    if kind == "folder":
        return stoker.folder(pictures)
    all_entries = entries(pictures)
    paths, images, labels = map(list, zip(*all_entries))
    samples = list(zip(images, labels))
    if kind == "tar":
        half = len(all_entries) // 2
        for i, part in enumerate((all_entries[:half], all_entries[half:])):
            tar_file(at / f"shard-{i}.tar", [(path, content) for path, content, _ in part])
        return stoker.tar(at / "shard-{0..1}.tar")
    if kind == "csv":
        with (at / "list.csv").open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(["path", "label"])
            writer.writerows((pictures / path, NAMES[label]) for path, _, label in all_entries)
        return stoker.csv(at / "list.csv")
    if kind == "tfrecord":
        (at / "a.tfrecord").write_bytes(b"".join(record(example(*each)) for each in samples))
        return stoker.tfrecord(at / "a.tfrecord")
    if kind == "mds":
        mds_folder(at / "mds", samples)
        return stoker.mds(at / "mds")
    if kind == "parquet":
        parquet_file(at / "a.parquet", samples, "none")
        return stoker.parquet(at / "a.parquet")
    if kind == "files":
        return stoker.files(paths, labels, classes=NAMES, root=pictures)
    if kind == "memory":
        return stoker.memory(images, [NAMES[label] for label in labels])
    assert kind == "huggingface"
    return stoker.huggingface(hub_dataset(samples))


def hub_dataset(samples: list[tuple[bytes, int]]):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)}
    )
    images = [{"bytes": image, "path": None} for image, _ in samples]
    columns = {"image": images, "label": [label for _, label in samples]}
    return datasets.Dataset.from_dict(columns, features=features)


KINDS = ["tar", "csv", "tfrecord", "mds", "parquet", "files", "memory", "huggingface"]
