"""Targets besides the labels: arrays of numbers, one row per sample."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from stoker import _core
from stoker._recipe import made
from stoker._views import check_source

# Formats of buffers (module struct) that are taken as they are.
_TYPES = {"f4": "float32", "i4": "int32", "i8": "int64", "u1": "uint8"}
_KINDS = {"f": "f", "i": "i", "l": "i", "q": "i", "B": "u", "?": "u"}
_KNOWN = "float32, float64, bool or integers of up to 63 bits"


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
        values = values.__array__() if hasattr(values, "__array__") else values  # a tensor
        if not hasattr(values, "astype"):
            return _of_sequence(where, values)
        found = _buffer_of(_as_known_type(where, values))
    assert found is not None
    kind, view, owner = found
    keeps = view.readonly and view.c_contiguous and view.nbytes > 0
    return kind, list(view.shape or ()), owner if keeps else view.tobytes()


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


def _as_known_type(where: str, values: Any) -> Any:
    """REQUIRES: an array of NumPy, or one that has its dtype, astype() and shape."""
    kind, size = values.dtype.kind, values.dtype.itemsize
    if kind == "f":
        return values.astype("f4")
    if kind == "b":
        return values.astype("u1")
    if kind == "i" or (kind == "u" and (size < 8 or (values >> 63 == 0).all())):
        return values.astype("i4" if kind == "i" and size == 4 else "i8")
    raise TypeError(f"{where} has numbers of the type {values.dtype}, must be {_KNOWN}")


def _of_sequence(where: str, values: Any) -> tuple[str, list[int], bytes]:
    shape: list[int] = []
    numbers = [values.tolist() if hasattr(values, "tolist") else values]
    while numbers and all(isinstance(each, (list, tuple)) for each in numbers):
        lengths = {len(each) for each in numbers}
        if len(lengths) > 1:
            raise ValueError(f"{where} has rows of {min(lengths)} and of {max(lengths)} numbers")
        shape.append(lengths.pop())
        numbers = [number for each in numbers for number in each]
    try:
        if all(isinstance(number, bool) for number in numbers):
            return "uint8", shape, bytes(numbers)
        if all(hasattr(number, "__index__") for number in numbers):
            return "int64", shape, array("q", numbers).tobytes()
        return "float32", shape, array("f", numbers).tobytes()
    except (TypeError, OverflowError) as error:
        raise TypeError(f"{where} must have {_KNOWN}: {error}") from None


# This function makes a source from what a pickle of it holds.


def _with_targets(source: _core.Source, tables: list[_Table]) -> _core.Source:
    return made(
        _core.with_targets(source, tables),
        _with_targets,
        lambda _: (source, tables),
        shows=(source,),
    )
