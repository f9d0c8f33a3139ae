"""Reads torchvision's transforms as stages of stoker.augment, which give the same pixels.

Classes are recognised by their names and their package, so that torchvision need not
be imported and both versions of its transforms work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from stoker import augment as stages
from stoker.augment import Augment

# Classes that only run their `transforms` in order; those of torchvision's reference training
# (presets.py), which many programs have a copy of.
_PRESETS = ("ClassificationPresetTrain", "ClassificationPresetEval")
# PIL's numbers of interpolations, which version 2 takes as they are.
_PIL_NUMBERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
_INTERPOLATIONS = ("nearest", "bilinear", "bicubic")


class Plan(NamedTuple):
    """The meaning of transforms for a Loader: stoker.Loader(source, **plan._asdict())."""

    augment: Augment | None  # None: the pixels stay as they are, which raw sources allow
    size: tuple[int, int] | None  # height, width of a row; None: that of the images
    dtype: str
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None


def from_torchvision(transform: Any) -> Plan:
    """Reads transforms of torchvision, of either version, in any order: Compose and Sequential, one
    in another; the transforms of its models' weights; those of its reference training (presets.py).
    The Loader's pixels are then those of the transforms on PIL images, with stoker's random
    numbers.

    What works on tensors there (behind ToTensor, PILToTensor, ToImage) has other pixels than
    Pillow's and is refused, but for flips and RandomErasing. Behind Normalize the colour of
    RandomErasing is a number of standard deviations: stoker takes the nearest byte, so that erased
    pixels may differ by half a grey level; 'random' becomes noise of that mean and deviation.
    AugMix runs its operations on PIL images, while torchvision makes tensors of them.

    ValueError: names a transform or an argument that stoker does not have.
    """
    reading = _Reading()
    for step in _flat(transform):
        reading.take(step)
    return reading.plan()


class _Reading:
    """What was read so far."""

    def __init__(self) -> None:
        self._stages: list[Augment] = []
        self._tensor = ""  # the transform that made tensors
        self._is_float = False
        self._mean: tuple[float, ...] | None = None
        self._std: tuple[float, ...] | None = None

    def take(self, step: Any) -> None:
        name = type(step).__name__
        if not _is_torchvisions(step, *_KNOWN):
            raise ValueError(
                f"stoker does not do {_name_of(step)}. It does {', '.join(_KNOWN)} of "
                "torchvision in a Compose; own operations on pixels are C++ "
                "(tests/consumer/README.md), what works on batches goes behind the loader"
            )
        if name in _VALUES:
            _VALUES[name](self, step)
        elif name == "RandomErasing":
            self._stages.append(self._erasing(step))
        else:
            if self._tensor and name not in _EXACT_ON_TENSORS:
                raise ValueError(
                    f"{step!r} cannot stand behind {self._tensor}: there it works on tensors, with "
                    "other pixels than on PIL images; put it before"
                )
            self._stages += _PIXELS[name](step)

    def plan(self) -> Plan:
        if not self._tensor:
            raise ValueError("the transform ends in PIL images: ToTensor() makes tensors of them")
        augment = reduce(or_, self._stages) if self._stages else None
        size = None if augment is None else augment.size
        dtype = "float32" if self._is_float else "uint8"
        return Plan(augment, size, dtype, self._mean, self._std)

    def make_tensor(self, step: Any, is_float: bool = False) -> None:
        if self._tensor:
            raise ValueError(f"{step!r} cannot stand behind {self._tensor}")
        self._tensor = type(step).__name__
        self._is_float = is_float

    def convert(self, step: Any) -> None:
        wanted = str(step.dtype)
        scaled = type(step).__name__ == "ConvertImageDtype" or step.scale
        stays = wanted == "torch.uint8" and not self._is_float
        if not stays and (wanted != "torch.float32" or not scaled):
            raise ValueError(
                f"{step!r}: stoker gives float32 of pixels / 255, or uint8 where no type is asked "
                "for"
            )
        if not self._tensor:
            raise ValueError(f"{step!r} on PIL images: put PILToTensor() before it")
        self._is_float = not stays

    def normalise(self, step: Any) -> None:
        if not self._is_float:
            raise ValueError(f"{step!r} on uint8: put ConvertImageDtype(torch.float32) before it")
        if self._mean is not None:
            raise ValueError(f"{step!r}: a second Normalize")
        self._mean, self._std = _per_channel(step, step.mean), _per_channel(step, step.std)

    def _erasing(self, step: Any) -> Augment:
        if not self._tensor:
            raise ValueError(f"{step!r} on PIL images: torchvision erases tensors only")
        shape = {"p": step.p, "scale": tuple(step.scale), "ratio": tuple(step.ratio)}
        mean, std = self._mean or (0.0,) * 3, self._std or (1.0,) * 3
        if step.value is None or step.value == "random":
            if self._mean is None:
                raise ValueError(f"{step!r}: value='random' must stand behind Normalize")
            return stages.random_erasing(**shape, noise=True, mean=mean, std=std)
        most = 255 if self._is_float else 1
        values = _per_channel(step, step.value)
        colour = [most * (v * s + m) for v, m, s in zip(values, mean, std, strict=True)]
        if not all(0 <= c <= 255 for c in colour):
            raise ValueError(f"{step!r}: the colour is {colour}, must be 0 to 255")
        red, green, blue = map(round, colour)
        return stages.random_erasing(**shape, value=(red, green, blue))


def _is_torchvisions(step: Any, *names: str) -> bool:
    """Returns whether `step` is of one of these classes of torchvision, not of another package."""
    kind = type(step)
    return kind.__name__ in names and kind.__module__.partition(".")[0] == "torchvision"


def _name_of(step: Any) -> str:
    kind = type(step)
    return f"{kind.__module__}.{kind.__qualname__}: {step!r}"


def _flat(transform: Any) -> list[Any]:
    """Returns the steps of nested Composes. RandomApply, RandomChoice and RandomOrder, which choose
    among transforms, are single steps.
    """
    if transform is None:
        return []
    kind = type(transform)
    is_preset = kind.__name__ in _PRESETS and kind.__module__.rpartition(".")[2] == "presets"
    if is_preset or _is_torchvisions(transform, "Compose"):
        inner = transform.transforms
        steps = inner if isinstance(inner, (list, tuple)) else [inner]
    elif kind.__name__ == "Sequential" and kind.__module__.startswith("torch.nn."):
        steps = list(transform)
    else:
        return [transform]
    return [step for one in steps for step in _flat(one)]


def _filter(step: Any, names: Sequence[str] = _FILTERS) -> str:
    value = getattr(step.interpolation, "value", step.interpolation)
    name = _PIL_NUMBERS.get(value, str(value))
    if name not in names:
        raise ValueError(f"{step!r}: interpolation is {name!r}, must be one of {', '.join(names)}")
    if getattr(step, "antialias", None) is False:
        raise ValueError(f"{step!r}: antialias=False; on PIL images torchvision ignores it, too")
    return name


def _size(size: Any) -> Any:
    """Returns (height, width), or one number for both; `size`: an int, or one or two of them."""
    sides = [size] if isinstance(size, int) else list(size)
    height, width = int(sides[0]), int(sides[-1])
    return height if height == width else (height, width)


def _colour(step: Any) -> Any:
    fill = step.fill
    if fill is None:
        return 0
    values = list(fill) if isinstance(fill, (list, tuple)) else [fill]
    whole = [int(v) for v in values if isinstance(v, (int, float)) and v == int(v)]
    if len(whole) != len(values) or len(values) not in (1, 3):
        raise ValueError(f"{step!r}: fill is {fill!r}, must be a grey or three whole numbers")
    return whole[0] if len(whole) == 1 else tuple(whole)


def _span(values: Any, middle: float = 0.0, lowest: float = float("-inf")) -> Any:
    """Returns the one number that torchvision made (least, most) of, or both."""
    least, most = float(values[0]), float(values[-1])
    spread = round(most - middle, 12)
    if (max(lowest, middle - spread), middle + spread) == (least, most):
        return spread
    return least, most


def _per_channel(step: Any, values: Any) -> tuple[float, ...]:
    """Returns one number per channel; a single number stands for all, as in torchvision."""
    numbers = [values] if isinstance(values, (int, float)) else list(values)
    if len(numbers) not in (1, 3):
        raise ValueError(f"{step!r}: images have 3 channels, not {len(numbers)}")
    return tuple(float(number) for number in (numbers * 3)[:3])


def _resize(step: Any) -> Augment:
    if step.size is None:
        raise ValueError(f"{step!r}: size is None; give the short side, or height and width")
    alone = isinstance(step.size, int) or len(step.size) == 1
    if alone:
        most = getattr(step, "max_size", None) or 0
        return stages.resize(_size(step.size), _filter(step), max_size=most)
    height, width = step.size  # the same number twice is no short side
    return stages.resize((int(height), int(width)), _filter(step))


def _random_resized_crop(step: Any) -> Augment:
    limits = tuple(step.scale), tuple(step.ratio)
    return stages.random_resized_crop(_size(step.size), *limits, _filter(step))


def _padding(step: Any) -> Any:
    """Returns the padding as torchvision's arguments have it."""
    padding = step.padding
    if padding is None or isinstance(padding, int):
        return padding or 0
    is_parsed = type(step).__name__ == "RandomCrop" and ".v2" in type(step).__module__
    if is_parsed:  # (left, right, top, bottom)
        left, right, top, bottom = padding
        padding = (left, top, right, bottom)
    if len(set(padding)) == 1:
        return padding[0]
    return tuple(padding[:2] if tuple(padding[:2]) == tuple(padding[2:]) else padding)


