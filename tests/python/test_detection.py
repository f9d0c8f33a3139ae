"""Nets of torchvision lose the same on stoker's samples as on torchvision's own: the loaders that
python/examples/adapt puts into its reference training, and the presets' drawn steps, replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from coco_files import coco_folder, example
from PIL import Image

import stoker

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.tv_tensors")
pytest.importorskip("pycocotools")

from torchvision import datasets, tv_tensors  # noqa: E402
from torchvision.models import detection, segmentation  # noqa: E402
from torchvision.models.detection.anchor_utils import AnchorGenerator  # noqa: E402
from torchvision.ops import MultiScaleRoIAlign  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional  # noqa: E402

from stoker._drawn_steps import _steps  # noqa: E402
from stoker.torch import DataLoader, from_torchvision, to_torchvision  # noqa: E402

PICTURES = 10
MEAN = (123.0, 117.0, 104.0)
TO_TENSORS = [
    v2.ToImage(),
    v2.ToDtype(torch.float32, scale=True),
    v2.ConvertBoundingBoxFormat("XYXY"),
    v2.SanitizeBoundingBoxes(),
    v2.ToPureTensor(),
]


@pytest.fixture(scope="module")
def coco(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = [(70 + 9 * (number % 4), 60 + 11 * (number % 3)) for number in range(PICTURES)]
    return coco_folder(tmp_path_factory.mktemp("coco"), sizes)


def data_set(coco: Path, transforms: Any, keys: set[str]) -> Any:
    """Those pictures on which something is, as the reference scripts choose them."""
    objects = coco / "annotations" / "instances_train2017.json"
    whole = datasets.CocoDetection(str(coco / "train2017"), str(objects), transforms=transforms)
    shown = [place for place, id_ in enumerate(whole.ids) if whole.coco.imgToAnns[id_]]
    wrapped = datasets.wrap_dataset_for_transforms_v2(whole, target_keys=keys)
    return torch.utils.data.Subset(wrapped, shown)


def backbone() -> Any:
    layers = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, 4, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, 2, 1)
    )
    layers.out_channels = 8
    return layers


def small_net(kind: str) -> Any:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"min_size": 64, "max_size": 96}
    anchors = AnchorGenerator(((12, 24, 48),), ((0.5, 1.0, 2.0),))
    if kind == "retinanet":
        return detection.RetinaNet(backbone(), 8, anchor_generator=anchors, **sizes)
    return detection.MaskRCNN(
        backbone(), 8, rpn_anchor_generator=anchors,
        box_roi_pool=MultiScaleRoIAlign(["0"], 7, 2),
        mask_roi_pool=MultiScaleRoIAlign(["0"], 14, 2), box_batch_size_per_image=16, **sizes,
    )  # fmt: skip


def train(net: Any, batches: Iterable[Any], losses_of: Callable[..., Any]) -> list[Any]:
    """Returns the losses of each step by name."""
    net.train()
    descent = torch.optim.SGD(net.parameters(), lr=0.01)
    steps = []
    for step, batch in enumerate(batches):
        torch.manual_seed(step)  # a net draws which anchors count
        losses = losses_of(net, *batch)
        descent.zero_grad()
        sum(losses.values()).backward()
        descent.step()
        steps.append({name: loss.item() for name, loss in losses.items()})
    return steps


def objects_lost(net: Any, images: Any, targets: Any) -> Any:
    return net(list(images), list(targets))


def assert_equal(ours: list[Any], theirs: list[Any], steps: int) -> None:
    assert len(ours) == len(theirs) == steps
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, abs=1e-4)


def test_the_adapted_detection_training_loses_the_same(coco: Path) -> None:
    flipped = v2.Compose([v2.RandomHorizontalFlip(1), *TO_TENSORS])
    dataset = data_set(coco, flipped, {"boxes", "labels", "masks", "image_id"})
    batches = torch.utils.data.BatchSampler(
        torch.utils.data.SequentialSampler(dataset), 2, drop_last=True
    )
    args = SimpleNamespace(
        use_v2=True, use_copypaste=False, data_path=coco, data_augmentation="hflip",
        model="maskrcnn_resnet50_fpn",
    )  # fmt: skip
    ours = example("reference_detection").training_loader(
        dataset, batch_sampler=batches, num_workers=1, collate_fn=None, args=args, device="cpu"
    )
    theirs = torch.utils.data.DataLoader(
        dataset, batch_sampler=batches, collate_fn=lambda samples: tuple(zip(*samples, strict=True))
    )
    assert len(ours) == len(theirs)
    net = partial(small_net, "maskrcnn")
    lost = [train(net(), loader, objects_lost) for loader in (ours, theirs)]
    assert_equal(*lost, steps=3)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [({"use_v2": False}, "--use-v2"), ({"use_copypaste": True}, "--use-copypaste")],
)
def test_refused_options_of_detection(change: dict[str, bool], complaint: str) -> None:
    args = SimpleNamespace(**{"use_v2": True, "use_copypaste": False, **change})
    with pytest.raises(ValueError, match=complaint):
        example("reference_detection").training_loader(None, None, 1, None, args, "cpu")


PRESETS = {
    "ssd": [
        v2.RandomPhotometricDistort(), v2.RandomZoomOut(MEAN), v2.RandomIoUCrop(),
        v2.RandomHorizontalFlip(),
    ],
    "ssdlite": [v2.RandomIoUCrop(), v2.RandomHorizontalFlip()],
    "multiscale": [v2.RandomShortestSize((48, 64, 80), 100), v2.RandomHorizontalFlip()],
}  # fmt: skip


@pytest.mark.parametrize("preset", PRESETS)
def test_a_net_loses_the_same_where_drawn_steps_are_replayed(coco: Path, preset: str) -> None:
    source = stoker.open(coco / "train2017", objects=coco / "annotations/instances_train2017.json")
    plan = from_torchvision(v2.Compose([*PRESETS[preset], *TO_TENSORS]), canvas=420)
    options = {**plan._asdict(), "shuffle": False, "seed": 5}
    ours = DataLoader(source, 5, **{**options, "shuffle": None})
    replayed = []
    for batch in stoker.Loader(source, batch_size=5, epochs=1, **options):
        rows = zip(batch.ids.tolist(), batch.draws, batch.picture_boxes, strict=True)
        samples = [replay(coco, source[number], *drawn) for number, *drawn in rows]
        replayed.append(tuple(zip(*samples, strict=True)))
    lost = [train(small_net("retinanet"), each, objects_lost) for each in (ours, replayed)]
    assert_equal(*lost, steps=PICTURES // 5)


def replay(coco: Path, sample: Any, drawn: str, picture_box: Any) -> Any:
    """Returns (image, target) of Pillow and of v2's functions on tv_tensors."""
    image = Image.open(coco / "train2017" / sample.name)
    read = sample.annotations
    boxes = tv_tensors.BoundingBoxes(
        torch.tensor(read["boxes"]).reshape(-1, 4), format="XYXY", canvas_size=image.size[::-1]
    )
    labels = torch.tensor(read["labels"], dtype=torch.int64)
    outside = torch.zeros(len(boxes), dtype=torch.bool)
    for name, step in _steps(drawn):
        if name == "keep_centers":
            outside = ~contains(step, boxes)
        elif name in MOVES:
            boxes = MOVES[name](boxes, **step)
    boxes[outside] = 0
    target = v2.SanitizeBoundingBoxes()({"boxes": boxes, "labels": labels})
    _, _, width, height = picture_box
    shown = functional.pil_to_tensor(to_torchvision(drawn, image))[:, :height, :width]
    pixels = functional.to_dtype(shown, torch.float32, scale=True)
    return pixels, {name: values.as_subclass(torch.Tensor) for name, values in target.items()}


