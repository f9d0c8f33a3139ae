"""torchvision's transforms, read: what of them stoker does itself, in C++ and with the same pixels.

Classes are told by their names, so that torchvision need not be there and both of its versions fit.
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

# A transform may follow those of its stage and of the stages before it: stoker's order is fixed.
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
}


class Plan(NamedTuple):
    """What a Loader is told."""

    augment: Augment
    size: tuple[int, int]  # height, width
    dtype: str
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None


def read_transform(transform: Any) -> Plan:
    """`transform`: a Compose of torchvision, or anything that has one as its `transforms`.

    ValueError naming the transform that stoker has not, or that stands where stoker's fixed order
    (crop and resize, flip and colours, to float, normalise) does not have it.
    """
    steps = _flat(transform)
    names = [type(step).__name__ for step in steps]
    for i, name in enumerate(names):
        if name not in _STAGES:
            raise ValueError(
                f"stoker does not do {steps[i]!r}. It does {', '.join(_STAGES)}; own operations on "
                "pixels are C++ (tests/consumer/README.md), what works on batches goes behind the "
                "loader"
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


def _flat(transform: Any) -> list[Any]:
    inner = getattr(transform, "transforms", None)
    if inner is None:
        return [] if transform is None else [transform]
    steps = inner if isinstance(inner, (list, tuple)) else [inner]
    return [step for one in steps for step in _flat(one)]


def _sides(size: Any) -> tuple[int, int]:
    sides = [size] if isinstance(size, int) else list(size)
    return (int(sides[0]), int(sides[-1]))


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
    short = None if resize is None else resize.size
    if not isinstance(short, (int, type(None))):
        short = short[0] if len(short) == 1 else short
    if random is None and center is not None and isinstance(short, int):
        return resize_center_crop(short, _filter(resize)), _sides(center.size)
    if random is None and center is None and isinstance(short, (tuple, list)):
        return resize_whole(_filter(resize)), _sides(short)
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
        # torchvision keeps 1 + strength; the 12th digit is its rounding.
        strengths[name] = 0.0 if span is None else round(float(span[1]) - middle, 12)
        lowest = middle - strengths[name] if name == "hue" else max(0.0, middle - strengths[name])
        if span is not None and abs(float(span[0]) - lowest) > 1e-9:
            raise ValueError(f"{step!r}: {name} must be symmetric, as one number makes it")
    return color_jitter(**strengths)


def _values(found: dict[str, Any]) -> tuple[str, Any, Any]:
    """dtype, mean and std."""
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
    return "float32", tuple(map(float, normalize.mean)), tuple(map(float, normalize.std))