def _random_crop(step: Any) -> Augment:
    return stages.random_crop(
        _size(step.size), _padding(step), step.padding_mode, _colour(step), step.pad_if_needed
    )


def _rotate(step: Any) -> Augment:
    return stages.rotate(
        _span(step.degrees),
        _filter(step, _INTERPOLATIONS),
        bool(step.expand),
        None if step.center is None else tuple(step.center),
        _colour(step),
    )


def _affine(step: Any) -> Augment:
    shear: Any = 0 if step.shear is None else tuple(step.shear)
    return stages.affine(
        _span(step.degrees),
        (0, 0) if step.translate is None else tuple(step.translate),
        (1, 1) if step.scale is None else tuple(step.scale),
        _span(shear) if shear != 0 and len(shear) == 2 else shear,
        _filter(step, _INTERPOLATIONS),
        _colour(step),
        None if step.center is None else tuple(step.center),
    )


def _perspective(step: Any) -> Augment:
    return stages.perspective(
        step.distortion_scale, _filter(step, _INTERPOLATIONS), _colour(step), step.p
    )


def _jitter(step: Any) -> Augment:
    spans = {}
    for name in ("brightness", "contrast", "saturation", "hue"):
        span = getattr(step, name)
        if span is not None:
            is_hue = name == "hue"
            spans[name] = _span(span, 0 if is_hue else 1, -0.5 if is_hue else 0)
    return stages.color_jitter(**spans)


