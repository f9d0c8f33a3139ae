"""The training loader of torchvision's references/segmentation/train.py, fed by stoker. `adapt`
puts this file beside that script.

The samples and the preset of --use-v2 are the script's; sizes, crops and flips are drawn by stoker.
A picture that is smaller than the crop lies at a random place in it (RandomCrop's pad_if_needed),
not at the upper left. Evaluation stays torchvision's.
"""

from __future__ import annotations

import os

import torch
from torchvision.transforms import v2

import stoker
from stoker.torch import DataLoader, from_torchvision

IGNORED = 255  # what the script's loss leaves out


def training_loader(
    dataset, batch_size, sampler, num_workers, collate_fn, drop_last, args, device
):
    """In place of PyTorch's DataLoader. `dataset` is the script's Subset of a CocoDetection, which
    says what to read; no sample is asked of it. ValueError: an option that stoker does not have.
    """
    if not args.use_v2:
        raise ValueError(
            "give --use-v2 (and --dataset coco): stoker reads torchvision's transforms of version 2"
        )
    coco = dataset.dataset
    to_labels, preset = coco.transforms.transforms
    ids = [coco.ids[i] for i in dataset.indices]
    rows = [objects_of(coco.coco, each, to_labels.COCO_TO_VOC_LABEL_MAP) for each in ids]
    paths = [os.path.join(coco.root, coco.coco.imgs[each]["file_name"]) for each in ids]
    source = stoker.files(paths, [0] * len(paths))
    return DataLoader(
        stoker.with_annotations(source, rows, box_format="xywh"),
        batch_size,
        sampler=sampler,
        num_workers=num_workers,
        drop_last=drop_last,
        device=device,
        annotations=stoker.Annotations(
            max_objects=max(len(row["labels"]) for row in rows), masks="bytes"
        ),
        targets="padded",
        on_batch=label_images,
        **from_torchvision(padding_crop(preset.transforms.transforms))._asdict(),
    )


def objects_of(coco, image_id, classes):
    """The objects that have a class, and behind them the picture itself as one of class 0: where
    its mask is not, there is padding."""
    height, width = (coco.imgs[image_id][side] for side in ("height", "width"))
    picture = {
        "category_id": 0,
        "bbox": [0, 0, width, height],
        "segmentation": {"size": [height, width], "counts": [0, height * width]},
    }
    objects = [each for each in coco.imgToAnns[image_id] if each["category_id"] in classes]
    shown = [*objects, picture]
    return {
        "boxes": [each["bbox"] for each in shown],
        "labels": [classes[each["category_id"]] for each in shown],
        "masks": [each["segmentation"] for each in shown],
        "size": (height, width),
    }


def padding_crop(steps):
    """The preset's transforms, with one of torchvision's own for PadIfSmaller and RandomCrop."""
    return v2.Compose(
        [
            v2.RandomCrop(step.size, pad_if_needed=True) if type(step) is v2.RandomCrop else step
            for step in steps
            if type(step).__name__ != "PadIfSmaller"
        ]
    )


def label_images(batch):
    """Makes label images of masks, as the script does before it moves them: the loss ignores pixels
    of two objects, and of no picture."""
    images, objects = batch
    height, width = images.shape[-2:]
    labels = torch.empty(len(images), height, width, dtype=torch.int64, device=images.device)
    for row, count in enumerate(objects["object_count"].tolist()):
        masks = objects["masks"][row, :count]
        classes = objects["labels"][row, :count].to(torch.uint8)
        covered = masks.sum(0)  # by the picture, too
        labels[row] = (masks * classes[:, None, None]).amax(0)
        labels[row][(covered == 0) | (covered > 2)] = IGNORED
    return images, labels
