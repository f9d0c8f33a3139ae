"""stoker.dataset() whose items have boxes, masks, keypoints and label images."""

from __future__ import annotations

import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from item_sets import Files, Items, Listed, Paths, Pictures, pixels, png
from PIL import Image

import stoker
from stoker import _core

both = pytest.mark.parametrize("processes", [True, False], ids=["processes", "threads"])
ENTRIES = ("boxes", "labels", "ids", "iscrowd", "keypoints", "masks", "size")
KINDS: dict[str, Any] = {
    "annotations": ENTRIES,
    "class_names": ["cat", "dog", "bird"],
    "keypoint_names": ["nose", "tail"],
}
NAMES = {name: value for name, value in KINDS.items() if name != "annotations"}
CARRIED = stoker.Annotations(max_objects=4, masks="bytes")


def annotation(number: int) -> dict[str, Any]:
    """Nothing, or up to three objects: a polygon, an array, run lengths."""
    random = np.random.default_rng(number)
    count = number % 4
    begins = random.uniform(0, (30, 20), (count, 2))
    boxes = np.concatenate([begins, begins + random.uniform(5, 20, (count, 2))], axis=1)
    plane = np.zeros((40, 50), bool)
    plane[3 : 10 + number % 7, 5:20] = True
    masks = [[[1, 2, 30.25, 5, 1 / 3, 30]], plane, {"size": [40, 50], "counts": [7, 1000, 993]}]
    return {
        "boxes": boxes,
        "labels": random.integers(0, 3, count),
        "ids": [1000 * number + place for place in range(count)],
        "iscrowd": [place == 1 for place in range(count)],
        "keypoints": [[(x0, y0, 2), (x1, y1, 1)] for x0, y0, x1, y1 in boxes.tolist()],
        "masks": masks[:count],
        "size": (40, 50),
    }


class Annotated(Items):
    """Item i is that of `items` with what lies on it."""

    def __init__(self, items: Items, targets: Any = None):
        super().__init__(len(items))
        self.items, self.targets = items, targets

    def __getitem__(self, index: int) -> Any:
        image, label = self.items[index]
        if self.targets is None:
            return image, label, annotation(index)
        return image, label, self.targets(index), annotation(index)


def reference(count: int, folder: Path) -> stoker.Source:
    """The same samples, as files."""
    paths = []
    for index in range(count):
        paths.append(folder / f"reference-{index:02}.png")
        paths[-1].write_bytes(png(pixels(index)))
    rows = [annotation(index) for index in range(count)]
    source = stoker.files(paths, [index % 7 for index in range(count)])
    return stoker.with_annotations(source, rows, **NAMES)


def assert_same_rows(source: stoker.Source, expected: stoker.Source, **options: Any) -> None:
    settings: dict[str, Any] = {
        "batch_size": 8, "size": (36, 44), "seed": 4, "annotations": CARRIED,
        "augment": "random_resized_crop | flip | resize((36, 44))", **options,
    }  # fmt: skip
    with stoker.Loader(source, **settings) as loader, stoker.Loader(expected, **settings) as other:
        for one, two in zip(loader, other, strict=True):
            np.testing.assert_array_equal(one.images, two.images)
            assert one.targets.keys() >= two.targets.keys()
            for name, values in two.targets.items():
                np.testing.assert_array_equal(one.targets[name], values, err_msg=name)
            assert one.draws == two.draws and one.object_counts == two.object_counts
        assert loader.stats()["bad_samples"] == 0


@both
def test_rows_are_those_of_with_annotations(processes: bool, tmp_path: Path) -> None:
    expected = reference(30, tmp_path)
    for items in (Files(), Paths(tmp_path), Pictures()):
        source = stoker.dataset(Annotated(items), processes=processes, **KINDS)
        assert source.annotations == expected.annotations
        assert [sample.annotations for sample in source] == [
            sample.annotations for sample in expected
        ]
        for workers in (0, 2):
            assert_same_rows(source, expected, workers=workers)


@both
def test_with_targets_a_pickle_and_views(processes: bool, tmp_path: Path) -> None:
    expected = reference(30, tmp_path)
    # The annotations of other samples are shorter, and stay in no buffer.
    source = stoker.dataset(
        Annotated(Paths(tmp_path), targets=lambda_free_targets), processes=processes,
        targets={"soft": ("float32", (3,))}, **KINDS,
    )  # fmt: skip
    again = pickle.loads(pickle.dumps(source))
    assert again.fingerprint == source.fingerprint
    assert_same_rows(again, expected)
    ids = [17, 3, 22, 0]
    part = stoker.subset(source, ids)
    assert_same_rows(part, stoker.subset(expected, ids), batch_size=2)
    assert part[0].annotations == expected[17].annotations
    np.testing.assert_array_equal(part[0].targets["soft"], [17, 0.5, -1])
    assert part[0].label == 17 % 7 and part[0].data == png(pixels(17))


