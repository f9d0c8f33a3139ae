"""Finds the images of a datasets.Dataset in the memory that the library `datasets` keeps them in.

The layout is Arrow's (arrow.apache.org/docs/format/Columnar.html, "Variable-size Binary Layout",
"Struct Layout"). Nothing here imports pyarrow: the data set brings its objects.
"""

from __future__ import annotations

import os
from array import array
from typing import Any, Literal, NamedTuple, TypeVar

from stoker import _core
from stoker._arguments import numbered
from stoker._target_values import name_and_kind

_Item = TypeVar("_Item")
_IMAGE_NAMES = ("image", "img", "jpg", "jpeg", "png", "webp", "picture", "pixels")
_LABEL_NAMES = ("label", "labels", "class", "fine_label", "cls")

# Entries of with_annotations(), and the fields of an object that may have them: the first counts.
# In the records of shards they have the same names (pipeline/source/format/object_entry.cc).
_OBJECT_FIELDS = {
    "boxes": ("bbox", "boxes"),
    "labels": ("category", "label", "labels", "category_id", "categories"),
    "ids": ("id", "ids", "bbox_id"),
    "area": ("area",),
    "iscrowd": ("iscrowd", "is_crowd"),
}


class _Places(NamedTuple):
    """Where images are: at an address, or else in a file; (0, 0, "") is nowhere."""

    addresses: list[int]
    lengths: list[int]
    paths: list[str]


def open_dataset(
    dataset: Any, image_from: str | None, label_from: str | None, root: str
) -> _core.Source:
    """`root`: what paths in the data set are relative to. See stoker.huggingface()."""
    _check(dataset)
    column = dataset.data.column(_image_column(dataset, image_from))
    pieces = [_places(chunk) for chunk in column.chunks]
    places = _Places(
        [address for piece in pieces for address in piece.addresses],
        [length for piece in pieces for length in piece.lengths],
        [path for piece in pieces for path in piece.paths],
    )
    rows = _rows(dataset)
    if rows is not None:
        places = _Places(
            [places.addresses[row] for row in rows],
            [places.lengths[row] for row in rows],
            [places.paths[row] for row in rows],
        )
    if 0 in places.addresses:
        _check_paths(places)
    labels, classes = _labels(dataset, label_from, len(places.addresses))
    paths = [os.fsencode(path) for path in places.paths] if any(places.paths) else []
    return _core.list_addresses(
        places.addresses, places.lengths, paths, column, labels, classes, root
    )


def values_of(dataset: Any, name: str) -> Any:
    """Returns a column as with_targets() takes it: an array of NumPy, or of what has no one shape a
    list. ValueError: there is none of this name.
    """
    plain, kind = name_and_kind(name, ())
    _existing(dataset, "targets_from has", plain)
    column = dataset.data.column(plain)
    if kind is not None or "string" in str(column.type):
        return _in_order(dataset, column).to_pylist()
    return dataset.select_columns([plain]).with_format("numpy")[:][plain]


def objects_of(dataset: Any, name: str) -> tuple[list[Any], list[str]]:
    """Returns the objects of each sample, as with_annotations() takes them, and the names of their
    classes. ValueError: there is no such column, or it has no boxes or labels.
    """
    feature = dataset.features[_existing(dataset, "objects_from is", name)]
    fields = feature if isinstance(feature, dict) else getattr(feature, "feature", None)
    if not isinstance(fields, dict):
        raise ValueError(f"column {name!r} is of type {feature}, must be objects with fields")
    chosen = {
        entry: next((each for each in known if each in fields), None)
        for entry, known in _OBJECT_FIELDS.items()
    }
    for entry in ("boxes", "labels"):
        if chosen[entry] is None:
            known = ", ".join(_OBJECT_FIELDS[entry])
            raise ValueError(
                f"column {name!r} has the fields {', '.join(fields)}, must have one of {known}"
            )
    present = {entry: field for entry, field in chosen.items() if field is not None}
    column = _in_order(dataset, dataset.data.column(name))
    labels = fields[present["labels"]]
    names = getattr(getattr(labels, "feature", labels), "names", None)
    rows = [_objects(each, present) for each in column.to_pylist()]
    for row, number in zip(rows, _picture_numbers(dataset)):  # of none or of all
        if isinstance(row, dict):
            row["image_id"] = number
    return rows, list(names or ())


def _picture_numbers(dataset: Any) -> list[Any]:
    """Returns the column image_id; [] if there is none, or it has no integers."""
    if "image_id" not in dataset.features:
        return []
    column = dataset.data.column("image_id")
    is_whole = str(column.type).startswith(("int", "uint"))
    return list(_in_order(dataset, column).to_pylist()) if is_whole else []


def check_column(dataset: Any, which: str, name: str) -> None:
    """ValueError: there is none of this name."""
    _check(dataset)
    _existing(dataset, which, name)


def _objects(value: Any, fields: dict[str, str]) -> Any:
    """`value`: lists by field, or a list of objects. Returns what is neither as it is."""
    if isinstance(value, dict):
        return {entry: value[field] for entry, field in fields.items()}
    if isinstance(value, list) and None not in value:
        return {entry: [each[field] for each in value] for entry, field in fields.items()}
    return value


def _in_order(dataset: Any, column: Any) -> Any:
    """Returns a column of the table in the order of the samples."""
    indices = dataset._indices
    return column if indices is None else column.take(indices.column(0))


