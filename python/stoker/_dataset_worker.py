"""The loop of a worker process of stoker.dataset(), and what an item of the object may be.

A worker process runs this file alone, without the package; only what the object itself needs is
imported there. The C++ side is core/worker_pool.cc. What only such a process needs is imported in
its functions, because `import stoker` imports this file.
"""

from __future__ import annotations

import importlib.util
import operator
import os
import pickle
import struct
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import socket

# The kinds of an answer; core/dataset_source.h has the same numbers.
BYTES, PATH, BAD, READY = range(4)
NO_LABEL = -1
LARGEST_LABEL = (1 << 24) - 1
MOST_BYTES = 1 << 30
_SIZE, _REQUEST, _HEADER = struct.Struct("=Q"), struct.Struct("=q"), struct.Struct("=IiQ")

# Kind, label, and the parts that the bytes, the path or the message consist of.
Answer = tuple[int, int, list[Any]]


class BadItemError(Exception):
    """An item is not what stoker.dataset() takes."""


class Asked(NamedTuple):
    """Demands on every item besides the image."""

    has_labels: bool  # they are known; those of the items are not looked at
    targets: list[Any]  # columns: _target_values.Column
    annotations: Any = None  # _item_annotations.ItemAnnotations, whose pickle brings the package


def answer(dataset: Any, index: int, asked: Asked) -> Answer:
    """Returns what `dataset` has at `index`; an exception there becomes a message."""
    try:
        data, label, targets, annotations = _split(dataset[index], asked)
        kind, parts = _payload(data)
        if asked.targets:
            parts.insert(0, _row(asked.targets, targets))
        if asked.annotations:
            parts[:0] = _picture(asked.annotations, annotations, index)
        size = sum(len(part) for part in parts)
        if size > MOST_BYTES:
            raise BadItemError(f"gives {size} bytes, must be at most {MOST_BYTES}")
        return kind, NO_LABEL if asked.has_labels else _number(label), parts
    except BadItemError as error:
        return BAD, NO_LABEL, [f"{type(dataset).__name__}[{index}] {error}".encode()]
    except (Exception, SystemExit) as error:
        return BAD, NO_LABEL, [described(error).encode(errors="backslashreplace")]


def described(error: BaseException) -> str:
    """Returns 'ValueError: text (file.py:12, in __getitem__)' in one line."""
    import traceback

    text = " ".join(f"{type(error).__name__}: {error}".split())[:2000]
    frames = traceback.extract_tb(error.__traceback__)
    # The first frame is this module's own.
    if len(frames) < 2:
        return text
    last = frames[-1]
    return f"{text} ({os.path.basename(last.filename)}:{last.lineno}, in {last.name})"


def _split(item: Any, asked: Asked) -> tuple[Any, Any, Any, Any]:
    """Returns image, label, targets and annotations."""
    parts = list(item) if isinstance(item, (tuple, list)) else [item]
    behind = ["targets"] * bool(asked.targets) + ["annotations"] * bool(asked.annotations)
    if not 1 <= len(parts) - len(behind) <= 2:
        raise BadItemError(f"gives {len(parts)} values, must be {_wanted(behind)}")
    annotations = parts.pop() if asked.annotations else None
    targets = parts.pop() if asked.targets else None
    return parts[0], parts[1] if len(parts) == 2 else None, targets, annotations


def _wanted(behind: list[str]) -> str:
    if not behind:
        return (
            "(image, label) or an image alone; targets= and annotations= declare what else there is"
        )
    names = ", ".join(behind)
    return f"(image, {names}) or (image, label, {names})"


def _row(columns: list[Any], targets: Any) -> bytes:
    try:
        row: bytes = _values().packed_row(columns, targets)
    except (TypeError, ValueError) as error:
        raise BadItemError(str(error)) from None
    return row


def _picture(annotations: Any, row: Any, index: int) -> list[bytes]:
    try:
        picture: bytes = annotations.packed(row, index)
    except (TypeError, ValueError) as error:
        raise BadItemError(str(error)) from None
    # core/dataset_source.h says why twice.
    size = _SIZE.pack(len(picture))
    return [size, picture, size]


def _values() -> Any:
    """In a worker process the package is not there, and the file beside this one is run alone."""
    if __package__:
        from stoker import _target_values

        return _target_values
    name = "_stoker_target_values"
    if name not in sys.modules:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_target_values.py")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _number(label: Any) -> int:
    if label is None:
        return NO_LABEL
    try:
        number = operator.index(label)
    except TypeError:
        raise BadItemError(
            f"gives the label {label!r:.100} of type {type(label).__name__}, must be an int"
        ) from None
    if not 0 <= number <= LARGEST_LABEL:
        raise BadItemError(f"gives the label {number}, must be 0 to {LARGEST_LABEL}")
    return number


