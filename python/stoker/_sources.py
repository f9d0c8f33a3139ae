"""Makes the sources of samples."""

from __future__ import annotations

import errno
import operator
import os
import warnings
from collections.abc import Callable, Sequence

from stoker import _core
from stoker._choice import SPLITS, choose, height_and_width

LabelFn = Callable[[str, int], int]
_PARTS = ("train", "test", "val", "validation")


def folder(
    path: str | os.PathLike[str], split: str | None = None, label_fn: LabelFn | None = None
) -> _core.Source:
    """An image folder, path/CLASS/**/FILE, like torchvision's ImageFolder: the same samples and
    labels in the same order.

    split: 'train' or 'test' look for a folder of that meaning in `path` (train; test, val,
    validation); 'all' takes both. Needed only where `path` holds such folders.
    label_fn(name, label): see relabel().

    Files that are left out (GIF and other formats that are not read, pictures in no class folder),
    and pictures to which a link gives a second label, are counted and named in Source.notes; each
    of these also raises a UserWarning.

    FileNotFoundError, NotADirectoryError: `path`. ValueError: it holds train and test folders, and
    split does not say which. RuntimeError: there are no class folders or no images in it, or it
    cannot be read.
    """
    return _opened(_core.folder, path, split, label_fn)


def cifar(
    path: str | os.PathLike[str], split: str, label_fn: LabelFn | None = None
) -> _core.Source:
    """CIFAR-10 or CIFAR-100 in their binary layout (data_batch_1.bin ..., train.bin ...), or a
    folder that contains the archive's folder. split: 'train', 'test' or 'all'. Raises what folder()
    raises; also RuntimeError for files that are not complete.
    """
    return _opened(_core.cifar, path, split, label_fn)


def open(  # noqa: A001 - stoker.open, like the C++ open_source
    path: str | os.PathLike[str], split: str | None = None, label_fn: LabelFn | None = None
) -> _core.Source:
    """Opens what is at `path`: CIFAR's binary files or an image folder; see cifar() and
    folder()."""
    return _opened(_core.open, path, split, label_fn)


def synthetic(
    samples: int, size: int | tuple[int, int] = 224, classes: int = 10, seed: int = 0
) -> _core.Source:
    """Synthetic images without a disk: a pattern per class and noise per sample. For tests, and to
    see how fast a trainer is without its data.
    """
    height, width = height_and_width("size", size)
    for field, value in (("samples", samples), ("classes", classes)):
        if not isinstance(value, int) or not 1 <= value < 1 << 31:
            raise ValueError(f"{field} is {value!r}, must be a whole number of at least 1")
    return _core.synthetic(samples, height, width, classes, seed)


def relabel(
    source: _core.Source,
    labels: LabelFn | Sequence[int],
    classes: Sequence[str] | None = None,
) -> _core.Source:
    """Returns the source with other labels: a sequence of one int per sample id, or a function of
    (name, label), called once per sample, here: no Python runs when pixels are read.

    classes: the names by label, if they change, too. ValueError: not as many labels as samples, or
    one that does not fit in 32 bits. TypeError: one that is not an int, 0.9 for example.
    """
    if callable(labels):
        labels = [labels(source.name(i), source.label(i)) for i in range(len(source))]
    names = source.classes if classes is None else classes
    return _core.relabel(source, [_whole(label, i) for i, label in enumerate(labels)], list(names))


def _whole(label: object, sample: int) -> int:
    try:
        whole = operator.index(label)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"the label of sample {sample} is {label!r}, must be an int") from None
    if not -(1 << 31) <= whole < 1 << 31:
        raise ValueError(f"the label of sample {sample} is {whole}, must fit in 32 bits")
    return whole


def _opened(
    opener: Callable[[str, _core.Split], _core.Source],
    path: str | os.PathLike[str],
    split: str | None,
    label_fn: LabelFn | None,
) -> _core.Source:
    chosen = choose("split", "all" if split is None else split, SPLITS)
    name = os.fspath(path)
    if not os.path.exists(name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if not os.path.isdir(name):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
    if split is None:
        _check_one_part(name)
    source = opener(name, chosen)
    for note in source.notes:
        warnings.warn(f"{name}: {note}", stacklevel=3)
    return source if label_fn is None else relabel(source, label_fn)


def _check_one_part(path: str) -> None:
    """ValueError if there are parts: a default must not train on the test images."""
    parts = [part for part in _PARTS if os.path.isdir(os.path.join(path, part))]
    if _core.is_cifar_folder(path):
        parts = ["CIFAR's training and test files"]
    if parts:
        raise ValueError(f"{path} holds {', '.join(parts)}: say split='train', 'test' or 'all'")
