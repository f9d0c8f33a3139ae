#!/usr/bin/env python3
"""ResNet-18 with Hugging Face Accelerate, on an image folder with train/ and val/; any number of
processes.

    export PYTHONPATH=build/python
    accelerate launch --num_processes 2 python/examples/accelerate_train.py DIR --out run
    ACCELERATE_USE_CPU=true torchrun --standalone --nproc_per_node 2 .../accelerate_train.py DIR
    ... --resume run/step_10 --epochs 2     # goes on at the very batch, even within an epoch

RandAugment, mixup and CutMix are done by stoker. on_batch makes tensors of a batch and the soft
labels, in a thread ahead of the training. Rows that fill up the last batch have weight 0, so that
loss and accuracy count every picture once over all processes. The loader is told its rank and is
not given to prepare(); it is registered for checkpointing, so that saved states have its place.
"""

import argparse
from pathlib import Path

import torch
import torchvision
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn.functional import cross_entropy, one_hot

import stoker

RECIPE = "random_resized_crop(64, scale=(0.35, 1)) | random_augment | flip"
MIXED = RECIPE + " | mix(mixup=0.2, cutmix=1)"


def source_of(folder, split, samples):
    """Returns all samples, or as many, drawn at random."""
    source = stoker.folder(folder, split=split)
    if samples is None or samples >= len(source):
        return source
    return stoker.random_split(source, [samples, len(source) - samples], seed=0)[0]


def tensors(classes, batch):
    """Returns images, soft labels and weights. Called in stoker's thread."""
    images, labels = torch.from_dlpack(batch.images), torch.from_dlpack(batch.labels).long()
    soft = one_hot(labels, classes).float()
    if "mix_label" in batch.targets:
        share = torch.from_dlpack(batch.targets["mix_weight"])[:, None]
        partner = torch.from_dlpack(batch.targets["mix_label"]).long()
        soft = share * soft + (1 - share) * one_hot(partner, classes)
    return images, soft, torch.from_dlpack(batch.weights)


def loader_of(source, accelerator, augment, **options):
    classes = len(source.classes)
    return stoker.Loader(
        source,
        augment=augment,
        rank=accelerator.process_index,
        world=accelerator.num_processes,
        device=accelerator.device,
        dtype="float32",
        layout="channels_last",
        mean=stoker.IMAGENET_MEAN,
        std=stoker.IMAGENET_STD,
        on_batch=lambda batch: tensors(classes, batch),
        **options,
    )


def train(accelerator, model, optimizer, loader, save_every, out):
    """Runs the rest of an epoch. Returns the mean loss over what it ran, and its rows."""
    model.train()
    total = torch.zeros(2, device=accelerator.device)
    for images, labels, weights in loader:
        losses = cross_entropy(model(images), labels, reduction="none") * weights
        optimizer.zero_grad()
        accelerator.backward(losses.sum() / weights.sum().clamp(min=1))
        optimizer.step()
        total += torch.stack([losses.detach().sum(), weights.sum()])
        step = loader.state_dict()["next_step"]
        if step % save_every == 0:
            accelerator.save_state(str(Path(out) / f"step_{step}"))
    loss, rows = accelerator.reduce(total, "sum").tolist()
    return loss / rows, rows


@torch.no_grad()
def evaluate(accelerator, model, loader):
    model.eval()
    total = torch.zeros(2, device=accelerator.device)
    for images, labels, weights in loader:
        right = (model(images).argmax(1) == labels.argmax(1)).float()
        total += torch.stack([(right * weights).sum(), weights.sum()])
    hits, rows = accelerator.reduce(total, "sum").tolist()
    return hits / rows, rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32, help="rows of each process")
    parser.add_argument("--samples", type=int, help="of each part; default: all")
    parser.add_argument("--out", default="accelerate_run", help="folder of the checkpoints")
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--resume", help="a checkpoint to go on from")
    args = parser.parse_args()

    accelerator = Accelerator()
    set_seed(1)
    source = source_of(args.folder, "train", args.samples)
    loader = loader_of(source, accelerator, MIXED, batch_size=args.batch_size, seed=1)
    val = loader_of(
        source_of(args.folder, "test", args.samples),
        accelerator,
        "resize_center_crop(size=64)",
        batch_size=args.batch_size,
        shuffle=False,
    )
    model = torchvision.models.resnet18(num_classes=len(source.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.register_for_checkpointing(loader)
    if args.resume:
        accelerator.load_state(args.resume)
    while loader.epoch < args.epochs:
        epoch = loader.epoch
        loss, rows = train(accelerator, model, optimizer, loader, args.every, args.out)
        top1, val_rows = evaluate(accelerator, model, val)
        accelerator.print(
            f"epoch {epoch}: loss {loss:.6f} of {rows:.0f} rows, top-1 {100 * top1:.2f} % of "
            f"{val_rows:.0f}, {accelerator.num_processes} processes"
        )
    accelerator.end_training()


if __name__ == "__main__":
    main()
