#!/usr/bin/python3
"""Makes tests/golden/decode/variants: rarer kinds of BMP, TIFF, JPEG, JPEG 2000, WebP and GIF, most of which Pillow cannot write.

variants.txt has a line for each file: its name, and the hash (64-bit FNV-1a) of the RGB bytes that Pillow gives, or
`unsupported` for files that stoker refuses and Pillow may read or misread. Run with Debian 12's python3; needs no data.
`make_variants.py --check` writes nothing and compares this Python's Pillow with the hashes.
"""
import io
import os
import struct
import sys
import zlib

import numpy
from PIL import Image

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_golden import fnv1a, texture

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT = 23, 17


def tiff(tags, strips, order="II", offsets_tag=273, sizes_tag=279, big=False):
    """Returns a TIFF or BigTIFF with these tags (a number or a list each) and strips, or tiles."""
    e = "<" if order == "II" else ">"
    head, count, entry, number, inline = (16, "Q", 20, "Q", 8) if big else (8, "H", 12, "I", 4)
    tags = {256: WIDTH, 257: HEIGHT, **tags, offsets_tag: [0] * len(strips), sizes_tag: [len(s) for s in strips]}
    tags = {tag: value if isinstance(value, list) else [value] for tag, value in tags.items() if value is not None}
    behind = head + struct.calcsize(e + count) + entry * len(tags) + inline  # the directory
    at = behind
    places = {}
    for tag, values in sorted(tags.items()):
        if len(values) > 1:
            places[tag] = at
            at += (8 if big else 4) * len(values)
    tags[offsets_tag] = [at + sum(map(len, strips[:i])) for i in range(len(strips))]
    shorts = (258, 320, 338, 339)
    longs = (offsets_tag, sizes_tag) if big else ()
    out = order.encode() + (struct.pack(e + "HHHQ", 43, 8, 0, head) if big else struct.pack(e + "HI", 42, head))
    out += struct.pack(e + count, len(tags))
    tail = b""
    for tag, values in sorted(tags.items()):
        code, size = ("H", 3) if tag in shorts else ("Q", 16) if tag in longs else ("I", 4)
        packed = struct.pack(e + code * len(values), *values)
        if len(packed) <= inline:
            packed = packed.ljust(inline, b"\0")
        else:
            tail_at = places[tag]
            tail = tail.ljust(tail_at - behind, b"\0") + packed
            packed = struct.pack(e + number, tail_at)
        out += struct.pack(e + "HH" + number, tag, size, len(values)) + packed
    out += struct.pack(e + number, 0) + tail
    return out.ljust(at, b"\0") + b"".join(strips)


def packed_rows(pixels, bits, order):
    """Returns the bytes of each row of (height, width) or (height, width, samples)."""
    rows = pixels.reshape(pixels.shape[0], -1)
    if bits == 16:
        return [row.astype("<u2" if order == "II" else ">u2").tobytes() for row in rows]
    if bits == 8:
        return [row.astype("u1").tobytes() for row in rows]
    shifts = numpy.arange(bits - 1, -1, -1)
    return [numpy.packbits((row[:, None] >> shifts & 1).astype("u1").ravel()).tobytes() for row in rows]


def compress(data, compression):
    return zlib.compress(data, 9) if compression == 8 else data


def strips_of(pixels, bits, order, compression, rows_per_strip, separate):
    planes = [pixels[:, :, c] for c in range(pixels.shape[2])] if separate else [pixels]
    for plane in planes:
        rows = packed_rows(plane, bits, order)
        for y in range(0, len(rows), rows_per_strip):
            yield compress(b"".join(rows[y : y + rows_per_strip]), compression)


def tiles_of(pixels, bits, order, compression, side, separate):
    planes = [pixels[:, :, c : c + 1] for c in range(pixels.shape[2])] if separate else [pixels]
    for plane in planes:
        height, width = plane.shape[:2]
        full = numpy.pad(plane, ((0, -height % side), (0, -width % side), (0, 0)), "edge")
        for y in range(0, height, side):
            for x in range(0, width, side):
                rows = packed_rows(full[y : y + side, x : x + side], bits, order)
                yield compress(b"".join(rows), compression)