def contains(step: Any, boxes: Any) -> Any:
    x, y = (boxes[:, :2] + boxes[:, 2:]).T / 2
    right, bottom = step["x"] + step["width"], step["y"] + step["height"]
    return (step["x"] < x) & (x < right) & (step["y"] < y) & (y < bottom)


def crop(value: Any, x: int, y: int, width: int, height: int) -> Any:
    return functional.crop(value, y, x, height, width)


def resize(value: Any, width: int, height: int, **_: Any) -> Any:
    return functional.resize(value, [height, width])


def pad(value: Any, left: int, top: int, right: int, bottom: int, **_: Any) -> Any:
    return functional.pad(value, [left, top, right, bottom])


MOVES: dict[str, Callable[..., Any]] = {
    "crop": crop, "resize": resize, "pad": pad, "flip": functional.horizontal_flip,
}  # fmt: skip


class FixedSizeCrop:
    """As in the references' transforms.py."""

    __module__ = "transforms"
    crop_height, crop_width, fill, padding_mode = 64, 72, MEAN, "constant"


def test_large_scale_jitter_of_the_references_is_read() -> None:
    jitter = v2.ScaleJitter((64, 64))
    plan = from_torchvision(v2.Compose([jitter, FixedSizeCrop(), *TO_TENSORS]))
    read = "scale_jitter((64, 64)) | fixed_size_crop((64, 72), fill=(123, 117, 104))"
    assert str(plan.augment).startswith(read) and plan.size == (64, 72)


