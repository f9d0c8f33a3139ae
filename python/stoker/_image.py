"""The decoder and the resizer alone. Everything runs off the interpreter lock, so threads scale."""

from __future__ import annotations

from typing import Any, NamedTuple

from stoker import _core
from stoker._choice import (
    FILTERS,
    MAX_PIXELS,
    PIXELS,
    box,
    choose,
    decode_options,
    height_and_width,
)

Box = tuple[int, int, int, int]


class ImageInfo(NamedTuple):
    """What a file's header says: pixels after the EXIF policy, 'jpeg', 'png', 'bmp', 'webp' or
    'tiff', and the EXIF orientation (1 to 8; 1 if there is none).
    """

    height: int
    width: int
    format: str
    orientation: int


def image_info(
    data: bytes | bytearray | memoryview, *, exif: str = "ignore", max_pixels: int = MAX_PIXELS
) -> ImageInfo:
    """Reads the header only. Errors as decode()."""
    return ImageInfo(*_core.info(data, decode_options("exact", exif, max_pixels)))


def decode(
    data: bytes | bytearray | memoryview,
    *,
    crop: Box | None = None,
    size: int | tuple[int, int] | None = None,
    flip: bool = False,
    filter: str = "bilinear",
    pixels: str = "exact",
    exif: str = "ignore",
    max_pixels: int = MAX_PIXELS,
) -> _core.Array:
    """The image of a file's bytes, as an Array of (height, width, 3) uint8, RGB, on the host.

    crop: (x, y, width, height) in pixels of the image; only what it needs is decoded. size: the
    crop is resized to this (an int for both, or (height, width)), antialiased. flip: mirrored,
    last.
    filter: 'bilinear' or 'bicubic'.
    pixels: 'exact' gives the bytes of convert('RGB').crop(...).resize(...) in Pillow 13,
    'exact-pillow12' those of Pillow 9 to 12, which resize horizontally first (12.2 and 12.3 do
    otherwise where a crop is more than 100 times as high as wide); 'fast' may be about 0.2 of 255
    grey levels off the latter on average for baseline JPEGs, and is faster.
    exif: 'ignore' the orientation, as Pillow does, or 'apply' it, as exif_transpose.

    DecodeError (a ValueError): the file is damaged, no image, not supported, or has more than
    max_pixels. ValueError: a crop that is not inside the image, or another argument.
    """
    options = decode_options(pixels, exif, max_pixels)
    sides = None if size is None else height_and_width("size", size)
    chosen = choose("filter", filter, FILTERS)
    return _core.decode(data, box("crop", crop), sides, bool(flip), chosen, options)


def resize(
    image: Any,
    size: int | tuple[int, int],
    *,
    filter: str = "bilinear",
    pixels: str = "exact",
) -> _core.Array:
    """`image` resized, antialiased, to the bytes that Pillow's Image.resize gives: of Pillow 13, or
    with pixels='exact-pillow12' (or 'fast') of Pillow 9 to 12, as decode() says.

    image: (height, width, 3) uint8 on the host: NumPy, torch, anything with DLPack or a buffer.
    TypeError: no array. ValueError: another shape, type or device. Gives an Array of (*size, 3).
    """
    return crop_resize(image, None, size, filter=filter, pixels=pixels)


def crop_resize(
    image: Any,
    crop: Box | None,
    size: int | tuple[int, int],
    *,
    flip: bool = False,
    filter: str = "bilinear",
    pixels: str = "exact",
) -> _core.Array:
    """As Pillow's image.crop(...).resize(...), mirrored if `flip`; crop is (x, y, width, height),
    or None for all of it; `pixels` as for decode(). `image` as for resize(), or the bytes of a
    file, which are then decoded as decode() does, only where the crop is.
    """
    if isinstance(image, (bytes, bytearray, memoryview)):
        return decode(image, crop=crop, size=size, flip=flip, filter=filter, pixels=pixels)
    sides, inside = height_and_width("size", size), box("crop", crop)
    chosen, policy = choose("filter", filter, FILTERS), choose("pixels", pixels, PIXELS)
    try:
        return _core.resize(image, inside, sides, bool(flip), chosen, policy)
    except TypeError:
        raise TypeError(
            f"image is of {type(image)}, which has neither DLPack nor a buffer; numpy.asarray() "
            "makes an array of a PIL image"
        ) from None