def samples_of(count, bits, seed):
    pixels = texture(WIDTH, HEIGHT, 3, seed).astype(int)
    more = numpy.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, max(count - 3, 0)))
    more[:4, :5] = 0
    more[4:8, :5] = 255
    pixels = numpy.concatenate([pixels[:, :, : min(count, 3)], more], axis=2)
    if bits == 16:
        return pixels * 256 + (pixels * 7) % 256
    return pixels >> (8 - bits)


# Photometric, samples, bits, extra samples.
LAYOUTS = {
    "gray_1": (1, 1, 1, None),
    "gray_2": (1, 1, 2, None),
    "gray_4": (1, 1, 4, None),
    "white_is_zero_1": (0, 1, 1, None),
    "white_is_zero_2": (0, 1, 2, None),
    "white_is_zero_4": (0, 1, 4, None),
    "white_is_zero_8": (0, 1, 8, None),
    "gray_alpha": (1, 2, 8, [2]),
    "rgb_alpha": (2, 4, 8, [2]),
    "rgb_times_alpha": (2, 4, 8, [1]),
    "rgb_unknown": (2, 4, 8, [0]),
    "rgb_unnamed": (2, 4, 8, None),
    "rgb_corel": (2, 4, 8, [999]),
    "rgb_alpha_and_more": (2, 6, 8, [2, 0, 0]),
    "rgb_times_alpha_and_more": (2, 5, 8, [1, 0]),
    "rgb_16": (2, 3, 16, None),
    "rgb_alpha_16": (2, 4, 16, [2]),
    "rgb_times_alpha_16": (2, 4, 16, [1]),
    "rgb": (2, 3, 8, None),
    "cmyk": (5, 4, 8, None),
    "cmyk_and_more": (5, 5, 8, [0]),
}


def tiffs():
    for seed, (name, (photometric, count, bits, extras)) in enumerate(LAYOUTS.items()):
        pixels = samples_of(count, bits, seed)
        for order, compression, kind in (("II", 1, "strips"), ("MM", 8, "strips"), ("II", 8, "tiles"),
                                         ("II", 1, "planes"), ("MM", 8, "planes"), ("II", 8, "tiled_planes")):
            separate = "planes" in kind
            if separate and count == 1:
                continue
            tags = {258: [bits] * count, 259: compression, 262: photometric, 277: count, 338: extras}
            tags[284] = 2 if separate else 1
            if "tile" in kind:
                tags.update({322: 16, 323: 16})
                parts = list(tiles_of(pixels, bits, order, compression, 16, separate))
                data = tiff(tags, parts, order, 324, 325)
            else:
                tags[278] = 5
                data = tiff(tags, list(strips_of(pixels, bits, order, compression, 5, separate)), order)
            yield f"{name}_{kind}_{order.lower()}_{compression}.tif", data


def big_tiffs():
    """Yields the name, the BigTIFF, and a file with the same pixels that Pillow reads: it takes no big-endian BigTIFF."""
    for seed, (name, (photometric, count, bits, extras)) in enumerate(LAYOUTS.items()):
        pixels = samples_of(count, bits, seed + 50)
        for order, compression, kind in (("II", 1, "strips"), ("MM", 8, "strips"), ("II", 8, "tiles"), ("MM", 8, "planes")):
            separate = kind == "planes"
            if separate and (count == 1 or name == "rgb_unnamed"):
                continue
            tags = {258: [bits] * count, 259: compression, 262: photometric, 277: count, 338: extras}
            tags[284] = 2 if separate else 1
            if kind == "tiles":
                tags.update({322: 16, 323: 16})
                parts, places = list(tiles_of(pixels, bits, order, compression, 16, separate)), (324, 325)
            else:
                tags[278] = 5
                parts, places = list(strips_of(pixels, bits, order, compression, 5, separate)), (273, 279)
            data, twin = (tiff(tags, parts, order, *places, big=big) for big in (True, False))
            yield f"big_{name}_{kind}_{order.lower()}_{compression}.tif", data, data if order == "II" else twin


