#!/usr/bin/env python3
"""stoker beside other libraries in one process: they are imported in every order, and the loaders of all run at once.

    beside.py [--orders N]        with a Python that has stoker and some of torch, tensorflow, cv2, pyarrow, numba

All of them bring codecs, thread pools and a C++ library of their own (numba: a second oneTBB, from the package tbb). Each order
is a process of its own, in which stoker must give the pixels that it gives alone, and every other loader its own.
--orders takes only that many of the orders, spread evenly. Exit codes: 0 all well, 1 not, 77 none of the libraries is there.
"""
import argparse
import importlib.util
import itertools
import os
import subprocess
import sys

OTHERS = ("torch", "tensorflow", "cv2", "pyarrow", "numba")
CHILD = r"""
import importlib, os, sys, tempfile, threading, zlib
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", NUMBA_THREADING_LAYER="tbb")
names = sys.argv[1].split(",")
modules = {name: importlib.import_module(name) for name in names}
stoker = modules["stoker"]
folder = sys.argv[2]
sys.setswitchinterval(1e-4)
with open(os.path.join(folder, "class0", "0000.jpg"), "rb") as file:
    picture = file.read()

def crc(array):
    numpy = importlib.import_module("numpy")
    return zlib.crc32(numpy.asarray(array).tobytes())

def run_stoker(steps):
    recipe = stoker.random_resized_crop(32) | stoker.augment.random_augment(2, 9) | stoker.flip()
    digest = 0
    with stoker.Loader(stoker.folder(folder), batch_size=16, augment=recipe, seed=3, workers=2) as loader:
        for _ in range(2):
            for batch in loader:
                digest = zlib.crc32(bytes(str(crc(batch.images)), 'ascii'), digest)
    try:
        with stoker.Loader(stoker.files([__file__], [0]), batch_size=1, size=8, on_bad="fail") as loader:
            next(iter(loader))
        raise AssertionError("a script is no picture")
    except stoker.FeedError:
        pass
    for _ in range(steps):
        assert crc(stoker.decode(picture)) == crc(stoker.decode(picture))
    return digest

def run_torch(steps):
    torch = modules["torch"]
    data = torch.utils.data.TensorDataset(torch.arange(64 * 12.0).reshape(64, 12))
    layer = torch.nn.Conv2d(3, 8, 3)
    for _ in range(steps):
        assert sum(float(batch.sum()) for (batch,) in torch.utils.data.DataLoader(data, 16, shuffle=True)) == 768 * 767 / 2
        layer(torch.ones(4, 3, 64, 64)).sum().backward()

def run_tensorflow(steps):
    tf = modules["tensorflow"]
    wanted = crc(tf.io.decode_jpeg(picture).numpy())
    decoded = tf.data.Dataset.from_tensors(picture).repeat(steps * 4).map(tf.io.decode_jpeg, num_parallel_calls=2).prefetch(2)
    assert all(crc(each.numpy()) == wanted for each in decoded)

def run_cv2(steps):
    cv2, numpy = modules["cv2"], importlib.import_module("numpy")
    data = numpy.frombuffer(picture, numpy.uint8)
    wanted = crc(cv2.imdecode(data, cv2.IMREAD_COLOR))
    for _ in range(steps * 4):
        assert crc(cv2.imdecode(data, cv2.IMREAD_COLOR)) == wanted
        cv2.resize(cv2.imdecode(data, cv2.IMREAD_COLOR), (300, 300), interpolation=cv2.INTER_AREA)

def run_pyarrow(steps):
    arrow, parquet = modules["pyarrow"], importlib.import_module("pyarrow.parquet")
    table = arrow.table({"image": [picture] * 50, "label": list(range(50))})
    for _ in range(steps):
        out = arrow.BufferOutputStream()
        parquet.write_table(table, out, compression="zstd")
        assert parquet.read_table(arrow.BufferReader(out.getvalue())).equals(table)

def run_numba(steps):
    numba, numpy = modules["numba"], importlib.import_module("numpy")
    @numba.njit(parallel=True)
    def total(values):
        found = 0.0
        for i in numba.prange(values.size):
            found += values[i]
        return found
    for _ in range(steps):
        assert total(numpy.ones(100000)) == 100000
    assert numba.threading_layer() == "tbb", numba.threading_layer()

results, errors = {}, []
def guarded(name):
    try:
        results[name] = globals()["run_" + name](5)
    except BaseException as error:
        errors.append(f"{name}: {type(error).__name__}: {error}")
threads = [threading.Thread(target=guarded, args=(name,)) for name in names]
for thread in threads: thread.start()
for thread in threads: thread.join()
for kind in ("tbb", "jpeg", "stdc++"):
    with open("/proc/self/maps") as maps:
        print(kind, len({line.split()[-1] for line in maps if f"/lib{kind}" in line}), end=" ")
print()
print(results["stoker"] if not errors else errors)
sys.exit(1 if errors else 0)
"""


def write_pictures(folder):
    """Draws JPEG pictures with stoker's own program's words: none of the other libraries is needed."""
    program = os.path.join(os.path.dirname(sys.executable), "stoker")
    shapes = os.path.join(folder, "shapes")
    subprocess.run([program, "make-shapes", "--out", shapes, "--count", "64", "--test-count", "4", "--size", "128"], check=True, capture_output=True)
    files = sorted(os.path.join(where, name) for where, _, names in os.walk(os.path.join(shapes, "train")) for name in names)
    for i, file in enumerate(files):
        target = os.path.join(folder, "pictures", f"class{i % 4}")
        os.makedirs(target, exist_ok=True)
        os.rename(file, os.path.join(target, f"{i:04}.jpg"))
    return os.path.join(folder, "pictures")


def run_order(names, pictures, child):
    result = subprocess.run([sys.executable, child, ",".join(names), pictures], capture_output=True, text=True, check=False,
                            stdin=subprocess.DEVNULL, timeout=600)
    lines = result.stdout.splitlines()
    return result.returncode, lines, result.stderr


def main():
    import tempfile
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=0)
    options = parser.parse_args()
    others = [name for name in OTHERS if importlib.util.find_spec(name)]
    if not others:
        print("left out: none of", ", ".join(OTHERS), "is installed")
        return 77
    orders = list(itertools.permutations(["stoker", *others]))
    if options.orders:
        orders = orders[:: max(1, len(orders) // options.orders)]
    with tempfile.TemporaryDirectory() as folder:
        child = os.path.join(folder, "child.py")
        with open(child, "w", encoding="utf-8") as file:
            file.write(CHILD)
        pictures = write_pictures(folder)
        alone = run_order(["stoker"], pictures, child)
        if alone[0] != 0:
            print(f"FAILED alone: {alone}")
            return 1
        failed = 0
        for number, names in enumerate(orders, 1):
            code, lines, errors = run_order(names, pictures, child)
            well = code == 0 and lines[-1] == alone[1][-1]
            failed += not well
            print(f"{number}/{len(orders)} {' '.join(names)}: {lines[0] if well else f'FAILED ({code}): {lines} {errors[-1500:]}'}", flush=True)
    print(f"beside: {len(orders) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
