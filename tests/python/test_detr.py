"""The loader that python/examples/adapt puts into DETR and RF-DETR gives what their own transforms
and collate_fn make of the same pictures, and DETR loses the same on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from coco_files import add_odd_objects, coco_folder, example, like
from PIL import Image
from trainer_clones import adapted_clone

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from torchvision.transforms import functional  # noqa: E402

from stoker import augment  # noqa: E402
from stoker._drawn_steps import _steps  # noqa: E402
from stoker.torch import to_torchvision  # noqa: E402

PICTURES = 10
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class NestedTensor(NamedTuple):
    tensors: Any
    mask: Any


def collate(samples: Any) -> Any:
    """Its module says where NestedTensor is."""


@pytest.fixture(scope="module")
def coco(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = [(70 + 9 * (number % 4), 60 + 11 * (number % 3)) for number in range(PICTURES)]
    return add_odd_objects(coco_folder(tmp_path_factory.mktemp("coco"), sizes))


def transforms(resize: Any, make: Callable[..., Any] = like) -> Any:
    """DETR's make_coco_transforms, for small pictures."""

    def compose(*steps: Any) -> Any:
        return make("Compose", transforms=list(steps))

    cropped = compose(
        make("RandomResize", sizes=[50, 60], max_size=None),
        make("RandomSizeCrop", min_size=40, max_size=60),
        resize,
    )
    return compose(
        make("RandomHorizontalFlip", p=0.5),
        make("RandomSelect", transforms1=resize, transforms2=cropped, p=0.5),
        compose(make("ToTensor"), make("Normalize", mean=MEAN, std=STD)),
    )


RESIZES = {
    "random": like("RandomResize", sizes=[48, 64, 80], max_size=110),
    "squares": like("SquareResize", sizes=[64, 96]),
    "square": like("SquareResize", sizes=[64]),
}


def data_set(coco: Path, steps: Any) -> Any:
    read = json.loads((coco / "annotations" / "instances_train2017.json").read_text())
    images = {image["id"]: image for image in sorted(read["images"], key=lambda each: each["id"])}
    on_picture: dict[int, list[Any]] = {id_: [] for id_ in images}
    for each in read["annotations"]:
        on_picture[each["image_id"]].append(each)
    return like(
        "CocoDetection", root=str(coco / "train2017"), ids=list(images), prepare=None,
        _transforms=steps, coco=SimpleNamespace(imgs=images, imgToAnns=on_picture),
    )  # fmt: skip


def loader_for(dataset: Any, module: Any, collate_fn: Any = collate) -> Any:
    batches = torch.utils.data.BatchSampler(
        torch.utils.data.SequentialSampler(dataset.ids), 3, drop_last=True
    )
    torch.manual_seed(3)
    return module.training_loader(
        dataset, batch_sampler=batches, collate_fn=collate_fn, num_workers=1, device="cpu"
    )


def draws_of(loader: Any, dataset: Any, module: Any) -> list[str]:
    stages = augment.clamp_boxes() | module.stages_of(dataset._transforms)
    infos = [dataset.coco.imgs[each] for each in dataset.ids]
    sizes = [(info["height"], info["width"]) for info in infos]
    seed, side = loader.loader.seed, module.canvas_of(dataset._transforms)[0]
    return [
        augment.draw(stages, size, seed=seed, sample=i, size=side) for i, size in enumerate(sizes)
    ]


