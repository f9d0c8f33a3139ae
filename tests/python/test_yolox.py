"""The loader that python/examples/adapt puts into YOLOX gives what its own transforms make of the
same pictures, and YOLOX loses the same on it."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from coco_files import add_odd_objects, coco_folder, example, like
from PIL import Image
from trainer_clones import adapted_clone

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from stoker import augment  # noqa: E402
from stoker.torch import to_torchvision  # noqa: E402

# Sides that are whole numbers of pixels when they are resized into 96 x 96.
SIZES = [(96, 72), (48, 96), (64, 48), (192, 96), (72, 96), (96, 96), (48, 64), (192, 192)]
SEED = 7


@pytest.fixture(scope="module")
def coco(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_odd_objects(coco_folder(tmp_path_factory.mktemp("coco"), SIZES))


def data_set(coco: Path, **numbers: Any) -> Any:
    read = json.loads((coco / "annotations" / "instances_train2017.json").read_text())
    images = {image["id"]: image for image in read["images"]}
    pictures = like(
        "COCODataset", data_dir=coco, name="train2017", json_file="instances_train2017.json",
        ids=sorted(images), class_ids=list(range(1, 8)), annotations=read["annotations"],
        coco=SimpleNamespace(imgs=images),
    )  # fmt: skip
    transform = {"max_labels": 12, "flip_prob": 0.5, "hsv_prob": 0.0, **numbers}
    return like(
        "MosaicDetection", _dataset=pictures, input_dim=(96, 96), local_rank=0,
        enable_mosaic=False, mosaic_prob=1.0, enable_mixup=True, mixup_prob=1.0, degrees=10.0,
        mixup_scale=(0.5, 1.5),
        translate=0.1, scale=(0.1, 2), shear=2.0, preproc=like("TrainTransform", **transform),
    )  # fmt: skip


def loader_for(dataset: Any, module: Any, batch_size: int = 3, world: int = 1) -> Any:
    stream = like("InfiniteSampler", _seed=SEED, _rank=world - 1, _world_size=world)
    steps = -(-len(SIZES) // world // batch_size)
    batches = type("Batches", (), {"__len__": lambda _: steps})()
    batches.sampler, batches.batch_size = stream, batch_size
    return module.training_loader(
        dataset, num_workers=1, pin_memory=True, batch_sampler=batches, worker_init_fn=None
    )


def draws_of(dataset: Any, module: Any, epoch: int) -> dict[int, str]:
    """By image id."""
    pictures, drawn = dataset._dataset, {}
    for place, id_ in enumerate(pictures.ids):
        info = pictures.coco.imgs[id_]
        drawn[id_] = augment.draw(
            module.plain_stages(dataset), (info["height"], info["width"]), seed=SEED, epoch=epoch,
            sample=place, size=dataset.input_dim,
        )  # fmt: skip
    return drawn


def twin(dataset: Any, id_: int, drawn: str) -> tuple[Any, Any]:
    """Returns the image that Pillow makes, on grey, and the labels that arithmetic makes."""
    pictures = dataset._dataset
    info = pictures.coco.imgs[id_]
    width, height = info["width"], info["height"]
    factor = 96 / max(width, height)
    image = Image.open(pictures.data_dir / pictures.name / info["file_name"])
    fitted = slice(round(height * factor)), slice(round(width * factor))
    canvas = np.full((96, 96, 3), 114, np.float32)
    canvas[fitted] = np.asarray(to_torchvision(drawn, image))[fitted][..., ::-1]
    labels = np.zeros((dataset.preproc.max_labels, 5), np.float32)
    row = 0
    for each in pictures.annotations:
        x, y, w, h = each["bbox"]
        x0, x1, y0, y1 = max(x, 0), min(x + w, width), max(y, 0), min(y + h, height)
        if "flip" in drawn:
            x0, x1 = width - x1, width - x0
        is_label = min(x1 - x0, y1 - y0) * factor > 1 and each["area"] > 0 and not each["iscrowd"]
        if each["image_id"] == id_ and is_label:
            box = np.array([x0 + x1, y0 + y1, 2 * (x1 - x0), 2 * (y1 - y0)]) / 2 * factor
            labels[row] = [each["category_id"] - 1, *box]
            row += 1
    return canvas.transpose(2, 0, 1), labels


def test_its_batches_are_those_of_the_drawn_steps(coco: Path) -> None:
    module, dataset = example("reference_yolox"), data_set(coco)
    loader = loader_for(dataset, module)
    seen: list[list[int]] = [[], []]
    for step, (images, labels, _, ids) in enumerate(islice(loader, 2 * len(loader))):
        epoch = step // len(loader)
        drawn = draws_of(dataset, module, epoch)
        seen[epoch] += ids.tolist()
        for row, id_ in enumerate(ids.tolist()):
            pixels, expected = twin(dataset, id_, drawn[id_])
            np.testing.assert_array_equal(images[row].numpy(), pixels)
            np.testing.assert_allclose(labels[row].numpy(), expected, atol=1e-4)
    assert any("flip" in steps for steps in drawn.values())
    for ids in seen:  # the last batch of an epoch is filled up
        assert len(ids) == 9 and set(ids) == set(dataset._dataset.ids)
    assert seen[0] != seen[1]


def test_ranks_take_different_samples(coco: Path) -> None:
    module, dataset = example("reference_yolox"), data_set(coco)
    shares = []
    for rank in range(2):
        stream = like("InfiniteSampler", _seed=SEED, _rank=rank, _world_size=2)
        batches = like("Batches", sampler=stream, batch_size=2, __len__=lambda _: 2)
        loader = module.training_loader(
            dataset, num_workers=1, pin_memory=True, batch_sampler=batches, worker_init_fn=None
        )
        shares.append([id_ for *_, ids in islice(loader, 2) for id_ in ids.tolist()])
    assert sorted(shares[0] + shares[1]) == dataset._dataset.ids


def test_colours_change_with_their_probability(coco: Path) -> None:
    module = example("reference_yolox")
    counts = []
    for chance in (0.0, 0.5, 1.0):
        dataset = data_set(coco, hsv_prob=chance)
        drawn = [draws_of(dataset, module, epoch).values() for epoch in range(9)]
        counts.append(sum("hsv(" in steps for lines in drawn for steps in lines))
    assert counts[0] == 0 < counts[1] < counts[2] == 9 * len(SIZES)


def test_mosaics_end_when_they_are_closed(coco: Path) -> None:
    module, dataset = example("reference_yolox"), data_set(coco)
    dataset.enable_mosaic = True
    loader = loader_for(dataset, module)
    batches = iter(loader)
    drawn = draws_of(dataset, module, 0)

    def differences(batch: Any) -> list[bool]:
        images, _, _, ids = batch
        alone = [twin(dataset, id_, drawn[id_])[0] for id_ in ids.tolist()]
        return [bool((row.numpy() != one).any()) for row, one in zip(images, alone, strict=True)]

    mosaics = list(islice(batches, 2 * len(loader)))
    assert all(all(differences(batch)) for batch in mosaics)
    for images, labels, *_ in mosaics:
        assert images.shape == (3, 3, 96, 96) and labels.shape == (3, 12, 5)
        left_top, right_bottom = (labels[..., 1:3] + sign * labels[..., 3:] / 2 for sign in (-1, 1))
        assert left_top.min() >= 0 and right_bottom.max() <= 96
        assert (labels[..., 3] > 0).any()
    loader.close_mosaic()
    assert not any(any(differences(batch)) for batch in islice(batches, len(loader)))


def test_the_stages_of_mosaics(coco: Path) -> None:
    dataset = data_set(coco, hsv_prob=1.0)
    text = str(example("reference_yolox").mosaic_stages(dataset))
    assert text.startswith(
        "clamp_boxes | mosaic((96, 96)) | affine(10, translate=(0.05, 0.05), scale=(0.1, 2), "
        "shear=(-2, 2, -2, 2), "
    )
    assert (
        "| mixup(partner=scale_jitter((96, 96), scale_range=(0.5, 1.5)) | flip | "
        "fixed_size_crop((96, 96), fill=114), alpha=1000) | random_hsv("
    ) in text and text.endswith(" | flip")
    dataset.enable_mixup, dataset.mosaic_prob = False, 0.5
    text = str(example("reference_yolox").mosaic_stages(dataset))
    assert "mixup" not in text and "mosaic((96, 96), p=0.5)" in text


# With a clone of Megvii-BaseDetection/YOLOX.


def pillows_resize(image: Any, size: tuple[int, int], interpolation: Any = None) -> Any:
    return np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BILINEAR))


def replayed(dataset: Any, transform: type, place: int, drawn: str) -> tuple[Any, Any]:
    """Returns what YOLOX's own functions make where its flip is the one that was drawn. It flips
    no picture without objects."""
    flip = 1.0 if "flip" in drawn else 0.0
    image, labels, _, _ = dataset._dataset.pull_item(place)
    if flip and not len(labels):
        image = image[:, ::-1]
    return transform(dataset.preproc.max_labels, flip, 0.0)(image, labels, dataset.input_dim)


def losses(batches: Any, exp: Any) -> list[dict[str, float]]:
    """Trains YOLOX's net, and returns the losses of each step by name."""
    torch.manual_seed(0)
    exp.model = None
    net = exp.get_model()
    net.head.use_l1 = True
    descent = torch.optim.SGD(net.parameters(), lr=1e-3)
    steps = []
    for images, labels, *_ in batches:
        lost = net(images, labels)
        descent.zero_grad()
        lost["total_loss"].backward()
        descent.step()
        steps.append({name: torch.as_tensor(loss).item() for name, loss in lost.items()})
    return steps


