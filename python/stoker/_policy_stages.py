"""Stages that choose among others, and those around a list: functions of stoker.augment."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stoker._augment import Augment, Colour, stage


def random_apply(stages: Augment, p: float = 0.5) -> Augment:
    """All of a list, or none of it: random_apply(color_jitter(0.4) | grayscale(), p=0.8)."""
    return stage("random_apply", stages, p=p)


def random_choice(
    *stages: Augment, weights: Sequence[float] | None = None, p: float = 1
) -> Augment:
    """One of several lists, by equal chances or by weights."""
    return stage("random_choice", *stages, weights=weights, p=p)


def random_order(stages: Augment, p: float = 1) -> Augment:
    """A list of stages in a random order."""
    return stage("random_order", stages, p=p)


def random_augment(
    num_ops: int = 2,
    magnitude: int = 9,
    num_magnitude_bins: int = 31,
    interpolation: str = "nearest",
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """torchvision's RandAugment: some operations of 14, all with one magnitude."""
    return stage(
        "random_augment",
        num_ops=num_ops,
        magnitude=magnitude,
        num_magnitude_bins=num_magnitude_bins,
        interpolation=interpolation,
        fill=fill,
        p=p,
    )


def trivial_augment_wide(
    num_magnitude_bins: int = 31,
    interpolation: str = "nearest",
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """torchvision's TrivialAugmentWide: one operation of 14 with a random magnitude."""
    return stage(
        "trivial_augment_wide",
        num_magnitude_bins=num_magnitude_bins,
        interpolation=interpolation,
        fill=fill,
        p=p,
    )


def auto_augment(
    policy: str = "imagenet", interpolation: str = "nearest", fill: Colour = 0, p: float = 1
) -> Augment:
    """torchvision's AutoAugment: one of 25 learned pairs of operations; policy: 'imagenet',
    'cifar10' or 'svhn'.
    """
    return stage("auto_augment", policy=policy, interpolation=interpolation, fill=fill, p=p)


def aug_mix(
    severity: int = 3,
    mixture_width: int = 3,
    chain_depth: int = -1,
    alpha: float = 1,
    all_ops: bool = True,
    interpolation: str = "bilinear",
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """AugMix: a blend of the image with chains of operations on it. torchvision runs these on
    tensors, stoker as Pillow does.
    """
    return stage(
        "aug_mix",
        severity=severity,
        mixture_width=mixture_width,
        chain_depth=chain_depth,
        alpha=alpha,
        all_ops=all_ops,
        interpolation=interpolation,
        fill=fill,
        p=p,
    )


def timm_auto_augment(
    config: str, interpolation: str = "random", fill: Colour = 128, p: float = 1
) -> Augment:
    """The policies of timm, by the text that its create_transform(auto_augment=) takes: a name, and
    sections of a key and a number.

        rand-m9-mstd0.5-inc1    RandAugment
            m: magnitude (10), n: operations of each image (2), p: probability of each (0.5),
            mstd: deviation of the magnitude (0; above 100 evenly from 0), mmax: its most (10),
            inc1: operations that do more with a larger magnitude,
            tweights, t3a, t3aw: another set of operations
        original, originalr, v0, v0r, 3a    AutoAugment, DeiT III's 3-Augment
            mstd
        augmix-m3-w3    AugMix
            m (3), mstd (evenly from 0), w: chains (3), d: operations of each (1 to 3), a: alpha (1)

    interpolation: of what moves pixels; 'random': bilinear or bicubic, drawn for each operation, as
    create_transform(interpolation='random'). fill: its colour; create_transform() takes the mean's.
    """
    return stage("timm_auto_augment", config=config, interpolation=interpolation, fill=fill, p=p)


def operation(path: str | os.PathLike[str], p: float = 1) -> Augment:
    """Your own operation on the pixels, whatever size they have there: a shared library, built from
    C++ with the headers of this version of stoker (tests/consumer/README.md). RuntimeError: the
    file does not exist, is no operation, or is for another version.
    """
    return stage("operation", path=os.fspath(path), p=p)


def mix(
    mixup: float = 0,
    cutmix: float = 0,
    p: float = 1,
    switch_p: float = 0.5,
    per_batch: bool = False,
) -> Augment:
    """Mixup and CutMix of each row with its neighbour in the epoch; the last stage of a list.

    mixup, cutmix: alpha of the distribution Beta(alpha, alpha) of the shares; 0: off. switch_p: the
    probability of CutMix where both are on. per_batch: one draw for all rows of a batch.
    Batch.targets then has mix_label, the partner's label, and mix_weight, the share of the row's
    own: loss = mix_weight * loss(label) + (1 - mix_weight) * loss(mix_label). Other targets are not
    mixed: a row has its own sample's. The batch size must be even.
    """
    return stage("mix", mixup=mixup, cutmix=cutmix, p=p, switch_p=switch_p, per_batch=per_batch)


def views(*stages: Augment, counts: int | Sequence[int] | None = None) -> Augment:
    """Several rows of each sample, of one reading and decoding, as DINO and SimCLR need them: so
    many (`counts`, by default 1) of each list. It stands alone. Batch.views has them.

        views(random_resized_crop(224) | flip(), random_resized_crop(96) | flip(), counts=(2, 8))
    """
    return stage("views", *stages, counts=counts)
