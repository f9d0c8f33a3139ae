"""Reads torchvision's transforms of pixels as stages of stoker.augment, one by one. Errors:
ValueError with the transform.

Classes are known by their names, so that both versions of torchvision's transforms work, and it
need not be imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import pack
from typing import Any

from stoker import augment as stages
from stoker.augment import Augment

# Returns the stages that a transform of some class is.
Reader = Callable[[Any], list[Augment]]

# PIL's numbers of interpolations, which torchvision's version 2 takes as they are.
_PIL_NUMBERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
INTERPOLATIONS = ("nearest", "bilinear", "bicubic")


def only(read: Callable[[Any], Augment]) -> Reader:
    """For a transform that is one stage."""
    return lambda step: [read(step)]


def kind_of(step: Any) -> tuple[str, str]:
    """Returns the package and the name of a transform's class."""
    kind = type(step)
    return kind.__module__.partition(".")[0], kind.__name__


def name_of(step: Any) -> str:
    kind = type(step)
    return f"{kind.__module__}.{kind.__qualname__}: {step!r}"


def filter_of(step: Any, names: Sequence[str] = _FILTERS) -> str:
    name = filter_name(step, step.interpolation, names)
    if getattr(step, "antialias", None) is False:
        raise ValueError(f"{step!r}: antialias=False; on PIL images torchvision ignores it, too")
    return name


def filter_name(step: Any, interpolation: Any, names: Sequence[str] = _FILTERS) -> str:
    """Returns the name of an interpolation of torchvision or PIL, which must be one of `names`."""
    value = getattr(interpolation, "value", interpolation)
    name = _PIL_NUMBERS.get(value, str(value))
    if name not in names:
        raise ValueError(f"{step!r}: interpolation is {name!r}, must be one of {', '.join(names)}")
    return name


def size_of(size: Any) -> Any:
    """Returns (height, width), or one number for both; `size`: an int, or one or two of them."""
    sides = [size] if isinstance(size, int) else list(size)
    height, width = int(sides[0]), int(sides[-1])
    return height if height == width else (height, width)


def _fill_of(step: Any) -> Any:
    """Returns the fill of PIL images, where version 2 has one for each type."""
    fill = step.fill
    if not isinstance(fill, dict):
        return fill
    names = {getattr(key, "__name__", key): value for key, value in fill.items()}
    labels = names.get("Mask", names.get("others", 0))
    if labels not in (None, 0, 255):
        raise ValueError(
            f"{step!r}: a Mask is filled with {labels!r}; label images are filled with the "
            "ignore_label of stoker.Annotations (255), and masks of objects with 0"
        )
    of_pil = [value for key, value in fill.items() if _is_pil(key)]
    return of_pil[0] if of_pil else names.get("others", 0)


def _is_pil(kind: Any) -> bool:
    return str(getattr(kind, "__module__", "")).startswith("PIL.")


def colour_of(step: Any) -> Any:
    fill = _fill_of(step)
    if fill is None:
        return 0
    values = list(fill) if isinstance(fill, (list, tuple)) else [fill]
    whole = [int(v) for v in values if isinstance(v, (int, float)) and v == int(v)]
    if len(whole) != len(values) or len(values) not in (1, 3):
        raise ValueError(f"{step!r}: fill is {fill!r}, must be a grey or three whole numbers")
    return whole[0] if len(whole) == 1 else tuple(whole)


def span_of(values: Any, middle: float = 0.0, lowest: float = float("-inf")) -> Any:
    """Returns the one number that torchvision made (least, most) of, or both."""
    least, most = float(values[0]), float(values[-1])
    spread = round(most - middle, 12)
    if (max(lowest, middle - spread), middle + spread) == (least, most):
        return spread
    return least, most


def per_channel(step: Any, values: Any) -> tuple[float, ...]:
    """Returns one number per channel; a single number stands for all, as in torchvision."""
    numbers = [values] if isinstance(values, (int, float)) else list(values)
    if len(numbers) not in (1, 3):
        raise ValueError(f"{step!r}: images have 3 channels, not {len(numbers)}")
    return tuple(_shortest(number) for number in (numbers * 3)[:3])


def _shortest(value: Any) -> float:
    """Returns a number of a tensor of 32-bit floats with as few digits as tell it from others."""
    number = float(value)
    if "float32" not in str(getattr(value, "dtype", "")):
        return number
    texts = (f"{number:.{digits}g}" for digits in range(1, 10))  # 9 digits always do
    return next(float(text) for text in texts if pack("f", float(text)) == pack("f", number))


def _resize(step: Any) -> Augment:
    if step.size is None:
        raise ValueError(f"{step!r}: size is None; give the short side, or height and width")
    alone = isinstance(step.size, int) or len(step.size) == 1
    if alone:
        most = getattr(step, "max_size", None) or 0
        return stages.resize(size_of(step.size), filter_of(step), max_size=most)
    height, width = step.size  # the same number twice is no short side
    return stages.resize((int(height), int(width)), filter_of(step))


def _random_resized_crop(step: Any) -> Augment:
    limits = tuple(step.scale), tuple(step.ratio)
    return stages.random_resized_crop(size_of(step.size), *limits, filter_of(step))


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
        size_of(step.size), _padding(step), step.padding_mode, colour_of(step), step.pad_if_needed
    )


def _rotate(step: Any) -> Augment:
    return stages.rotate(
        span_of(step.degrees),
        filter_of(step, INTERPOLATIONS),
        bool(step.expand),
        None if step.center is None else tuple(step.center),
        colour_of(step),
    )


