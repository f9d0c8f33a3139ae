"""Messages name Python's arguments, never options of the program: each one that names any, and all
texts of the library and the package.
"""

from __future__ import annotations

import ast
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import stoker
from conftest import jpeg, picture
from shard_files import tar_file

ROOT = Path(__file__).parents[2]
LIBRARY = ("decode", "staging", "pipeline", "python/core", "tools/emulate/accelerator.cc")
# A command of any program in backquotes may have that program's options.
COMMAND = re.compile(r"`[a-z]+ [^`]*`")
PICTURE = jpeg(picture(1))


def without_commands(text: str) -> str:
    return COMMAND.sub("", text)


def cpp_texts(code: str) -> Iterator[str]:
    """Literals of C++; those that follow each other are one."""
    skipped = r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])'|#include[^\n]*"
    literals = r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*'
    for found in re.finditer(f"{skipped}|({literals})", code, re.DOTALL):
        if found[1]:
            yield re.sub(r'"\s*"', "", found[1])


def python_texts(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def all_texts() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "python/stoker").glob("*.py")):
        if path.name in ("__main__.py", "_doctor.py"):  # which are programs
            continue
        yield from ((path.name, text) for text in python_texts(path.read_text()))
    for place in LIBRARY:
        paths = sorted((ROOT / place).rglob("*")) or [ROOT / place]
        for path in paths:
            if path.suffix in (".cc", ".h"):
                yield from ((path.name, text) for text in cpp_texts(path.read_text()))


def test_no_text_names_an_option_of_the_program():
    tools = [path.read_text() for path in sorted((ROOT / "tools").rglob("*.cc"))]
    options = {name for code in tools for name in re.findall(r'"--([a-z]+(?:-[a-z]+)+)"', code)}
    assert {"label-from", "ring-depth", "max-bad"} <= options
    names = re.compile(rf"--[a-z]|(?<![\w-])(?:{'|'.join(sorted(options))})(?![\w.-])")
    texts = list(all_texts())
    assert any("`label_from`" in text for _, text in texts)
    assert [each for each in texts if names.search(without_commands(each[1]))] == []


def tar(folder: Path, *members: tuple[str, bytes]) -> Path:
    tar_file(folder / "a.tar", list(members))
    return folder / "a.tar"


def sparse(folder: Path) -> Path:
    with tarfile.open(folder / "a.tar", "w", format=tarfile.GNU_FORMAT) as shard:
        member = tarfile.TarInfo("1.jpg")
        member.type = tarfile.GNUTYPE_SPARSE
        shard.addfile(member)
    return folder / "a.tar"


def csv(folder: Path, text: str) -> Path:
    (folder / "a.csv").write_text(text)
    return folder / "a.csv"


def photos(folder: Path) -> stoker.Source:
    (folder / "cat").mkdir()
    (folder / "cat" / "1.jpg").write_bytes(PICTURE)
    (folder / "cat" / "2.jpg").write_bytes(jpeg(picture(2, 60, 80)))
    return stoker.folder(folder)


def load(folder: Path, **options: object) -> None:
    stoker.Loader(photos(folder), **{"batch_size": 1, "seed": 1, "size": 32, **options})


REFUSED = [
    (
        lambda at: stoker.tar(tar(at, ("1.jpg", PICTURE), ("1.txt", b"a cat"))),
        "what the label is with `label_from`: cls, txt, json:FIELD, folder or none",
    ),
    (
        lambda at: stoker.tar(tar(at, ("1.jpg", PICTURE)), label_from="colour"),
        "'colour': `label_from` takes cls, txt, json:FIELD, folder or none",
    ),
    (
        lambda at: stoker.tar(tar(at, ("1.raw", PICTURE), ("1.cls", b"1"))),
        "which is the image with `image_from`, an extension",
    ),
    (
        lambda at: stoker.tar(tar(at, ("1.jpg", PICTURE), ("1.png", PICTURE), ("1.cls", b"1"))),
        "two images of one key: say which with `image_from`",
    ),
    (lambda at: stoker.tar(sparse(at)), "make the tar without `tar --sparse`"),
    (
        lambda at: stoker.csv(csv(at, "where,kind\n1,2\n"), label_from="kind"),
        "the path is with `image_from`",
    ),
    (
        lambda at: stoker.csv(csv(at, "path,kind\n1,2\n")),
        "the label is with `label_from`, or none",
    ),
    (lambda at: stoker.csv(csv(at, "1.jpg\n")), "`label_from` none takes a list without labels"),
    (
        lambda at: stoker.csv(csv(at, "path,label\n1.jpg,-1\n")),
        "for data without labels, `label_from` none",
    ),
    (
        lambda at: (photos(at), stoker.open(at, label_from="cls")),
        'label_from is "cls", and .* has no such choice',
    ),
    (lambda at: stoker.open(csv(at, "path,label\n1.jpg,1\n"), targets_from=[""]), "targets_from"),
    (
        lambda at: load(at, augment="random_resized_crop", cache=stoker.DecodedCache(10**6)),
        r"^cache cannot keep .*\(stoker.Store\(cache=\)\) does it for data in a store",
    ),
    (lambda at: load(at, max_pixels=0), "^max_pixels is 0"),
    (lambda at: load(at, share="a", share_steps=0), "^share_steps is 0"),
    (lambda at: load(at, share="a", share_steps="many"), "^share_steps is 'many'"),
    (lambda at: load(at, share="a", share_wait=-1), "^share_wait is -1"),
    (
        lambda at: load(at, share="a", share_steps=65536, batch_size=1 << 12, size=224),
        "steps would fit .*`docker run --shm-size`",
    ),
    (lambda at: load(at, rank=2, world=2), "^rank is 2 of a world of 2"),
    (lambda at: load(at, leases=9, ring_depth=3), "^leases is 9, must be 1 to 3"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_errors_name_arguments(call, words, tmp_path):
    with pytest.raises((ValueError, RuntimeError), match=words) as caught:
        call(tmp_path)
    assert "--" not in without_commands(str(caught.value))
