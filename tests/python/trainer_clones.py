"""Clones of other people's trainers, which CI has not: folders of $STOKER_TRAINERS."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from coco_files import EXAMPLES
from conftest import run_program


@contextmanager
def adapted_clone(name: str, folder: Path) -> Iterator[Path]:
    """Skips a test without the clone. Else its modules can be imported within, from a copy that
    python/examples/adapt has changed."""
    clone = Path(os.environ.get("STOKER_TRAINERS", os.devnull)) / name
    if not clone.is_dir():
        pytest.skip(f"there is no clone {clone}")
    copy = shutil.copytree(clone, folder / name, ignore=shutil.ignore_patterns(".git"))
    done = run_program([sys.executable, EXAMPLES / "adapt", copy])
    assert done.returncode == 0, done.stderr
    own = {path.stem for path in copy.iterdir()}  # its names, which other packages may have, too
    hidden = taken_out(own)
    sys.path.insert(0, str(copy))
    try:
        yield copy
    finally:
        sys.path.remove(str(copy))
        taken_out(own)
        sys.modules.update(hidden)


def taken_out(names: set[str]) -> dict[str, object]:
    there = [each for each in sys.modules if each.split(".")[0] in names]
    return {each: sys.modules.pop(each) for each in there}
