"""Measures what Python adds, in CPU time: a step of a loop, keeping and copying batches,
normalising, and decoding compared with Pillow.

    python3 python/benchmarks/costs.py [FOLDER OF JPEG FILES] [--rounds N]

Every figure is the median of the rounds (with the least and the most); the programs that are
compared take turns. CPU time, not wall time: a busy machine disturbs it least.
"""

from __future__ import annotations

import argparse
import collections
import io
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import stoker

ROWS = 256


def rounds_of(count: int, *programs: Callable[[], object]) -> list[list]:
    """Runs the programs in turn, `count` times each, after one round to warm up."""
    results: list[list] = [[] for _ in programs]
    for i in range(count + 1):
        for result, program in zip(results, programs, strict=True):
            value = program()
            if i > 0:
                result.append(value)
    return results


def show(what: str, values: list[float], unit: str) -> None:
    middle = statistics.median(values)
    print(f"{what:58} {middle:8.2f} {unit} ({min(values):.2f} to {max(values):.2f})")


def step_us(**options: object) -> float:
    """Returns the CPU time of the consumer's thread per step, with tiny images: next(), a batch,
    three arrays."""
    with stoker.Loader(
        stoker.synthetic(64_000, size=8), batch_size=64, workers=1, **options
    ) as loader:
        loop = iter(loader)
        next(loop)
        start = time.thread_time()
        steps = 0
        for batch in loop:
            np.asarray(batch.images), np.asarray(batch.labels), np.asarray(batch.weights)
            steps += 1
        return (time.thread_time() - start) / steps * 1e6


def row_us(**options: object) -> float:
    """Returns the CPU time of the process per row of 224 x 224, from raw pixels."""
    with stoker.Loader(
        stoker.synthetic(ROWS, size=224), batch_size=64, workers=1, **options
    ) as loader:
        for batch in loader:
            pass
        start = time.process_time()
        for batch in loader:
            batch.images.__dlpack__()  # waits for the bytes
        del batch
        return (time.process_time() - start) / ROWS * 1e6


def batch_ms(keep: int, own_copy: bool = False, **options: object) -> tuple[float, float]:
    """Returns the CPU time per batch of 128 float rows of 224 x 224, from raw pixels: that of the
    consumer's thread, in next() and the copy, and that of the whole process. The last `keep`
    batches are held.
    """
    with stoker.Loader(
        stoker.synthetic(128 * 12, size=224), batch_size=128, workers=1, dtype="float32", **options
    ) as loader:
        held: collections.deque[object] = collections.deque(maxlen=keep)
        for _ in range(2):  # the first pass is a warm-up
            start = time.thread_time(), time.process_time()
            for batch in loader:
                images = np.asarray(batch.images)
                held.append(np.array(images) if own_copy else images)
                del batch, images
            end = time.thread_time(), time.process_time()
        steps = len(loader)
    return (end[0] - start[0]) / steps * 1e3, (end[1] - start[1]) / steps * 1e3


def ready_ms() -> float:
    """Returns the wall time of next() and a NumPy view, of the same batches, with the feed far
    ahead."""
    times = []
    with stoker.Loader(
        stoker.synthetic(128 * 12, size=224), batch_size=128, workers=1, dtype="float32"
    ) as loader:
        loop = iter(loader)
        for _ in range(10):
            time.sleep(0.1)
            start = time.perf_counter()
            batch = next(loop)
            np.asarray(batch.images)
            times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def decode_us(files: list[bytes], decode: Callable[[bytes], object]) -> float:
    start = time.process_time()
    for data in files:
        decode(data)
    return (time.process_time() - start) / len(files) * 1e6


def with_pillow(data: bytes) -> object:
    from PIL import Image

    image = Image.open(io.BytesIO(data)).convert("RGB")
    return np.asarray(image.resize((224, 224), Image.Resampling.BILINEAR))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    count = arguments.rounds
    (lent,) = rounds_of(count, step_us)
    show("a step of the loop, consumer's thread", lent, "us")
    settings: list[dict[str, object]] = [
        {},
        {"copy": True},
        {"dtype": "float32", "layout": "NCHW"},
        {"dtype": "bfloat16", "layout": "channels_last"},
    ]
    rows = rounds_of(count, *(lambda s=s: row_us(**s) for s in settings))
    for setting, values in zip(settings, rows, strict=True):
        show(f"a raw row of 224 x 224, process, {setting}", values, "us")
    ways = {
        "lent, the last one held": lambda: batch_ms(1),
        "lent, and one's own copy of each": lambda: batch_ms(1, own_copy=True),
        "copy=True": lambda: batch_ms(1, copy=True),
        "lent, the last six held": lambda: batch_ms(6),
        "lent, all held": lambda: batch_ms(24),
    }
    (ready,) = rounds_of(count, ready_ms)
    show("128 float rows, next() where they are ready: wall", ready, "ms")
    for name, values in zip(ways, rounds_of(count, *ways.values()), strict=True):
        show(f"128 float rows, {name}: thread", [thread for thread, _ in values], "ms")
        show(f"128 float rows, {name}: process", [process for _, process in values], "ms")
    if arguments.folder is None:
        return
    files = [path.read_bytes() for path in sorted(arguments.folder.rglob("*.jp*g"))[:200]]
    exact, fast, pillow = rounds_of(
        count,
        lambda: decode_us(files, lambda data: stoker.decode(data, size=224)),
        lambda: decode_us(files, lambda data: stoker.decode(data, size=224, pixels="fast")),
        lambda: decode_us(files, with_pillow),
    )
    print(f"{len(files)} files of {arguments.folder}, whole image to 224 x 224:")
    show("stoker.decode(pixels='exact')", exact, "us")
    show("stoker.decode(pixels='fast')", fast, "us")
    show("Pillow", pillow, "us")


if __name__ == "__main__":
    main()
