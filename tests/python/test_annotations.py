"""Annotations that a program gives, moved with the pixels, yielded as trainers take them."""

from __future__ import annotations

import json
import os
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from conftest import jpeg, picture

import stoker
from stoker._drawn_steps import run_steps

CLASSES = ["cat", "dog", "bird"]


def annotation(number: int, width: int, height: int) -> dict[str, Any]:
    """One to four objects: a triangle, a box with a hole of run lengths, an array."""
    random = np.random.default_rng(number)
    boxes, masks = [], []
    for place in range(1 + number % 4):
        x0, y0 = random.uniform(0, width * 0.6), random.uniform(0, height * 0.6)
        x1, y1 = x0 + random.uniform(6, width * 0.4), y0 + random.uniform(6, height * 0.4)
        boxes.append([x0, y0, x1, y1])
        if place % 2 == 0:
            masks.append([[x0, y0, x1, y0, x1, y1]])
        else:
            array = np.zeros((height, width), bool)
            array[int(y0) : int(y1), int(x0) : int(x1)] = True
            masks.append(array)
    count = len(boxes)
    return {
        "boxes": boxes,
        "labels": [int(label) for label in random.integers(0, 3, count)],
        "iscrowd": [place == 3 for place in range(count)],
        "masks": masks,
        "keypoints": [[(b[0] + 1, b[1] + 1, 2), (b[2] - 1, b[3] - 1, 1)] for b in boxes],
        "size": (height, width),
    }


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("annotated")
    paths, rows = [], []
    for number in range(24):
        width, height = 80 + 7 * (number % 5), 64 + 9 * (number % 3)
        path = folder / f"{number:03}.jpg"
        path.write_bytes(jpeg(picture(number, width, height)))
        paths.append(path)
        rows.append(annotation(number, width, height))
    source = stoker.with_annotations(
        stoker.files(paths, [0] * len(paths)), rows, class_names=CLASSES, keypoint_names=["a", "b"]
    )
    return source, rows


def test_a_source_says_what_it_carries(annotated: Any) -> None:
    source, rows = annotated
    kinds = source.annotations
    assert kinds["objects"] and kinds["masks"] and kinds["keypoints"] == 2
    assert kinds["class_names"] == CLASSES and kinds["keypoint_names"] == ["a", "b"]
    read = source[3].annotations
    assert np.allclose(read["boxes"], rows[3]["boxes"])
    assert read["labels"] == rows[3]["labels"] and read["ids"] == [0, 1, 2, 3]
    assert read["iscrowd"] == [False, False, False, True]
    assert read["masks"][0] == rows[3]["masks"][0]
    assert stoker.synthetic(3, size=8).annotations == {}
    again = pickle.loads(pickle.dumps(source))
    assert again[3].annotations == read and again.fingerprint == source.fingerprint


STAGES = [
    "resize((48, 56))",
    "random_crop((40, 48)) | flip | resize((48, 56))",
    "random_resized_crop((48, 56))",
    "pad((3, 5)) | vertical_flip | resize((48, 56))",
    "random_resized_crop((30, 40)) | flip | pad((8, 9))",
]


@pytest.mark.parametrize("stages", STAGES)
def test_objects_move_as_torchvision_moves_them(annotated: Any, stages: str) -> None:
    torch = pytest.importorskip("torch")
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    from torchvision.transforms.v2 import functional

    from stoker._drawn_steps import _steps

    source, rows = annotated
    loader = stoker.Loader(
        source, batch_size=6, size=(48, 56), augment=stages, seed=3, epochs=3,
        annotations=stoker.Annotations(max_objects=5, masks="bytes"),
    )  # fmt: skip
    compared = 0
    for _ in range(3):
        for batch in loader:
            values = {name: array.numpy() for name, array in batch.targets.items()}
            drawn_rows = zip(batch.draws, batch.ids.tolist(), strict=True)
            for row, (drawn, number) in enumerate(drawn_rows):
                given = rows[number]
                size = given["size"]
                boxes = tv_tensors.BoundingBoxes(
                    torch.tensor(given["boxes"], dtype=torch.float64),
                    format="XYXY", canvas_size=size,
                )  # fmt: skip
                points = tv_tensors.KeyPoints(
                    torch.tensor(given["keypoints"], dtype=torch.float64)[..., :2],
                    canvas_size=size,
                )
                masks = tv_tensors.Mask(torch.from_numpy(masks_of(given)))
                for name, step in _steps(drawn):
                    boxes, points, masks = (
                        moved(functional, name, step, each) for each in (boxes, points, masks)
                    )
                count = batch.object_counts[row]
                assert count == len(given["boxes"])
                assert np.abs(values["boxes"][row, :count] - boxes.numpy()).max() < 1e-4
                assert np.abs(values["keypoints"][row, :count, :, :2] - points.numpy()).max() < 1e-4
                assert (values["masks"][row, :count] == masks.numpy()).all()
                assert values["labels"][row].tolist() == given["labels"] + [-1] * (5 - count)
                compared += count
    assert compared > 150


