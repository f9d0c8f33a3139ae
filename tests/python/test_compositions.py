"""Sources of every kind of storage with every view and every pair of views, and the feeds that
choose among samples: they give what a plain list of the samples gives, which the test changes by
itself. (Other formats with the library's views: tests/pipeline/compositions.cc.)
"""

from __future__ import annotations

import io
import json
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import WebServer
from PIL import Image
from shard_files import tar_file

import stoker

SAMPLES, HEIGHT, WIDTH = 13, 10, 12
CLASSES, NUMBERS = ["ant", "bee", "cow"], ["0", "1", "2"]


class Sample(NamedTuple):
    name: str
    label: int
    image: np.ndarray  # what decoding gives
    data: bytes | None  # None: stored raw
    targets: dict[str, Any]


@dataclass
class Made:
    """A source, and the list that it should be."""

    source: stoker.Source
    samples: list[Sample]
    classes: list[str]
    targets: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    labels_come_late: bool = False  # with the samples
    has_stamps: bool = True  # its files say when they change

    def chosen(self, source: stoker.Source, ids: list[int]) -> Made:
        return replace(self, source=source, samples=[self.samples[i] for i in ids])


def pixels(i: int, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    return np.random.default_rng(i).integers(0, 256, (height, width, 3), np.uint8)


def picture(i: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels(i)).save(out, "PPM")
    return out.getvalue()


def settled(folder: Path) -> Path:
    """Gives its files an older time: a stamp of just now does not stand for their bytes."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, (1e9, 1e9))
    return folder


def age(i: int) -> int:
    return 10 * i - 3


def soft(i: int) -> list[float]:
    return [i, 0.5, -i]


OWN = {"age": ("int64", ()), "soft": ("float32", (3,))}


def samples(name: Callable[[int], str], *, targets: bool = False) -> list[Sample]:
    def own(i: int) -> dict[str, Any]:
        return {"age": age(i), "soft": soft(i)} if targets else {}

    return [Sample(name(i), i % 3, pixels(i), picture(i), own(i)) for i in range(SAMPLES)]


# ---- Sources


def in_folder(at: Path) -> Made:
    for i in range(SAMPLES):
        (at / CLASSES[i % 3]).mkdir(exist_ok=True)
        (at / CLASSES[i % 3] / f"{i:03}.ppm").write_bytes(picture(i))
    found = samples(lambda i: f"{CLASSES[i % 3]}/{i:03}.ppm")
    return Made(stoker.folder(settled(at)), sorted(found, key=lambda sample: sample.name), CLASSES)


def in_cifar(at: Path) -> Made:
    found = []
    for part in range(5):
        records = b""
        for i in range(3 * part, min(3 * part + 3, SAMPLES)):
            image = pixels(i, 32, 32)
            records += bytes([i % 3]) + image.transpose(2, 0, 1).tobytes()
            name = f"data_batch_{part + 1}.bin:{i % 3}"
            found.append(Sample(name, i % 3, image, None, {}))
        (at / f"data_batch_{part + 1}.bin").write_bytes(records)
    source = stoker.cifar(settled(at), "train")
    return Made(source, found, list(map(str, range(10))), has_stamps=False)


def write_tar(path: Path) -> None:
    members = []
    for i in range(SAMPLES):
        values = json.dumps({"age": age(i), "soft": soft(i)}).encode()
        members.append((f"{i:03}.cls", b"%d" % (i % 3)))
        members += [(f"{i:03}.json", values), (f"{i:03}.ppm", picture(i))]
    tar_file(path, members)


def tar_with_targets(source: stoker.Source) -> Made:
    found = samples(lambda i: f"a.tar/{i:03}.ppm", targets=True)
    return Made(source, found, NUMBERS, OWN)


FIELDS = ["json:age:int64", "json:soft:float32"]


def in_tar_with_targets(at: Path) -> Made:
    write_tar(at / "a.tar")
    return tar_with_targets(stoker.tar(settled(at) / "a.tar", targets_from=FIELDS))


def of_hugging_face(_: Path) -> Made:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=CLASSES),
            "age": datasets.Value("int64"),
            "soft": datasets.Sequence(datasets.Value("float32"), 3),
        }
    )
    columns = {
        "image": [{"bytes": picture(i), "path": None} for i in range(SAMPLES)],
        "label": [i % 3 for i in range(SAMPLES)],
        "age": list(map(age, range(SAMPLES))),
        "soft": list(map(soft, range(SAMPLES))),
    }
    data = datasets.Dataset.from_dict(columns, features=features)
    source = stoker.huggingface(data, targets_from=["age", "soft"])
    found = samples(lambda i: f"#{i}", targets=True)
    return Made(source, found, CLASSES, OWN, has_stamps=False)


def in_memory(_: Path) -> Made:
    source = stoker.memory(
        [picture(i) for i in range(SAMPLES)], [CLASSES[i % 3] for i in range(SAMPLES)]
    )
    return Made(source, samples(lambda i: f"#{i}"), CLASSES, has_stamps=False)


def drawn(_: Path) -> Made:
    source = stoker.synthetic(SAMPLES, (HEIGHT, WIDTH), classes=3, seed=1)
    found = [
        Sample(each.name, i % 3, np.asarray(each.image()).copy(), None, {})
        for i, each in enumerate(source)
    ]
    return Made(source, found, source.classes, has_stamps=False)


class Items:
    """Files and paths by turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for i in range(SAMPLES):
            (folder / f"{i}.ppm").write_bytes(picture(i))

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, i: int) -> Any:
        image = picture(i) if i % 2 else self.folder / f"{i}.ppm"
        return image, i % 3, {"age": age(i), "soft": soft(i)}


