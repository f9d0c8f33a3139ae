"""Targets of any length: texts and lists of numbers, out of shards into batches."""

from __future__ import annotations

import io
import json
import os
import pickle

import numpy as np
import pytest
import stoker
from conftest import run_program
from item_sets import pixels, png
from shard_files import tar_file

PROGRAM = os.environ.get("STOKER_PROGRAM", "")
SAMPLES = 13


def caption(i):
    return f"a picture of {i}, \N{DOG FACE}"


def tokens(i):
    return list(range(100 * i, 100 * i + i % 4))


@pytest.fixture
def tar(tmp_path):
    members = []
    for i in range(SAMPLES):
        ids = io.BytesIO()
        np.save(ids, np.array(tokens(i), "int32"))
        fields = {"captions": [caption(i), f"again {i}"], "t": tokens(i)}
        members += [
            (f"{i:03}.png", png(pixels(i))),
            (f"{i:03}.txt", caption(i).encode()),
            (f"{i:03}.json", json.dumps(fields).encode()),
            (f"{i:03}.ids.npy", ids.getvalue()),
        ]
    tar_file(tmp_path / "a.tar", members)
    return tmp_path / "a.tar"


def opened(path, *fields):
    return stoker.open(path, label_from="none", targets_from=fields)


def loader(source, **options):
    usual = {"batch_size": 4, "size": 16, "seed": 1, "workers": 1}
    return stoker.Loader(source, **{**usual, **options})


def test_texts(tar):
    source = opened(tar, "txt:text")
    assert source.targets == {"txt": ("text", (None,))}
    assert source[3].targets == {"txt": [caption(3)]}
    assert pickle.loads(pickle.dumps(source))[3].targets == source[3].targets
    with loader(source) as feed:
        for batch in feed:
            assert batch.texts == [caption(i) for i in np.asarray(batch.ids)]
            assert batch.targets == {"txt": batch.texts}


def test_several_texts_and_numbers(tar):
    source = opened(tar, "txt:text", "json:captions:text", "ids.npy:int64[]", "json:t:int32[]")
    assert source.targets["ids.npy"] == ("int64", (None,))
    assert source[7].targets["captions"] == [caption(7), "again 7"]
    assert np.asarray(source[7].targets["t"]).tolist() == tokens(7)
    with loader(source, texts="all", shuffle=False) as feed:
        for batch in feed:
            ids = np.asarray(batch.ids).tolist()
            with pytest.raises(AttributeError, match="several texts, txt, captions: see targets"):
                _ = batch.texts
            targets = batch.targets
            lists = ["ids.npy", "ids.npy_offsets", "t", "t_offsets"]
            assert list(targets) == ["txt", "captions", *lists]
            assert targets["captions"] == [[caption(i), f"again {i}"] for i in ids]
            values, offsets = map(np.asarray, (targets["ids.npy"], targets["ids.npy_offsets"]))
            assert (values.dtype, offsets.dtype) == (np.int64, np.int32)
            assert len(offsets) == len(batch) + 1
            rows = [values[offsets[r] : offsets[r + 1]].tolist() for r in range(len(ids))]
            assert rows == [tokens(i) for i in ids]
            padded, lengths = map(np.asarray, batch.padded("t", multiple=8, value=-1))
            width = 8 if any(i % 4 for i in ids) else 0
            assert (padded.dtype, padded.shape) == (np.int32, (len(ids), width))
            assert lengths.tolist() == [i % 4 for i in ids]
            for row, i in enumerate(ids):
                assert padded[row].tolist() == tokens(i) + [-1] * (width - i % 4)


def test_random_texts_and_dropped_ones(tar):
    source = opened(tar, "json:captions:text")
    seen = set()
    with loader(source, texts="random") as feed:
        for _ in range(4):
            for batch in feed:
                for i, text in zip(np.asarray(batch.ids).tolist(), batch.texts, strict=True):
                    assert text in (caption(i), f"again {i}")
                    seen.add((i, text))
    assert len(seen) > SAMPLES + 5
    augment = stoker.augment.resize_center_crop(16) | stoker.augment.drop_text(p=1)
    with loader(source, augment=augment) as feed:
        assert [text for batch in feed for text in batch.texts] == [""] * 16