def _grayscale(step: Any) -> Augment:
    if step.num_output_channels != 3:
        raise ValueError(f"{step!r}: images have 3 channels; give num_output_channels=3")
    return stages.grayscale()


def _blur(step: Any) -> Augment:
    across, down = step.kernel_size  # torchvision's order
    return stages.gaussian_blur((int(down), int(across)), _span_of_range(step.sigma))


def _span_of_range(values: Any) -> Any:
    return values if isinstance(values, (int, float)) else (float(values[0]), float(values[-1]))


def _policy_options(step: Any) -> dict[str, Any]:
    return {"interpolation": _filter(step, _INTERPOLATIONS), "fill": _colour(step)}


def _auto_augment(step: Any) -> Augment:
    return stages.auto_augment(str(step.policy.value), **_policy_options(step))


def _random_augment(step: Any) -> Augment:
    numbers = (step.num_ops, step.magnitude, step.num_magnitude_bins)
    return stages.random_augment(*numbers, **_policy_options(step))


def _trivial_augment(step: Any) -> Augment:
    return stages.trivial_augment_wide(step.num_magnitude_bins, **_policy_options(step))


def _aug_mix(step: Any) -> Augment:
    return stages.aug_mix(
        step.severity,
        step.mixture_width,
        step.chain_depth,
        step.alpha,
        bool(step.all_ops),
        **_policy_options(step),
    )


def _inner(transforms: Any, of: Any) -> Augment:
    """Returns the list that is inside another transform."""
    steps = [inner for each in transforms for inner in _flat(each)]
    found: list[Augment] = []
    for step in steps:
        if not _is_torchvisions(step, *_PIXELS):
            raise ValueError(f"{type(of).__name__} of what stoker does not do: {_name_of(step)}")
        found += _PIXELS[type(step).__name__](step)
    # The grammar has no empty list.
    return reduce(or_, found) if found else stages.flip(p=0)


