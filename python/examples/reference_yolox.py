"""The training loader of YOLOX's yolox/exp/yolox_base.py, fed by stoker. `adapt` puts this file
beside it.

The samples and the numbers of an experiment (sizes, probabilities, seed) are the script's; stoker
draws what is done to them, and resizes as Pillow does. Saturation and value change by about as much
as with augment_hsv, but by factors. Of more objects than a row has room for the largest stay.
Evaluation stays as it is.
"""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from pathlib import Path

import torch

import stoker
from stoker import augment
from stoker.torch import DataLoader


def training_loader(dataset, num_workers, batch_sampler, pin_memory, worker_init_fn):
    """In place of YOLOX's DataLoader. `dataset` is the script's MosaicDetection of a COCODataset,
    which says what to read; no sample is asked of it."""
    coco, stream = dataset._dataset, batch_sampler.sampler
    folder, objects = Path(coco.data_dir, coco.name), Path("annotations", coco.json_file)
    source = stoker.open(folder, objects=str(coco.data_dir / objects))
    places = {source.name(i): i for i in range(len(source))}
    chosen = [places[coco.coco.imgs[each]["file_name"]] for each in coco.ids]
    device = f"cuda:{dataset.local_rank}" if torch.cuda.is_available() else "cpu"
    classes = torch.zeros(max(coco.class_ids) + 1, device=device)
    classes[coco.class_ids] = torch.arange(len(coco.class_ids), device=device).float()

    def loader(mosaic):
        return DataLoader(
            stoker.subset(source, chosen),
            batch_sampler.batch_size,
            shuffle=True,
            num_workers=num_workers,
            device=device,
            seed=stream._seed,
            rank=stream._rank,
            world=stream._world_size,
            last_batch="wrap",
            size=dataset.input_dim,
            augment=(mosaic_stages if mosaic else plain_stages)(dataset),
            annotations=stoker.Annotations(
                max_objects=dataset.preproc.max_labels, box_format="cxcywh"
            ),
            targets="padded",
            on_batch=partial(samples_of, classes=classes),
        )

    return EndlessBatches(loader, len(batch_sampler), dataset.enable_mosaic)


class EndlessBatches:
    """YOLOX takes batches of one loop for the whole training; the length is that of its epochs."""

    def __init__(self, loader, steps, mosaic):
        self._loader = loader
        self._steps = steps
        self._mosaic = mosaic

    def __len__(self):
        return self._steps

    def close_mosaic(self):
        self._mosaic = False

    def __iter__(self):
        if self._mosaic:
            yield from takewhile(lambda _: self._mosaic, self._batches(mosaic=True))
        yield from self._batches(mosaic=False)

    def _batches(self, mosaic):
        loader = self._loader(mosaic)
        while True:
            yield from loader


def mosaic_stages(dataset):
    """YOLOX scales the canvas of four pictures about its corner; here it is the canvas's middle."""
    size = dataset.input_dim
    shear = dataset.shear
    stages = (
        augment.clamp_boxes()
        | augment.mosaic(size, p=dataset.mosaic_prob)
        | augment.affine(
            dataset.degrees,
            translate=(dataset.translate / 2, dataset.translate / 2),  # of the canvas's sides
            scale=dataset.scale,
            shear=(-shear, shear, -shear, shear),
            interpolation="bilinear",
            fill=114,
        )
        | augment.center_crop(size)
    )
    if dataset.enable_mixup:
        one_more = (
            augment.scale_jitter(size, scale_range=dataset.mixup_scale)
            | augment.flip()
            | augment.fixed_size_crop(size, fill=114)
        )
        stages |= augment.mixup(one_more, alpha=1000, p=dataset.mixup_prob)  # halves, nearly
    return stages | colours(dataset) | augment.flip(p=dataset.preproc.flip_prob)


def plain_stages(dataset):
    height, width = dataset.input_dim
    fitted = augment.scale_jitter((height, width), scale_range=(1, 1))
    return (
        augment.clamp_boxes()
        | fitted
        | colours(dataset)
        | augment.flip(p=dataset.preproc.flip_prob)
        | augment.pad_to_size((height, width), 114)
    )


def colours(dataset):
    """augment_hsv adds up to 5 of 180 to the hue and up to 30 of 255 to saturation and value."""
    return augment.random_hsv(5 / 180, 30 / 255, 30 / 255, p=dataset.preproc.hsv_prob)


def samples_of(batch, classes):
    """Returns what YOLOX's batches have: images, labels and, behind a place that no training reads,
    the pictures' ids."""
    images, objects = batch
    return bgr(images), labels_of(objects, classes), None, objects["image_id"]


def bgr(images):
    """Makes of 0 to 1 in the order RGB 0 to 255 in OpenCV's order, in place. All whole numbers come
    back as they were."""
    red = images[:, 0] * 255
    torch.mul(images[:, 2], 255, out=images[:, 0])
    images[:, 1] *= 255
    images[:, 2] = red
    return images


def labels_of(objects, classes):
    """Returns a row of class and box for each object and zeros behind the last, as TrainTransform
    makes them: without crowds, and without what is at most a pixel wide or high."""
    boxes, numbers = objects["boxes"], objects["labels"].clamp(min=0)
    is_label = (boxes[..., 2:] > 1).all(-1) & (objects["iscrowd"] == 0) & (objects["area"] > 0)
    rows = torch.cat([classes[numbers][..., None], boxes], -1) * is_label[..., None]
    order = (~is_label).to(torch.uint8).argsort(dim=1, stable=True)
    return rows.gather(1, order[..., None].expand_as(rows))