def test_a_state_goes_on_with_the_same_texts(tar):
    source = opened(tar, "json:captions:text")
    with loader(source, texts="random") as feed:
        batches = iter(feed)
        next(batches)
        state = feed.state_dict()
        rest = [batch.texts for batch in batches]
    with loader(source, texts="random") as feed:
        feed.load_state_dict(state)
        assert [batch.texts for batch in feed] == rest
    with loader(source) as feed, pytest.raises(ValueError, match="state"):
        feed.load_state_dict(state)


def listed(count=SAMPLES):
    return stoker.memory([png(pixels(i)) for i in range(count)], [0] * count)


def test_tables_of_a_program():
    texts = [caption(i) if i % 2 else [caption(i), f"again {i}"] for i in range(SAMPLES)]
    lists = {"words": texts, "t:int32[]": [tokens(i) for i in range(SAMPLES)]}
    source = stoker.with_targets(stoker.subset(listed(), range(SAMPLES)), lists)
    assert source.targets == {"words": ("text", (None,)), "t": ("int32", (None,))}
    assert source[4].targets["words"] == [caption(4), "again 4"]
    again = pickle.loads(pickle.dumps(source))
    assert again[5].targets["words"] == [caption(5)]
    with loader(stoker.subset(source, [3, 7, 8])) as feed:
        (batch,) = feed
        chosen = [3, 7, 8, 3]
        order = [chosen[i] for i in np.asarray(batch.ids)]
        assert batch.texts == [caption(i) for i in order]
        padded, lengths = batch.padded("t", value=-1)
        assert np.asarray(lengths).tolist() == [i % 4 for i in order]
        assert np.asarray(padded).shape == (4, 3)


def test_the_same_texts_have_one_digest(tar):
    texts = [[caption(i), f"again {i}"] for i in range(SAMPLES)]
    states = []
    for texts in (texts, texts, [*texts[:-1], ["other"]]):
        with loader(stoker.with_targets(listed(), {"c": texts})) as feed:
            states.append(feed.state_dict())
    assert states[0] == states[1] != states[2]


def test_a_program_s_mistakes_name_the_place():
    def refusal(error, **targets):
        with pytest.raises(error) as raised:
            stoker.with_targets(listed(3), targets)
        return str(raised.value)

    assert refusal(ValueError, a=["x"]) == "targets['a'] has 1 rows, and there are 3 samples"
    assert "targets['a'][1] is 7, must be a text" in refusal(TypeError, a=["x", 7, "y"])
    assert "which has a NUL" in refusal(ValueError, a=["x", "a\0b", "y"])
    assert "targets['a:uint8[]'][2] is [300]" in refusal(
        TypeError, **{"a:uint8[]": [[1], [], [300]]}
    )
    # No text is no caption.
    source = stoker.with_targets(listed(3), {"a": ["x", None, "y"]})
    with loader(source, batch_size=3, shuffle=False, max_bad=2) as feed:
        batch = next(iter(feed))
        assert batch.texts == ["x", "", "y"]
        assert np.asarray(batch.weights).tolist() == [1, 0, 1]


def test_files_beside_the_images_of_a_folder(tmp_path):
    for i in range(SAMPLES):
        (tmp_path / f"c{i % 2}").mkdir(exist_ok=True)
        (tmp_path / f"c{i % 2}/{i:02}.png").write_bytes(png(pixels(i)))
        (tmp_path / f"c{i % 2}/{i:02}.txt").write_text(caption(i))
    source = stoker.open(tmp_path, targets_from=["txt:text"])
    with loader(pickle.loads(pickle.dumps(source))) as feed:
        for batch in feed:
            assert batch.texts == [caption(int(name[3:5])) for name in batch.names]


def test_other_machines_are_told_how(tar):
    from stoker._remote import Filler, RunningWorkers, Workers

    source = opened(tar, "json:captions:text")

    class Told(RunningWorkers, Workers):
        def begin(self, _):
            return self

        def serve(self, _, job):
            self.job = job

        def close(self):
            pass

    told = Told()
    options = {"texts": "random", "max_target_bytes": 64, "too_long": "cut"}
    with loader(source, remote=told, **options):
        Filler(source, 1).begin(pickle.loads(pickle.dumps(told.job)))  # of the same fingerprint


