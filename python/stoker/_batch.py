"""One batch, as a loop gets it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from stoker import _core


class Batch:
    """Rows of one step: images, labels, weights, targets and ids. `images, labels = batch` takes
    the first two: with them alone, rows of weight 0 count like the others.

    The images stay where they were decoded to, or in a slot on a GPU. That memory is not filled
    again before this object and everything made from its arrays (tensors, NumPy views) are gone, or
    release() was called and the rest is gone. On the host any number of batches may be kept, for
    any time; on a GPU the last Loader(leases=). A batch keeps its own memory, and nothing of the
    Loader, whose close() ends the rest. ids are a copy; on the host labels, weights and targets
    are copies, too.
    """

    __slots__ = ("_batch", "_metadata", "_source", "epoch", "step", "step_in_epoch", "valid")

    step: int  #: number of the batch, over all epochs
    epoch: int  #: counted from 0
    step_in_epoch: int  #: 0 to len(loader) - 1
    valid: int  #: rows of weight > 0; the last batch of an epoch is padded with rows of weight 0

    def __init__(
        self,
        batch: _core.Batch,
        source: _core.Source,
        metadata: Callable[[str, int], Any] | None,
    ):
        self._batch: _core.Batch | None = batch
        self._source = source
        self._metadata = metadata
        self.step = batch.step
        self.epoch = batch.epoch
        self.step_in_epoch = batch.step_in_epoch
        self.valid = batch.valid

    @property
    def images(self) -> _core.Array:
        """(rows, height, width, 3), or (rows, 3, height, width) with layout='NCHW' or
        'channels_last'; of type uint8 or Loader(dtype=); on the Loader's device.
        """
        return self._leased().images

    @property
    def views(self) -> list[_core.Array]:
        """The rows of every view, in the order of stoker.augment.views(); the first are `images`.
        Each is as `images` is, of its own height and width. Views are uint8, or on the host float32
        with dtype=.
        """
        leased = self._leased()
        return [leased.images, *leased.views]

    @property
    def pictures(self) -> dict[str, _core.Array]:
        """The rows of every picture of the samples, by name: 'image' is the own one's, which
        `images` has, too; the others are those of stoker.with_pictures() and pictures_from=. Each
        is as `images` is, of its own height and width. Pictures are uint8, or on the host float32
        with dtype=.
        """
        leased = self._leased()
        targets = leased.targets
        others = {name: targets[name] for name in self._source.pictures}
        return {"image": leased.images, **others}

    @property
    def draws(self) -> list[str]:
        """The draws for the pixels of every row, with all numbers: "crop(x=3, y=5, width=111,
        height=77) | resize(width=64, height=64, filter='bilinear') | flip". With several views a
        line for each; at the end of a mixed row, its own share and the sample it is mixed with. It
        is drawn again at each access. "": a row without a picture. stoker.torch.to_torchvision()
        does the same with Pillow.
        """
        return self._leased().draws()

    @property
    def labels(self) -> _core.Array:
        """(rows,) int32, on the Loader's device."""
        return self._leased().labels

    @property
    def weights(self) -> _core.Array:
        """(rows,) float32, on the Loader's device: 1, or 0 for padding and for substitutes of bad
        samples. A loss weighted by them, divided by their sum, counts every sample once.
        """
        return self._leased().weights

    @property
    def ids(self) -> _core.Array:
        """(rows,) int64, on the host: sample ids of the source."""
        return self._leased().ids

    @property
    def targets(self) -> dict[str, Any]:
        """The targets besides the labels, by name: (rows, ...), of the type and shape that
        source.targets says, on the Loader's device; see stoker.with_targets(). If rows are mixed
        with each other, two more: mix_label (int32), the partner's label, and mix_weight (float32),
        the share of the row's own label and pixels, 1 for a row that is not mixed. If the source
        has annotations, what stoker.Annotations lists. Pictures besides the samples' own are here,
        too (see `pictures`). Else empty.

        Targets of any length are on the host: texts as a list with a str for each row (a list of
        them with texts='all', '' where nothing is known); numbers as one array of those of all
        rows, and NAME_offsets, int32 (rows + 1): row r has values[offsets[r]:offsets[r + 1]].
        """
        leased = self._leased()
        return {**leased.targets, **leased.varying(None)}

    @property
    def texts(self) -> list[Any]:
        """The text of each row, if the source has one target of texts (`targets` has others).
        AttributeError: there is none, or there are several.
        """
        leased = self._leased()
        names = leased.text_targets()
        if len(names) != 1:
            there = f"several texts, {', '.join(names)}: see targets" if names else "no texts"
            raise AttributeError(f"the samples have {there} (targets_from='txt:text')")
        return leased.varying(None)[names[0]]

    def padded(
        self, name: str, *, multiple: int = 1, value: float = 0
    ) -> tuple[_core.Array, _core.Array]:
        """A target of lists of numbers as (rows, the longest list rounded up to a multiple), filled
        up with `value`, and the lengths, (rows,) int64. Both are new arrays on the host.

        KeyError: there is no such target. ValueError: it is of texts; the type cannot hold `value`.
        """
        return self._leased().padded(name, multiple, value)

    def _arrays(self) -> dict[str, _core.Array]:
        return self._leased().targets

    def _varying(self) -> dict[str, Any]:
        """Targets of any length, of the rows that count."""
        return self._leased().varying(self.counted_rows)

    @property
    def counted_rows(self) -> list[int]:
        """The rows of weight > 0, in order; known without waiting for a device."""
        return self._leased().counted_rows()

    @property
    def object_counts(self) -> list[int]:
        """How many objects lie on each row's picture, if the source has annotations; known without
        waiting for a device."""
        return self._leased().object_counts()

    @property
    def picture_boxes(self) -> list[tuple[int, int, int, int]]:
        """(x0, y0, x1, y1) of each row, if the source has annotations: the pixels that show the
        picture, and no padding that the last step put around it."""
        return [tuple(box) for box in self._leased().picture_boxes()]

    @property
    def names(self) -> list[str]:
        """The rows' names in the source; a file's name is its path relative to the root."""
        return [self._source.name(i) for i in self._leased().id_list()]

    @property
    def metadata(self) -> list[Any]:
        """The results of the function of Loader(metadata=) for (name, label) of each row; called on
        each access. AttributeError if there is none.
        """
        if self._metadata is None:
            raise AttributeError("this Loader was made without metadata=")
        source = self._source
        return [
            self._metadata(source.name(i), _core.label_in_batch(source, i))
            for i in self._leased().id_list()
        ]

    def release(self) -> None:
        """Gives the batch back now, unless something that was made from its arrays holds it. After
        that its arrays cannot be used: RuntimeError.
        """
        self._batch = None

    def __len__(self) -> int:
        """Returns the number of rows, which is always the Loader's batch_size."""
        return self._leased().ids.shape[0]

    def __iter__(self) -> Iterator[_core.Array]:
        """images and labels, and not the rows."""
        leased = self._leased()
        return iter((leased.images, leased.labels))

    def __repr__(self) -> str:
        what = "released" if self._batch is None else f"{self.valid} of {len(self)} rows count"
        return f"<stoker.Batch step {self.step}, epoch {self.epoch}: {what}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Batch cannot be pickled; pickle copies of its arrays")

    def _leased(self) -> _core.Batch:
        batch = self._batch  # another thread may release it meanwhile
        if batch is None:
            raise RuntimeError(
                f"the batch of step {self.step} was released; its memory may hold "
                "another one by now"
            )
        return batch


class BatchMaker:
    """Makes a loop's Batches. Once it is asked to, it notes which rows they have: a watch of an
    adapter sees only what is made of them.
    """

    _NOTED = 64  # batches; more than any loop works ahead

    def __init__(self, metadata: Callable[[str, int], Any] | None):
        self.metadata = metadata
        self._noted: dict[int, tuple[list[int], list[int]]] | None = None
        self._lock = threading.Lock()  # of what is noted

    def __call__(self, taken: _core.Batch, source: _core.Source) -> Batch:
        if self._noted is not None:
            rows = taken.id_list(), taken.counted_rows()
            with self._lock:
                self._noted[taken.step] = rows
                if len(self._noted) > self._NOTED:
                    del self._noted[next(iter(self._noted))]
        return Batch(taken, source, self.metadata)

    def begin_notes(self) -> None:
        with self._lock:
            if self._noted is None:
                self._noted = {}

    def rows_of(self, step: int) -> tuple[list[int], list[int]] | None:
        """Returns the ids of all rows, and the rows that count; None: it was not noted."""
        return None if self._noted is None else self._noted.get(step)
