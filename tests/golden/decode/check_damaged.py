#!/usr/bin/python3
"""Damages files of all formats, and compares the results of a decoder that has decoded all those before, of a fresh one for
each file, and of Pillow.

  check_damaged.py --decoder build/tests/decode/decode_files [--files N] [--seed S] [--keep DIR]
  check_damaged.py --decoder build/tests/decode/decode_files --as-they-are DIR...    # every file of folders, undamaged

The seeds are made here, by Pillow and by make_variants.py. Damage: bits flipped, bytes changed, cut out, doubled and
swapped, the end cut off, pieces of two files joined. malloc gives the two decoders memory with different bytes (glibc's
MALLOC_PERTURB_), so that unwritten memory is noticed. A fault is

  memory     the used decoder and the fresh one differ in status, text, pixels or crops
  pixels     stoker and Pillow both accept the file, and the bytes differ
  ended      the decoder died

and the exit code is 1 if there is one; --keep writes those files to DIR. For each format it prints how many files only stoker
accepts, and how many only Pillow: stoker refuses broken files that Pillow reads (decode/README.md).
"""
import argparse
import collections
import glob
import io
import os
import random
import re
import sys
import tempfile
import warnings
import zlib

try:
    import numpy  # noqa: F401 - make_variants needs it
    import PIL
    from PIL import Image
except ImportError as error:
    print(f"check_damaged.py: {error}")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_variants
from decoder_process import DecoderProcess
from make_variants import texture

SIZE = (45, 38)


def saved(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def without_segments(jpeg, marker):
    while (at := jpeg.find(b"\xff" + bytes([marker]))) >= 0:
        jpeg = jpeg[:at] + jpeg[at + 2 + (jpeg[at + 2] << 8 | jpeg[at + 3]) :]
    return jpeg


def seeds():
    rgb = Image.fromarray(texture(*SIZE, 3, 1))
    rgba = Image.fromarray(texture(*SIZE, 4, 2), "RGBA")
    cmyk = Image.fromarray(texture(*SIZE, 4, 3), "CMYK")
    for subsampling in (0, 1, 2):
        for progressive in (False, True):
            for optimize in (False, True):
                data = saved(rgb, "JPEG", subsampling=subsampling, progressive=progressive, optimize=optimize)
                yield "jpg", data
    for image in (rgb.convert("L"), cmyk):
        yield "jpg", saved(image, "JPEG")
        yield "jpg", saved(image, "JPEG", progressive=True)
    for tables in (0xC4, 0xDB):
        yield "jpg", without_segments(saved(rgb, "JPEG", subsampling=0), tables)
    for mode in ("1", "L", "P", "RGB", "LA", "RGBA"):
        image = rgba.convert("L").convert("LA") if mode == "LA" else rgba if mode == "RGBA" else rgb.convert(mode)
        yield "png", saved(image, "PNG")
        yield "png", saved(image, "PNG", optimize=True)
    for mode in ("1", "L", "P", "RGB"):
        yield "bmp", saved(rgb.convert(mode), "BMP")
    for options in (dict(quality=80), dict(lossless=True), dict(quality=20)):
        yield "webp", saved(rgb, "WEBP", **options)
        yield "webp", saved(rgba, "WEBP", **options)
    variants = make_variants
    made = [*variants.bmps(), *variants.tiffs(), *variants.tiffs_with_palettes(), *variants.turned_tiffs(), *[(name, data) for name, data, _ in variants.big_tiffs()], *variants.tiffs_of_pillow(), *variants.gifs(), *variants.animated_gifs(), *variants.jpeg2000s()]
    for name, data in [*made, *variants.animations()]:
        yield name.split(".")[-1], data
    for _, data in variants.pnms():
        yield "pnm", data
    if int(PIL.__version__.split(".")[0]) >= 13:  # those before have no AVIF, or other pixels of it
        for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "avifs", "*.avif"))):
            with open(path, "rb") as file:
                yield "avif", file.read()