class Items:
    """Items with a caption, tokens and an age."""

    def __init__(self, broken=()):
        self.broken = dict(broken)

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        values = {"c": [caption(i), "again"], "age": 10 * i, "t": np.array(tokens(i))}
        return png(pixels(i)), {**values, **self.broken.get(i, {})}


FORMS = {"c": ("text", None), "age": ("int64", ()), "t": ("int32", None)}


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("annotated", [False, True])
def test_items_of_a_program(processes, annotated):
    items = Items()
    options = {}
    if annotated:
        items = [(*items[i], {"boxes": [[0, 0, 4, 4]], "labels": [i % 3]}) for i in range(SAMPLES)]
        options = {"annotations": ("boxes", "labels"), "class_names": ["a", "b", "c"]}
    source = stoker.dataset(items, processes=processes, targets=FORMS, **options)
    assert source.targets == {"c": ("text", (None,)), "age": ("int64", ()), "t": ("int32", (None,))}
    assert source[6].targets["c"] == [caption(6), "again"]
    with loader(source, texts="all") as feed:
        for batch in feed:
            ids = np.asarray(batch.ids).tolist()
            assert batch.texts == [[caption(i), "again"] for i in ids]
            assert np.asarray(batch.targets["age"]).tolist() == [10 * i for i in ids]
            assert np.asarray(batch.padded("t")[1]).tolist() == [i % 4 for i in ids]
            if annotated:
                assert np.asarray(batch.targets["labels"])[:, 0].tolist() == [i % 3 for i in ids]


def test_items_that_are_wrong_are_bad_samples(tmp_path):
    broken = {1: {"c": 7}, 2: {"t": [1 << 40]}, 3: {"c": None}, 4: {"c": "\ud800"}}
    bad = tmp_path / "bad.jsonl"
    source = stoker.dataset(Items(broken), processes=False, targets=FORMS)
    options = {"batch_size": SAMPLES, "shuffle": False, "max_bad": 5, "epochs": 1}
    with loader(source, quarantine=bad, **options) as feed:
        weights = np.asarray(next(iter(feed)).weights)
        assert np.flatnonzero(weights == 0).tolist() == [1, 2, 3, 4]
    reasons = [json.loads(line)["message"] for line in bad.read_text().splitlines()]
    assert "gives the target 'c', which is 7, must be a text" in reasons[0]
    assert "gives the target 't', which is [1099511627776]" in reasons[1]
    assert "target 'c' has no text" in reasons[2]
    assert "surrogates not allowed" in reasons[3]
    with pytest.raises(TypeError, match="'c'.* is .*'text', 3.*, must be a type"):
        stoker.dataset(Items(), targets={"c": ("text", 3)})


