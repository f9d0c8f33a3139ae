"""decode(), resize() and crop_resize() alone: Pillow's bytes, and clear errors."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import PIL
import pytest
from PIL import Image, ImageOps

import stoker
from conftest import PIXELS, jpeg, picture

FILTERS = {
    name: Image.Resampling[name.upper()]
    for name in ("bilinear", "bicubic", "nearest", "box", "hamming", "lanczos")
}


def pillow(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGB")


def assert_pillow(found: stoker.Array, wanted: Image.Image) -> None:
    pixels = np.asarray(found)
    assert pixels.dtype == np.uint8
    assert pixels.shape == (wanted.height, wanted.width, 3)
    np.testing.assert_array_equal(pixels, np.asarray(wanted))


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_decode(subsampling, progressive):
    data = jpeg(picture(1, 131, 77), subsampling=subsampling, progressive=progressive)
    assert_pillow(stoker.decode(data), pillow(data))
    for kind in (bytearray, memoryview):
        assert_pillow(stoker.decode(kind(data)), pillow(data))
        assert_pillow(stoker.crop_resize(kind(data), None, (77, 131)), pillow(data))


def test_decode_crops_resizes_and_flips_as_pillow():
    data = jpeg(picture(2, 200, 160), subsampling=0)
    whole = pillow(data)
    for name, kernel in FILTERS.items():
        for x, y, w, h in ((0, 0, 200, 160), (13, 7, 101, 90), (199, 159, 1, 1)):
            for size in ((32, 48), (224, 224), (1, 1)):
                wanted = whole.crop((x, y, x + w, y + h)).resize(size[::-1], kernel)
                options = {"size": size, "filter": name, "pixels": PIXELS}
                assert_pillow(stoker.decode(data, crop=(x, y, w, h), **options), wanted)
                found = stoker.decode(data, crop=(x, y, w, h), flip=True, **options)
                assert_pillow(found, ImageOps.mirror(wanted))
                assert_pillow(stoker.crop_resize(data, (x, y, w, h), **options), wanted)


def test_the_policies_differ_where_pillow_13_resizes_vertically_first():
    data = jpeg(picture(10, 60, 200), subsampling=0)
    whole = np.asarray(stoker.decode(data))
    for size, differ in (((40, 50), True), ((50, 60), False), ((190, 50), False)):
        exact, before = (
            np.asarray(stoker.decode(data, size=size, pixels=pixels))
            for pixels in ("exact", "exact-pillow12")
        )
        assert (exact != before).any() == differ
        for pixels, wanted in (("exact", exact), ("exact-pillow12", before), ("fast", before)):
            np.testing.assert_array_equal(stoker.resize(whole, size, pixels=pixels), wanted)
            np.testing.assert_array_equal(
                stoker.crop_resize(data if pixels != "fast" else whole, None, size, pixels=pixels),
                wanted,
            )


def test_the_fast_decoder_is_near():
    data = jpeg(picture(3, 300, 200))
    exact = np.asarray(
        stoker.decode(data, crop=(20, 10, 200, 150), size=96, pixels="exact-pillow12")
    ).astype(int)
    fast = np.asarray(stoker.decode(data, crop=(20, 10, 200, 150), size=96, pixels="fast"))
    assert np.abs(fast.astype(int) - exact).mean() <= 0.5


def test_resize_gives_pillows_bytes():
    image = picture(4, 90, 61)
    pixels = np.asarray(image)
    for name, kernel in FILTERS.items():
        for size in ((32, 48), (120, 7), (61, 90), (1, 1)):
            wanted = image.resize(size[::-1], kernel)
            options = {"filter": name, "pixels": PIXELS}
            assert_pillow(stoker.resize(pixels, size, **options), wanted)
            found = stoker.crop_resize(pixels, (5, 6, 40, 30), size, flip=True, **options)
            wanted = image.crop((5, 6, 45, 36)).resize(size[::-1], kernel)
            assert_pillow(found, ImageOps.mirror(wanted))
    wanted = image.resize((20, 20), FILTERS["bilinear"])
    assert_pillow(stoker.resize(pixels, 20, pixels=PIXELS), wanted)


def test_resize_takes_any_rows_that_are_whole():
    image = picture(5, 90, 61)
    rows = np.asarray(image)[::2]
    assert_pillow(
        stoker.resize(rows, (20, 30), pixels=PIXELS),
        Image.fromarray(np.ascontiguousarray(rows)).resize((30, 20), FILTERS["bilinear"]),
    )
    array = stoker.decode(jpeg(image, subsampling=0))
    assert_pillow(
        stoker.resize(array, 8, pixels=PIXELS), Image.fromarray(np.asarray(array)).resize((8, 8), 2)
    )


def test_png_and_gray():
    for mode in ("RGB", "L", "P", "RGBA"):
        image = picture(6).convert(mode)
        out = io.BytesIO()
        image.save(out, "PNG")
        assert_pillow(stoker.decode(out.getvalue()), image.convert("RGB"))
    data = jpeg(picture(6).convert("L"))
    assert_pillow(stoker.decode(data), pillow(data))


def test_pgm_and_ppm():
    for image, kind in ((picture(7, 61, 47), b"P6"), (picture(8, 61, 47).convert("L"), b"P5")):
        out = io.BytesIO()
        image.save(out, "PPM")
        data = out.getvalue()
        assert data.startswith(kind)
        assert_pillow(stoker.decode(data), pillow(data))
        assert stoker.image_info(data) == (47, 61, "pnm", 1)
        wanted = pillow(data).crop((5, 6, 45, 36)).resize((20, 18), FILTERS["bilinear"])
        assert_pillow(
            stoker.decode(data, crop=(5, 6, 40, 30), size=(18, 20), pixels=PIXELS), wanted
        )
        # Comments stand where Pillow takes them.
        commented = data.replace(b"\n", b"\n#a 1\n# b\n", 1).replace(b"61", b"6#c\r1", 1)
        assert_pillow(stoker.decode(commented), pillow(commented))


@pytest.mark.parametrize("most", [1, 10, 255, 256, 1023, 65535])
@pytest.mark.parametrize("kind", [2, 3, 5, 6])
def test_netpbm_with_any_largest_value(kind, most):
    random = np.random.default_rng(kind)
    values = random.integers(0, most + 1, (13, 17 * (3 if kind in (3, 6) else 1)))
    if kind < 5:
        body = b"# a\n".join(b" ".join(b"%d" % v for v in row) + b"\n" for row in values)
    else:
        body = values.astype("u1" if most < 256 else ">u2").tobytes()
    data = b"P%d\n17 13 %d\n" % (kind, most) + body
    assert_pillow(stoker.decode(data), pillow(data))


@pytest.mark.parametrize("kind", [1, 4])
def test_netpbm_of_one_bit(kind):
    bits = np.random.default_rng(kind).integers(0, 2, (13, 17))
    rows = [np.packbits(row).tobytes() if kind == 4 else b"%d " * 17 % tuple(row) for row in bits]
    data = b"P%d\n17 13\n" % kind + b"".join(rows)
    assert_pillow(stoker.decode(data), pillow(data))


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_tiff(compression):
    for mode in ("RGB", "L", "RGBA", "1", "CMYK"):
        image = picture(11, 70, 90).convert(mode)
        out = io.BytesIO()
        image.save(out, "TIFF", compression=compression, strip_size=2000)  # some strips
        data = out.getvalue()
        assert_pillow(stoker.decode(data), image.convert("RGB"))
        wanted = image.convert("RGB").crop((5, 31, 45, 61)).resize((20, 18), FILTERS["bilinear"])
        assert_pillow(
            stoker.decode(data, crop=(5, 31, 40, 30), size=(18, 20), pixels=PIXELS), wanted
        )


def test_big_tiff():
    if tuple(map(int, PIL.__version__.split(".")[:2])) < (11, 1):
        pytest.skip("this Pillow does not write BigTIFF")
    for mode in ("RGB", "L", "RGBA", "1", "CMYK"):
        image = picture(12, 70, 90).convert(mode)
        out = io.BytesIO()
        image.save(out, "TIFF", big_tiff=True)
        assert out.getvalue()[2] == 43
        assert stoker.image_info(out.getvalue()) == (90, 70, "tiff", 1)
        assert_pillow(stoker.decode(out.getvalue()), image.convert("RGB"))


def test_exif():
    image = picture(7, 80, 50)
    exif = Image.Exif()
    exif[0x112] = 6
    data = jpeg(image, subsampling=0, exif=exif)
    turned = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    assert_pillow(stoker.decode(data), pillow(data))
    assert_pillow(stoker.decode(data, exif="apply"), turned)
    assert stoker.image_info(data) == (50, 80, "jpeg", 6)
    assert stoker.image_info(data, exif="apply") == (80, 50, "jpeg", 6)
    assert stoker.image_info(data).width == 80


def test_what_cannot_be_decoded():
    data = jpeg(picture(8))
    for bad, message in (
        (b"", "empty"),
        (b"not an image at all", "not_an_image"),
        (data[:300], "truncated"),
        (data[: len(data) // 2], "truncated"),
        (data[:-2], "truncated"),
    ):
        with pytest.raises(stoker.DecodeError, match=message):
            stoker.decode(bad)
    with pytest.raises(stoker.DecodeError, match=r"too_large.*6911"):
        stoker.decode(data, max_pixels=6911)
    assert issubclass(stoker.DecodeError, ValueError)


def test_arguments():
    data = jpeg(picture(9))
    pixels = np.asarray(picture(9))
    for call, message in (
        (lambda: stoker.decode(data, crop=(0, 0, 97, 10)), "width=97 .*96 x 72"),
        (lambda: stoker.decode(data, crop=(-1, 0, 9, 10)), "x=-1"),
        (lambda: stoker.decode(data, size=0), "size is 0"),
        (lambda: stoker.decode(data, max_pixels=0), "max_pixels is 0, must be at least 1"),
        (lambda: stoker.decode(data, size=(4, 1 << 20)), "size is"),
        (
            lambda: stoker.decode(data, filter="cubic"),
            "filter is 'cubic', must be one of 'bilinear'",
        ),
        (
            lambda: stoker.resize(pixels[..., 0], 8),
            r"\(height, width, 3\) uint8, this is \(72, 96\)",
        ),
        (lambda: stoker.resize(pixels.astype(np.float32), 8), "uint8"),
        (lambda: stoker.resize(pixels[:, ::2], 8), "contiguous"),
        (lambda: stoker.resize(pixels[..., ::-1], 8), "contiguous"),
        (lambda: stoker.crop_resize(pixels, (90, 0, 7, 7), 8), "x=90"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for call in (lambda: stoker.decode("a.jpg"), lambda: stoker.resize("a.jpg", 8)):
        with pytest.raises(TypeError):
            call()


def test_threads_give_the_same():
    data = [jpeg(picture(i)) for i in range(16)]
    alone = [np.asarray(stoker.decode(each, size=64)).tobytes() for each in data]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda each: np.asarray(stoker.decode(each, size=64)).tobytes(), data)
        assert list(together) == alone
