"""A data set for Keras 3's model.fit, on any backend:

    from stoker.keras import Dataset
    train = Dataset(stoker.folder("pictures/train"), batch_size=64, size=128,
                    augment=stoker.random_resized_crop() | stoker.flip())
    val = Dataset(stoker.folder("pictures/val"), batch_size=64, size=128, shuffle=False)
    model.fit(train, validation_data=val, epochs=10)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic

import keras
import numpy as np

from stoker._adapter import Form, carried_arrays, with_one_view
from stoker._batch import Batch
from stoker._blend import Blend
from stoker._core import Source
from stoker._loader import Loader

__all__ = ["Dataset"]


# The type that fit() gets; see stoker._loader.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Item = TypeVar("Item", default=tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]])
else:
    from typing import TypeVar

    Item = TypeVar("Item")


class Dataset(keras.utils.PyDataset, Generic[Item]):  # type: ignore[misc]
    """Batches (images, labels), or (images, targets) with target=, on the host, as NumPy arrays
    that belong to the caller; the backend moves them to its device. Only rows that count are
    included, so that every sample counts once in any metric: an epoch's last batch may be smaller.

    target: what to learn in place of the labels: the name of one of the source's targets
        (stoker.with_targets()), or a sequence of names for a model with several outputs, which gets
        a dict.
        If the source has annotations (stoker.open(objects=), stoker.with_annotations()), targets
        is by default a dict of the padded arrays that stoker.Annotations lists, or the label images
        if there is nothing else; target= chooses from them, too.
    augment: with stoker.augment.mix() the labels are a dict of label, mix_label and mix_weight, of
        which on_batch can make soft labels.
    on_batch: as in stoker.Loader, a function of such a tuple, whose result Keras gets.
    options: those of stoker.Loader except device and copy. By default float32 from 0 to 1 in the
    layout of keras.config.image_data_format(). `epoch` is the next epoch: set it to fit's
    initial_epoch to continue an earlier run. Use a Dataset in only one fit() at a time.

    ValueError: there is no such target; annotations that are packed.
    """

    def __init__(
        self,
        source: Source | Blend,
        *,
        batch_size: int = 32,
        target: str | Sequence[str] | None = None,
        on_batch: Callable[[Any], Item] | None = None,
        **options: Any,
    ):
        super().__init__(workers=1)  # stoker's own threads do the work
        is_last = keras.config.image_data_format() == "channels_last"
        given = {"dtype": "float32", "layout": "NHWC" if is_last else "NCHW", **options}
        wanted = target if target is None or isinstance(target, str) else tuple(target)
        carried = carried_arrays(source, options.get("annotations"))
        usual = "label_image" if carried == ["label_image", "picture_box"] else tuple(carried)
        chosen = usual or None if wanted is None else wanted
        self._form = Form(partial(_arrays, chosen), on_batch)
        self.loader = with_one_view(
            Loader(
                source,
                batch_size=batch_size,
                copy=True,
                on_batch=self._form.for_loader,
                **given,
            )
        )
        _check_target(wanted, self.loader.source, carried)
        self.epoch = 0
        self._given = 0  # batches since on_epoch_begin()
        self._batches: Iterator[Any] | None = None

    def __len__(self) -> int:
        return len(self.loader)

    def __getitem__(self, index: int) -> Item:
        """Returns the next batch, whatever the index: Keras asks for each of them once per
        epoch."""
        try:
            batch: Item = next(self._batches or self._begin())
        except StopIteration:
            given = f"the epoch's {len(self)} batches were given"
            raise IndexError(f"batch {index}: {given}") from None
        self._given += 1
        return batch

    def on_epoch_begin(self) -> None:
        """Begins `epoch`, even if Keras has already looked at its first batches."""
        self._begin()

    def on_epoch_end(self) -> None:
        """Moves on to the next epoch, unless Keras only looked at a batch to build the model."""
        if self._given > 1 or self._given == len(self):
            self.epoch += 1
        self._batches = None

    def close(self) -> None:
        """Ends the threads."""
        self.loader.close()

    def _begin(self) -> Iterator[Any]:
        self.loader.set_epoch(self.epoch)
        self._batches = self._form.epoch(self.loader)
        self._given = 0
        return self._batches


def _arrays(target: str | tuple[str, ...] | None, batch: Batch) -> tuple[np.ndarray, Any]:
    counts = slice(None) if batch.valid == len(batch) else np.asarray(batch.weights) > 0
    arrays = {name: np.asarray(values)[counts] for name, values in batch._arrays().items()}
    images, labels = np.asarray(batch.images)[counts], np.asarray(batch.labels)[counts]
    if isinstance(target, str):
        return images, arrays[target]
    if target is not None:
        return images, {name: arrays[name] for name in target}
    if "mix_label" in arrays:
        return images, {"label": labels, **{name: arrays[name] for name in _OF_MIXING}}
    return images, labels


_OF_MIXING = ("mix_label", "mix_weight")


def _check_target(
    target: str | tuple[str, ...] | None, source: Source, carried: list[str]
) -> None:
    """ValueError: a name that is neither a target of the source nor carried."""
    for name in (target,) if isinstance(target, str) else target or ():
        if name in source.targets and None in source.targets[name][1]:
            raise ValueError(
                f"target is {name!r}, of which samples have different numbers: take stoker.Loader, "
                "whose Batch has texts and padded()"
            )
        names = [*source.targets, *source.pictures, *carried]
        if name not in names:
            there = ", ".join(map(repr, names)) or "none"
            raise ValueError(f"target is {name!r}; the targets of the source are {there}")