def _affine(step: Any) -> Augment:
    shear: Any = 0 if step.shear is None else tuple(step.shear)
    return stages.affine(
        span_of(step.degrees),
        (0, 0) if step.translate is None else tuple(step.translate),
        (1, 1) if step.scale is None else tuple(step.scale),
        span_of(shear) if shear != 0 and len(shear) == 2 else shear,
        filter_of(step, INTERPOLATIONS),
        colour_of(step),
        None if step.center is None else tuple(step.center),
    )


def _perspective(step: Any) -> Augment:
    return stages.perspective(
        step.distortion_scale, filter_of(step, INTERPOLATIONS), colour_of(step), step.p
    )


def _jitter(step: Any) -> Augment:
    spans = {}
    for name in ("brightness", "contrast", "saturation", "hue"):
        span = getattr(step, name)
        if span is not None:
            is_hue = name == "hue"
            spans[name] = span_of(span, 0 if is_hue else 1, -0.5 if is_hue else 0)
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


def _shortest_size(step: Any) -> Augment:
    return stages.random_shortest_size(tuple(step.min_size), step.max_size or 0, filter_of(step))


def _scale_jitter(step: Any) -> Augment:
    width, height = map(int, step.target_size)  # torchvision divides them by these sides
    return stages.scale_jitter((height, width), tuple(step.scale_range), filter_of(step))


def _iou_crop(step: Any) -> Augment:
    return stages.random_iou_crop(
        step.min_scale,
        step.max_scale,
        step.min_aspect_ratio,
        step.max_aspect_ratio,
        tuple(step.options),
        step.trials,
    )


def _photometric_distort(step: Any) -> Augment:
    spans = (step.brightness, step.contrast, step.hue, step.saturation)
    return stages.random_photometric_distort(*map(tuple, spans), step.p)


def _policy_options(step: Any) -> dict[str, Any]:
    return {"interpolation": filter_of(step, INTERPOLATIONS), "fill": colour_of(step)}


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


def _keeps_format(step: Any) -> list[Augment]:
    """A Loader's boxes are of one format, which stoker.Annotations says."""
    form = getattr(step.format, "value", step.format)
    if form != "XYXY":
        raise ValueError(f"{step!r}: give the Loader annotations=Annotations(box_format=)")
    return []


# Transforms of boxes alone.
OBJECTS: dict[str, Reader] = {
    "ClampBoundingBoxes": only(lambda step: stages.clamp_boxes()),
    "SanitizeBoundingBoxes": only(
        lambda step: stages.sanitize_boxes(float(step.min_size), float(step.min_area))
    ),
    "ConvertBoundingBoxFormat": _keeps_format,
}
# Transforms of pixels.
PIXELS: dict[str, Reader] = {
    "RandomResizedCrop": only(_random_resized_crop),
    "Resize": only(_resize),
    "CenterCrop": only(lambda step: stages.center_crop(size_of(step.size))),
    "RandomCrop": only(_random_crop),
    "Pad": only(lambda step: stages.pad(_padding(step), colour_of(step), step.padding_mode)),
    "RandomHorizontalFlip": only(lambda step: stages.flip(p=step.p)),
    "RandomVerticalFlip": only(lambda step: stages.vertical_flip(step.p)),
    "RandomRotation": only(_rotate),
    "RandomAffine": only(_affine),
    "RandomPerspective": only(_perspective),
    "ColorJitter": only(_jitter),
    "Grayscale": only(_grayscale),
    "RandomGrayscale": only(lambda step: stages.grayscale(step.p)),
    "RandomInvert": only(lambda step: stages.invert(step.p)),
    "RandomPosterize": only(lambda step: stages.posterize(step.bits, step.p)),
    "RandomSolarize": only(lambda step: stages.solarize(step.threshold, step.p)),
    "RandomAdjustSharpness": only(lambda step: stages.sharpness(step.sharpness_factor, step.p)),
    "RandomAutocontrast": only(lambda step: stages.autocontrast(step.p)),
    "RandomEqualize": only(lambda step: stages.equalize(step.p)),
    "GaussianBlur": only(_blur),
    "AutoAugment": only(_auto_augment),
    "RandAugment": only(_random_augment),
    "TrivialAugmentWide": only(_trivial_augment),
    "AugMix": only(_aug_mix),
    "RandomShortestSize": only(_shortest_size),
    "ScaleJitter": only(_scale_jitter),
    "RandomResize": only(
        lambda step: stages.random_resize(step.min_size, step.max_size, filter_of(step))
    ),
    "RandomZoomOut": only(
        lambda step: stages.random_zoom_out(colour_of(step), tuple(step.side_range), step.p)
    ),
    "RandomIoUCrop": only(_iou_crop),
    "RandomPhotometricDistort": only(_photometric_distort),
    **OBJECTS,
    "Identity": lambda step: [],
    "RGB": lambda step: [],  # a Loader's images have three channels anyway
}
# Transforms of its references (transforms.py), which its presets of version 2 have, too.
REFERENCES: dict[str, Reader] = {
    "FixedSizeCrop": only(
        lambda step: stages.fixed_size_crop(
            (step.crop_height, step.crop_width), colour_of(step), step.padding_mode
        )
    ),
}
# Transforms that make several rows of one image.
CROPS: dict[str, Reader] = {
    "FiveCrop": only(lambda step: stages.five_crop(size_of(step.size))),
    "TenCrop": only(
        lambda step: stages.ten_crop(size_of(step.size), vertical_flip=bool(step.vertical_flip))
    ),
}
