"""Sources of samples that an object of Python gives."""

from __future__ import annotations

import os
import pickle
from array import array
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from stoker import _core, _dataset_worker
from stoker._arguments import in_range, numbered, yes_or_no
from stoker._item_annotations import ItemAnnotations
from stoker._recipe import Readers, made
from stoker._target_values import TYPES, Column

# Runs the file of the worker's loop alone: the package, with its C++ part, is not needed there.
_PROGRAM = (
    "import importlib.util as u, sys; s = u.spec_from_file_location('_stoker_worker', {path!r}); "
    "m = sys.modules['_stoker_worker'] = u.module_from_spec(s); s.loader.exec_module(m); m.main(3)"
)


def dataset(
    dataset: Any,
    *,
    workers: int = 2,
    processes: bool = True,
    labels: Sequence[int] | Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    targets: Mapping[str, tuple[str, Sequence[int] | None]] | None = None,
    annotations: Sequence[str] = (),
    class_names: Sequence[str] = (),
    keypoint_names: Sequence[str] = (),
    box_format: str = "xyxy",
) -> _core.Source:
    """The samples of any object with __len__ and __getitem__, as PyTorch's map-style data sets are.
    Only its __getitem__ runs in Python; decoding and everything after it does not. A sample's name
    is 'dataset/17'.

    dataset: dataset[i], for i from 0 to len(dataset) - 1, gives (image, label), or an image alone.
        It must give the same for the same i at any time, in any process: epochs, crops and the
        resumption of a run rely on it.
        An image is the bytes of a file (JPEG, PNG, ...; anything with the buffer protocol); a path
        (str or os.PathLike, relative to the current folder of this call), which C++ reads; an array
        of uint8 and of shape (height, width, 3) or (height, width); or a picture of PIL. A label is
        an int, from 0 on.
    workers: how many items are asked for at once. Loader(io_threads=) is at least that by default.
    processes: True runs `dataset` in worker processes, which get a pickle of it when the first
        sample is read. The main module of the program is imported there if the class of `dataset`
        is defined in it, so the program needs `if __name__ == "__main__":`. False runs it on the
        Loader's threads, with the interpreter lock: for what waits or computes without the lock.
    labels: one for each sample, known from the start: ints, or texts that name their classes; the
        labels of the items are not looked at then. Without it a label is known when its sample has
        been read, and what needs all labels (source.labels(), with_labels(), class_balanced())
        raises ValueError. Without any label it is 0.
    classes: the names of classes 0, 1, ..., if labels are ints.
    targets: the type and the shape of each target that items have besides the label, by name:
        {"age": ("float32", ()), "tags": ("uint8", (40,))}; types are float32, int32, int64 and
        uint8. Items are (image, targets) or (image, label, targets) then, and targets is a dict of
        numbers, sequences, arrays or tensors by name or, if there is only one, its values alone.
        Without a shape each item has a list of its own length, or a text or several:
        {"tokens": ("int32", None), "caption": ("text", None)}; see Batch.texts.
        For soft labels, several labels at once, numbers to predict; batch.targets has them, as they
        are: they do not move with the pixels (see with_targets()).
    annotations: the entries of what lies on the pictures, and moves with the pixels:
        ("boxes", "labels", "masks"). An item's last value is a dict of them then, as
        with_annotations() takes one for each sample: (image, annotations), or behind its label and
        its targets.
    class_names, box_format: as in with_annotations(). keypoint_names: one for each keypoint of an
        object; needed if there are keypoints.

    An item that raises an exception, or is something else, is a bad sample, with the exception and
    its place as the reason; so is one with a broken annotation, and one at which a worker process
    dies, which is started again; if it cannot be started, the Loader ends with FeedError. Closing
    the last Loader of the source ends the processes.

    TypeError: no such object; processes=True, and it cannot be pickled. ValueError: it has no
    samples; workers; labels as in files(). What len(dataset) raises.
    """
    if isinstance(dataset, (str, bytes, os.PathLike, _core.Source)):
        raise TypeError(f"dataset is {dataset!r}: stoker.open() is for paths, and a source is one")
    for method in ("__len__", "__getitem__"):
        if not hasattr(type(dataset), method):
            raise TypeError(f"dataset is {dataset!r}, must have __len__ and __getitem__")
    workers = in_range("workers", workers, 1, 1024)
    yes_or_no("processes", processes)
    samples = len(dataset)
    if samples == 0:
        raise ValueError(f"dataset is {dataset!r}, which has no samples")
    numbers, names = (None, list(classes or ())) if labels is None else numbered(labels, classes)
    packed = None if numbers is None else array("i", numbers)
    columns = [_column(name, form) for name, form in (targets or {}).items()]
    root = os.getcwd()
    carried = None
    if annotations or class_names or keypoint_names:
        carried = ItemAnnotations.of(annotations, class_names, keypoint_names, box_format, root)
    return _of_object(dataset, workers, processes, packed, names, root, columns, carried)


