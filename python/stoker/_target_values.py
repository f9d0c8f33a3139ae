"""Numbers of programs, for targets: arrays, tensors and sequences as bytes of the types that
targets may have. It imports nothing of the package, because worker processes run it alone.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

# Formats of buffers (module struct) that are taken as they are.
_TYPES = {"f4": "float32", "i4": "int32", "i8": "int64", "u1": "uint8"}
_KINDS = {"f": "f", "i": "i", "l": "i", "q": "i", "B": "u", "?": "u"}
_KNOWN = "float32, float64, bool or integers of up to 63 bits"
# The types of targets, and their codes in array.array.
TYPES = {"float32": "f", "int32": "i", "int64": "q", "uint8": "B"}


_SIZE = struct.Struct("=Q")
# They say that samples have lists of different lengths, behind a name.
_LISTS = {f":{kind}[]": kind for kind in TYPES}


class Column(NamedTuple):
    """A target besides the label: `shape` is that of one sample; None: it varies."""

    name: str
    type: str
    shape: tuple[int, ...] | None


def packed_row(columns: list[Column], values: Any) -> bytes:
    """Returns the values of one sample, column after column. They come as a dict by name or, of a
    single column, alone. TypeError, ValueError: what does not fit, by its name.
    """
    if not isinstance(values, Mapping):
        if len(columns) != 1:
            names = ", ".join(repr(column.name) for column in columns)
            raise TypeError(
                f"gives targets of type {type(values).__name__}, must be a dict of {names}"
            )
        values = {columns[0].name: values}
    if values.keys() != {column.name for column in columns}:
        there = ", ".join(map(repr, values)) or "none"
        names = ", ".join(repr(column.name) for column in columns)
        raise ValueError(f"gives the targets {there}, must be {names}")
    fixed = [column for column in columns if column.shape is not None]
    row = b"".join(_of_column(column, values[column.name]) for column in fixed)
    if len(fixed) == len(columns):
        return row
    block = b""
    for column in columns:
        if column.shape is None:
            where = f"gives the target {column.name!r}, which"
            piece = piece_of(column.type)(where, column.type, values[column.name])
            block += _SIZE.pack(len(piece)) + piece
    # core/dataset_source.h says why twice.
    return _SIZE.pack(len(block)) + block + _SIZE.pack(len(block)) + row


def _of_column(column: Column, values: Any) -> bytes:
    where = f"gives the target {column.name!r}: it"
    kind, shape, numbers = packed(where, values)
    if tuple(shape) != column.shape:
        raise ValueError(f"{where} has the shape {tuple(shape)}, must be {column.shape}")
    data = memoryview(numbers).tobytes()
    if kind == column.type:
        return data
    given = array(TYPES[kind], data)
    if kind == "float32":
        raise TypeError(f"{where} has fractions (float32), must be {column.type}")
    try:
        return array(TYPES[column.type], given).tobytes()
    except OverflowError:
        raise ValueError(
            f"{where} has numbers from {min(given)} to {max(given)}, which are no {column.type}"
        ) from None


def packed(where: str, values: Any) -> tuple[str, list[int], Any]:
    """Returns the type, the shape, and the values in one piece, which nobody can change."""
    if hasattr(values, "filled") and values.count() < values.size:
        raise ValueError(f"{where} has gaps (a masked array): fill them before, by filled()")
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


def name_and_kind(name: str, values: Any) -> tuple[str, str | None]:
    """Returns the name without what says that samples have different numbers of values, and their
    type: 'text', or that of the numbers; None: they have one shape.
    """
    for suffix, kind in _LISTS.items():
        if name.endswith(suffix):
            return name[: -len(suffix)], kind
    if name.endswith(":text"):
        return name[: -len(":text")], "text"
    return name, "text" if _is_of_texts(values) else None


def _is_of_texts(values: Any) -> bool:
    """The first value that is there decides."""
    if not isinstance(values, (list, tuple)):
        return False
    for value in values:
        first = value
        if isinstance(value, (list, tuple)):
            first = value[0] if value else None
        if first is not None:
            return isinstance(first, str)
    return False


def pieces(where: str, kind: str, values: Any) -> tuple[bytes, bytes]:
    """Returns the values of all samples, and where each sample's end, as int64. TypeError,
    ValueError: a value, with its place.
    """
    packed_values = bytearray()
    ends = array("q")
    piece = piece_of(kind)
    for place, value in enumerate(values):
        packed_values += piece(f"{where}[{place}]", kind, value)
        ends.append(len(packed_values))
    return bytes(packed_values), ends.tobytes()


def piece_of(kind: str) -> Callable[[str, str, Any], bytes]:
    """Returns what makes bytes of one sample's values of this type."""
    return _piece_of_texts if kind == "text" else _piece_of_numbers


def _piece_of_texts(where: str, _: str, value: Any) -> bytes:
    """None has no text: it is a bad sample."""
    texts = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{where} is {value!r}, must be a text, a list of texts, or None")
    if any("\0" in text for text in texts):
        raise ValueError(f"{where} is {value!r}, which has a NUL")
    return b"".join(text.encode() + b"\0" for text in texts)


def _piece_of_numbers(where: str, kind: str, value: Any) -> bytes:
    numbers = value.tolist() if hasattr(value, "tolist") else value
    try:
        return array(TYPES[kind], numbers).tobytes()
    except (TypeError, OverflowError) as error:
        raise TypeError(f"{where} is {value!r}, must be a list of {kind}: {error}") from None


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