def moved(boxes: Any, drawn: str, width: int, height: int) -> tuple[Any, int, int]:
    """The boxes (x0, y0, x1, y1) after these steps, with the size of the picture then."""
    for name, step in _steps(drawn):
        if name in ("crop", "resize"):
            if name == "crop":
                boxes = boxes - np.tile([step["x"], step["y"]], 2)
            else:
                boxes = boxes * np.tile([step["width"] / width, step["height"] / height], 2)
            width, height = step["width"], step["height"]
        elif name == "flip":
            boxes = boxes[:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [width, 0, width, 0]
        boxes = boxes.clip(0, np.tile([width, height], 2))
    return boxes, width, height


def twin(dataset: Any, place: int, drawn: str) -> Any:
    """Returns the (image, target) that Pillow and arithmetic make."""
    info = dataset.coco.imgs[dataset.ids[place]]
    picture = Image.open(Path(dataset.root) / info["file_name"]).convert("RGB")
    image = to_torchvision(drawn, picture)
    pixels = functional.normalize(functional.to_tensor(image), MEAN, STD)
    objects = [each for each in dataset.coco.imgToAnns[dataset.ids[place]] if not each["iscrowd"]]
    boxes = np.reshape([each["bbox"] for each in objects], (-1, 4)).astype(float)
    boxes[:, 2:] += boxes[:, :2]
    boxes = boxes.clip(0, np.tile([info["width"], info["height"]], 2))
    boxes, width, height = moved(boxes, drawn, info["width"], info["height"])
    x0, y0, x1, y1 = boxes.T
    kept = (x1 > x0) & (y1 > y0)
    form = np.stack([(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0], 1)[kept]
    labels = np.array([each["category_id"] for each in objects], int)[kept]
    target = {
        "boxes": form / np.tile([width, height], 2), "labels": labels, "size": [height, width],
    }  # fmt: skip
    return pixels, {name: torch.as_tensor(values) for name, values in target.items()}


def assert_same(batch: Any, samples: list[Any]) -> None:
    images, targets = batch
    largest = torch.stack([pixels.new_tensor(pixels.shape[1:]) for pixels, _ in samples]).amax(0)
    assert list(images.tensors.shape[2:]) == largest.tolist()
    assert len(targets) == len(samples)
    for row, (pixels, expected) in enumerate(samples):
        height, width = pixels.shape[1:]
        shown = images.tensors[row].clone()
        torch.testing.assert_close(shown[:, :height, :width], pixels, atol=1e-6, rtol=0)
        shown[:, :height, :width] = 0
        assert not shown.any()
        mask = torch.ones(images.mask.shape[1:], dtype=torch.bool)
        mask[:height, :width] = False
        assert torch.equal(images.mask[row], mask)
        boxes = expected["boxes"].float()
        torch.testing.assert_close(targets[row]["boxes"], boxes, atol=1e-6, rtol=0)
        for name in ("labels", "size"):
            assert targets[row][name].tolist() == expected[name].tolist()


@pytest.mark.parametrize("resize", RESIZES)
def test_its_batches_are_those_of_the_drawn_steps(coco: Path, resize: str) -> None:
    module, dataset = example("reference_detr"), data_set(coco, transforms(RESIZES[resize]))
    loader = loader_for(dataset, module)
    drawn = draws_of(loader, dataset, module)
    assert any("crop" in steps for steps in drawn) and any("flip" in steps for steps in drawn)
    batches = list(loader)
    assert len(batches) == len(loader) == len(dataset.ids) // 3
    for number, batch in enumerate(batches):
        places = range(3 * number, 3 * number + 3)
        assert_same(batch, [twin(dataset, place, drawn[place]) for place in places])
        ids = [target["image_id"].item() for target in batch[1]]
        assert ids == [dataset.ids[place] for place in places]


def test_its_stages_are_the_transforms() -> None:
    stages = example("reference_detr").stages_of(transforms(RESIZES["random"]))
    assert str(stages) == (
        "flip | random_choice(random_shortest_size((48, 64, 80), max_size=110), "
        "random_shortest_size((50, 60)) | random_size_crop(40, 60) | "
        "random_shortest_size((48, 64, 80), max_size=110), weights=(0.5, 0.5))"
    )


def test_few_samples_are_drawn_with_replacement(coco: Path) -> None:
    dataset = data_set(coco, transforms(RESIZES["square"]))
    sampler = torch.utils.data.RandomSampler(dataset.ids, replacement=True, num_samples=24)
    loader = example("reference_detr").training_loader(
        dataset, batch_size=8, sampler=sampler, collate_fn=collate, num_workers=0, device="cpu"
    )
    batches = list(loader)
    assert [len(targets) for _, targets in batches] == [8, 8, 8]
    ids = [int(target["image_id"]) for _, targets in batches for target in targets]
    assert set(ids) <= set(dataset.ids) and len(set(ids)) < len(ids)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"prepare": SimpleNamespace(return_masks=True)}, "masks are asked for"),
        ({"include_masks": True}, "masks are asked for"),
        ({"_transforms": transforms(like("RandomErasing"))}, "RandomErasing"),
        ({"_transforms": like("RandomResize", sizes=[40], max_size=None)}, "how large"),
    ],
)
def test_refused_data_sets(coco: Path, change: dict[str, Any], complaint: str) -> None:
    dataset = data_set(coco, transforms(RESIZES["square"]))
    for name, value in change.items():
        setattr(dataset, name, value)
    with pytest.raises(ValueError, match=complaint):
        loader_for(dataset, example("reference_detr"))


def test_other_data_sets_are_refused() -> None:
    with pytest.raises(ValueError, match="CocoPanoptic: stoker feeds"):
        example("reference_detr").training_loader(like("CocoPanoptic"), device="cpu")


# With clones of facebookresearch/detr and roboflow/rf-detr.


def own_batches(trainer: Any, dataset: Any, drawn: list[str]) -> list[Any]:
    """Returns the batches of three that the trainer makes with the drawn numbers."""
    dataset._transforms = None
    samples = [own_sample(trainer.transforms, dataset, i, drawn[i]) for i in range(len(drawn))]
    begins = range(0, len(samples) - 2, 3)
    return [trainer.misc.collate_fn(samples[begin : begin + 3]) for begin in begins]


