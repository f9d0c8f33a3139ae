"""Reads timm's transforms, as its create_transform() makes them, as stages of stoker.augment.

timm is not imported: its objects bring its modules along. What its policies were made of is known
by making them anew and comparing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any

from stoker import augment as stages
from stoker._torchvision_stages import (
    INTERPOLATIONS,
    Reader,
    colour_of,
    filter_name,
    filter_of,
    only,
    size_of,
)
from stoker.augment import Augment

_RANDOM_SETS = ("", "inc1", "tweights", "t3a", "t3aw")
_POLICIES = ("original", "originalr", "v0", "v0r", "3a")


def erasing(step: Any, mean: Sequence[float] | None, std: Sequence[float] | None) -> Augment:
    """Returns timm's RandomErasing of pixels that are normalised so. Several boxes are drawn as
    there: their number first, and then each with that part of the area.
    """
    if mean is None or std is None:
        raise ValueError(f"{step!r} must stand behind Normalize")
    if step.rand_color:
        raise ValueError(
            f"{step!r}: mode is 'rand', a random colour for each box, must be 'const' or 'pixel'"
        )
    ratio = tuple(round(math.exp(each), 12) for each in step.log_aspect_ratio)
    what: dict[str, Any] = {"ratio": ratio}
    if step.per_pixel:
        what |= {"noise": True, "mean": mean, "std": std}
    else:
        what["value"] = tuple(round(255 * each) for each in mean)

    def boxes(count: int, p: float) -> Augment:
        scale = step.min_area / count, step.max_area / count
        return reduce(or_, [stages.random_erasing(p, scale, **what)] * count)

    if step.max_count == 1:
        return boxes(1, step.probability)
    counts = range(step.min_count, step.max_count + 1)
    any_of = stages.random_choice(*(boxes(count, 1) for count in counts))
    return stages.random_apply(any_of, step.probability)


def _with_filter(step: Any, make: Callable[[str], Augment]) -> Augment:
    """Returns the stage with the interpolation of `step`; of several, each by equal chances."""
    if isinstance(step.interpolation, (list, tuple)):
        return stages.random_choice(*(make(filter_name(step, i)) for i in step.interpolation))
    return make(filter_of(step))


def _resized_crop(step: Any) -> Augment:
    limits = tuple(step.scale), tuple(step.ratio)
    return _with_filter(
        step, lambda name: stages.random_resized_crop(size_of(step.size), *limits, name)
    )


def _resize_keep_ratio(step: Any) -> Augment:
    return _with_filter(
        step,
        lambda name: stages.resize_keep_ratio(
            size_of(step.size),
            step.longest,
            name,
            step.random_scale_prob,
            tuple(step.random_scale_range),
            bool(step.random_scale_area),
            step.random_aspect_prob,
            tuple(step.random_aspect_range),
        ),
    )


def _center_crop_or_pad(step: Any) -> Augment:
    return stages.center_crop(size_of(step.size), colour_of(step), step.padding_mode)


def _random_crop_or_pad(step: Any) -> Augment:
    return stages.random_crop(
        size_of(step.size), 0, step.padding_mode, colour_of(step), pad_if_needed=True
    )


class _Operations:
    """Shared by all operations of one policy."""

    def __init__(self, step: Any, operations: Sequence[Any]):
        first = operations[0]
        if any(each.hparams != first.hparams for each in operations):
            raise ValueError(f"{step!r}: its operations have different hparams")
        if any(each.magnitude != int(each.magnitude) for each in operations):
            raise ValueError(f"{step!r}: magnitudes must be whole numbers")
        self.step = step
        self.module: Any = sys.modules[type(step).__module__]
        self.hparams = first.hparams
        self.deviation = float(first.magnitude_std)
        self.magnitude = int(first.magnitude)
        self._look: dict[str, Any] = first.kwargs

    def stage(self, config: str, translate: float = 0.45, most: bool = False) -> Augment:
        """`translate`: what stoker's stage has; `most`: whether it has a largest magnitude."""
        self._check("translate_pct", 0.45, translate)
        if not most:
            self._check("magnitude_max", None, None)
        resample = self._look["resample"]
        if isinstance(resample, (list, tuple)):
            names = [filter_name(self.step, each) for each in resample]
            if names != ["bilinear", "bicubic"]:
                raise ValueError(f"{self.step!r}: interpolations {names}; stoker draws one of two")
            name = "random"
        else:
            name = filter_name(self.step, resample, INTERPOLATIONS)
        red, green, blue = map(int, self._look["fillcolor"])
        fill = red if red == green == blue else (red, green, blue)
        return stages.timm_auto_augment(config, name, fill)

    def _check(self, name: str, otherwise: float | None, wanted: float | None) -> None:
        value = self.hparams.get(name, otherwise)
        if value != wanted:
            raise ValueError(f"{self.step!r}: {name} is {value!r}; stoker's is {wanted!r}")


