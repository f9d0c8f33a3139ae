"""Pictures to feed, and programs to run beside the tests."""

from __future__ import annotations

import contextlib
import functools
import http.server
import io
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image

import stoker


# The policy that gives the bytes of the installed Pillow.
PIXELS = "exact" if int(PIL.__version__.split(".")[0]) >= 13 else "exact-pillow12"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves a part of the tests, where CTest runs several parts at once."""
    shard, shards = map(int, os.environ.get("STOKER_TEST_SHARD", "1/1").split("/"))
    config.hook.pytest_deselected(items=[x for i, x in enumerate(items) if i % shards != shard - 1])
    items[:] = items[shard - 1 :: shards]


def picture(seed: int, width: int = 96, height: int = 72) -> Image.Image:
    """Returns a picture with smooth colours and an edge, as JPEG expects; no two are alike."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 100 * np.sin((x + seed * 7) / (9 + c) + y / (11 + seed % 5)) for c in range(3)]
    pixels = np.stack(waves, axis=-1).clip(0, 255).astype(np.uint8)
    pixels[height // 3 : height // 2, width // 4 : width // 2] = (seed * 37) % 256
    return Image.fromarray(pixels)


def jpeg(image: Image.Image, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", **{"quality": 90, **options})
    return out.getvalue()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image folder: 3 classes, 37 JPEGs of 96 x 72 pixels."""
    return damaged_folder(tmp_path_factory.mktemp("pictures"), 37, [], "class_0 class_1 class_2")


def damaged_folder(root: Path, count: int, bad: Iterable[int], names: str = "cat") -> Path:
    """Makes an image folder of JPEGs, of which some are cut in half. `names`: of the classes."""
    classes = names.split()
    for i in range(count):
        data = jpeg(picture(i))
        folder = root / classes[i % len(classes)]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i:03}.jpg").write_bytes(data[: len(data) // 2] if i in bad else data)
    return root


@pytest.fixture
def source() -> stoker.Source:
    """100 samples of 16 x 16 pixels, labels 0 to 9."""
    return stoker.synthetic(100, size=16, classes=10, seed=3)


def contents(batch: stoker.Batch) -> tuple[Any, ...]:
    """Everything that a loop sees of a batch."""
    arrays = batch.images, batch.labels, batch.weights, batch.ids, *batch.targets.values()
    place = batch.step, batch.epoch, batch.step_in_epoch, batch.valid, *batch.names
    return (*place, *(np.asarray(array).tobytes() for array in arrays))


def epochs_of(loader: Iterable[stoker.Batch], epochs: int = 1) -> list[tuple[Any, ...]]:
    return [contents(batch) for _ in range(epochs) for batch in loader]


class WebServer(http.server.ThreadingHTTPServer):
    """Serves a folder on loopback."""

    daemon_threads = True

    class Handler(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

    def __init__(self, folder: Path, handler: type[Handler] = Handler):
        super().__init__(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
        self.address = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        pass  # who reads the samples may have gone

    @contextlib.contextmanager
    def running(self) -> Iterator[WebServer]:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        yield self
        self.shutdown()
        self.server_close()


def run_program(
    command: Sequence[object],
    timeout: float = 120,
    env: dict[str, str] | None = None,
    text: bool = True,
    **options: Any,
) -> subprocess.CompletedProcess:
    """Runs a program; the time limit ends one that hangs. `env`: default: child_environment()."""
    return subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=text,
        timeout=timeout,
        env=child_environment() if env is None else env,
        check=False,
        **options,
    )


def run_python(
    code: str, timeout: float = 60, flags: Sequence[str] = (), **options: Any
) -> subprocess.CompletedProcess:
    """Runs a program that imports this stoker."""
    return run_program([sys.executable, *flags, "-c", textwrap.dedent(code)], timeout, **options)


def must_run(code: str, timeout: float = 60, **options: Any) -> str:
    """As run_python(); returns what was printed by a program that ended well."""
    done = run_python(code, timeout, **options)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def child_environment() -> dict[str, str]:
    package = Path(stoker.__file__).parent.parent
    return {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
