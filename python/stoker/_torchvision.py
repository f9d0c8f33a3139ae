"""Reads transforms of torchvision and timm as a list of stages, which gives the same pixels.

Classes are recognised by their names and their package, so that neither need be imported and both
versions of torchvision's transforms work. The pixels of single transforms are read in
_torchvision_stages.py and _timm_stages.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import groupby
from operator import or_
from typing import Any, NamedTuple

from stoker import _timm_stages, _torchvision_stages
from stoker import augment as stages
from stoker._arguments import height_and_width
from stoker._own_transforms import crops_of_class, filter_of_class
from stoker._torchvision_stages import (
    Reader,
    filter_of,
    kind_of,
    name_of,
    only,
    per_channel,
    size_of,
)
from stoker.augment import Augment

# Classes that only run their `transforms` in order; those of torchvision's reference training
# (presets.py), which many programs have a copy of.
_PRESETS = tuple(
    f"{kind}Preset{part}"
    for kind in ("Classification", "Detection", "Segmentation")
    for part in ("Train", "Eval")
)


class Plan(NamedTuple):
    """The meaning of transforms for a Loader: stoker.Loader(source, **plan._asdict())."""

    augment: Augment | None  # None: the pixels stay as they are, which raw sources allow
    size: tuple[int, int] | None  # height, width of a row; None: that of the images
    dtype: str
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None


def from_torchvision(transform: Any, canvas: int | tuple[int, int] | None = None) -> Plan:
    """Reads transforms of torchvision, of either version, in any order: Compose and Sequential, one
    in another; the transforms of its models' weights; those of its reference training (presets.py).
    Also what timm's create_transform() gives, for training and evaluation. The Loader's pixels are
    then those of the transforms on PIL images, with stoker's random numbers.

    What works on tensors there (behind ToTensor, PILToTensor, ToImage) has other pixels than
    Pillow's and is refused, but for flips and RandomErasing. Behind Normalize the colour of
    RandomErasing is a number of standard deviations: stoker takes the nearest byte, so that erased
    pixels may differ by half a grey level; 'random' (timm's 'pixel') becomes noise of that mean and
    deviation. AugMix of torchvision runs its operations on PIL images, while torchvision makes
    tensors of them. FiveCrop and TenCrop become views: ToTensor and Normalize stand behind them
    without a Lambda, and Batch.views has the crops.

    Small classes that programs copy are taken, too: TwoCropsTransform, DataAugmentationDINO and
    whatever else gives a list of what its transforms make of the picture, as views; blurs and
    solarisations that do what Pillow does, with the numbers of the module `random`. They are tried,
    here, and not believed by their names.

    canvas: where the transforms give images of several sizes, as those of detection do: the size
        of the rows on which they lie, at the upper left (stoker.augment.pad_to_size).

    ValueError: names a transform or an argument that stoker does not have.
    """
    steps = _flat(transform)
    crops = crops_of_class(steps[0]) if len(steps) == 1 and _is_foreign(steps[0]) else None
    if crops is not None:
        return _plan_of_views(steps[0], crops)
    reading = _Reading()
    for step in steps:
        reading.take(step)
    plan = reading.plan()
    return plan if canvas is None else _on_canvas(plan, height_and_width("canvas", canvas))


def _on_canvas(plan: Plan, size: tuple[int, int]) -> Plan:
    pad = stages.pad_to_size(size)
    return plan._replace(augment=pad if plan.augment is None else plan.augment | pad, size=size)


def _plan_of_views(step: Any, crops: list[Any]) -> Plan:
    """Equal transforms that follow each other are one list with a count."""
    runs = [list(run) for _, run in groupby(crops, key=id)]
    plans = [from_torchvision(run[0]) for run in runs]
    first = plans[0]
    for plan in plans:
        if plan.augment is None or plan.size is None:
            raise ValueError(f"{name_of(step)}: each of its transforms must give rows of one size")
        if plan[2:] != first[2:]:
            raise ValueError(
                f"{name_of(step)}: its transforms end in different ways, in {plan[2:]} and "
                f"{first[2:]} (type, mean, std); a batch has one"
            )
    lists = [plan.augment for plan in plans if plan.augment is not None]
    return first._replace(augment=stages.views(*lists, counts=tuple(map(len, runs))))


def _image_type(dtype: Any, tensor: str) -> Any:
    """Returns the type of images, where version 2 has one for each kind of tensors; `tensor`: the
    transform that made them."""
    if not isinstance(dtype, dict):
        return dtype
    names = {getattr(key, "__name__", key): value for key, value in dtype.items()}
    kind = "Image" if tensor == "ToImage" else "Tensor"
    return names.get(kind, names.get("others"))


class _Reading:
    """The stages that were read so far."""

    def __init__(self) -> None:
        self._stages: list[Augment] = []
        self._crops: Any = None  # the transform that made several images of one
        self._tensor = ""  # the transform that made tensors
        self._is_float = False
        self._mean: tuple[float, ...] | None = None
        self._std: tuple[float, ...] | None = None

    def take(self, step: Any) -> None:
        kind = kind_of(step)
        if kind in _VALUES:
            _VALUES[kind](self, step)
            return
        read = _reader_of(step) or _CROPS.get(kind)
        if read is None and kind not in _ERASING:
            raise ValueError(self._unknown(step))
        if self._crops is not None:
            raise ValueError(f"{step!r} cannot stand behind {self._crops!r}: put it before")
        if read is None:
            self._stages.append(_ERASING[kind](self, step))
            return
        if self._tensor and kind not in _EXACT_ON_TENSORS:
            raise ValueError(
                f"{step!r} cannot stand behind {self._tensor}: there it works on tensors, with "
                "other pixels than on PIL images; put it before"
            )
        if kind in _CROPS:
            self._crops = step
        self._stages += read(step)

    def _unknown(self, step: Any) -> str:
        if self._crops is not None and kind_of(step) == ("torchvision", "Lambda"):
            return (
                f"stoker does not do {name_of(step)}. Put ToTensor() and Normalize() behind "
                f"{self._crops!r} without it; torch.stack(views, 1) makes one tensor of the views"
            )
        return (
            f"stoker does not do {name_of(step)}. It does {_known('torchvision')} of torchvision "
            f"and {_known('timm')} of timm in a Compose; own operations on pixels are C++ "
            "(tests/consumer/README.md), what works on batches goes behind the loader. A class of "
            "one's own is taken as views if it stands alone and only lists what its transforms "
            "give; as a blur or solarisation if it is Pillow's, with numbers of the module `random`"
        )

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
        wanted = str(_image_type(step.dtype, self._tensor))
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
        self._mean, self._std = per_channel(step, step.mean), per_channel(step, step.std)

    def weights(self, preset: Any) -> None:
        """The transform of torchvision's weights: resize, centre crop, float32, normalise."""
        if not (isinstance(preset.resize_size, int) or len(preset.resize_size) == 1):
            raise ValueError(f"{preset!r}: resize_size must be one number, the short side")
        short = size_of(preset.resize_size)
        self._stages.append(stages.resize(short, filter_of(preset)))
        self._stages.append(stages.center_crop(size_of(preset.crop_size)))
        self.make_tensor(preset, is_float=True)
        self.normalise(preset)

    def erasing(self, step: Any) -> Augment:
        if not self._tensor:
            raise ValueError(f"{step!r} on PIL images: torchvision erases tensors only")
        shape = {"p": step.p, "scale": tuple(step.scale), "ratio": tuple(step.ratio)}
        mean, std = self._mean or (0.0,) * 3, self._std or (1.0,) * 3
        if step.value is None or step.value == "random":
            if self._mean is None:
                raise ValueError(f"{step!r}: value='random' must stand behind Normalize")
            return stages.random_erasing(**shape, noise=True, mean=mean, std=std)
        most = 255 if self._is_float else 1
        values = per_channel(step, step.value)
        colour = [most * (v * s + m) for v, m, s in zip(values, mean, std, strict=True)]
        if not all(0 <= c <= 255 for c in colour):
            raise ValueError(f"{step!r}: the colour is {colour}, must be 0 to 255")
        red, green, blue = map(round, colour)
        return stages.random_erasing(**shape, value=(red, green, blue))

    def timms_erasing(self, step: Any) -> Augment:
        return _timm_stages.erasing(step, self._mean, self._std)


def _flat(transform: Any) -> list[Any]:
    """Returns the steps of nested Composes. RandomApply, RandomChoice and RandomOrder, which choose
    among transforms, are single steps.
    """
    if transform is None:
        return []
    kind = type(transform)
    is_preset = kind.__name__ in _PRESETS and kind.__module__.rpartition(".")[2] == "presets"
    if is_preset or kind_of(transform) == ("torchvision", "Compose"):
        inner = transform.transforms
        steps = inner if isinstance(inner, (list, tuple)) else [inner]
    elif kind.__name__ == "Sequential" and kind.__module__.startswith("torch.nn."):
        steps = list(transform)
    else:
        return [transform]
    return [step for one in steps for step in _flat(one)]


def _inner(transforms: Any, of: Any) -> Augment:
    """Returns the list that is inside another transform."""
    steps = [inner for each in transforms for inner in _flat(each)]
    found: list[Augment] = []
    for step in steps:
        read = _reader_of(step)
        if read is None:
            raise ValueError(f"{type(of).__name__} of what stoker does not do: {name_of(step)}")
        found += read(step)
    # The grammar has no empty list.
    return reduce(or_, found) if found else stages.flip(p=0)


def _is_foreign(step: Any) -> bool:
    return kind_of(step)[0] not in ("torchvision", "timm", "torch")


def _reader_of(step: Any) -> Reader | None:
    """Returns what reads a transform of pixels; None: there is none."""
    known = _PIXELS.get(kind_of(step))
    own = filter_of_class(step) if known is None and _is_foreign(step) else None
    return known if own is None else lambda _: [own]


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


def _of(package: str, table: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {(package, name): value for name, value in table.items()}


# Readers of transforms of pixels, by package and class.
_PIXELS = {
    **_of("torchvision", _torchvision_stages.PIXELS),
    ("torchvision", "RandomApply"): only(_random_apply),
    ("torchvision", "RandomChoice"): only(_random_choice),
    ("torchvision", "RandomOrder"): only(_random_order),
    **_of("transforms", _torchvision_stages.REFERENCES),
    **_of("timm", _timm_stages.PIXELS),
}
_CROPS = _of("torchvision", _torchvision_stages.CROPS)
_ERASING: dict[tuple[str, str], Callable[[_Reading, Any], Augment]] = {
    ("torchvision", "RandomErasing"): _Reading.erasing,
    ("timm", "RandomErasing"): _Reading.timms_erasing,
}


def _make_floats(reading: _Reading, step: Any) -> None:
    reading.make_tensor(step, is_float=True)


# Readers of transforms of values, and the end of pictures.
_VALUES: dict[tuple[str, str], Callable[[_Reading, Any], None]] = {
    ("torchvision", "PILToTensor"): _Reading.make_tensor,
    ("torchvision", "ToImage"): _Reading.make_tensor,
    ("torchvision", "ToTensor"): _make_floats,
    ("torchvision", "ConvertImageDtype"): _Reading.convert,
    ("torchvision", "ToDtype"): _Reading.convert,
    ("torchvision", "Normalize"): _Reading.normalise,
    # The class of a tensor, not its values.
    ("torchvision", "ToPureTensor"): lambda reading, step: None,
    ("torchvision", "ImageClassification"): _Reading.weights,
    ("timm", "MaybePILToTensor"): _Reading.make_tensor,
    ("timm", "ToNumpy"): _Reading.make_tensor,
    ("timm", "MaybeToTensor"): _make_floats,
}
_EXACT_ON_TENSORS = [
    ("torchvision", name)
    for name in (
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "Identity",
        "RGB",
        *_torchvision_stages.OBJECTS,
    )
]


def _known(package: str) -> str:
    kinds = (*_PIXELS, *_CROPS, *_ERASING, *_VALUES)
    return ", ".join(name for each, name in kinds if each == package)
