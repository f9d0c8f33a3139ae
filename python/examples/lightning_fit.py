#!/usr/bin/env python3
"""ResNet-18 under Lightning's Trainer, on an image folder with train/ and val/; any number of
processes.

    PYTHONPATH=build/python python python/examples/lightning_fit.py DIR --devices 2 --out run
    ... --resume run/step=10.ckpt --epochs 2   # goes on at the very batch, even within an epoch

RandAugment, mixup and CutMix are done by stoker. on_batch makes tensors of a batch and the soft
labels, in a thread ahead of the training. Rows that fill up the last batch have weight 0, so that
loss and accuracy count every picture once over all processes. The Trainer's checkpoint has the
loader's place.
"""

import argparse

import lightning
import torch
import torchvision
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.nn.functional import cross_entropy, one_hot
from torchmetrics import MeanMetric, SumMetric

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


def loader_of(source, augment, device, **options):
    classes = len(source.classes)
    # rank and world are torch.distributed's, which Lightning has initialised when it asks.
    return stoker.Loader(
        source,
        augment=augment,
        device=device,
        dtype="float32",
        layout="channels_last",
        mean=stoker.IMAGENET_MEAN,
        std=stoker.IMAGENET_STD,
        on_batch=lambda batch: tensors(classes, batch),
        **options,
    )


class Pictures(lightning.LightningDataModule):
    def __init__(self, folder, batch_size, samples):
        super().__init__()
        self.train = source_of(folder, "train", samples)
        self.val = source_of(folder, "test", samples)
        self.batch_size = batch_size

    def train_dataloader(self):
        device = self.trainer.strategy.root_device
        return loader_of(self.train, MIXED, device, batch_size=self.batch_size, seed=1)

    def val_dataloader(self):
        device, crop = self.trainer.strategy.root_device, "resize_center_crop(size=64)"
        return loader_of(self.val, crop, device, batch_size=self.batch_size, shuffle=False)


class Net(lightning.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.net = torchvision.models.resnet18(num_classes=classes)
        self.rows, self.loss = SumMetric(), MeanMetric()
        self.val_rows, self.top1 = SumMetric(), MeanMetric()

    def training_step(self, batch, index):
        images, labels, weights = batch
        losses = cross_entropy(self.net(images), labels, reduction="none")
        self.rows.update(weights)
        self.loss.update(losses.detach(), weights)
        return (losses * weights).sum() / weights.sum().clamp(min=1)

    def on_train_epoch_end(self):
        self.log_dict({"rows": self.rows, "loss": self.loss})

    def validation_step(self, batch, index):
        images, labels, weights = batch
        self.val_rows.update(weights)
        self.top1.update((self.net(images).argmax(1) == labels.argmax(1)).float(), weights)
        self.log_dict({"val_rows": self.val_rows, "top1": self.top1}, on_epoch=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32, help="rows of each process")
    parser.add_argument("--samples", type=int, help="of each part; default: all")
    parser.add_argument("--accelerator", default="auto", help="as in lightning.Trainer")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--out", default="lightning_run", help="folder of the checkpoints")
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--resume", help="a checkpoint to go on from")
    args = parser.parse_args()

    lightning.seed_everything(1, verbose=False)
    data = Pictures(args.folder, args.batch_size, args.samples)
    keep = ModelCheckpoint(
        args.out,
        every_n_train_steps=args.every,
        save_top_k=-1,
        filename="{step}",
        save_last=True,
        save_on_train_epoch_end=False,
    )
    trainer = lightning.Trainer(
        accelerator=args.accelerator,
        devices=args.devices,
        max_epochs=args.epochs,
        callbacks=[keep],
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Net(len(data.train.classes)), data, ckpt_path=args.resume)
    if trainer.is_global_zero:
        found = {name: round(float(value), 4) for name, value in trainer.callback_metrics.items()}
        print(f"epoch {trainer.current_epoch}, step {trainer.global_step}: {found}")


if __name__ == "__main__":
    main()
