"""The orders for other processes that fill rows of a Loader, whatever carries the rows."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from stoker import _core
from stoker._orders import Order
from stoker._recipe import readers_of
from stoker._step_sizes import Buckets, StepSizes, set_step_sizes

Range = tuple[int, int, int, int]  # step, device, first row, rows

_OPTIONS = (
    "batch_size",
    "seed",
    "shuffle",
    "rank",
    "world",
    "epochs",
    "annotations",
    "varying",
)


class Form(NamedTuple):
    """The work of a Loader on its source's samples. It can be pickled."""

    stages: str
    size: tuple[int, int]
    order: Order | None
    shapes: Buckets | StepSizes | None


class Job(NamedTuple):
    """The rows of one feed. It can be pickled. The same source, job and range give the same bytes
    on every machine.
    """

    form: Form
    edits: tuple[bool, bool]  # what the feed leaves to its device: erasing, mixing
    fingerprint: int  # of the feed's rows
    options: dict[str, Any]
    last_batch: str
    pixels: str
    exif: str
    max_pixels: int
    seek_index: str


class RunningWorkers(ABC):
    """Fills rows of one Loader elsewhere."""

    @abstractmethod
    def serve(self, feed: _core.Feed, job: Job) -> None:
        """Fills rows of a feed until it ends. Called for one feed after the other."""

    @abstractmethod
    def close(self) -> None:
        """Ends its threads and processes. The feeds have ended."""


class Workers(ABC):
    """The argument remote= of a Loader."""

    @abstractmethod
    def begin(self, source: _core.Source) -> RunningWorkers:
        """Returns the workers of a Loader of this source."""


def job_of(feed: _core.Feed, form: Form, options: _core.LoaderOptions) -> Job:
    """Returns what fills rows of a feed that was made with these options."""
    decode = options.feed.decode
    return Job(
        form=form,
        edits=feed.edits,
        fingerprint=feed.remote_rows().fingerprint,
        options={name: getattr(options, name) for name in _OPTIONS},
        last_batch=options.last_batch.name,
        pixels=decode.pixels.name,
        exif=decode.exif.name,
        max_pixels=decode.max_pixels,
        seek_index=options.feed.seek_index,
    )


class Filler:
    """Fills rows in the process that has it: it reads the source itself. Any thread may call it."""

    def __init__(self, source: _core.Source, threads: int):
        self._source = source
        self._threads = threads
        self._uses = [reader.use() for reader in readers_of(source).readers]
        self._lock = threading.Lock()
        self._begun: dict[int, _core.RemoteFiller] = {}

    def begin(self, job: Job) -> None:
        """Makes what fills the job's rows. ValueError: they would not be those of the feed."""
        with self._lock:
            if job.fingerprint not in self._begun:
                self._begun = {job.fingerprint: self._made(job)}

    def of(self, fingerprint: int) -> _core.RemoteFiller | None:
        """Returns what fills the rows of the job that was begun last, if it is this one."""
        return self._begun.get(fingerprint)

    def _made(self, job: Job) -> _core.RemoteFiller:
        options = _core.LoaderOptions()
        for name, value in job.options.items():
            setattr(options, name, value)
        options.last_batch = _core.LastBatch[job.last_batch]
        options.feed.seek_index = job.seek_index
        decode = _core.DecodeOptions()
        decode.pixels = _core.PixelPolicy[job.pixels]
        decode.exif = _core.ExifPolicy[job.exif]
        decode.max_pixels = job.max_pixels
        options.feed.decode = decode
        if job.form.order is not None:
            options.set_order(job.form.order.bind(self._source, options))
        if isinstance(job.form.shapes, Buckets):
            options.set_buckets(job.form.shapes.bind(self._source, options))
        elif job.form.shapes is not None:
            set_step_sizes(options, job.form.shapes)
        spec = _core.AugmentSpec(job.form.stages, job.form.size)
        made = _core.RemoteFiller(self._source, spec, options, job.edits, self._threads)
        if made.fingerprint != job.fingerprint:
            where = f" at {self._source.root}" if self._source.root else ""
            raise ValueError(
                f"the data{where} are not those of the Loader: the rows would have the fingerprint "
                f"{made.fingerprint:016x}, and the Loader's have {job.fingerprint:016x}"
            )
        return made
