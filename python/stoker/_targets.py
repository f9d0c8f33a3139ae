"""Targets besides the labels: arrays of numbers, one row per sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import _core
from stoker._recipe import made
from stoker._views import check_source

# Formats of buffers (module struct) that are taken as they are.
_TYPES = {"f4": "float32", "i4": "int32", "i8": "int64", "u1": "uint8"}
_KINDS = {"f": "f", "i": "i", "l": "i", "q": "i", "B": "u", "?": "u"}


def with_targets(source: _core.Source, targets: Mapping[str, Any]) -> _core.Source:
    """The same samples with targets besides their labels: probabilities of all classes, several
    labels at once, boxes, numbers to predict. They travel with the images: batch.targets has them
    on the Loader's device, and source[i].targets those of one sample.

        labels = numpy.load("attributes.npy")              # (len(source), 40) float32
        source = stoker.with_targets(source, {"attributes": labels})

    targets: by name, an array with a row for each sample, in the order of the source, of shape
        (len(source),) or (len(source), ...): of NumPy, a CPU tensor, or another array with a
        buffer; or a sequence of numbers, or of sequences of one length. float32, int32, int64 and
        uint8 stay as they are, float64 is rounded to float32, bool becomes uint8, and other
        integers int64.

    An array that cannot be written to (numpy.load(..., mmap_mode="r"), values.flags.writeable =
    False) is used where it is; others are copied. All values are read once, for the fingerprint: a
    state_dict() belongs to its targets. Several calls add to each other.

    ValueError: another number of rows than samples; rows of different lengths; a name that the
    source has already, or that is empty. TypeError: values of another kind.
    """
    check_source("source", source)
    if not isinstance(targets, Mapping):
        raise TypeError(f"targets is {targets!r}, must be a dict of arrays by name")
    tables = [_table(name, values, len(source)) for name, values in targets.items()]
    return _with_targets(source, tables)


_Table = tuple[str, str, list[int], Any]


def _table(name: object, values: Any, samples: int) -> _Table:
    if not isinstance(name, str):
        raise TypeError(f"the target {name!r} must have a text as its name")
    where = f"targets[{name!r}]"
    kind, shape, kept = _packed(where, values)
    if not shape or shape[0] != samples:
        rows = f"{shape[0]} rows" if shape else "a single number"
        raise ValueError(f"{where} has {rows}, and there are {samples} samples")
    return name, kind, shape[1:], kept


def _packed(where: str, values: Any) -> tuple[str, list[int], Any]:
    """Returns the type, the shape, and the values in one piece, which nobody can change."""
    found = _buffer_of(values)
    if found is None:
        found = _buffer_of(_converted(where, values))
    assert found is not None
    kind, view, owner = found
    shape = list(view.shape or ())
    keeps = view.readonly and view.c_contiguous and view.nbytes > 0
    return kind, shape, owner if keeps else view.tobytes()


def _buffer_of(values: Any) -> tuple[str, memoryview, Any] | None:
    """Returns None for values that must be converted."""
    try:
        view = memoryview(values)
    except (TypeError, ValueError, BufferError):
        return None
    kind = _TYPES.get(f"{_KINDS.get(view.format, '')}{view.itemsize}")
    if kind is None or isinstance(values, (bytes, bytearray)):
        return None
    return kind, view, values


def _converted(where: str, values: Any) -> Any:
    """Returns an array of NumPy of one of the types of targets."""
    try:
        import numpy as np
    except ImportError:
        raise TypeError(
            f"{where} is {type(values).__name__}: without NumPy it must be an array with a buffer "
            "of float32, int32, int64 or uint8"
        ) from None
    try:
        numbers = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{where} is no array of numbers: {error}") from None
    kind = numbers.dtype.kind
    if kind == "f":
        return numbers.astype("=f4")
    if kind == "b":
        return numbers.astype("u1")
    if kind == "i" or (kind == "u" and (numbers.itemsize < 8 or numbers.max(initial=0) < 1 << 63)):
        same = numbers.dtype.newbyteorder("=") in (np.int32, np.uint8)
        return numbers.astype(numbers.dtype.newbyteorder("=") if same else "=i8")
    raise TypeError(
        f"{where} has numbers of the type {numbers.dtype}, must be float32, float64, bool or "
        "integers of up to 63 bits; rows must have one length"
    )


# This function makes a source from what a pickle of it holds.


def _with_targets(source: _core.Source, tables: list[_Table]) -> _core.Source:
    return made(_core.with_targets(source, tables), _with_targets, lambda _: (source, tables))
