"""Stages that crop, resize and move pixels: functions of stoker.augment."""

from __future__ import annotations

from collections.abc import Sequence

from stoker._augment import Augment, Colour, Range, Size, stage


def random_resized_crop(
    size: Size = None,
    scale: Range = (0.08, 1),
    ratio: Range = (3 / 4, 4 / 3),
    filter: str = "bilinear",
) -> Augment:
    """torchvision's RandomResizedCrop: a box of a random share of the area (`scale`) and of random
    width / height (`ratio`), resized.
    """
    return stage("random_resized_crop", size=size, scale=scale, ratio=ratio, filter=filter)


def resize_center_crop(short: int = 0, size: Size = None, filter: str = "bilinear") -> Augment:
    """Resize(short) and CenterCrop(size) of torchvision: for evaluation.

    short: the short side after the resize, at least the row's longer side; 0: that one times
    256 / 224.
    """
    return stage("resize_center_crop", short=short, size=size, filter=filter)


def resize(size: Size = None, filter: str = "bilinear", max_size: int = 0) -> Augment:
    """torchvision's Resize: one number is the short side, and the longer one is at most `max_size`
    (0: any); (height, width) are both; None: the Loader's size, whatever the image's shape.
    """
    return stage("resize", size=size, filter=filter, max_size=max_size)


def resize_keep_ratio(
    size: Size = None,
    longest: float = 0,
    filter: str = "bilinear",
    scale_p: float = 0,
    scale: Range = (0.85, 1.05),
    scale_area: bool = False,
    aspect_p: float = 0,
    aspect: Range = (0.9, 1.11),
) -> Augment:
    """timm's ResizeKeepRatio: an image of the same width / height that covers `size` (longest=0),
    or lies inside it (1), or is between both.

    scale_p: the probability that the sides are multiplied by a number from `scale`; with scale_area
    by 1 / sqrt(number), as the zoom of a crop that has this share of the area. aspect_p: the same
    for width / height, by a number from `aspect`.
    """
    return stage(
        "resize_keep_ratio",
        size=size,
        longest=longest,
        filter=filter,
        scale_p=scale_p,
        scale=scale,
        scale_area=scale_area,
        aspect_p=aspect_p,
        aspect=aspect,
    )


def center_crop(size: Size = None, fill: Colour = 0, mode: str = "constant") -> Augment:
    """torchvision's CenterCrop: a smaller image gets sides as pad() makes them, black ones by
    default.
    """
    return stage("center_crop", size=size, fill=fill, mode=mode)


def corner_crop(corner: str, size: Size = None) -> Augment:
    """One corner of the image: 'top_left', 'top_right', 'bottom_left' or 'bottom_right'.
    five_crop() has all four.
    """
    return stage("corner_crop", corner=corner, size=size)


def five_crop(size: Size = None) -> Augment:
    """torchvision's FiveCrop, the last stage of a list: Batch.views has the upper left, upper
    right, lower left and lower right corner of each image, and its centre. All of them are of one
    image: what the stages before draw is the same for all.

        resize(256) | five_crop(224)
    """
    return stage("five_crop", size=size)


def ten_crop(size: Size = None, vertical_flip: bool = False) -> Augment:
    """torchvision's TenCrop: as five_crop(), and then the same five of the image mirrored left to
    right, or top to bottom.
    """
    return stage("ten_crop", size=size, vertical_flip=vertical_flip)


def random_crop(
    size: Size = None,
    padding: int | Sequence[int] = 0,
    mode: str = "constant",
    fill: Colour = 0,
    pad_if_needed: bool = False,
) -> Augment:
    """torchvision's RandomCrop: a box at a random place, after padding as by pad()."""
    return stage(
        "random_crop",
        size=size,
        padding=padding,
        mode=mode,
        fill=fill,
        pad_if_needed=pad_if_needed,
    )


def trim_border(border: int) -> Augment:
    """timm's TrimBorder: all but so many pixels at each side."""
    return stage("trim_border", border=border)


def pad(padding: int | Sequence[int], fill: Colour = 0, mode: str = "constant") -> Augment:
    """torchvision's Pad: pixels at all sides, or (left and right, top and bottom), or (left, top,
    right, bottom).
    """
    return stage("pad", padding=padding, fill=fill, mode=mode)


def flip(alternating: bool = False, p: float = 0.5) -> Augment:
    """Mirrors left to right. alternating: at random in epoch 0, then the other way in every later
    epoch.
    """
    return stage("flip", alternating=alternating, p=p)


def vertical_flip(p: float = 0.5) -> Augment:
    """Mirrors top to bottom."""
    return stage("vertical_flip", p=p)


def rotate(
    degrees: Range,
    interpolation: str = "nearest",
    expand: bool = False,
    center: tuple[float, float] | None = None,
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """torchvision's RandomRotation: from -degrees to degrees, or between two; counterclockwise.

    expand: the image grows to hold all of it. center: (x, y) in pixels; None: the middle.
    """
    return stage(
        "rotate",
        degrees=degrees,
        interpolation=interpolation,
        expand=expand,
        center=center,
        fill=fill,
        p=p,
    )


def affine(
    degrees: Range,
    translate: tuple[float, float] = (0, 0),
    scale: Range = (1, 1),
    shear: float | Sequence[float] = 0,
    interpolation: str = "nearest",
    fill: Colour = 0,
    center: tuple[float, float] | None = None,
    p: float = 1,
) -> Augment:
    """torchvision's RandomAffine.

    translate: at most so much of the width and of the height. shear: degrees along x, from -shear
    to shear; (least, most) of x; or (least, most of x, least, most of y).
    """
    return stage(
        "affine",
        degrees=degrees,
        translate=translate,
        scale=scale,
        shear=shear,
        interpolation=interpolation,
        fill=fill,
        center=center,
        p=p,
    )


def perspective(
    distortion_scale: float = 0.5,
    interpolation: str = "bilinear",
    fill: Colour = 0,
    p: float = 1,
) -> Augment:
    """torchvision's RandomPerspective: each corner moves by up to this share of half a side."""
    return stage(
        "perspective",
        distortion_scale=distortion_scale,
        interpolation=interpolation,
        fill=fill,
        p=p,
    )
