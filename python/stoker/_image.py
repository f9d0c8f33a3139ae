"""The decoder and the resizer alone. Nothing holds the interpreter lock, so threads scale."""

from __future__ import annotations

from typing import Any, NamedTuple

from stoker import _core
from stoker._arguments import (
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
    """The contents of a file's header: pixels after the EXIF policy, 'jpeg', 'png', 'bmp',
    'webp', 'tiff', 'gif', 'pnm' (Netpbm), 'jpeg2000' or 'avif', and the EXIF orientation (1 to 8;
    1 if there is none).
    """

    height: int
    width: int
    format: str
    orientation: int


def image_info(
    data: bytes | bytearray | memoryview, *, exif: str = "ignore", max_pixels: int = MAX_PIXELS
) -> ImageInfo:
    """Reads only the header. Raises what decode() raises."""
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
    """Decodes a file's bytes to an Array of (height, width, 3) uint8, RGB, on the host.

    crop: (x, y, width, height) in pixels of the image; only what it needs is decoded. size: the
    crop is resized to this (an int for both, or (height, width)), antialiased. flip: mirrored,
    last.
    filter: 'bilinear', 'bicubic', 'nearest', 'box', 'hamming' or 'lanczos'.
    pixels: 'exact' gives the bytes of convert('RGB').crop(...).resize(...) in Pillow 13,
    'exact-pillow12' those of Pillow 9 to 12, which resize horizontally first (12.2 and 12.3 do not
    if a crop is more than 100 times as high as wide); 'fast' may differ from the latter by about
    0.2 of 255 grey levels on average for most JPEGs, and is faster.
    exif: 'ignore' the orientation, as Pillow does, or 'apply' it, as exif_transpose (EXIF's own:
    what stands in XMP alone is not read).

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
    """Resizes `image`, antialiased, to the bytes of Pillow's Image.resize: of Pillow 13, or with
    pixels='exact-pillow12' (or 'fast') of Pillow 9 to 12, as in decode().

    image: (height, width, 3) uint8 on the host: NumPy, torch, anything with DLPack or a buffer.
    TypeError: not an array. ValueError: another shape, type or device. Returns an Array of (*size,
    3).
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
    """Like Pillow's image.crop(...).resize(...), mirrored if `flip`; crop is (x, y, width, height),
    or None for all of it; `pixels` as for decode(). `image` as for resize(), or the bytes of a
    file, of which decode() decodes only the crop.
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
