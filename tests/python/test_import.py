"""Counts what `import stoker` brings along: it is counted, because time depends on the machine."""

from __future__ import annotations

import sys
from pathlib import Path

import stoker
from conftest import must_run, run_python

# Each of these takes milliseconds, and is imported where it is needed.
SLOW = set(
    "asyncio concurrent.futures ctypes email http importlib.metadata importlib.resources logging "
    "multiprocessing pathlib secrets selectors socket sqlite3 ssl subprocess tempfile unittest "
    "urllib.request xml zipfile".split()
)


def imported(statement: str) -> list[str]:
    """Returns the modules that `statement` imports in a fresh interpreter."""
    before = f"import sys\nbefore = set(sys.modules)\n{statement}\n"
    return must_run(before + "print(*sorted(set(sys.modules) - before))").split()


def test_import_brings_nothing_but_the_standard_library():
    own = {"stoker"}
    roots = {name.partition(".")[0] for name in imported("import stoker")}
    assert roots - own - set(sys.stdlib_module_names) <= {"__mp_main__", "nanobind"}


def test_dir_is_what_is_public():
    names = set(dir(stoker))
    adapters = {"jax", "keras", "losses", "ray", "torch"}  # once they are imported
    assert {name for name in names if name[0] != "_"} - adapters == set(stoker.__all__)
    assert all(hasattr(stoker, name) for name in names)


def test_import_leaves_slow_modules_out():
    modules = set(imported("import stoker"))
    assert "stoker._core" in modules
    assert not SLOW & modules


def test_import_stays_small():
    """A number to look at when it grows: 85 with Python 3.12."""
    standard = [name for name in imported("import stoker") if not name.startswith("stoker")]
    assert len(standard) <= 110, standard


def test_version_is_the_library_s():
    assert stoker.__version__ == stoker._core.VERSION
    assert stoker.__version__.count(".") == 2


def test_a_package_without_the_program_says_how_to_get_it(tmp_path):
    """As in a build tree, and after `pip install .`; in a wheel the program answers."""
    copied = tmp_path / "stoker" / "__main__.py"
    copied.parent.mkdir()
    copied.write_bytes((Path(stoker.__file__).parent / "__main__.py").read_bytes())
    code = f"import runpy; runpy.run_path({str(copied)!r}, run_name='__main__')"
    result = run_python(code)
    assert result.returncode == 1 and "STOKER_PROGRAM=ON" in result.stderr
    copied.with_name("stoker").write_text("#!/bin/sh\necho \"$1\"; exit 42\n")
    copied.with_name("stoker").chmod(0o755)
    result = run_python(f"import sys; sys.argv[1:] = ['word']; {code}")
    assert result.returncode == 42 and result.stdout == "word\n"
