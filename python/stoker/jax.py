"""Batches for JAX, spread over its devices:

    from stoker.jax import Loader
    train = Loader(stoker.folder("pictures/train"), batch_size=256, size=224, augment=...)
    for batch in train:  # batch.images, .labels, .weights: jax.Arrays, sharded by rows
        state = step(state, *batch)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

import stoker
from stoker._adapter import Adapter, Form, carried_arrays, with_one_view

__all__ = ["Batch", "BatchWithTargets", "Loader"]


class Batch(NamedTuple):
    """Has one shape in every step, so that a jitted step is compiled once."""

    images: jax.Array  # (batch_size, height, width, 3)
    labels: jax.Array  # (batch_size,) int32
    weights: jax.Array  # (batch_size,) float32; 0: padding or a damaged file


class BatchWithTargets(NamedTuple):
    """The same of a source with targets besides its labels, or with annotations."""

    images: jax.Array
    labels: jax.Array
    weights: jax.Array
    targets: dict[str, jax.Array]  # by name, (batch_size, ...)


# The type that a loop gets; see stoker._loader.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Item = TypeVar("Item", default=Batch)
else:
    from typing import TypeVar

    Item = TypeVar("Item")


class Loader(Adapter[Item]):
    """Yields an epoch in every loop: a Batch each, or a BatchWithTargets if the source has targets
    (stoker.with_targets()), which type checkers are told by `train: Loader[BatchWithTargets] = `.
    So it does if the source has annotations (stoker.open(objects=), stoker.with_annotations()):
    the targets are the padded arrays that stoker.Annotations lists then, of one shape in every
    step.

    batch_size: rows of all devices and processes together; must be a multiple of the devices.
    sharding: of an array's first axis; default: jax.sharding.NamedSharding over all devices.
    on_batch: as in stoker.Loader, a function of such a Batch, whose result this yields.
    options: those of stoker.Loader except device, copy, rank and world; rank and world are JAX's
        process index and count. By default float32 from 0 to 1, NHWC.

    The arrays may be kept forever. ValueError: batch_size does not fit the devices; annotations
    that are packed.
    """

    def __init__(
        self,
        source: stoker.Source | stoker.Blend,
        *,
        batch_size: int,
        sharding: jax.sharding.Sharding | None = None,
        on_batch: Callable[[Any], Item] | None = None,
        **options: Any,
    ):
        if sharding is None:
            mesh = jax.sharding.Mesh(np.array(jax.devices()), ("batch",))
            sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
        shares = len(sharding.device_set)
        if batch_size < 1 or batch_size % shares != 0:
            raise ValueError(f"batch_size is {batch_size}, must be a multiple of {shares} devices")
        self.sharding = sharding
        self.batch_size = batch_size
        carried_arrays(source, options.get("annotations"))  # none of them is packed
        self._form = Form(partial(_spread, sharding), on_batch)
        self.loader = with_one_view(
            stoker.Loader(
                source,
                batch_size=batch_size // jax.process_count(),
                rank=jax.process_index(),
                world=jax.process_count(),
                copy=True,
                on_batch=self._form.for_loader,
                **{"dtype": "float32", **options},
            )
        )

    def __iter__(self) -> Iterator[Item]:
        # The epoch begins here and not at the first next(), so that the loop begins where it is
        # written.
        return self._form.epoch(self.loader)


def _spread(sharding: jax.sharding.Sharding, batch: stoker.Batch) -> Batch | BatchWithTargets:
    def shared(part: stoker.Array) -> jax.Array:
        return jax.make_array_from_process_local_data(sharding, np.asarray(part))

    images, labels, weights = shared(batch.images), shared(batch.labels), shared(batch.weights)
    if varying := batch._varying():
        raise ValueError(
            f"of {', '.join(varying)} samples have different numbers, which no array of JAX has: "
            "take stoker.Loader, whose Batch has texts and padded()"
        )
    if not batch._arrays():
        return Batch(images, labels, weights)
    targets = {name: shared(values) for name, values in batch._arrays().items()}
    return BatchWithTargets(images, labels, weights, targets)