def test_a_mosaic_has_the_objects_of_its_pictures(annotated: Any) -> None:
    source, rows = annotated
    augment = stoker.augment
    stages = augment.mosaic(40) | augment.center_crop(40) | augment.mixup(p=0.5)
    loader = stoker.Loader(
        source, batch_size=6, augment=stages, seed=3,
        annotations=stoker.Annotations(max_objects=40, masks="bytes"),
    )  # fmt: skip
    several = 0
    for batch in loader:
        assert batch.images.shape == (6, 40, 40, 3)
        for drawn, count in zip(batch.draws, batch.object_counts, strict=True):
            lines = drawn.splitlines()
            samples = [line for line in lines if line.startswith("sample")]
            numbers = [int(line.split()[1].rstrip(":")) for line in samples]
            assert len(numbers) in (4, 8)
            assert count == sum(len(rows[number]["boxes"]) for number in numbers)
            several += len(set(numbers)) > 2
    assert several > 10
    with pytest.raises(ValueError, match="rows of several samples: a Loader draws them"):
        augment.draw(stages, (64, 80), seed=3, sample=0)
    with pytest.raises(ValueError, match="of several views or samples"):
        run_steps(drawn, Image.new("RGB", (80, 64)))


def masks_of(given: dict[str, Any]) -> np.ndarray:
    """The masks at the picture's size: arrays as they are, triangles by stoker's own run lengths,
    which other tests compare with COCO's."""
    height, width = given["size"]
    planes = []
    for mask in given["masks"]:
        if isinstance(mask, np.ndarray):
            planes.append(mask.astype(np.uint8))
            continue
        source = stoker.with_annotations(
            stoker.memory([jpeg(picture(0, width, height))], [0]),
            [{"boxes": [[0, 0, 1, 1]], "labels": [0], "masks": [mask]}],
        )
        loader = stoker.Loader(
            source, batch_size=1, size=(height, width), augment=f"resize(({height}, {width}))",
            annotations=stoker.Annotations(max_objects=1, masks="bytes"), epochs=1,
        )  # fmt: skip
        planes.append(next(iter(loader)).targets["masks"].numpy()[0, 0].copy())
    return np.stack(planes)


def moved(functional: Any, name: str, step: dict[str, Any], value: Any) -> Any:
    if name == "crop":
        return functional.crop(value, step["y"], step["x"], step["height"], step["width"])
    if name == "resize":
        return functional.resize(value, [step["height"], step["width"]])
    if name == "pad":
        return functional.pad(value, [step[side] for side in ("left", "top", "right", "bottom")])
    return {"flip": functional.horizontal_flip, "vertical_flip": functional.vertical_flip}[name](
        value
    )


def test_torch_yields_what_detection_models_take(annotated: Any) -> None:
    torch = pytest.importorskip("torch")
    from stoker.torch import DataLoader

    source, rows = annotated
    stages = "resize((50, 60)) | pad((0, 0, 10, 10))"
    options: dict[str, Any] = {"size": (60, 70), "augment": stages}
    loader = DataLoader(
        source, 5, annotations=stoker.Annotations(max_objects=4, masks="bytes"), **options
    )
    seen = 0
    for images, targets in loader:
        assert len(images) == len(targets)
        for image, target in zip(images, targets, strict=True):
            given = rows[int(target["image_id"])]
            assert image.shape == (3, 50, 60) and image.dtype == torch.float32
            height, width = given["size"]
            scale = torch.tensor([60 / width, 50 / height] * 2)
            expected = torch.tensor(given["boxes"]) * scale
            assert torch.allclose(target["boxes"], expected, atol=1e-3)
            assert target["labels"].tolist() == given["labels"]
            assert target["labels"].dtype == torch.int64
            assert target["masks"].shape == (len(expected), 50, 60)
            assert target["keypoints"].shape == (len(expected), 2, 3)
            assert target["boxes"]._base is not None  # a view
            seen += 1
    assert seen == len(source)

    packed = DataLoader(
        source, 5, annotations=stoker.Annotations(max_objects=4, packed=True), targets="packed",
        **options,
    )  # fmt: skip
    padded = DataLoader(source, 5, targets="padded", **options)
    for (_, one), (_, other) in zip(packed, padded, strict=True):
        offsets, counts = one["offsets"], other["object_count"]
        assert (offsets.diff() == counts).all() and offsets[-1] == len(one["boxes"])
        for row, count in enumerate(counts.tolist()):
            begin = int(offsets[row])
            assert (one["boxes"][begin : begin + count] == other["boxes"][row, :count]).all()
            assert (one["labels"][begin : begin + count] == other["labels"][row, :count]).all()