def tiffs_with_palettes():
    rng = numpy.random.default_rng(18)
    for bits in (1, 2, 4, 8):
        indexes = rng.integers(0, 1 << bits, (HEIGHT, WIDTH, 1))
        colours = [int(value) for value in rng.integers(0, 65536, 3 << bits)]
        for compression in (1, 8):
            tags = {258: bits, 259: compression, 262: 3, 277: 1, 278: 5, 320: colours}
            data = tiff(tags, list(strips_of(indexes, bits, "II", compression, 5, False)))
            yield f"palette_{bits}_{compression}.tif", data


def turned_tiffs():
    """Pictures that are stored turned; all have 23 columns and 17 rows when they are turned back."""
    for orientation in range(1, 9):
        width, height = (WIDTH, HEIGHT) if orientation < 5 else (HEIGHT, WIDTH)
        pixels = texture(width, height, 3, 19).astype(int)
        tags = {256: width, 257: height, 258: [8] * 3, 259: 1, 262: 2, 274: orientation, 277: 3, 278: 5}
        yield f"turned_{orientation}.tif", tiff(tags, list(strips_of(pixels, 8, "II", 1, 5, False)))


def turned_ycc_tiffs():
    """The same with colours that libtiff converts, in two strips."""
    for orientation in range(1, 9):
        width, height = (WIDTH, HEIGHT) if orientation < 5 else (HEIGHT, WIDTH)
        image = Image.fromarray(texture(width, height, 3, 20)).convert("YCbCr")
        buffer = io.BytesIO()
        image.save(buffer, "TIFF", compression="tiff_lzw", strip_size=3 * width * 9, tiffinfo={274: orientation})
        yield f"turned_ycc_{orientation}.tif", buffer.getvalue()


def tiffs_of_pillow():
    rgb = Image.fromarray(texture(WIDTH, HEIGHT, 3, 7))
    cmyk = Image.fromarray(texture(WIDTH, HEIGHT, 4, 8), "CMYK")
    rgba = Image.fromarray(texture(WIDTH, HEIGHT, 4, 9), "RGBA")
    ycc = rgb.convert("YCbCr")
    for mode, image in (("rgb", rgb), ("cmyk", cmyk), ("rgba", rgba), ("ycc", ycc), ("gray", rgb.convert("L"))):
        for compression in ("tiff_lzw", "packbits", "jpeg", "raw"):
            if compression == "jpeg" and mode == "rgba":
                continue
            buffer = io.BytesIO()
            image.save(buffer, "TIFF", compression=None if compression == "raw" else compression)
            yield f"{mode}_{compression}_pillow.tif", buffer.getvalue()
    for compression in ("group3", "group4", "tiff_ccitt"):
        buffer = io.BytesIO()
        rgb.convert("1").save(buffer, "TIFF", compression=compression)
        yield f"bilevel_{compression}.tif", buffer.getvalue()


def bmp(bits, rows, palette=b"", header=40, compression=0, masks=(), colours=0, offset=None, top=False):
    """`masks` follow a header of 40 bytes, or are part of a longer one; rows start at the bottom."""
    if header == 12:
        dib = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, bits)
    else:
        dib = struct.pack("<IiiHHIIiiII", header, WIDTH, -HEIGHT if top else HEIGHT, 1, bits, compression, 0, 0, 0,
                          colours, 0)
        dib += b"".join(struct.pack("<I", mask) for mask in masks)
        dib = dib.ljust(header, b"\0")
    body = b"".join(row + bytes(-len(row) % 4) for row in rows)
    at = 14 + len(dib) + len(palette)
    return b"BM" + struct.pack("<IHHI", at + len(body), 0, 0, at if offset is None else offset) + dib + palette + body


