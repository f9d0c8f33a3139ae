"""The annotations of pictures, as stoker.torch yields them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from stoker._annotations import Annotations
from stoker._batch import Batch

_OF_OBJECTS = ("boxes", "labels", "area", "iscrowd", "keypoints", "masks")
_TV_FORMATS = {
    "xyxy": "XYXY", "xywh": "XYWH", "cxcywh": "CXCYWH",
    "xyxyxyxy": "XYXYXYXY", "xywhr": "XYWHR", "cxcywhr": "CXCYWHR",
}  # fmt: skip

Convert = Callable[[Batch], Any]


def convert_for(
    source: Any, targets: str | None, tv_tensors: bool, annotations: Annotations | None
) -> Convert | None:
    """Returns what makes (images, targets) of a batch; None: the source has no annotations.
    ValueError, TypeError: arguments that do not fit.
    """
    kinds = _kinds_of(source)
    if not kinds:
        if targets is not None or tv_tensors:
            raise ValueError(
                f"targets is {targets!r} and tv_tensors is {tv_tensors}, and the samples carry "
                "nothing: see stoker.open(objects=) and stoker.with_annotations()"
            )
        return None
    forms = {"lists": _lists, "padded": _padded, "packed": _packed}
    if targets is not None and targets not in forms:
        raise ValueError(f"targets is {targets!r}, must be one of {', '.join(map(repr, forms))}")
    options = annotations or Annotations()
    if targets == "packed" and not options.packed:
        raise ValueError("targets is 'packed': give annotations=stoker.Annotations(packed=True)")
    if targets is None and not kinds["objects"]:
        return partial(_label_images, wrap=_wrapper(None) if tv_tensors else None)
    if tv_tensors and targets not in (None, "lists"):
        raise ValueError(f"tv_tensors is True, and targets is {targets!r}: must be 'lists'")
    if targets in (None, "lists"):
        if options.masks == "bits":
            raise ValueError("masks is 'bits': targets='lists' needs masks='bytes'")
        usual = "cxcywhr" if kinds["rotated"] else "xyxy"
        return partial(_lists, wrap=_wrapper(options.box_format or usual) if tv_tensors else None)
    return forms[targets]


def padding_mask(picture_box: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Returns which pixels of rows of this size are no picture: bool (rows, height, width), on the
    boxes' device. It is the mask of DETR's NestedTensor, and the opposite of the pixel_mask of
    Hugging Face's image processors.

        images, targets = batch  # of DataLoader(targets="padded")
        mask = padding_mask(targets["picture_box"], *images.shape[-2:])

    picture_box: (rows, 4), of targets that are 'padded' or 'packed'.
    """
    left, top, right, bottom = picture_box.unsqueeze(-1).unbind(1)
    x = torch.arange(width, device=picture_box.device)
    y = torch.arange(height, device=picture_box.device)
    beside, above_or_below = (x < left) | (x >= right), (y < top) | (y >= bottom)
    return above_or_below[:, :, None] | beside[:, None]


def _kinds_of(source: Any) -> dict[str, Any]:
    sources = getattr(source, "sources", None) or [source]
    if any(getattr(each, "is_growing", False) for each in sources):
        return {}  # nobody waits for its list
    kinds: dict[str, Any] = sources[0].annotations
    return kinds


def _wrapper(box_format: str | None) -> Callable[[str, torch.Tensor, Any], torch.Tensor]:
    """Returns what makes tv_tensors of a tensor, by its name and its picture's (height, width)."""
    from torchvision import tv_tensors

    def wrap(name: str, values: torch.Tensor, size: Any) -> torch.Tensor:
        if name == "boxes":
            form = _TV_FORMATS[box_format or "xyxy"]
            return tv_tensors.BoundingBoxes(values, format=form, canvas_size=size)
        if name in ("masks", "label_image"):
            return tv_tensors.Mask(values)
        if name == "keypoints":
            return tv_tensors.KeyPoints(values[..., :2], canvas_size=size)
        return values

    return wrap


def _columns(batch: Batch) -> dict[str, torch.Tensor]:
    return {name: torch.from_dlpack(values) for name, values in batch.targets.items()}


def _cut(image: torch.Tensor, box: tuple[int, int, int, int]) -> torch.Tensor:
    x0, y0, x1, y1 = box
    if (x0, y0) != (0, 0):
        return image  # it is centred, and boxes are relative to the padded picture
    return image[..., :y1, :x1] if image.shape[0] == 3 else image[:y1, :x1]


def _lists(batch: Batch, wrap: Any = None) -> tuple[list[Any], list[dict[str, Any]]]:
    images, columns = torch.from_dlpack(batch.images), _columns(batch)
    ids = torch.from_dlpack(batch.ids)
    counts, boxes = batch.object_counts, batch.picture_boxes
    shown: list[Any] = []
    targets: list[dict[str, Any]] = []
    for row in batch.counted_rows:
        image = _cut(images[row], boxes[row])
        size = tuple(image.shape[-2:]) if image.shape[0] == 3 else tuple(image.shape[:2])
        target = {
            name: columns[name][row, : counts[row]] for name in _OF_OBJECTS if name in columns
        }
        for name in ("masks", "label_image"):
            if name in columns:
                planes = target.get(name, columns[name][row])
                target[name] = planes[..., : size[0], : size[1]]
        if wrap is not None:
            target = {name: wrap(name, values, size) for name, values in target.items()}
        target["image_id"] = columns["image_id"][row] if "image_id" in columns else ids[row]
        shown.append(image)
        targets.append(target)
    return shown, targets


def _counted(batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The rows that count: all of them but in an epoch's last batch, and with a bad sample."""
    images, columns = torch.from_dlpack(batch.images), _columns(batch)
    if batch.valid == len(batch):
        return images, columns
    rows = batch.counted_rows
    return images[rows], {
        name: values if name.startswith("packed_") else values[rows]
        for name, values in columns.items()
    }


def _padded(batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    return _counted(batch)


def _packed(batch: Batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    images, columns = _counted(batch)
    counts, rows = batch.object_counts, batch.counted_rows
    total = sum(counts)
    packed = {
        name.removeprefix("packed_"): values.flatten(0, 1)[:total]
        for name, values in columns.items()
        if name.startswith("packed_")
    }
    kept = [counts[row] for row in rows]
    if len(rows) < len(counts):
        begins = [sum(counts[:row]) for row in rows]
        places = [b + i for b, count in zip(begins, kept, strict=True) for i in range(count)]
        packed = {name: values[places] for name, values in packed.items()}
    offsets = torch.tensor([0, *kept]).cumsum(0)
    for name in ("picture_box", "label_image"):
        if name in columns:
            packed[name] = columns[name]
    return images, {**packed, "offsets": offsets}


def _label_images(batch: Batch, wrap: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    images, columns = _counted(batch)
    labels = columns["label_image"].long()
    return images, labels if wrap is None else wrap("label_image", labels, None)