def test_tv_tensors_on_request(annotated: Any) -> None:
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")

    from stoker.torch import DataLoader

    loader = DataLoader(
        annotated[0], 4, size=48, augment="random_resized_crop", tv_tensors=True,
        annotations=stoker.Annotations(masks="bytes", box_format="cxcywh"),
    )  # fmt: skip
    _, targets = next(iter(loader))
    boxes = targets[0]["boxes"]
    assert type(boxes) is tv_tensors.BoundingBoxes and boxes.canvas_size == (48, 48)
    assert boxes.format == tv_tensors.BoundingBoxFormat.CXCYWH
    assert type(targets[0]["masks"]) is tv_tensors.Mask
    assert type(targets[0]["keypoints"]) is tv_tensors.KeyPoints


def test_rotated_boxes(tmp_path: Path) -> None:
    path = tmp_path / "1.jpg"
    path.write_bytes(jpeg(picture(1, 100, 80)))
    box = [50.0, 40.0, 30.0, 10.0, 25.0]
    source = stoker.with_annotations(
        stoker.files([path], [0]), [{"boxes": [box], "labels": [1]}], box_format="cxcywhr"
    )
    stages = "resize((80, 100)) | vertical_flip(1)"
    loader = stoker.Loader(source, batch_size=1, size=(80, 100), augment=stages, epochs=1)
    moved_box = next(iter(loader)).targets["boxes"].numpy()[0, 0]
    turned = {tuple(np.round(c, 3)) for c in corners_of(moved_box)}
    mirrored = {tuple(np.round((x, 80 - y), 3)) for x, y in corners_of(box)}
    assert turned == mirrored


def corners_of(box: Any) -> list[tuple[float, float]]:
    cx, cy, width, height, degrees = map(float, box)
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return [
        (cx + x * cos + y * sin, cy - x * sin + y * cos)
        for x, y in (
            (-width / 2, -height / 2), (width / 2, -height / 2),
            (width / 2, height / 2), (-width / 2, height / 2),
        )
    ]  # fmt: skip


def test_label_images(tmp_path: Path) -> None:
    from PIL import Image

    paths, rows = [], []
    for number in range(4):
        classes = np.random.default_rng(number).integers(0, 20, (30, 40)).astype(np.uint8)
        Image.fromarray(classes).save(tmp_path / f"{number}.png")
        pixels = np.repeat(classes[..., None], 3, axis=2)
        Image.fromarray(pixels).save(tmp_path / f"{number}.ppm")
        paths.append(tmp_path / f"{number}.ppm")
        rows.append({"label_image": tmp_path / f"{number}.png"})
    source = stoker.with_annotations(stoker.files(paths, [0] * 4), rows)
    assert source.annotations["label_image"] and not source.annotations["objects"]
    loader = stoker.Loader(
        source, batch_size=4, size=(26, 34), epochs=1, seed=2,
        augment="random_crop((24, 30)) | flip | pad((2, 1), fill=77)",
        annotations=stoker.Annotations(ignore_label=77),
    )  # fmt: skip
    for batch in loader:
        labels = batch.targets["label_image"].numpy()
        assert labels.shape == (4, 26, 34)
        assert (labels == batch.images.numpy()[..., 0]).all()
    torch_module = pytest.importorskip("torch")
    from stoker.torch import DataLoader

    images, labels = next(iter(DataLoader(source, 2, size=(30, 40), augment="resize((30, 40))")))
    assert labels.dtype == torch_module.int64 and labels.shape == (2, 30, 40)