def bmps():
    rng = numpy.random.default_rng(5)
    for bits in (1, 4, 8):
        index = rng.integers(0, 1 << bits, (HEIGHT, WIDTH))
        rows = packed_rows(index, bits, "II")
        palette = rng.integers(0, 256, 4 << bits).astype("u1").tobytes()
        at_palette = 14 + 40
        yield f"palette_{bits}.bmp", bmp(bits, rows, palette)
        yield f"palette_{bits}_offset_0.bmp", bmp(bits, rows, palette, offset=0)
        yield f"palette_{bits}_offset_at_palette.bmp", bmp(bits, rows, palette, offset=at_palette)
        yield f"palette_{bits}_top.bmp", bmp(bits, rows, palette, top=True)
        old = bytes(b for i, b in enumerate(palette) if i % 4 != 3)
        yield f"palette_{bits}_os2.bmp", bmp(bits, rows, old, header=12)
        few = (1 << bits) * 3 // 4
        small = packed_rows(numpy.minimum(index, few - 1), bits, "II")
        yield f"palette_{bits}_few.bmp", bmp(bits, small, palette[: 4 * few], colours=few)
        yield f"palette_{bits}_few_at_palette.bmp", bmp(bits, small, palette[: 4 * few], colours=few, offset=at_palette)
    four = rng.integers(0, 256, (HEIGHT, WIDTH, 4))
    rows4, rows3 = packed_rows(four, 8, "II"), packed_rows(four[:, :, :3], 8, "II")
    for header in (40, 64, 108, 124):
        yield f"rgb_{header}.bmp", bmp(24, rows3, header=header)
        yield f"rgbx_{header}.bmp", bmp(32, rows4, header=header)
    yield "rgb_os2.bmp", bmp(24, rows3, header=12)
    yield "rgb_top.bmp", bmp(24, rows3, top=True)
    masks = {
        "bgrx": (0xFF0000, 0xFF00, 0xFF, 0),
        "xbgr": (0xFF000000, 0xFF0000, 0xFF00, 0),
        "abgr": (0xFF000000, 0xFF0000, 0xFF00, 0xFF),
        "rgba": (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
        "bgra": (0xFF0000, 0xFF00, 0xFF, 0xFF000000),
        "none": (0, 0, 0, 0),
    }
    for name, four_masks in masks.items():
        for header in (40, 108, 124):
            if header == 40 and four_masks[3] != 0:
                continue
            given = four_masks[:3] if header == 40 else four_masks
            data = bmp(32, rows4, header=header, compression=3, masks=given)
            yield f"fields_{name}_{header}.bmp", data
    for name, fields in (("565", (0xF800, 0x7E0, 0x1F)), ("555", (0x7C00, 0x3E0, 0x1F))):
        rows = packed_rows(rng.integers(0, 65536, (HEIGHT, WIDTH)), 16, "II")
        yield f"fields_16_{name}.bmp", bmp(16, rows, compression=3, masks=fields)
        yield f"fields_16_{name}_108.bmp", bmp(16, rows, header=108, compression=3, masks=fields)
    yield "rgb555.bmp", bmp(16, rows)
    for bits in (4, 8):
        palette = rng.integers(0, 256, 4 << bits).astype("u1").tobytes()
        for name in ("runs", "literal", "deltas"):
            data = bmp_runs(rng, bits, name)
            yield f"rle{bits}_{name}.bmp", bmp(bits, [data], palette, compression=1 if bits == 8 else 2)
    yield "fields_24.bmp", bmp(24, rows3, compression=3, masks=masks["bgrx"][:3])


def bmp_runs(rng, bits, name):
    """Returns commands of run-length coding for a whole picture, which begin at an even place."""
    data = b""
    for row in range(HEIGHT):
        x = 0
        if name == "deltas" and row == 3:
            data += bytes([5, 0x21, 0, 2, 4, 2])  # five pixels, then four to the right and two up
            x = 9
        if name == "deltas" and row in (4, 5):
            continue
        while x < WIDTH and not (name == "deltas" and row % 4 == 1 and x > 10):
            count = int(min(rng.integers(3, 9), WIDTH - x))
            if name == "literal" and count >= 3:
                literals = rng.integers(0, 256, count if bits == 8 else (count + 1) // 2).astype("u1").tobytes()
                data += bytes([0, count]) + literals + bytes(len(literals) % 2)
            else:
                data += bytes([count, int(rng.integers(0, 256))])
            x += count
        data += b"\0\0"
    return data + b"\0\1"


def jpegs():
    image = Image.fromarray(texture(WIDTH, HEIGHT, 3, 11))
    for name, options in (("baseline", {}), ("progressive", dict(progressive=True))):
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=85, subsampling=0, **options)
        data = buffer.getvalue()
        for stray in (b"\0", b"\x12\x34\x56", b"\xff\x00", b"\xff", b"ab\xff\x00\xff\xff"):
            # After APP0, and before the scan.
            first, scan = 4 + (data[4] << 8 | data[5]), data.index(b"\xff\xda")
            yield f"{name}_stray_{stray.hex()}.jpg", data[:first] + stray + data[first:scan] + stray + data[scan:]
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=85, subsampling=0)
    data = buffer.getvalue()
    while (at := data.find(b"\xff\xc4")) >= 0:
        data = data[:at] + data[at + 2 + (data[at + 2] << 8 | data[at + 3]) :]
    yield "no_huffman_tables.jpg", data


