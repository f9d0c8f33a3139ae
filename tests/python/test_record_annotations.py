"""Objects and label images in the records of shards."""

from __future__ import annotations

import io
import json
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import jpeg, picture
from PIL import Image
from shard_files import message, record, tar_file

import stoker

COUNT = 5
IMAGES = [jpeg(picture(number, 64, 32)) for number in range(COUNT)]


def objects_of(number: int) -> list[dict[str, Any]]:
    """One to three objects, with numbers that float32 has."""
    return [
        {
            "bbox": [4.5 + place, 2, 16, 8.25 + number],
            "category": (number + place) % 3,
            "id": 10 * number + place,
            "area": 100.5,
            "iscrowd": place == 1,
        }
        for place in range(1 + number % 3)
    ]


def lists_of(number: int) -> dict[str, list[Any]]:
    rows = objects_of(number)
    return {field: [row[field] for row in rows] for field in rows[0]}


def label_image(number: int) -> bytes:
    out = io.BytesIO()
    pixels = np.full((32, 64), number, np.uint8)
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def tar_of(folder: Path) -> tuple[Path, dict[str, str]]:
    members = []
    for number in range(COUNT):
        coco = {"annotations": objects_of(number), "width": 64, "height": 32}
        members.append((f"{number}.jpg", IMAGES[number]))
        members.append((f"{number}.json", json.dumps(coco).encode()))
        members.append((f"{number}.seg.png", label_image(number)))
    tar_file(folder / "a.tar", members)
    return folder / "a.tar", {"objects_from": "json", "label_image_from": "seg.png"}


def feature(values: list[Any]) -> bytes:
    if values and isinstance(values[0], bytes):
        return message(1, b"".join(message(1, value) for value in values))
    if values and isinstance(values[0], float):
        return message(2, message(1, struct.pack(f"<{len(values)}f", *values)))
    assert all(0 <= value < 128 for value in values)
    return message(3, message(1, bytes(values)))


def tfrecord_of(folder: Path) -> tuple[Path, dict[str, str]]:
    content = b""
    for number in range(COUNT):
        lists = lists_of(number)
        x, y, width, height = (list(map(float, side)) for side in zip(*lists["bbox"]))
        features = {
            "image/encoded": [IMAGES[number]],
            "image/width": [64],
            "image/height": [32],
            "image/source_id": [str(number).encode()],
            "image/object/bbox/xmin": [left / 64 for left in x],
            "image/object/bbox/ymin": [top / 32 for top in y],
            "image/object/bbox/xmax": [(a + b) / 64 for a, b in zip(x, width)],
            "image/object/bbox/ymax": [(a + b) / 32 for a, b in zip(y, height)],
            "image/object/class/label": lists["category"],
            "image/object/is_crowd": [int(each) for each in lists["iscrowd"]],
            "image/object/area": lists["area"],
            "image/segmentation/class/encoded": [label_image(number)],
        }
        entries = [
            message(1, message(1, key.encode()) + message(2, feature(values)))
            for key, values in features.items()
        ]
        content += record(message(1, b"".join(entries)))
    (folder / "a.tfrecord").write_bytes(content)
    return folder / "a.tfrecord", {
        "objects_from": "image/object", "label_image_from": "image/segmentation/class/encoded",
    }  # fmt: skip


def mds_of(folder: Path) -> tuple[Path, dict[str, str]]:
    settings = {
        "format": "mds",
        "column_names": ["image", "mask", "objects"],
        "column_encodings": ["jpeg", "png", "json"],
        "column_sizes": [None, None, None],
        "compression": None,
        "hashes": [],
        "size_limit": 1 << 26,
        "version": 2,
    }
    bodies = []
    for number in range(COUNT):
        values = [IMAGES[number], label_image(number), json.dumps(lists_of(number)).encode()]
        bodies.append(struct.pack("<3I", *map(len, values)) + b"".join(values))
    config = json.dumps(settings).encode()
    begin = 4 + 4 * (COUNT + 1) + len(config)
    offsets = np.cumsum([begin, *map(len, bodies)]).astype("<u4")
    content = struct.pack("<I", COUNT) + offsets.tobytes() + config + b"".join(bodies)
    (folder / "shard.00000.mds").write_bytes(content)
    return folder / "shard.00000.mds", {"objects_from": "objects", "label_image_from": "mask"}