def test_what_does_not_fit_is_named(annotated: Any) -> None:
    source, rows = annotated
    plain = stoker.memory([jpeg(picture(0))], ["x"])
    name = plain.name(0)

    def refused(row: dict[str, Any], **options: Any) -> str:
        with pytest.raises((ValueError, TypeError)) as error:
            stoker.with_annotations(plain, [row], **options)
        assert name in str(error.value)
        return str(error.value)

    box = [1, 2, 30, 40]
    assert "'bboxes' is no entry" in refused({"bboxes": [box]})
    assert "there are boxes and no labels" in refused({"boxes": [box]})
    assert "boxes has 3 numbers" in refused({"boxes": [[1, 2, 3]], "labels": [1]})
    assert "2 of labels for 1 boxes" in refused({"boxes": [box], "labels": [1, 2]})
    assert "negative" in refused({"boxes": [[5, 5, 1, 9]], "labels": [1]})
    assert "nan" in refused({"boxes": [[float("nan"), 5, 1, 9]], "labels": [1]}).lower()
    short = {"boxes": [box], "labels": [1], "masks": [[[1, 2, 3, 4]]]}
    assert "2 points" in refused(short)
    runs = {"boxes": [box], "labels": [1], "size": (72, 96), "masks": [{"counts": [5, 6]}]}
    assert "add up to 11 pixels" in refused(runs)
    with pytest.raises(ValueError, match="annotations has 2 entries, and there are 1 samples"):
        stoker.with_annotations(plain, [{}, {}])
    with pytest.raises(ValueError, match="the samples carry nothing"):
        stoker.Loader(plain, batch_size=1, annotations=stoker.Annotations())
    with pytest.raises(ValueError, match="max_objects is -1"):
        stoker.Loader(source, batch_size=1, annotations=stoker.Annotations(max_objects=-1))
    with pytest.raises(ValueError, match="masks is 'all', must be None, 'bytes' or 'bits'"):
        stoker.Loader(source, batch_size=1, annotations=stoker.Annotations(masks="all"))


def test_more_objects_than_room_are_counted(annotated: Any) -> None:
    source, rows = annotated
    loader = stoker.Loader(
        source, batch_size=8, size=48, augment="random_resized_crop", epochs=1,
        annotations=stoker.Annotations(max_objects=2),
    )  # fmt: skip
    for batch in loader:
        assert max(batch.object_counts) <= 2
    stats = loader.stats()
    assert stats["full_rows"] == sum(len(row["boxes"]) > 2 for row in rows)
    assert stats["objects_left_out"] == sum(max(len(row["boxes"]) - 2, 0) for row in rows)


def coco_folder(folder: Path, count: int = 6) -> dict[str, Any]:
    data: dict[str, Any] = {"images": [], "annotations": [], "categories": []}
    data["categories"] = [{"id": 3, "name": "cat"}, {"id": 7, "name": "dog"}]
    (folder / "images").mkdir()
    for number in range(count):
        (folder / "images" / f"{number:02}.jpg").write_bytes(jpeg(picture(number, 64, 48)))
        image = {"id": 100 + number, "file_name": f"{number:02}.jpg", "width": 64, "height": 48}
        data["images"].append(image)
        for place in range(number % 3):
            data["annotations"].append({
                "id": len(data["annotations"]), "image_id": 100 + number,
                "category_id": 3 + 4 * place,
                "bbox": [4 + place, 5, 20, 30], "area": 600, "iscrowd": 0,
                "segmentation": [[4, 5, 24, 5, 24, 35]],
            })  # fmt: skip
    (folder / "objects.json").write_text(json.dumps(data))
    return data


def test_open_reads_objects_of_a_folder_and_of_shards(tmp_path: Path) -> None:
    coco_folder(tmp_path)
    source = stoker.open(tmp_path / "images", objects=tmp_path / "objects.json")
    assert len(source) == 6 and source.annotations["class_names"][7] == "dog"
    assert source[2].annotations["boxes"] == [[4, 5, 24, 35], [5, 5, 25, 35]]
    assert source[2].annotations["image_id"] == 102
    assert pickle.loads(pickle.dumps(source)).fingerprint == source.fingerprint
    for part in (0, 1):
        with tarfile.open(tmp_path / f"part-{part}.tar", "w") as shard:
            for number in range(3 * part, 3 * part + 3):
                shard.add(tmp_path / "images" / f"{number:02}.jpg", f"{number:02}.jpg")
    shards = [tmp_path / "part-0.tar", tmp_path / "part-1.tar"]
    for paths in (tmp_path / "part-*.tar", shards):
        packed = stoker.open(paths, objects=tmp_path / "objects.json")
        assert len(packed) == 6
        assert packed[5].annotations == source[5].annotations
    with pytest.raises(ValueError, match=r"objects.*nothing\.json"):
        stoker.open(tmp_path / "images", objects=tmp_path / "nothing.json")