def of_dataset(at: Path) -> Made:
    """Its labels come with the samples."""
    source = stoker.dataset(Items(at), processes=False, classes=CLASSES, targets=OWN)
    found = samples(lambda i: f"dataset/{i}", targets=True)
    return Made(source, found, CLASSES, OWN, labels_come_late=True, has_stamps=False)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("served")
    with WebServer(folder).running() as server:
        yield folder, server.address


def in_store(at: Path, address: str, *, wait: bool = True, cache: Path | None = None) -> Made:
    write_tar(at / "a.tar")
    kept = {} if cache is None else {"cache": str(cache), "cache_size": 1 << 20}
    store = stoker.Store(memory=1 << 20, **kept)
    path = f"{address}/a.tar"
    return tar_with_targets(stoker.tar(path, targets_from=FIELDS, store=store, wait=wait))


SOURCES = {
    "folder": in_folder,
    "cifar": in_cifar,
    "tar with targets": in_tar_with_targets,
    "huggingface": of_hugging_face,
    "memory": in_memory,
    "synthetic": drawn,
    "dataset": of_dataset,
    "store with a cache": None,
    "growing": None,
}


@pytest.fixture(params=SOURCES)
def bare(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    served: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Made:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make = SOURCES[request.param]
    if make is not None:
        at = tmp_path / "data"
        at.mkdir()
        made = make(at)
    else:
        cache = tmp_path / "samples" if "cache" in request.param else None
        made = in_store(*served, wait=request.param != "growing", cache=cache)
    return made


# ---- Views


def with_targets(made: Made) -> Made:
    name = f"bits{len(made.targets)}"
    values = np.arange(2 * len(made.samples), dtype="uint8").reshape(-1, 2)
    return replace(
        made,
        source=stoker.with_targets(made.source, {name: values}),
        targets={**made.targets, name: ("uint8", (2,))},
        samples=[
            each._replace(targets={**each.targets, name: values[i]})
            for i, each in enumerate(made.samples)
        ],
    )


def subset(made: Made) -> Made:
    ids = [i for i in reversed(range(len(made.samples))) if i % 4 != 1]
    return made.chosen(stoker.subset(made.source, ids), ids)


def masked(made: Made) -> Made:
    mask = [i % 3 != 1 for i in range(len(made.samples))]
    return made.chosen(stoker.subset(made.source, mask), [i for i, on in enumerate(mask) if on])


def with_labels(made: Made) -> Made:
    try:
        source = stoker.with_labels(made.source, [0, 2])
    except ValueError:
        assert made.labels_come_late  # and none was read
        return made
    return made.chosen(source, [i for i, each in enumerate(made.samples) if each.label != 1])


def split(made: Made) -> Made:
    numbered = stoker.with_targets(made.source, {"id": list(range(len(made.samples)))})
    ids = [
        int(np.asarray(each.targets["id"]))
        for each in stoker.random_split(numbered, [0.7, 0.3], seed=3)[0]
    ]
    assert len(ids) < len(made.samples)
    return made.chosen(stoker.random_split(made.source, [0.7, 0.3], seed=3)[0], ids)


def concat(made: Made) -> Made:
    both = [
        each._replace(name=f"{number}/{each.name}")
        for number in range(2)
        for each in made.samples
    ]
    return replace(made, source=stoker.concat([made.source, made.source]), samples=both)


def relabel(made: Made) -> Made:
    labels = [i * 5 % 3 for i in range(len(made.samples))]
    names = ["x", "y", "z"]
    return replace(
        made,
        source=stoker.relabel(made.source, labels, names),
        classes=names,
        samples=[each._replace(label=labels[i]) for i, each in enumerate(made.samples)],
    )


def relabel_by_name(made: Made) -> Made:
    """The function is called with names and labels."""
    return replace(
        made,
        source=stoker.relabel(made.source, lambda name, label: (label + len(name)) % 3),
        samples=[
            each._replace(label=(each.label + len(each.name)) % 3) for each in made.samples
        ],
    )


def pickled(made: Made) -> Made:
    source = pickle.loads(pickle.dumps(made.source))
    assert source.fingerprint == made.source.fingerprint
    return replace(made, source=source)


VIEWS = [
    with_targets,
    subset,
    masked,
    with_labels,
    split,
    concat,
    relabel,
    relabel_by_name,
    pickled,
]


# ---- What must hold


def loader(source: Any, made: Made, **options: Any) -> stoker.Loader:
    size = made.samples[0].image.shape[:2]
    options = {"batch_size": 4, "size": size, "augment": "resize", "seed": 1, **options}
    return stoker.Loader(source, shuffle=options.pop("shuffle", False), **options)


def expect_source(made: Made) -> None:
    source = made.source
    assert len(source) == len(made.samples)
    assert source.classes == made.classes
    assert source.targets == made.targets
    assert [each.name for each in source] == [each.name for each in made.samples]
    fingerprint = source.fingerprint
    for found, wanted in zip(source, made.samples):
        assert found.data == wanted.data, wanted.name
        assert (np.asarray(found.image()) == wanted.image).all(), wanted.name
        assert list(found.targets) == list(wanted.targets)
        for name, values in found.targets.items():
            assert np.array_equal(np.asarray(values), wanted.targets[name]), wanted.name
        assert found.label == wanted.label, wanted.name
    assert source.fingerprint == fingerprint
    assert source.labels() == [each.label for each in made.samples]


def expect_rows(feed: stoker.Loader, made: Made) -> list[int]:
    """Every row of an epoch has what belongs to its sample. Returns the ids."""
    ids = []
    for batch in feed:
        images, labels = np.asarray(batch.images), np.asarray(batch.labels)
        for row, sample in enumerate(np.asarray(batch.ids)[: batch.valid].tolist()):
            wanted = made.samples[sample]
            assert (images[row] == wanted.image).all(), wanted.name
            assert labels[row] == wanted.label, wanted.name
            assert batch.names[row] == wanted.name
            assert list(batch.targets) == list(wanted.targets)
            for name, values in batch.targets.items():
                assert np.array_equal(np.asarray(values)[row], wanted.targets[name]), wanted.name
            ids.append(sample)
    return ids


def expect_fed(made: Made) -> None:
    """A feed in order; its state is taken by a Loader that is made when all labels are known."""
    count = len(made.samples)
    with loader(made.source, made, workers=0) as feed:
        state = feed.state_dict()
        assert expect_rows(feed, made) == list(range(count))
    with loader(made.source, made, workers=0) as again:
        again.load_state_dict(state)


def expect_chosen(made: Made) -> None:
    """Orders and blends, threads, rows that are shared or kept."""
    count = len(made.samples)
    weights = [i % 3 + 1 for i in range(count)]
    orders = {
        "shuffled": {"shuffle": True, "workers": 2},
        "weighted": {"order": stoker.weighted(weights)},
        "blocks": {"order": stoker.block_shuffled(2, 3)},
        "repeated": {"order": stoker.repeated(2)},
        "balanced": {"order": stoker.class_balanced()},
    }
    for name, options in orders.items():
        order = options.pop("order", None)
        if order is not None:
            options = {**options, "order": order, "shuffle": None}
        with loader(made.source, made, **options) as feed:
            ids = expect_rows(feed, made)
        assert len(ids) == count, name
    both = concat(made)
    again = stoker.subset(made.source, range(count))
    with loader(stoker.blend({made.source: 3, again: 1}), both, shuffle=None, workers=0) as feed:
        assert expect_rows(feed, both)
    name = f"compositions-{os.getpid()}"
    with (
        loader(made.source, made, share=name, workers=1) as first,
        loader(made.source, made, share=name, workers=1) as second,
    ):
        other = threading.Thread(target=expect_rows, args=(second, made))
        other.start()
        assert expect_rows(first, made) == list(range(count))
        other.join()
    cache = stoker.DecodedCache(1 << 20)
    if not made.has_stamps:
        with pytest.raises(ValueError, match="cache"):
            loader(made.source, made, cache=cache)
        return
    for _ in range(2):
        with loader(made.source, made, cache=cache, workers=0) as feed:
            assert expect_rows(feed, made) == list(range(count))


def test_a_source(bare: Made) -> None:
    if bare.labels_come_late:
        with pytest.raises(ValueError, match="labels="):
            bare.source.labels()
    expect_fed(bare)
    expect_source(bare)
    expect_chosen(bare)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_a_view(bare: Made, view: Callable[[Made], Made]) -> None:
    one = view(bare)
    expect_fed(one)
    expect_source(one)
    expect_chosen(one)
    for other in VIEWS:
        two = other(one)
        expect_fed(two)
        expect_source(two)