def test_yolox_loses_the_same(coco: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Pillow's resize in place of OpenCV's in YOLOX's own pipeline."""
    cv2 = pytest.importorskip("cv2")
    for module in ("loguru", "pycocotools", "psutil", "tabulate", "thop"):
        pytest.importorskip(module)
    monkeypatch.setattr(cv2, "resize", pillows_resize)
    with adapted_clone("YOLOX", tmp_path):
        from yolox.data import TrainTransform
        from yolox.exp import Exp, reference_yolox

        exp = Exp()
        exp.depth, exp.width, exp.hsv_prob = 0.33, 0.125, 0.0
        exp.input_size, exp.data_dir = (96, 96), str(coco)
        exp.data_num_workers, exp.seed = 1, SEED
        exp.dataset = exp.get_dataset()
        loader = exp.get_data_loader(batch_size=2, is_distributed=False, no_aug=True)
        ours = list(islice(loader, len(loader)))
        dataset, pictures = exp.dataset, exp.dataset._dataset
        drawn = draws_of(dataset, reference_yolox, 0)
        theirs = []
        for *_, ids in ours:
            samples = [
                replayed(dataset, TrainTransform, pictures.ids.index(id_), drawn[id_])
                for id_ in ids.tolist()
            ]
            theirs.append([torch.from_numpy(np.stack(part)) for part in zip(*samples, strict=True)])
        lost = [losses(batches, exp) for batches in (ours, theirs)]
    assert len(lost[0]) == len(loader) == len(pictures.ids) // 2
    for mine, other in zip(*lost, strict=True):
        assert mine == pytest.approx(other, abs=1e-4)