def animations():
    """WebP whose first frame is all of the canvas, or a part of it."""
    frames = [Image.fromarray(texture(WIDTH, HEIGHT, 4, seed), "RGBA") for seed in (12, 13)]
    for name, options in (("lossy", dict(quality=70)), ("lossless", dict(lossless=True, exact=True))):
        for alpha, images in (("rgba", frames), ("rgb", [frame.convert("RGB") for frame in frames])):
            buffer = io.BytesIO()
            images[0].save(buffer, "WEBP", save_all=True, append_images=images[1:], **options)
            yield f"animated_{alpha}_{name}.webp", buffer.getvalue()
            buffer = io.BytesIO()
            first, *more = (image.crop((0, 0, 9, 7)) for image in images)
            first.save(buffer, "WEBP", save_all=True, append_images=more, **options)
            yield f"animated_{alpha}_{name}_part.webp", with_canvas(buffer.getvalue(), 4, 6)


def lzw(indexes, bits, clears):
    """Returns GIF's codes for these indexes. Without `clears`, a table that is full stays as it is."""
    clear = 1 << bits
    value = filled = 0
    out = bytearray()

    def put(code, size):
        nonlocal value, filled
        value |= code << filled
        filled += size
        while filled >= 8:
            out.append(value & 255)
            value >>= 8
            filled -= 8

    def fresh():
        return {bytes([i]): i for i in range(clear)}, clear + 2, bits + 1

    table, following, size = fresh()
    put(clear, size)
    string = b""
    for index in indexes:
        longer = string + bytes([index])
        if longer in table:
            string = longer
            continue
        put(table[string], size)
        if following < 4096:
            table[longer] = following
            size += following == 1 << size and size < 12
            following += 1
        elif clears:
            put(clear, size)
            table, following, size = fresh()
        string = bytes([index])
    put(table[string], size)
    size += following == 1 << size and size < 12
    put(clear + 1, size)
    return bytes(out + bytes([value & 255]))


def gif_blocks(data, length=255):
    parts = [data[at : at + length] for at in range(0, len(data), length)]
    return b"".join(bytes([len(part)]) + part for part in parts) + b"\0"


