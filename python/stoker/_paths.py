"""The paths that sources are opened at: what is there, and what is wrong with them."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from stoker import _core
from stoker._arguments import SPLITS
from stoker._store import is_address

_PARTS = ("train", "test", "val", "validation")
# The words for the files of each function that opens shards or lists.
_WORDS = _core.blob_words()


def absolute(path: str | list[str]) -> Any:
    """Returns what will be there from another current folder, too. Nothing is normalised: with
    links, "a/.." may be another folder than ".".
    """
    if isinstance(path, list):
        return [absolute(each) for each in path]
    if is_address(path):
        return path
    here = os.getcwd()
    if _is_pattern(path) and not os.path.exists(path):
        here = glob.escape(here)
    return os.path.join(here, path)


def _is_pattern(path: str) -> bool:
    return any(letter in path for letter in "*?[{")


def raise_missing(path: str) -> NoReturn:
    code = errno.ENOTDIR if os.path.exists(path) else errno.ENOENT
    raise OSError(code, os.strerror(code), path)  # of the class that stands for the code


def check_path(kind: str, path: str) -> None:
    if is_address(path):
        return  # a look at it would cost a request, and opening it says what is wrong
    if kind in ("folder", "cifar"):
        there = os.path.isdir(path)
    else:
        there = os.path.exists(path) or _is_pattern(path)
    if not there:
        raise_missing(path)


def check_files(paths: list[str], split: str | None) -> str:
    """Returns what to call them in a message."""
    if split is not None:
        raise ValueError(f"split is {split!r}, and files that are given one by one have no parts")
    if not paths:
        raise ValueError("paths is empty, must have a file at least")
    for path in paths:
        if not is_address(path) and not os.path.exists(path):
            raise_missing(path)
    first = _core.shown_path(paths[0])
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} more files"


def check_one_part(kind: str, path: str, store: _core.StoreOptions) -> None:
    """ValueError if there are parts: a default must not train on the test images."""
    if is_address(path):
        if kind != "cifar" and _core.has_parts(path, store):
            raise ValueError(
                f"{_core.shown_path(path)} holds several parts: say split='train', 'test' or 'all'"
            )
        return
    parts = [part for part in _PARTS if os.path.isdir(os.path.join(path, part))]
    if os.path.isdir(path) and _core.is_cifar_folder(path):
        parts = ["CIFAR's training and test files"]
    if not parts and kind not in ("folder", "cifar"):
        with _names_of(path):
            if _core.has_blob_parts(path, store):
                parts = ["files of training and test parts"]
    if parts:
        raise ValueError(f"{path} holds {', '.join(parts)}: say split='train', 'test' or 'all'")


@contextlib.contextmanager
def _names_of(path: str | list[str]) -> Iterator[None]:
    """Whatever is wrong with the names of files, before any is opened, is about an argument."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(path, str) and os.path.isdir(path):
            raise
        missing = re.search(": no (such file|file is named like that)", str(error))
        if missing:
            raise FileNotFoundError(
                errno.ENOENT, os.strerror(errno.ENOENT), str(error)[: missing.start()]
            ) from None
        if is_address(path if isinstance(path, str) else path[0]):
            raise  # a plugin that is not there, for example
        raise ValueError(str(error)) from None


def find_blobs(
    kind: str, path: str | list[str], split: str, store: _core.StoreOptions
) -> _core.BlobSet:
    with _names_of(path):
        blobs: _core.BlobSet | None
        if isinstance(path, list):
            blobs = _core.blob_set_of(path, store)
        else:
            blobs = _core.find_blobs(path, SPLITS[split], store)
    if blobs is not None and kind in ("open", blobs.function):
        return blobs
    wanted = _WORDS[kind]
    where = path if isinstance(path, str) else path[0]
    if blobs is None:
        raise ValueError(f"{_core.shown_path(where)} holds no {wanted}: {_contents(where)}")
    held = f"{_WORDS[blobs.function]} (as {blobs.first})"
    raise ValueError(
        f"{_core.shown_path(where)} holds {held}, no {wanted}: open it by stoker.{blobs.function}()"
    )


def _contents(folder: str) -> str:
    if is_address(folder):
        return "it holds folders or other objects"
    if _core.is_cifar_folder(folder):
        return "it holds CIFAR's binary files: open it by stoker.cifar()"
    names = sorted(os.listdir(folder))
    if not names:
        return "it is empty"
    return f"it has {len(names)} entries, as {', '.join(names[:3])}"
