#!/usr/bin/python3
"""Makes the golden values of tests/decode from Pillow and torchvision.

Writes into its own folder:
  images/         small files of every kind that stoker decodes
  images.txt      file, CropSpec, exif, hash of Pillow's pixels
  resize.txt      width, height, seed, CropSpec, hash      (source pixels: noise(), below)
  colour.txt      operation, width, height, seed, factor, hash
  versions.txt    the versions that made them
The hash is 64-bit FNV-1a of the RGB bytes. Run with Debian 12's python3; needs no data. Run
make_golden_pillow13.py afterwards; it makes the same for Pillow 13.
"""
import io
import os
import random
import struct
import sys
import zlib

import numpy
import PIL
from PIL import Image, ImageOps, features

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_against_pillow import draw_spec, pillow_pixels

HERE = os.path.dirname(os.path.abspath(__file__))


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def noise(width, height, seed):
    """Returns the pixels that tests/decode/pixels.h makes from the same numbers."""
    state, out = (seed * 2654435761 + 12345) & 0xFFFFFFFF, bytearray()
    for _ in range(3 * width * height):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(state >> 24)
    return Image.frombytes("RGB", (width, height), bytes(out))


def texture(width, height, channels, seed=0):
    rng = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [127 + 100 * numpy.sin(x / (7 + c) + y / (9 - c) + seed) for c in range(channels)]
    pixels = numpy.stack(planes, -1) + rng.integers(-6, 7, (height, width, 1))
    return numpy.clip(pixels, 0, 255).astype(numpy.uint8)


def exif(orientation):
    entry = struct.pack("<HHII", 0x0112, 3, 1, orientation)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, 1) + entry + bytes(4)