def gif(indexes, bits, box=(0, 0, WIDTH, HEIGHT), canvas=None, own=None, interlaced=False, before=b"", clears=True):
    """`canvas` and `own` are palettes: bytes of 3 times a power of two."""
    def flags(palette):
        return 0 if palette is None else 128 | (len(palette) // 3).bit_length() - 2

    data = b"GIF89a" + struct.pack("<HHBBB", WIDTH, HEIGHT, flags(canvas), 2, 0) + (canvas or b"") + before
    data += b"," + struct.pack("<HHHHB", *box, (64 if interlaced else 0) | flags(own)) + (own or b"")
    return data + bytes([bits]) + gif_blocks(lzw(indexes, bits, clears), 100) + b";"


def gifs():
    rng = numpy.random.default_rng(14)

    def some(count, most):
        runs = numpy.repeat(rng.integers(0, most, count), rng.integers(1, 9, count))
        return runs[:count].astype("u1").tobytes()

    def palette(colours):
        return rng.integers(0, 256, 3 * colours).astype("u1").tobytes()

    whole, part = WIDTH * HEIGHT, (5, 3, 11, 9)
    gray = bytes(numpy.repeat(numpy.arange(256, dtype="u1"), 3))
    control = b"!\xf9\x04" + bytes([1 | 2 << 2, 5, 0, 3]) + b"\0"
    for bits in range(2, 9):
        yield f"palette_{bits}.gif", gif(some(whole, 1 << bits), bits, canvas=palette(1 << bits))
    for name, box in (("whole", (0, 0, WIDTH, HEIGHT)), ("part", part)):
        count = box[2] * box[3]
        for interlaced in (False, True):
            kind = f"{name}{'_interlaced' if interlaced else ''}"
            options = dict(box=box, interlaced=interlaced)
            yield f"{kind}.gif", gif(some(count, 16), 4, canvas=palette(16), **options)
            yield f"{kind}_transparent.gif", gif(some(count, 16), 4, canvas=palette(16), before=control, **options)
            yield f"{kind}_own.gif", gif(some(count, 8), 3, canvas=palette(4), own=palette(8), **options)
            yield f"{kind}_no_palette.gif", gif(some(count, 256), 8, **options)
            yield f"{kind}_own_gray.gif", gif(some(count, 256), 8, canvas=palette(256), own=gray, **options)
            yield f"{kind}_gray.gif", gif(some(count, 256), 8, canvas=gray, **options)
    yield "one_index.gif", gif(bytes(whole), 2, canvas=palette(4))
    comment = b"!\xfe" + gif_blocks(bytes(300)) + b"!\xff\x0bNETSCAPE2.0\x03\1\0\0\0" + b"!\x01" + gif_blocks(b"text")
    yield "extensions.gif", gif(some(whole, 16), 4, canvas=palette(16), before=comment)


def animated_gifs():
    """GIFs that Pillow writes."""
    frames = [Image.fromarray(texture(WIDTH, HEIGHT, 3, seed)) for seed in (15, 16)]
    for name, images in (("palette", frames), ("gray", [frame.convert("L") for frame in frames])):
        buffer = io.BytesIO()
        images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], loop=0)
        yield f"animated_{name}.gif", buffer.getvalue()


def jpeg2000s():
    image = Image.fromarray(texture(WIDTH, HEIGHT, 4, 17), "RGBA")
    kinds = {"reversible": {}, "irreversible": dict(irreversible=True, quality_mode="rates", quality_layers=[8]),
             "tiles": dict(tile_size=(16, 16))}
    for mode in ("RGB", "L", "RGBA", "LA"):
        for kind, options in kinds.items():
            buffer = io.BytesIO()
            image.convert(mode).save(buffer, "JPEG2000", **options)
            yield f"{mode.lower()}_{kind}.jp2", buffer.getvalue()
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "JPEG2000", no_jp2=True)
    yield "rgb_bare.jp2", buffer.getvalue()


def pnms():
    """Netpbm files in text and in binary, with values up to the usual largest ones and to others."""
    rng = numpy.random.default_rng(21)
    bits = rng.integers(0, 2, (HEIGHT, WIDTH))
    lines = "\n".join("".join(map(str, row)) for row in bits)
    yield "text.pbm", f"P1 {WIDTH} {HEIGHT}\n{lines}".encode()
    yield "binary.pbm", f"P4\n{WIDTH} {HEIGHT}\n".encode() + b"".join(packed_rows(bits, 1, "MM"))
    for letter, name, channels in (("2", "pgm", 1), ("3", "ppm", 3)):
        for most in (255, 1, 10, 100, 256, 1023, 65534, 65535):
            values = rng.integers(0, most + 1, (HEIGHT, WIDTH * channels))
            values[0, :11] = numpy.minimum(range(11), most)  # halves are rounded to even
            lines = "\n".join(" ".join(map(str, row)) + (" # 1 2 3" if y % 5 == 0 else "") for y, row in enumerate(values))
            head = f"{WIDTH}\n{HEIGHT} {most}\n"
            yield f"text_{most}.{name}", f"P{letter} # {most}\n{head}{lines}\n".encode()
            binary = values.astype("u1" if most < 256 else ">u2").tobytes()
            yield f"binary_{most}.{name}", f"P{int(letter) + 3}\n{head}".encode() + binary


