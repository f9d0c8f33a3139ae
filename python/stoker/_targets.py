"""Targets besides the labels: arrays of numbers, one row per sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker import _core
from stoker._recipe import made
from stoker._target_values import name_and_kind, packed, pieces
from stoker._views import check_source


def with_targets(source: _core.Source, targets: Mapping[str, Any]) -> _core.Source:
    """The same samples with targets besides their labels: probabilities of all classes, several
    labels at once, numbers to predict. They travel with the images: batch.targets has them on the
    Loader's device, and source[i].targets those of one sample. They stay as they are: boxes,
    keypoints and masks that shall move with the pixels are annotations (with_annotations()), and a
    Loader warns where a target is named so.

        labels = numpy.load("attributes.npy")              # (len(source), 40) float32
        source = stoker.with_targets(source, {"attributes": labels})

    targets: by name, an array with a row for each sample, in the order of the source, of shape
        (len(source),) or (len(source), ...): of NumPy, a CPU tensor, or another array with a
        buffer; or a sequence of numbers, or of sequences of one length. float32, int32, int64 and
        uint8 stay as they are, float64 is rounded to float32, bool becomes uint8, and other
        integers int64.

    Texts are a sequence of str, or of lists of them, for which Loader(texts=) says what a row has;
    None, or an empty list, is a bad sample. Lists of numbers that have different lengths have their
    type behind the name: {"tokens:int32[]": [[1, 2], [3]]} makes a target "tokens".

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
    plain, varying = name_and_kind(name, values)
    if varying is not None:
        if len(values) != samples:
            raise ValueError(f"{where} has {len(values)} rows, and there are {samples} samples")
        return plain, varying, [], pieces(where, varying, values)
    kind, shape, kept = packed(where, values)
    if not shape or shape[0] != samples:
        rows = f"{shape[0]} rows" if shape else "a single number"
        raise ValueError(f"{where} has {rows}, and there are {samples} samples")
    return name, kind, shape[1:], kept


# This function makes a source from what a pickle of it holds.


def _with_targets(source: _core.Source, tables: list[_Table]) -> _core.Source:
    return made(
        _core.with_targets(source, tables),
        _with_targets,
        lambda _: (source, tables),
        shows=(source,),
    )