def _random_apply(step: Any) -> Augment:
    return stages.random_apply(_inner(step.transforms, step), step.p)


def _random_choice(step: Any) -> Augment:
    weights = None if step.p is None else tuple(step.p)
    if weights is not None and len(set(weights)) == 1:
        weights = None
    return stages.random_choice(*(_inner([t], step) for t in step.transforms), weights=weights)


def _random_order(step: Any) -> Augment:
    """A Compose in it stays together."""
    parts = []
    for each in step.transforms:
        part = _inner([each], step)
        parts.append(part if len(_flat(each)) == 1 else stages.random_apply(part, p=1))
    return stages.random_order(reduce(or_, parts))


def _of_weights(preset: Any) -> list[Augment]:
    if not (isinstance(preset.resize_size, int) or len(preset.resize_size) == 1):
        raise ValueError(f"{preset!r}: resize_size must be one number, the short side")
    short = _size(preset.resize_size)
    return [stages.resize(short, _filter(preset)), stages.center_crop(_size(preset.crop_size))]


def _take_weights(reading: _Reading, preset: Any) -> None:
    """The transform of torchvision's weights: resize, centre crop, float32, normalise."""
    reading._stages += _of_weights(preset)
    reading.make_tensor(preset, is_float=True)
    reading.normalise(preset)


def _only(read: Callable[[Any], Augment]) -> Callable[[Any], list[Augment]]:
    return lambda step: [read(step)]


# What is done to pixels.
_PIXELS: dict[str, Callable[[Any], list[Augment]]] = {
    "RandomResizedCrop": _only(_random_resized_crop),
    "Resize": _only(_resize),
    "CenterCrop": _only(lambda step: stages.center_crop(_size(step.size))),
    "RandomCrop": _only(_random_crop),
    "Pad": _only(lambda step: stages.pad(_padding(step), _colour(step), step.padding_mode)),
    "RandomHorizontalFlip": _only(lambda step: stages.flip(p=step.p)),
    "RandomVerticalFlip": _only(lambda step: stages.vertical_flip(step.p)),
    "RandomRotation": _only(_rotate),
    "RandomAffine": _only(_affine),
    "RandomPerspective": _only(_perspective),
    "ColorJitter": _only(_jitter),
    "Grayscale": _only(_grayscale),
    "RandomGrayscale": _only(lambda step: stages.grayscale(step.p)),
    "RandomInvert": _only(lambda step: stages.invert(step.p)),
    "RandomPosterize": _only(lambda step: stages.posterize(step.bits, step.p)),
    "RandomSolarize": _only(lambda step: stages.solarize(step.threshold, step.p)),
    "RandomAdjustSharpness": _only(lambda step: stages.sharpness(step.sharpness_factor, step.p)),
    "RandomAutocontrast": _only(lambda step: stages.autocontrast(step.p)),
    "RandomEqualize": _only(lambda step: stages.equalize(step.p)),
    "GaussianBlur": _only(_blur),
    "AutoAugment": _only(_auto_augment),
    "RandAugment": _only(_random_augment),
    "TrivialAugmentWide": _only(_trivial_augment),
    "AugMix": _only(_aug_mix),
    "RandomApply": _only(_random_apply),
    "RandomChoice": _only(_random_choice),
    "RandomOrder": _only(_random_order),
    "Identity": lambda step: [],
    "RGB": lambda step: [],  # a Loader's images have three channels anyway
}
# What is done to the values, and the end of pictures.
_VALUES: dict[str, Callable[[_Reading, Any], None]] = {
    "PILToTensor": _Reading.make_tensor,
    "ToImage": _Reading.make_tensor,
    "ToTensor": lambda reading, step: reading.make_tensor(step, is_float=True),
    "ConvertImageDtype": _Reading.convert,
    "ToDtype": _Reading.convert,
    "Normalize": _Reading.normalise,
    "ToPureTensor": lambda reading, step: None,  # the class of a tensor, not its values
    "ImageClassification": _take_weights,
}
_KNOWN = (*_PIXELS, "RandomErasing", *_VALUES)
_EXACT_ON_TENSORS = ("RandomHorizontalFlip", "RandomVerticalFlip", "Identity", "RGB")
