"""What a wheel of stoker must do where there is nothing but Python: run by wheel_test.py, in an environment that
has the wheel.

    in_root.py GOLDEN_DIR      GOLDEN_DIR is tests/golden/decode
"""

import ctypes
import importlib.util
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

import stoker

# What may be mapped from outside of the environment: Python's own, and the libraries of C and C++.
SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+))\.so[.0-9]*")
PROGRAM = [os.path.join(os.path.dirname(sys.executable), "stoker")]
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


def decode_golden(golden):
    """Every golden crop that a call of decode() makes has Pillow's bytes."""
    compared = {}
    for line in read(golden, "images_pillow13.txt").decode().splitlines():
        name, *numbers, wanted = line.split()
        x, y, width, height, out_width, out_height, *window, flip, filtered, exif = map(int, numbers)
        if window != [0, 0, out_width, out_height]:
            continue
        pixels = stoker.decode(
            read(golden, "images", name), crop=(x, y, width, height), size=(out_height, out_width), flip=bool(flip),
            filter=("bilinear", "bicubic")[filtered], exif=("ignore", "apply")[exif])
        assert fnv1a(bytes_of(pixels)) == wanted, line
        kind = name.rpartition(".")[2]
        compared[kind] = compared.get(kind, 0) + 1
    assert min(compared.get(kind, 0) for kind in ("jpg", "png", "webp", "tif", "bmp")) > 0, compared
    print("decoded as Pillow does:", compared)


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


def ours_alone():
    """What is mapped comes from the environment or from Python, or is a library of C and C++; and the wheel has names of its own."""
    environment = os.path.realpath(sys.prefix)
    mapped = {line.split()[-1] for line in read("/proc/self/maps").decode().splitlines() if ".so" in line}
    foreign = {file for file in mapped if not os.path.realpath(file).startswith(environment + "/")}
    of_python = re.compile(r".*/lib-dynload/.*|.*/libpython[0-9.]+\.so.*")
    extensions = {name for name in foreign if of_python.fullmatch(name)}
    needed_by_python = {name for name in foreign - extensions if re.fullmatch(r"lib(z|expat|lzma|bz2|ffi|crypto|ssl)\.so[.0-9]*", os.path.basename(name))}
    others = {name for name in foreign - extensions - needed_by_python if not SYSTEM.fullmatch(os.path.basename(name))}
    assert not others, others
    bundled = sorted(os.path.basename(file) for file in mapped - foreign)
    assert all(re.search(r"-[0-9a-f]{8}\.so", name) for name in bundled if name.startswith("lib")), bundled
    assert any(name.startswith("libtbb-") for name in bundled), bundled
    print("mapped:", *bundled)


def run(*words, code=0, said=""):
    result = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert result.returncode == code and said in result.stdout + result.stderr, (words, result)
    return result.stdout


def use_the_program():
    run("--version", said=stoker.__version__)
    print(run("info"))
    run("make-shapes", "--out", path("shapes"), "--count", "60", "--test-count", "20")
    run("check", "--data", path("shapes"))
    run("dump", "--data", path("shapes"), "--batch", "16", "--size", "32", "--steps", "2", "--out", path("dump"))
    run("peek", "--data", path("shapes"), "-o", path("sheet.png"))
    assert stoker.image_info(read(path("sheet.png"))).width > 0
    run("pack", "--data", path("shapes"), "--format", "parquet", "--out", path("packed"))
    assert len(stoker.parquet(path("packed"))) > 0
    run("train", "--data", path("shapes"), "--model", "airnet-narrow", "--out", path("run"), code=3, said="Debian's package of stoker")
    run("no-such-command", code=2)
    module = subprocess.run([sys.executable, "-m", "stoker", "--version"], capture_output=True, text=True, check=True)
    assert stoker.__version__ in module.stdout


def without_gpus():
    """There is no driver, and that is what is said. The feeding plugin of stoker-cuda can be opened all the same."""
    reason = stoker.why_no_cuda()
    assert "no NVIDIA driver" in reason, reason
    if importlib.util.find_spec("stoker_cuda"):
        folder = importlib.util.find_spec("stoker_cuda").submodule_search_locations[0]
        assert ctypes.CDLL(os.path.join(folder, "libstoker_cuda.so")).stoker_cuda_plugin
        print("libstoker_cuda.so opens without a driver")


def main():
    golden = sys.argv[1]
    assert stoker.devices()[0] == "cpu:0", stoker.devices()
    decode_golden(golden)
    write_pictures()
    train_a_loader()
    throw_from_a_worker()
    ours_alone()
    without_gpus()
    use_the_program()
    print("in the root: all well, Python", sys.version.split()[0])


if __name__ == "__main__":
    main()
