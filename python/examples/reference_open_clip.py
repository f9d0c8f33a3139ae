"""The training data of open_clip's src/open_clip_train/main.py, fed by stoker. `adapt` puts this
file beside it.

Tar shards, transforms and tokens are the script's. Every sample comes once in an epoch, shuffled
over all shards and ranks, for any number of shards; which epoch it is determines the order, so that
a resumed training goes on as it would have. Evaluation stays as it is.
"""

from __future__ import annotations

from functools import partial

import torch
from open_clip_train import data as own
from torchvision import transforms

import stoker
from stoker.torch import DataLoader, from_torchvision

REFUSED = ("train_data_upsampling_factors", "use_naflex", "variable_text", "genlip")


def training_data(args, preprocess_fns, epoch=0, tokenizer=None, **given):
    """In place of get_data(). ValueError: an option or a transform that stoker does not have."""
    if not args.train_data or own.get_dataset_fn(args.train_data, args.dataset_type) is not (
        own.get_wds_dataset
    ):
        return own.get_data(args, preprocess_fns, epoch, tokenizer, **given)
    shards, args.train_data = args.train_data, None
    data = own.get_data(args, preprocess_fns, epoch, tokenizer, **given)
    args.train_data = shards
    return {"train": TrainingData(args, preprocess_fns[0], tokenizer), **data}


class TrainingData:
    """Has the parts of the script's DataInfo that its training reads."""

    def __init__(self, args, transform, tokenizer):
        for name in REFUSED:
            if getattr(args, name, None):
                raise ValueError(f"--{name.replace('_', '-')}: stoker does not feed this")
        source = stoker.tar(
            own.expand_urls(args.train_data)[0], label_from="none", targets_from=[caption_of(args)]
        )
        (caption,) = source.targets
        self.dataloader = DataLoader(
            source,
            args.batch_size,
            num_workers=args.workers,
            device=args.device,
            seed=args.seed,
            rank=args.rank,
            world=args.world_size,
            last_batch="wrap",
            texts="random",
            max_target_bytes=8192,  # a tokenizer reads less of a caption
            too_long="cut",
            on_batch=partial(pairs_of, caption=caption, tokenizer=tokenizer, rows=args.batch_size),
            **order_of(args, len(source)),
            **from_torchvision(as_torchvision(transform))._asdict(),
        )
        self.dataloader.num_batches = len(self.dataloader)
        self.dataloader.num_samples = len(self.dataloader) * args.batch_size * args.world_size

    def set_epoch(self, epoch):
        self.dataloader.set_epoch(epoch)


def caption_of(args):
    field = f"json:{args.json_text_key}" if args.json_text_key else args.text_key or "txt"
    if ";" in field:
        raise ValueError(f"{field}: stoker reads captions of one field")
    return f"{field}:text"


def order_of(args, samples):
    """An epoch has --train-num-samples of them, if that is given, and may draw with replacement."""
    wanted = args.train_num_samples or samples
    if wanted == samples and not args.dataset_resampled:
        return {"shuffle": True}
    again = args.dataset_resampled or wanted > samples
    return {"order": stoker.weighted(torch.ones(samples), wanted, replacement=again)}


# open_clip's own classes, as torchvision's that do the same.
OWN = {
    "MaybeConvertMode": lambda step: [],
    "MaybeToTensor": lambda step: [transforms.ToTensor()],
    "color_jitter": lambda step: [transforms.RandomApply([step.transf], step.p)],
    "gray_scale": lambda step: [transforms.RandomGrayscale(step.p)],
}


def as_torchvision(transform):
    steps = [OWN.get(type(step).__name__, lambda s: [s])(step) for step in transform.transforms]
    return transforms.Compose([step for part in steps for step in part])


def pairs_of(batch, caption, tokenizer, rows):
    """A damaged file's row repeats another one: the ranks compare batches of one size."""
    images, _, targets = batch
    texts = tokenizer(targets[caption])
    if len(texts) < rows:
        kept = torch.arange(rows) % len(texts)
        images, texts = images[kept.to(images.device)], texts[kept]
    return {"image": images, "text": texts}