def with_canvas(webp, x, y):
    """Gives an animation the usual canvas, and puts its first frame there."""
    webp = bytearray(webp)
    webp[24:30] = (WIDTH - 1).to_bytes(3, "little") + (HEIGHT - 1).to_bytes(3, "little")
    at = webp.index(b"ANMF") + 8
    webp[at : at + 6] = (x // 2).to_bytes(3, "little") + (y // 2).to_bytes(3, "little")
    return bytes(webp)


# Pillow reads uncompressed planes of 16 bits as if they had 8, and an unnamed fourth plane of a compressed file as alpha by
# which the colours were multiplied.
MISREAD = {
    "rgb_16_planes_ii_1.tif",
    "rgb_alpha_16_planes_ii_1.tif",
    "rgb_unnamed_planes_ii_1.tif",
    "rgb_unnamed_planes_mm_8.tif",
    "rgb_unnamed_tiled_planes_ii_8.tif",
}


def refused():
    """Files that are `unsupported` for stoker. Pillow is no reference for them: it refuses or misreads most."""
    eight = samples_of(4, 8, 1)
    tags = {258: [8] * 3, 259: 1, 262: 6, 277: 3, 278: HEIGHT}
    yield "ycc_raw.tif", tiff(tags, list(strips_of(eight[:, :, :3], 8, "II", 1, HEIGHT, False)))
    tags = {258: [8] * 3, 259: 1, 262: 8, 277: 3, 278: HEIGHT}
    yield "lab.tif", tiff(tags, list(strips_of(eight[:, :, :3], 8, "II", 1, HEIGHT, False)))
    buffer = io.BytesIO()
    Image.fromarray(samples_of(1, 16, 1)[:, :, 0].astype("u2")).save(buffer, "JPEG2000")
    yield "gray_16.jp2", buffer.getvalue()


# Pillow 9.4 reads these in another way; the values are Pillow 13's.
OF_PILLOW_13 = {
    "rle4_literal.bmp": "7d3720bdfbdbae74",
    "rle4_deltas.bmp": "c4d8efbb5a67c969",
    "rle8_deltas.bmp": "d382a11ad4182b3e",
    "turned_ycc_2.tif": "2bf642b6f5b9bf43",
    "turned_ycc_3.tif": "2d9df3969d030053",
    "turned_ycc_4.tif": "65c0fd69fadeace3",
    "turned_ycc_6.tif": "933c0786ef306276",
    "turned_ycc_7.tif": "1e1b469854640292",
    "turned_ycc_8.tif": "efde53d7554f32f6",
}


def pillow(data):
    try:
        return fnv1a(Image.open(io.BytesIO(data)).convert("RGB").tobytes())
    except (OSError, SyntaxError, ValueError, KeyError) as error:
        return f"refused ({error})"


def check():
    bad = 0
    twins = {name: twin for name, _, twin in big_tiffs()}
    for line in open(os.path.join(HERE, "variants.txt")):
        name, expected = line.split()
        found = pillow(twins.get(name) or open(os.path.join(HERE, "variants", name), "rb").read())
        bad += found != expected and expected != "unsupported"
        if found != expected:
            print(name, expected, found)
    sys.exit(bad > 0)


def main():
    if sys.argv[1:] == ["--check"]:
        check()
    os.makedirs(os.path.join(HERE, "variants"), exist_ok=True)
    no = {name for name, _ in refused()} | MISREAD
    twins = {name: twin for name, _, twin in big_tiffs()}
    big = [(name, data) for name, data, _ in big_tiffs()]
    tiff_files = [*tiffs(), *big, *tiffs_of_pillow(), *tiffs_with_palettes(), *turned_tiffs(), *turned_ycc_tiffs()]
    others = [*bmps(), *jpegs(), *animations(), *gifs(), *animated_gifs(), *jpeg2000s(), *pnms()]
    with open(os.path.join(HERE, "variants.txt"), "w") as lines:
        for name, data in [*tiff_files, *others, *refused()]:
            found = "unsupported" if name in no else OF_PILLOW_13.get(name) or pillow(twins.get(name, data))
            if found.startswith("refused"):
                print(f"left out: {name}: Pillow {found}")
                continue
            with open(os.path.join(HERE, "variants", name), "wb") as file:
                file.write(data)
            lines.write(f"{name} {found}\n")


if __name__ == "__main__":
    main()
