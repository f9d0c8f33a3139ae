"""The stages as functions, each made from the library's table when it is first asked for: all of
them would take a fifth of the time of `import stoker`. The build writes their types and texts to
_stages.pyi, for type checkers and editors.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from stoker import _core
from stoker._augment import Augment, stage

_TABLE = {each[0]: each for each in _core.stage_table()}
__all__ = list(_TABLE)


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
    functions = (_declaration(*each) for each in _TABLE.values())
    with open(path, "w", encoding="utf-8") as file:
        file.write(imports + "\n".join([names, *functions]))


def __getattr__(name: str) -> object:
    if name not in _TABLE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    exec(_definition(*_TABLE[name]), globals())
    return globals()[name]
