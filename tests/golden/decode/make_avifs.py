#!/usr/bin/env python3
"""Makes tests/golden/decode/avifs: AVIF files of every kind, by Pillow 13 and by avifenc (libavif-bin).

avifs.txt has a line for each file: its name, width and height, the orientation that Pillow reports, and the hash (64-bit
FNV-1a) of the RGB bytes that Pillow gives; or `0 0 0 unsupported` for files that stoker refuses and Pillow may read.
`make_avifs.py --check` writes nothing and compares this Python's Pillow with the lines.
"""
import io
import os
import struct
import subprocess
import sys
import tempfile

import numpy
from PIL import Image, ImageCms

from make_golden import fnv1a

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "avifs")
SIZE = (23, 17)
ORIENTATION = 0x112


def picture(size, mode="RGB", seed=0):
    rng = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0 : size[1], 0 : size[0]]
    planes = [127 + 110 * numpy.sin(x / (3 + c) + y / (9 - 2 * c) + seed) for c in range(len(mode))]
    pixels = numpy.stack(planes, -1) + rng.integers(-12, 13, (size[1], size[0], 1))
    return Image.fromarray(numpy.clip(pixels, 0, 255).astype(numpy.uint8), mode)


def pillow_file(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, "AVIF", **{"quality": 60, "speed": 8, **options})
    return buffer.getvalue()


