"""The Loader: an endless feed, iterated epoch by epoch."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic

from stoker import _core
from stoker._annotations import Annotations
from stoker._arguments import MAX_PIXELS, yes_or_no
from stoker._augment import Augments
from stoker._batch import Batch, BatchMaker
from stoker._blend import Blend
from stoker._decoded_cache import DecodedCache
from stoker._feeds import (
    ENDED_BY_A_NEWER_ONE,
    Epoch,
    FirstEpoch,
    GrowingFeed,
    MovingFeed,
    first_of,
    part_options,
    place_of,
    state_of,
)
from stoker._options import DrawnSeed, device_name, image_format, leases_for, loader_options
from stoker._orders import Order, steps_per_epoch
from stoker._prepared_feed import PreparedFeed
from stoker._recipe import readers_of
from stoker._remote import Form, RunningWorkers, Workers, job_of
from stoker._shown import loader_html
from stoker._step_sizes import (
    Bucket,
    Buckets,
    StepSizes,
    as_buckets,
    bind_buckets,
    buckets_in,
    set_step_sizes,
)
from stoker.augment import make_spec

# The type that a loop gets. Its default, which type checkers know, needs no typing_extensions.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Item = TypeVar("Item", default=Batch)
else:
    from typing import TypeVar

    Item = TypeVar("Item")

# No WeakSet, which cannot be listed while other threads make Loaders.
_open_loaders: set[weakref.ref[Loader[Any]]] = set()


class Loader(Generic[Item]):
    """Feeds batches of `source` to one device. `for batch in loader` is one epoch; the feed
    continues after it, so that the next epoch begins without a gap. Reading starts with the
    construction, in the Loader's threads. To type checkers it is a Loader[Batch], or with on_batch
    a Loader of what that returns.

    Any thread may call a Loader. It has one position: threads that share an iterator get each batch
    once, and a loop that another thread ends raises RuntimeError.

    The data
        source: stoker.folder(), open(), subset(), ...; or several in a stoker.blend().
        batch_size: rows of every batch, including the last one.
        size: pixels, an int or (height, width); default: the size that `augment` ends with, else
            raw sources' own size, else 224. Or stoker.step_sizes(), where it changes from step to
            step.
        buckets: stoker.buckets(), or a list of (height, width): aspect buckets. Every batch has the
            size of one of them, the same on all ranks; leave size= out.
        augment: stages of stoker.augment, joined by `|`, or their text; default: resize and centre
            crop (raw sources: as they are). Stages without a size make rows of the step's size;
            with buckets the default is resize_cover() | center_crop(). Of samples with several
            pictures (with_pictures()) a dict of a list for each, the own one's by the name 'image'.
        seed, shuffle: the order of an epoch depends only on (seed, epoch, number of samples).
            Without a seed each Loader draws one (`loader.seed`), which is part of its state_dict();
            several ranks that shuffle must get a seed, the same for all. shuffle is True unless it
            is given.
        order: instead of shuffle: stoker.weighted(), class_balanced(), repeated() or
            block_shuffled() say which samples an epoch takes, in which order. A sample that comes
            again in an epoch gets other crops.
        last_batch: 'pad' repeats rows with weight 0, so that every sample counts once; 'drop'
            leaves the rest out; 'wrap' fills up with the epoch's first samples, weight 1. With
            buckets each of them has a last batch, and 'merge' puts what would be left of them into
            batches of neighbours' shapes, at the end of the epoch.
        rank, world: this process's part of each epoch; default: torch.distributed's, if the program
            has initialised it, else 0 of 1. Every rank makes the same number of steps.
        epochs: the number of epochs until the feed ends, may be a fraction; default: endless.
        pixels, exif, max_pixels: as in stoker.decode().
        seek_index: file of places inside JPEGs, with which less of them is read: 'auto' looks
            beside the data (`stoker pack` puts one there) and in the cache directory, where it adds
            what is not there yet while it goes through the first epoch (about 0.3 % of the images'
            bytes, if epochs is not 1); 'off'; or the path of a file that stoker.index() made.
            RuntimeError if that cannot be read.
        cache: a stoker.DecodedCache keeps what decoding gives of a part of the samples, where the
            rows of a recipe allow it (evaluation, small images). Several Loaders may have the same.
        annotations: stoker.Annotations, for a source whose pictures carry boxes, masks, keypoints
            or label images (stoker.open(objects=), with_annotations()): how many objects a row has
            room for, and in which form they come; default: those of stoker.Annotations().
        texts: which of a sample's texts its row has (targets_from='txt:text'): 'first'; 'random',
            another one in each epoch; or 'all', a list of them.
        max_target_bytes: of each text, or list of numbers, of a row; batches have place for them.
        too_long: what has more is a bad sample ('fail'), or cut behind a character ('cut').
        metadata: a function of (name, label) for Batch.metadata; it does not slow down the pixels.

    A function of your own
        on_batch: is called with every Batch; the loop gets what it returns. One Python thread calls
            it, in order, once for each batch, while the loop works on earlier ones: it gains where
            it waits or releases Python's lock (NumPy, PyTorch, files), and shares the lock
            otherwise. The thread begins with each loop and ends with it. An exception of the
            function is raised by next() in place of its batch, with a note of the step (Python
            3.11); if the loop goes on, it goes on with the batch after it. state_dict() counts what
            was handed over: a resumed run calls the function again for what was ahead. Random
            numbers of the function should depend on batch.step alone, or resuming changes them.
            close() waits for a call that has begun.
        on_batch_ahead: how many batches it works on before they are asked for.

    The output
        device: 'cpu', 'cuda:N' (see stoker.devices()), 'cuda' (PyTorch's current one, else the
            first), or a torch.device.
        dtype: 'uint8' as decoded, or 'float32', 'float16', 'bfloat16': (pixel / 255 - mean) / std.
        layout: 'NHWC'; 'NCHW' (not for uint8); 'channels_last' has the shape (rows, 3, height,
            width) on NHWC bytes, like torch's memory format of that name.
        mean, std: a number, or three, RGB, of pixels / 255; default 0 and 1.
        leases: how many of the last batches are lent from the memory of the Loader; the usual loop
            needs 2, and on_batch those ahead. Default: 3, or 2 + on_batch_ahead. On the host a
            batch that is held longer keeps its memory, and the Loader allocates other memory, of
            the size of a batch. On a GPU (1 to 3) it is the number of slots there, and next()
            raises an error if it needs one that is held.
        copy: every batch keeps its memory permanently (host only).

    Resources
        workers: threads that decode; default one per core; 0: none, next() decodes.
        io_threads: threads that read the files that are not in memory (workers read those that
            are); 0: none. Default: 2, or as many as the `workers` of stoker.dataset().
        memory: bytes, or a text such as '2G', that the feed takes at most: batches, scratch,
            pictures on the way, files read ahead, a store's window, shared memory, a cache in
            memory; not what you hold of batches beyond the leases, or what a dataset() object
            returns. A picture that needs more waits for others, and one that can never have so
            much is a bad sample. Default: three quarters of the memory that is free.
        ring_depth: batches in host memory, read ahead or lent; default leases + 3, or leases + 8 if
            others fill rows.
        remote: stoker.ray.workers(): cores of other machines, which fill the rows that the own
            workers cannot fill in time; with workers=0 all rows. The rows are the same bytes.
        share: a name. Processes of this machine that are given the same name, source, seed and
            whatever else determines the rows decode each row once between them; device, dtype,
            workers, ring_depth and epochs may differ. Each gets the batches that it would get
            alone, and goes on if another one dies, stops or is slow. RuntimeError: others share
            other rows by this name, with what differs; or /dev/shm is too small, with numbers.
        share_steps: so many steps lie in shared memory (memory_plan()), the same in all processes.
            One that is further behind decodes by itself.
        share_wait: so many seconds one that is ahead waits for those that it would leave so far
            behind; they fill up again in ten times that time. 0: it never waits.

    Bad samples
        on_bad: 'substitute' takes another sample's pixels, with weight 0; 'fail' ends the feed.
        max_bad: how many an epoch may have: a count, or a share if it is below 1.
        quarantine: a JSONL file to which they are appended.

    ValueError: an argument, with its value. RuntimeError: a device that is not available, and why.
    MemoryError, with the size; also from next() if a batch is held and other memory cannot be
    allocated: then no batch is lost. FeedError, from next(): too many bad samples, a failed device.
    """

    def __init__(
        self,
        source: _core.Source | Blend,
        *,
        batch_size: int = 256,
        size: int | tuple[int, int] | StepSizes | None = None,
        buckets: Buckets | Sequence[int | tuple[int, int]] | None = None,
        augment: Augments | str | None = None,
        device: object = "cpu",
        dtype: str = "uint8",
        layout: str = "NHWC",
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
        seed: int | None = None,
        shuffle: bool | None = None,
        order: Order | None = None,
        last_batch: str = "pad",
        rank: int | None = None,
        world: int | None = None,
        epochs: float | None = None,
        workers: int | None = None,
        io_threads: int | None = None,
        memory: int | str | None = None,
        ring_depth: int | None = None,
        remote: Workers | None = None,
        share: str | None = None,
        share_steps: int = 8,
        share_wait: float = 10,
        leases: int | None = None,
        copy: bool = False,
        pixels: str = "exact",
        exif: str = "ignore",
        max_pixels: int = MAX_PIXELS,
        seek_index: str | os.PathLike[str] = "auto",
        cache: DecodedCache | None = None,
        on_bad: str = "substitute",
        max_bad: float = 0.05,
        quarantine: str | os.PathLike[str] | None = None,
        annotations: Annotations | None = None,
        texts: str = "first",
        max_target_bytes: int = 2048,
        too_long: str = "fail",
        metadata: Callable[[str, int], Any] | None = None,
        on_batch: Callable[[Batch], Item] | None = None,
        on_batch_ahead: int = 1,
    ):
        source, order = _source_and_order(source, order, shuffle)
        name = device_name(device)
        if metadata is not None and not callable(metadata):
            raise TypeError(f"metadata is {metadata!r}, must be a function of (name, label)")
        if seed is None:
            seed = DrawnSeed.draw()
        if remote is not None and not isinstance(remote, Workers):
            raise TypeError(f"remote is {remote!r}, must be made by stoker.ray.workers()")
        readers = readers_of(source)
        make_options = partial(
            loader_options,
            batch_size=batch_size,
            seed=seed,
            shuffle=shuffle,
            last_batch=last_batch,
            rank=rank,
            world=world,
            epochs=epochs,
            workers=workers,
            io_threads=max(2, readers.at_once) if io_threads is None else io_threads,
            memory=memory,
            ring_depth=ring_depth,
            is_remote=remote is not None,
            share=share,
            share_steps=share_steps,
            share_wait=share_wait,
            leases=leases_for(leases, name, on_batch, on_batch_ahead),
            pixels=pixels,
            exif=exif,
            max_pixels=max_pixels,
            seek_index=seek_index,
            cache=cache,
            on_bad=on_bad,
            max_bad=max_bad,
            quarantine=quarantine,
            texts=texts,
            max_target_bytes=max_target_bytes,
            too_long=too_long,
        )
        options = make_options()
        options.annotations = _annotation_options(source, annotations)
        shapes = _shapes_of(size, buckets, order)
        rows = options.batch_size * options.world
        first = None
        self._buckets: _core.AspectBuckets | None = None
        if source.is_growing:
            others = remote is not None or share is not None or cache is not None
            first = first_of(source, rows, _why_all(options, order, others, buckets, on_batch))
        if first is None:
            length = len(source)
            if order is not None:
                bound = order.bind(source, options)
                options.set_order(bound)
                length = bound.length
            if isinstance(shapes, Buckets):
                self._buckets = bind_buckets(shapes, source, options)
                options.set_buckets(self._buckets)
            if last_batch == "drop" and length < rows:
                ranks = f" on each of {options.world} ranks" if options.world > 1 else ""
                raise ValueError(
                    f"batch_size is {batch_size}{ranks}, and an epoch has {length} samples: "
                    'last_batch="drop" leaves nothing; give a smaller batch_size or '
                    'last_batch="pad"'
                )
        self._source = source
        self._options = options
        self._device = name
        self._is_seeded = not isinstance(seed, DrawnSeed)
        if isinstance(shapes, StepSizes):
            set_step_sizes(options, shapes)
            size = shapes.largest
        elif isinstance(shapes, Buckets):
            size = shapes.sizes[0]
            augment = "resize_cover | center_crop" if augment is None else augment
        spec = make_spec(augment, size, source.raw_size)
        unmoved = _core.unmoved_targets(source if first is None else first, spec)
        if unmoved:
            warnings.warn(unmoved, stacklevel=2)
        self._views = spec.views
        images = image_format(dtype, layout, mean, std)
        form = (name, images, yes_or_no("copy", copy), sys.flags.dev_mode)
        self._remote = None if remote is None else remote.begin(source)
        self._order = _Kept(order)
        self._spec, self._output = spec, form
        self._batches = batches = BatchMaker(metadata)
        self._first_epoch = 0  # whose order is known
        # None of these functions keeps the Loader: dropping it ends the feed.
        self._feed: MovingFeed
        if first is not None:
            self._feed = GrowingFeed(
                source,
                first,
                lambda fed, options: _core.Feed.make(fed, spec, options, *form),
                options,
                part_options(make_options()),
                batches,
            )
        else:
            self._feed = _feed_of(
                _maker(source, spec, form, self._remote, self._order, shapes),
                options,
                lambda taken: batches(taken, source),
                on_batch,
                on_batch_ahead,
            )
        self._resumed = False
        self._uses = [reader.use() for reader in readers.readers]
        self._pass = 0  # the number of the current iteration
        _open_loaders.add(weakref.ref(self, _open_loaders.discard))

    def __len__(self) -> int:
        """Returns the number of batches of an epoch on this rank; it is the same on every rank."""
        return self._feed.get().steps_per_epoch

    def __iter__(self) -> Iterator[Item]:
        """Begins an epoch, of Batches or of what on_batch makes of them: the next one, or after
        load_state_dict() the rest of the epoch of the state.

        If the last loop was left early, its epoch is over: this begins the one after it. An
        iterator that was made before is ended by this one (RuntimeError).
        """
        with self._feed.lock:
            if isinstance(self._feed, GrowingFeed) and self._feed.is_growing and self._pass == 0:
                self._pass += 1
                return FirstEpoch(partial(self._next_at_first, self._feed, self._pass))
        self._feed.get()  # waits for a list that grows, which is not done under the lock
        with self._feed.lock:
            return self._begin_loop()

    def _begin_loop(self) -> Epoch:
        feed = self._feed.get()
        steps = feed.steps_per_epoch
        position = self._feed.position()[0]
        left_early = position % steps != 0 and not self._resumed
        if left_early:
            position = (position // steps + 1) * steps
        if position >= feed.end_step:
            raise RuntimeError(
                f"the feed ended at step {feed.end_step}, as epochs={self._options.epochs} says; "
                "set_epoch() goes back"
            )
        if not self._feed.stands_at(position, self._feed.seed):
            self._feed.move(position, self._feed.seed)
            feed = self._feed.get()
        self._resumed = False
        self._pass += 1
        end = min((position // steps + 1) * steps, feed.end_step)
        take, leave = partial(self._next, self._pass), partial(self._leave, self._pass)
        return Epoch(feed, end, end - position, take, leave)

    @property
    def source(self) -> _core.Source:
        """Where the samples come from."""
        return self._source

    @property
    def batch_size(self) -> int:
        """Rows of every batch."""
        return self._options.batch_size

    @property
    def buckets(self) -> list[Bucket]:
        """The samples of each bucket; without buckets= none."""
        return [] if self._buckets is None else buckets_in(self._buckets)

    @property
    def views(self) -> int:
        """How many rows a sample's own picture gives: 1, but for stoker.augment.views()."""
        return self._views

    @property
    def seed(self) -> int:
        """The seed that was given or drawn."""
        return self._feed.seed

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self._feed.position()[1]

    @property
    def rank(self) -> int:
        """The number of this process, 0 to world - 1."""
        return self._options.rank

    @property
    def world(self) -> int:
        """The number of processes that share the epochs."""
        return self._options.world

    def set_epoch(self, epoch: int) -> None:
        """Makes epoch `epoch` (from 0) the next loop's, from its beginning. Free if it is next
        anyway; otherwise the feed restarts there.
        """
        feed = self._feed.get()
        if not isinstance(epoch, int) or epoch < 0:
            raise ValueError(f"epoch is {epoch!r}, must be 0 or more")
        step = epoch * feed.steps_per_epoch
        if step >= feed.end_step:
            raise ValueError(f"epoch is {epoch}, but epochs={self._options.epochs}")
        with self._feed.lock:
            self._move(step, self._feed.seed)

    def state_dict(self) -> dict[str, Any]:
        """Returns the feed's position after the batches handed out so far: a few numbers, at any
        time, at no cost. With it any Loader of the same source, pixels, seed and global batch
        continues exactly there, whatever its workers, its dtype or the split into ranks.
        """
        return state_of(self._feed)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Moves to the position of `state`: the next loop is the rest of that epoch (or, if the
        state was taken at an epoch's end, the next epoch). A Loader made without seed= takes the
        state's. ValueError, without any change, if it is of another configuration or no state at
        all.
        """
        self._feed.get()  # waits for a list that grows, which is not done under the lock
        with self._feed.lock:
            own_seed = self._feed.seed if self._is_seeded else None
            self._move(*place_of(state, self._feed.get(), own_seed))
            self._resumed = True

    def stats(self) -> dict[str, Any]:
        """Returns counters since the feed started. For 'read' (files), 'cached_read' (files that
        workers found in memory; 'read' has the others), 'decode' (rows), 'ring' and 'staging'
        (batches): the items, the seconds of waiting for input and for room, the seconds of work
        over all threads, and how many items were ready on average. 'bad_samples'; 'memory_waits':
        how often a worker waited for memory, and 'memory_taken_bytes', the most that pictures had
        beyond what their workers have; 'full_rows' had
        more objects than stoker.Annotations.max_objects, and 'objects_left_out' are the rest of
        these; 'seek_index_used'
        and 'seek_index_refused' rows (refused: the file has changed), 'seek_index_unread_bytes'
        (not read, because no row showed them), 'seek_index_recorded' samples (their index was made
        on the way); 'held': batches held now.
        'share': rows 'taken' from other processes, 'given' to them, and decoded 'alone'; blocks
        'taken_over' from a process that died or was late, or made 'corrupt' by it; 'waited_s' for
        those behind.
        With a cache, 'cache': 'hits' and 'misses' (rows that were made of what it keeps, and
        others), 'places' of 'samples' and the 'place_bytes' of each, 'found' (pictures that were
        there when the feed began), 'kept' and 'kept_bytes' (written by this process), 'folder'
        ('': in memory) and 'problem' (why nothing more is kept; '': it is).
        With samples in a store, 'store': what the source's requests have come to since it was
        opened, by the names of a profile's "store": 'requests', 'ranges' (read in full), their
        'bytes', 'bytes_carried' (with what was thrown away), 'retries', 'throttled',
        'requests_at_once', 'first_byte_ms_median', ...; with a cache of them on a disk also
        'cache_hits', 'cache_misses', 'cache_kept_bytes' and 'cache_problem'.
        staging's input_wait_s is how long next() waited for the feed.
        """
        with self._feed.lock:  # so that the feed is not closed meanwhile
            return self._feed.current().stats()

    def memory_plan(self) -> dict[str, int]:
        """Returns bytes: ring (pinned, or on the host), slots (on the device: slots and normalised
        images), scratch (an upper bound for the workers), share (shared memory, once for all
        processes that share), cache (decoded pictures in memory, once all are there), store
        (samples fetched ahead), total, and frame, which large pictures (progressive
        JPEGs, interlaced PNGs, ...) may have in addition; expected, as rows of
        some pictures show, most (total and frame) and limit (memory=). The first call makes them.
        """
        with self._feed.lock:
            return self._feed.current().memory_plan()

    def close(self) -> None:
        """Ends the feed: its threads, files and memory, except that of held batches, which stay
        valid. A running loop, and every later call, raise RuntimeError. Closing again does nothing.
        """
        self._feed.close()
        if self._remote is not None:
            self._remote.close()
        self._uses.clear()

    def __enter__(self) -> Loader[Item]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        samples = "a list that grows" if self._source.is_growing else f"{len(self._source)} samples"
        return (
            f"<stoker.Loader of {samples} in batches of {self.batch_size} on {self._device}: "
            f"{self._feed}>"
        )

    def _repr_html_(self) -> str:
        return loader_html(self)

    def __reduce__(self) -> Any:
        raise TypeError("a Loader cannot be pickled: make one in the process that uses it")

    def _begin(self, epoch: int, order: Order, seed: int) -> None:
        """Moves to the beginning of an epoch in another order. The feed ends with that epoch, so
        that nothing is read ahead in an order that is not for the next one.
        """
        bound = order.bind(self._source, self._options)
        with self._feed.lock:
            self._options.set_order(bound)
            self._order.value = order
            self._first_epoch = epoch
            self._options.epochs = epoch + 1
            self._pass += 1
            self._feed.move(epoch * steps_per_epoch(bound.length, self._options), seed)

    def _move(self, step: int, seed: int) -> None:
        """REQUIRES: the feed's lock."""
        self._pass += 1
        if not self._feed.stands_at(step, seed):
            self._feed.move(step, seed)

    def _next(self, number: int, feed: _core.Feed, end: int) -> Any:
        if number != self._pass or not self._feed.is_now(feed):
            self._feed.get()
            raise RuntimeError(ENDED_BY_A_NEWER_ONE)
        return self._feed.next(feed, end)

    def _next_at_first(self, feed: GrowingFeed, number: int) -> Any:
        if number != self._pass:
            raise RuntimeError(ENDED_BY_A_NEWER_ONE)
        return feed.next_at_first()

    def _leave(self, number: int) -> None:
        if number == self._pass:
            self._feed.rest()


class _Kept:
    """The order of the next feed."""

    def __init__(self, value: Order | None):
        self.value = value


def _maker(
    source: _core.Source,
    spec: _core.AugmentSpec,
    form: tuple[str, _core.ImageFormat, bool, bool],
    workers: RunningWorkers | None,
    order: _Kept,
    shapes: Buckets | StepSizes | None,
) -> Callable[[_core.LoaderOptions], _core.Feed]:
    def make(options: _core.LoaderOptions) -> _core.Feed:
        feed = _core.Feed.make(source, spec, options, *form)
        if workers is not None:
            work = Form(spec.text, spec.size, order.value, shapes)
            workers.serve(feed, job_of(feed, work, options))
        return feed

    return make


def _feed_of(
    make: Callable[[_core.LoaderOptions], _core.Feed],
    options: _core.LoaderOptions,
    batch_of: Callable[[_core.Batch], Batch],
    on_batch: Callable[[Batch], Any] | None,
    ahead: int,
) -> MovingFeed:
    if on_batch is None:
        return MovingFeed(make, options, batch_of)
    return PreparedFeed(make, options, lambda taken: on_batch(batch_of(taken)), ahead)


def _why_all(
    options: _core.LoaderOptions,
    order: Order | None,
    others: bool,
    buckets: object,
    on_batch: object,
) -> str:
    """Returns why a feed needs the number of samples before its first batch; '': it does not."""
    if order is not None or options.shuffle:
        return "its order depends on their number; with shuffle=False a Loader begins at once"
    if buckets is not None:
        return "buckets= need the sizes of all pictures"
    if 0 <= options.epochs < 1:
        return f"epochs={options.epochs} end at a share of them"
    if others:
        return "remote=, share= and cache= need the whole list"
    return "on_batch= needs the whole list" if on_batch is not None else ""


def _annotation_options(
    source: _core.Source, annotations: Annotations | None
) -> _core.AnnotationOptions:
    """ValueError: annotations are given, and the source has none."""
    if annotations is None and source.is_growing:  # nobody waits for its list
        return _core.AnnotationOptions()
    if annotations is not None and not isinstance(annotations, Annotations):
        raise TypeError(f"annotations is {annotations!r}, must be a stoker.Annotations")
    if annotations is not None and not source.annotations:
        raise ValueError(
            f"annotations is {annotations!r}, and the samples carry nothing: see "
            "stoker.open(objects=) and stoker.with_annotations()"
        )
    return (annotations or Annotations()).core(source)


def _shapes_of(
    size: object, buckets: Buckets | Sequence[int | tuple[int, int]] | None, order: Order | None
) -> Buckets | StepSizes | None:
    """ValueError: arguments that do not go together."""
    if buckets is None:
        return size if isinstance(size, StepSizes) else None
    if size is not None:
        raise ValueError(
            f"size is {size!r}, but buckets= say which sizes rows have: leave size out"
        )
    if order is not None:
        raise ValueError(
            f"order is {order!r}, but buckets= say which samples a batch has: leave order= out"
        )
    return as_buckets(buckets)


def _source_and_order(
    source: _core.Source | Blend, order: Order | None, shuffle: object
) -> tuple[_core.Source, Order | None]:
    """Takes a blend apart. TypeError, ValueError: arguments that do not go together."""
    if order is not None and not isinstance(order, Order):
        raise TypeError(
            f"order is {order!r}, must be made by stoker.weighted(), class_balanced(), repeated() "
            "or block_shuffled()"
        )
    if isinstance(source, Blend):
        if order is not None:
            raise ValueError(f"order is {order!r}, but a blend has its own: leave order= out")
        blend = source
        source, order = blend.source, blend.order
    if not isinstance(source, _core.Source):
        raise TypeError(
            f"source is {source!r}, must be made by stoker.open(), folder(), memory() or "
            "another function that gives a stoker.Source"
        )
    if order is not None and shuffle is not None:
        raise ValueError(
            f"shuffle is {shuffle!r}, but {order!r} says in which order samples come: leave "
            "shuffle= out"
        )
    return source, order


def close_all() -> None:
    """Ends the threads of all feeds before the interpreter ends."""
    for reference in list(_open_loaders):
        loader = reference()
        if loader is not None:
            loader.close()


atexit.register(close_all)