def _section(key: str, value: float, otherwise: float) -> str:
    """Returns "-m9", or nothing for what is so anyway."""
    return "" if value == otherwise else f"-{key}{value:.12g}"


def _same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    def listed(operations: Sequence[Any]) -> list[Any]:
        return [(each.name, each.prob, each.magnitude) for each in operations]

    return listed(some) == listed(others)


def _random_augment(step: Any) -> Augment:
    of = _Operations(step, step.ops)
    # Above 100 means the same as infinity there.
    deviation = 101 if math.isinf(of.deviation) else of.deviation
    sections = f"rand-m{of.magnitude}" + _section("n", step.num_layers, 2)
    sections += _section("p", step.ops[0].prob, 0.5) + _section("mstd", deviation, 0)
    sections += _section("mmax", of.hparams.get("magnitude_max") or 10, 10)
    weights = None if step.choice_weights is None else list(step.choice_weights)
    for name in _RANDOM_SETS:
        config = f"{sections}-{name}" if name else sections
        made = of.module.rand_augment_transform(config, dict(of.hparams))
        made_weights = None if made.choice_weights is None else list(made.choice_weights)
        if _same(made.ops, step.ops) and made_weights == weights:
            return of.stage(config, most=True)
    raise ValueError(f"{step!r}: no set of operations of timm's rand_augment_transform()")


def _auto_augment(step: Any) -> Augment:
    of = _Operations(step, [each for part in step.policy for each in part])
    for name in _POLICIES:
        made = of.module.auto_augment_policy(name, dict(of.hparams))
        pairs = zip(made, step.policy, strict=False)
        if len(made) == len(step.policy) and all(_same(*pair) for pair in pairs):
            return of.stage(name + _section("mstd", of.deviation, 0))
    raise ValueError(f"{step!r}: no policy of timm's auto_augment_policy()")


def _aug_mix(step: Any) -> Augment:
    of = _Operations(step, step.ops)
    if step.blended or not _same(of.module.augmix_ops(of.magnitude, dict(of.hparams)), step.ops):
        raise ValueError(f"{step!r}: blended=True, or operations of your own")
    config = "augmix" + _section("m", of.magnitude, 3) + _section("w", step.width, 3)
    config += _section("d", max(step.depth, 0), 0) + _section("a", step.alpha, 1)
    return of.stage(config + _section("mstd", of.deviation, math.inf), translate=0.3)


PIXELS: dict[str, Reader] = {
    "RandomResizedCropAndInterpolation": only(_resized_crop),
    "ResizeKeepRatio": only(_resize_keep_ratio),
    "CenterCropOrPad": only(_center_crop_or_pad),
    "RandomCropOrPad": only(_random_crop_or_pad),
    "TrimBorder": only(lambda step: stages.trim_border(step.border_size)),
    "RandAugment": only(_random_augment),
    "AutoAugment": only(_auto_augment),
    "AugMixAugment": only(_aug_mix),
}
