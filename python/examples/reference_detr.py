"""The training loader of DETR's main.py and of RF-DETR's rfdetr/main.py, fed by stoker. `adapt`
puts this file beside that script.

The samples, their batches and the data set's own transforms are the script's; flips, sizes and
crops are drawn by stoker. Nets get a NestedTensor as large as the largest picture of its batch,
with zeros behind each picture, and targets of boxes, labels, image_id and size: what losses read.
Evaluation stays as it is.
"""

from __future__ import annotations

import sys
from functools import partial, reduce
from operator import or_
from pathlib import Path

import torch

import stoker
from stoker import augment
from stoker.torch import DataLoader, padding_mask


def training_loader(
    dataset,
    batch_sampler=None,
    batch_size=1,
    sampler=None,
    collate_fn=None,
    num_workers=0,
    *,
    device,
):
    """In place of PyTorch's DataLoader. `dataset` is the script's CocoDetection, which says what to
    read; no sample is asked of it. ValueError: a transform or an option that stoker does not have.
    """
    if type(dataset).__name__ != "CocoDetection":
        raise ValueError(f"{type(dataset).__name__}: stoker feeds data sets of COCO's objects")
    if getattr(dataset.prepare, "return_masks", False) or getattr(dataset, "include_masks", False):
        raise ValueError("masks are asked for: stoker feeds trainings of boxes")
    transforms = dataset._transforms
    stages = stages_of(transforms)
    side, has_one_size = canvas_of(transforms)
    nested_tensor = sys.modules[collate_fn.__module__].NestedTensor
    (normalize,) = (step for step in steps_of(transforms) if is_a(step, "Normalize"))
    values = {"mean": normalize.mean, "std": normalize.std}
    names = [dataset.coco.imgs[each]["file_name"] for each in dataset.ids]
    source = stoker.open(dataset.root, objects=str(objects_file(Path(dataset.root))))
    places = {source.name(i): i for i in range(len(source))}
    return DataLoader(
        stoker.subset(source, [places[name] for name in names]),
        batch_sampler.batch_size if batch_sampler else batch_size,
        sampler=batch_sampler.sampler if batch_sampler else sampler,
        drop_last=bool(batch_sampler and batch_sampler.drop_last),
        num_workers=num_workers,
        device=device,
        size=side,
        augment=augment.clamp_boxes() | stages | augment.pad_to_size(side),
        annotations=stoker.Annotations(
            max_objects=max(len(dataset.coco.imgToAnns[each]) for each in dataset.ids),
            box_format="cxcywh",
        ),
        targets="padded",
        on_batch=partial(nested, nested_tensor=nested_tensor, **values),
        # A canvas of bytes is a fourth of one of floats, and the most of it is padding.
        **({"dtype": "float32", **values} if has_one_size else {"dtype": "uint8"}),
    )


def objects_file(folder):
    """Roboflow's lies among the pictures, COCO's in a folder beside theirs."""
    among = folder / "_annotations.coco.json"
    beside = folder.parent / "annotations" / f"instances_{folder.name}.json"
    return among if among.is_file() else beside


def is_a(step, name):
    return type(step).__name__ == name  # the scripts have classes of their own


def steps_of(step):
    """Yields a transform and those that it runs."""
    yield step
    inner = getattr(step, "transforms", None) or [
        getattr(step, name) for name in ("transforms1", "transforms2") if hasattr(step, name)
    ]
    for each in inner:
        yield from steps_of(each)


def canvas_of(transforms):
    """Returns the side of a square that has room for each picture, and whether each fills it."""
    squares, longest = set(), set()
    for step in steps_of(transforms):
        if is_a(step, "SquareResize"):
            squares.update(step.sizes)
        elif is_a(step, "RandomResize") and step.max_size:
            longest.add(step.max_size)
    if not squares | longest:
        raise ValueError("no transform of the data set says how large a picture can be")
    return max(squares | longest), len(squares) == 1 and not longest


# The list of stages that a transform is. RandomResize shortens a long side to max_size as
# torchvision's RandomShortestSize does; DETR's rounds the other side, which may be a pixel longer.
STAGES = {
    "Compose": lambda step: joined(step.transforms),
    "RandomSelect": lambda step: augment.random_choice(
        stages_of(step.transforms1), stages_of(step.transforms2), weights=(step.p, 1 - step.p)
    ),
    "RandomHorizontalFlip": lambda step: augment.flip(p=step.p),
    "RandomResize": lambda step: augment.random_shortest_size(step.sizes, step.max_size or 0),
    "RandomSizeCrop": lambda step: augment.random_size_crop(step.min_size, step.max_size),
    "SquareResize": lambda step: augment.random_choice(
        *(augment.resize((each, each)) for each in step.sizes)
    ),
    "ToTensor": lambda step: None,
    "Normalize": lambda step: None,
}


def stages_of(step):
    """Returns None of a transform that moves nothing."""
    if type(step).__name__ not in STAGES:
        raise ValueError(f"{type(step).__name__}: stoker has no stage for this transform")
    return STAGES[type(step).__name__](step)


def joined(steps):
    lists = [stages for stages in map(stages_of, steps) if stages is not None]
    return reduce(or_, lists) if lists else None


def nested(batch, nested_tensor, mean, std):
    """Makes of a batch what the script's collate_fn makes of samples."""
    images, objects = batch
    sizes = objects["picture_box"][:, 2:]  # all pictures lie at the upper left
    width, height = sizes.amax(0).tolist()
    images = images[..., :height, :width]
    padding = padding_mask(objects["picture_box"], height, width)
    if images.dtype == torch.uint8:
        images = normalized(images, sizes.tolist(), mean, std)
    return nested_tensor(images, padding), targets_of(objects, sizes)


def normalized(images, sizes, mean, std):
    """As ToTensor and Normalize make each picture, with zeros around it."""
    mean, std = (torch.tensor(each, device=images.device)[:, None, None] for each in (mean, std))
    pixels = torch.zeros(images.shape, device=images.device)
    for row, (width, height) in enumerate(sizes):
        shown = pixels[row, :, :height, :width].copy_(images[row, :, :height, :width])
        shown.sub_(255 * mean).div_(255 * std)
    return pixels


def targets_of(objects, sizes):
    """Crowds are left out, and objects of which a crop shows nothing, as the script does it. Places
    without an object have boxes of zeros."""
    boxes = objects["boxes"] / sizes.repeat(1, 2)[:, None]
    is_shown = (boxes[..., 2:] > 0).all(-1) & (objects["iscrowd"] == 0)
    return tuple(
        {
            "boxes": boxes[row, shown],
            "labels": objects["labels"][row, shown],
            "image_id": objects["image_id"][row : row + 1],
            "size": sizes[row].flip(0),
        }
        for row, shown in enumerate(is_shown)
    )