def png(pixels, color_type, depth, width=None):
    """Returns a PNG that Pillow cannot write: any depth; `pixels` are packed rows if width is given."""
    height = pixels.shape[0]
    rows = pixels.astype(">u2") if depth == 16 else pixels.astype("u1")
    body = b"".join(b"\0" + rows[y].tobytes() for y in range(height))

    def chunk(tag, data):
        return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))

    header = struct.pack(">IIBBBBB", width or pixels.shape[1], height, depth, color_type, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(body, 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def tiff16(pixels, order):
    """Returns an uncompressed 16-bit RGB TIFF, which Pillow reads but does not write."""
    height, width, _ = pixels.shape
    e = "<" if order == b"II" else ">"
    data = pixels.astype(e + "u2").tobytes()
    entries = [(256, width), (257, height), (258, None), (259, 1), (262, 2), (273, None)]
    entries += [(277, 3), (278, height), (279, len(data))]
    bits_at = 8 + 2 + 12 * len(entries) + 4
    out = order + struct.pack(e + "HIH", 42, 8, len(entries))
    for tag, value in entries:
        if tag == 258:
            out += struct.pack(e + "HHII", tag, 3, 3, bits_at)
        else:
            out += struct.pack(e + "HHII", tag, 4, 1, bits_at + 6 if value is None else value)
    return out + struct.pack(e + "IHHH", 0, 16, 16, 16) + data


def jpegs():
    rgb = Image.fromarray(texture(83, 61, 3))
    cmyk = Image.fromarray(texture(53, 47, 4, 3), "CMYK")
    for subsampling in (0, 1, 2):
        for progressive in (False, True):
            name = f"rgb_{['444', '422', '420'][subsampling]}{'_progressive' * progressive}.jpg"
            yield name, rgb, dict(quality=88, subsampling=subsampling, progressive=progressive)
    yield "gray.jpg", rgb.convert("L"), {}
    yield "gray_progressive.jpg", rgb.convert("L"), dict(progressive=True)
    yield "cmyk.jpg", cmyk, dict(quality=90)
    yield "cmyk_progressive.jpg", cmyk, dict(progressive=True)
    yield "one_pixel.jpg", Image.new("RGB", (1, 1), (200, 30, 90)), {}
    for orientation in range(1, 9):
        image = Image.fromarray(texture(37, 22, 3, orientation))
        yield f"exif_{orientation}.jpg", image, dict(exif=exif(orientation), subsampling=2)


def others():
    pixels = texture(45, 38, 3)
    rgb, gray = Image.fromarray(pixels), Image.fromarray(pixels[:, :, 0])
    rgba = Image.fromarray(numpy.dstack([pixels, texture(45, 38, 1, 9)]))
    la = Image.merge("LA", (gray, rgba.getchannel("A")))
    bilevel = gray.point(lambda v: 255 * (v > 127)).convert("1")
    for extension in ("png", "bmp", "tif"):
        yield f"rgb.{extension}", rgb, {}
        yield f"gray.{extension}", gray, {}
        yield f"bilevel.{extension}", bilevel, {}
    yield "rgba.png", rgba, {}
    yield "rgba.bmp", rgba, {}
    yield "la.png", la, {}
    yield "palette.png", rgb.quantize(40), {}
    yield "palette_transparent.png", rgb.quantize(16), dict(transparency=3)
    yield "rgb_transparent.png", rgb, dict(transparency=tuple(pixels[5, 5]))
    yield "palette.bmp", rgb.quantize(40), {}
    yield "exif_6.png", rgb, dict(exif=exif(6))
    yield "lossy.webp", rgb, dict(quality=80)
    yield "lossless.webp", rgb, dict(lossless=True)
    yield "rgba_lossy.webp", rgba, dict(quality=80)
    yield "rgba_lossless.webp", rgba, dict(lossless=True, exact=True)
    yield "exif_6.webp", rgb, dict(exif=exif(6), quality=80)
    yield "rgb_lzw.tif", rgb, dict(compression="tiff_lzw")
    yield "rgb_deflate.tif", rgb, dict(compression="tiff_adobe_deflate")
    yield "gray_16.tif", Image.fromarray(texture(45, 38, 1)[:, :, 0].astype("u2") * 3), {}


def hand_made():
    rng = numpy.random.default_rng(4)
    yield "gray_16.png", png(rng.integers(0, 500, (20, 25)), 0, 16)
    yield "rgb_16.png", png(rng.integers(0, 65536, (13, 17, 3)), 2, 16)
    yield "rgba_16.png", png(rng.integers(0, 65536, (13, 17, 4)), 6, 16)
    yield "la_16.png", png(rng.integers(0, 65536, (13, 17, 2)), 4, 16)
    yield "gray_2.png", png(rng.integers(0, 256, (15, 8)), 0, 2, 32)
    yield "gray_4.png", png(rng.integers(0, 256, (15, 8)), 0, 4, 16)
    yield "rgb_16_little.tif", tiff16(rng.integers(0, 65536, (13, 17, 3)), b"II")
    yield "rgb_16_big.tif", tiff16(rng.integers(0, 65536, (13, 17, 3)), b"MM")


def refused():
    """Files that are `unsupported` for stoker; the hash column says so."""
    pixels = texture(20, 15, 4)
    rgba = Image.fromarray(pixels)
    yield "refused_float.tif", Image.fromarray(pixels[:, :, 0].astype("f4")), {}


def write_images():
    folder = os.path.join(HERE, "images")
    os.makedirs(folder, exist_ok=True)
    made, no = [], []
    for list_, images in ((made, list(jpegs()) + list(others())), (no, list(refused()))):
        for name, image, options in images:
            buffer = io.BytesIO()
            kind = {"jpg": "JPEG", "tif": "TIFF"}.get(name.split(".")[-1], name.split(".")[-1])
            image.save(buffer, kind, **options)
            list_.append((name, buffer.getvalue()))
    made += list(hand_made())
    for name, data in made + no:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    return made, no


def spec_text(spec):
    crop, size, window, flip, resample = spec
    return " ".join(map(str, [*crop, *size, *window, flip, resample]))


def main():
    # Imported here, because make_golden_pillow13.py uses functions of this file and has no torchvision.
    import torchvision
    from torchvision.transforms import functional

    rng = random.Random(2)
    made, no = write_images()
    with open(os.path.join(HERE, "images.txt"), "w") as file:
        for name, data in made:
            for apply in (0, 1) if name.startswith("exif") else (0,):
                image = Image.open(io.BytesIO(data))
                image = (ImageOps.exif_transpose(image) if apply else image).convert("RGB")
                whole = (0, 0) + image.size
                specs = [(whole, image.size, whole, 0, 0)]
                specs += [draw_spec(rng, *image.size) for _ in range(4)]
                for spec in specs:
                    pixels = pillow_pixels(image, spec)
                    file.write(f"{name} {spec_text(spec)} {apply} {fnv1a(pixels)}\n")
        for name, _ in no:
            file.write(f"{name} 0 0 20 15 20 15 0 0 20 15 0 0 0 unsupported\n")
    with open(os.path.join(HERE, "resize.txt"), "w") as file:
        for seed in range(120):
            largest = rng.choice([8, 40, 150, 400])
            width, height = rng.randint(1, largest), rng.randint(1, largest)
            spec = draw_spec(rng, width, height)
            pixels = pillow_pixels(noise(width, height, seed), spec)
            file.write(f"{width} {height} {seed} {spec_text(spec)} {fnv1a(pixels)}\n")
    operations = [functional.adjust_brightness, functional.adjust_contrast]
    operations += [functional.adjust_saturation, functional.adjust_hue]
    with open(os.path.join(HERE, "colour.txt"), "w") as file:
        for seed in range(160):
            width, height = rng.randint(1, 40), rng.randint(1, 40)
            extremes = [-0.5, 0.0, 0.5] if seed % 4 == 3 else [0.0, 1.0, 2.0]
            low, high = (-0.5, 0.5) if seed % 4 == 3 else (0.0, 2.0)
            factor = rng.choice(extremes) if seed % 5 == 0 else rng.uniform(low, high)
            result = operations[seed % 4](noise(width, height, seed), factor)
            line = f"{seed % 4} {width} {height} {seed} {factor!r} {fnv1a(result.tobytes())}\n"
            file.write(line)
    with open(os.path.join(HERE, "versions.txt"), "w") as file:
        file.write(f"Pillow {PIL.__version__}\ntorchvision {torchvision.__version__}\n")
        file.write(f"libjpeg-turbo {features.check('libjpeg_turbo')} {features.version('jpg')}\n")
        file.write(f"python {sys.version.split()[0]}\n")


if __name__ == "__main__":
    main()
