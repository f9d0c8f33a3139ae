"""The stages as functions, made from the library's table. The build writes their types and texts to
_stages.pyi, for type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from stoker import _core
from stoker._augment import Augment, stage

__all__ = [name for name, _, _ in _core.stage_table()]


def _declaration(name: str, documentation: str, parameters: list[str]) -> str:
    text = documentation.replace("\n", "\n    ").replace("\n    \n", "\n\n")
    end = "\n    " if "\n" in text else ""
    return f'def {name}({", ".join(parameters)}) -> Augment:\n    """{text}{end}"""\n'


def _definition(name: str, documentation: str, parameters: list[str]) -> str:
    names = [parameter.split(":")[0] for parameter in parameters]
    lists = [each for each, parameter in zip(names, parameters) if parameter.endswith(": Augment")]
    given = [repr(name), *lists, *(f"{each}={each}" for each in names if each not in lists)]
    return _declaration(name, documentation, parameters) + f"    return stage({', '.join(given)})\n"


def write_stub(path: str) -> None:
    """Writes what the build installs beside this file."""
    imports = "from collections.abc import Sequence\nfrom os import PathLike\n\n"
    names = f"from stoker._augment import Augment\n\n__all__ = {__all__}\n"
    functions = (_declaration(*each) for each in _core.stage_table())
    Path(path).write_text(imports + "\n".join([names, *functions]))


for _each in _core.stage_table():
    exec(_definition(*_each))
