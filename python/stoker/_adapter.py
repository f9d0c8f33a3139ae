"""Shared by the adapters: a Loader inside, its position in the data, the form of its batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from stoker._annotations import Annotations
from stoker._batch import Batch
from stoker._loader import Loader
from stoker._shown import adapter_html


Item = TypeVar("Item")
_OF_OBJECTS = ("boxes", "labels", "area", "object_ids", "iscrowd", "object_count", "image_id")


def with_one_view(loader: Loader[Any]) -> Loader[Any]:
    """Returns it. ValueError: it has several views, which an adapter does not hand on."""
    if loader.views > 1:
        loader.close()
        raise ValueError("augment has views(): iterate over a stoker.Loader, or stoker.torch's")
    return loader


def carried_arrays(source: Any, annotations: Any) -> list[str]:
    """Returns the names of the arrays in which a Loader hands on the annotations of its source.
    ValueError: they are packed, and an adapter cuts arrays by rows.
    """
    if isinstance(annotations, Annotations) and annotations.packed:
        raise ValueError(
            f"annotations is {annotations!r}: packed arrays cannot be cut by rows, so only a "
            "stoker.Loader, or stoker.torch's, hands them on"
        )
    first = (getattr(source, "sources", None) or [source])[0]
    if annotations is None and getattr(first, "is_growing", False):  # nobody waits for its list
        return []
    kinds = getattr(first, "annotations", None)
    if not kinds:
        return []
    names = list(_OF_OBJECTS) if kinds["objects"] else []
    if kinds["keypoints"]:
        names.append("keypoints")
    if kinds["masks"] and getattr(annotations, "masks", None):
        names.append("masks")
    if kinds["label_image"]:
        names.append("label_image")
    return [*names, "picture_box"]


def loader_in(given: object) -> Loader[Any] | None:
    """Returns the Loader that `given` is, or has inside; None: there is none."""
    inner = given if isinstance(given, Loader) else getattr(given, "loader", None)
    return inner if isinstance(inner, Loader) else None


class Form:
    """Makes of a Loader's batch what the adapter yields: `convert` of it, and `on_batch` of that.

    With on_batch the Loader's thread calls this, so that the conversion is done ahead, too. Keeps
    no Loader, which keeps this.
    """

    def __init__(self, convert: Callable[[Batch], Any], on_batch: Callable[[Any], Any] | None):
        if on_batch is not None and not callable(on_batch):
            raise TypeError(f"on_batch is {on_batch!r}, must be a function of a batch")
        self.convert = convert  #: without on_batch
        self._on_batch = on_batch

    def __call__(self, batch: Batch) -> Any:
        made = self.convert(batch)
        return made if self._on_batch is None else self._on_batch(made)

    def __reduce__(self) -> Any:
        # Said here, because a pickle of the adapter reaches on_batch before the Loader.
        raise TypeError("a Loader cannot be pickled: make one in the process that uses it")

    @property
    def for_loader(self) -> Form | None:
        """The argument on_batch of the Loader."""
        return None if self._on_batch is None else self

    def epoch(self, loader: Loader[Any]) -> Iterator[Any]:
        """Begins an epoch of what this makes. REQUIRES: `loader` was made with for_loader."""
        batches = iter(loader)
        return map(self, batches) if self._on_batch is None else batches


class Adapter(Generic[Item]):
    """Derived classes set `loader`, and yield `Item`s."""

    loader: Loader[Any]

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__qualname__}: {self.loader!r}>"

    def _repr_html_(self) -> str:
        return adapter_html(self, self.loader)

    def __len__(self) -> int:
        """Returns the number of batches of an epoch."""
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Makes epoch `epoch` the next loop's. Needed only to jump: epochs are counted
        automatically."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """See stoker.Loader.state_dict()."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See stoker.Loader.load_state_dict()."""
        self.loader.load_state_dict(state)

    def close(self) -> None:
        """Ends the threads; so does dropping the last reference."""
        self.loader.close()
