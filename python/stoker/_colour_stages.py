"""Stages that change colours, blur and erase: functions of stoker.augment."""

from __future__ import annotations

from collections.abc import Sequence

from stoker._augment import Augment, Colour, Range, stage


def color_jitter(
    brightness: Range = 0,
    contrast: Range = 0,
    saturation: Range = 0,
    hue: Range = 0,
    p: float = 1,
) -> Augment:
    """torchvision's ColorJitter: a number s is (max(0, 1 - s), 1 + s), of hue (-s, s); 0: off."""
    return stage(
        "color_jitter",
        brightness=brightness,
        contrast=contrast,
        saturation=saturation,
        hue=hue,
        p=p,
    )


def grayscale(p: float = 1) -> Augment:
    """Grey, in three equal channels."""
    return stage("grayscale", p=p)


def invert(p: float = 1) -> Augment:
    """The negative."""
    return stage("invert", p=p)


def posterize(bits: int, p: float = 1) -> Augment:
    """Only the highest bits of each byte, 1 to 8."""
    return stage("posterize", bits=bits, p=p)


def solarize(threshold: float, p: float = 1) -> Augment:
    """Bytes of at least the threshold are inverted."""
    return stage("solarize", threshold=threshold, p=p)


def equalize(p: float = 1) -> Augment:
    """A flat histogram of each channel: Pillow's ImageOps.equalize."""
    return stage("equalize", p=p)


def autocontrast(p: float = 1) -> Augment:
    """Each channel stretched to 0 to 255: Pillow's ImageOps.autocontrast."""
    return stage("autocontrast", p=p)


def sharpness(factor: Range, p: float = 1) -> Augment:
    """0: smooth, 1: unchanged, 2: sharper; one factor or a range of them."""
    return stage("sharpness", factor=factor, p=p)


def gaussian_blur(
    kernel_size: int | tuple[int, int], sigma: Range = (0.1, 2), p: float = 1
) -> Augment:
    """torchvision's GaussianBlur with an odd kernel (height and width of a pair), and a sigma from
    a range.
    """
    return stage("gaussian_blur", kernel_size=kernel_size, sigma=sigma, p=p)


def pillow_blur(radius: Range = (0.1, 2), p: float = 1) -> Augment:
    """Pillow's ImageFilter.GaussianBlur, as SimCLR and DINO use it."""
    return stage("pillow_blur", radius=radius, p=p)


def cutout(size: int, value: Colour = 127, p: float = 1) -> Augment:
    """A square of one colour, somewhere inside the image."""
    return stage("cutout", size=size, value=value, p=p)


def random_erasing(
    p: float = 0.5,
    scale: Range = (0.02, 0.33),
    ratio: Range = (0.3, 3.3),
    value: Colour = 0,
    noise: bool = False,
    mean: float | Sequence[float] = (0.485, 0.456, 0.406),
    std: float | Sequence[float] = (0.229, 0.224, 0.225),
) -> Augment:
    """torchvision's RandomErasing: a box of one colour, or of noise with a mean and deviation of
    pixels / 255.
    """
    return stage(
        "random_erasing",
        p=p,
        scale=scale,
        ratio=ratio,
        value=value,
        noise=noise,
        mean=mean,
        std=std,
    )
