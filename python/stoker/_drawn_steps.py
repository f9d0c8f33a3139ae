"""Does with Pillow what a Loader drew for a row: for checks of its pixels."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
    "lanczos": Image.Resampling.LANCZOS,
}
_QUARTERS = {
    1: Image.Transpose.ROTATE_90,
    2: Image.Transpose.ROTATE_180,
    3: Image.Transpose.ROTATE_270,
}


def run_steps(drawn: str, image: Image.Image, functional: Any = None) -> Image.Image:
    """See stoker.torch.to_torchvision(), which is public.

    functional: torchvision.transforms.functional, for the two steps that Pillow has not. Without it
    they raise ValueError.
    """
    mixture = _Mixture()
    for name, values in _steps(drawn):
        if name.startswith("blend"):
            image = mixture.run(name, image, **values)
        elif name in _RUN:
            image = _RUN[name](image, **values)
        elif name == "hue" and functional:
            image = functional.adjust_hue(image, values["factor"])
        elif name == "gaussian_blur" and functional:
            kernel = [values["kernel_x"], values["kernel_y"]]
            image = functional.gaussian_blur(image, kernel, [values["sigma"]] * 2)
        else:
            raise ValueError(f"{name}: its pixels cannot be made of the drawn numbers alone")
    return image


def _steps(drawn: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The text of steps is an expression of Python."""
    if not drawn:
        return
    if "\n" in drawn:
        raise ValueError(f"{drawn!r} is of several views or samples: take one line's steps")
    parts = [ast.parse(drawn, mode="eval").body]
    while isinstance(parts[0], ast.BinOp):  # a | b | c is ((a | b) | c)
        parts[:1] = [parts[0].left, parts[0].right]
    for part in parts:
        call = part if isinstance(part, ast.Call) else None
        name = call.func if call else part
        if not isinstance(name, ast.Name):
            raise ValueError(f"{drawn!r} is not what a Loader draws for one view")
        keywords = call.keywords if call else []
        yield name.id, {str(each.arg): ast.literal_eval(each.value) for each in keywords}


class _Mixture:
    """AugMix: the weighted sum of an image and of copies, in 32-bit floats. timm's is put over the
    image again.
    """

    _image: Image.Image
    _sum: np.ndarray

    def run(self, name: str, image: Image.Image, weight: float = 0.0) -> Image.Image:
        if name in ("blend_end", "blend_over"):
            mixed = Image.fromarray(np.minimum(self._sum, 255).astype(np.uint8))
            return mixed if name == "blend_end" else Image.blend(self._image, mixed, weight)
        part = np.float32(weight) * np.asarray(image, dtype=np.float32)
        if name == "blend_begin":
            self._image, self._sum = image, part
        else:
            self._sum = self._sum + part
        return self._image


def _crop(image: Image.Image, x: int, y: int, width: int, height: int) -> Image.Image:
    return image.crop((x, y, x + width, y + height))


def _resize(image: Image.Image, width: int, height: int, filter: str) -> Image.Image:
    return image.resize((width, height), _FILTERS[filter])


def _pad(
    image: Image.Image, left: int, top: int, right: int, bottom: int, mode: str, fill: Any
) -> Image.Image:
    if mode == "constant":
        return ImageOps.expand(image, (left, top, right, bottom), fill)
    sides = ((top, bottom), (left, right), (0, 0))
    padded: np.ndarray = np.pad(np.asarray(image), sides, mode=mode)  # type: ignore[call-overload]
    return Image.fromarray(padded)


def _transformed(kind: Image.Transform) -> Callable[..., Image.Image]:
    def run(image: Image.Image, interpolation: str, fill: Any, **matrix: float) -> Image.Image:
        numbers = [matrix[name] for name in sorted(matrix)]
        chosen = _FILTERS[interpolation]
        return image.transform(image.size, kind, numbers, resample=chosen, fillcolor=fill)

    return run


def _enhanced(kind: Callable[[Image.Image], Any]) -> Callable[..., Image.Image]:
    return lambda image, factor: kind(image).enhance(factor)


def _fill(image: Image.Image, x: int, y: int, width: int, height: int, fill: Any) -> Image.Image:
    filled = image.copy()
    filled.paste(fill, (x, y, x + width, y + height))
    return filled


def _grayscale(image: Image.Image) -> Image.Image:
    grey = image.convert("L")
    return Image.merge("RGB", (grey, grey, grey))


_RUN: dict[str, Callable[..., Image.Image]] = {
    "crop": _crop,
    "resize": _resize,
    "flip": lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "vertical_flip": lambda image: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
    "pad": _pad,
    "affine": _transformed(Image.Transform.AFFINE),
    "perspective": _transformed(Image.Transform.PERSPECTIVE),
    "turn": lambda image, quarters: image.transpose(_QUARTERS[quarters]),
    "brightness": _enhanced(ImageEnhance.Brightness),
    "contrast": _enhanced(ImageEnhance.Contrast),
    "saturation": _enhanced(ImageEnhance.Color),
    "sharpness": _enhanced(ImageEnhance.Sharpness),
    "grayscale": _grayscale,
    "invert": ImageOps.invert,
    # Pillow 13 refuses 0 bits, which AugMix and timm's policies draw.
    "posterize": lambda image, bits: (
        ImageOps.posterize(image, bits) if bits else Image.new("RGB", image.size)
    ),
    "solarize": lambda image, threshold: ImageOps.solarize(image, threshold),
    "solarize_add": lambda image, add: image.point(
        [min(i + add, 255) if i < 128 else i for i in range(256)] * 3
    ),
    "equalize": ImageOps.equalize,
    "autocontrast": ImageOps.autocontrast,
    "fill": _fill,
    "permute_channels": lambda image, red, green, blue: Image.merge(
        "RGB", [image.split()[channel] for channel in (red, green, blue)]
    ),
    # Boxes alone.
    "keep_centers": lambda image, **_: image,
    "clamp_boxes": lambda image: image,
    "sanitize_boxes": lambda image, **_: image,
    "drop_empty_boxes": lambda image: image,
    "pillow_blur": lambda image, radius: image.filter(ImageFilter.GaussianBlur(radius)),
}