def lambda_free_targets(index: int) -> list[float]:
    """A function that can be pickled."""
    return [index, 0.5, -1]


def test_what_is_declared_is_part_of_the_fingerprint() -> None:
    def fingerprint(**kinds: Any) -> int:
        return stoker.dataset(Files(), processes=False, **kinds).fingerprint

    boxes = ("boxes", "labels")
    seen = {
        fingerprint(),
        fingerprint(annotations=boxes),
        fingerprint(annotations=boxes, class_names=["a", "b"]),
        fingerprint(annotations=boxes, class_names=["a", "c"]),
        fingerprint(annotations=boxes, box_format="xywhr"),
        fingerprint(annotations=(*boxes, "masks")),
        fingerprint(annotations=(*boxes, "keypoints"), keypoint_names=["a"]),
        fingerprint(annotations=("label_image",)),
    }
    assert len(seen) == 8


@both
def test_box_formats(processes: bool) -> None:
    items = [(png(pixels(0)), {"boxes": [[5, 6, 10, 20]], "labels": [1]})]
    source = stoker.dataset(
        Listed(items), processes=processes, annotations=("boxes", "labels"), box_format="xywh"
    )
    assert source[0].annotations["boxes"] == [[5, 6, 15, 26]]
    assert source[0].annotations["area"] == [200]
    items = [(png(pixels(0)), {"boxes": [[25, 20, 10, 6, 90]], "labels": [1]})]
    source = stoker.dataset(
        Listed(items), processes=processes, annotations=("boxes", "labels"), box_format="cxcywhr"
    )
    assert source.annotations["rotated"]
    np.testing.assert_allclose(source[0].annotations["boxes"], [[22, 25, 22, 15, 28, 15, 28, 25]])


@both
def test_label_images(processes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    items = []
    for number in range(4):
        classes = np.random.default_rng(number).integers(0, 20, (30, 40)).astype(np.uint8)
        Image.fromarray(classes).save(tmp_path / f"{number}.png")
        gray = np.repeat(classes[..., None], 3, axis=2)
        items.append((gray, {"label_image": f"{number}.png"}))
    items.append((gray, {"label_image": Path("none.png")}))
    source = stoker.dataset(Listed(items), processes=processes, annotations=["label_image"])
    monkeypatch.chdir("/")  # relative to the folder of the call
    quarantine = tmp_path / "bad.jsonl"
    loader = stoker.Loader(
        source, batch_size=5, size=(20, 30), augment="random_crop((20, 30)) | flip", seed=1,
        max_bad=1, quarantine=quarantine,
    )  # fmt: skip
    (batch,) = loader
    assert batch.valid == 4
    labels = np.asarray(batch.targets["label_image"])
    for row in batch.counted_rows:
        np.testing.assert_array_equal(labels[row], np.asarray(batch.images)[row, ..., 0])
    reason = quarantine.read_text()
    assert "dataset/4" in reason and f'{tmp_path}/none.png: No such file or directory"' in reason


BOX = [1, 2, 30, 20]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([BOX], "list, must be a dict"),
        ({"boxes": [BOX], "labels": [1]}, "the entries are 'boxes', 'labels', "),
        ({"bboxes": [BOX]}, "'bboxes' is no entry; there are boxes, labels"),
        ({"boxes": [BOX], "labels": [1, 2], "masks": []}, "2 of labels for 1 boxes"),
        (
            {"boxes": [BOX, [1, 2, 3]], "labels": [1, 2], "masks": []},
            r"object 1: boxes has 3 numbers in \[1, 2, 3\], must be 4",
        ),
        (
            {"boxes": [BOX, [1, 2, "x", 4]], "labels": [1, 2], "masks": []},
            "object 1: could not convert string to float: 'x'",
        ),
        (
            {"boxes": [BOX] * 2, "labels": [0, 1 << 70], "masks": []},
            "object 1: the label is 1180591620717411303424",
        ),
        (
            {"boxes": [BOX] * 2, "labels": [0, 1], "masks": [[], [[1, 2, 3]]]},
            "object 1: a polygon of 3 numbers",
        ),
        (
            {"boxes": [BOX], "labels": [0], "masks": [{"size": [40, 50]}]},
            "object 0: a mask of 'size', must have 'counts'",
        ),
    ],
)
@both
def test_what_does_not_fit_is_a_bad_sample(processes: bool, given: Any, message: str) -> None:
    good = {"boxes": [BOX], "labels": [1], "masks": [[[1, 2, 3, 4, 5, 7]]]}
    items = [(png(pixels(0)), 0, good), (png(pixels(1)), 1, given)]
    source = stoker.dataset(
        Listed(items), processes=processes, annotations=("boxes", "labels", "masks")
    )
    with pytest.raises(OSError, match=rf"dataset/1: Listed\[1\] gives annotations: .*{message}"):
        source[1].data
    with stoker.Loader(source, batch_size=2, size=32, seed=1, shuffle=False, max_bad=1) as loader:
        (batch,) = loader
        assert batch.valid == 1 and batch.counted_rows == [0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"boxes": [BOX, [5, 5, 1, 9]]}, r"object 1 \(id 8\): the box has a negative width: \(5, "),
        ({"boxes": [BOX, [5, 5, float("nan"), 9]]}, r"object 1 \(id 8\): the box has a number"),
        ({"labels": [0, 2]}, r"object 1 \(id 8\): the class is 2, which is none of the data's"),
        ({"labels": [-1, 0]}, r"object 0 \(id 7\): the class is -1"),
        ({"masks": [[[1, 2, 3, 4]], []]}, r"object 0 \(id 7\): a polygon of 2 points, must be 3"),
        ({"masks": [[], {"counts": [5, 6]}]}, r"object 1 \(id 8\): .* add up to 11 pixels"),
    ],
)
@both
def test_a_broken_annotation_is_a_bad_sample(
    processes: bool, changes: dict[str, Any], message: str
) -> None:
    good = {"boxes": [BOX, BOX], "labels": [0, 1], "ids": [7, 8], "masks": [], "size": (40, 50)}
    items = [(png(pixels(i)), i, {**good, **(changes if i == 2 else {})}) for i in range(4)]
    source = stoker.dataset(
        Listed(items), processes=processes, annotations=tuple(good), class_names=["a", "b"]
    )
    with pytest.raises(OSError, match=f"dataset/2: {message}"):
        source[2].annotations
    assert source[2].label == 2 and source[2].data == items[2][0]
    loader = stoker.Loader(source, batch_size=4, size=32, seed=1, shuffle=False, max_bad=1)
    (batch,) = loader
    assert batch.counted_rows == [0, 1, 3] and np.asarray(batch.weights)[2] == 0