def damage(data, other, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        if not data:
            break
        at = rng.randrange(min(len(data), rng.choice((64, 300, len(data)))))
        length = rng.randint(1, 12)
        kind = rng.randrange(9)
        if kind <= 2:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 3:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif kind == 4:
            del data[at : at + length]
        elif kind == 5:
            data[at:at] = data[at : at + length]
        elif kind == 6 and at + 1 < len(data):
            data[at], data[at + 1] = data[at + 1], data[at]
        elif kind == 7:
            to = min(at + rng.randint(1, 60), len(other))
            data[at:to] = other[at:to]
        elif rng.randrange(3) == 0:
            del data[at:]
        else:
            data[at : at + 1] = bytes([data[at] + 1 & 0xFF])
    return bytes(data)


def with_whole_checksums(png):
    """Corrects the checksums of a damaged PNG; otherwise the decoder would stop at most damage there."""
    out, at = bytearray(png[:8]), 8
    while at + 12 <= len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        body = png[at + 4 : at + 8 + length]
        out += png[at : at + 4] + body + zlib.crc32(body).to_bytes(4, "big")
        at += 12 + length
    return bytes(out) + png[at:]


def damaged_files(count, rng):
    by_format = collections.defaultdict(list)
    for kind, data in seeds():
        by_format[kind].append(data)
    kinds = ["jpg", "jpg", "png", "bmp", "webp", "tif", "tif", "gif", "jp2", "pnm"]
    kinds += ["avif"] if "avif" in by_format else []
    for number in range(count):
        kind = rng.choice(kinds)
        data = rng.choice(by_format[kind])
        other = rng.choice(by_format[rng.choice((kind, rng.choice(list(by_format))))])
        if rng.randrange(20) != 0:  # some stay intact
            data = damage(data, other, rng)
        if kind == "png" and rng.randrange(4) != 0:
            data = with_whole_checksums(data)
        yield f"file {number}", kind, data


def files_as_they_are(folders, rng):
    paths = sorted(os.path.join(at, name) for folder in folders for at, _, names in os.walk(folder) for name in names)
    rng.shuffle(paths)
    for path in paths:
        with open(path, "rb") as file:
            yield path, path.rpartition(".")[2].lower(), file.read()


def is_doubtful(image):
    """Pillow before 10 fills palettes up with shades of gray, and its result for a damaged fax depends on uninitialised
    memory. JPEG 2000 has no checksums, and versions of its library decode damaged data in different ways."""
    if image.format == "JPEG2000":
        return True
    is_fax = image.info.get("compression") in ("group3", "group4", "tiff_ccitt")
    return int(PIL.__version__.split(".")[0]) < 10 and (image.mode == "P" or is_fax)


def pillow(data, is_sound, max_pixels):
    """Returns (pixels, size), with None for doubtful pixels; or None if Pillow refuses the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(io.BytesIO(data), formats=["JPEG", "PNG", "BMP", "WEBP", "TIFF", "GIF", "JPEG2000", "PPM", "AVIF"])
            if image.size[0] * image.size[1] > max_pixels:
                return None
            doubtful = not is_sound and is_doubtful(image)
            image = image.convert("RGB")
        return None if doubtful else image.tobytes(), image.size
    except Exception:  # noqa: BLE001 - Pillow raises many kinds for damaged files
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--decoder", required=True)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--as-they-are", nargs="+", metavar="DIR")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    files = files_as_they_are(args.as_they_are, rng) if args.as_they_are else damaged_files(args.files, rng)
    max_pixels = 80_000_000 if args.as_they_are else 4_000_000
    decoders = DecoderProcess(args.decoder, "used", 0x55, max_pixels), DecoderProcess(args.decoder, "fresh", 0xA3, max_pixels)
    counts, faults, reasons = collections.Counter(), collections.Counter(), collections.Counter()
    saved_stderr = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, kind, data) in enumerate(files):
            path = os.path.join(folder, f"{number}.{kind}")
            with open(path, "wb") as file:
                file.write(data)
            used, fresh = (decoder.decode(path) for decoder in decoders)
            fault = None
            if used is None or fresh is None:
                fault = "ended"
            elif used != fresh:
                fault = "memory"
            else:
                os.dup2(null, 2)  # libtiff prints
                theirs = pillow(data, args.as_they_are is not None, max_pixels)
                os.dup2(saved_stderr, 2)
                ours = used[0].startswith("ok ")
                counts[kind, ours, theirs is not None] += 1
                if theirs is not None and not ours:
                    words = used[0].split(" ", 4)
                    reasons[kind, re.sub(r"0x\w+|\d+", "N", f"{words[0]}: {words[4].strip()}")] += 1
                if ours and theirs is not None and theirs not in ((used[1], used[2]), (None, used[2])):
                    fault = "pixels"
            os.remove(path)
            if fault is None:
                continue
            faults[fault] += 1
            print(f"{fault}: {name} of seed {args.seed} ({kind}): {used and used[0].strip()}")
            if args.keep:
                os.makedirs(args.keep, exist_ok=True)
                with open(os.path.join(args.keep, f"{fault}-{args.seed}-{number}.{kind}"), "wb") as file:
                    file.write(data)
            if fault == "ended":
                break
    print(f"Pillow {PIL.__version__}; {counts.total() + faults['ended'] + faults['memory']} files of seed {args.seed}; faults: {dict(faults) or 'none'}")
    print(f"{'':6}{'both accept':>13}{'both refuse':>13}{'stoker alone':>14}{'Pillow alone':>14}")
    for kind in sorted({key[0] for key in counts}):
        columns = [counts[kind, *key] for key in ((True, True), (False, False), (True, False), (False, True))]
        print(f"{kind:6}{columns[0]:13}{columns[1]:13}{columns[2]:14}{columns[3]:14}")
    print("why stoker refuses what Pillow reads:")
    for (kind, reason), count in sorted(reasons.items(), key=lambda item: (item[0][0], -item[1])):
        print(f"{count:6} {kind:5} {reason}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
