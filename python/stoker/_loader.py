"""The Loader: an endless feed, iterated epoch by epoch."""

from __future__ import annotations

import atexit
import math
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from stoker import _core
from stoker._augment import Augment, make_spec
from stoker._batch import Batch
from stoker._choice import LAST_BATCH, MAX_PIXELS, ON_BAD, choose, decode_options
from stoker._process_group import rank_and_world

IMAGENET_MEAN = (0.485, 0.456, 0.406)  #: of pixels / 255, RGB
IMAGENET_STD = (0.229, 0.224, 0.225)

_TYPES = {
    "uint8": None,
    "float32": _core.PixelType.float32,
    "float16": _core.PixelType.float16,
    "bfloat16": _core.PixelType.bfloat16,
}
_LAYOUTS = {  # the bytes' order, and whether (rows, 3, height, width) is shown
    "NHWC": (_core.PixelOrder.nhwc, False),
    "NCHW": (_core.PixelOrder.nchw, True),
    "channels_last": (_core.PixelOrder.nhwc, True),
}
_STATE_VERSION = 1

_open_loaders: weakref.WeakSet[Loader] = weakref.WeakSet()


class Loader:
    """Feeds batches of `source` to one device. `for batch in loader` is one epoch; the feed goes on
    behind it, so that the next epoch begins without a gap. Reading starts with the construction.

    What is fed
        source: stoker.folder(), cifar(), synthetic(), open().
        batch_size: rows of every batch, also of the last.
        size: pixels, an int or (height, width); default: raw sources' own size, else 224.
        augment: a crop and more, joined by `|`; default: resize and centre crop (raw sources: as
            they are).
        seed, shuffle: the order of an epoch depends on (seed, epoch, number of samples) only.
        last_batch: 'pad' repeats rows with weight 0, so that every sample counts once; 'drop' leaves
            the rest out; 'wrap' fills up with the epoch's first samples, weight 1.
        rank, world: this process's part of each epoch; default: torch.distributed's, if the program
            has initialised it, else 0 of 1. Every rank makes the same number of steps.
        epochs: the feed's end, may be a fraction; default: none.
        pixels, exif, max_pixels: as in stoker.decode().
        metadata: a function of (name, label) for Batch.metadata; never in the way of the pixels.

    How it is handed out
        device: 'cpu:0', 'cuda:N' (stoker.devices() names them).
        dtype: 'uint8' as decoded, or 'float32', 'float16', 'bfloat16': (pixel / 255 - mean) / std.
        layout: 'NHWC'; 'NCHW' (not for uint8); 'channels_last' shows (rows, 3, height, width) on
            NHWC bytes, as torch's memory format of that name.
        mean, std: three numbers each, RGB, of pixels / 255; default 0 and 1.
        leases: how many of the last batches may be held at once, with all that was made from them;
            on a GPU (1 to 3) it is the number of slots there. The usual loop needs 2.
        copy: hand out copies that may be kept for ever (host only).

    What it costs
        workers: threads that decode; default one per core; 0: none, next() does it.
        io_threads: threads that read files ahead.
        ring_depth: batches in host memory, read ahead or held; default leases + 3.

    Bad samples
        on_bad: 'substitute' puts another sample's pixels there, weight 0; 'fail' ends the feed.
        max_bad: how many an epoch may have, a count or, below 1, a share.
        quarantine: a JSONL file that they are appended to.

    ValueError: an argument, with its value. RuntimeError: a device that is not there, and why.
    MemoryError. FeedError, from next(): too many bad samples, a device that failed.
    """

    def __init__(
        self,
        source: _core.Source,
        *,
        batch_size: int = 256,
        size: int | tuple[int, int] | None = None,
        augment: Augment | None = None,
        device: str = "cpu:0",
        dtype: str = "uint8",
        layout: str = "NHWC",
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        seed: int = 0,
        shuffle: bool = True,
        last_batch: str = "pad",
        rank: int | None = None,
        world: int | None = None,
        epochs: float | None = None,
        workers: int | None = None,
        io_threads: int = 2,
        ring_depth: int | None = None,
        leases: int = 3,
        copy: bool = False,
        pixels: str = "exact",
        exif: str = "ignore",
        max_pixels: int = MAX_PIXELS,
        on_bad: str = "substitute",
        max_bad: float = 0.05,
        quarantine: str | os.PathLike[str] | None = None,
        metadata: Callable[[str, int], Any] | None = None,
    ):
        if not isinstance(source, _core.Source):
            raise TypeError(
                f"source is {source!r}, must be made by stoker.folder(), cifar(), synthetic() or "
                "open()"
            )
        options = _core.LoaderOptions()
        _set_integers(
            options,
            batch_size=batch_size,
            seed=seed,
            io_threads=io_threads,
            leases=leases,
            workers=-1 if workers is None else workers,
            ring_depth=leases + 3 if ring_depth is None else ring_depth,
        )
        options.rank, options.world = rank_and_world(rank, world)
        options.shuffle = bool(shuffle)
        options.last_batch = choose("last_batch", last_batch, LAST_BATCH)
        options.epochs = -1.0 if epochs is None else _positive("epochs", epochs)
        options.decode = decode_options(pixels, exif, max_pixels)
        options.on_bad_sample = choose("on_bad", on_bad, ON_BAD)
        options.max_bad = float(max_bad)
        options.quarantine_file = "" if quarantine is None else os.fspath(quarantine)
        self._source = source
        self._metadata = metadata
        self._spec = make_spec(augment, size, source.raw_size)
        self._options = options
        self._device = device
        self._format = _image_format(dtype, layout, mean, std)
        self._copy = bool(copy)
        self._feed: _core.Feed | None = None
        self._resumed = False
        self._pass = 0  # number of the iteration under way
        self._start(0)
        _open_loaders.add(self)

    def __len__(self) -> int:
        """Batches of one epoch (of this rank; the same for all)."""
        return self._running().steps_per_epoch

    def __iter__(self) -> Iterator[Batch]:
        """One epoch: the next one, or after load_state_dict() the rest of the one it was in.

        If the last loop was left early, its epoch is over: this begins the one after it. An
        iterator that was made before is ended by this one (RuntimeError).
        """
        feed = self._running()
        steps = feed.steps_per_epoch
        position = feed.next_step
        left_early = position % steps != 0 and not self._resumed
        if left_early:
            position = (position // steps + 1) * steps
        if position >= feed.end_step:
            raise RuntimeError(
                f"the feed ended at step {feed.end_step}, as epochs={self._options.epochs} says; "
                "set_epoch() goes back"
            )
        if left_early:
            self._start(position)
            feed = self._running()
        self._resumed = False
        self._pass += 1
        return _Epoch(self, feed, min((position // steps + 1) * steps, feed.end_step), self._pass)

    @property
    def source(self) -> _core.Source:
        """Where the samples come from."""
        return self._source

    @property
    def batch_size(self) -> int:
        """Rows of every batch."""
        return self._options.batch_size

    @property
    def epoch(self) -> int:
        """The epoch of the batch that comes next."""
        return self._running().state()[1]

    @property
    def rank(self) -> int:
        """This process's number, of `world`."""
        return self._options.rank

    @property
    def world(self) -> int:
        """Processes that share the epochs."""
        return self._options.world

    def set_epoch(self, epoch: int) -> None:
        """The next loop is epoch `epoch` (from 0), from its beginning. Costs nothing where it comes
        next anyway; else the feed starts anew there.
        """
        feed = self._running()
        if not isinstance(epoch, int) or epoch < 0:
            raise ValueError(f"epoch is {epoch!r}, must be 0 or more")
        step = epoch * feed.steps_per_epoch
        if step >= feed.end_step:
            raise ValueError(f"epoch is {epoch}, but epochs={self._options.epochs}")
        self._move(step)
        self._resumed = False

    def state_dict(self) -> dict[str, Any]:
        """Where the feed stands after the batches handed out so far: a few numbers, at any time, at
        no cost. With it any Loader of the same source, pixels, seed and global batch goes on
        exactly there, whatever its workers, its dtype or the split into ranks.
        """
        next_step, epoch, step_in_epoch, fingerprint = self._running().state()
        return {
            "version": _STATE_VERSION,
            "next_step": next_step,
            "epoch": epoch,
            "step_in_epoch": step_in_epoch,
            "fingerprint": f"{fingerprint:016x}",
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where `state` was taken: the next loop is the rest of that epoch (or, taken at an
        epoch's end, the next epoch). ValueError, and nothing changes, if it is of another
        configuration or no state at all.
        """
        feed = self._running()
        try:
            version, step = int(state["version"]), int(state["next_step"])
            fingerprint = int(state["fingerprint"], 16)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a state of a stoker.Loader: {state!r} ({error!r})") from None
        if version != _STATE_VERSION:
            raise ValueError(f"a state of version {version}, this is version {_STATE_VERSION}")
        if not 0 <= step <= feed.end_step:
            raise ValueError(f"next_step is {step}, must be 0 to {feed.end_step}")
        feed.check_state(step, fingerprint)
        self._move(step)
        self._resumed = True

    def stats(self) -> dict[str, Any]:
        """Counters since the feed started: for 'read' (files), 'decode' (rows), 'ring' and
        'staging' (batches) the items, the seconds that each waited for input and for room, the
        seconds of work over all threads, and how many lay ready on average; 'bad_samples'; 'held':
        batches held now. staging's input_wait_s is how long next() waited for the feed.
        """
        return self._running().stats()

    def memory_plan(self) -> dict[str, int]:
        """Bytes: ring (pinned, or the host's), slots (on the device: slots and normalised images),
        scratch (an upper bound for the workers), total, and frame, what a progressive or PNG image
        of max_pixels may take on top.
        """
        return self._running().memory_plan()

    def close(self) -> None:
        """Ends the feed, its threads and files. Batches held stay valid. A loop under way, and
        every later call, raise RuntimeError. Closing again does nothing.
        """
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "closed" if self._feed is None else f"next step {self._feed.next_step}"
        return (
            f"<stoker.Loader of {len(self._source)} samples in batches of {self.batch_size} on "
            f"{self._device}: {where}>"
        )

    def __reduce__(self) -> Any:
        raise TypeError("a Loader cannot be pickled: make one in the process that uses it")

    def _running(self) -> _core.Feed:
        if self._feed is None:
            raise RuntimeError("the Loader was closed")
        self._feed.check_process()
        return self._feed

    def _move(self, step: int) -> None:
        self._pass += 1
        if step != self._running().next_step:
            self._start(step)

    def _start(self, step: int) -> None:
        if self._feed is not None:
            self._feed.close()
            self._feed = None
        self._options.first_step = step
        self._feed = _core.Feed.make(
            self._source, self._spec, self._options, self._device, self._format, self._copy
        )

    def _next(self, feed: _core.Feed, end: int, number: int) -> Batch:
        if self._feed is not feed or number != self._pass:
            self._running()
            raise RuntimeError(
                "this loop over the Loader was ended by a newer one (or by set_epoch() or "
                "load_state_dict()): a Loader has one position"
            )
        batch = feed.next(end)
        if batch is not None:
            return Batch(batch, self._source, self._metadata)
        if feed.closed:
            raise RuntimeError("the Loader was closed")
        raise StopIteration


class _Epoch:
    """The iterator of one epoch."""

    __slots__ = ("_end", "_feed", "_loader", "_number")

    def __init__(self, loader: Loader, feed: _core.Feed, end: int, number: int):
        self._loader = loader
        self._feed: _core.Feed | None = feed
        self._end = end
        self._number = number

    def __iter__(self) -> _Epoch:
        return self

    def __next__(self) -> Batch:
        if self._feed is None:
            raise StopIteration
        try:
            return self._loader._next(self._feed, self._end, self._number)
        except StopIteration:
            self._feed = None
            raise

    def __length_hint__(self) -> int:
        return 0 if self._feed is None else max(0, self._end - self._feed.next_step)


def _image_format(
    dtype: str, layout: str, mean: Sequence[float] | None, std: Sequence[float] | None
) -> _core.ImageFormat:
    image = _core.ImageFormat()
    image.type = choose("dtype", dtype, _TYPES)
    image.order, image.channels_second = choose("layout", layout, _LAYOUTS)
    if image.type is None:
        if layout == "NCHW":
            raise ValueError(
                "layout is 'NCHW' with dtype 'uint8': pixels are stored NHWC. Take 'channels_last' "
                "(the same shape, no copy) or another dtype"
            )
        if mean is not None or std is not None:
            raise ValueError("mean and std are for dtype float32, float16 and bfloat16, not uint8")
    image.mean = _three("mean", (0, 0, 0) if mean is None else mean)
    image.stddev = _three("std", (1, 1, 1) if std is None else std)
    if not all(deviation > 0 for deviation in image.stddev):
        raise ValueError(f"std is {std!r}, must be positive")
    return image


def _three(field: str, values: Sequence[float]) -> list[float]:
    numbers = [float(value) for value in values]
    if len(numbers) != 3 or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{field} is {values!r}, must be three numbers, RGB")
    return numbers


def _positive(field: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{field} is {value!r}, must be more than 0")
    return float(value)


def _set_integers(options: _core.LoaderOptions, **values: int) -> None:
    for field, value in values.items():
        try:
            setattr(options, field, value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{field} is {value!r}, must be a whole number in range") from None


def _close_all() -> None:
    """Before the interpreter goes: the threads of feeds must be gone first."""
    for loader in list(_open_loaders):
        loader.close()


atexit.register(_close_all)
