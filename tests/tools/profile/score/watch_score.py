"""Scores the bound that stoker.watch() predicts on loops that wait for Python: does the same loop
over batches that are there already reach it? Prints a table (Markdown). CTest does not run it,
because it measures times: it needs a quiet machine and takes a minute. Exit code 1: fewer than four
of five are within 10 %.

    PYTHONPATH=build/python python3 tests/tools/profile/score/watch_score.py
"""

import sys
import time
from io import BytesIO

import numpy as np
from PIL import Image

import stoker

BATCH = 32
PICTURES = 24
SAMPLES = 4096
STEPS = 150  # of each measurement
REPLAYED = 60


class Pictures:
    """JPEG files, for each of which Python works or waits first."""

    def __init__(self, work_s=0.0, wait_s=0.0):
        self.work_s, self.wait_s = work_s, wait_s
        random = np.random.default_rng(0)
        self.files = []
        for _ in range(PICTURES):
            coarse = Image.fromarray(random.integers(0, 255, (15, 20, 3), dtype=np.uint8))
            file = BytesIO()
            coarse.resize((320, 240), Image.Resampling.BICUBIC).save(file, "jpeg")
            self.files.append(file.getvalue())

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        work(self.work_s)
        time.sleep(self.wait_s)
        return self.files[i % PICTURES], i % 2


def work(seconds):
    """Computes in Python, with the interpreter's lock, for so much CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def slow_batch(work_s, wait_s):
    def on_batch(batch):
        work(work_s)
        time.sleep(wait_s)
        return np.array(batch.images), np.array(batch.labels)

    return on_batch


def loader_of(items, on_batch, **options):
    source = stoker.dataset(items, **options)
    return stoker.Loader(
        source, batch_size=BATCH, size=160, workers=1, seed=1, on_batch=on_batch
    )


def loops():
    """Yields (what, the loader, CPU seconds of a step in Python, and seconds of sleep)."""
    copied = slow_batch(0, 0)
    yield "dataset(): two processes compute", loader_of(Pictures(1e-3), copied), 0, 10e-3
    yield (
        "dataset(): threads compute with the lock",
        loader_of(Pictures(0.5e-3), copied, processes=False),
        5e-3,
        2e-3,
    )
    yield (
        "dataset(): threads wait",
        loader_of(Pictures(wait_s=2e-3), copied, processes=False),
        5e-3,
        5e-3,
    )
    yield "on_batch computes", loader_of(Pictures(), slow_batch(15e-3, 0)), 5e-3, 5e-3
    yield "on_batch waits", loader_of(Pictures(), slow_batch(0, 20e-3)), 5e-3, 5e-3


def take_steps(batches, work_s, wait_s, steps):
    for number, _ in enumerate(batches, 1):
        work(work_s)
        time.sleep(wait_s)
        if number == steps:
            return


def score(loader, work_s, wait_s):
    """Returns the rate as it is, the bound that is predicted, and what is achieved: images/s."""
    watched = stoker.watch(loader, warm_up=10, replay=REPLAYED, batch_size=BATCH)
    take_steps(watched, work_s, wait_s, STEPS + REPLAYED + 20)
    verdict = watched.to_dict()["verdict"]
    rate = watched.to_dict()["measured"]["images_per_second"]
    ready = [batch for batch, _ in zip(loader, range(8))]
    loader.close()
    begin = time.perf_counter()
    take_steps(ready * STEPS, work_s, wait_s, STEPS)
    achieved = STEPS * BATCH / (time.perf_counter() - begin)
    return verdict["limit"], rate, verdict["bound_images_per_second"], achieved


def main():
    print("| loop | named | images/s | the bound | achieved | error |\n|---|---|---|---|---|---|")
    within = 0
    for name, loader, work_s, wait_s in loops():
        limit, rate, bound, achieved = score(loader, work_s, wait_s)
        error = bound / achieved - 1
        within += abs(error) <= 0.1
        print(f"| {name} | {limit} | {rate:.0f} | {bound:.0f} | {achieved:.0f} | {error:+.0%} |")
    print(f"\n{within} of 5 within 10%")
    return 0 if within >= 4 else 1


if __name__ == "__main__":
    sys.exit(main())