def _payload(data: Any) -> tuple[int, list[Any]]:
    if isinstance(data, bytes):
        return BYTES, [data]
    if isinstance(data, (str, os.PathLike)):
        path = os.fsencode(data)
        if not path or b"\0" in path:
            raise BadItemError(f"gives the path {path!r:.100}, which cannot be one")
        return PATH, [path]
    # If there are pictures of PIL, its module is there.
    pil = sys.modules.get("PIL.Image")
    if pil is not None and isinstance(data, pil.Image):
        picture = data if data.mode in ("L", "RGB") else data.convert("RGB")
        return BYTES, _pnm(picture.height, picture.width, len(picture.mode), picture.tobytes())
    return BYTES, _from_view(_view(data))


def _view(data: Any) -> memoryview:
    try:
        return memoryview(data)
    except TypeError:
        pass
    # Tensors have no buffer that memoryview() takes, but give an array without a copy.
    if hasattr(data, "__array__"):
        return memoryview(data.__array__())
    raise BadItemError(
        f"gives an object of type {type(data).__module__}.{type(data).__qualname__}, must be the "
        "bytes or the path of an image file, or an array of uint8"
    )


def _from_view(view: memoryview) -> list[Any]:
    shape = view.shape or ()
    if view.ndim == 1 and view.itemsize == 1:
        return [view if view.c_contiguous else view.tobytes()]
    channels = 1 if view.ndim == 2 else shape[2] if view.ndim == 3 else 0
    if view.format != "B" or channels not in (1, 3) or (view.ndim == 3 and channels == 1):
        raise BadItemError(
            f"gives an array of shape {tuple(shape)} and format {view.format!r}, must be of "
            "shape (height, width, 3) or (height, width) and uint8 ('B')"
        )
    if 0 in shape:
        raise BadItemError(f"gives an array of shape {tuple(shape)}, without pixels")
    pixels = view.cast("B") if view.c_contiguous else view.tobytes()
    return _pnm(shape[0], shape[1], channels, pixels)


def _pnm(height: int, width: int, channels: int, pixels: Any) -> list[Any]:
    """An array travels as a PGM or PPM file, which is its bytes after a line of text."""
    return [b"P%d\n%d %d\n255\n" % (5 if channels == 1 else 6, width, height), pixels]


# The process.


def main(descriptor: int) -> None:
    """Serves requests until the other side is gone."""
    import signal
    import socket
    import traceback

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    os.set_inheritable(descriptor, False)
    link = socket.socket(fileno=descriptor)
    threading.Thread(target=_end_with, args=(descriptor,), daemon=True).start()
    try:
        _serve(link)
    except (EOFError, ConnectionError):
        pass
    except BaseException:
        traceback.print_exc()
        _leave(1)
    _leave(0)


def _leave(code: int) -> None:
    """Ends the process now, whatever threads the object has made."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end_with(descriptor: int) -> None:
    """Ends the process when the other side has gone, even in the middle of an endless item."""
    import select

    poller = select.poll()
    # The end is reported without being asked for.
    poller.register(descriptor, 0)
    poller.poll()
    _leave(0)


def _serve(link: socket.socket) -> None:
    try:
        dataset, asked = _received_object(link)
    except (EOFError, ConnectionError):
        raise
    except BaseException as error:
        hint = ""
        if isinstance(error, AttributeError) and "__main__" in str(error):
            hint = ": define the class in a module, or use dataset(processes=False)"
        _send(link, BAD, NO_LABEL, [(described(error) + hint).encode(errors="backslashreplace")])
        return
    _send(link, READY, NO_LABEL, [])
    while True:
        (index,) = _REQUEST.unpack(_received(link, _REQUEST.size))
        _send(link, *answer(dataset, index, asked))


def _received_object(link: socket.socket) -> tuple[Any, Asked]:
    preparation = pickle.loads(_received(link, *_SIZE.unpack(_received(link, _SIZE.size))))
    pickled = _received(link, *_SIZE.unpack(_received(link, _SIZE.size)))
    # As the standard library does at the start of a process: paths of modules, the folder, and
    # the program's main module, if the object needs it.
    from multiprocessing import process, spawn

    setattr(process.current_process(), "_inheriting", True)
    try:
        spawn.prepare(preparation)
        dataset, has_labels, columns, annotations = pickle.loads(pickled)
    finally:
        delattr(process.current_process(), "_inheriting")
    # As in PyTorch's workers: there are several processes, and each has one core's share.
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    targets = [_values().Column(*each) for each in columns]
    return dataset, Asked(has_labels, targets, annotations)


def _received(link: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    left = memoryview(data)
    while left:
        count = link.recv_into(left)
        if count == 0:
            raise EOFError
        left = left[count:]
    return data


def _send(link: socket.socket, kind: int, label: int, parts: list[Any]) -> None:
    views = [memoryview(part).cast("B") for part in parts]
    size = sum(view.nbytes for view in views)
    views.insert(0, memoryview(_HEADER.pack(kind, label, size)))
    while views:
        sent = link.sendmsg(views)
        while views and sent >= views[0].nbytes:
            sent -= views.pop(0).nbytes
        if views:
            views[0] = views[0][sent:]
