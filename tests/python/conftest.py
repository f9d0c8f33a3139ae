"""Pictures to feed, and programs to run beside the tests."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import stoker


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
    root = tmp_path_factory.mktemp("pictures")
    for i in range(37):
        folder = root / f"class_{i % 3}"
        folder.mkdir(exist_ok=True)
        (folder / f"{i:03}.jpg").write_bytes(jpeg(picture(i)))
    return root


@pytest.fixture
def source() -> stoker.Source:
    """100 samples of 16 x 16 pixels, labels 0 to 9."""
    return stoker.synthetic(100, size=16, classes=10, seed=3)


def run_python(
    code: str, timeout: float = 60, flags: Sequence[str] = (), **options: object
) -> subprocess.CompletedProcess:
    """Runs a program that imports this stoker; the time limit ends a program that hangs."""
    return subprocess.run(
        [sys.executable, *flags, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=child_environment(),
        check=False,
        **options,
    )


def child_environment() -> dict[str, str]:
    package = Path(stoker.__file__).parent.parent
    return {**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
