"""Reads torchvision's transforms: those that stoker runs itself, in C++, with the same pixels.

Classes are recognised by their names and their package, so that torchvision need not
be imported and both versions of its transforms work.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stoker._augment import (
    Augment,
    color_jitter,
    flip,
    random_resized_crop,
    resize_center_crop,
    resize_whole,
)

# A transform may follow others of its stage and of earlier stages: stoker's order is fixed.
_STAGES = {
    "RandomResizedCrop": 0,
    "Resize": 0,
    "CenterCrop": 0,
    "RandomHorizontalFlip": 1,
    "ColorJitter": 1,
    "PILToTensor": 2,
    "ToImage": 2,
    "ToTensor": 2,
    "ConvertImageDtype": 3,
    "ToDtype": 3,
    "Normalize": 4,
    "ToPureTensor": 5,  # of v2: changes the class of a tensor, not its values
}
# Classes that only run their `transforms` in order. The last two are from torchvision's reference
# training (presets.py), which many programs have a copy of.
_SEQUENCES = ("Compose", "ClassificationPresetTrain", "ClassificationPresetEval")


class Plan(NamedTuple):
    """The meaning of the transforms for a Loader."""

    augment: Augment
    size: tuple[int, int]  # height, width
    dtype: str
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None


def read_transform(transform: Any) -> Plan:
    """`transform`: a Compose of torchvision, the transforms of its models' weights, or those of its
    reference training.

    ValueError names a transform that stoker does not have, or that does not fit stoker's fixed
    order (crop and resize, flip and colours, to float, normalise).
    """
    if _is_torchvisions(transform, "ImageClassification"):
        return _of_weights(transform)
    steps = _flat(transform)
    names = [type(step).__name__ for step in steps]
    for i, name in enumerate(names):
        if not _is_torchvisions(steps[i], *_STAGES):
            raise ValueError(
                f"stoker does not do {_name_of(steps[i])}. It does {', '.join(_STAGES)} of "
                "torchvision in a Compose; own operations on pixels are C++ "
                "(tests/consumer/README.md), what works on batches goes behind the loader"
            )
        if i > 0 and (_STAGES[name] < _STAGES[names[i - 1]] or name in names[:i]):
            raise ValueError(
                f"{name} cannot stand behind {', '.join(names[:i])}: stoker's order is "
                "crop and resize, flip and colours, to float, normalise; each once"
            )
    found = dict(zip(names, steps, strict=True))
    augment, size = _crop(found, transform)
    for name, read in (("RandomHorizontalFlip", _flip), ("ColorJitter", _jitter)):
        if name in found:
            augment = augment | read(found[name])
    return Plan(augment, size, *_values(found))


def _is_torchvisions(step: Any, *names: str) -> bool:
    """Returns whether `step` is of one of these classes of torchvision, not of another package."""
    kind = type(step)
    return kind.__name__ in names and kind.__module__.partition(".")[0] == "torchvision"


def _name_of(step: Any) -> str:
    kind = type(step)
    return f"{kind.__module__}.{kind.__qualname__}: {step!r}"


def _flat(transform: Any) -> list[Any]:
    """Returns the steps of nested Composes. Others that contain transforms (RandomApply,
    RandomChoice, RandomOrder) choose among them: they are single steps here.
    """
    if transform is None:
        return []
    kind = type(transform)
    is_preset = kind.__name__ in _SEQUENCES and kind.__module__.rpartition(".")[2] == "presets"
    if not (is_preset or _is_torchvisions(transform, "Compose")):
        return [transform]
    inner = transform.transforms
    steps = inner if isinstance(inner, (list, tuple)) else [inner]
    return [step for one in steps for step in _flat(one)]


def _of_weights(preset: Any) -> Plan:
    """Returns the plan of the transform of torchvision's weights: resize, centre crop, float32,
    normalise."""
    short, size = _short_side(preset.resize_size), _sides(preset.crop_size)
    if short is None:
        raise ValueError(f"{preset!r}: resize_size must be one number, the short side")
    mean, std = _per_channel(preset, preset.mean), _per_channel(preset, preset.std)
    return Plan(resize_center_crop(short, _filter(preset)), size, "float32", mean, std)


def _sides(size: Any) -> tuple[int, int]:
    sides = [size] if isinstance(size, int) else list(size)
    return (int(sides[0]), int(sides[-1]))


def _short_side(size: Any) -> int | None:
    """Returns the short side after Resize(size); None if `size` gives both sides."""
    if isinstance(size, (list, tuple)) and len(size) == 1:
        return int(size[0])
    return size if isinstance(size, int) else None


def _filter(step: Any) -> str:
    name = str(getattr(step.interpolation, "value", step.interpolation))
    if name not in ("bilinear", "bicubic"):
        raise ValueError(f"{step!r}: interpolation is {name!r}, must be 'bilinear' or 'bicubic'")
    return name


def _crop(found: dict[str, Any], transform: Any) -> tuple[Augment, tuple[int, int]]:
    random, resize, center = (found.get(n) for n in ("RandomResizedCrop", "Resize", "CenterCrop"))
    if random is not None and resize is None and center is None:
        crop = random_resized_crop(tuple(random.scale), tuple(random.ratio), _filter(random))
        return crop, _sides(random.size)
    if random is None and resize is not None:
        if getattr(resize, "max_size", None) is not None:
            raise ValueError(f"{resize!r}: stoker has no max_size; leave it out")
        short = _short_side(resize.size)
        if center is not None and short is not None:
            return resize_center_crop(short, _filter(resize)), _sides(center.size)
        if center is None and short is None and resize.size is not None:
            return resize_whole(_filter(resize)), _sides(resize.size)
    raise ValueError(
        f"{transform!r} does not give rows of one size in a way that stoker knows: "
        "RandomResizedCrop, Resize(short side) and CenterCrop, or Resize((height, width))"
    )


def _flip(step: Any) -> Augment:
    if step.p != 0.5:
        raise ValueError(f"{step!r}: stoker flips with p=0.5")
    return flip()


def _jitter(step: Any) -> Augment:
    strengths = {}
    for name in ("brightness", "contrast", "saturation", "hue"):
        span = getattr(step, name)
        middle = 0.0 if name == "hue" else 1.0
        # torchvision keeps 1 + strength; rounding to 12 digits removes its error.
        strengths[name] = 0.0 if span is None else round(float(span[1]) - middle, 12)
        lowest = middle - strengths[name] if name == "hue" else max(0.0, middle - strengths[name])
        if span is not None and abs(float(span[0]) - lowest) > 1e-9:
            raise ValueError(f"{step!r}: {name} must be symmetric, as one number makes it")
    return color_jitter(**strengths)


def _values(found: dict[str, Any]) -> tuple[str, Any, Any]:
    """Returns dtype, mean and std."""
    if not found.keys() & {"ToTensor", "PILToTensor", "ToImage"}:
        raise ValueError("the transform ends in PIL images: ToTensor() makes tensors of them")
    is_float = "ToTensor" in found
    for name in ("ConvertImageDtype", "ToDtype"):
        if name in found:
            wanted = str(found[name].dtype)
            scaled = name == "ConvertImageDtype" or found[name].scale
            if wanted != "torch.float32" or not scaled:
                raise ValueError(
                    f"{found[name]!r}: stoker gives float32 of pixels / 255, or uint8 "
                    "where no type is asked for"
                )
            is_float = True
    normalize = found.get("Normalize")
    if normalize is None:
        return ("float32" if is_float else "uint8"), None, None
    if not is_float:
        raise ValueError(f"{normalize!r} on uint8: put ConvertImageDtype(torch.float32) before it")
    mean, std = _per_channel(normalize, normalize.mean), _per_channel(normalize, normalize.std)
    return "float32", mean, std


def _per_channel(step: Any, values: Any) -> tuple[float, ...]:
    """Returns one number per channel; a single number stands for all, as in torchvision."""
    numbers = [values] if isinstance(values, (int, float)) else list(values)
    if len(numbers) not in (1, 3):
        raise ValueError(f"{step!r}: images have 3 channels, not {len(numbers)}")
    return tuple(float(number) for number in (numbers * 3)[:3])