class ToLabels(v2.Transform):
    """Pixel by pixel: none, the only, or 255 for several objects that have a class."""

    COCO_TO_VOC_LABEL_MAP = {0: 0, 5: 1, 2: 2, 6: 3, 7: 4}

    def forward(self, image: Any, target: Any) -> Any:
        pairs = zip(target["masks"].numpy(), target["labels"].tolist(), strict=True)
        known = [(mask, self.COCO_TO_VOC_LABEL_MAP.get(label)) for mask, label in pairs]
        labels = np.zeros(target["masks"].shape[1:], np.uint8)
        for place in np.ndindex(labels.shape):
            there = [label for mask, label in known if label is not None and mask[place]]
            labels[place] = 255 if len(there) > 1 else sum(there)
        return image, tv_tensors.Mask(torch.from_numpy(labels))


class Preset:
    """The size of a row leaves nothing to draw for pictures of 80 x 64."""

    transforms = v2.Compose(
        [
            v2.RandomResize(40, 41),
            v2.RandomHorizontalFlip(1),
            v2.RandomCrop((40, 50)),
            v2.PILToTensor(),
            v2.ToDtype(
                {torch.Tensor: torch.float32, tv_tensors.Mask: torch.int64, "others": None},
                scale=True,
            ),
            v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
            v2.ToPureTensor(),
        ]
    )

    def __call__(self, *sample: Any) -> Any:
        return self.transforms(*sample)


def pixels_lost(net: Any, images: Any, labels: Any) -> Any:
    shown = net(images)["out"]
    return {"out": torch.nn.functional.cross_entropy(shown, labels, ignore_index=255)}


def test_the_adapted_segmentation_training_loses_the_same(tmp_path: Path) -> None:
    folder = coco_folder(tmp_path, [(80, 64)] * PICTURES)
    both = SimpleNamespace(transforms=[ToLabels(), Preset()])  # as the scripts' own Compose
    dataset = data_set(folder, both, {"masks", "labels"})
    in_order = torch.utils.data.SequentialSampler(dataset)
    ours = example("reference_segmentation").training_loader(
        dataset, batch_size=3, sampler=in_order, num_workers=1, collate_fn=None, drop_last=True,
        args=SimpleNamespace(use_v2=True), device="cpu",
    )  # fmt: skip
    dataset.dataset.transforms = v2.Compose(both.transforms)
    theirs = torch.utils.data.DataLoader(dataset, 3, sampler=in_order, drop_last=True)
    lost = []
    for loader in (ours, theirs):
        torch.manual_seed(0)
        net = segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=5)
        lost.append(train(net, loader, pixels_lost))
    assert_equal(*lost, steps=2)


def test_padding_of_a_crop_has_no_class(tmp_path: Path) -> None:
    folder = coco_folder(tmp_path, [(80, 64)] * 4)
    preset = Preset()
    preset.transforms = v2.Compose([v2.RandomCrop((64, 90)), *preset.transforms.transforms[3:]])
    both = SimpleNamespace(transforms=[ToLabels(), preset])
    dataset = data_set(folder, both, {"masks", "labels"})
    ((_, labels),) = example("reference_segmentation").training_loader(
        dataset, batch_size=3, sampler=torch.utils.data.SequentialSampler(dataset), num_workers=0,
        collate_fn=None, drop_last=True, args=SimpleNamespace(use_v2=True), device="cpu",
    )  # fmt: skip
    for found, place in zip(labels, dataset.indices, strict=True):
        _, expected = ToLabels()(*unmoved(dataset.dataset, place))
        columns = (found == 255).all(0).nonzero().flatten().tolist()
        assert len(columns) == 10
        inside = [column for column in range(90) if column not in columns]
        assert inside == list(range(inside[0], inside[0] + 80))
        assert (found[:, inside] == expected).all()


def unmoved(dataset: Any, place: int) -> Any:
    dataset.transforms = None
    return dataset[place]
