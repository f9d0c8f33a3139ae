"""The duties of the Python package wherever it was installed: decode as Pillow does, feed, name a bad file, do without a GPU.

For programs that run in a root (wheel_in_root.py, sdist_in_root.py): it needs the standard library and stoker.
"""
import ctypes
import importlib.util
import os
import struct
import tempfile
import zlib

import stoker

ALL_FORMATS = ("jpg", "png", "webp", "tif", "bmp")
FOLDER = tempfile.TemporaryDirectory()


def path(*parts):
    return os.path.join(FOLDER.name, *parts)


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def bytes_of(array):
    """Returns an array's bytes; there is no NumPy to do it."""
    return ctypes.string_at(array.__array_interface__["data"][0], array.nbytes)


def read(*parts):
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def decode_golden(golden, refused=()):
    """Every golden crop that a call of decode() makes has Pillow's bytes, and those of the formats in `refused` end in one error."""
    compared = dict.fromkeys(ALL_FORMATS, 0)
    for line in read(golden, "images_pillow13.txt").decode().splitlines():
        name, *numbers, wanted = line.split()
        x, y, width, height, out_width, out_height, *window, flip, filtered, exif = map(int, numbers)
        if window != [0, 0, out_width, out_height]:
            continue
        kind = name.rpartition(".")[2]
        try:
            pixels = stoker.decode(
                read(golden, "images", name), crop=(x, y, width, height), size=(out_height, out_width), flip=bool(flip),
                filter=("bilinear", "bicubic")[filtered], exif=("ignore", "apply")[exif])
        except ValueError as error:
            assert kind in refused and "stoker was built without" in str(error), (line, error)
        else:
            assert kind not in refused and fnv1a(bytes_of(pixels)) == wanted, line
        compared[kind] += 1
    for listed, folder, kinds in (("variants.txt", "variants", ("jp2",)), ("avifs.txt", "avifs", ("avif",))):
        for line in read(golden, listed).decode().splitlines():
            name, wanted = line.split()[0], line.split()[-1]
            kind = name.rpartition(".")[2]
            if kind in kinds and kind not in refused and wanted != "unsupported":
                assert fnv1a(bytes_of(stoker.decode(read(golden, folder, name)))) == wanted, line
                compared[kind] = compared.get(kind, 0) + 1
    assert min(compared.values()) > 0 and all(kind in compared or kind in refused for kind in ("jp2", "avif")), compared
    print("decoded as Pillow does:", compared, "refused:", *refused)


def png(seed):
    """Returns a PNG file of 24 x 20 pixels that no library has written."""
    rows = b"".join(b"\0" + bytes((x * 5 + y * 3 + seed * 17 + c * 40) % 256 for x in range(24) for c in range(3)) for y in range(20))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 24, 20, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_pictures():
    for i in range(40):
        os.makedirs(path("pictures", f"class{i % 4}"), exist_ok=True)
        with open(path("pictures", f"class{i % 4}", f"{i:02}.png"), "wb") as file:
            file.write(png(i))


def epochs(count, **options):
    recipe = stoker.augment.random_resized_crop(16) | stoker.augment.random_augment(2, 9) | stoker.flip()
    with stoker.Loader(stoker.folder(path("pictures")), batch_size=8, augment=recipe, seed=5, workers=2, **options) as loader:
        for _ in range(count):
            for batch in loader:
                yield batch.step, tuple(batch.names), zlib.crc32(bytes_of(batch.images))


def train_a_loader():
    """Two epochs, the same again, and the rest of one from a state."""
    first = list(epochs(2))
    assert len(first) == 10 and len({crc for *_, crc in first}) == 10
    assert list(epochs(2)) == first
    source = stoker.folder(path("pictures"))
    with stoker.Loader(source, batch_size=8, size=16, seed=5) as loader:
        loop = iter(loader)
        next(loop)
        state = loader.state_dict()
        rest = [tuple(batch.names) for batch in loop]
    with stoker.Loader(source, batch_size=8, size=16, seed=5) as loader:
        loader.load_state_dict(state)
        assert [tuple(batch.names) for batch in loader] == rest
    print("10 batches, again, and resumed")


def throw_from_a_worker():
    """An exception that begins in a thread of oneTBB ends in Python: of the bundled libraries' C++, and ours."""
    with open(path("pictures", "class0", "00.png"), "r+b") as file:
        file.truncate(60)
    loader = stoker.Loader(stoker.folder(path("pictures")), batch_size=8, size=16, on_bad="fail", workers=2)
    try:
        for _ in loader:
            pass
    except stoker.FeedError as error:
        assert "00.png" in str(error), error
        print("FeedError:", error)
    else:
        raise AssertionError("a damaged file went unnoticed")
    finally:
        loader.close()


def without_gpus():
    """There is no driver, and that is what is said. The feeding plugin of stoker-cuda can be opened all the same."""
    reason = stoker.why_no_cuda()
    assert "no NVIDIA driver" in reason, reason
    if importlib.util.find_spec("stoker_cuda"):
        folder = importlib.util.find_spec("stoker_cuda").submodule_search_locations[0]
        assert ctypes.CDLL(os.path.join(folder, "libstoker_cuda.so")).stoker_cuda_plugin
        print("libstoker_cuda.so opens without a driver")