def own_sample(module: Any, dataset: Any, place: int, drawn: str) -> Any:
    """Returns what the clone's own functions make with the drawn numbers."""
    image, target = dataset[place]
    for name, step in _steps(drawn):
        if name == "flip":
            image, target = module.hflip(image, target)
        elif name == "resize":
            image, target = module.resize(image, target, (step["width"], step["height"]))
        elif name == "crop":
            box = (step["y"], step["x"], step["height"], step["width"])
            image, target = module.crop(image, target, box)
    return module.Compose([module.ToTensor(), module.Normalize(MEAN, STD)])(image, target)


def losses(batches: Any, clone: Any) -> list[dict[str, float]]:
    """Trains the clone's net, and returns the losses of each step by name."""
    torch.manual_seed(0)
    net, criterion, _ = clone.build_model(clone.args)
    descent = torch.optim.SGD(net.parameters(), lr=1e-3)
    net.train()
    steps = []
    for step, (images, targets) in enumerate(batches):
        torch.manual_seed(step)  # of dropout
        lost = criterion(net(images), targets)
        descent.zero_grad()
        sum(lost[name] * weight for name, weight in criterion.weight_dict.items()).backward()
        descent.step()
        steps.append({name: loss.item() for name, loss in lost.items()})
    return steps


@pytest.fixture
def detr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("pycocotools")
    pytest.importorskip("scipy")
    from torchvision import models

    weightless = lambda **given: models.resnet.ResNet(  # noqa: E731
        models.resnet.BasicBlock, [1, 1, 1, 1], norm_layer=given["norm_layer"]
    )
    monkeypatch.setattr(models, "resnet18", weightless)
    with adapted_clone("detr", tmp_path):
        import reference_detr
        from datasets import coco as coco_sets, transforms as own
        from main import get_args_parser
        from models import build_model
        from util import misc

        small = "--device cpu --backbone resnet18 --enc_layers 1 --dec_layers 2 --num_queries 12"
        yield SimpleNamespace(
            loader=reference_detr, sets=coco_sets, transforms=own, misc=misc,
            build_model=build_model, args=get_args_parser().parse_args(small.split()),
        )  # fmt: skip


@pytest.mark.parametrize("preset", ["small", "published"])
def test_detr_loses_the_same(coco: Path, detr: Any, preset: str) -> None:
    def make(name: str, **attributes: Any) -> Any:
        if name == "Compose":
            return detr.transforms.Compose(attributes["transforms"])
        return getattr(detr.transforms, name)(**attributes)

    resize = make("RandomResize", sizes=[48, 64, 80], max_size=110)
    small, published = transforms(resize, make), detr.sets.make_coco_transforms("train")
    objects = coco / "annotations" / "instances_train2017.json"
    steps = small if preset == "small" else published
    dataset = detr.sets.CocoDetection(coco / "train2017", objects, steps, False)
    loader = loader_for(dataset, detr.loader, detr.misc.collate_fn)
    drawn = draws_of(loader, dataset, detr.loader)
    ours = losses(loader, detr)
    theirs = losses(own_batches(detr, dataset, drawn), detr)
    assert len(ours) == len(theirs) == len(dataset) // 3
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, abs=1e-4)


@pytest.mark.parametrize("preset", ["make_coco_transforms", "make_coco_transforms_square_div_64"])
def test_rf_detr_gets_the_same(coco: Path, tmp_path: Path, preset: str) -> None:
    for module in ("pycocotools", "transformers", "supervision", "peft"):
        pytest.importorskip(module)
    with adapted_clone("rf-detr", tmp_path):
        from rfdetr import reference_detr
        from rfdetr.datasets import coco as sets, transforms as own
        from rfdetr.util import misc

        trainer = SimpleNamespace(transforms=own, misc=misc)
        objects = coco / "annotations" / "instances_train2017.json"
        steps = getattr(sets, preset)("train", 96)
        dataset = sets.CocoDetection(coco / "train2017", objects, steps)
        loader = loader_for(dataset, reference_detr, misc.collate_fn)
        drawn = draws_of(loader, dataset, reference_detr)
        theirs = own_batches(trainer, dataset, drawn)
    close = partial(torch.testing.assert_close, atol=1e-5, rtol=0)
    for (images, targets), (own_images, own_targets) in zip(loader, theirs, strict=True):
        close(images.tensors, own_images.tensors)
        assert torch.equal(images.mask, own_images.mask)
        for mine, other in zip(targets, own_targets, strict=True):
            for name in ("boxes", "labels", "image_id"):
                close(mine[name], other[name])
