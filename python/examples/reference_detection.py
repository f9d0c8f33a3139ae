"""The training loader of torchvision's references/detection/train.py, fed by stoker. `adapt` puts
this file beside that script.

The samples, their batches (with --aspect-ratio-group-factor, too) and the presets of --use-v2 are
the script's; crops and flips are drawn by stoker. With lsj a net gets its images without what
FixedSizeCrop adds last, and pads them itself. Evaluation stays torchvision's.
"""

from __future__ import annotations

import torch
from torchvision.transforms.v2 import functional

import stoker
from stoker.torch import DataLoader, from_torchvision


class InBatches(torch.utils.data.Sampler):
    """The indices of whole batches, one batch behind the other."""

    def __init__(self, batches):
        self.batches = batches

    @property
    def epoch(self):
        return getattr(self.batches.sampler, "epoch", None)

    def __iter__(self):
        return (index for batch in self.batches for index in batch)

    def __len__(self):
        return len(self.batches) * self.batches.batch_size


def training_loader(dataset, batch_sampler, num_workers, collate_fn, args, device):
    """In place of PyTorch's DataLoader. `dataset` is the script's Subset of a CocoDetection, which
    says what to read; no sample is asked of it. ValueError: an option that stoker does not have.
    """
    if not args.use_v2:
        raise ValueError("give --use-v2: stoker reads torchvision's transforms of version 2")
    if args.use_copypaste:
        raise ValueError("--use-copypaste: stoker pastes no objects of other pictures")
    coco, chosen = dataset.dataset, dataset.indices
    pictures = [coco.coco.imgs[coco.ids[i]] for i in chosen]
    source = stoker.open(
        coco.root, objects=f"{args.data_path}/annotations/instances_train2017.json"
    )
    places = {source.name(i): i for i in range(len(source))}
    plan = from_torchvision(coco.transforms, canvas_for(args.data_augmentation, pictures))
    return DataLoader(
        stoker.subset(source, [places[picture["file_name"]] for picture in pictures]),
        batch_sampler.batch_size,
        sampler=InBatches(batch_sampler),
        num_workers=num_workers,
        device=device,
        annotations=stoker.Annotations(
            max_objects=max(len(coco.coco.imgToAnns[coco.ids[i]]) for i in chosen),
            masks="bytes" if "mask" in args.model else None,
        ),
        on_batch=floats,
        **plan._replace(dtype="uint8")._asdict(),
    )


def canvas_for(preset, pictures):
    """Returns the (height, width) on which every picture has room; None: all have one size."""
    if preset == "lsj":
        return None
    if preset == "multiscale":
        return 1333, 1333
    times = 4 if preset == "ssd" else 1  # the most of RandomZoomOut
    return tuple(times * max(each[side] for each in pictures) for side in ("height", "width"))


def floats(batch):
    """A canvas of bytes is a fourth of one of floats, and the most of it is padding."""
    images, targets = batch
    return [functional.to_dtype(image, torch.float32, scale=True) for image in images], targets
