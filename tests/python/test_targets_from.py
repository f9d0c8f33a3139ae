"""Targets out of shards and lists: each field arrives with its sample."""

from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pytest
import stoker
from item_sets import pixels, png
from shard_files import tar_file

SAMPLES = 13


def soft(i):
    return [i, 0.5, -1]


def checked(source, name="soft", dtype="float32"):
    """Checks a vector and "age" of every row of an epoch."""
    assert source.targets == {name: (dtype, (3,)), "age": ("int64", ())}
    with stoker.Loader(source, batch_size=4, size=16, seed=1, workers=1) as loader:
        for batch in loader:
            for row, i in enumerate(np.asarray(batch.ids).tolist()):
                np.testing.assert_array_equal(np.asarray(batch.targets[name])[row], soft(i))
                assert np.asarray(batch.targets["age"])[row] == 10 * i
    again = pickle.loads(pickle.dumps(source))
    assert np.asarray(again[3].targets["age"]) == 30


@pytest.fixture
def tar(tmp_path):
    members = []
    for i in range(SAMPLES):
        values = io.BytesIO()
        np.save(values, np.array(soft(i), "float32"))
        members += [
            (f"{i:03}.png", png(pixels(i))),
            (f"{i:03}.cls", str(i % 3).encode()),
            (f"{i:03}.json", json.dumps({"soft": soft(i), "age": 10 * i}).encode()),
            (f"{i:03}.npy", values.getvalue()),
        ]
    tar_file(tmp_path / "a.tar", members)
    return tmp_path / "a.tar"


def test_tar(tar):
    checked(stoker.tar(tar, targets_from=["json:soft", "json:age"]))
    checked(stoker.open(tar, targets_from=["npy", "json:age"]), name="npy")
    several = stoker.tar(tar, targets_from=["json:age:float32"])
    assert several.targets == {"age": ("float32", ())}
    assert stoker.tar(tar).targets == {}


def test_lists(tmp_path):
    for i in range(SAMPLES):
        (tmp_path / f"{i}.png").write_bytes(png(pixels(i)))
    rows = [f"{i}.png,{i % 3},{' '.join(map(str, soft(i)))},{10 * i}" for i in range(SAMPLES)]
    (tmp_path / "a.csv").write_text("\n".join(["path,label,soft,age", *rows]))
    checked(stoker.csv(tmp_path / "a.csv", targets_from=["soft:float32", "age"]))
    lines = [
        json.dumps({"path": f"{i}.png", "label": i % 3, "soft": soft(i), "age": 10 * i})
        for i in range(SAMPLES)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    checked(stoker.csv(tmp_path / "a.jsonl", targets_from=["soft", "age"]))


def table():
    pa = pytest.importorskip("pyarrow")
    return pa.table(
        {
            "image": [{"bytes": png(pixels(i)), "path": None} for i in range(SAMPLES)],
            "label": [i % 3 for i in range(SAMPLES)],
            "soft": pa.array([soft(i) for i in range(SAMPLES)], pa.list_(pa.float32())),
            "age": pa.array([10 * i for i in range(SAMPLES)], pa.int64()),
        }
    )


def test_parquet(tmp_path):
    written = table()
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(written, tmp_path / "a.parquet", row_group_size=5)
    checked(stoker.parquet(tmp_path / "a.parquet", targets_from=["soft", "age"]))


def test_a_data_set_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset(table()).cast_column("image", datasets.Image())
    checked(stoker.huggingface(data, targets_from=["soft", "age"]))
    order = [7, 2, 11]
    part = stoker.huggingface(data.select(order), targets_from=["age"])
    assert [int(np.asarray(sample.targets["age"])) for sample in part] == [70, 20, 110]
    with pytest.raises(ValueError, match="targets_from has 'size'; the columns are .* age"):
        stoker.huggingface(data, targets_from=["size"])


def test_what_is_refused(tar, tmp_path):
    with pytest.raises(TypeError, match="targets_from is 'age', must be a sequence of texts"):
        stoker.tar(tar, targets_from="age")
    with pytest.raises(TypeError, match=r"targets_from\[1\] is 3, must be a text"):
        stoker.tar(tar, targets_from=["npy", 3])
    with pytest.raises(RuntimeError, match="a.tar: at byte .*weight"):
        stoker.tar(tar, targets_from=["json:weight"])
    (tmp_path / "folder" / "cat").mkdir(parents=True)
    (tmp_path / "folder" / "cat" / "a.png").write_bytes(png(pixels(0)))
    with pytest.raises(ValueError, match="targets"):
        stoker.open(tmp_path / "folder", targets_from=["age"])