def _check(dataset: Any) -> None:
    kinds = {kind.__name__ for kind in type(dataset).__mro__}
    if "IterableDataset" in kinds:
        raise TypeError(
            "dataset is an IterableDataset, whose images are in no memory and have no order to "
            "shuffle; load it without streaming=True, or give its files to stoker.parquet()"
        )
    if kinds & {"DatasetDict", "IterableDatasetDict"}:
        parts = ", ".join(f"dataset[{part!r}]" for part in dataset)
        raise TypeError(f"dataset is a DatasetDict; give one of its parts: {parts}")
    if not all(hasattr(dataset, each) for each in ("data", "features", "_indices")):
        raise TypeError(f"dataset is of {type(dataset)}, must be a datasets.Dataset")


def _rows(dataset: Any) -> list[int] | None:
    """Returns the row of the table for each sample, after shuffle(), select() and filter(); None if
    that is every row in its order.
    """
    indices = dataset._indices
    return None if indices is None else indices.column(0).to_pylist()


def _image_column(dataset: Any, wanted: str | None) -> str:
    features: dict[str, Any] = dataset.features
    if wanted is not None:
        return _existing(dataset, "image_from is", wanted)
    images = [name for name in features if type(features[name]).__name__ == "Image"]
    known = [name for name in _IMAGE_NAMES if name in images]
    if known:
        return known[0]
    if len(images) == 1:
        return images[0]
    problem = "no column is" if not images else f"{len(images)} columns are"
    raise ValueError(
        f"{problem} of type Image, so image_from must say which to take; {_columns(dataset)}"
    )


def _label_column(dataset: Any, wanted: str | None) -> str:
    features: dict[str, Any] = dataset.features
    if wanted is not None:
        return _existing(dataset, "label_from is", wanted)
    classes = [name for name in features if type(features[name]).__name__ == "ClassLabel"]
    known = [name for name in _LABEL_NAMES if name in features]
    if known:
        return known[0]
    if len(classes) == 1:
        return classes[0]
    raise ValueError(
        "label_from must say which column has the labels, or 'none' for no labels; "
        + _columns(dataset)
    )


def _existing(dataset: Any, which: str, name: str) -> str:
    """Returns the name of a column that a caller chose. ValueError: there is none."""
    if name not in dataset.features:
        raise ValueError(f"{which} {name!r}; {_columns(dataset)}")
    return name


def _columns(dataset: Any) -> str:
    types = [f"{name} ({type(kind).__name__})" for name, kind in dataset.features.items()]
    return f"the columns are {', '.join(types)}"


def _labels(dataset: Any, label_from: str | None, samples: int) -> tuple[list[int], list[str]]:
    if label_from == "none":
        return [0] * samples, []
    name = _label_column(dataset, label_from)
    column = dataset.data.column(name)
    kind = str(column.type)
    if not kind.startswith(("int", "uint")) and kind not in ("string", "large_string"):
        raise ValueError(f"column {name!r} is of type {kind}, must be integers or text for labels")
    labels = _in_order(dataset, column).to_pylist()
    if None in labels:
        raise ValueError(f"row {labels.index(None)}: its label, in column {name!r}, is null")
    return numbered(labels, getattr(dataset.features[name], "names", None))


def _check_paths(places: _Places) -> None:
    for row, (address, path) in enumerate(zip(places.addresses, places.paths)):
        if address == 0 and not path:
            raise ValueError(f"row {row}: its image is null: it has neither bytes nor a path")
        if "://" in path:
            raise ValueError(
                f"row {row}: its image is at {path}, which is no file of this computer; download "
                "the data set without streaming"
            )


def _places(chunk: Any) -> _Places:
    """Returns the places of the images of an array of the column."""
    try:
        chunk.validate(full=True)  # nobody looked at the offsets in a file that is mapped
    except ValueError as error:
        raise ValueError(f"the column of images is damaged: {error}") from None
    if str(chunk.type) in ("binary", "large_binary"):
        return _Places(*_values(chunk), [""] * len(chunk))
    names = [chunk.type.field(i).name for i in range(getattr(chunk.type, "num_fields", 0))]
    if "bytes" not in names:
        raise ValueError(
            f"the column of images is of type {chunk.type}, must be binary, or a struct with "
            "`bytes`"
        )
    addresses, lengths = _values(chunk.field(names.index("bytes")))
    if chunk.null_count:
        addresses = _where_valid(chunk, addresses, 0)
    paths = [""] * len(addresses)
    if 0 in addresses and "path" in names:
        known = chunk.field(names.index("path")).to_pylist()
        paths = ["" if address else path or "" for address, path in zip(addresses, known)]
        if chunk.null_count:
            paths = _where_valid(chunk, paths, "")
    return _Places(addresses, lengths, paths)


def _where_valid(values: Any, of_each: list[_Item], otherwise: _Item) -> list[_Item]:
    """Replaces what belongs to nulls."""
    valid = values.is_valid().to_pylist()
    return [item if is_valid else otherwise for item, is_valid in zip(of_each, valid)]


def _values(values: Any) -> tuple[list[int], list[int]]:
    """Returns address and length of each value of a binary array; address 0 for null."""
    code: Literal["q", "i"] = "q" if str(values.type) == "large_binary" else "i"
    if str(values.type) not in ("binary", "large_binary"):
        raise ValueError(f"the `bytes` of images are of type {values.type}, must be binary")
    _, offsets, data = values.buffers()
    if len(values) == 0:
        return [], []
    width = array(code).itemsize
    begins = memoryview(offsets)[values.offset * width :][: (len(values) + 1) * width].cast(code)
    lengths = [end - begin for begin, end in zip(begins, begins[1:])]
    base = data.address
    addresses = [base + begin for begin in begins[:-1]]
    if values.null_count:
        addresses = _where_valid(values, addresses, 0)
    return addresses, lengths