def parquet_of(folder: Path) -> tuple[Path, dict[str, str]]:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    def images(values: list[bytes]) -> Any:
        return pa.array([{"bytes": value, "path": None} for value in values])

    table = pa.table({
        "image_id": pa.array(range(COUNT)),
        "image": images(IMAGES),
        "mask": images([label_image(number) for number in range(COUNT)]),
        "objects": pa.array([lists_of(number) for number in range(COUNT)]),
        "things": pa.array([objects_of(number) for number in range(COUNT)]),
    })  # fmt: skip
    pq.write_table(table, folder / "a.parquet", row_group_size=3)
    return folder / "a.parquet", {"objects_from": "objects", "label_image_from": "mask"}


FORMATS = {"tar": tar_of, "tfrecord": tfrecord_of, "mds": mds_of, "parquet": parquet_of}


def expected(number: int, has_ids: bool) -> dict[str, Any]:
    lists = lists_of(number)
    return {
        "boxes": [[x, y, x + width, y + height] for x, y, width, height in lists["bbox"]],
        "labels": lists["category"],
        "ids": lists["id"] if has_ids else list(range(len(lists["id"]))),
        "area": lists["area"],
        "iscrowd": lists["iscrowd"],
    }


@pytest.mark.parametrize("format_name", FORMATS)
def test_open_reads_objects_and_label_images_of_records(format_name: str, tmp_path: Path) -> None:
    path, fields = FORMATS[format_name](tmp_path)
    source = stoker.open(path, **fields)
    assert len(source) == COUNT and not source.classes
    for number in range(COUNT):
        found = source[number].annotations
        for entry, values in expected(number, format_name != "tfrecord").items():
            assert list(found[entry]) == values, (number, entry)
    again = pickle.loads(pickle.dumps(source))
    assert again.fingerprint == source.fingerprint
    assert again[3].annotations == source[3].annotations
    same = getattr(stoker, format_name)(path, **fields)
    assert same.fingerprint == source.fingerprint

    annotations = stoker.Annotations(max_objects=4)
    loader = stoker.Loader(source, batch_size=COUNT, size=32, shuffle=False, workers=1,
                           augment="resize((32, 32))", annotations=annotations)  # fmt: skip
    with loader:
        batch = next(iter(loader))
        counts = np.asarray(batch.targets["object_count"])
        assert counts.tolist() == [len(objects_of(number)) for number in range(COUNT)]
        labels = np.asarray(batch.targets["label_image"])
        assert labels[:, 16, 16].tolist() == list(range(COUNT))


def test_a_list_of_structs_is_the_same(tmp_path: Path) -> None:
    path, _ = parquet_of(tmp_path)
    lists = stoker.parquet(path, objects_from="objects")
    structs = stoker.parquet(path, objects_from="things")
    for number in range(COUNT):
        assert structs[number].annotations == lists[number].annotations
        assert structs[number].annotations["image_id"] == number


def test_as_the_library_datasets_gives_them(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    path, fields = parquet_of(tmp_path)
    features = datasets.Features({
        "image_id": datasets.Value("int64"),
        "image": datasets.Image(),
        "mask": datasets.Image(),
        "objects": {
            "bbox": [[datasets.Value("float32")]],
            "category": [datasets.ClassLabel(names=["cat", "dog", "bird"])],
            "id": [datasets.Value("int64")],
            "area": [datasets.Value("float32")],
            "iscrowd": [datasets.Value("bool")],
        },
    })  # fmt: skip
    columns = {
        "image_id": list(range(COUNT)),
        "image": [{"bytes": image, "path": None} for image in IMAGES],
        "mask": [{"bytes": label_image(number), "path": None} for number in range(COUNT)],
        "objects": [lists_of(number) for number in range(COUNT)],
    }
    dataset = datasets.Dataset.from_dict(columns, features=features)
    dataset.to_parquet(str(path))
    own = stoker.open(path, **fields)
    theirs = stoker.huggingface(dataset, image_from="image", **fields)
    assert own.annotations["class_names"] == theirs.annotations["class_names"]
    for number in range(COUNT):
        assert own[number].annotations == theirs[number].annotations


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    path, _ = tar_of(tmp_path)
    with pytest.raises(RuntimeError, match=r"no key has \.jsn|has no objects in 'jsn'"):
        stoker.open(path, objects_from="jsn")
    with pytest.raises(TypeError, match="objects_from is 3"):
        stoker.open(path, objects_from=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="objects_from"):
        stoker.open(path, objects_from="json", objects=tmp_path / "a.json")
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.jpg").write_bytes(IMAGES[0])
    with pytest.raises(ValueError, match="objects_from.*an image folder"):
        stoker.open(tmp_path, objects_from="json", split="all")