def avifenc_file(image, *options):
    with tempfile.TemporaryDirectory() as folder:
        image.save(f"{folder}/in.png")
        command = ["avifenc", "--speed", "8", "--jobs", "1", "--min", "15", "--max", "25", "--minalpha", "15", "--maxalpha", "25", *options, f"{folder}/in.png", f"{folder}/out.avif"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(f"{folder}/out.avif", "rb") as file:
            return file.read()


def samplings():
    """8 bits by Pillow: every sampling, both ranges, alpha, and alpha by which the colours are multiplied."""
    for sampling in ("4:2:0", "4:2:2", "4:4:4", "4:0:0"):
        name = sampling.replace(":", "")
        for range_ in ("full", "limited"):
            options = {"subsampling": sampling, "range": range_}
            yield f"{name}_{range_}", pillow_file(picture(SIZE), **options)
            yield f"{name}_{range_}_alpha", pillow_file(picture(SIZE, "RGBA"), **options)
        yield f"{name}_multiplied", pillow_file(picture(SIZE, "RGBA"), subsampling=sampling, alpha_premultiplied=True)
    yield "best", pillow_file(picture(SIZE), quality=100, subsampling="4:4:4")


def depths():
    for depth in ("10", "12"):
        for sampling in ("420", "422", "444", "400"):
            for range_ in ("f", "l"):
                options = ("--depth", depth, "--yuv", sampling, "--range", range_)
                yield f"{sampling}_{depth}_{range_}", avifenc_file(picture(SIZE), *options)
                yield f"{sampling}_{depth}_{range_}_alpha", avifenc_file(picture(SIZE, "RGBA"), *options)
            options = ("--depth", depth, "--yuv", sampling, "--premultiply")
            yield f"{sampling}_{depth}_multiplied", avifenc_file(picture(SIZE, "RGBA"), *options)


def with_matrix(data, primaries, matrix):
    """Changes what a file says of its colours: the numbers of ITU-T H.273."""
    at = data.index(b"colrnclx") + 8
    return data[:at] + struct.pack(">H", primaries) + data[at + 2 : at + 4] + struct.pack(">H", matrix) + data[at + 6 :]


def colours():
    yield "lossless", avifenc_file(picture(SIZE), "--lossless")
    yield "lossless_alpha", avifenc_file(picture(SIZE, "RGBA"), "--lossless")
    for depth in ("8", "10", "12"):
        colour = avifenc_file(picture(SIZE), "--depth", depth, "--yuv", "444")
        for primaries, matrix in ((1, 1), (1, 4), (1, 7), (1, 8), (9, 9), (5, 12), (12, 12)):
            yield f"matrix_{primaries}_{matrix}_{depth}", with_matrix(colour, primaries, matrix)
        for mode in ("RGB", "RGBA"):
            gray = avifenc_file(picture(SIZE, mode), "--depth", depth, "--yuv", "400", "--range", "l")
            yield f"gray_identity_{depth}_{mode.lower()}", with_matrix(gray, 1, 0)


def turned():
    for mode in ("RGB", "RGBA"):
        for quarters in range(4):
            for mirror in (None, 0, 1):
                options = ["--irot", str(quarters)] if quarters > 0 else []
                options += ["--imir", str(mirror)] if mirror is not None else []
                if options and (mode == "RGB" or len(options) == 4):
                    name = f"turned_{quarters}" + ("" if mirror is None else f"_mirror_{mirror}")
                    yield f"{name}_{mode.lower()}", avifenc_file(picture(SIZE, mode), *options)


def with_more():
    """Properties and items beside the picture, of which none changes the pixels."""
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    yield "exif_6", pillow_file(picture(SIZE), exif=exif)  # Pillow turns the picture, and leaves the orientation out
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/exif", "wb") as file:
            file.write(exif.tobytes().removeprefix(b"Exif\0\0"))
        yield "exif_6_ignored", avifenc_file(picture(SIZE), "--exif", f"{folder}/exif")
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    yield "icc", pillow_file(picture(SIZE), icc_profile=profile)
    yield "xmp", pillow_file(picture(SIZE), xmp=b"<x:xmpmeta/>")
    yield "clap", avifenc_file(picture(SIZE), "--clap", "11,1,9,1,0,1,0,1")
    yield "pasp", avifenc_file(picture(SIZE), "--pasp", "2,1")


def sizes():
    for size in ((1, 1), (2, 3), (33, 1), (1, 50), (64, 64), (129, 65)):
        for mode in ("RGB", "RGBA"):
            yield f"size_{size[0]}x{size[1]}_{mode.lower()}", pillow_file(picture(size, mode))


def encoders():
    """Other programs' streams: frame headers that say more, alpha in colours, film grain."""
    for mode in ("RGB", "RGBA"):
        for codec in ("svt", "rav1e"):
            yield f"{codec}_{mode.lower()}", avifenc_file(picture((128, 96), mode), "--codec", codec, "--yuv", "420")
    yield "grain", avifenc_file(picture((130, 97)), "-a", "film-grain-test=1")
    yield "tiles", avifenc_file(picture((260, 70)), "--tilecolslog2", "1")


def grids():
    for mode in ("RGB", "RGBA"):
        for depth, sampling in (("8", "420"), ("10", "444"), ("12", "400")):
            options = ("--grid", "2x1", "--depth", depth, "--yuv", sampling)
            yield f"grid_{sampling}_{depth}_{mode.lower()}", avifenc_file(picture((128, 100), mode), *options)
    for sampling, size in (("420", (122, 94)), ("444", (121, 93))):  # phones' cells reach beyond the picture
        whole = avifenc_file(picture((128, 128)), "--grid", "2x2", "--yuv", sampling)
        for form in (">II", ">HH"):  # of the grid's property, and of the grid
            whole = whole.replace(struct.pack(form, 128, 128), struct.pack(form, *size))
        yield f"grid_cut_{sampling}", whole


def large():
    """Large pictures of one colour, in few bytes: what decoding them takes is measured."""
    size, colour = (2048, 1536), (200, 100, 50, 255)
    for grid in ((), ("--grid", "4x4")):
        name = "large_grid" if grid else "large"
        yield name, avifenc_file(Image.new("RGB", size, colour[:3]), *grid)
        yield f"{name}_12_alpha", avifenc_file(Image.new("RGBA", size, colour[:3] + (99,)), *grid, "--depth", "12", "--yuv", "444")


def refused():
    """Files that are `unsupported` for stoker."""
    sequence = pillow_file(picture(SIZE), save_all=True, append_images=[picture(SIZE, seed=1)])
    yield "sequence", sequence
    whole = pillow_file(picture(SIZE))
    for name in ("a1lx", "a1op", "lsel"):  # what files with layers have
        yield f"layers_{name}", whole.replace(b"pixi", name.encode())
    at = whole.index(b"ispe") + 8
    yield "scaled", whole[:at] + struct.pack(">II", 46, 34) + whole[at + 8 :]


def line_of(name, data, is_refused):
    if is_refused:
        return f"{name}.avif 0 0 0 unsupported"
    image = Image.open(io.BytesIO(data))
    hashed = fnv1a(image.convert("RGB").tobytes())
    return f"{name}.avif {image.width} {image.height} {image.getexif().get(ORIENTATION, 1)} {hashed}"


def check():
    bad = 0
    for line in open(os.path.join(HERE, "avifs.txt")):
        name, *_, expected = line.split()
        with open(os.path.join(FOLDER, name), "rb") as file:
            found = line_of(name.removesuffix(".avif"), file.read(), expected == "unsupported")
        if found != line.rstrip():
            print(line.rstrip(), "but Pillow:", found)
            bad += 1
    sys.exit(bad > 0)


def main():
    if sys.argv[1:] == ["--check"]:
        check()
    os.makedirs(FOLDER, exist_ok=True)
    kinds = (samplings, depths, colours, turned, with_more, sizes, encoders, grids, large, refused)
    with open(os.path.join(HERE, "avifs.txt"), "w") as lines:
        for kind in kinds:
            for name, data in kind():
                with open(os.path.join(FOLDER, f"{name}.avif"), "wb") as file:
                    file.write(data)
                lines.write(line_of(name, data, kind is refused) + "\n")


if __name__ == "__main__":
    main()