def _column(name: object, form: Any) -> Column:
    """TypeError, ValueError: a type or a shape that cannot be."""
    is_form = isinstance(form, (tuple, list)) and len(form) == 2 and isinstance(name, str)
    if is_form and form[1] is None and form[0] in (*TYPES, "text"):
        return Column(str(name), form[0], None)
    if not is_form or form[0] not in TYPES or not isinstance(form[1], (tuple, list)):
        raise TypeError(
            f"targets[{name!r}] is {form!r}, must be a type ({', '.join(TYPES)}) and a shape, as "
            "('float32', (4,)), or None of what has no one length, as ('text', None)"
        )
    shape = tuple(in_range(f"targets[{name!r}]", each, 1, 1 << 28) for each in form[1])
    return Column(str(name), form[0], shape)


def _of_object(
    dataset: Any,
    workers: int,
    processes: bool,
    labels: Sequence[int] | None,
    classes: list[str],
    root: str,
    columns: list[Column],
    annotations: ItemAnnotations | None = None,
) -> _core.Source:
    """Makes the source from what a pickle of it holds."""
    make = _worker_pool if processes else _thread_reader
    asked = _dataset_worker.Asked(labels is not None, columns, annotations)
    reader = make(dataset, asked, workers)
    numbers = None if labels is None else list(labels)
    kinds = None if annotations is None else annotations.info.core()
    return made(
        _core.dataset_source(reader, len(dataset), numbers, classes, root, columns, kinds),
        _of_object,
        lambda _: (dataset, workers, processes, labels, classes, root, columns, annotations),
        readers=Readers(workers, (reader,)),
    )


def _thread_reader(dataset: Any, asked: _dataset_worker.Asked, _: int) -> _core.DatasetReader:
    return _core.thread_reader(partial(_answer, dataset, asked))


def _answer(dataset: Any, asked: _dataset_worker.Asked, index: int) -> _dataset_worker.Answer:
    return _dataset_worker.answer(dataset, index, asked)


def _worker_pool(dataset: Any, asked: _dataset_worker.Asked, workers: int) -> _core.DatasetReader:
    # Half of what `import stoker` would take otherwise.
    from multiprocessing import spawn

    columns = list(map(tuple, asked.targets))  # no class of this package, which is not there
    asked_for = (asked.has_labels, columns, asked.annotations)
    try:
        pickled = pickle.dumps((dataset, *asked_for), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise TypeError(
            f"dataset is of {type(dataset)} and cannot be pickled for worker processes "
            f"({type(error).__name__}: {error}): use processes=False, or open files where they are "
            "first read"
        ) from error
    preparation = spawn.get_preparation_data("stoker dataset")
    # A secret of the standard library's, which cannot be pickled; the workers do not need it.
    preparation.pop("authkey", None)
    if b"__main__" not in pickled:
        for name in ("init_main_from_name", "init_main_from_path"):
            preparation.pop(name, None)
    command = spawn.get_command_line()
    command = command[: command.index("-c")]
    program = _PROGRAM.format(path=os.path.abspath(_dataset_worker.__file__))
    return _core.worker_pool(
        [*map(os.fsdecode, command), "-c", program], pickle.dumps(preparation), pickled, workers
    )
