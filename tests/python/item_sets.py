"""Objects for stoker.dataset(). Worker processes import them from here."""

from __future__ import annotations

import io
import itertools
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def pixels(seed: int) -> np.ndarray:
    """Returns noise of 40 x 50 pixels."""
    return np.random.default_rng(seed).integers(0, 256, (40, 50, 3), np.uint8)


def png(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return out.getvalue()


class Items:
    """Item i is (data(i), i % 7)."""

    def __init__(self, samples: int = 30) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Any:
        return self.data(index), self.label(index)

    def data(self, index: int) -> Any:
        return pixels(index)

    def label(self, index: int) -> Any:
        return index % 7


class Files(Items):
    def data(self, index: int) -> bytes:
        return png(pixels(index))


class Paths(Items):
    """The files are written by their maker, in the process of the test."""

    def __init__(self, folder: Path, samples: int = 30) -> None:
        super().__init__(samples)
        self.folder = folder
        for index in range(samples):
            (folder / f"{index}.png").write_bytes(png(pixels(index)))

    def data(self, index: int) -> Path:
        return self.folder / f"{index}.png"


class Pictures(Items):
    def data(self, index: int) -> Image.Image:
        return Image.fromarray(pixels(index))


class Tensor:
    """An object that NumPy can take and memoryview() cannot, as PyTorch's tensors."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


class Tensors(Items):
    def data(self, index: int) -> Tensor:
        return Tensor(pixels(index))


class Listed(Items):
    """The items of a list."""

    def __init__(self, items: list[Any]) -> None:
        super().__init__(len(items))
        self.items = items

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class Raising(Items):
    """Some items raise an exception."""

    def __init__(self, bad: dict[int, BaseException], samples: int = 30) -> None:
        super().__init__(samples)
        self.bad = bad

    def __getitem__(self, index: int) -> Any:
        if index in self.bad:
            raise self.bad[index]
        return super().__getitem__(index)


class Dying(Items):
    """The process ends at some items: with an exit code, or by a signal if it is negative."""

    def __init__(self, ends: dict[int, int], samples: int = 30) -> None:
        super().__init__(samples)
        self.ends = ends

    def data(self, index: int) -> Any:
        code = self.ends.get(index, 0)
        if code > 0:
            os._exit(code)
        if code < 0:
            os.kill(os.getpid(), -code)
            signal.pause()
        return super().data(index)


class Processes(Items):
    """The label is the number of the process."""

    def label(self, index: int) -> int:
        return os.getpid()


class Together(Items):
    """Each item waits until `count` of them are under way at once."""

    def __init__(self, folder: Path, count: int, samples: int) -> None:
        super().__init__(samples)
        self.folder, self.count = folder, count

    def data(self, index: int) -> Any:
        (self.folder / f"{index}.here").touch()
        for _ in range(6000):
            if len(list(self.folder.glob("*.here"))) >= self.count:
                return super().data(index)
            time.sleep(0.01)
        raise TimeoutError(f"{self.count} items were never under way at once")


class Stuck(Items):
    """Item `at` never ends. `how`: 'asleep', or 'busy', which holds the interpreter's lock."""

    def __init__(self, folder: Path, at: int, how: str = "asleep", samples: int = 30) -> None:
        super().__init__(samples)
        self.folder, self.at, self.how = folder, at, how

    def data(self, index: int) -> Any:
        if index == self.at:
            (self.folder / f"stuck-{os.getpid()}").touch()
            if self.how == "busy":
                sum(itertools.repeat(0))
            while True:
                time.sleep(1)
        return super().data(index)


class Unloadable(Items):
    """A pickle of it cannot be read."""

    def __setstate__(self, state: Any) -> None:
        raise OSError("the store is not there")


class Unpicklable(Items):
    def __init__(self) -> None:
        super().__init__()
        self.opened = open(os.devnull)  # noqa: SIM115 - held as long as the object