def test_huggingface(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = {
        "image": [{"bytes": png(pixels(i)), "path": None} for i in range(SAMPLES)],
        "text": [None if i == 5 else caption(i) for i in range(SAMPLES)],
        "ids": [tokens(i) for i in range(SAMPLES)],
    }
    features = {"text": datasets.Value("string"), "ids": datasets.List(datasets.Value("int32"))}
    dataset = datasets.Dataset.from_dict(
        rows, features=datasets.Features({"image": datasets.Image(), **features})
    ).select(range(SAMPLES - 1, -1, -1))
    source = stoker.huggingface(dataset, label_from="none", targets_from=["text", "ids:int64[]"])
    assert source.targets == {"text": ("text", (None,)), "ids": ("int64", (None,))}
    assert source[0].targets["text"] == [caption(SAMPLES - 1)]
    assert np.asarray(source[1].targets["ids"]).tolist() == tokens(SAMPLES - 2)
    with loader(source, batch_size=SAMPLES, shuffle=False, max_bad=2) as feed:
        texts = next(iter(feed)).texts
        assert texts == ["" if i == 5 else caption(i) for i in range(SAMPLES - 1, -1, -1)]


def test_bad_ones_are_bad_samples(tmp_path):
    members = []
    texts = [b"good", b"\xff", None, b"x" * 65, b"good too"]
    for i, text in enumerate(texts):
        members.append((f"{i}.png", png(pixels(i))))
        if text is not None:
            members.append((f"{i}.txt", text))
    tar_file(tmp_path / "a.tar", members)
    source = opened(tmp_path / "a.tar", "txt:text")
    bad = tmp_path / "bad.jsonl"
    options = {"batch_size": 5, "shuffle": False, "max_bad": 5, "epochs": 1}
    with loader(source, max_target_bytes=64, quarantine=bad, **options) as feed:
        (batch,) = feed
        assert batch.texts == ["good", "", "", "", "good too"]
        assert np.asarray(batch.weights).tolist() == [1, 0, 0, 0, 1]
    lines = [json.loads(line) for line in bad.read_text().splitlines()]
    assert [(line["name"], line["message"]) for line in lines] == [
        ("a.tar/1.png", "target 'txt' is no UTF-8 at byte 0 of 2"),
        ("a.tar/2.png", "target 'txt' is not there: its key has no .txt"),
        ("a.tar/3.png", "target 'txt' has 65 bytes, a row has max_bytes=64 of them"),
    ]
    with loader(source, max_target_bytes=64, too_long="cut", **options) as feed:
        assert next(iter(feed)).texts[3] == "x" * 64
    with pytest.raises(OSError, match="a.tar/2.png: target 'txt' is not there"):
        _ = source[2].targets


def test_what_cannot_be_is_refused(tar):
    source = opened(tar, "txt:text", "json:t:int32[]")
    with pytest.raises(ValueError, match="texts is 'last', must be one of 'first', 'random', 'al"):
        loader(source, texts="last")
    with pytest.raises(ValueError, match="max_target_bytes is 7, must be 8 to"):
        loader(source, max_target_bytes=7)
    with pytest.raises(ValueError, match="too_long is 'wrap'"):
        loader(source, too_long="wrap")
    with pytest.raises(ValueError, match="drop_text, but the samples have no texts"):
        loader(opened(tar), augment="resize_center_crop(16) | drop_text")
    with loader(source) as feed:
        batch = next(iter(feed))
        with pytest.raises(KeyError, match="x"):
            batch.padded("x")
        with pytest.raises(ValueError, match="'txt': text cannot be padded"):
            batch.padded("txt")
        with pytest.raises(ValueError, match="value has the value 0.5, which is no int32"):
            batch.padded("t", value=0.5)
        with pytest.raises(ValueError, match="multiple is 0"):
            batch.padded("t", multiple=0)
    with loader(opened(tar)) as feed, pytest.raises(AttributeError, match="no texts"):
        _ = next(iter(feed)).texts


def test_adapters(tar):
    torch = pytest.importorskip("torch")
    import stoker.torch

    source = opened(tar, "txt:text", "json:t:int32[]")
    batches = list(stoker.torch.DataLoader(source, 5, size=16, num_workers=1))
    rows = [text for _, _, targets in batches for text in targets["txt"]]
    assert rows == [caption(i) for i in range(SAMPLES)]  # without the rows that fill up
    assert batches[-1][2]["t_offsets"].tolist() == [0, 2, 5, 5]
    assert batches[-1][2]["t"].dtype == torch.int32


@pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason="STOKER_PROGRAM names no program")
def test_dump_and_peek_show_them(tar, tmp_path):
    data = ["--data", tar, "--label-from", "none", "--target-from", "json:captions:text"]
    lists = ["--target-from", "json:t:int32[]", "--batch", "4", "--seed", "1", "--texts", "random"]
    size = ["--size", "16", "--augment", "resize_center_crop(16) | drop_text(0.3)"]
    done = run_program([PROGRAM, "dump", *data, *lists, *size, "--out", tmp_path / "out"])
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "out/rows.jsonl").read_text().splitlines()]
    source = opened(tar, "json:captions:text", "json:t:int32[]")
    augment = "resize_center_crop(16) | drop_text(0.3)"
    with loader(source, texts="random", augment=augment) as feed:
        for batch in feed:
            shown = [row["texts"]["captions"] for row in rows if row["step"] == batch.step]
            assert batch.texts == shown
            for name in ("t", "t_offsets"):
                written = np.load(tmp_path / f"out/target_{name}_{batch.step:05}.npy")
                np.testing.assert_array_equal(written, np.asarray(batch.targets[name]))
    assert "" in [row["texts"]["captions"] for row in rows]
    done = run_program([PROGRAM, "peek", *data, "--size", "16", "--out", tmp_path / "sheet.png"])
    assert done.returncode == 0, done.stderr
    done = run_program([PROGRAM, "dump", *data, *lists, "--max-target-bytes", "7", "--out", "x"])
    assert "--max-target-bytes" in done.stderr