def test_transforms_of_detection_and_segmentation_are_read() -> None:
    torch = pytest.importorskip("torch")
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    from torchvision.transforms import v2

    from stoker.torch import from_torchvision

    end = [
        v2.PILToTensor(),
        v2.ToDtype(torch.float, scale=True),
        v2.ConvertBoundingBoxFormat(tv_tensors.BoundingBoxFormat.XYXY),
        v2.SanitizeBoundingBoxes(),
        v2.ToPureTensor(),
    ]
    ssd = [v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=[123.0, 117.0, 104.0])]
    ssd += [v2.RandomIoUCrop(), v2.RandomHorizontalFlip(0.5)]
    plan = from_torchvision(v2.Compose([*ssd, *end]), canvas=600)
    assert str(plan.augment) == (
        "random_photometric_distort | random_zoom_out(fill=(123, 117, 104)) | random_iou_crop | "
        "flip | sanitize_boxes | pad_to_size((600, 600))"
    )
    assert plan.size == (600, 600) and plan.dtype == "float32"
    multi = v2.Compose([v2.RandomShortestSize([480, 512], max_size=1333), *end])
    assert str(from_torchvision(multi, canvas=(1333, 1333)).augment).startswith(
        "random_shortest_size((480, 512), max_size=1333)"
    )
    jitter = v2.Compose([v2.ScaleJitter((512, 256)), v2.RandomCrop((256, 512)), v2.PILToTensor()])
    assert str(from_torchvision(jitter).augment).startswith("scale_jitter((256, 512))")

    def segmentation(labels: int) -> Any:
        fill = {Image.Image: 5, tv_tensors.Image: 9, tv_tensors.Mask: labels, "others": 0}
        types = {torch.Tensor: torch.float32, tv_tensors.Mask: torch.int64, "others": None}
        return v2.Compose([
            v2.RandomResize(260, 1040), v2.RandomCrop(480, pad_if_needed=True, fill=fill),
            v2.PILToTensor(), v2.ToDtype(types, scale=True),
        ])  # fmt: skip

    plan = from_torchvision(segmentation(255))
    assert str(plan.augment) == (
        "random_resize(260, 1040) | random_crop(480, fill=5, pad_if_needed=True)"
    )
    assert plan.dtype == "float32"
    with pytest.raises(ValueError, match="a Mask is filled with 7"):
        from_torchvision(segmentation(7))
    cxcywh = v2.ConvertBoundingBoxFormat(tv_tensors.BoundingBoxFormat.CXCYWH)
    with pytest.raises(ValueError, match="box_format"):
        from_torchvision(v2.Compose([v2.Resize((8, 8)), v2.PILToTensor(), cxcywh]))


def test_crops_that_boxes_decide_read_pieces_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part of a file that is read is that of the same crop."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths, rows = [], []
    for number in range(6):
        image = picture(number, 1280, 960)
        noise = np.random.default_rng(number).integers(0, 60, (960, 1280, 3), dtype=np.uint8)
        paths.append(tmp_path / f"{number}.jpg")
        paths[-1].write_bytes(jpeg(Image.fromarray(np.asarray(image) // 2 + noise)))
        os.utime(paths[-1], (1e9, 1e9))  # the stamp of a new file does not stand for its bytes
        rows.append({"boxes": [[100, 500, 400, 800], [900, 600, 1100, 700]], "labels": [1, 2]})
    source = stoker.with_annotations(stoker.files(paths, [0] * 6), rows)
    stages = "random_iou_crop(max_scale=0.5) | resize((64, 64)) | sanitize_boxes"

    def epochs(seek_index: str) -> tuple[list[Any], dict[str, Any]]:
        loader = stoker.Loader(
            source, batch_size=6, size=64, augment=stages, seed=1, epochs=3, shuffle=False,
            seek_index=seek_index,
        )  # fmt: skip
        taken = []
        for _ in range(3):
            for batch in loader:
                images, boxes = batch.images.numpy().copy(), batch.targets["boxes"].numpy().copy()
                taken.append((images, boxes, batch.draws))
        return taken, loader.stats()

    whole, _ = epochs("off")
    pieces, stats = epochs("auto")
    assert stats["seek_index_unread_bytes"] > 0
    for one, other in zip(whole, pieces, strict=True):
        assert (one[0] == other[0]).all() and (one[1] == other[1]).all() and one[2] == other[2]
    assert any("crop" in drawn for _, _, draws in whole for drawn in draws)
