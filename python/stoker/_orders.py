"""Which samples an epoch takes, and in which order."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from stoker import _core
from stoker._arguments import in_range, length_or, real_numbers, whole_numbers, yes_or_no


@dataclass(frozen=True, repr=False, eq=False)
class Order:
    """For Loader(order=). Made by weighted(), class_balanced(), repeated() and block_shuffled(). It
    can be used by any number of Loaders, and be pickled.
    """

    _call: str
    _make: Callable[[_core.Source, _core.LoaderOptions], _core.SampleOrder]

    def bind(self, source: _core.Source, options: _core.LoaderOptions) -> _core.SampleOrder:
        """Returns it for a source and the batches of a Loader. ValueError: it does not fit."""
        return self._make(source, options)

    def __repr__(self) -> str:
        return f"stoker.{self._call}"


def weighted(
    weights: Sequence[float] | Any, length: int | None = None, replacement: bool = True
) -> Order:
    """Sample i comes with probability weights[i] / sum(weights), as with PyTorch's
    WeightedRandomSampler; each epoch draws anew.

    weights: one for each sample of the Loader's source, finite and not negative; 0: never. A
        sequence, a NumPy array or a tensor.
    length: positions of an epoch; default: as many as samples.
    replacement: True: draws are independent. False: no sample comes twice in an epoch, and `length`
        is at most the number of weights above 0.

    ValueError: a weight, with its place; the length; and from the Loader: not as many weights as
    samples.
    """
    numbers = array("d", real_numbers("weights", weights))
    positions = length_or(len(numbers), length)
    again = yes_or_no("replacement", replacement)
    _core.weighted_order(numbers, positions, again)  # refuses weights here, not in the Loader
    call = f"weighted(<{len(numbers)} weights>, length={positions}, replacement={again})"
    return Order(call, partial(_weighted, numbers, positions, again))


def class_balanced(length: int | None = None) -> Order:
    """Every class of the source that has samples comes equally often: after any number of
    positions, over all epochs, the classes' counts differ by at most 1. Within a class every sample
    comes once, in a shuffled order, before any comes again, also across epochs.

    length: positions of an epoch; default: as many as samples. ValueError: the length; and from the
    Loader: a negative label.
    """
    positions = length_or(0, length)
    return Order(f"class_balanced(length={length})", partial(_class_balanced, positions))


def repeated(repeats: int = 3, length: int | None = None) -> Order:
    """Repeated augmentation (Hoffer et al., "Augment your batch", 2020; the RASampler of DeiT):
    `repeats` positions in a row show one sample, in different crops. So an epoch as long as the
    source shows len(source) / repeats different samples, others each epoch.

    length: positions of an epoch; default: as many as samples. The repetitions are in one global
    batch where `repeats` divides its size. ValueError: the numbers; and from the Loader: a length
    of more than len(source) * repeats.
    """
    times = in_range("repeats", repeats, 1, (1 << 31) - 1)
    positions = length_or(0, length)
    call = f"repeated(repeats={times}, length={length})"
    return Order(call, partial(_repeated, times, positions))


def block_shuffled(block: int = 16, mixed: int = 64) -> Order:
    """Every sample once: blocks of neighbours come in a shuffled order, other blocks in each epoch,
    and the samples of `mixed` blocks are shuffled. A store is then asked for a block at a time,
    where stoker.Store(memory=) holds about twice the samples that are mixed. It shuffles less than
    shuffle=True: the samples of a block come within block * mixed positions of each other, so data
    that are sorted by class have fewer classes in a batch. With world > 1 each process reads its
    share of every block.

    block: samples that lie one behind the other, 1 to 2^20. mixed: blocks, 1 to 2^20. ValueError:
    the numbers.
    """
    neighbours = in_range("block", block, 1, 1 << 20)
    blocks = in_range("mixed", mixed, 1, 1 << 20)
    call = f"block_shuffled(block={neighbours}, mixed={blocks})"
    return Order(call, partial(_block_shuffled, neighbours, blocks))


def listed(ids: Iterable[int]) -> Order:
    """These samples in this order, the same in every epoch. TypeError: one that is no int.
    ValueError, from the Loader: no ids, or one that the source does not have.
    """
    numbers = array("q", whole_numbers("ids", ids))
    return Order(f"listed(<{len(numbers)} ids>)", partial(_listed, numbers))


def steps_per_epoch(length: int, options: _core.LoaderOptions) -> int:
    """Returns the batches of all ranks in an epoch of `length` positions."""
    steps, rest = divmod(length, options.batch_size * options.world)
    return steps + (rest > 0 and options.last_batch != _core.LastBatch.drop)


# Functions at the top of the module, so that orders can be pickled. `length` 0: as many as samples.


def _weighted(
    weights: Sequence[float],
    length: int,
    replacement: bool,
    source: _core.Source,
    options: _core.LoaderOptions,
) -> _core.SampleOrder:
    if len(weights) != len(source):
        raise ValueError(f"order has {len(weights)} weights, and there are {len(source)} samples")
    return _core.weighted_order(weights, length, replacement)


def _class_balanced(
    length: int, source: _core.Source, options: _core.LoaderOptions
) -> _core.SampleOrder:
    return _core.class_balanced_order(source, length or len(source))


def _repeated(
    repeats: int, length: int, source: _core.Source, options: _core.LoaderOptions
) -> _core.SampleOrder:
    return _core.repeated_order(len(source), repeats, length)


def _block_shuffled(
    block: int, mixed: int, source: _core.Source, options: _core.LoaderOptions
) -> _core.SampleOrder:
    return _core.block_shuffled_order(len(source), block, mixed)


def _listed(
    ids: Sequence[int], source: _core.Source, options: _core.LoaderOptions
) -> _core.SampleOrder:
    return _core.listed_order(len(source), ids)