def test_items_must_have_as_many_parts_as_declared() -> None:
    def problem(item: Any, **options: Any) -> str:
        with pytest.raises(OSError) as error:
            stoker.dataset(Listed([item]), processes=False, **options)[0].data
        return str(error.value)

    boxes = ("boxes", "labels")
    row = {"boxes": [], "labels": []}
    data = png(pixels(0))
    assert "1 values, must be (image, annotations) or (image, label, annotations)" in problem(
        data, annotations=boxes
    )
    assert "(image, label, targets, annotations)" in problem(
        (data, row), annotations=boxes, targets={"a": ("float32", ())}
    )
    assert "gives 3 values, must be (image, label) or an image alone" in problem((data, 1, row))
    points = {**row, "boxes": [BOX], "labels": [1], "keypoints": [[(1, 2)]]}
    assert "1 keypoints of each object, must be 2" in problem(
        (data, points), annotations=(*boxes, "keypoints"), keypoint_names=["a", "b"]
    )


@pytest.mark.parametrize(
    ("front", "message"),
    [
        ([], "its targets or annotations are missing"),
        ([3, b"abc"], "its targets or annotations are missing"),
        ([3, b"abc", 4], "its targets or annotations are missing"),
        ([(1 << 64) - 8, b"abc", 3], "its targets or annotations are missing"),
        ([3, b"abc", 3], "its bytes are damaged"),
    ],
)
def test_bytes_of_no_annotations(front: list[Any], message: str) -> None:
    """Nothing that a worker process sends is trusted."""
    parts = [struct.pack("=Q", part) if isinstance(part, int) else part for part in front]
    reader = _core.thread_reader(lambda _: (0, 0, [*parts, b"P5 1 1 255 x"]))
    kinds = _core.AnnotationInfo(True, False, False, 0, 0, [], [])
    source = _core.dataset_source(reader, 1, [0], [], "/", [], kinds)
    with pytest.raises(OSError, match=f"dataset/0: {message}"):
        source[0].annotations


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"annotations": "boxes"}, TypeError, "annotations is 'boxes', must be names as"),
        ({"annotations": (1, 2)}, TypeError, r"annotations is \(1, 2\), must be names as"),
        ({"annotations": ("boxes", "box")}, ValueError, "annotations has 'box'; there are boxes,"),
        ({"annotations": ("boxes",)}, ValueError, "there are boxes and no labels"),
        ({"annotations": ("masks",)}, ValueError, "'masks' is nothing without 'boxes'"),
        ({"annotations": ("size",)}, ValueError, "must have 'boxes' or 'label_image'"),
        ({"class_names": ["a"]}, ValueError, "must have 'boxes' or 'label_image'"),
        (
            {"annotations": ("boxes", "labels", "keypoints")},
            ValueError,
            "keypoint_names has 0 names",
        ),
        (
            {"annotations": ("boxes", "labels"), "keypoint_names": ["a"]},
            ValueError,
            "keypoint_names has 1 names",
        ),
        (
            {"annotations": ("boxes", "labels"), "box_format": "yxyx"},
            ValueError,
            "box_format is 'yxyx'",
        ),
    ],
)
def test_declarations(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        stoker.dataset(Files(), **options)
